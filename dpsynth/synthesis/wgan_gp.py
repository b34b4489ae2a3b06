"""DPWGANGP: the Wasserstein GAN with gradient penalty of Pedersen (2022), trained by proved bounds."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from dataclasses import asdict
from itertools import pairwise
from typing import Any, ClassVar, Self

from pydantic import Field, field_validator, model_validator

from dpsynth.errors import OwnerWarning, PrivacyError
from dpsynth.files.codec import record
from dpsynth.privacy.release import NoiseShape, Plan
from dpsynth.synthesis import default_rules
from dpsynth.synthesis.model import GeneratorModel
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.parts.columns import Columns
from dpsynth.synthesis.parts.critic import Critic
from dpsynth.synthesis.parts.part import Parts, Reading
from dpsynth.synthesis.resuming import TrainedSynthesizer
from dpsynth.synthesis.training import Alternating
from dpsynth.table.encodings import ENCODINGS, EncodingName
from dpsynth.table.schema import Schema, TableSchema
from dpsynth.wgan.device import Device, on_device
from dpsynth.wgan.history import mostly_noise, over_blocks
from dpsynth.wgan.settings import TrainingSettings
from dpsynth.wgan.snapshots import snapshot_columns


@record
class WganOptions(FitOptions):
    """The options of `DPWGANGP`."""

    generator: ClassVar[str] = "wgan-gp"
    associates: ClassVar[bool] = False

    steps: int = Field(default=default_rules.STEPS, ge=1)
    batch_size: int | None = Field(default=None, ge=1)
    noise_shape: NoiseShape = "optimal"
    encoding: EncodingName = "copula"
    training: TrainingSettings | None = None
    device: Device | None = None

    @field_validator("training", mode="before")
    @classmethod
    def _training(cls, given: Any) -> Any:
        return TrainingSettings(**given) if isinstance(given, dict) else given

    @model_validator(mode="after")
    def _noise_has_a_proof(self) -> Self:
        if self.epsilon is None:
            return self
        training = self.training or TrainingSettings()
        if training.clip_norm is not None and self.noise_shape != "spherical":
            raise PrivacyError(f"noise_shape must be 'spherical' with clip_norm, got {self.noise_shape!r}")
        return self

    def placed(self) -> AbstractContextManager[None]:
        """On the device."""
        return on_device(self.device)

    def settings(self, n: float) -> TrainingSettings:
        """The given architecture and optimiser, or the default ones."""
        return self.training or TrainingSettings()

    def batch(self, described: TableSchema, n: float) -> float:
        """Expected records in a Poisson sample."""
        if self.batch_size is not None:
            return min(n, self.batch_size)
        inputs = ENCODINGS[self.encoding].encoder(described.levels.modelled, None).layout.dim
        widths = (inputs, *self.settings(n).critic_hidden, 1)
        return min(n, default_rules.batch_size(n, sum(a * b for a, b in pairwise(widths)), self.steps))

    def parts(
        self, described: TableSchema, n: float, delta: float, n_std: float = 0.0, *, every: bool = False
    ) -> Parts:
        """Single-column counts, if the encoding has them, and critic steps in whole generator iterations."""
        critic_steps, probability = self.settings(n).critic_steps, self.batch(described, n) / n
        plan = Plan(
            sampling_prob=probability,
            expected_batch=probability * n,
            steps=-(-self.steps // critic_steps) * critic_steps,
            noise_multiplier=None,
            noise_shape=self.noise_shape,
        )
        critic = Critic(plan, Alternating(self.settings(n)), share=None)
        if not ENCODINGS[self.encoding].counts:
            return Parts((critic,), (), delta)
        columns = Columns(described.levels.modelled, n, n_std, share=self.division.marginals)
        return Parts((columns, critic), (), delta)

    def build(self, described: TableSchema, reading: Reading) -> GeneratorModel:
        """The model with the encoder of these options: what the critic's records and the samples pass."""
        schema, encoding = described.levels, ENCODINGS[self.encoding]
        marginals = reading.of(Columns) if encoding.counts else None
        return GeneratorModel(
            schema if reading.refine else schema.modelled, encoding.encoder(schema.modelled, marginals)
        )


