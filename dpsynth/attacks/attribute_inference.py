"""Inference: a column that the attacker does not know, guessed from the closest synthetic records.

The attacker knows all other columns of a person. She looks for the synthetic records closest in those, by
Gower's distance over the public bounds. She guesses the most frequent category, or the median number, of the
equally close ones. A guess is right if the category is the true one (missing counts as one), or if the
number lies within a tolerance. This is a twentieth of the distance from the 5th to the 95th percentile of the
held-out records, and at least half a declared step. The attacker without the table makes the best constant
guess from the held-out records, which stand for the population.

A mean over everybody hides the few people whom a table discloses. The *worst-off* are the 5 % of people whose
known columns lie closest to a synthetic record. The same share of held-out records is chosen alike.
benchmarks/results/README.md gives the differences from anonymeter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth.attacks.attempt import Floats
from dpsynth.attacks.linkability import columns_of
from dpsynth.attacks.risk import Bools, Risk, mean_rate, rate_of
from dpsynth.attacks.singling_out import codes
from dpsynth.checks import few
from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import Estimate
from dpsynth.evaluation.neighbours import metric_named, over_tiles
from dpsynth.evaluation.tables import Tables
from dpsynth.table.column import Column
from dpsynth.table.schema import Schema

#: tolerance for numbers, in distances from the 5th to the 95th percentile of the held-out records
TOLERANCE = 0.05
#: share of the records that are called worst-off
WORST_OFF = 0.05
_HOLDS = "all other columns of a person"


@dataclass(frozen=True)
class Guessed:
    """Guesses of one column, shape (n + h,) each, training records first. Confidential.

    ``constant`` says whether the best constant guess is right, ``distance`` how far the known columns lie
    from the closest synthetic record's. ``tolerance`` is in the column's unit, 0 for categories.
    """

    column: str
    right: Bools
    constant: Bools
    distance: Floats
    tolerance: float


def guess(tables: Tables, column: str, rng: np.random.Generator) -> Guessed:
    """Guess one column of all training and held-out records."""
    assert tables.test is not None
    schema = tables.schema
    one, known = columns_of(schema, [column]), known_columns(schema, column)
    attacked = pd.concat([tables.train, tables.test], ignore_index=True)
    truth, made = codes(attacked, one)[:, 0], codes(tables.synthetic, one)[:, 0]
    width = _tolerance(schema.column(column), truth[len(tables.train) :])
    if known:
        said, distance = _said(attacked, tables.synthetic, columns_of(schema, known), made, one, rng)
    else:
        said, distance = rng.choice(made, size=len(truth)), rng.random(len(truth))
    constant = _best_constant(truth[len(tables.train) :], width)
    unit = (schema.column(column).resolution or 1.0) * schema.column(column).unit_size
    return Guessed(
        column,
        _right(said, truth, width),
        _right(np.full(len(truth), constant), truth, width),
        distance,
        width * unit if schema.column(column).is_numeric else 0.0,
    )


def known_columns(schema: Schema, column: str) -> tuple[str, ...]:
    """Return the attacker's known columns: all but the guessed one and those computed from it or into it."""
    if column not in schema.names:
        raise InputError(f"sensitive: {column!r} is not a column (columns: {few(schema.names)})")
    return tuple(name for name in schema.modelled.names if name != column)


