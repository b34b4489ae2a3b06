"""Intervals and a test for nearest-neighbour adversarial accuracy, and its measures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpsynth.checks import Counted
from dpsynth.evaluation.neighbours import (
    METRICS,
    TIE_TOLERANCE,
    AdversarialAccuracy,
    Floats,
    Metric,
    Side,
    contributions,
    enough_counted,
    in_threads,
    metric_named,
    nearest,
    over_tiles,
    ranks,
    running_counts,
    thins_the_other,
    tie_band,
    total_accuracy,
    two_sides,
    two_tables,
)
from dpsynth.evaluation.results import Findings, Measure
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import COMPARED, PERMUTED, Progress, Tables, on_part, random_rows, silent
from dpsynth.table.schema import Schema

# ------------------------------------------------------------------------------------------------
# Confidence intervals of nearest-neighbour accuracy and privacy loss, and a test of one distribution.
#
# A bootstrap over records is wrong for nearest neighbours: a record drawn twice is its own copy at distance
# 0. The jackknife is wrong too: an accuracy of nearest neighbours is not a smooth function of the records.
# Under equal distributions a single record has no first-order effect. Leaving out records overstates the
# variance, about 2.6 times in two dimensions. Nor are records independent terms: nearest neighbours score
# together.
#
# Splits need no linearity. If each table is a sample of independent records, two disjoint halves of all
# tables are independent. Half the squared difference of their statistics then estimates the variance at half
# size without bias. It is averaged over random splits. Quarters give the variance at a quarter of the size.
# The variance at full size follows at the same rate: ``V(n) = V(n/2) * V(n/2) / V(n/4)``. The rate is 1/2
# for continuous records. For records that often coincide the variance falls faster, as cells fill up. The
# interval is the estimate and a t quantile. Its degrees of freedom come from the spread over splits and the
# number of records. The accuracy of each part uses lists of neighbours that are found once for the whole
# tables.
#
# Records in the tables are resampled. The generator and its training are held fixed. Rows of a synthetic
# table that was post-processed to match marginals are not quite independent, but taken so. A split separates
# records from their copies in the other table. If each record is a copy by chance, coverage is about right.
# If the *number* of copies is fixed, the interval is too wide (about 98 % instead of 95 % at 30 % copies).
# It is also too wide, though narrow, if nearly every record coincides with many others.
#
# Resemblance and privacy losses are those of Pedersen (2022), section 2.4, after Yale et al. (2019).
# ``TrResembLoss`` (2.12) and ``TeResembLoss`` (2.13) are the accuracy of the training and of test records
# against synthetic ones. ``PrivacyLoss`` (2.14) is the second minus the first. The source defines them as
# expectations over generated tables, with the biased accuracy (2.11). Here they are estimates from one
# table, with the unbiased accuracy of section 4.1. The privacy loss is then 0 in expectation if all tables
# come from one distribution, also if train and test differ in size. If distributions differ, the accuracy
# depends on the sizes, and a privacy loss needs equal ones.
#
# The permutation test assumes that both tables are samples of one distribution. Then the labels "real" and
# "synthetic" of the pooled records are exchangeable: every assignment is equally probable. The accuracy
# under random labels is therefore the exact reference, for any sizes, dimensions and ties. Schilling
# ("Multivariate two-sample tests based on nearest neighbors", JASA 81, 1986) and Henze (1988) use this test
# with a fixed number of neighbours. Small accuracies indicate copies of records, large ones a different
# distribution.
#
# The neighbours of the pooled records do not depend on the labels and are found once. A list of the nearest
# nearly always holds the first neighbour of either label, which settles the counts. The few other records
# are compared with all records.

#: a quarter must hold two records
SMALLEST = 8
_THREADS_FROM = 10_000

Labels = NDArray[np.int8]


@dataclass(frozen=True)
class AccuracyInterval:
    """An estimate with its confidence interval, or without one if a table has fewer than 8 records."""

    value: float
    lower: float | None
    upper: float | None
    standard_error: float | None
    level: float  # of confidence


def split_intervals(
    values: Sequence[float],
    statistic: Callable[[Sequence[Labels], int], Floats],
    sizes: Sequence[int],
    *,
    rng: np.random.Generator,
    level: float,
    splits: int,
) -> list[AccuracyInterval]:
    """Return intervals of statistics of several tables of independent records.

    ``statistic`` takes the part of each record of each table (0 to parts - 1, -1 for none) and the number of
    parts. It returns the statistics on every part, of shape (parts, len(values)).
    """
    from scipy.stats import t as student

    if min(sizes) < SMALLEST:
        return [AccuracyInterval(float(value), None, None, None, level) for value in values]

    def spreads(labels: Sequence[Labels]) -> tuple[Floats, Floats]:
        # Quarters 0 and 1 make a half, 2 and 3 the other; -1 stays -1.
        half = statistic([part // 2 for part in labels], 2)
        return np.var(half, axis=0, ddof=1), np.var(statistic(labels, 4), axis=0, ddof=1)

    drawn = [[_quarters(size, rng) for size in sizes] for _ in range(splits)]
    # Threads cost more than they save on small tables.
    done = list(in_threads(spreads, drawn) if sum(sizes) > _THREADS_FROM else map(spreads, drawn))
    half, quarter = np.stack([pair[0] for pair in done]), np.stack([pair[1] for pair in done])
    at_half, at_quarter = half.mean(axis=0), quarter.mean(axis=0)
    found = []
    for i, value in enumerate(values):
        if at_half[i] <= 0.0 or at_quarter[i] <= 0.0:
            # All halves agree (tables apart, or constant): the variance at half size, 0, is all there is.
            spread, freedom = at_half[i] / 2.0, float(min(sizes) - 1)
        else:
            spread = at_half[i] * np.clip(at_half[i] / at_quarter[i], 0.25, 1.0)
            # Delta method for log V(n), over splits.
            noise = np.var(2.0 * half[:, i] / at_half[i] - quarter[:, i] / at_quarter[i], ddof=1) / splits
            freedom = 1.0 / (noise / 2.0 + 1.0 / (min(sizes) - 1))
        error = float(np.sqrt(spread))
        reach = float(student.ppf(0.5 + level / 2.0, freedom)) * error
        found.append(AccuracyInterval(float(value), float(value) - reach, float(value) + reach, error, level))
    return found


def within_range(interval: AccuracyInterval, lowest: float, highest: float) -> AccuracyInterval:
    """Return the interval within the range that its value can have."""
    if interval.lower is None or interval.upper is None:
        return interval
    ends = max(interval.lower, lowest), min(interval.upper, highest)
    return AccuracyInterval(interval.value, *ends, interval.standard_error, interval.level)


def _quarters(size: int, rng: np.random.Generator) -> Labels:
    """Four random parts of one size. Up to three records are left over."""
    labels = np.arange(size) % 4
    labels[4 * (size // 4) :] = -1
    return rng.permutation(labels).astype(np.int8)


#: neighbours kept on each side; a quarter of 32 holds two of them but once in a thousand
LIST_LENGTH = 32


@dataclass(frozen=True)
class AccuracyIntervals:
    """Intervals of ``aa_real``, ``aa_synthetic`` and ``aa``, and the accuracy."""

    real: AccuracyInterval
    synthetic: AccuracyInterval
    both: AccuracyInterval
    accuracy: AdversarialAccuracy


def accuracy_intervals(
    real: ArrayLike,
    synthetic: ArrayLike,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    splits: int = 100,
    metric: str | Metric = "euclidean",
) -> AccuracyIntervals:
    """Compute the unbiased nearest-neighbour adversarial accuracy with confidence intervals.

    Coverage of 95 % intervals in simulations is 92 to 98 % for 50 to 1000 records a side. These had equal and
    unequal sizes, continuous and binary records, same and shifted distributions. It is 90 % for one side of
    200 against 50 shifted binary records, and 98 to 100 % if records repeat many times.
    """
    t, s = two_tables(real, synthetic)
    (found,), _ = _by_splits([t], s, metric, rng, level, splits)
    return found


class Parted:
    """One side of a comparison, evaluated on disjoint parts of the tables.

    Within a part, a record's nearest are the first of its lists that belong to the part. A list of 32 holds
    none of a part of a quarter once in ten thousand times. The limit is then the end of the list.
    """

    def __init__(self, side: Side) -> None:
        limits, counted = (
            (side.own, side.other) if thins_the_other(side.n, side.m) else (side.other, side.own)
        )
        self._own_limits = limits is side.own
        # Indexing by intp spares a copy each time.
        self._limits, self._counted = limits.index.astype(np.intp), counted.index.astype(np.intp)
        self._dtype = np.int8 if counted.index.shape[1] < 128 else np.int16
        # How many of the counted list lie within each distance of the other list, once for all splits.
        self._closer, self._tied = ranks(counted.distance, limits.distance, TIE_TOLERANCE)

    def means(self, own: Labels, other: Labels, parts: int) -> Floats:
        """Mean contribution of each part, of shape (parts,).

        ``own`` and ``other`` hold the part of each record of the own and of the other table, -1 for none.
        Parts are of one size.
        """
        limits, counted = (own, other) if self._own_limits else (other, own)
        mine = own[:, None]
        here = limits[self._limits] == mine
        rows = np.arange(len(own))
        first = here.argmax(axis=1)
        first = np.where(here[rows, first], first, here.shape[1] - 1)
        # seen[i, c]: how many of the first c of the counted list belong to the part.
        seen = running_counts(counted[self._counted] == mine, self._dtype)
        closer = seen[rows, self._closer[rows, first]]
        tied = seen[rows, self._tied[rows, first]]
        n, m = (int(np.count_nonzero(labels == 0)) for labels in (own, other))
        value = self._values(closer, tied, n, m)
        inside = own >= 0
        return np.bincount(own[inside], weights=value[inside], minlength=parts) / n

    def _values(
        self, closer: NDArray[np.integer[Any]], tied: NDArray[np.integer[Any]], n: int, m: int
    ) -> Floats:
        """Contributions, looked up by count. A part thins the same side as the whole table."""
        counts = np.arange(self._counted.shape[1] + 1)
        total = m if self._own_limits else n - 1
        known = np.minimum(counts, total)
        if thins_the_other(n, m) == self._own_limits:
            at = contributions(known, known, n, m)
        else:
            # Rounding of part sizes by one record can exchange the roles; both sides are then kept whole.
            at = (counts == 0).astype(np.float64) if self._own_limits else (counts > 0).astype(np.float64)
        return 0.5 * (at[closer] + at[tied])


@dataclass(frozen=True)
class Losses:
    """Resemblance of a synthetic table to training and to test records, and their difference."""

    train: AccuracyIntervals
    test: AccuracyIntervals
    privacy_loss: AccuracyInterval  # test.both minus train.both, in [-1, 1]


def losses(
    train: ArrayLike,
    test: ArrayLike,
    synthetic: ArrayLike,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    splits: int = 100,
    metric: str | Metric = "euclidean",
) -> Losses:
    """Compute both resemblance losses and the privacy loss, with intervals.

    One synthetic table serves both comparisons, so their errors are correlated. Every split is of all three
    tables at once, and the interval of the difference includes that. A generator's training on ``train``
    makes the tables dependent. The module describes the effect of copies.
    """
    real, made = two_tables(train, synthetic, names=("train", "synthetic"))
    held_out, _ = two_tables(test, synthetic, names=("test", "synthetic"))
    found, gap = _by_splits([real, held_out], made, metric, rng, level, splits)
    return Losses(found[0], found[1], within_range(gap[0], -1.0, 1.0))


def _by_splits(
    tables: Sequence[Floats],
    made: Floats,
    metric: str | Metric,
    rng: np.random.Generator,
    level: float,
    splits: int,
) -> tuple[list[AccuracyIntervals], list[AccuracyInterval]]:
    """Accuracy of each real table against the synthetic one and, of two, the second less the first."""
    sides: list[tuple[Side, Side]] = []
    for real in tables:
        near = sides[0][1].own if sides else None
        sides.append(two_sides(real, made, metric_named(metric), k=LIST_LENGTH, near_synthetic=near))
    accuracies = [total_accuracy(*pair) for pair in sides]
    parted = [(Parted(real), Parted(other)) for real, other in sides]

    def statistic(labels: Sequence[Labels], parts: int) -> Floats:
        columns: list[Floats] = []
        for (real, other), mine in zip(parted, labels, strict=False):
            first, second = real.means(mine, labels[-1], parts), other.means(labels[-1], mine, parts)
            columns += [first, second, (first + second) / 2.0]
        gap = [columns[5] - columns[2]] if len(tables) > 1 else []
        return np.stack(columns + gap, axis=1)

    values = [value for a in accuracies for value in (a.aa_real, a.aa_synthetic, a.aa)]
    values += [accuracies[1].aa - accuracies[0].aa] if len(tables) > 1 else []
    sizes = [*map(len, tables), len(made)]
    found = split_intervals(values, statistic, sizes, rng=rng, level=level, splits=splits)
    shares = [within_range(interval, 0.0, 1.0) for interval in found[: 3 * len(tables)]]
    intervals = [
        AccuracyIntervals(shares[3 * i], shares[3 * i + 1], shares[3 * i + 2], a)
        for i, a in enumerate(accuracies)
    ]
    return intervals, found[3 * len(tables) :]


#: accuracies that differ by less are equal: sums of the same terms in another order
_ROUNDING = 1e-11


@dataclass(frozen=True)
class SameDistribution:
    """Result of the permutation test."""

    accuracy: float  # nearest-neighbour accuracy of the records used
    p_value: float  # two-sided: how often random labels are at least as far from 1/2
    p_close: float  # one-sided: how often random labels give so small an accuracy. Small for copied records.
    p_apart: float  # one-sided: how often so large an accuracy. Small for different distributions.
    n_real: int  # records used
    n_synthetic: int
    permutations: int


def same_distribution(
    real: ArrayLike,
    synthetic: ArrayLike,
    *,
    rng: np.random.Generator,
    permutations: int = 200,
    limit: int = 2000,
    metric: str | Metric = "euclidean",
) -> SameDistribution:
    """Test whether two tables come from the same distribution.

    At most ``limit`` records of each table are used, a random part of it. p-values are
    ``(1 + #) / (1 + permutations)``, which is valid at any number of permutations. They presume independent
    records in each table. Those of a synthetic table adjusted to match marginals are not quite.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> real = rng.normal(size=(100, 2))
    >>> same_distribution(real, rng.normal(size=(100, 2)) + 1, rng=rng).p_value < 0.01
    True
    >>> copies = same_distribution(real, real, rng=rng)
    >>> copies.p_close < 0.01, copies.p_apart
    (True, 1.0)
    """
    t, s = (table[random_rows(len(table), limit, rng)] for table in two_tables(real, synthetic))
    pooled = _Pooled(np.vstack([t, s]), len(t), metric_named(metric))
    labels = np.arange(len(t) + len(s)) < len(t)
    observed = pooled.accuracy(labels)
    null = np.array([pooled.accuracy(rng.permutation(labels)) for _ in range(permutations)])

    def share(extreme: NDArray[np.bool_]) -> float:
        return float((1 + np.count_nonzero(extreme)) / (1 + permutations))

    return SameDistribution(
        accuracy=observed,
        p_value=share(np.abs(null - 0.5) >= abs(observed - 0.5) - _ROUNDING),
        p_close=share(null <= observed + _ROUNDING),
        p_apart=share(null >= observed - _ROUNDING),
        n_real=len(t),
        n_synthetic=len(s),
        permutations=int(permutations),
    )


class _Pooled:
    """Pooled records with their nearest, ready for any labels."""

    def __init__(self, points: Floats, n: int, metric: Metric) -> None:
        total = len(points)
        self._sizes = {True: (n, total - n), False: (total - n, n)}
        self._enough = {side: enough_counted(*sizes) for side, sizes in self._sizes.items()}
        rarer = min(n, total - n) / total
        # Without the rarer label once in a million lists.
        length = int(np.ceil(np.log(1e-6) / np.log1p(-rarer)))
        length = min(max(length, 2 * max(self._enough.values())), 256, total - 1)
        found = nearest(points, points, metric, length, itself=np.arange(total))
        self._index, self._reach, self._distance = found.index, found.reach, found.distance
        self._closer, self._tied = ranks(found.distance, found.distance, TIE_TOLERANCE)
        itself = np.arange(total)
        self._matrix = np.concatenate(over_tiles(lambda _, tile: tile, points, points, metric, itself))

    def accuracy(self, labels: NDArray[np.bool_]) -> float:
        """Mean of both sides, for labels that are true for the first table."""
        return (self._side(labels, True) + self._side(labels, False)) / 2.0

    def _side(self, labels: NDArray[np.bool_], side: bool) -> float:
        rows = np.flatnonzero(labels == side)
        n, m = self._sizes[side]
        # Labels that give the limit: the row's own where the other table is thinned.
        limiting = side if thins_the_other(n, m) else not side
        gives = labels[self._index[rows]] == limiting
        found = gives.any(axis=1)
        first = np.where(found, gives.argmax(axis=1), 0)
        seen = running_counts(~gives, np.int16)
        line = np.arange(len(rows))
        closer = seen[line, self._closer[rows, first]].astype(np.int64)
        tied = seen[line, self._tied[rows, first]].astype(np.int64)
        _, above = tie_band(self._distance[rows, first], TIE_TOLERANCE)
        # Everything closer than a listed neighbour is listed; what is tied with it may not be.
        cut_off = (self._reach[rows] <= above) & (tied < self._enough[side])
        open_rows = np.flatnonzero(~found | cut_off)
        if len(open_rows):
            closer[open_rows], tied[open_rows] = self._count_all(rows[open_rows], labels, limiting)
        enough = self._enough[side]
        return float(contributions(np.minimum(closer, enough), np.minimum(tied, enough), n, m).mean())

    def _count_all(
        self, rows: NDArray[np.intp], labels: NDArray[np.bool_], limiting: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        distances = self._matrix[rows]
        limit = distances[:, labels == limiting].min(axis=1)
        below, above = tie_band(limit, TIE_TOLERANCE)
        counted = distances[:, labels != limiting]
        return (
            np.count_nonzero(counted < below[:, None], axis=1),
            np.count_nonzero(counted <= above[:, None], axis=1),
        )


# ------------------------------------------------------------------------------------------------
# Nearest neighbours of synthetic and of real records: accuracies, losses and the test, as measures.
#
# Nearest neighbours are compared at equal sizes, on random parts of the tables. The formulas allow any
# sizes. But if distributions differ, the accuracy depends on the sizes. A privacy loss would compare unlike
# numbers.

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
    counted = tables.schema.counted
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
        return on_part(measures, "nearest neighbours", min(limit, total), total, settings.level, counted)

    against = min(len(tables.synthetic), len(tables.train), limit)
    made = part(tables.synthetic, min(len(tables.synthetic), limit))
    real = part(tables.train, against)
    if tables.test is None:
        comparison = intervals(real, made[:against])
        measures = [*_accuracy("train", "training", comparison, counted)]
        alike = permuted(real, made[:against])
        return told([*measures, *_p_values(alike, "training", alike, counted)], len(tables.train))

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
        *_accuracy("train", "training", first, counted),
        *_accuracy("test", "test", second, counted),
        _measure(
            "privacy_loss",
            found.privacy_loss,
            f"accuracy against {common} test minus against {common} training {counted}. Above 0 the "
            f"synthetic {counted} lie closer to training {counted} than to new ones",
            counted,
        ),
    ]
    independent = permuted(held_out, made[:size])
    progress(0.9)
    measures += _p_values(independent, "test", permuted(real, made[:against]), counted)
    real_sides = permuted(real, held_out)
    what = (
        f"p-value, small where held-out {counted} differ from training ones: {real_sides.n_real} "
        f"training and {real_sides.n_synthetic} test {counted}. Then they are no baseline for memorisation"
    )
    measures.append(Measure(GROUP, "nn_train_test_p", real_sides.p_apart, True, what))
    return told(measures, min(len(tables.train), len(tables.test)))


def _points(
    frame: pd.DataFrame, size: int, *, schema: Schema, metric: Metric, rng: np.random.Generator
) -> Floats:
    """A random part in random order, so that its beginning is a random part too."""
    return metric.encode(frame.iloc[rng.permutation(len(frame))[:size]], schema)


def _accuracy(suffix: str, table: str, found: AccuracyIntervals, counted: Counted) -> Iterator[Measure]:
    what = f"nearest-neighbour accuracy against {found.accuracy.n_real} {table} {counted}"
    name = f"nn_accuracy_{suffix}"
    yield _measure(name, found.both, f"{what}, 0.5 is best", counted)
    yield _measure(f"{name}_real", found.real, f"{what}, real side", counted)
    yield _measure(f"{name}_synthetic", found.synthetic, f"{what}, synthetic side", counted)


def _measure(name: str, interval: AccuracyInterval, detail: str, counted: Counted) -> Measure:
    over = (
        f". {interval.level:.0%} interval over {counted}, the generator held fixed"
        if interval.lower is not None
        else f". No interval with fewer than {SMALLEST} {counted}"
    )
    return Measure(GROUP, name, interval.value, True, detail + over, interval.lower, interval.upper)


def _p_values(
    found: SameDistribution, table: str, trained: SameDistribution, counted: Counted
) -> Iterator[Measure]:
    close = f"small where synthetic {counted} are too close"
    values = (
        ("nn_same_distribution_p", found.p_value, found, table, "same distribution, two-sided"),
        ("nn_apart_p", found.p_apart, found, table, "small where distributions differ"),
        ("nn_copies_p", trained.p_close, trained, "training", close),
    )
    for name, value, test, of, meaning in values:
        what = (
            f"p-value, {meaning}: {test.n_real} {of} and {test.n_synthetic} synthetic {counted}, "
            f"{test.permutations} permutations of which is which"
        )
        yield Measure(GROUP, name, value, True, what)
