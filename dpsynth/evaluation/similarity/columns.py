"""Total variation distance of one column's distribution in two tables, what chance gives, and its interval.

Two samples of one distribution never agree, so that the distance stands beside the value that two samples of
these sizes from the pooled table would have on average.

It is a norm of the difference of two distributions. The distance of the samples therefore differs from that
of the populations by at most the distance of each sample from its own population (the triangle inequality),
and the interval is the sample's distance plus and minus the quantile of that sum over multinomial resamples
of both tables. Such an interval is wide but holds near 0 too, where a bootstrap percentile interval of a
distance does not. Resampling touches some twenty cells, so that its time does not grow with the tables.

One column's histogram over public bins, to draw tables above one another.

The bins come from the schema alone, never from records, so that a synthetic table's histogram may be shown
wherever the table itself may.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import of_records
from dpsynth.evaluation.details import Marginal, Table
from dpsynth.evaluation.estimates import Estimate, share, share_difference
from dpsynth.evaluation.records import Detail
from dpsynth.table.column import Column
from dpsynth.table.grid import Grid
from dpsynth.table.values import category_codes

Floats = NDArray[np.float64]

_DRAWS = 200


@dataclass(frozen=True)
class Difference:
    """One distance between two samples.

    Attributes
    ----------
    estimate : Estimate
        Of the distance between the populations; the interval is conservative.
    chance : float
        Its mean over two samples of these sizes from the pooled sample.
    """

    estimate: Estimate
    chance: float


@dataclass(frozen=True)
class ColumnDifference:
    """How the distributions of one column differ.

    Attributes
    ----------
    column : str
    tvd : Difference
        Total variation distance over the cells of :func:`cell_counts`.
    missing_real, missing_synthetic : float or None
        Share of missing values; None where the schema allows none.
    missing_difference : Estimate or None
        Synthetic minus real; Newcombe's interval from two Clopper-Pearson ones.
    """

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
    """Compare one column of two tables. Internal.

    Parameters
    ----------
    real, synthetic : pandas.Series of shape (n,), (m,)
        Conformed values, at least one each.
    rng : numpy.random.Generator
        For the multinomial resamples: records of both tables taken as independent, cells held fixed.
    """
    if not len(real) or not len(synthetic):
        raise of_records(f"both tables must have records, got {len(real)} and {len(synthetic)}")
    tvd = _difference(cell_counts(real, synthetic, column), rng, level)
    missing: tuple[Estimate, Estimate] | None = None
    if column.missing:
        first, second = (share(int(s.isna().sum()), len(s), level) for s in (synthetic, real))
        missing = first, second
    return ColumnDifference(
        column.name,
        tvd,
        missing[1].value if missing else None,
        missing[0].value if missing else None,
        share_difference(*missing) if missing else None,
    )


def cell_counts(
    real: pd.Series, synthetic: pd.Series, column: Column, bins: int = 20
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the values of two columns in common cells, missing ones in the first.

    Every declared category or number is a cell where there are at most ``bins`` of them; otherwise the cells
    are cut at the quantiles of the real values, which makes the distance as sharp on a skewed column as on an
    even one.

    Parameters
    ----------
    real, synthetic : pandas.Series of shape (n,), (m,)
    bins : int
        Largest number of cells of a numeric column.

    Returns
    -------
    two ndarray of int of shape (cells,)
    """
    cells = [_cells(column, series, real, bins) for series in (real, synthetic)]
    size = max(int(codes.max()) for codes in cells) + 1
    first, second = (np.bincount(codes, minlength=size) for codes in cells)
    return first, second


def _cells(column: Column, series: pd.Series, real: pd.Series, bins: int) -> NDArray[np.int64]:
    """The cell of each value, 0 for a missing one; quantiles of ``real`` cut those of many numbers."""
    if not column.is_numeric:
        return category_codes(column, series) + 1
    values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    n_values = column.n_values
    if n_values is not None and n_values <= bins:
        steps = np.arange(n_values - 1) + 0.5
        edges = float(column.lower or 0.0) + float(column.resolution or 1.0) * steps
    else:
        reference = real.to_numpy(dtype=np.float64, na_value=np.nan)
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
    """Count a column of one table over its public bins.

    Parameters
    ----------
    frame : pandas.DataFrame of shape (n, columns)
        Conformed; at least one record.
    table : str
        ``"synthetic"``, ``"train"`` or ``"test"``; all but the first are internal.

    Returns
    -------
    Detail
        Of kind ``"marginal"``: shares of *all* records, so that they, ``missing`` and ``special`` (of all
        special codes together) sum to 1. Bins of a column recorded in steps hold whole steps; edges lie half
        a step outside the recorded values.
    """
    # A number of cells that the schema gives is meant for the prior and may be too many to draw.
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
        unit=column.unit,
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
