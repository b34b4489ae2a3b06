"""Which of the real table's categories and values the synthetic table holds at all, rare ones apart.

Generators forget what is rare first. Every share stands beside what a fresh draw of as many records would
hold on average, for a small synthetic table misses rare categories without any fault. The other way round,
categories that the synthetic table holds more often than the real one explains were invented.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import of_records
from dpsynth.evaluation.features import category_codes
from dpsynth.table.schema import Column, Schema

Floats = NDArray[np.float64]

#: categories of a smaller share of the real records are rare
RARE = 0.01


@dataclass(frozen=True)
class CategoryCoverage:
    """Categories of one column.

    Attributes
    ----------
    column : str
    real : ndarray of float of shape (k,)
        Share of each declared category among the real records with a value.
    synthetic : ndarray of bool of shape (k,)
        Whether it occurs in the synthetic table.
    chance : ndarray of float of shape (k,)
        Probability that it occurs in a fresh draw of as many records with a value as the synthetic table has.
    invented : tuple of (category, int, int)
        Categories that the synthetic table holds significantly more often than the real one, with the real
        and the synthetic count.
    """

    column: str
    real: Floats
    synthetic: NDArray[np.bool_]
    chance: Floats
    invented: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Covered:
    """Share of categories covered.

    Attributes
    ----------
    value : float
    chance : float
        Mean of the same share over fresh draws of as many records.
    categories : int
        How many categories it is a share of.
    """

    value: float
    chance: float
    categories: int


def category_coverage(
    real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, *, level: float = 0.95
) -> tuple[CategoryCoverage, ...]:
    """Look up every declared category of every column of categories in both tables.

    Parameters
    ----------
    real, synthetic : pandas.DataFrame of shape (n, columns), (m, columns)
        Conformed to ``schema``.
    level : float
        A category is called invented where its synthetic count exceeds what an exact binomial test of equal
        shares allows, at ``1 - level`` over all categories of the table together (Bonferroni). Records are
        taken as independent.

    Returns
    -------
    tuple of CategoryCoverage
        One for each binary, ordinal or categorical column, in order. Internal.
    """
    from scipy.stats import binom

    columns = [column for column in schema.columns if not column.is_numeric]
    total = sum(len(column.categories) for column in columns)
    found = []
    for column in columns:
        counts, made = _counts(real, column), _counts(synthetic, column)
        n, m = int(counts.sum()), int(made.sum())
        shares = counts / max(n, 1)
        chance = -np.expm1(m * np.log1p(-np.minimum(shares, 1.0 - 1e-16)))
        # Given how often a category occurs in both tables together, equal shares make the synthetic part
        # binomial; P(X >= made).
        tail = binom.sf(made - 1, counts + made, m / max(n + m, 1)) if n and m else np.ones(len(counts))
        too_many = np.flatnonzero(np.asarray(tail) < (1.0 - level) / total)
        invented = tuple((str(column.categories[i]), int(counts[i]), int(made[i])) for i in too_many)
        found.append(CategoryCoverage(column.name, shares, made > 0, chance, invented))
    return tuple(found)


def covered(
    found: Sequence[CategoryCoverage], *, weighted: bool = False, rare: bool = False
) -> Covered | None:
    """Sum coverage up over the columns.

    Parameters
    ----------
    weighted : bool
        Weigh each category by its share of the real records: the mean over columns of the share of records
        whose category the synthetic table holds. Otherwise all categories that occur in the real table count
        alike.
    rare : bool
        Only categories of less than one percent of the real records of their column.

    Returns
    -------
    Covered or None
        None where there is no such category.
    """
    if not found:
        return None
    shares = np.concatenate([entry.real for entry in found])
    present = np.concatenate([entry.synthetic for entry in found]).astype(np.float64)
    chance = np.concatenate([entry.chance for entry in found])
    counted = (shares > 0) & (shares < RARE) if rare else shares > 0
    if not counted.any():
        return None
    weights = np.where(counted, shares if weighted else 1.0, 0.0)
    weights = weights / weights.sum()
    return Covered(float(weights @ present), float(weights @ chance), int(counted.sum()))


def range_coverage(real: pd.Series, synthetic: pd.Series) -> float | None:
    """Share of the real range of numbers that lies within the synthetic range, in [0, 1].

    Missing numbers are left out. For a single real value, whether the synthetic range holds it. None where a
    table has no value at all.
    """
    a, b = (series.to_numpy(dtype=np.float64, na_value=np.nan) for series in (real, synthetic))
    a, b = a[~np.isnan(a)], b[~np.isnan(b)]
    if not len(a) or not len(b):
        return None
    low, high = float(a.min()), float(a.max())
    if high == low:
        return float(b.min() <= low <= b.max())
    return max(min(high, float(b.max())) - max(low, float(b.min())), 0.0) / (high - low)


def ranges_covered(real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema) -> dict[str, float]:
    """Return :func:`range_coverage` of every numeric column where it is defined.

    Raises
    ------
    InputError
        If a table has no record.
    """
    if not len(real) or not len(synthetic):
        raise of_records(f"both tables must have records, got {len(real)} and {len(synthetic)}")
    pairs = {c.name: range_coverage(real[c.name], synthetic[c.name]) for c in schema.columns if c.is_numeric}
    return {name: value for name, value in pairs.items() if value is not None}


def _counts(frame: pd.DataFrame, column: Column) -> NDArray[np.int64]:
    codes = category_codes(column, frame[column.name])
    return np.bincount(codes[codes >= 0], minlength=len(column.categories))