class DPWGANGP(TrainedSynthesizer):
    """Differentially private WGAN-GP for tables (Pedersen 2022, Algorithm 1), trained alone.

    The gradient penalty is taken at points made without records, at no cost, and critics are projected to
    spectral norm 1. At the end the generator is fitted to the noisy gradients of all steps together, also at
    no cost (`dpsynth.wgan.replay`). Numbers are encoded through noisy single-column counts, with which
    samples are made to agree. The rest of the budget is for the critic's steps. Each step's sensitivity is
    proved from the critic's weights.

    Parameters
    ----------
    epsilon : float or None, default 3.0
        Total budget of ``fit``. None trains without noise and marks every output NOT PRIVATE.
    delta : float, optional
        Default: n_public^-1.5 (at most 1e-3), or 1e-6 if the schema has no public number of records.
    steps : int, default 64
        Steps of the WGAN critic, rounded up to whole generator iterations.
    batch_size : int, optional
        Expected records in a Poisson sample. Default: all records where a core can read them at every step
        within about a minute, else a quarter of n, at most 2,048
        (:func:`dpsynth.synthesis.default_rules.batch_size`).
    noise_shape : {"optimal", "layerwise", "spherical", "proportional"}
        Covariance of the noise (Theorem 3.1.2 is ``proportional``), also with the penalty at records
        (Proposition 3.1.4 of `dpsynth.wgan.theorems`). Clipping needs ``spherical``.
    encoding : {"copula", "minmax", "sdv"}
        How records become points. ``copula``: numbers through the noisy counts of their column, categories
        one-hot. ``minmax``: numbers by public bounds, and no counts are paid for. Samples are then not made
        to agree with any. ``sdv``: that of Pedersen (2022), numbers by public bounds, and categories as
        intervals of [0, 1] by their noisy frequencies (:class:`dpsynth.table.encodings.IntervalEncoder`).
    training : TrainingSettings, optional
        Architecture, penalty, optimiser and replay.
    device : str, optional
        ``"GPU:0"`` or ``"CPU:0"``: where networks are trained. Default: the first GPU, or the processor
        without one. Another device rounds otherwise, so results differ.
    accept_unreviewed : bool
        Fit although the schema holds fields read from the data. The ledger then excludes them.
    random_state : int, optional
        As in :class:`dpsynth.DPMarginals`.

    References
    ----------
    Pedersen (2022), Algorithm 1, with the corrections listed in `dpsynth.wgan.algorithm`.

    Examples
    --------
    >>> from dpsynth import Column, Schema
    >>> schema = Schema(columns=[Column(name=f"x{i}", kind="continuous", lower=0, upper=1) for i in range(4)])
    >>> thesis = DPWGANGP.healthgan(schema)
    >>> thesis.epsilon, thesis.training.generator_hidden, thesis.training.critic_hidden
    (None, (8, 6), (64, 128, 256))
    """

    options = WganOptions

    def __init__(
        self,
        epsilon: float | None = 3.0,
        delta: float | None = None,
        *,
        steps: int = default_rules.STEPS,
        batch_size: int | None = None,
        noise_shape: NoiseShape = "optimal",
        encoding: EncodingName = "copula",
        training: TrainingSettings | None = None,
        device: str | None = None,
        accept_unreviewed: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.steps = steps
        self.batch_size = batch_size
        self.noise_shape = noise_shape
        self.encoding = encoding
        self.training = training
        self.device = device
        self.accept_unreviewed = accept_unreviewed
        self.random_state = random_state

    @classmethod
    def healthgan(cls, schema: Schema, epsilon: float | None = None) -> Self:
        """HealthGAN as in Pedersen (2022), table 3.1: encoding, networks, optimiser, and batches of n / 10.

        Without ``epsilon`` it trains without noise and is NOT PRIVATE. Pedersen (2022) makes a million steps.
        With it the study is repeated privately: the penalty is at records, and each step has noise for it.

        Warns
        -----
        OwnerWarning
            With ``epsilon``: the noise leaves little for a generator to learn.
        """
        if epsilon is not None:
            warnings.warn(
                f"HealthGAN at epsilon {epsilon:g}: its penalty is at records, its WGAN critic free. "
                "The noise is usually far above the gradient then, and the generator learns little. "
                "DPWGANGP() has a WGAN critic that needs less noise",
                OwnerWarning,
                stacklevel=2,
            )
        n = schema.n_public
        batch = None if n is None else max(n // 10, 1)
        training = default_rules.healthgan(schema)
        return cls(epsilon=epsilon, training=training, batch_size=batch, encoding="sdv")

    @property
    def training_(self) -> dict[str, Any]:
        """A training as a report shows it: steps, history, columns, and the bound of each layer."""
        critic, frame, snapshots = self._parts.of(Critic), self.history_, self._history.snapshots
        assert critic is not None
        return {
            "planned": critic.plan.steps,
            "made": int(frame["step"].iloc[-1]),
            "rows": {str(name): part.tolist() for name, part in over_blocks(frame).items()},
            "snapshots": [snapshot.step for snapshot in snapshots],
            "columns": snapshot_columns(snapshots, self.model_.encoder),
            "adjusted": self.model_.encoder.calibrated,
            "layers": [asdict(layer) for layer in self._history.layers],
            "warning": mostly_noise(frame),
        }
