"""Ways to make synthetic patients at the same guarantee for a patient with all rows."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.peers.environments import Environments
from benchmarks.peers.processes import run
from benchmarks.peers.tables import as_numbers, from_numbers, public_facts
from dpsynth import Column, DPMarginals, PatientSchema, Schema
from dpsynth.patients.histories import Histories
from dpsynth.table.kinds.category import categories_at

DELTA = 1e-5
FITS = Path(__file__).parents[1] / "peers" / "fits"
#: seconds of processor time of a peer
LIMIT = 1500.0
Arm = Callable[[pd.DataFrame, PatientSchema, float, int], pd.DataFrame]


def several_rows(rows: pd.DataFrame, schema: PatientSchema, epsilon: float, seed: int) -> pd.DataFrame:
    """Fit and sample patients with a PatientSchema."""
    model = DPMarginals(epsilon, DELTA, random_state=seed).fit(rows, schema=schema)
    return model.sample(schema.n_public, random_state=seed)


def strangers(rows: pd.DataFrame, schema: PatientSchema, epsilon: float, seed: int) -> pd.DataFrame:
    """One random row of each patient and their number, fitted as a table. Rows are then drawn singly."""
    rng = np.random.default_rng(seed)
    one = rows.sample(frac=1, random_state=seed).groupby(schema.unit).head(1)
    count = rows.groupby(schema.unit).size().clip(upper=schema.most)
    one = one.assign(rows=one[schema.unit].map(count)).drop(columns=schema.unit)
    one = one.drop(columns=[] if schema.timed else schema.order)
    number = Column(name="rows", kind="integer", lower=1, upper=schema.most)
    table = Schema(columns=(*schema.columns, number), n_public=schema.n_public)
    model = DPMarginals(epsilon, DELTA, random_state=seed).fit(one, schema=table)
    patients = model.sample(schema.n_public, random_state=seed)
    who = np.repeat(np.arange(len(patients)), patients["rows"])
    made = model.sample(len(who), random_state=seed + 1).drop(columns="rows")
    own = list(schema.per_patient)
    made[own] = patients[own].iloc[who].to_numpy()
    made.insert(0, schema.unit, who)
    if schema.timed:
        return made.sort_values([schema.unit, schema.order], ignore_index=True)
    return made.assign(**{schema.order: rng.random(len(made))})


def _wide(schema: PatientSchema, first: int) -> Schema:
    """One row for a patient's ``first`` rows."""
    own = [schema.column(name) for name in schema.per_patient]
    later = [
        column.model_copy(update={"name": f"{column.name}@{k}", "missing": column.missing or k > 0})
        for k in range(first)
        for column in schema.rows.columns
    ]
    number = Column(name="rows", kind="integer", lower=1, upper=first)
    return Schema(columns=(*own, number, *later), n_public=schema.n_public)


def _flattened(rows: pd.DataFrame, schema: PatientSchema, first: int) -> pd.DataFrame:
    """Values of later rows beside the first, times as they are."""
    cut = schema.model_copy(update={"most": first})
    histories = Histories.of(rows, cut, np.random.default_rng(0))
    parts = dict(histories.patients) | {"rows": histories.rows}
    for k in range(first):
        for column in schema.rows.columns:
            values = histories.numbers[column.name][:, k]
            if not column.is_numeric:
                values = categories_at(column, values)
            parts[f"{column.name}@{k}"] = values
    return pd.DataFrame(parts)


def _long(wide: pd.DataFrame, schema: PatientSchema, first: int) -> pd.DataFrame:
    """Rows of wide patients: as many as drawn, times sorted, what is missing and may not be left out."""
    parts = []
    for k in range(first):
        there = wide[wide["rows"] > k]
        part = there[list(schema.per_patient)].copy()
        for column in schema.rows.columns:
            part[column.name] = there[f"{column.name}@{k}"]
        part[schema.unit] = there.index
        part[schema.order] = part[schema.order] if schema.timed else k
        parts.append(part)
    needed = [column.name for column in schema.rows.columns if not column.missing]
    return pd.concat(parts).dropna(subset=needed).sort_values([schema.unit, schema.order], ignore_index=True)


def wide(first: int) -> Arm:
    """One wide row a patient, of the first rows, fitted as a table."""

    def arm(rows: pd.DataFrame, schema: PatientSchema, epsilon: float, seed: int) -> pd.DataFrame:
        model = DPMarginals(epsilon, DELTA, random_state=seed)
        model.fit(_flattened(rows, schema, first), schema=_wide(schema, first))
        return _long(model.sample(schema.n_public, random_state=seed), schema, first)

    return arm


def _fitted(python: str, script: str, task: dict, numbers: pd.DataFrame) -> pd.DataFrame:
    """The numbers that a peer's script makes of those of the real rows."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "task.json").write_text(json.dumps(task))
        numbers.to_csv(folder / "train.csv", index=False)
        ended = run([python, str(FITS / script), place], folder=folder, limit=LIMIT)
        if ended.failed:
            raise RuntimeError(ended.failed)
        return pd.read_csv(folder / "synthetic.csv")


def wide_peer(first: int, method: str, environments: Environments) -> Arm:
    """One wide row a patient, fitted by dpmm's MST or AIM."""

    def arm(rows: pd.DataFrame, schema: PatientSchema, epsilon: float, seed: int) -> pd.DataFrame:
        table = _wide(schema, first)
        task = {"epsilon": epsilon, "delta": DELTA, "n": schema.n_public, "rows": schema.n_public}
        task |= {"seed": seed, "options": {"method": method}, "columns": public_facts(table), "outcome": None}
        numbers = as_numbers(table.conform(_flattened(rows, schema, first)).frame, table)
        made = _fitted(_python(environments, "dpmm"), "fit_dpmm.py", task, numbers)
        return _long(from_numbers(made, table), schema, first)

    return arm


