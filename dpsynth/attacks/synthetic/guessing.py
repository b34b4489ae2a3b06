"""One column guessed from the synthetic records that lie closest in all others, and by a constant.

Closest is Gower's distance over the public bounds; a block of distances at a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth.attacks.synthetic.linkability import columns_of
from dpsynth.attacks.synthetic.risk import Bools, Floats
from dpsynth.attacks.synthetic.singling_out import codes
from dpsynth.checks import few
from dpsynth.errors import InputError
from dpsynth.evaluation.neighbours.search import metric_named, over_tiles
from dpsynth.evaluation.tables import Tables
from dpsynth.table.column import Column
from dpsynth.table.schema import Schema

#: tolerance for numbers, in distances from the 5th to the 95th percentile of the held-out records
TOLERANCE = 0.05


@dataclass(frozen=True)
class Guessed:
    """Guesses of one column. Internal.

    Attributes
    ----------
    column : str
    right : ndarray of bool of shape (n + h,)
        Training records first.
    constant : ndarray of bool of shape (n + h,)
        Whether the best constant guess is right.
    distance : ndarray of shape (n + h,)
        Of the known columns to the closest synthetic record's.
    tolerance : float
        In the column's unit; 0 for categories.
    """

    column: str
    right: Bools
    constant: Bools
    distance: Floats
    tolerance: float


def guess(tables: Tables, column: str, rng: np.random.Generator, tolerance: float = TOLERANCE) -> Guessed:
    """Guess one column of all training and held-out records.

    Parameters
    ----------
    tables : Tables
        With held-out records.
    column : str
    tolerance : float
        For numbers; see the module.
    """
    assert tables.test is not None
    schema = tables.schema
    one, known = columns_of(schema, [column]), known_columns(schema, column)
    attacked = pd.concat([tables.train, tables.test], ignore_index=True)
    truth, made = codes(attacked, one)[:, 0], codes(tables.synthetic, one)[:, 0]
    width = _tolerance(schema.column(column), truth[len(tables.train) :], tolerance)
    if known:
        said, distance = _said(attacked, tables.synthetic, columns_of(schema, known), made, one, rng)
    else:
        said, distance = rng.choice(made, size=len(truth)), rng.random(len(truth))
    constant = _best_constant(truth[len(tables.train) :], width)
    unit = schema.column(column).resolution or 1.0
    return Guessed(
        column,
        _right(said, truth, width),
        _right(np.full(len(truth), constant), truth, width),
        distance,
        width * unit if schema.column(column).is_numeric else 0.0,
    )


def known_columns(schema: Schema, column: str) -> tuple[str, ...]:
    """Return what the attacker knows beside a column: all others but those computed from it or into it.

    Raises
    ------
    InputError
        If there is no such column.
    """
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
    """What the equally close synthetic records say, and how close they are; a block at a time."""
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


def _tolerance(column: Column, values: Floats, tolerance: float) -> float:
    """Of codes: half a step at least where numbers have steps, so that equal numbers are right."""
    present = values[~np.isnan(values)]
    if not column.is_numeric:
        return 0.0
    spread = float(np.diff(np.quantile(present, [0.05, 0.95]))[0]) if len(present) else 0.0
    return max(tolerance * spread, 0.5 if column.resolution is not None else 1e-9)


def _right(said: Floats, truth: Floats, width: float) -> Bools:
    close = np.abs(said - truth) <= width
    return np.asarray(close | (np.isnan(said) & np.isnan(truth)))


def _best_constant(values: Floats, width: float) -> float:
    """The guess that is right for most: a value of the sample, or the middle of the fullest window."""
    present = np.sort(values[~np.isnan(values)])
    if not len(present):
        return math.nan
    ends = np.searchsorted(present, present + 2 * width, side="right")
    inside = ends - np.arange(len(present))
    best = int(np.argmax(inside))
    if len(values) - len(present) > inside[best]:
        return math.nan
    return float(present[best] + present[ends[best] - 1]) / 2
