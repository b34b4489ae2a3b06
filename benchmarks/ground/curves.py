"""Mixtures whose records lie near curves: rings, moons and bananas, seen through six numbers each.

Each class has its curves in a plane; six numbers are combinations of the two coordinates (of the bananas, of
their product and squares too) plus a little noise. A pair of numbers shows a blurred projection; that all six
lie near one curve is seen by all together only. The structure score is the share of records within the
distance from the curves of their own class that 99 of 100 real records keep; independent columns have none
of it, a Gaussian of each class's means and covariances .2 to .3.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pandas as pd

from benchmarks.ground.known import Floats, Structure, answers, is_yes, number, numbers, yes_no
from dpsynth.table import Schema

OUTCOME = "outcome"
NUMBERS = tuple(f"x{i}" for i in range(1, 7))
#: standard deviation of the noise in each number
THICKNESS = 0.08
#: share of real records that lie within the distance
WITHIN = 0.99

#: from positions along the curve in [0, 1) and classes to points of the plane, shape (n, 2)
Curve = Callable[[Floats, np.ndarray], Floats]


def _rings(t: Floats, positive: np.ndarray) -> Floats:
    radius = np.where(positive, 1.0, 2.0)
    return radius[:, None] * np.column_stack([np.cos(2 * np.pi * t), np.sin(2 * np.pi * t)])


def _moons(t: Floats, positive: np.ndarray) -> Floats:
    turn = np.where(positive, 1.0, -1.0)
    x, y = np.cos(np.pi * t) - 0.5 * turn, np.sin(np.pi * t) - 0.25
    return 1.5 * np.column_stack([x, turn * y])


def _bananas(t: Floats, positive: np.ndarray) -> Floats:
    """Two bananas a class, which cross those of the other class."""
    half, inner = np.floor(2 * t), 4 * ((2 * t) % 1.0) - 2
    x, y = inner, 0.6 * inner**2 - 1.2 + 1.2 * half
    return np.where(positive[:, None], np.column_stack([x, -y]), np.column_stack([y, x]))


def _lift(points: Floats, *, bent: bool) -> Floats:
    """Six numbers of two: a fixed matrix with orthogonal columns, and squares where it is bent."""
    terms = points
    if bent:
        x, y = points.T
        terms = np.column_stack([points, 0.4 * x * y, 0.4 * (x**2 - 1)])
    rng = np.random.default_rng([15, terms.shape[1]])
    basis, _ = np.linalg.qr(rng.standard_normal((len(NUMBERS), terms.shape[1])))
    return np.asarray(terms @ basis.T * 1.3)


def curved(name: str, curve: Curve, about: str, *, bent: bool = False) -> Structure:
    """A structure of one curve a class."""

    def draw(n: int, rng: np.random.Generator) -> pd.DataFrame:
        positive = rng.random(n) < 0.5
        on = _lift(curve(rng.random(n), positive), bent=bent)
        values = numbers(on + THICKNESS * rng.standard_normal(on.shape))
        return pd.DataFrame({**dict(zip(NUMBERS, values.T, strict=True)), OUTCOME: answers(positive)})

    def distances(frame: pd.DataFrame) -> Floats:
        from scipy.spatial import cKDTree

        positive = is_yes(frame[OUTCOME])
        points = frame[list(NUMBERS)].to_numpy(dtype=np.float64)
        found = np.empty(len(frame))
        along = np.linspace(0.0, 1.0, 4000, endpoint=False)
        for one in (False, True):
            tree = cKDTree(_lift(curve(along, np.full(len(along), one)), bent=bent))
            found[positive == one] = tree.query(points[positive == one])[0]
        return found

    @cache
    def reach() -> float:
        return float(np.quantile(distances(draw(100_000, np.random.default_rng(15))), WITHIN))

    return Structure(
        name=name,
        about=about,
        schema=Schema(
            name=name, columns=(*(number(column) for column in NUMBERS), yes_no(OUTCOME)), outcome=OUTCOME
        ),
        draw=draw,
        score=lambda frame: float((distances(frame) <= reach()).mean()) / WITHIN,
        score_name="share of draws on the curves, real records 1",
    )


RINGS = curved("rings", _rings, "Two rings, one inside the other, in six numbers; outcome: which ring.")
MOONS = curved("moons", _moons, "Two interlocking half circles in six numbers; outcome: which one.")
BANANAS = curved(
    "bananas", _bananas, "Four crossing bananas, bent once more, in six numbers; two a class.", bent=True
)
