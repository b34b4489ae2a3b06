"""Closeness of a synthetic table to real records: accuracies, losses and the test, as measures.

Nearest neighbours are compared at equal sizes, on random parts of the tables: the formulas allow any sizes,
but where distributions differ the accuracy depends on them, and a privacy loss would compare unlike numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import check_level
from dpsynth.evaluation.neighbours.distances import Floats, Metric, metric_named
from dpsynth.evaluation.neighbours.nnaa_interval import AccuracyIntervals, accuracy_intervals
from dpsynth.evaluation.neighbours.nnaa_losses import losses
from dpsynth.evaluation.neighbours.same_distribution import SameDistribution, same_distribution
from dpsynth.evaluation.neighbours.splitting import SMALLEST, Interval
from dpsynth.evaluation.progress import within
from dpsynth.evaluation.records import Findings, Measure
from dpsynth.table.schema import Schema

GROUP = "Closeness to real records"


def closeness(
    synthetic: pd.DataFrame,
    train: pd.DataFrame,
    test: pd.DataFrame | None,
    schema: Schema,
    *,
    rng: np.random.Generator,
    limit: int = 10_000,
    metric: str | Metric = "euclidean",
    level: float = 0.95,
    permutations: int = 200,
    progress: Callable[[float], None] | None = None,
) -> Findings:
    """Compare nearest neighbours of synthetic, training and test records.

    Parameters
    ----------
    synthetic, train : pandas.DataFrame of shape (m, columns), (n, columns)
        Conformed to ``schema``; at least two records each.
    test : pandas.DataFrame of shape (k, columns) or None
        Real records that had no part in the synthetic table.
    schema : Schema
    rng : numpy.random.Generator
        For parts, splits and permutations.
    limit : int
        A random part of each table is used, as large as the smaller of the two compared and at most this.
    metric : {"euclidean", "gower", "hamming"} or Metric
        See :mod:`dpsynth.evaluation.neighbours.distances`.
    level : float
        Of the confidence intervals.
    permutations : int
        Of the test of the same distribution; none is made for 0.
    progress : callable, optional
        Called with the share done, in [0, 1].

    Returns
    -------
    Findings
        Measures, all internal: ``nn_accuracy_train``, ``_train_real``, ``_train_synthetic``, the same of
        ``test`` and ``privacy_loss``, with intervals; the p-values ``nn_same_distribution_p`` (two-sided) and
        ``nn_apart_p`` (are distributions different?) against test records, or training records where there
        are none, and ``nn_copies_p`` (is the synthetic table too close?) against training records.

    Raises
    ------
    InputError
        If a table has fewer than two records, or an argument is out of range.

    Notes
    -----
    Privacy: reads ``train`` and ``test`` and posts no event. ``privacy_loss`` is computed on parts of one
    size for both comparisons; where the tables allow different sizes it is not the difference of the two
    accuracies reported. Random parts hide copies: of c copied records, a part of share q of both tables holds
    q**2 c, so that ``limit`` should be no smaller than the tables if time allows.

    Examples
    --------
    >>> from dpsynth.table.schema import Column
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=0, upper=99),))
    >>> rng = np.random.default_rng(0)
    >>> real, held_out, made = (pd.DataFrame({"age": rng.integers(0, 100, 40)}) for _ in range(3))
    >>> found = closeness(made, real, held_out, schema, rng=rng)
    >>> [measure.name for measure in found.measures][:3]
    ['nn_accuracy_train', 'nn_accuracy_train_real', 'nn_accuracy_train_synthetic']
    """
    chosen = metric_named(metric)
    check_level(level)
    if not limit >= 2:
        raise InputError(f"limit must be at least 2, got {limit!r}")
    if not permutations >= 0:
        raise InputError(f"permutations must be at least 0, got {permutations!r}")
    for name, frame in (("synthetic", synthetic), ("train", train), ("test", test)):
        if frame is not None and len(frame) < 2:
            raise InputError(f"{name} must have at least 2 records, got {len(frame)}")
    settings: Any = {"rng": rng, "level": level, "metric": chosen}
    against = min(len(synthetic), len(train), limit)
    made = _points(synthetic, schema, min(len(synthetic), limit), chosen, rng)
    real = _points(train, schema, against, chosen, rng)
    if test is None:
        comparison = accuracy_intervals(real, made[:against], **settings, progress=within(progress, 0.0, 0.8))
        measures = [*_accuracy("train", "training", comparison)]
        reference, table = real, "training"
    else:
        size = min(len(synthetic), len(test), limit)
        held_out = _points(test, schema, size, chosen, rng)
        common = min(against, size)
        found = losses(
            real[:common], held_out[:common], made[:common], **settings, progress=within(progress, 0.0, 0.8)
        )
        first, second = found.train, found.test
        # One of the two may have more records than both have in common.
        if against > common:
            first = accuracy_intervals(real, made[:against], **settings)
        if size > common:
            second = accuracy_intervals(held_out, made[:size], **settings)
        measures = [
            *_accuracy("train", "training", first),
            *_accuracy("test", "test", second),
            _measure(
                "privacy_loss",
                found.privacy_loss,
                f"accuracy against {common} test minus against {common} training records; above 0 the "
                "synthetic records lie closer to training records than to new ones",
            ),
        ]
        reference, table = held_out, "test"
    if permutations:
        how: Any = {"rng": rng, "permutations": permutations, "metric": chosen}
        independent = same_distribution(reference, made[: len(reference)], **how)
        if progress is not None:
            progress(0.9)
        trained = independent if test is None else same_distribution(real, made[:against], **how)
        measures += _p_values(independent, table, trained)
        if test is not None:
            real_sides = same_distribution(real, held_out, **how)
            what = (
                f"p-value, small where held-out records differ from training ones: {real_sides.n_real} "
                f"training and {real_sides.n_synthetic} test records; then they are no baseline for memory"
            )
            measures.append(Measure(GROUP, "nn_train_test_p", real_sides.p_apart, True, what))
    if progress is not None:
        progress(1.0)
    return Findings(tuple(measures))


def _points(
    frame: pd.DataFrame, schema: Schema, size: int, metric: Metric, rng: np.random.Generator
) -> Floats:
    """A random part in random order, so that its beginning is a random part too."""
    return metric.encode(frame.iloc[rng.permutation(len(frame))[:size]], schema)


def _accuracy(suffix: str, table: str, found: AccuracyIntervals) -> Iterator[Measure]:
    what = f"nearest-neighbour accuracy against {found.accuracy.n_real} {table} records"
    name = f"nn_accuracy_{suffix}"
    yield _measure(name, found.both, f"{what}; 0.5 is best")
    yield _measure(f"{name}_real", found.real, f"{what}, real side")
    yield _measure(f"{name}_synthetic", found.synthetic, f"{what}, synthetic side")


def _measure(name: str, interval: Interval, detail: str) -> Measure:
    over = (
        f"; {interval.level:.0%} interval over records, the generator held fixed"
        if interval.lower is not None
        else f"; no interval with fewer than {SMALLEST} records"
    )
    return Measure(GROUP, name, interval.value, True, detail + over, interval.lower, interval.upper)


def _p_values(found: SameDistribution, table: str, trained: SameDistribution) -> Iterator[Measure]:
    values = (
        ("nn_same_distribution_p", found.p_value, found, table, "same distribution, two-sided"),
        ("nn_apart_p", found.p_apart, found, table, "small where distributions differ"),
        ("nn_copies_p", trained.p_close, trained, "training", "small where synthetic records are too close"),
    )
    for name, value, test, records, meaning in values:
        what = (
            f"p-value, {meaning}: {test.n_real} {records} and {test.n_synthetic} synthetic records, "
            f"{test.permutations} permutations of which is which"
        )
        yield Measure(GROUP, name, value, True, what)
