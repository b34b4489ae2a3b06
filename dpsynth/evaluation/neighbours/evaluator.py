"""Nearest neighbours of synthetic and of real records: accuracies, losses and the test, as measures.

Nearest neighbours are compared at equal sizes, on random parts of the tables. The formulas allow any sizes.
But if distributions differ, the accuracy depends on the sizes. A privacy loss would compare unlike numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd

from dpsynth.evaluation.neighbours.inference import (
    SMALLEST,
    AccuracyIntervals,
    Interval,
    SameDistribution,
    accuracy_intervals,
    losses,
    same_distribution,
)
from dpsynth.evaluation.neighbours.search import METRICS, Floats, Metric
from dpsynth.evaluation.records import Findings, Measure
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import COMPARED, PERMUTED, Progress, Tables, on_part, silent
from dpsynth.table.schema import Schema

GROUP = "Nearest neighbours"

#: of which record is real, in the test of the same distribution
PERMUTATIONS = 200


def neighbours(
    tables: Tables, settings: Settings, rng: np.random.Generator, progress: Progress = silent
) -> Findings:
    """Compare nearest neighbours of synthetic, training and test records.

    A random part of each table is used, as large as the smaller of the two compared. ``privacy_loss`` uses
    parts of one size for both comparisons. If the tables allow different sizes, it is not the difference of
    the two accuracies reported. Random parts hide copies: a part of share q of both tables holds q**2 c of c
    copied records. ``records`` should be at least the size of the tables if time allows.
    """
    limit, metric = settings.most(tables.schema, COMPARED), METRICS[settings.metric]
    part = partial(_points, schema=tables.schema, metric=metric, rng=rng)
    intervals = partial(accuracy_intervals, rng=rng, level=settings.level, metric=metric)
    permuted = partial(
        same_distribution,
        rng=rng,
        permutations=PERMUTATIONS,
        limit=PERMUTED.of(tables.schema),
        metric=metric,
    )

    def told(measures: list[Measure], real: int) -> Findings:
        total = min(len(tables.synthetic), real)
        return on_part(measures, "nearest neighbours", min(limit, total), total, settings.level)

    against = min(len(tables.synthetic), len(tables.train), limit)
    made = part(tables.synthetic, min(len(tables.synthetic), limit))
    real = part(tables.train, against)
    if tables.test is None:
        comparison = intervals(real, made[:against])
        measures = [*_accuracy("train", "training", comparison)]
        alike = permuted(real, made[:against])
        return told([*measures, *_p_values(alike, "training", alike)], len(tables.train))

    size = min(len(tables.synthetic), len(tables.test), limit)
    held_out = part(tables.test, size)
    common = min(against, size)
    found = losses(
        real[:common],
        held_out[:common],
        made[:common],
        rng=rng,
        level=settings.level,
        metric=metric,
    )
    progress(0.7)
    # One of the two may have more records than both have in common.
    first = intervals(real, made[:against]) if against > common else found.train
    second = intervals(held_out, made[:size]) if size > common else found.test
    measures = [
        *_accuracy("train", "training", first),
        *_accuracy("test", "test", second),
        _measure(
            "privacy_loss",
            found.privacy_loss,
            f"accuracy against {common} test minus against {common} training records. Above 0 the "
            "synthetic records lie closer to training records than to new ones",
        ),
    ]
    independent = permuted(held_out, made[:size])
    progress(0.9)
    measures += _p_values(independent, "test", permuted(real, made[:against]))
    real_sides = permuted(real, held_out)
    what = (
        f"p-value, small where held-out records differ from training ones: {real_sides.n_real} "
        f"training and {real_sides.n_synthetic} test records. Then they are no baseline for memorisation"
    )
    measures.append(Measure(GROUP, "nn_train_test_p", real_sides.p_apart, True, what))
    return told(measures, min(len(tables.train), len(tables.test)))


def _points(
    frame: pd.DataFrame, size: int, *, schema: Schema, metric: Metric, rng: np.random.Generator
) -> Floats:
    """A random part in random order, so that its beginning is a random part too."""
    return metric.encode(frame.iloc[rng.permutation(len(frame))[:size]], schema)


def _accuracy(suffix: str, table: str, found: AccuracyIntervals) -> Iterator[Measure]:
    what = f"nearest-neighbour accuracy against {found.accuracy.n_real} {table} records"
    name = f"nn_accuracy_{suffix}"
    yield _measure(name, found.both, f"{what}, 0.5 is best")
    yield _measure(f"{name}_real", found.real, f"{what}, real side")
    yield _measure(f"{name}_synthetic", found.synthetic, f"{what}, synthetic side")


def _measure(name: str, interval: Interval, detail: str) -> Measure:
    over = (
        f". {interval.level:.0%} interval over records, the generator held fixed"
        if interval.lower is not None
        else f". No interval with fewer than {SMALLEST} records"
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
