"""Inference: a column that the attacker does not know, guessed from the closest synthetic records.

The attacker knows all other columns of a person. She looks for the synthetic records closest in those and
guesses what most of the equally close ones say: the most frequent category, the median of a number. A guess
is right where the category is the true one (missing counts as one), or the number lies within a tolerance: a
twentieth of the distance from the 5th to the 95th percentile of the held-out records, half a declared step at
least.

A mean over everybody hides the few whom a table gives away. The *worst-off* are the 5 % of the people whose
known columns lie closest to a synthetic record: of those the attacker is surest, and copies are among them.
As many per cent of the held-out records are chosen in the same way.

Against anonymeter: the attacker without the table makes the best constant guess (the most common category,
the number within whose tolerance most values lie) of whoever knows the population, for which held-out records
stand. A draw from the synthetic column, which anonymeter calls naive, is right less often than "healthy"
for everybody in an unbalanced column, and it does need the table. A tolerance of 5 % of the guess has no
meaning around 0. All columns at once are judged by their mean, and each by intervals that hold for all
columns together (Bonferroni).

No differential privacy bounds how often such guesses are right: that smoking goes with lung cancer can be
inferred about people who were never in the table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpsynth.attacks.synthetic.guessing import TOLERANCE, Guessed, guess
from dpsynth.attacks.synthetic.risk import Bools, Floats, Risk, compared, mean_rate, of_rates
from dpsynth.evaluation.estimates import Estimate, share
from dpsynth.evaluation.tables import Tables
from dpsynth.table.column import Column

#: share of the records that are called worst-off
WORST_OFF = 0.05


def infer_columns(
    tables: Tables,
    sensitive: Sequence[str] | None = None,
    *,
    rng: np.random.Generator,
    tolerance: float = TOLERANCE,
    proved: float | None = None,
    level: float = 0.95,
) -> tuple[Risk, ...]:
    """Guess columns, of everybody and of the worst-off.

    Parameters
    ----------
    tables : Tables
        With held-out records.
    sensitive : sequence of str, optional
        By default every column that is not computed from others.
    proved : float, optional
        Upper bound on the excess over held-out records, of everybody: a rate among a twentieth of the people
        can differ by twenty times as much.

    Returns
    -------
    tuple of Risk
        The mean over the columns, of everybody and of the worst-off, where there are several; then each
        column in both ways, with intervals that hold for all columns together.
    """
    assert tables.test is not None
    names = tables.schema.modelled.names if sensitive is None else tuple(sensitive)
    n, h = len(tables.train), len(tables.test)
    guesses = [guess(tables, name, rng, tolerance) for name in names]
    worst = [_worst_off(g.distance, n, rng) for g in guesses]
    risks = [*_means(guesses, worst, n, h, proved, level)] if len(guesses) > 1 else []
    single = 1 - (1 - level) / len(guesses)
    for found, closest in zip(guesses, worst, strict=True):
        told = _told(tables.schema.column(found.column), found.tolerance)
        risks.append(_of_column(found, np.ones(n + h, dtype=bool), "", told, n, proved, single))
        risks.append(_of_column(found, closest, ", worst-off", told, n, None, single))
    return tuple(risks)


_HOLDS = "all other columns of a person"


def _of_column(
    found: Guessed, among: Bools, which: str, about: str, n: int, proved: float | None, level: float
) -> Risk:
    right = found.right[:n][among[:n]], found.right[n:][among[n:]]
    result = compared(*right, level)
    constant = found.constant[:n][among[:n]]
    return Risk(
        "inference",
        found.column + which,
        _HOLDS,
        result.rate,
        share(int(constant.sum()), len(constant), level),
        result.held_out,
        result.excess,
        result.normalised,
        (len(right[0]), len(right[1])),
        proved,
        level,
        about,
    )


def _means(
    guesses: Sequence[Guessed], worst: Sequence[Bools], n: int, h: int, proved: float | None, level: float
) -> tuple[Risk, Risk]:
    """Means over the columns: a person's share of right guesses, and her part in those of the worst-off."""
    right, constant = (
        np.stack([getattr(g, what) for g in guesses], axis=1) for what in ("right", "constant")
    )
    chosen = np.stack(worst, axis=1)
    rates = [mean_rate(part.mean(axis=1), level) for part in (right[:n], right[n:], constant[:n])]
    result = of_rates(rates[0], rates[1])
    about = f"mean over {len(guesses)} columns; intervals over people"
    everybody = Risk(
        "inference",
        "mean of the columns",
        _HOLDS,
        result.rate,
        rates[2],
        result.held_out,
        result.excess,
        result.normalised,
        (n * len(guesses), h * len(guesses)),
        proved,
        level,
        about,
    )
    parts = [
        _ratio(values, picked, level)
        for values, picked in (
            (right[:n], chosen[:n]),
            (right[n:], chosen[n:]),
            (constant[:n], chosen[:n]),
        )
    ]
    result = of_rates(parts[0], parts[1])
    few = int(chosen[:n].sum()), int(chosen[n:].sum())
    worst_off = Risk(
        "inference",
        "mean of the columns, worst-off",
        _HOLDS,
        result.rate,
        parts[2],
        result.held_out,
        result.excess,
        result.normalised,
        few,
        None,
        level,
        f"{about}; of each column the {100 * WORST_OFF:g} % closest to a synthetic record",
    )
    return everybody, worst_off


def _ratio(values: Bools, picked: Bools, level: float) -> Estimate:
    """Share of right guesses among those picked; Student's interval of a ratio over people (linearised)."""
    from scipy.stats import t

    right, size = (values & picked).sum(axis=1).astype(np.float64), picked.sum(axis=1).astype(np.float64)
    value, n = float(right.sum() / size.sum()), len(right)
    spread = float((right - value * size).std(ddof=1)) / float(size.mean()) / math.sqrt(n) if n > 1 else 1.0
    people = int((size > 0).sum())
    if spread < 1e-12:
        return mean_rate(np.full(people, value), level)
    reach = float(t.isf((1 - level) / 2, max(people - 1, 1))) * spread
    return Estimate(value, max(value - reach, 0.0), min(value + reach, 1.0))


def _worst_off(distance: Floats, n: int, rng: np.random.Generator) -> Bools:
    """Mark the closest 5 % of the first n records and of the others, ties in random order."""
    marked = np.zeros(len(distance), dtype=bool)
    for start, end in ((0, n), (n, len(distance))):
        size = math.ceil(WORST_OFF * (end - start))
        order = np.lexsort((rng.random(end - start), distance[start:end]))
        marked[start + order[:size]] = True
    return marked


def _told(column: Column, tolerance: float) -> str:
    if not column.is_numeric:
        return "right where the category is the true one"
    unit = f" {column.unit}" if column.unit else ""
    return f"right within {tolerance:.3g}{unit}"
