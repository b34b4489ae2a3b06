"""Linkability: two sets of columns about one person, held apart, joined by way of the synthetic table.

With each part of a person the attacker looks for the closest synthetic record, by Gower's distance over
the public bounds. If both parts lead to the same record, she links them. The attacker without the table
picks both records blindly. Parts of few discrete columns have many closest records at the same distance.
One of them is drawn for each part by itself: the first of them both times would link everybody.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.attacks.attempt import Floats
from dpsynth.attacks.risk import Risk, rate_of
from dpsynth.checks import few
from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import Estimate
from dpsynth.evaluation.neighbours import Metric, metric_named, over_tiles
from dpsynth.evaluation.tables import Tables
from dpsynth.table.schema import Schema


def link_people(
    tables: Tables,
    linked: tuple[Sequence[str], Sequence[str]] | None = None,
    *,
    rng: np.random.Generator,
    proved: float | None = None,
    level: float = 0.95,
) -> Risk | None:
    """Attack all training and held-out records with two sets of columns, by default every other one.

    ``proved`` is an upper bound on the excess over held-out records. With a single column, which cannot be
    held in two parts, there is no attack.
    """
    assert tables.test is not None
    schema = tables.schema.modelled
    if linked is None:
        if len(schema) < 2:
            return None
        linked = schema.names[::2], schema.names[1::2]
    check_linked(linked, tables.schema)
    made = tables.synthetic
    attacked = pd.concat([tables.train, tables.test], ignore_index=True)
    first, second = (_closest(attacked, made, tables.schema, part, rng) for part in linked)
    shared, n = first == second, len(tables.train)
    blind = Estimate(*[1 / len(made)] * 3)
    return Risk.of(
        "linkability",
        _told(linked, len(schema)),
        "two files about the same people, one with each set of columns",
        (rate_of(shared[:n], level), blind, rate_of(shared[n:], level)),
        (n, len(tables.test)),
        proved=proved,
        level=level,
    )


def check_linked(linked: tuple[Sequence[str], Sequence[str]], schema: Schema) -> None:
    """Raise InputError, naming the column, unless both parts are columns of the schema and disjoint."""
    for part in linked:
        if not part:
            raise InputError("linked needs two sets of columns, one is empty: write age,sex:wbc,crp")
        for name in part:
            if name not in schema.names:
                raise InputError(f"linked: {name!r} is not a column (columns: {few(schema.names)})")
    both = sorted(set(linked[0]) & set(linked[1]))
    if both:
        raise InputError(f"linked: {both[0]!r} is in both sets, and would link everybody by itself")


def tied_nearest(points: Floats, others: Floats, metric: Metric, seed: int) -> NDArray[np.int64]:
    """Return the nearest other of each point, shape (n,), drawn at random among those equally near.

    It takes a block of distances at a time. ``seed`` decides among them.

    Examples
    --------
    >>> flat = np.zeros((1000, 1))
    >>> index = tied_nearest(flat, flat[:2], metric_named("gower"), 0)
    >>> 400 < int((index == 0).sum()) < 600
    True
    """

    def one(rows: slice, tile: Floats) -> NDArray[np.int64]:
        rng = np.random.default_rng([seed, rows.start])
        border = tile.min(axis=1, keepdims=True)
        return np.where(tile == border, rng.random(tile.shape), 2.0).argmin(axis=1)

    return np.concatenate(over_tiles(one, points, others, metric))


def _closest(
    frame: pd.DataFrame, made: pd.DataFrame, schema: Schema, part: Sequence[str], rng: np.random.Generator
) -> NDArray[np.int64]:
    metric, of_part = metric_named("gower"), columns_of(schema, part)
    points, others = (metric.encode(table, of_part) for table in (frame, made))
    return tied_nearest(points, others, metric, int(rng.integers(2**63)))


def columns_of(schema: Schema, names: Sequence[str]) -> Schema:
    """Return a schema of these columns for distances: each as it stands, none computed, no rules."""
    plain = {"derived": None, "read_as": None}
    return Schema(columns=tuple(schema.column(name).model_copy(update=plain) for name in names))


def _told(linked: tuple[Sequence[str], Sequence[str]], columns: int) -> str:
    sizes = [len(part) for part in linked]
    if sum(sizes) > 8:
        return f"{sizes[0]} columns with {sizes[1]} others" + (
            " (every other one)" if sum(sizes) == columns else ""
        )
    return " with ".join(", ".join(part) for part in linked)
