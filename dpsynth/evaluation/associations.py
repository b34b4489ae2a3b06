"""Associations between pairs of columns, and their errors in a synthetic table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.evaluation.results import Findings, Measure, Row, Table, shown
from dpsynth.evaluation.tables import subsample, unit_values
from dpsynth.table.kinds.category import category_codes
from dpsynth.table.schema import Column, Schema

# ------------------------------------------------------------------------------------------------
# Means over pairs of columns: over all pairs up to 200 columns, else over a random part of them.
#
# More columns are divided at random into blocks of at most 100, and pairs within a block are scored. Each
# pair is scored with the same probability. The cost then grows with the number of columns, not with its
# square.
#
# The standard error is that of a simple random sample of as many pairs. Blocks have no larger one: each
# column has as many scored pairs, so differences between columns cancel.

Floats = NDArray[np.float64]
#: positions of columns whose pairs are scored
Block = NDArray[np.intp]

#: columns up to which all pairs are scored
ALL_PAIRS = 200
#: columns of a block, at most
_MOST = 100


@dataclass(frozen=True)
class PairMean:
    """A mean over pairs. ``error`` is the standard error because a part is scored, None if all are."""

    value: float
    error: float | None = None


def association_blocks(columns: int, rng: np.random.Generator) -> tuple[Block, ...]:
    """Divide columns into blocks. Up to 200 columns are one block, and no random number is drawn.

    Examples
    --------
    >>> [len(block) for block in association_blocks(330, np.random.default_rng(0))]
    [83, 83, 82, 82]
    """
    if columns <= ALL_PAIRS:
        return (np.arange(columns),)
    parts = np.array_split(rng.permutation(columns), math.ceil(columns / _MOST))
    return tuple(np.sort(part) for part in parts)


def pairs_of(columns: int) -> int:
    """Return the number of pairs of different columns.

    Examples
    --------
    >>> pairs_of(4)
    6
    """
    return columns * (columns - 1) // 2


def pair_mean(top: Floats, bottom: Floats, pairs: int) -> PairMean | None:
    """Return the sum of ``top`` over that of ``bottom``, of shape (scored pairs,), out of so many pairs.

    The error is that of a ratio, by linearisation. None if ``bottom`` has no positive number.

    Examples
    --------
    >>> pair_mean(np.array([0.1, 0.3]), np.ones(2), 2)
    PairMean(value=0.2, error=None)
    >>> round(pair_mean(np.array([0.1, 0.3]), np.ones(2), 4).error, 3)
    0.071
    """
    total = float(bottom.sum())
    if not total > 0.0:
        return None
    value, scored = float(top.sum()) / total, len(top)
    if scored == pairs:
        return PairMean(value)
    spread = float((top - value * bottom).std(ddof=1))
    return PairMean(value, spread * math.sqrt(scored * (1.0 - scored / pairs)) / total)


# ------------------------------------------------------------------------------------------------
# Associations between the columns of a real table, and their errors in a synthetic one.
#
# Each pair of columns has one measure in [0, 1]:
#
# * two ordered columns: absolute Pearson correlation (ordinal columns by rank)
# * two columns of categories: Cramér's V with Bergsma's bias correction
# * one of each: correlation ratio, corrected as Kelley's epsilon squared
#
# The mean absolute difference of the correlations of encoded columns is a first number, used by every
# comparison of generators. Each pair uses the records in which both values are present. Both corrections
# subtract the value of independent columns with so many categories. Tables of different sizes can then be
# compared.
#
# References ---------- Bergsma (2013), "A bias-correction for Cramér's V and Tschuprow's T". Kelley (1935),
# "An unbiased correlation ratio measure".


@dataclass(frozen=True)
class Association:
    """Associations of all pairs of columns of one table.

    ``matrix`` is symmetric with 1 on the diagonal. An entry is NaN if a column is constant among the complete
    records of the pair, or if there are fewer than two of them. ``signs`` is 1 or -1, the direction of
    Pearson correlations, and 1 for the others.
    """

    columns: tuple[str, ...]
    matrix: Floats
    signs: Floats


def association(frame: pd.DataFrame, columns: Sequence[Column]) -> Association:
    """Measure the association of every pair of these columns of a conformed frame.

    Time grows with ``n p**2``: matrix products for ordered columns, one count of ``n`` cells for each pair of
    columns of categories.
    """
    ordered = [i for i, column in enumerate(columns) if not column.is_categorical]
    labels = [i for i, column in enumerate(columns) if column.is_categorical]
    p = len(columns)
    matrix, signs = np.full((p, p), np.nan), np.ones((p, p))
    if ordered:
        values = np.column_stack([unit_values(columns[i], frame[columns[i].name]) for i in ordered])
        present = ~np.isnan(values)
        # Centred by column, the sums of squares below lose no digits.
        means = np.where(present, values, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
        values, mask = np.where(present, values - means, 0.0), present.astype(np.float64)
        pearson = _pearson(values, mask)
        matrix[np.ix_(ordered, ordered)] = np.abs(pearson)
        signs[np.ix_(ordered, ordered)] = np.where(pearson < 0.0, -1.0, 1.0)
    codes = {i: category_codes(columns[i], frame[columns[i].name]) for i in labels}
    sizes = {i: len(columns[i].categories) for i in labels}
    for i in labels:
        if ordered:
            ratio = _correlation_ratio(codes[i], sizes[i], values, mask)
            matrix[i, ordered] = matrix[ordered, i] = ratio
    for i, j in combinations(labels, 2):
        both = (codes[i] >= 0) & (codes[j] >= 0)
        cells = codes[i][both] * sizes[j] + codes[j][both]
        table = np.bincount(cells, minlength=sizes[i] * sizes[j]).reshape(sizes[i], sizes[j])
        matrix[i, j] = matrix[j, i] = cramers_v(table)
    np.fill_diagonal(matrix, 1.0)
    return Association(tuple(column.name for column in columns), matrix, signs)


def cramers_v(table: NDArray[np.int64]) -> float:
    """Cramér's V of a table of counts, shape (r, c), NaN if rows or columns are fewer than two.

    Rows and columns without any count are left out, corrected by Bergsma.
    """
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    r, c = table.shape
    if min(r, c) < 2:
        return float("nan")
    n = float(table.sum())
    rows, columns = table.sum(axis=1) / n, table.sum(axis=0) / n
    phi2 = float(((table / n) ** 2 / np.outer(rows, columns)).sum()) - 1.0
    # Bergsma (2013): phi^2 and both dimensions less what independence gives on average
    phi2 = max(phi2 - (r - 1) * (c - 1) / (n - 1), 0.0)
    r_less, c_less = r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)
    least = min(r_less, c_less) - 1.0
    # With as many categories as records, association cannot be separated from chance.
    return float(np.sqrt(min(phi2 / least, 1.0))) if least > 1e-12 else 0.0


def _pearson(values: Floats, mask: Floats) -> Floats:
    """Correlations over complete pairs. ``values`` are 0 where ``mask`` is."""
    n = mask.T @ mask
    count = np.maximum(n, 1.0)
    sums = values.T @ mask  # sums[i, j]: of column i where j is present
    squares = (values**2).T @ mask
    spread = squares - sums**2 / count
    spread = np.where((n >= 2) & (spread > 1e-12 * count), spread, np.nan)
    product = values.T @ values - sums * sums.T / count
    # spread[i, j] is of column i, spread[j, i] of column j, over the same records
    return np.clip(product / np.sqrt(spread * spread.T), -1.0, 1.0)


def _correlation_ratio(codes: NDArray[np.int64], size: int, values: Floats, mask: Floats) -> Floats:
    """Correlation ratio of every ordered column given one column of categories."""
    from scipy.sparse import csr_matrix

    known = np.flatnonzero(codes >= 0)
    chosen = csr_matrix((np.ones(len(known)), (codes[known], known)), shape=(size, len(codes)))
    counts, sums, squares = chosen @ mask, chosen @ values, chosen @ values**2
    n = counts.sum(axis=0)
    groups = (counts > 0).sum(axis=0)
    total = squares.sum(axis=0) - sums.sum(axis=0) ** 2 / np.maximum(n, 1.0)
    between = (sums**2 / np.maximum(counts, 1.0)).sum(axis=0) - sums.sum(axis=0) ** 2 / np.maximum(n, 1.0)
    defined = (n >= 2) & (groups >= 2) & (total > 1e-12 * np.maximum(n, 1.0))
    eta2 = np.clip(between / np.where(defined, total, 1.0), 0.0, 1.0)
    # Kelley: compare variances, not sums of squares; nothing is left where each record is its own group
    free = n - groups
    eta2 = np.where(free > 0, 1.0 - (1.0 - eta2) * (n - 1) / np.maximum(free, 1.0), 0.0)
    return np.where(defined, np.sqrt(np.clip(eta2, 0.0, 1.0)), np.nan)


def association_error(
    real: Sequence[Association], synthetic: Sequence[Association], pairs: int
) -> PairMean | None:
    """Mean absolute difference of associations over all pairs of different columns.

    Each table has one entry a block. ``pairs`` are those of all columns. An association that is not defined
    (a constant column) counts as 0: such a column gives no information about any other. None for a single
    column.
    """
    r, s = _strengths(real), _strengths(synthetic)
    return pair_mean(np.abs(r - s), np.ones(len(r)), pairs)


def association_lost(
    real: Sequence[Association], synthetic: Sequence[Association], pairs: int
) -> PairMean | None:
    """Part of the strength of the real associations that is lost: about 0 if none is, 1 if all is.

    It is ``sum min(max(r - s, 0), r) r / sum r^2`` over pairs with real association r and synthetic one s. An
    s of the opposite direction counts as negative, and one that is too strong loses nothing. Independent
    columns have 1 except for chance, for any real associations. None if no pair of real columns is
    associated.
    """
    r, s = _strengths(real), _strengths(synthetic)
    s = s * np.concatenate([_above(a.signs * b.signs) for a, b in zip(real, synthetic, strict=True)])
    return pair_mean(np.clip(r - s, 0.0, r) * r, r**2, pairs)


def _strengths(found: Sequence[Association]) -> Floats:
    """The associations of all scored pairs, 0 where they are not defined."""
    return np.nan_to_num(np.concatenate([_above(entry.matrix) for entry in found]), nan=0.0)


def _above(matrix: Floats) -> Floats:
    return matrix[np.triu_indices(len(matrix), k=1)]


def association_findings(
    synthetic: pd.DataFrame,
    train: pd.DataFrame,
    test: pd.DataFrame | None,
    schema: Schema,
    scored: Sequence[Block] | None = None,
    *,
    group: str,
) -> Findings:
    """Compare the associations of a synthetic and a real table, and of held-out records for the baseline.

    Pairs within the blocks ``scored`` represent all pairs, by default all in one. Gives both matrices of the
    first block. All tables are conformed.
    """
    within, pairs = _columns(schema, scored), pairs_of(len(schema))
    used = sum(pairs_of(len(columns)) for columns in within)
    held_out = f"the same between training and held-out {schema.counted}"
    measures: list[Measure] = []
    errors: dict[str, float] = {}

    def add(name: str, mean: PairMean | None, what: str) -> None:
        value = None if mean is None else mean.value
        if mean is not None and mean.error is not None:
            errors[name] = mean.error
            adds = f"which adds a standard error of {shown(mean.error)}"
            what = f"{what}, on a random {used:,} of {pairs:,} pairs of columns, {adds}"
        measures.append(Measure(group, name, value, True, what))

    encoded = correlation_errors(train, [synthetic] if test is None else [synthetic, test], schema, scored)
    add("correlation_error", encoded[0], "mean |difference| of encoded correlations")
    if test is not None:
        add("correlation_error_baseline", encoded[1], held_out)
    error = "mean |difference| of associations (Pearson, Cramér's V, correlation ratio) of pairs of columns"
    lost = "part of the strength of associations that is lost or reversed, 1 for independent columns"
    scores = (
        ("association_error", association_error, error, "a single column"),
        ("association_lost", association_lost, lost, "not defined: nothing is associated"),
    )
    made, real = ([association(frame, columns) for columns in within] for frame in (synthetic, train))
    compared = [("", made)]
    if test is not None and pairs:
        compared.append(("_baseline", [association(test, columns) for columns in within]))
    for suffix, other in compared:
        for name, score, what, why in scores:
            mean = score(real, other, pairs)
            add(name + suffix, mean, why if mean is None else held_out if suffix else what)
    found = Findings(measures)
    found.frame("association", _matrix(made[0], "synthetic"), confidential=False)
    found.frame("association", _matrix(real[0], "train"), confidential=True)
    if used < pairs:
        worst = max(errors, key=lambda name: errors[name])
        part = subsample("comparing associations", used, pairs, errors[worst], worst, "pairs of columns")
        found.frame("parts", [part], confidential=True)
    return found


def _columns(schema: Schema, scored: Sequence[Block] | None) -> list[list[Column]]:
    """The columns of each block, of all in one without blocks."""
    return [[schema.columns[i] for i in block] for block in scored or [np.arange(len(schema))]]


def _matrix(found: Association, table: Table) -> list[Row]:
    """A row for each two columns, None where their association is not defined."""
    return [
        {"table": table, "first": first, "second": second, "value": float(value)}
        for first, values in zip(found.columns, found.matrix, strict=True)
        for second, value in zip(found.columns, values, strict=True)
    ]


def correlation_errors(
    real: pd.DataFrame, others: Sequence[pd.DataFrame], schema: Schema, scored: Sequence[Block] | None = None
) -> tuple[PairMean, ...]:
    """Mean absolute difference of Pearson correlations over all pairs of encoded columns, in [0, 2].

    There is one for each of ``others`` against ``real``. The columns are those of
    :func:`~dpsynth.evaluation.tables.distance_features`. A column that is constant in a table has
    correlation 0 with every other one there. The result is 0 if there is only one encoded column. Pairs of
    different columns within the blocks ``scored`` represent all pairs. By default all are scored.
    """
    within = _columns(schema, scored)
    widths = np.array([_width(column) for column in schema.columns])
    own, both = float((widths * (widths - 1)).sum()) / 2, float(widths.sum() ** 2 - (widths**2).sum()) / 2
    gaps: list[list[tuple[Floats, Floats, Floats]]] = [[] for _ in others]
    for columns in within:
        first = _correlations(real, columns)
        for found, other in zip(gaps, others, strict=True):
            found.append(_by_pair(np.abs(first - _correlations(other, columns)), columns))
    means = []
    for found in gaps:
        same, top, count = (np.concatenate(parts) for parts in zip(*found, strict=True))
        between = pair_mean(top, count, pairs_of(len(schema))) or PairMean(0.0)
        value = (float(same.sum()) + between.value * both) / max(own + both, 1.0)
        error = None if between.error is None else between.error * both / (own + both)
        means.append(PairMean(value, error))
    return tuple(means)


def _by_pair(gaps: Floats, columns: Sequence[Column]) -> tuple[Floats, Floats, Floats]:
    """Sum gaps of encoded columns: of pairs of one column, of pairs of two, and how many the latter are."""
    widths = np.array([_width(column) for column in columns])
    starts = np.cumsum(widths) - widths
    np.fill_diagonal(gaps, 0.0)
    sums = np.add.reduceat(np.add.reduceat(gaps, starts, axis=0), starts, axis=1)
    return sums.diagonal() / 2, _above(sums), _above(np.outer(widths, widths).astype(np.float64))


def _width(column: Column) -> int:
    """Encoded columns of a column."""
    if column.is_categorical:
        return len(column.categories) + column.missing
    return 3 if column.incomplete else 1


def _correlations(frame: pd.DataFrame, columns: Sequence[Column]) -> Floats:
    """Correlations of the encoded columns: numbers in a dense table, ones of categories in a sparse one."""
    numbers, ones, places = _encoded(frame, columns)
    mixed = np.asarray(ones.T @ numbers)
    products = np.block([[numbers.T @ numbers, mixed.T], [mixed, (ones.T @ ones).toarray()]])
    sums = np.append(numbers.sum(axis=0), np.asarray(ones.sum(axis=0)).ravel())
    scatter = np.empty_like(products)
    scatter[np.ix_(places, places)] = products - np.outer(sums, sums) / len(frame)
    norms = np.sqrt(np.maximum(scatter.diagonal(), 0.0))
    # Rounding leaves a constant column with a norm of a few ulp instead of 0.
    varies = norms > 1e-9 * np.sqrt(len(frame))
    scale = np.where(varies, norms, np.inf)
    scatter /= scale[:, None]
    scatter /= scale
    return scatter


def _encoded(frame: pd.DataFrame, columns: Sequence[Column]) -> tuple[Floats, Any, NDArray[np.intp]]:
    """The columns of ``distance_features``: numbers less their mean, ones, and the places of both.

    The mean is taken away to keep the digits of products.
    """
    from scipy.sparse import csr_matrix

    numbers, codes = [], []  # each code is the column of a one
    places: tuple[list[int], list[int]] = ([], [])
    for column in columns:
        if column.is_categorical:
            labels = category_codes(column, frame[column.name])
            own, size = np.where(labels < 0, len(column.categories), labels), _width(column)
        else:
            unit = unit_values(column, frame[column.name])
            absent = np.isnan(unit)
            unit = np.where(absent, 0.5, unit)
            numbers.append(unit - unit.mean())
            places[0].append(len(places[0]) + len(places[1]))
            own, size = absent, _width(column) - 1
        if size:
            codes.append((own + len(places[1])).astype(np.int32))
            start = len(places[0]) + len(places[1])
            places[1].extend(range(start, start + size))
    n, width = len(frame), len(places[1])
    cells = np.stack(codes, axis=1).ravel() if codes else np.empty(0, np.int32)
    ones = csr_matrix((np.ones(len(cells)), cells, np.arange(n + 1) * len(codes)), shape=(n, width))
    dense = np.stack(numbers, axis=1) if numbers else np.empty((n, 0))
    return dense, ones, np.array(places[0] + places[1])
