"""Populations and declared studies of `studies.py`: a table, a schema, a regression, a number of records.

A case with ``nulls`` gets two covariates that know nothing, drawn anew for every resample: a coin and a
normal number. Their population coefficient is 0, and those of the other terms are what they are without them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

import dpsynth
from dpsynth.studies.study import Study
from dpsynth.table.schema import Column, Schema

NULLS = (
    Column(name="null_binary", kind="binary", categories=(0, 1)),
    Column(name="null_normal", kind="continuous", lower=-5, upper=5, decimals=2),
)
Population = tuple[pd.DataFrame, Schema]


@dataclass(frozen=True)
class Case:
    """A study of a table that is taken as the population; ``n`` records are drawn of it with replacement."""

    name: str
    table: Callable[[], Population]
    model: str
    n: int
    intervals: tuple[float, ...] | None = None
    nulls: bool = False

    def population(self) -> Population:
        """Its frame, conformed, and the schema with ``n`` as the public number of records."""
        return _conformed(self.table, self.n)

    def study(self, *, nulls: bool | None = None) -> Study:
        """What is declared; ``nulls`` says whether the covariates that know nothing take part."""
        more = "".join(f" + {column.name}" for column in NULLS)
        wanted = self.nulls if nulls is None else nulls
        return Study(model=self.model + more * wanted, name="study", intervals=self.intervals)

    def resample(self, rng: np.random.Generator) -> Population:
        """``n`` records with replacement, with their noise if the case has any."""
        frame, schema = self.population()
        drawn = frame.iloc[rng.integers(0, len(frame), self.n)].reset_index(drop=True)
        if not self.nulls:
            return drawn, schema
        drawn[NULLS[0].name] = rng.integers(0, 2, self.n)
        drawn[NULLS[1].name] = rng.standard_normal(self.n)
        wider = Schema(columns=(*schema.columns, *NULLS), outcome=schema.outcome, n_public=self.n)
        return wider.conform(drawn).frame, wider


@lru_cache
def _conformed(table: Callable[[], Population], n: int) -> Population:
    frame, schema = table()
    return schema.conform(frame).frame.reset_index(drop=True), schema.with_n_public(n)


def _raw(file: str) -> pd.DataFrame:
    return pd.read_csv(Path(os.environ[dpsynth.datasets.registry.DATA_DIR]) / file)


def _card(name: str) -> Population:
    table = dpsynth.datasets.load(name)
    return table.frame, table.schema


def flchain() -> Population:
    return _card("flchain")


def _bounded(upper: float) -> Population:
    """Creatinine beyond a bound counts as the bound, as in a schema that says so."""
    frame, schema = _card("flchain")
    columns = tuple(
        column.model_copy(update={"upper": upper}) if column.name == "creatinine" else column
        for column in schema.columns
    )
    return frame, schema.model_copy(update={"columns": columns})


def flchain_to_2() -> Population:
    return _bounded(2.0)


def flchain_to_3() -> Population:
    return _bounded(3.0)


def support2() -> Population:
    return _card("support2")


def breast_cancer() -> Population:
    return _card("breast_cancer")


def heart_failure_299() -> Population:
    return _card("heart_failure_299")


def _with_duration(name: str, source: str, column: Column, outcome: str | None = None) -> Population:
    """A card's table with the length of follow-up, which the card leaves out; another outcome if given."""
    frame, schema = _card(name)
    raw = _raw(f"{name}.csv")
    frame = frame.assign(**{column.name: raw[source].to_numpy()})
    columns = [*schema.columns, column]
    if outcome is not None:
        frame = frame.drop(columns=str(schema.outcome)).assign(**{outcome: raw[outcome].to_numpy()})
        columns = [c for c in columns if c.name != schema.outcome]
        columns.append(Column(name=outcome, kind="binary", categories=(0, 1)))
    made = Schema(columns=tuple(columns), outcome=outcome or schema.outcome, n_public=len(frame))
    return frame, made


def flchain_followed() -> Population:
    return _card("flchain_followed")


def support2_followed() -> Population:
    # enrolled on the third day of 1989 to 1994, followed to the end of 1994
    days = Column(name="days", kind="integer", lower=1, upper=2200, scale="log", unit="days")
    return _with_duration("support2", "d.time", days, outcome="death")


