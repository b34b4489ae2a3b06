"""Linkability: two sets of columns about one person, held apart, joined by way of the synthetic table.

The attacker holds some columns of a person in one file and others in a second file, and wants to know whether
both are the same person. With each part she looks for the closest synthetic record; where both parts lead to
the same synthetic record, she links them. As in anonymeter an attack is right where the parts of one person
are linked, and the attacker without the table picks both synthetic records blindly.

Against anonymeter: parts of few discrete columns have many closest synthetic records at one and the same
distance. Which of them is taken is drawn for each part by itself; taking the first of them in the table both
times, as a sort does, links everybody. Distances are Gower's over the public bounds, and two missing values
are equal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.attacks.synthetic.risk import Risk, compared
from dpsynth.checks import few
from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import Estimate
from dpsynth.evaluation.neighbours.search import Metric, metric_named, over_tiles
from dpsynth.evaluation.tables import Tables
from dpsynth.table.schema import Schema

Floats = NDArray[np.float64]


def link_people(
    tables: Tables,
    linked: tuple[Sequence[str], Sequence[str]] | None = None,
    *,
    rng: np.random.Generator,
    neighbours: int = 1,
    proved: float | None = None,
    level: float = 0.95,
) -> Risk | None:
    """Attack with two sets of columns.

    Parameters
    ----------
    tables : Tables
        With held-out records. All training and held-out records are attacked.
    linked : pair of sequences of str, optional
        The columns of each part; by default every other column of the schema.
    neighbours : int
        Closest synthetic records that are looked at; a link is one that both parts share.
    proved : float, optional
        Upper bound on the excess over held-out records.

    Returns
    -------
    Risk or None
        None with a single column, which cannot be held in two parts.

    Raises
    ------
    InputError
        If a column is unknown, or in both parts, or a part is empty.
    """
    assert tables.test is not None
    schema = tables.schema.modelled
    if linked is None:
        if len(schema) < 2:
            return None
        linked = schema.names[::2], schema.names[1::2]
    check_linked(linked, tables.schema)
    made = tables.synthetic
    k = min(neighbours, len(made))
    attacked = pd.concat([tables.train, tables.test], ignore_index=True)
    near = [_closest(attacked, made, tables.schema, part, k, rng) for part in linked]
    shared = (near[0][:, :, None] == near[1][:, None, :]).any(axis=(1, 2))
    n = len(tables.train)
    found = compared(shared[:n], shared[n:], level)
    blind = _blind(len(made), k)
    return Risk(
        "linkability",
        _told(linked, len(schema)),
        "two files about the same people, one with each set of columns",
        found.rate,
        Estimate(blind, blind, blind),
        found.held_out,
        found.excess,
        found.normalised,
        (n, len(tables.test)),
        proved,
        level,
        f"the closest {k} synthetic records of each part" if k > 1 else "",
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


def tied_nearest(points: Floats, others: Floats, metric: Metric, k: int, seed: int) -> NDArray[np.int64]:
    """Return k nearest others of each point, shape (n, k), drawn at random among those equally near.

    A block of distances at a time; ``seed`` is of the draws.

    Examples
    --------
    >>> flat = np.zeros((1000, 1))
    >>> index = tied_nearest(flat, flat[:2], metric_named("gower"), 1, 0)
    >>> 400 < int((index == 0).sum()) < 600
    True
    """

    def one(rows: slice, tile: Floats) -> NDArray[np.int64]:
        rng = np.random.default_rng([seed, rows.start])
        border = np.partition(tile, k - 1, axis=1)[:, k - 1 : k]
        key = np.where(tile < border, -1.0, np.where(tile == border, rng.random(tile.shape), 2.0))
        return np.asarray(np.argpartition(key, k - 1, axis=1)[:, :k], dtype=np.int64)

    return np.concatenate(over_tiles(one, points, others, metric))


def _closest(
    frame: pd.DataFrame,
    made: pd.DataFrame,
    schema: Schema,
    part: Sequence[str],
    k: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    metric, of_part = metric_named("gower"), columns_of(schema, part)
    points, others = (metric.encode(table, of_part) for table in (frame, made))
    return tied_nearest(points, others, metric, k, int(rng.integers(2**63)))


def columns_of(schema: Schema, names: Sequence[str]) -> Schema:
    """Return a schema of these columns for distances: each as it stands, none computed, no rules."""
    columns = tuple(schema.column(name).model_copy(update={"derived": None}) for name in names)
    return Schema(columns=columns)


def _blind(m: int, k: int) -> float:
    """Probability that two blind choices of k of m records share one."""
    if 2 * k > m:
        return 1.0
    missed = np.log1p(-k / (m - np.arange(k))).sum()
    return float(-np.expm1(missed))


def _told(linked: tuple[Sequence[str], Sequence[str]], columns: int) -> str:
    sizes = [len(part) for part in linked]
    if sum(sizes) > 8:
        return f"{sizes[0]} columns with {sizes[1]} others" + (
            " (every other one)" if sum(sizes) == columns else ""
        )
    return " with ".join(", ".join(part) for part in linked)
