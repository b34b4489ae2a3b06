"""Outcomes drawn from a declared regression, for synthetic records whose predictors are there already.

Records that lack a value of the model keep the outcome that they have. When a record of a survival model is
last seen, in case it has no event before, is drawn from the Kaplan-Meier estimate of the synthetic records'
own ends of observation, apart from the predictors.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.regression.design import StudyDesign
from dpsynth.table.column import Column
from dpsynth.table.conform import cast, round_frame
from dpsynth.table.values import numeric_values

Floats = NDArray[np.float64]


def redrawn(design: StudyDesign, beta: Floats, frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """The frame with outcomes (and times) drawn from a regression.

    Parameters
    ----------
    design : StudyDesign
    beta : ndarray of shape (d,)
        Coefficients of the standardised terms, intercepts first.
    frame : DataFrame of shape (n, columns)
        Synthetic records, conformed to the design's schema; it is not changed.
    rng : numpy.random.Generator
    """
    x, _, complete = design.all(frame)
    if not complete.any():
        return frame
    drawn = design.family.draw(design.rows(x[complete]) @ beta, rng)
    column = design.schema.column(design.model.outcome)
    if design.model.kind == "linear":
        return frame.assign(**{column.name: _number(design, column, frame, complete, drawn)})
    events = drawn
    changed = {}
    if design.model.duration is not None:
        duration = design.schema.column(design.model.duration)
        times, events = _ends(design, duration, frame, complete, drawn, rng)
        changed[duration.name] = _numbers(duration, frame, complete, times)
    codes = np.asarray(frame[column.name], dtype=object).copy()
    categories = np.array(column.categories, dtype=object)
    codes[complete] = categories[events.astype(np.int64)]
    return frame.assign(**changed, **{column.name: cast(column, codes, frame.index)})


def _number(
    design: StudyDesign, column: Column, frame: pd.DataFrame, complete: NDArray[np.bool_], drawn: Floats
) -> pd.Series:
    values = design.outcome[0] + design.outcome[1] * drawn
    values = np.exp(np.minimum(values, 700.0)) if column.name in design.model.logs else values
    return _numbers(column, frame, complete, values)


def _numbers(column: Column, frame: pd.DataFrame, complete: NDArray[np.bool_], values: Floats) -> pd.Series:
    """A numeric column with other values in some records, inside its bounds and on its steps."""
    numbers = numeric_values(column, frame[column.name]).copy()
    numbers[complete] = np.clip(values, column.lower, column.upper)
    return round_frame((column,), pd.DataFrame({column.name: cast(column, numbers, frame.index)}))[
        column.name
    ]


def _ends(
    design: StudyDesign,
    duration: Column,
    frame: pd.DataFrame,
    complete: NDArray[np.bool_],
    drawn: Floats,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Time last seen, and whether an event was, of each complete record."""
    ends = np.r_[0.0, design.boundaries]
    event_times = np.where(drawn < 0, np.interp(-drawn, np.arange(len(ends)), ends), np.inf)
    times = numeric_values(duration, frame[duration.name])[complete]
    outcome = design.schema.column(design.model.outcome)
    censored = numeric_values(outcome, frame[outcome.name])[complete] == 0
    last_seen = _last_seen(times, censored, rng)
    return np.minimum(event_times, last_seen), (event_times <= last_seen).astype(np.float64)


def _last_seen(times: Floats, censored: NDArray[np.bool_], rng: np.random.Generator) -> Floats:
    """Ends of observation from their Kaplan-Meier estimate: an event hides when it would have been."""
    order = np.argsort(times, kind="stable")
    at_risk = len(times) - np.arange(len(times))
    seen = np.cumprod(1.0 - censored[order] / at_risk)
    place = np.searchsorted(-seen, -rng.random(len(times)), side="right")
    return times[order][np.minimum(place, len(times) - 1)]