def heart_failure_followed() -> Population:
    # April to December of one year
    return _with_duration(
        "heart_failure_299", "time", Column(name="days", kind="integer", lower=0, upper=300, unit="days")
    )


def physionet2012() -> Population:
    return _card("physionet2012")


def mimic3_heart_failure() -> Population:
    return _card("mimic3_heart_failure")


_FLCHAIN = "age + sex + kappa + lambda + creatinine + mgus + flc.grp + sample.yr"
_CHAINS = "age + sex + kappa + lambda"
_SUPPORT2 = "age + sex + num.co + meanbp + hrt + resp + temp + sod"
_NUCLEI = "mean_radius + mean_texture + mean_perimeter + mean_area + mean_smoothness"
_PHYSIONET = "age + gender + gcs + heart_rate + temperature + urea + leucocytes + bicarbonate"
_YEAR = 365.0

_EVERY = (
    Case("flchain", flchain, f"death ~ {_FLCHAIN}", 4000),
    Case("support2", support2, f"hospdead ~ {_SUPPORT2}", 4000),
    Case("physionet2012", physionet2012, f"death ~ {_PHYSIONET}", 4000),
    Case("flchain linear", flchain, f"linear: creatinine ~ {_CHAINS}", 4000),
    Case("flchain linear, log", flchain, f"linear: log(creatinine) ~ {_CHAINS}", 4000),
    Case("flchain linear, log, to 3 mg/dL", flchain_to_3, f"linear: log(creatinine) ~ {_CHAINS}", 4000),
    Case("flchain linear, to 2 mg/dL", flchain_to_2, f"linear: creatinine ~ {_CHAINS}", 4000),
    Case("support2 linear", support2, "linear: meanbp ~ age + sex + hrt + temp", 4000),
    Case("flchain cox", flchain_followed, f"cox: (futime, death) ~ {_FLCHAIN}", 4000),
    Case("support2 cox", support2_followed, f"cox: (days, death) ~ {_SUPPORT2}", 4000),
    # boundaries that somebody who knows the field would declare
    Case(
        "flchain cox, declared times",
        flchain_followed,
        f"cox: (futime, death) ~ {_FLCHAIN}",
        4000,
        intervals=(2 * _YEAR, 4 * _YEAR, 6 * _YEAR, 8 * _YEAR, 10 * _YEAR, 12 * _YEAR),
    ),
    Case(
        "support2 cox, declared times",
        support2_followed,
        f"cox: (days, death) ~ {_SUPPORT2}",
        4000,
        intervals=(7.0, 14.0, 30.0, 60.0, 180.0, _YEAR),
    ),
    Case("breast_cancer 569", breast_cancer, f"diagnosis ~ {_NUCLEI}", 569),
    Case("breast_cancer 284", breast_cancer, f"diagnosis ~ {_NUCLEI}", 284),
    Case(
        "breast_cancer 569, apart",
        breast_cancer,
        "diagnosis ~ mean_texture + mean_smoothness + mean_symmetry",
        569,
    ),
    Case(
        "mimic3_heart_failure",
        mimic3_heart_failure,
        "death ~ age + gender + renal_failure + heart_rate + systolic + leucocytes + urea + anion_gap",
        1176,
    ),
    Case(
        "heart_failure_299",
        heart_failure_299,
        "death ~ age + ejection_fraction + serum_creatinine + serum_sodium",
        299,
    ),
    Case(
        "heart_failure_299 cox",
        heart_failure_followed,
        "cox: (days, death) ~ age + ejection_fraction + serum_creatinine + serum_sodium",
        299,
    ),
    Case("flchain, nulls", flchain, f"death ~ {_FLCHAIN}", 4000, nulls=True),
    Case("support2, nulls", support2, f"hospdead ~ {_SUPPORT2}", 4000, nulls=True),
    Case("physionet2012, nulls", physionet2012, f"death ~ {_PHYSIONET}", 4000, nulls=True),
    Case("support2 linear, nulls", support2, "linear: meanbp ~ age + sex + hrt + temp", 4000, nulls=True),
    Case("flchain cox, nulls", flchain_followed, f"cox: (futime, death) ~ {_FLCHAIN}", 4000, nulls=True),
)
CASES = {case.name: case for case in _EVERY}