def relational(environments: Environments, slots: int, first: int | None = None) -> Arm:
    """Patients and their first rows, or all, as two tables of google/dpsynth's relational mode."""

    def arm(rows: pd.DataFrame, schema: PatientSchema, epsilon: float, seed: int) -> pd.DataFrame:
        table = Schema(columns=schema.columns)
        columns = [
            facts | {"per_patient": column.name in schema.per_patient}
            for facts, column in zip(public_facts(table), table.columns, strict=True)
        ]
        task = {"epsilon": epsilon, "delta": DELTA, "seed": seed, "columns": [*columns, {"name": "unit"}]}
        task["options"] = {"most": first or schema.most, "slots": slots}
        rows = rows.sort_values(schema.order).groupby(schema.unit).head(first or schema.most)
        numbers = as_numbers(table.conform(rows[list(table.names)]).frame, table)
        numbers["unit"] = rows[schema.unit].to_numpy()
        made = _fitted(_python(environments, "google"), "fit_google_relational.py", task, numbers)
        long = from_numbers(made, table).assign(**{schema.unit: made["unit"]})
        if not schema.timed:
            long[schema.order] = np.arange(len(long))
        return long.sort_values([schema.unit, schema.order], ignore_index=True)

    return arm


#: cells of a number that may be missing, as many as flexsynth makes of any other
CELLS = 12


def markov(rscript: str, companions: int = 0) -> Arm:
    """flexsynth's chain of rows: the values of one depend on those of the row before.

    It has no missing values and cuts numbers into cells of one width. In its favour a time is the logarithm
    of the days since the row before, and a number that may be missing has a cell of its own for that.
    """

    def arm(rows: pd.DataFrame, schema: PatientSchema, epsilon: float, seed: int) -> pd.DataFrame:
        rows = rows.sort_values([schema.unit, schema.order], ignore_index=True)
        table = Schema(columns=schema.columns)
        facts = public_facts(table)
        time = schema.names.index(schema.order) if schema.timed else None
        numbers = as_numbers(table.conform(rows[list(table.names)]).frame, table)
        if time is not None:
            since = numbers.iloc[:, time].groupby(rows[schema.unit]).diff().fillna(numbers.iloc[:, time])
            numbers.isetitem(time, np.log1p(since - facts[time]["lower"]))
            longest = float(np.log1p(facts[time]["upper"] - facts[time]["lower"]))
            facts[time] = facts[time] | {"lower": 0.0, "upper": longest}
        columns = []
        for fact, name in zip(facts, schema.names, strict=True):
            numbers[fact["name"]], known = _without_missing(numbers[fact["name"]], fact)
            columns.append(known | {"name": fact["name"], "per_patient": name in schema.per_patient})
        numbers["unit"] = rows[schema.unit].to_numpy()
        numbers["row"] = rows.groupby(schema.unit).cumcount() + 1
        task = {"epsilon": epsilon, "delta": DELTA, "seed": seed, "columns": columns}
        task["options"] = {"most": schema.most, "companions": companions}
        made = _fitted(rscript, "fit_flexsynth.R", task, numbers)
        rng = np.random.default_rng(seed)
        for fact in facts:
            made[fact["name"]] = _with_missing(made[fact["name"]], fact, rng)
        if time is not None:
            name, start = facts[time]["name"], schema.columns[time].lower
            made[name] = np.expm1(made[name]).groupby(made["unit"]).cumsum() + start
        long = from_numbers(made, table).assign(**{schema.unit: made["unit"]})
        return long if schema.timed else long.assign(**{schema.order: made["row"]})

    return arm


def _without_missing(values: pd.Series, fact: dict) -> tuple[pd.Series, dict]:
    """Codes of categories and of cells, the last of them for no value, or numbers that are always there."""
    if "size" in fact:
        return values.fillna(fact["size"]), {"size": fact["size"] + fact["missing"]}
    if not fact["missing"]:
        return values, {"lower": fact["lower"], "upper": fact["upper"]}
    cells = (values - fact["lower"]) / (fact["upper"] - fact["lower"]) * CELLS
    return np.floor(cells).clip(0, CELLS - 1).fillna(CELLS), {"size": CELLS + 1}


def _with_missing(values: pd.Series, fact: dict, rng: np.random.Generator) -> pd.Series:
    """The inverse of :func:`_without_missing`, with a random number of each cell."""
    if not fact["missing"]:
        return values
    if "size" in fact:
        return values.where(values < fact["size"])
    within = (values + rng.random(len(values))) / CELLS
    return (fact["lower"] + within * (fact["upper"] - fact["lower"])).where(values < CELLS)


def _python(environments: Environments, name: str) -> str:
    python = environments[name].python
    if python is None:
        raise RuntimeError(environments[name].failed)
    return python
