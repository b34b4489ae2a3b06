"""From a table to the numbers of a regression: the same terms for every table.

They are those of :mod:`dpsynth.studies.terms`. Records with a value missing among the columns of the model
take no part (complete cases).

What one table cannot tell is left out in that table only, each time with its reason: a column without any
value, a constant column, a category that does not occur, and a category in which the outcome is always the
same. In the last case (quasi-complete separation, Albert and Anderson 1984, "On the existence of maximum
likelihood estimates in logistic regression models") the category's estimate is infinite, and at infinity its
records have nothing to say about the other coefficients, so these are fitted without them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.checks import few
from dpsynth.studies.model import EffectsModel
from dpsynth.studies.terms import MAX_TERMS, Term, column_values, model_terms
from dpsynth.table.schema import Schema

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Design:
    """One table, ready to be fitted.

    ``names`` holds the term of each column of ``x``; empty for a contrast that adjusts but is not reported,
    because the reference category does not occur.
    """

    names: tuple[str, ...]
    x: Floats  # shape (n, p); without an intercept
    y: Floats  # shape (n,); 0 and 1, or the numbers of a linear model
    duration: Floats | None
    n_table: int  # records of the table
    n_incomplete: int  # those left out because a value is missing
    n_settled: int  # those left out because their category settles the outcome
    dropped: tuple[tuple[str, str], ...]  # terms that this table cannot tell, and why
    problem: str = ""  # why nothing can be fitted, in one sentence; empty otherwise


def design(frame: pd.DataFrame, schema: Schema, model: EffectsModel) -> Design:
    """Turn a conformed frame into the arrays of a regression that fits its schema."""

    def of(name: str) -> Floats:
        return column_values(schema, name, frame, log=name in model.logs)

    y = of(model.outcome)
    duration = None if model.duration is None else of(model.duration)
    known = ~np.isnan(y) if duration is None else ~np.isnan(y) & ~np.isnan(duration)
    values: dict[str, Floats] = {}
    absent: dict[tuple[str, int | None], str] = {}
    for column in model.columns(schema):
        numbers = of(column.name)
        if np.isnan(numbers[known]).all():
            absent[column.name, None] = "no value is present"
        else:
            values[column.name] = numbers
    complete = known & ~np.any([np.isnan(numbers) for numbers in values.values()] or [~known], axis=0)
    kept = complete
    reasons: dict[tuple[str, int | None], str] = {}
    if model.kind != "linear":
        kept, reasons = _unsettled(values, y, complete, schema, model)

    plan, dropped = _plan(model_terms(schema, model), schema, values, kept, {**absent, **reasons})
    problem = ""
    if not complete.any():
        problem = "no record has all values of the model" if known.any() else "no record has a known outcome"
        # each of the columns is then constant or absent, which says nothing more
        plan, dropped = [], []
    elif not kept.any():
        settling = few(dict.fromkeys(name for name, _ in reasons))
        problem = f"the outcome is perfectly separated: {settling} tells it for every record"
        plan, dropped = [], []
    elif len(plan) > MAX_TERMS:
        problem = f"the model has {len(plan):,} terms, and at most {MAX_TERMS} are fitted"
        plan = []
    x = np.empty((int(kept.sum()), len(plan)))
    for position, (_, term) in enumerate(plan):
        x[:, position] = term.values(values[term.column][kept])
    return Design(
        names=tuple(name for name, _ in plan),
        x=x,
        y=y[kept],
        duration=None if duration is None else duration[kept],
        n_table=len(frame),
        n_incomplete=int(len(frame) - complete.sum()),
        n_settled=int(complete.sum() - kept.sum()),
        dropped=tuple(dropped),
        problem=problem,
    )


def _plan(
    every: Sequence[Term],
    schema: Schema,
    values: Mapping[str, Floats],
    kept: Flags,
    reasons: Mapping[tuple[str, int | None], str],
) -> tuple[list[tuple[str, Term]], list[tuple[str, str]]]:
    """Choose the terms that are fitted, each with the name it is reported under, and those that are dropped.

    ``reasons`` to drop are by column and category; those of a whole column have None for the category.
    """
    plan: list[tuple[str, Term]] = []
    dropped: list[tuple[str, str]] = []
    for term in every:
        if term.column not in values:
            dropped.append((term.name, reasons[term.column, None]))
            continue
        numbers = values[term.column][kept]
        reason = reasons.get((term.column, term.category))
        if term.category is None:
            reason = "constant" if _constant(numbers) else None
        elif reason is None and not (numbers == term.category).any():
            reason = "the category does not occur"
        elif reason is None and not (numbers == 0).any():
            # The column still adjusts the others; its contrasts against the reference are unknown.
            reference = schema.column(term.column).categories[0]
            settled = reasons.get((term.column, 0))
            reason = f"of the reference {reference}: {settled}" if settled else f"no record has {reference}"
            if term.category != numbers.min():
                plan.append(("", term))
        if reason is None:
            plan.append((term.name, term))
        else:
            dropped.append((term.name, reason))
    return plan, dropped


def _unsettled(
    values: dict[str, Floats], y: Floats, complete: Flags, schema: Schema, model: EffectsModel
) -> tuple[Flags, dict[tuple[str, int | None], str]]:
    """Leave out the records of categories in which the outcome is always the same; say which and why.

    A Cox coefficient is infinite only without any event: a category of events alone still has its times.
    """
    kept = complete.copy()
    reasons: dict[tuple[str, int | None], str] = {}
    shown = schema.column(model.outcome).categories
    again = True
    # Leaving records out can empty the other outcome of another category.
    while again:
        again = False
        for name, numbers in values.items():
            if not schema.column(name).is_categorical or len(np.unique(y[kept])) < 2:
                continue
            size = len(schema.column(name).categories)
            codes = numbers[kept].astype(np.int64)
            count = np.bincount(codes, minlength=size)
            events = np.bincount(codes, weights=y[kept], minlength=size)
            for code in np.flatnonzero(count):
                always = events[code] == count[code] and model.kind == "logistic"
                if count[code] == count.sum() or not (events[code] == 0 or always):
                    continue
                every = f"every one of its {count[code]:,}" if count[code] > 1 else "its only"
                outcome = shown[1 if always else 0]
                record = "records" if count[code] > 1 else "record"
                reasons[name, int(code)] = f"{every} {record} has {model.outcome} = {outcome}"
                kept &= numbers != code
                again = True
    return kept, reasons


def _constant(numbers: Floats) -> bool:
    return not len(numbers) or float(np.ptp(numbers)) <= 1e-12 * float(np.abs(numbers).max())
