"""One column in two tables: distance of the distributions, coverage of its values, histogram.

Two samples of one distribution never agree. The total variation distance therefore stands beside its mean
over two samples of these sizes from the pooled table. The distance of the samples and that of the populations
differ by at most a sum: each sample's distance from its own population (triangle inequality). The interval is
the samples' distance plus and minus a quantile of that sum over multinomial resamples of both tables. It is
wide but valid near 0 too, unlike a bootstrap percentile interval of a distance.

Generators lose rare values first. The share of categories that occur stands beside its mean in a fresh sample
of as many records.

The bins of a histogram come from the schema alone, never from records. A synthetic table's histogram may
therefore be shown wherever the table itself may.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpsynth.evaluation.details import Marginal, Table
from dpsynth.evaluation.estimates import Estimate, share, share_difference
from dpsynth.evaluation.records import Detail
from dpsynth.table.grid import Grid
from dpsynth.table.schema import Column, Schema
from dpsynth.table.values import category_codes, stored_numbers

Floats = NDArray[np.float64]

_DRAWS = 200


@dataclass(frozen=True)
class Difference:
    """One distance between two samples. The interval is for the populations, and conservative."""

    estimate: Estimate  # of the distance between the populations; the interval is conservative
    chance: float  # its mean over two samples of these sizes from the pooled sample


@dataclass(frozen=True)
class ColumnDifference:
    """Differences of the distributions of one column, for missing values only if the schema allows them."""

    column: str
    tvd: Difference
    missing_real: float | None
    missing_synthetic: float | None
    missing_difference: Estimate | None


def compare_column(
    real: pd.Series,
    synthetic: pd.Series,
    column: Column,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
) -> ColumnDifference:
    """Compare one column of two tables, with records taken as independent and cells held fixed."""
    tvd = _difference(cell_counts(real, synthetic, column), rng, level)
    if not column.missing:
        return ColumnDifference(column.name, tvd, None, None, None)
    made, known = (share(int(s.isna().sum()), len(s), level) for s in (synthetic, real))
    return ColumnDifference(column.name, tvd, known.value, made.value, share_difference(made, known))


def cell_counts(
    real: pd.Series, synthetic: pd.Series, column: Column, bins: int = 20
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the values of two columns in common cells, missing ones in the first.

    Every declared category or number is a cell if there are at most ``bins`` of them. Otherwise the quantiles
    of the real values cut the cells. The distance is then as sensitive on a skewed column as on an even one.
    """
    cells = [_cells(column, series, real, bins) for series in (real, synthetic)]
    size = max(int(codes.max()) for codes in cells) + 1
    first, second = (np.bincount(codes, minlength=size) for codes in cells)
    return first, second


def _cells(column: Column, series: pd.Series, real: pd.Series, bins: int) -> NDArray[np.int64]:
    """The cell of each value, 0 for a missing one. Quantiles of ``real`` cut those of many numbers."""
    if not column.is_numeric:
        return category_codes(column, series) + 1
    values = stored_numbers(column, series)
    n_values = column.n_values
    if n_values is not None and n_values <= bins:
        steps = np.arange(n_values - 1) + 0.5
        edges = float(column.lower or 0.0) + float(column.resolution or 1.0) * steps
    else:
        reference = stored_numbers(column, real)
        reference = reference[~np.isnan(reference)]
        inner = np.linspace(0.0, 1.0, bins + 1)[1:-1]
        edges = np.unique(np.quantile(reference, inner)) if len(reference) else np.empty(0)
    return np.where(np.isnan(values), 0, np.searchsorted(edges, values, side="right") + 1)


def _difference(counts: Sequence[NDArray[np.int64]], rng: np.random.Generator, level: float) -> Difference:
    """Distance of two samples from their counts, with its interval and its chance value."""

    def distance(gap: Floats) -> Floats:
        return 0.5 * np.abs(gap).sum(axis=-1)

    sizes = [int(count.sum()) for count in counts]
    shares = [count / size for count, size in zip(counts, sizes, strict=True)]
    pooled = (counts[0] + counts[1]) / sum(sizes)
    value = float(distance(shares[0] - shares[1]))
    own = [
        distance(rng.multinomial(size, p, size=_DRAWS) / size - p)
        for size, p in zip(sizes, shares, strict=True)
    ]
    stray = float(np.quantile(own[0] + own[1], level, method="higher"))
    one, other = (rng.multinomial(size, pooled, size=_DRAWS) / size for size in sizes)
    chance = float(distance(one - other).mean())
    return Difference(Estimate(value, max(value - stray, 0.0), min(value + stray, 1.0)), chance)