def _said(
    attacked: pd.DataFrame,
    synthetic: pd.DataFrame,
    known: Schema,
    made: Floats,
    one: Schema,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Guesses from the equally close synthetic records, and their distances, a block at a time."""
    metric, seed = metric_named("gower"), int(rng.integers(2**63))
    points, others = (metric.encode(frame, known) for frame in (attacked, synthetic))
    values, place = np.unique(made, return_inverse=True)
    middle = not one.columns[0].is_categorical
    order = np.argsort(made, kind="stable")  # NaN last

    def vote(rows: slice, tile: Floats) -> tuple[Floats, Floats]:
        nearest = tile.min(axis=1)
        close = tile == nearest[:, None]
        if middle:
            counted = np.cumsum(close[:, order], axis=1)
            first = np.argmax(2 * counted >= counted[:, -1:], axis=1)
            return made[order[first]], nearest
        draw = np.random.default_rng([seed, rows.start])
        votes = np.zeros((len(tile), len(values)))
        row, column = np.nonzero(close)
        np.add.at(votes, (row, place[column]), 1.0)
        return values[np.argmax(votes + 0.5 * draw.random(votes.shape), axis=1)], nearest

    parts = over_tiles(vote, points, others, metric)
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _tolerance(column: Column, values: Floats) -> float:
    """Tolerance of codes, at least half a step if numbers have steps: equal numbers are right."""
    present = values[~np.isnan(values)]
    if not column.is_numeric:
        return 0.0
    spread = float(np.diff(np.quantile(present, [0.05, 0.95]))[0]) if len(present) else 0.0
    return max(TOLERANCE * spread, 0.5 if column.resolution is not None else 1e-9)


def _right(said: Floats, truth: Floats, width: float) -> Bools:
    close = np.abs(said - truth) <= width
    return np.asarray(close | (np.isnan(said) & np.isnan(truth)))


def _best_constant(values: Floats, width: float) -> float:
    """The guess that is most often right: a sample value, or the middle of the fullest window."""
    present = np.sort(values[~np.isnan(values)])
    if not len(present):
        return math.nan
    ends = np.searchsorted(present, present + 2 * width, side="right")
    inside = ends - np.arange(len(present))
    best = int(np.argmax(inside))
    if len(values) - len(present) > inside[best]:
        return math.nan
    return float(present[best] + present[ends[best] - 1]) / 2


def infer_columns(
    tables: Tables,
    sensitive: Sequence[str] | None = None,
    *,
    rng: np.random.Generator,
    proved: float | None = None,
    level: float = 0.95,
) -> tuple[Risk, ...]:
    """Guess columns, of everybody and of the worst-off, by default every column that is not computed.

    ``proved`` is an upper bound on the excess over held-out records, of everybody. A rate among a twentieth
    of the people can differ by twenty times as much. Return the mean over the columns, in both ways, if there
    are several. Then comes each column in both ways, with intervals valid for all columns together.
    """
    assert tables.test is not None
    names = tables.schema.modelled.names if sensitive is None else tuple(sensitive)
    n = len(tables.train)
    guesses = [guess(tables, name, rng) for name in names]
    worst = [_worst_off(g.distance, n, rng) for g in guesses]
    one = tables.schema.counted.one
    risks = [*_means(guesses, worst, n, proved, level, one)] if len(guesses) > 1 else []
    single = 1 - (1 - level) / len(guesses)
    for found, closest in zip(guesses, worst, strict=True):
        told = _told(tables.schema.column(found.column), found.tolerance)
        risks.append(_of_column(found, np.ones(len(closest), dtype=bool), "", told, n, proved, single))
        risks.append(_of_column(found, closest, ", worst-off", told, n, None, single))
    return tuple(risks)


def _of_column(
    found: Guessed, among: Bools, which: str, about: str, n: int, proved: float | None, level: float
) -> Risk:
    parts = found.right[:n][among[:n]], found.constant[:n][among[:n]], found.right[n:][among[n:]]
    train, without, held_out = (rate_of(part, level) for part in parts)
    rates, tries = (train, without, held_out), (len(parts[0]), len(parts[2]))
    name = found.column + which
    return Risk.of("inference", name, _HOLDS, rates, tries, proved=proved, level=level, about=about)


def _means(
    guesses: Sequence[Guessed], worst: Sequence[Bools], n: int, proved: float | None, level: float, one: str
) -> tuple[Risk, Risk]:
    """Means over the columns: a person's share of right guesses, and her part among the worst-off."""
    right, constant, chosen = (
        np.stack(columns, axis=1)
        for columns in ([g.right for g in guesses], [g.constant for g in guesses], worst)
    )
    about = f"mean over {len(guesses)} columns, intervals over people"
    closest = f"{about}. In each column, the {100 * WORST_OFF:g} % closest to a synthetic {one}"
    sides = right[:n], constant[:n], right[n:]
    train, without, held_out = (mean_rate(side.mean(axis=1), level) for side in sides)
    rates, tries = (train, without, held_out), (right[:n].size, right[n:].size)
    name = "mean of the columns"
    everybody = Risk.of("inference", name, _HOLDS, rates, tries, proved=proved, level=level, about=about)
    picked = chosen[:n], chosen[:n], chosen[n:]
    train, without, held_out = (_ratio(*parts, level) for parts in zip(sides, picked, strict=True))
    rates, tries = (train, without, held_out), (int(chosen[:n].sum()), int(chosen[n:].sum()))
    name = f"{name}, worst-off"
    return everybody, Risk.of("inference", name, _HOLDS, rates, tries, level=level, about=closest)


def _ratio(values: Bools, picked: Bools, level: float) -> Estimate:
    """Share of right guesses among those picked, with Student's linearised interval of a ratio."""
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
    unit = f" {column.difference_unit}" if column.difference_unit else ""
    return f"right within {tolerance:.3g}{unit}"
