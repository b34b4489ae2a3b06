"""XOR and parity: the outcome hangs on k columns together, and on no fewer of them.

Causes are independent fair coins, or numbers of which only the sign counts; the outcome is the parity of the
causes, wrong with probability ``WRONG``. Any k of the k + 1 columns are independent, so that no marginal of
fewer columns shows anything. Beside them stand distractors, which hang together among themselves: an
algorithm that looks at pairs spends what it has on those.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.ground.known import Structure, answers, is_yes, kept, number, numbers, yes_no
from dpsynth.table import Column, Schema

#: how often the outcome is not the parity
WRONG = 0.1
OUTCOME = "outcome"
STAGES = ("I", "II", "III", "IV")
#: of columns that have nothing to do with the outcome, but much with each other
DISTRACTORS = (
    number("distractor_1"),
    number("distractor_2"),
    yes_no("distractor_3"),
    yes_no("distractor_4"),
    Column(name="distractor_5", kind="ordinal", categories=STAGES),
)


def parity(causes: int, *, numeric: bool = False) -> Structure:
    """The parity of so many causes."""
    names = tuple(f"cause_{i}" for i in range(1, causes + 1))
    column: Callable[[str], Column] = number if numeric else yes_no
    title = "xor" if causes == 2 else f"parity{causes}"
    schema = Schema(
        name=title,
        columns=(*(column(name) for name in names), *DISTRACTORS, yes_no(OUTCOME)),
        outcome=OUTCOME,
    )

    def draw(n: int, rng: np.random.Generator) -> pd.DataFrame:
        values = rng.standard_normal((n, causes))
        if numeric:
            # rounding to two decimals makes zeros, whose sign would be lost
            values = np.where(np.abs(values) < 0.01, np.copysign(0.01, values), values)
        odd = (values > 0).sum(axis=1) % 2 == 1
        data = {
            name: numbers(v) if numeric else answers(v > 0) for name, v in zip(names, values.T, strict=True)
        }
        data |= distractors(n, rng)
        data[OUTCOME] = answers(odd ^ (rng.random(n) < WRONG))
        return pd.DataFrame(data)

    def score(frame: pd.DataFrame) -> float:
        signs = signs_of(frame, [*names, OUTCOME])
        # every factor is -1 or 1; an odd number of true causes makes an outcome of 1
        found = float((signs.prod(axis=1) * (-1) ** (causes + 1)).mean())
        return kept(found, 1 - 2 * WRONG)

    kind = "numbers (their signs count)" if numeric else "binary columns"
    return Structure(
        name=f"{title}_numeric" if numeric else title,
        about=f"Outcome: parity of {causes} independent {kind}, wrong in {WRONG:.0%}; five distractors.",
        schema=schema,
        draw=draw,
        score=score,
        score_name="parity kept (0: none)",
    )


def signs_of(frame: pd.DataFrame, names: list[str]) -> NDArray[np.float64]:
    """-1 or 1 for each value: no or yes, up to 0 or above; shape (n, names)."""

    def true(column: pd.Series) -> NDArray[np.bool_]:
        return np.asarray(column > 0) if pd.api.types.is_numeric_dtype(column) else is_yes(column)

    return np.column_stack([np.where(true(frame[name]), 1.0, -1.0) for name in names])


def distractors(n: int, rng: np.random.Generator) -> dict[str, NDArray]:
    """Values of :data:`DISTRACTORS`."""
    common = rng.standard_normal(n)
    leaning = 0.7 * common + np.sqrt(1 - 0.7**2) * rng.standard_normal((5, n))
    stage = np.digitize(leaning[4], [-0.5, 0.5, 1.5])
    return {
        "distractor_1": numbers(leaning[0]),
        "distractor_2": numbers(leaning[1]),
        "distractor_3": answers(leaning[2] > 0),
        "distractor_4": answers(leaning[3] > 1),
        "distractor_5": np.array(STAGES, dtype=object)[stage],
    }
