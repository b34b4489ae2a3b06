"""Singling out: a description, read off the synthetic table, that fits exactly one real person.

The attacker collects descriptions that fit exactly one *synthetic* record and guesses that they fit one real
person. On one column: a value that occurs once, a smallest or largest value. On several columns: the values
of a random synthetic record in random columns. Numbers become "at least" above the median and "at most" below
it. A guess is right if exactly one training record fits.

A distribution alone can single people out, without any table. A description of weight 1/n fits exactly one of
n people with a probability of 37 % (Cohen and Nissim 2020). Only the excess over held-out records says
something about the table. Training and held-out records are compared in equal numbers k. If c of n records
fit a description, it fits exactly one of a random k of them with the hypergeometric probability. One record
can satisfy many descriptions. The interval of the excess therefore comes from exchanges of training and
held-out records (:mod:`dpsynth.evaluation.distances`). benchmarks/results/README.md gives
the differences from anonymeter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import hypergeom

from dpsynth.attacks.attempt import Floats
from dpsynth.attacks.risk import Bools, Risk, scaled
from dpsynth.evaluation.distances import exchanged, reach
from dpsynth.evaluation.estimates import Estimate, share, share_difference
from dpsynth.evaluation.neighbours import hamming_points
from dpsynth.evaluation.tables import Tables
from dpsynth.table.schema import Schema

#: candidates drawn for each description that is wanted, at most
_DRAWS = 20


_SIGNS: dict[str, np.ufunc] = {"==": np.equal, "<=": np.less_equal, ">=": np.greater_equal}


@dataclass(frozen=True)
class Condition:
    """Condition of a description on one column: ``sign`` is ``==``, ``<=``, ``>=`` or ``missing``."""

    column: int
    sign: str
    value: float = np.nan

    def fits(self, points: Floats) -> Bools:
        """Return whether each record fits, shape (n,). A missing value fits ``missing`` alone."""
        values = points[:, self.column]
        if self.sign == "missing":
            return np.isnan(values)
        return np.asarray(_SIGNS[self.sign](values, self.value))


#: conditions that all have to hold, in the order of the columns
Description = tuple[Condition, ...]


def single_out(
    tables: Tables,
    *,
    columns: int,
    rng: np.random.Generator,
    count: int = 500,
    level: float = 0.95,
) -> Risk | None:
    """Attack with at most ``count`` descriptions of so many columns, or of rare and extreme values of one.

    None if no description fits exactly one synthetic record.
    """
    assert tables.test is not None
    schema, counted = tables.schema.modelled, tables.schema.counted
    synthetic, train, held_out = (codes(f, schema) for f in (tables.synthetic, tables.train, tables.test))
    columns, name = min(columns, len(schema)), "descriptions of one column"
    if columns == 1:
        guesses = of_one_column(synthetic, schema, count, rng)
    else:
        name = f"descriptions of {columns} columns"
        guesses = of_several(synthetic, schema, columns, count, rng)
    if not guesses:
        return None
    n, h = len(train), len(held_out)
    fitting = matches(guesses, np.concatenate([train, held_out]))
    same, held, excess = _excess(fitting, n, h, rng, level)
    blind = matches(of_schema(schema, columns, len(guesses), rng), train)
    rate, without = (
        share(int((np.asarray(fits_train.sum(axis=1)) == 1).sum()), len(guesses), level)
        for fits_train in (fitting[:, :n], blind)
    )
    k = min(n, h)
    return Risk(
        "singling out",
        name,
        "nothing else",
        rate,
        without,
        held,
        excess,
        scaled(excess, held.value),
        (len(guesses), len(guesses)),
        None,
        level,
        f"a description fits exactly one of {k:,} training {counted} in {100 * same.value:.1f} % and exactly "
        f"one of as many held-out ones in {100 * held.value:.1f} %",
    )


def codes(frame: pd.DataFrame, schema: Schema) -> Floats:
    """Return one number a column, in the order of its values, NaN if missing, shape (n, columns)."""
    points = hamming_points(frame, schema)
    absent = frame[list(schema.names)].isna().to_numpy()
    return np.where(absent, np.nan, points)


def of_one_column(
    synthetic: Floats, schema: Schema, count: int, rng: np.random.Generator
) -> list[Description]:
    """Descriptions by one value that fit exactly one synthetic record."""
    found: list[Condition] = []
    for j, column in enumerate(schema.columns):
        values, times = np.unique(synthetic[:, j], return_counts=True)  # NaN counts as one value
        lone = values[times == 1]
        found += [Condition(j, "missing" if np.isnan(v) else "==", float(v)) for v in lone]
        present = values[~np.isnan(values)]
        if column.is_numeric and len(present) > 1:
            found += [Condition(j, "<=", float(present[0])), Condition(j, ">=", float(present[-1]))]
    rng.shuffle(found)  # type: ignore[arg-type]
    alone: list[Description] = [
        (condition,) for condition in found if int(condition.fits(synthetic).sum()) == 1
    ]
    return alone[:count]


def of_several(
    synthetic: Floats, schema: Schema, columns: int, count: int, rng: np.random.Generator
) -> list[Description]:
    """Descriptions by the values of random synthetic records that fit exactly one of them."""
    ordered = np.array([not column.is_categorical for column in schema.columns])
    with np.errstate(all="ignore"):
        medians = np.array([np.median(v[~np.isnan(v)]) if not np.isnan(v).all() else 0 for v in synthetic.T])
    found: dict[Description, None] = {}
    for _ in range(_DRAWS * count):
        record = synthetic[rng.integers(len(synthetic))]
        chosen = np.sort(rng.choice(len(schema), size=columns, replace=False))
        description = tuple(_of_value(int(j), record[j], ordered[j], medians[j]) for j in chosen)
        if description not in found and int(fits(description, synthetic).sum()) == 1:
            found[description] = None
            if len(found) == count:
                break
    return list(found)


def of_schema(schema: Schema, columns: int, count: int, rng: np.random.Generator) -> list[Description]:
    """Descriptions from the public schema alone: random values, random directions."""
    drawn = []
    for _ in range(count):
        chosen = np.sort(rng.choice(len(schema), size=columns, replace=False))
        drawn.append(tuple(_of_column(int(j), schema, rng) for j in chosen))
    return drawn


def fits(description: Description, points: Floats) -> Bools:
    """Return whether each record fits all conditions, shape (n,)."""
    fitting = description[0].fits(points)
    for condition in description[1:]:
        fitting &= condition.fits(points)
    return fitting


def matches(descriptions: list[Description], points: Floats) -> sparse.csr_matrix:
    """Return which records fit which description: a sparse matrix (descriptions, n), one row at a time."""
    rows = [np.flatnonzero(fits(description, points)) for description in descriptions]
    ends = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    index = np.concatenate(rows)
    return sparse.csr_matrix((np.ones(len(index)), index, ends), shape=(len(rows), len(points)))


def lone_chance(counts: NDArray[np.int64], n: int, k: int) -> Floats:
    """Probability that exactly one of c marked records is among a random k of n, for each count c.

    Examples
    --------
    >>> lone_chance(np.array([0, 1, 2]), 4, 2).round(3).tolist()
    [0.0, 0.5, 0.667]
    """
    table = hypergeom.pmf(1, n, np.arange(int(counts.max(initial=0)) + 1), k)
    return np.asarray(table)[counts]


def _excess(
    fitting: sparse.csr_matrix, n: int, h: int, rng: np.random.Generator, level: float
) -> tuple[Estimate, Estimate, Estimate]:
    """Rates among equal numbers of training and held-out records, and the interval of their difference."""
    k, tried = min(n, h), fitting.shape[0]
    total = np.asarray(fitting.sum(axis=1)).ravel().astype(np.int64)
    at_train, at_held = (lone_chance(np.arange(int(total.max()) + 1), size, k) for size in (n, h))
    relevant = np.flatnonzero(np.asarray(fitting.sum(axis=0)).ravel())
    of_relevant = fitting[:, relevant]

    def rates(labels: Bools) -> tuple[float, float]:
        inside = np.rint(of_relevant @ labels.astype(np.float64)).astype(np.int64)
        return float(at_train[inside].mean()), float(at_held[total - inside].mean())

    def difference(labels: Bools) -> float:
        first, second = rates(labels)
        return first - second

    pair = rates(relevant < n)
    same, held = (share(round(value * tried), tried, level) for value in pair)
    value = pair[0] - pair[1]
    stray = reach(exchanged(difference, len(relevant), n + h, n, rng=rng), 0.0, level)
    drawn = share_difference(same, held)
    excess = Estimate(
        value,
        max(value - float(np.hypot(stray, drawn.value - drawn.lower)), -1.0),
        min(value + float(np.hypot(stray, drawn.upper - drawn.value)), 1.0),
    )
    return same, held, excess


def _of_value(column: int, value: float, ordered: bool, median: float) -> Condition:
    if np.isnan(value):
        return Condition(column, "missing")
    if not ordered:
        return Condition(column, "==", float(value))
    return Condition(column, ">=" if value > median else "<=", float(value))


def _of_column(column: int, schema: Schema, rng: np.random.Generator) -> Condition:
    known = schema.columns[column]
    if known.n_values is not None:
        value = float(rng.integers(known.n_values))
    else:
        value = float(rng.uniform(known.lower or 0.0, known.upper or 1.0))
    if known.is_categorical:
        return Condition(column, "==", value)
    return Condition(column, str(rng.choice(["<=", ">="])), value)
