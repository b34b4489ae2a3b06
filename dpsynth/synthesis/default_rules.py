"""Default settings: rules for releases and batch sizes, and the HealthGAN baseline."""

from __future__ import annotations

import math

import numpy as np

from dpsynth.privacy.gaussian_loss import analytic_sigma
from dpsynth.table.schema import Schema
from dpsynth.wgan.settings import TrainingSettings

#: Critic steps of an alternating training.
STEPS = 64
#: Products of a record and a weight in a training that reads all records at each step, at most.
_FULL_BATCH = 1e11
#: Random critics whose gradients are matched.
CRITICS = 32
#: So many at most: their gradients are summed and matched together in memory.
MOST_CRITICS = 128
#: Noise of a pairwise statistic from which on it improves nothing measurably.
_MOST_PAIR_NOISE = 0.2
#: What a further table has of mu^2, compared with a first one.
FURTHER = 0.5
#: Records for each deviation of the noise of further tables, and most rounds of them.
_LEAST_RECORDS, _MOST_ROUNDS = 400.0, 3
#: Products of two columns' numbers that can be fitted in seconds: those of 300 columns of one number.
MOST_PRODUCTS = 45_000


def numbers_per_column(schema: Schema) -> list[int]:
    """How many numbers stand for each column in pairwise statistics: one if ordered, else one a category.

    A column of two categories is one number.
    """
    found = []
    for column in schema.columns:
        if column.is_numeric:
            found.append(1 + len(column.special) + column.missing)
        else:
            cells = len(column.categories) + column.missing
            found.append(1 if cells == 2 else cells)
    return found


def products_of_pairs(schema: Schema) -> int:
    """Products of numbers of two different columns."""
    sizes = numbers_per_column(schema)
    return (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2


def has_pairwise_statistics(
    schema: Schema, n: float, epsilon: float | None, delta: float, share: float
) -> bool:
    """Whether pairwise statistics are released by rule: if their noise is small.

    A pairwise statistic is a mean of products of two standardised numbers, about a correlation. Its noise is
    taken as sqrt(products) / (n mu sqrt(share)), with mu the Gaussian-DP parameter of (epsilon, delta). Each
    ordered column, category and missing value is a number, and so are two categories. More than 45,000
    products take too long to fit.
    ``n`` is public or a noisy count.

    >>> from dpsynth.table import Column
    >>> columns = tuple(Column(name=f"x{i}", kind="continuous", lower=0, upper=1) for i in range(30))
    >>> [has_pairwise_statistics(Schema(columns=columns), n, 3.0, 1e-5, 0.1) for n in (300, 3000)]
    [False, True]
    """
    if len(schema) < 3:
        return False
    products = products_of_pairs(schema)
    if products > MOST_PRODUCTS:
        return False
    if epsilon is None:
        return True
    return math.sqrt(products / share) * analytic_sigma(epsilon, delta) / n <= _MOST_PAIR_NOISE


def rounds_of_growth(
    first: float, further: int, n: float, epsilon: float | None, delta: float, share: float
) -> int:
    """Rounds of further tables: as many as leave 400 records for each deviation of the noise in their cells.

    The variance of that noise is (first / FURTHER + 1 + rounds * further) / share / mu^2, with mu the
    Gaussian-DP parameter of (epsilon, delta). There are three rounds at most. ``n`` is public or a noisy
    count.

    ``first``: squared sensitivity of the first tables.
    ``further``: tables of a round, of which the first round has one more.
    ``share``: fraction of mu^2 of all tables.

    >>> [rounds_of_growth(10.0, 8, n, 3.0, 1e-5, 0.6) for n in (1000, 4000, 40_000)]
    [0, 1, 3]
    """
    if further < 1:
        return 0
    if epsilon is None:
        return _MOST_ROUNDS
    most = share * (n / (_LEAST_RECORDS * analytic_sigma(epsilon, delta))) ** 2
    return int(np.clip((most - first / FURTHER - 1) // further, 0, _MOST_ROUNDS))


def batch_size(n: float, weights: int, steps: int) -> float:
    """Expected number of records in a step of the WGAN critic, from public numbers.

    All records, if records times weights of the critic times steps are 10^11 at most. That takes a core about
    a minute. Such a fit has no sampling noise, and no more noise of privacy. Else a quarter of them, at most
    2,048.

    >>> batch_size(3937, 2000, 1000), batch_size(36_000, 8000, 1000)
    (3937, 2048)
    """
    return n if n * weights * steps <= _FULL_BATCH else max(min(int(n // 4), 2048), 1)


def healthgan(schema: Schema) -> TrainingSettings:
    """The architecture and optimiser of HealthGAN as in Pedersen (2022), section 3.3, table 3.1.

    - Generator 100 -> 2d -> floor(1.5 d) -> d (ReLU, sigmoid), latent U(0, 1).
    - WGAN critic d-64-128-256-1 with LeakyReLU 0.2, and 5 critic steps for one generator step.
    - Penalty weight 10 at points between records and generated points.
    - Adam with rate 1e-4 and betas 0.5, 0.9, without averaging.
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
        outcome_scale=1.0,
        replay=0,
        latent=100,
        latent_law="uniform",
    )


def describe_sensitivity(settings: TrainingSettings, noise_shape: str) -> str:
    """Source of a critic step's sensitivity, as one phrase for the ledger."""
    if settings.clip_norm is not None:
        return f"per-{{record}} clipping at {settings.clip_norm:g}"
    penalty = ", plus the tight bound of Theorem 3.1.3" if settings.penalty == "data" else ""
    bounds = f"Theorem 3.1.1 and Lipschitz bounds{penalty}"
    return f"proved each step from the WGAN critic's weights ({bounds}), {noise_shape}"
