"""The tables of the comparison, and what a peer is told of them: public facts, and numbers for everything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.ground.structures import STRUCTURES
from benchmarks.ground.tables import Ground, of_structure
from dpsynth import datasets
from dpsynth.datasets import Table, files
from dpsynth.table.files import read_cells
from dpsynth.table.schema import Column, Schema

#: half of the records train, half test, by a split that every arm shares
TEST_FRACTION, SPLIT_SEED = 0.5, 0
#: training records of a table of known structure
GROUND_RECORDS = 20_000
#: of Diabetes-130: the columns that the comparison keeps, outcome last
DIABETES_COLUMNS = (
    "race",
    "gender",
    "age",
    "admission_type",
    "discharge",
    "admission_source",
    "specialty",
    "time_in_hospital",
    "num_lab_procedures",
    "num_procedures",
    "num_medications",
    "number_outpatient",
    "number_emergency",
    "number_inpatient",
    "number_diagnoses",
    "primary_diagnosis",
    "A1Cresult",
    "insulin",
    "diabetesMed",
    "readmitted",
)


def diabetes130_any() -> Table:
    """Diabetes-130, one row a patient, 20 columns; the outcome is any readmission, not that in 30 days."""
    card = datasets.card("diabetes130")
    path = files.require_file(card, None)
    columns = [card.table[name].model_copy(update={"name": source}) for name, source in card.sources.items()]
    raw, _ = read_cells(path, columns)
    later = raw.assign(readmitted=raw["readmitted"].replace(">30", "<30"))
    whole = files.table_of(card, later, path)
    schema = whole.schema.select(DIABETES_COLUMNS)
    return replace(whole, frame=whole.frame[list(schema.names)], schema=schema)


@cache
def ground(name: str) -> Ground:
    """A table of known structure, the same draws for every arm and seed."""
    return of_structure(name, GROUND_RECORDS, SPLIT_SEED)


@cache
def split(name: str) -> tuple[Table, Table]:
    """Training and test half of a table of the registry, of this module, or of known structure.

    They have no constraints: rules between columns are left out, since no peer can be told them.
    """
    if name in STRUCTURES:
        known = ground(name)
        return Table(known.train, known.schema, name), Table(known.test, known.schema, name)
    whole = MADE[name]() if name in MADE else datasets.load(name)
    schema = whole.schema
    plain = Schema(columns=schema.columns, outcome=schema.outcome, n_public=schema.n_public, name=name)
    table = replace(whole, schema=plain, frame=plain.conform(whole.frame).frame)
    return datasets.train_test(table, test_fraction=TEST_FRACTION, seed=SPLIT_SEED)


def public_facts(schema: Schema) -> list[dict[str, Any]]:
    """What the scripts are told of each column: plain numbers, under names that no peer trips over."""
    return [_facts(number, column) for number, column in enumerate(schema.columns)]


def as_numbers(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Categories as whole numbers from 0 in the declared order, missing values as NaN."""
    numbers = {}
    for facts, column in zip(public_facts(schema), schema.columns, strict=True):
        values = frame[column.name]
        if not column.is_numeric:
            place = {category: code for code, category in enumerate(column.categories)}
            values = values.astype(object).map(place)
        numbers[facts["name"]] = values.to_numpy(dtype=float, na_value=np.nan)
    return pd.DataFrame(numbers)


def from_numbers(numbers: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The inverse of :func:`as_numbers`, within the bounds; where a value may not be missing, none is.

    Raises
    ------
    ValueError
        If a column holds a number that is no category, or lacks values that must be there.
    """
    frame = {}
    for facts, column in zip(public_facts(schema), schema.columns, strict=True):
        values = numbers[facts["name"]].to_numpy(dtype=float)
        absent = np.isnan(values)
        if absent.any() and not column.missing:
            raise ValueError(f"{column.name}: {absent.sum()} values are missing, where none may be")
        if column.is_numeric:
            frame[column.name] = _numeric(values, column)
            continue
        known = np.isin(values[~absent], np.arange(len(column.categories)))
        if not known.all():
            raise ValueError(f"{column.name}: {values[~absent][~known][0]:g} is no category")
        words = np.array([*column.categories, None], dtype=object)
        frame[column.name] = words[np.where(absent, len(column.categories), values).astype(int)]
    return pd.DataFrame(frame)


def _facts(number: int, column: Column) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": f"c{number:02d}", "kind": column.kind, "missing": column.missing}
    if not column.is_numeric:
        return facts | {"size": len(column.categories)}
    return facts | {
        "lower": column.lower,
        "upper": column.upper,
        "step": column.resolution,
        "scale": column.scale,
    }


def _numeric(values: np.ndarray, column: Column) -> np.ndarray:
    clipped = np.clip(values, column.lower, column.upper)
    return np.round(clipped) if column.kind == "integer" else clipped


MADE: dict[str, Callable[[], Table]] = {"diabetes130_any": diabetes130_any}
