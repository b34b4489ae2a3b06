"""The outcome of a table: what kind it is, how often each value occurs, and whether a value got lost.

An outcome is *binary* (two declared categories), one of several *categories*, or *numeric*. The first two are
classified, the last one is regressed. A generator that collapses gives one of the outcomes hardly ever or
never. The area under a curve may hide that, so the rates are reported beside it.

Intervals of rates are Wilson's (1927, Journal of the American Statistical Association 22) and take the
records as independent. Rows of a synthetic table that was post-processed to match marginals are not. Their
interval then only says how much as many independent rows would vary.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import share
from dpsynth.table.schema import Column, Schema
from dpsynth.table.values import category_codes

OutcomeKind = Literal["binary", "categories", "numeric"]
#: a category counts as lost below this part of its real rate, if the intervals are also disjoint
LOST_RATIO = 0.2


def check_outcome(schema: Schema, outcome: str) -> None:
    """Refuse an outcome that no model could predict."""
    column = schema.column(outcome)
    if len(schema) < 2:
        raise InputError(f"outcome {outcome!r} is the only column: there is nothing to predict it from")
    if column.is_date:
        raise InputError(f"outcome {outcome!r} is a date. Declare a number of days as a derived column")
    if not column.is_numeric and len(column.categories) < 2:
        only = column.categories[0]
        raise InputError(f"outcome {outcome!r} has the category {only!r} only: there is nothing to predict")


def outcome_kind(column: Column) -> OutcomeKind:
    """Return how a column is predicted: as two categories, as more than two, or as a number."""
    if column.is_numeric:
        return "numeric"
    return "binary" if len(column.categories) == 2 else "categories"


def known_outcomes(
    frame: pd.DataFrame, schema: Schema, outcome: str
) -> tuple[pd.DataFrame, NDArray[np.int64 | np.float64]]:
    """Return the records whose outcome is known, and the outcomes: positions of categories, or numbers."""
    column = schema.column(outcome)
    if column.is_numeric:
        values = frame[outcome].to_numpy(dtype=np.float64, na_value=np.nan)
        known = ~np.isnan(values)
    else:
        values = category_codes(column, frame[outcome])
        known = values >= 0
    return frame[known], values[known]


def mean_interval(values: NDArray[np.float64], level: float = 0.95) -> tuple[float, float] | None:
    """Student's confidence interval of a mean over independent records, None for fewer than two."""
    from scipy.special import stdtrit

    if len(values) < 2:
        return None
    half = float(stdtrit(len(values) - 1, 0.5 + level / 2)) * float(values.std(ddof=1)) / np.sqrt(len(values))
    return float(values.mean() - half), float(values.mean() + half)


def mode_collapse(
    synthetic: pd.DataFrame, train: pd.DataFrame, schema: Schema, outcome: str, *, level: float = 0.95
) -> tuple[bool | None, str]:
    """Say whether outcomes of the real records got lost in the synthetic table, and why, in one sentence.

    A category is lost if it does not occur among the synthetic records. It is also lost if its rate there is
    below a fifth of the real rate and the two Wilson intervals are disjoint. A numeric outcome is lost if its
    standard deviation is below a fifth of the real one. None if one of the tables has no known outcome.
    """
    made, real = (known_outcomes(frame, schema, outcome)[1] for frame in (synthetic, train))
    if not len(made) or not len(real):
        table = "training" if len(made) else "synthetic"
        return (None, f"no {table} record has a known {outcome}")
    column = schema.column(outcome)
    if column.is_numeric:
        spread_made, spread_real = float(made.std()), float(real.std())
        collapsed = spread_real > 0 and spread_made < LOST_RATIO * spread_real
        what = "far smaller than" if collapsed else "not far smaller than"
        return (
            collapsed,
            f"the standard deviation of {outcome}, {spread_made:.4g} in the synthetic records, is {what} "
            f"{spread_real:.4g} in the training records",
        )
    lost = [
        sentence
        for code, category in enumerate(column.categories)
        if (sentence := _lost(made == code, real == code, f"{outcome} = {category!r}", level))
    ]
    return (
        bool(lost),
        ", ".join(lost) or f"every {outcome} of the training records occurs among the synthetic ones",
    )


def _lost(made: NDArray[np.bool_], real: NDArray[np.bool_], what: str, level: float) -> str:
    """Say how a category was lost, empty if it was not."""
    n_made, n_real = int(made.sum()), int(real.sum())
    if not n_real:
        return ""
    in_made, in_real = (share(int(of.sum()), len(of), level, method="wilson") for of in (made, real))
    disjoint = in_made.upper < in_real.lower
    if n_made and not (disjoint and n_made / len(made) < LOST_RATIO * n_real / len(real)):
        return ""
    counts = f"{n_real:,} of {len(real):,} training records, {n_made:,} of {len(made):,} synthetic records"
    chance = "" if disjoint else " (tables of these sizes may differ so much by chance)"
    return f"{what}: {counts}{chance}"
