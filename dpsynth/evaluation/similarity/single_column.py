"""Does one numeric column alone tell synthetic from real records, by its shape or by habits of recording?

People write numbers down by habit: blood pressures on tens, pulses counted in 15 seconds on multiples of 4,
heights converted from inches. A generator that spreads values evenly over a cell is found out by one such
column, whatever it does well elsewhere. A classifier over all columns sees this without saying where.

The best score of one value is the ratio of its probabilities in both tables. It is estimated in three steps,
each shrunk towards the one before by some pseudo-records: the share of synthetic records in an interval
(between quantiles), times how the value's last digits shift it (its number of steps modulo 20, which holds
twos, fours, fives and tens; the number of decimals where no step is declared), then in the value itself.
Scores come from the other folds' records, so that the AUC of two samples of one distribution is 1/2, or a
little less. All steps are counts of distinct values: the time is that of sorting a column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.evaluation.estimates import Estimate
from dpsynth.evaluation.features import numeric_values
from dpsynth.evaluation.similarity.discriminator import FOLDS, within_folds
from dpsynth.table.column import Column
from dpsynth.table.schema import Schema

Floats = NDArray[np.float64]

#: intervals between quantiles; last digits told apart, in steps or in decimals
_INTERVALS, _MODULUS, _MOST_DECIMALS = 30, 20, 6
#: records of each table that an estimate's parent counts for
_PSEUDO = 5.0


@dataclass(frozen=True)
class SingleColumn:
    """How well one column tells synthetic from real records.

    Attributes
    ----------
    column : str
    auc : Estimate
        Of all that its present values give away; 1/2 is best. The interval is that of
        :class:`~dpsynth.evaluation.similarity.discriminator.Discrimination`.
    last_digits : float or None
        AUC of the last digits alone: near ``auc`` where habits of recording give the column away. None where
        the column has too few values to tell digits from values.
    beyond_chance : bool
        Whether the AUC lies above 1/2 although the best of all columns was looked for (Bonferroni).
    size : int
        Records of each table.
    """

    column: str
    auc: Estimate
    last_digits: float | None
    beyond_chance: bool
    size: int


def single_columns(
    real: pd.DataFrame,
    synthetic: pd.DataFrame,
    schema: Schema,
    *,
    rng: np.random.Generator,
    limit: int = 10_000,
    level: float = 0.95,
) -> tuple[SingleColumn, ...]:
    """Tell synthetic from real records by each numeric column alone.

    Parameters
    ----------
    real, synthetic : pandas.DataFrame of shape (n, columns), (m, columns)
        Conformed to ``schema`` and rounded to its steps.
    limit : int
        Of each table a random part is used: of the column's present values as many as the table with fewer
        has, at most this many.

    Returns
    -------
    tuple of SingleColumn
        In the order of the schema; without columns that have fewer present values than folds. Internal.
    """
    found = []
    numeric = [column for column in schema.columns if column.is_numeric]
    for column in numeric:
        parts = [numeric_values(column, frame[column.name]) for frame in (real, synthetic)]
        parts = [values[~np.isnan(values)] for values in parts]
        size = min(*map(len, parts), limit)
        if size >= FOLDS:
            a, b = (values[rng.permutation(len(values))[:size]] for values in parts)
            found.append(_tell(a, b, column, level, len(numeric)))
    return tuple(found)


def _tell(real: Floats, synthetic: Floats, column: Column, level: float, tried: int) -> SingleColumn:
    size = len(real)
    values, place = np.unique(np.concatenate([real, synthetic]), return_inverse=True)
    # Rows are in random order: every fifth row of a table is a random fold.
    fold, label = np.tile(np.arange(size) % FOLDS, 2), np.repeat([0, 1], size)
    counts = np.zeros((2, FOLDS, len(values)))
    np.add.at(counts, (label, fold, place), 1.0)
    # what the other folds hold
    others = counts.sum(axis=1, keepdims=True) - counts
    nothing, digits = np.full((FOLDS, len(values)), 0.5), _last_digits(values, column)
    by_digits = _shifted(nothing, others, digits)
    shape = _shifted(nothing, others, _intervals(counts.sum(axis=(0, 1))))
    scores = _shifted(_shifted(shape, others, digits), others, np.arange(len(values)))

    def told(score: Floats, at: float) -> Estimate:
        return within_folds(score[fold, place], label, fold, at)

    beyond_chance = told(scores, 1.0 - (1.0 - level) / tried).lower > 0.5
    enough = column.n_values is None or column.n_values >= 2 * _MODULUS
    last_digits = told(by_digits, level).value if enough else None
    return SingleColumn(column.name, told(scores, level), last_digits, beyond_chance, size)


def _shifted(parent: Floats, counts: Floats, group: NDArray[np.int64]) -> Floats:
    """Share of synthetic records at each value, shape (folds, values), corrected group by group.

    In each group the odds of the parent are multiplied by found over expected records of both tables, with
    as many pseudo-records of each on both sides: a group that the parent explains is left as it is.
    """
    n_groups = int(group.max()) + 1
    total = counts.sum(axis=0)

    def by_group(weights: Floats) -> Floats:
        return np.stack([np.bincount(group, row, minlength=n_groups) for row in weights])

    synthetic, expected = by_group(counts[1]), by_group(parent * total)
    real, expected_real = by_group(counts[0]), by_group((1.0 - parent) * total)
    factor = (synthetic + _PSEUDO) / (expected + _PSEUDO) * (expected_real + _PSEUDO) / (real + _PSEUDO)
    odds = parent / (1.0 - parent) * factor[:, group]
    return odds / (1.0 + odds)


def _intervals(count: Floats) -> NDArray[np.int64]:
    """The interval of each value in ascending order, as many records in each as can be."""
    middle = np.cumsum(count) - 0.5 * count
    return np.unique((middle / count.sum() * _INTERVALS).astype(np.int64), return_inverse=True)[1]


def _last_digits(values: Floats, column: Column) -> NDArray[np.int64]:
    if column.resolution is not None:
        return np.mod(np.rint(values / column.resolution), _MODULUS).astype(np.int64)
    # 1.25 has 2 decimals; beyond the most, digits are no habit
    scaled = np.outer(values, 10.0 ** np.arange(_MOST_DECIMALS))
    whole = np.abs(scaled - np.rint(scaled)) <= 1e-9 * np.maximum(np.abs(scaled), 1.0)
    return np.where(whole.any(axis=1), whole.argmax(axis=1), _MOST_DECIMALS)
