"""How much a synthetic table looks like the real one: one-way distributions and correlations.

Two first numbers, not from a paper but used by every comparison of generators: the total variation distance
of each column's distribution, and the mean absolute difference of the two correlation matrices over the
encoded columns. Both read the real records without paying: internal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.evaluation.features import category_codes, distance_features
from dpsynth.table.schema import Column, Schema


@dataclass(frozen=True)
class Resemblance:
    """One-way and pairwise differences between two tables.

    Attributes
    ----------
    tvd : dict of str to float
        Total variation distance of each column, in [0, 1].
    tvd_mean : float
        Their mean.
    correlation_error : float
        Mean absolute difference of the correlations, in [0, 2].
    """

    tvd: dict[str, float]
    tvd_mean: float
    correlation_error: float


def resemblance(
    real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, *, bins: int = 20
) -> Resemblance:
    """Compare the columns' distributions and correlations of two conformed frames.

    Parameters
    ----------
    real, synthetic : pandas.DataFrame of shape (n, columns), (m, columns)
        Conformed to ``schema``; at least one row each.
    schema : Schema
    bins : int
        See :func:`one_way_tvd`.

    Returns
    -------
    Resemblance
        Internal: computed from the real records.

    Raises
    ------
    InputError
        If a frame is empty or ``bins`` is less than 2.

    Examples
    --------
    >>> schema = Schema(columns=(Column(name="sex", kind="binary", categories=("F", "M")),))
    >>> result = resemblance(pd.DataFrame({"sex": ["F", "M"]}), pd.DataFrame({"sex": ["F", "F"]}), schema)
    >>> result.tvd
    {'sex': 0.5}
    """
    if not len(real) or not len(synthetic):
        raise InputError(f"both tables must have records, got {len(real)} and {len(synthetic)}")
    if bins < 2:
        raise InputError(f"bins must be at least 2, got {bins!r}")
    tvd = {
        column.name: one_way_tvd(real[column.name], synthetic[column.name], column, bins=bins)
        for column in schema.columns
    }
    return Resemblance(tvd, float(np.mean(list(tvd.values()))), correlation_error(real, synthetic, schema))


def one_way_tvd(real: pd.Series[Any], synthetic: pd.Series[Any], column: Column, *, bins: int = 20) -> float:
    """Total variation distance between two columns' distributions over common cells.

    Every declared category or number is a cell where there are at most ``bins`` of them; otherwise the cells
    are cut at the quantiles of the real values, which makes the distance as sharp on a skewed column as on an
    even one. Missing values are one more cell.

    Parameters
    ----------
    real, synthetic : pandas.Series of shape (n,), (m,)
    column : Column
    bins : int
        Largest number of cells of a numeric column.

    Returns
    -------
    float
        ``sum_c |p_c - q_c| / 2``, in [0, 1].

    Examples
    --------
    >>> stage = Column(name="stage", kind="integer", lower=0, upper=2)
    >>> one_way_tvd(pd.Series([0, 1, 2, 2]), pd.Series([0, 0, 2, 2]), stage)
    0.25
    """
    p, q = (counts / counts.sum() for counts in cell_counts(real, synthetic, column, bins))
    return float(0.5 * np.abs(p - q).sum())


def cell_counts(
    real: pd.Series[Any], synthetic: pd.Series[Any], column: Column, bins: int = 20
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the values of two columns in the common cells of :func:`one_way_tvd`, missing ones in the first.

    Parameters are those of :func:`one_way_tvd`.

    Examples
    --------
    >>> grade = Column(name="grade", kind="ordinal", categories=("low", "high"), missing=True)
    >>> [counts.tolist() for counts in cell_counts(pd.Series(["low"]), pd.Series(["high", None]), grade)]
    [[0, 1, 0], [1, 0, 1]]
    """
    cells = [_cells(column, series, real, bins) for series in (real, synthetic)]
    size = max(int(codes.max()) for codes in cells) + 1
    first, second = (np.bincount(codes, minlength=size) for codes in cells)
    return first, second


def correlation_error(real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema) -> float:
    """Mean absolute difference of Pearson correlations over all pairs of encoded columns.

    The columns are those of :func:`~dpsynth.evaluation.features.distance_features`, each pair of different
    columns once; a column that is constant in a table has correlation 0 with every other one there.

    Parameters
    ----------
    real, synthetic : pandas.DataFrame of shape (n, columns), (m, columns)
        Conformed to ``schema``.
    schema : Schema

    Returns
    -------
    float
        In [0, 2]; 0 where there is only one encoded column.
    """
    a, b = (_correlations(distance_features(frame, schema).points) for frame in (real, synthetic))
    upper = np.triu_indices(len(a), k=1)
    return float(np.abs(a - b)[upper].mean()) if len(upper[0]) else 0.0


def _cells(column: Column, series: pd.Series[Any], real: pd.Series[Any], bins: int) -> NDArray[np.int64]:
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


def _correlations(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Correlations of the columns of an array that nobody needs afterwards: large tables are not copied."""
    values -= values.mean(axis=0)
    parts = np.array_split(values, -(-values.shape[1] // 16), axis=1)
    norms = np.sqrt(np.concatenate([(part**2).sum(axis=0) for part in parts]))
    # Rounding leaves a constant column with a norm of a few ulp instead of 0.
    varies = norms > 1e-9 * np.sqrt(len(values))
    values /= np.where(varies, norms, 1.0)
    values[:, ~varies] = 0.0
    return values.T @ values
