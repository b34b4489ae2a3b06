"""Rows of synthetic patients: trajectories, and rows for given levels. Post-processing, free of cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import mutual_info_score

from dpsynth.errors import RejectionError
from dpsynth.files.codec import record
from dpsynth.patients.courses import by_turn, row_tables, small_categories
from dpsynth.patients.courses.drawing import RowsDrawing, SyntheticLevels
from dpsynth.patients.courses.links import Links
from dpsynth.patients.schema import PatientSchema
from dpsynth.patients.series import Floats, Ints
from dpsynth.synthesis.row_rules import lawful
from dpsynth.table.column import Column
from dpsynth.table.kinds.category import categories_at, category_codes
from dpsynth.table.kinds.number import step_values

#: Patients that are drawn at once, which bounds memory.
_BLOCK = 20_000
#: Draws of patients of whom a row breaks a rule.
_TURNS = 10


@record
@dataclass(frozen=True)
class Trajectories:
    """Distributions of what each row adds to a patient's levels, one for each of `row_tables`.

    ``parents`` are those of `row_tables`. ``learned``: see `learned_of`.
    ``noise_std``: of each count that they were estimated from.
    """

    schema: PatientSchema
    tables: tuple[Floats, ...]
    parents: Mapping[str, str]
    noise_std: float
    learned: Mapping[str, Floats]

    @classmethod
    def of(
        cls,
        schema: PatientSchema,
        noisy: Sequence[Floats],
        noise_std: float,
        parents: Mapping[str, str],
        learned: Mapping[str, Floats],
    ) -> Trajectories:
        """Estimate the distributions from noisy tables."""
        tables = row_tables(schema.courses, parents)
        found = [table.estimate(sums, noise_std) for table, sums in zip(tables, noisy, strict=True)]
        return cls(schema, tuple(found), parents, noise_std, learned)

    @property
    def named(self) -> dict[tuple[str, str], Floats]:
        """The distributions by kind and column of their table."""
        tables = row_tables(self.schema.courses, self.parents)
        return {(table.kind, table.column): p for table, p in zip(tables, self.tables, strict=True)}


def learned_of(schema: PatientSchema, levels: pd.DataFrame) -> dict[str, Floats]:
    """What courses learn from the levels of synthetic patients, by column."""
    within: dict[str, list[str]] = {}
    for presence in schema.presences:
        for name in presence.columns:
            within.setdefault(name, []).append(presence.level)
    made = SyntheticLevels(levels, schema.levels, within)
    found: dict[str, Floats] = {}
    for course in schema.courses:
        found |= course.learned(made)
    return found


def likely_parents(schema: PatientSchema, levels: pd.DataFrame) -> dict[str, str]:
    """For each category of few values the earlier one with which it shares most information.

    The levels are of synthetic patients: the information is that of their most frequent categories.
    """
    columns, found = small_categories(schema.courses), {}
    codes = [category_codes(column, levels[f"{column.name} mode"]) for column in columns]
    for k, column in enumerate(columns[1:], start=1):
        shared = [mutual_info_score(codes[k], codes[j]) for j in range(k)]
        found[column.name] = columns[int(np.argmax(shared))].name
    return found


def draw_rows(
    model: Trajectories, levels: pd.DataFrame, rng: np.random.Generator, before: int = 0
) -> pd.DataFrame:
    """Rows of synthetic patients with these levels, in order. The unit counts on from ``before``."""
    parts = []
    for start in range(0, max(len(levels), 1), _BLOCK):
        parts.append(_block(model, levels.iloc[start : start + _BLOCK], rng, before + start + 1))
    return pd.concat(parts, ignore_index=True)


def _block(model: Trajectories, levels: pd.DataFrame, rng: np.random.Generator, number: int) -> pd.DataFrame:
    """Rows of a block of patients, the first of whom has this number.

    Patients of whom a row breaks a rule are drawn again, at last with the levels of others.
    """
    open_, done, parts = np.arange(len(levels)), np.zeros(0, np.int64), []
    chosen = open_
    for turn in range(_TURNS):
        frame, unit, broken = _frame(model, levels.iloc[chosen].reset_index(drop=True), rng)
        wrong = np.bincount(unit[broken], minlength=len(open_)) > 0
        frame.insert(0, model.schema.unit, open_[unit] + number)
        if not model.schema.timed:
            frame.insert(1, model.schema.order, frame.groupby(model.schema.unit).cumcount() + 1)
        parts.append(frame[~wrong[unit]])
        done, open_ = np.concatenate([done, chosen[~wrong]]), open_[wrong]
        if not len(open_):
            return pd.concat(parts).sort_values(model.schema.unit, kind="stable", ignore_index=True)
        if not len(done):
            break
        chosen = open_ if turn < _TURNS // 2 else done[rng.integers(0, len(done), len(open_))]
    rules = "; ".join(map(str, model.schema.constraints))
    raise RejectionError(
        "the rows of synthetic patients cannot obey all constraints together "
        f"({rules}). Correct them if they are not true of the real table"
    )


def _frame(
    model: Trajectories, levels: pd.DataFrame, rng: np.random.Generator
) -> tuple[pd.DataFrame, Ints, NDArray[np.bool_]]:
    """The rows, the place of each row's patient, and which rows break a rule."""
    schema = model.schema
    links = next(course.columns for course in schema.courses if isinstance(course, Links))
    drawing = RowsDrawing(
        levels,
        schema.levels,
        most=schema.most,
        tables=model.named,
        learned=model.learned,
        parents=model.parents,
        links={name: k for k, name in enumerate(links)},
        terminal=schema.terminal,
        time_unit=schema.column(schema.order).calendar_unit if schema.timed else 1.0,
        rng=rng,
    )
    for course in by_turn(schema.courses):
        course.draw(drawing)
    needed = [column.name for column in schema.variables if not column.missing]
    drawing.leave_out([column.name for column in schema.variables], needed)
    columns = (*((schema.column(schema.order),) if schema.timed else ()), *schema.variables)
    data = {column.name: _values(column, drawing.columns[column.name][drawing.here]) for column in columns}
    for name in schema.levels.names:
        if name in schema.per_patient:
            data[name] = np.repeat(levels[name].to_numpy(), drawing.count)
    patient = np.repeat(np.arange(len(drawing.count)), drawing.count)
    own = schema.table.modelled.conform(pd.DataFrame(data)).frame
    frame, broken = lawful(own, schema, patient, rng)
    return frame, patient, broken


def _values(column: Column, numbers: Floats) -> Any:
    """Drawn numbers as values of a column, within its bounds and on its steps."""
    if not column.is_numeric:
        return categories_at(column, numbers)
    lower, upper = column.bounds
    if column.resolution is not None:
        numbers = step_values(column, np.rint((numbers - lower) / column.resolution))
    return column.series(np.clip(numbers, lower, upper))
