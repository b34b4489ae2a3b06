"""Ready-made settings: public rules for batch sizes, and the thesis's baseline."""

from __future__ import annotations

from dpsynth.gan.settings import TrainingSettings
from dpsynth.table.schema import Schema


def batch_size(preset: str | None, n: float) -> int:
    """Expected batch from the public number of records: a quarter, at most 1,024 (healthgan: a tenth).

    Examples
    --------
    >>> batch_size(None, 3937), batch_size("healthgan", 2085)
    (984, 208)
    """
    if preset == "healthgan":
        return max(int(n // 10), 1)
    return max(min(int(n // 4), 1024), 1)


def healthgan(schema: Schema) -> TrainingSettings:
    """HealthGAN as in Pedersen (2022), section 3.3, for a table with SDV-encoded columns.

    Generator 100 -> 2d -> floor(1.5 d) -> d (ReLU, sigmoid), latent U(0, 1); critic d-64-128-256-1 with
    LeakyReLU 0.2; 5 critic steps for one generator step; penalty weight 10 at points between records and
    generated points; Adam with rate 1e-4 and betas 0.5, 0.9; no averaging.

    Examples
    --------
    >>> from dpsynth.table import Column
    >>> columns = tuple(Column(name=f"x{i}", kind="continuous", lower=0, upper=1) for i in range(12))
    >>> healthgan(Schema(columns=columns)).generator_hidden
    (24, 18)
    """
    d = len(schema)
    return TrainingSettings(
        critic_hidden=(64, 128, 256),
        generator_hidden=(2 * d, max(int(1.5 * d), 1)),
        activation="leaky_relu",
        slope=0.2,
        critic_constraint="none",
        bjorck_steps=0,
        penalty="data",
        penalty_weight=10.0,
        critic_steps=5,
        critic_learning_rate=1e-4,
        generator_learning_rate=1e-4,
        beta_1=0.5,
        beta_2=0.9,
        average=0.0,
        latent=100,
        latent_law="uniform",
    )


def describe_sensitivity(settings: TrainingSettings, noise_shape: str) -> str:
    """One phrase for the ledger: how a critic step's sensitivity is known."""
    if settings.clip_norm is not None:
        return f"per-record clipping at {settings.clip_norm:g}"
    penalty = ", plus the tight bound of Theorem 3.1.3" if settings.penalty == "data" else ""
    bounds = f"Theorem 3.1.1 and Lipschitz bounds{penalty}"
    return f"proved each step from the critic's weights ({bounds}), {noise_shape}"
