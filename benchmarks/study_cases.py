"""Populations and declared studies of `studies.py`: a table, a schema, a regression, a number of records.

A case with ``nulls`` gets two covariates that know nothing, drawn anew for every resample: a coin and a
normal number. Their population coefficient is 0, and those of the other terms are what they are without them.
"""

from __future__ import annotations

import math
import os
import zlib
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
    return pd.read_csv(Path(os.environ[dpsynth.datasets.files.DATA_DIR]) / file)


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


def _simulated(predictor: str) -> Population:
    """A cohort with outcomes of three kinds, simulated: `predictor` is a count, a concentration or a pair.

    The count is like positive lymph nodes in a trial of colon cancer: 0 to 50, median 3, 90th percentile 8.
    Its effect levels off after 7. The concentration is log-normal, with an effect per doubling. Of the pair,
    of correlation 0.95, each has a linear effect.
    """
    rng, n = np.random.default_rng(seed(predictor)), 20_000
    age, male = np.clip(rng.normal(60, 12, n), 18, 95).round(), rng.random(n) < 0.5
    if predictor == "count":
        nodes = np.minimum(rng.negative_binomial(1.45, 1.45 / (1.45 + 3.66), n), 50)
        columns = [Column(name="nodes", kind="integer", lower=0, upper=50)]
        frame, effect = {"nodes": nodes}, 0.15 * np.minimum(nodes, 7)
    elif predictor == "concentration":
        level = np.clip(np.exp(rng.normal(0.2, 1.0, n)), 0.01, 100).round(2)
        columns = [Column(name="level", kind="continuous", lower=0.01, upper=100, decimals=2)]
        frame, effect = {"level": level}, 0.4 * np.log(level)
    else:
        systolic = rng.standard_normal(n)
        diastolic = 0.95 * systolic + math.sqrt(1 - 0.95**2) * rng.standard_normal(n)
        columns = [
            Column(name="systolic", kind="integer", lower=60, upper=220),
            Column(name="diastolic", kind="integer", lower=30, upper=140),
        ]
        frame = {
            "systolic": np.clip(130 + 18 * systolic, 60, 220).round(),
            "diastolic": np.clip(80 + 11 * diastolic, 30, 140).round(),
        }
        effect = 0.5 * systolic - 0.2 * diastolic
    eta = effect + 0.25 * (age - 60) / 10 + 0.3 * male
    death = rng.exponential(1 / (1.6e-4 * np.exp(eta)))
    seen = np.ceil(np.minimum(death, rng.uniform(700, 3000, n)))
    frame |= {
        "age": age,
        "sex": np.where(male, "M", "F"),
        "days": seen,
        "died": (death <= seen) * 1,
        "relapse": (rng.random(n) < 1 / (1 + np.exp(1.6 - eta))) * 1,
        "score": np.clip(eta + rng.standard_normal(n), -10, 20).round(2),
    }
    columns += [
        Column(name="age", kind="integer", lower=18, upper=100),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="days", kind="integer", lower=0, upper=3000),
        Column(name="died", kind="binary", categories=(0, 1)),
        Column(name="relapse", kind="binary", categories=(0, 1)),
        Column(name="score", kind="continuous", lower=-10, upper=20, decimals=2),
    ]
    return pd.DataFrame(frame), Schema(columns=tuple(columns))


def count() -> Population:
    return _simulated("count")


def concentration() -> Population:
    return _simulated("concentration")


def pair() -> Population:
    return _simulated("pair")


def seed(*words: object) -> int:
    """A seed of one's own for everything that is named."""
    return zlib.crc32("|".join(map(str, words)).encode())


def _of_predictors() -> tuple[Case, ...]:
    """Each predictor as it is, and the skewed ones as a logarithm, in regressions of all three kinds."""
    outcomes = {"linear": "linear: score", "logistic": "relapse", "cox": "cox: (days, died)"}
    terms = {
        "count": (count, "nodes"),
        "count, log1p": (count, "log1p(nodes)"),
        "concentration": (concentration, "level"),
        "concentration, log": (concentration, "log(level)"),
        "pair": (pair, "systolic + diastolic"),
    }
    return tuple(
        Case(f"{name} {kind}", table, f"{left} ~ {right} + age + sex", 2000)
        for name, (table, right) in terms.items()
        for kind, left in outcomes.items()
    )


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
CASES = {case.name: case for case in (*_EVERY, *_of_predictors())}
