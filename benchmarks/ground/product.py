"""A smooth interaction: the outcome's log odds are in proportion to the product of two numbers.

The counterpart of the XOR of two numbers, of which only the signs count: here it counts how large they are.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from benchmarks.ground.known import Structure, answers, is_yes, kept, number, numbers, yes_no
from benchmarks.ground.parities import DISTRACTORS, OUTCOME, distractors
from dpsynth.table import Schema

#: log odds a unit of the product; the outcome's rate is one half
SLOPE = 1.5
CAUSES = ("cause_1", "cause_2")


def draw(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Independent records."""
    values = rng.standard_normal((n, 2))
    ill = rng.random(n) < 1 / (1 + np.exp(-SLOPE * values.prod(axis=1)))
    data = {name: numbers(v) for name, v in zip(CAUSES, values.T, strict=True)}
    return pd.DataFrame(data | distractors(n, rng) | {OUTCOME: answers(ill)})


def joint(frame: pd.DataFrame) -> float:
    """Mean of the product of both numbers, counted negative where there is no outcome."""
    signs = np.where(is_yes(frame[OUTCOME]), 1.0, -1.0)
    return float((frame[list(CAUSES)].prod(axis=1) * signs).mean())


@cache
def true_joint() -> float:
    """That of the population, to about .001: of a million records."""
    return joint(draw(1_000_000, np.random.default_rng(15)))


PRODUCT = Structure(
    name="product",
    about=f"Outcome: log odds {SLOPE} times the product of two independent numbers; five distractors.",
    schema=Schema(
        name="product",
        columns=(*(number(name) for name in CAUSES), *DISTRACTORS, yes_no(OUTCOME)),
        outcome=OUTCOME,
    ),
    draw=draw,
    score=lambda frame: kept(joint(frame), true_joint()),
    score_name="product with the outcome kept (0: none)",
)
