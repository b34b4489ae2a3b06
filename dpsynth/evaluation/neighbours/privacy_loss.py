"""Resemblance loss and privacy loss (Pedersen 2022, section 2.4, after Yale et al. 2019).

* ``TrResembLoss`` (2.12): nearest-neighbour accuracy of the training records against synthetic ones.
* ``TeResembLoss`` (2.13): the same of test records, which had no part in the synthetic table.
* ``PrivacyLoss`` (2.14): the second minus the first. Above 0 the synthetic records lie closer to the training
  records than to new ones.

The thesis defines them as expectations over generated tables; these are the estimates from one, with
intervals. It computes them with the biased accuracy (2.11). With the unbiased one of section 4.1 the
resemblance losses are 1/2 and the privacy loss is 0, in expectation, where all tables come from one
distribution, also when train and test differ in size; with (2.11) the privacy loss is then not 0. Where
distributions differ, the accuracy depends on the sizes, so that a privacy loss is best read at equal ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from dpsynth.checks import in_range
from dpsynth.evaluation.neighbours.accuracy import compared, two_sides, two_tables
from dpsynth.evaluation.neighbours.accuracy_interval import (
    LIST_LENGTH,
    AccuracyIntervals,
    Parted,
    shares_with,
)
from dpsynth.evaluation.neighbours.metrics import Floats, Metric, metric_named
from dpsynth.evaluation.neighbours.sides import TIE_TOLERANCE
from dpsynth.evaluation.neighbours.splitting import (
    Interval,
    Labels,
    clipped,
    split_intervals,
)
from dpsynth.evaluation.progress import Progress, silent, within


@dataclass(frozen=True)
class Losses:
    """Resemblance of a synthetic table to training and to test records, and their difference.

    Attributes
    ----------
    train, test : AccuracyIntervals
        Nearest-neighbour accuracy against each.
    privacy_loss : Interval
        ``test.both`` minus ``train.both``, in [-1, 1].
    """

    train: AccuracyIntervals
    test: AccuracyIntervals
    privacy_loss: Interval

    @property
    def train_resemblance_loss(self) -> Interval:
        """TrResembLoss (2.12)."""
        return self.train.both

    @property
    def test_resemblance_loss(self) -> Interval:
        """TeResembLoss (2.13)."""
        return self.test.both


def losses(
    train: ArrayLike,
    test: ArrayLike,
    synthetic: ArrayLike,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    splits: int = 100,
    metric: str | Metric = "euclidean",
    tie_tolerance: float = TIE_TOLERANCE,
    progress: Progress = silent,
) -> Losses:
    """Compute both resemblance losses and the privacy loss, with intervals.

    Parameters
    ----------
    train, test, synthetic : array_like of shape (n, d), (k, d), (m, d)
    rng : numpy.random.Generator
        For the splits.
    level, splits, metric, tie_tolerance
        As in :func:`~dpsynth.evaluation.neighbours.accuracy_interval.accuracy_intervals`.

    Returns
    -------
    Losses
        Internal when ``train`` or ``test`` holds private records.

    Raises
    ------
    InputError
        As :func:`~dpsynth.evaluation.neighbours.accuracy_interval.accuracy_intervals`.

    Notes
    -----
    One synthetic table serves both comparisons, so that their errors are correlated; every split is of all
    three tables at once, and the interval of the difference respects it. Held fixed: the generator. A
    generator's training on ``train`` makes the tables dependent;
    :mod:`dpsynth.evaluation.neighbours.splitting` says what copies do.
    """
    in_range("tie_tolerance", tie_tolerance, 0.0, 1.0, high_open=True)
    real, made = two_tables(train, synthetic, names=("train", "synthetic"))
    held_out, _ = two_tables(test, synthetic, names=("test", "synthetic"))
    sides_of = partial(two_sides, metric=metric_named(metric), k=LIST_LENGTH, tie_tolerance=tie_tolerance)
    first = sides_of(real, made, progress=within(progress, 0.0, 0.5))
    second = sides_of(held_out, made, near_synthetic=first[1].own, progress=within(progress, 0.5, 0.9))
    sides = (first, second)
    accuracies = [compared(*pair) for pair in sides]
    parted = [[Parted(side, tie_tolerance) for side in pair] for pair in sides]

    def statistic(labels: Sequence[Labels], parts: int) -> Floats:
        columns: list[Floats] = []
        for (own, other), mine in zip(parted, labels[:2], strict=True):
            first, second = own.means(mine, labels[2], parts), other.means(labels[2], mine, parts)
            columns += [first, second, (first + second) / 2.0]
        return np.stack([*columns, columns[5] - columns[2]], axis=1)

    values = [value for a in accuracies for value in (a.aa_real, a.aa_synthetic, a.aa)]
    values.append(accuracies[1].aa - accuracies[0].aa)
    sizes = (len(real), len(held_out), len(made))
    found = split_intervals(values, statistic, sizes, rng=rng, level=level, splits=splits)
    progress(1.0)
    return Losses(
        shares_with(found[:3], accuracies[0]),
        shares_with(found[3:6], accuracies[1]),
        clipped(found[6], -1.0, 1.0),
    )