#: a numeric column with at most so many declared values has a bin for each
_MAX_VALUES = 40

#: bins of other numeric columns
_BINS = 30


def marginal(frame: pd.DataFrame, column: Column, table: Table) -> Detail:
    """Count a column of a conformed table over its public bins.

    Shares are of *all* records: they, ``missing`` and ``special`` (of all special codes together) sum to 1.
    Bins of a column recorded in steps hold whole steps. Edges lie half a step outside the recorded values.
    """
    # A number of cells that the schema gives is meant for the base model and may be too many to draw.
    plain = column.model_copy(update={"cells": None})
    grid = Grid.from_column(plain, max_values=_MAX_VALUES, default_cells=_BINS)
    counts = np.bincount(grid.encode(frame[column.name]), minlength=grid.size)
    shares = [float(count) / len(frame) for count in counts]
    data = Marginal(
        column.name,
        table,
        "numeric" if column.is_numeric else "categories",
        shares[: grid.present],
        missing=shares[-1] if column.missing else None,
        special=sum(shares[grid.present :][: len(column.special)]) if column.special else None,
        unit=column.shown_unit,
        log=column.scale == "log",
        zero=column.has_zero_cell,
        edges=[float(edge) for edge in _edges(grid)] if column.is_numeric else (),
        labels=() if column.is_numeric else [str(category) for category in column.categories],
    )
    return Detail("marginal", f"marginal[{column.name}].{table}", table != "synthetic", data)


def _edges(grid: Grid) -> NDArray[np.float64]:
    if grid.starts is None:
        assert grid.edges is not None
        return grid.edges
    column = grid.column
    assert column.lower is not None and column.resolution is not None
    edges = column.lower + (grid.starts - 0.5) * column.resolution
    if column.scale == "log":
        # Half a step lower may not be positive; the cell of zeros is drawn below the smallest value.
        edges[0] = edges[1] / 2 if column.has_zero_cell else column.lower
    return edges


@dataclass(frozen=True)
class Covered:
    """Share of the real records' categories that occur in the synthetic table, all columns together."""

    value: float
    chance: float  # mean of the same share over fresh draws of as many records
    categories: int  # how many categories it is a share of; none gives shares of 0


def category_coverage(real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema) -> Covered | None:
    """Look up every real category in the synthetic table. None without columns of categories."""
    columns = [column for column in schema.columns if not column.is_numeric]
    if not columns:
        return None
    shares, present, chance = [], [], []
    for column in columns:
        counts, made = _counts(real, column), _counts(synthetic, column)
        shares.append(counts / max(int(counts.sum()), 1))
        present.append((made > 0).astype(np.float64))
        chance.append(-np.expm1(int(made.sum()) * np.log1p(-np.minimum(shares[-1], 1.0 - 1e-16))))
    counted = np.concatenate(shares) > 0
    weights = counted / max(int(counted.sum()), 1)
    value, expected = (float(weights @ np.concatenate(of)) for of in (present, chance))
    return Covered(value, expected, int(counted.sum()))


def range_coverage(real: ArrayLike, synthetic: ArrayLike) -> float | None:
    """Share of the real range of numbers that lies within the synthetic range, in [0, 1].

    Missing numbers are left out. For a single real value, whether the synthetic range holds it. None where a
    table has no value at all.
    """
    a, b = (np.asarray(numbers, dtype=np.float64) for numbers in (real, synthetic))
    a, b = a[~np.isnan(a)], b[~np.isnan(b)]
    if not len(a) or not len(b):
        return None
    low, high = float(a.min()), float(a.max())
    if high == low:
        return float(b.min() <= low <= b.max())
    return max(min(high, float(b.max())) - max(low, float(b.min())), 0.0) / (high - low)


def ranges_covered(real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema) -> dict[str, float]:
    """Return :func:`range_coverage` of every numeric column where it is defined."""
    pairs = {
        column.name: range_coverage(
            *(stored_numbers(column, frame[column.name]) for frame in (real, synthetic))
        )
        for column in schema.columns
        if column.is_numeric
    }
    return {name: value for name, value in pairs.items() if value is not None}


def _counts(frame: pd.DataFrame, column: Column) -> NDArray[np.int64]:
    codes = category_codes(column, frame[column.name])
    return np.bincount(codes[codes >= 0], minlength=len(column.categories))
