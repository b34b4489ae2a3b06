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

from dpsynth.checks import few
from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import FALSE_ALARMS, FEWEST
from dpsynth.table.schema import Column, Schema
from dpsynth.table.values import category_codes

OutcomeKind = Literal["binary", "categories", "numeric"]
#: an outcome counts as lost below this part of its real rate or spread, if chance does not explain it
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
    synthetic: pd.DataFrame, train: pd.DataFrame, schema: Schema, outcome: str
) -> tuple[bool | None, str]:
    """Say whether outcomes of the real records got lost in the synthetic table, and why, in one sentence.

    Categories of at least FEWEST training records are judged. One is lost if its synthetic rate is below
    LOST_RATIO of the real rate, and Fisher's exact test excludes chance. A number is lost if this holds for
    its standard deviation, by the test of Brown and Forsythe. A table of fresh records has lost any outcome
    with a probability of at most FALSE_ALARMS. None if nothing can be judged.

    References
    ----------
    Brown and Forsythe (1974), "Robust tests for the equality of variances", Journal of the American
    Statistical Association 69. Rows far out make it say less, and not more.
    """
    made, real = (known_outcomes(frame, schema, outcome)[1] for frame in (synthetic, train))
    if not len(made) or not len(real):
        table = "training" if len(made) else "synthetic"
        return (None, f"no {table} record has a known {outcome}")
    column = schema.column(outcome)
    if column.is_numeric:
        return _collapsed_number(made, real, outcome)
    names = [f"{outcome} = {category!r}" for category in column.categories]
    counts = [(int((made == code).sum()), int((real == code).sum())) for code in range(len(names))]
    judged = [code for code, (_, n_real) in enumerate(counts) if n_real >= FEWEST]
    sizes = (len(made), len(real))
    lost = [code for code in judged if _is_lost(*counts[code], *sizes, FALSE_ALARMS / len(judged))]
    gone = [code for code, (n_made, n_real) in enumerate(counts) if n_real and not n_made]
    told = few(_told(names[code], *counts[code], *sizes) for code in lost or gone)
    if lost:
        return True, told
    chance = f". Absent by chance, or of fewer than {FEWEST} training records: {told}" if gone else ""
    if not judged:
        return None, f"no {outcome} has {FEWEST} training records{chance}"
    return False, f"no {outcome} of at least {FEWEST} training records got lost{chance}"


def _is_lost(n_made: int, n_real: int, all_made: int, all_real: int, error: float) -> bool:
    from scipy.stats import hypergeom

    if n_made / all_made >= LOST_RATIO * n_real / all_real:
        return False
    return bool(hypergeom.cdf(n_made, all_made + all_real, n_made + n_real, all_made) <= error)


def _told(what: str, n_made: int, n_real: int, all_made: int, all_real: int) -> str:
    return f"{what} ({n_real:,} of {all_real:,} training records, {n_made:,} of {all_made:,} synthetic ones)"


def _collapsed_number(
    made: NDArray[np.int64 | np.float64], real: NDArray[np.int64 | np.float64], outcome: str
) -> tuple[bool | None, str]:
    from scipy.stats import levene

    if min(len(made), len(real)) < FEWEST:
        return None, f"fewer than {FEWEST} records have a known {outcome}"
    spread_made, spread_real = float(made.std()), float(real.std())
    smaller = spread_made < LOST_RATIO * spread_real
    collapsed = bool(smaller and levene(made, real, center="median").pvalue <= FALSE_ALARMS)
    what = "far smaller than" if collapsed else "not far smaller than"
    by_chance = " beyond chance" if smaller and not collapsed else ""
    return (
        collapsed,
        f"the standard deviation of {outcome}, {spread_made:.4g} in the synthetic records, is {what} "
        f"{spread_real:.4g} in the training records{by_chance}",
    )
