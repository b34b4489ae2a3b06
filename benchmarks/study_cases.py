"""Populations and declared studies of `studies.py`: a table, a schema, a regression, a number of records.

A case with ``nulls`` gets two covariates that know nothing, drawn anew for every resample: a coin and a
normal number. Their population coefficient is 0, and those of the other terms are what they are without them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

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
    nulls: bool = False

    def population(self) -> Population:
        """Its frame, conformed, and the schema with ``n`` as the public number of records."""
        return _conformed(self.table, self.n)

    def study(self, *, nulls: bool | None = None) -> Study:
        """What is declared; ``nulls`` says whether the covariates that know nothing take part."""
        more = "".join(f" + {column.name}" for column in NULLS)
        wanted = self.nulls if nulls is None else nulls
        return Study(model=self.model + more * wanted, name="study")

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


def flchain_followed() -> Population:
    return _card("flchain_followed")


def physionet2012() -> Population:
    return _card("physionet2012")


def mimic3_heart_failure() -> Population:
    return _card("mimic3_heart_failure")


def _simulated(predictor: str) -> Population:
    """A cohort with outcomes of three kinds, simulated: `predictor` is a count or a concentration.

    The count is like positive lymph nodes in a trial of colon cancer: 0 to 50, median 3, 90th percentile 8.
    Its effect levels off after 7. The concentration is log-normal, with an effect per doubling.
    """
    rng, n = np.random.default_rng(seed(predictor)), 20_000
    age, male = np.clip(rng.normal(60, 12, n), 18, 95).round(), rng.random(n) < 0.5
    if predictor == "count":
        nodes = np.minimum(rng.negative_binomial(1.45, 1.45 / (1.45 + 3.66), n), 50)
        columns = [Column(name="nodes", kind="integer", lower=0, upper=50)]
        frame, effect = {"nodes": nodes}, 0.15 * np.minimum(nodes, 7)
    else:
        level = np.clip(np.exp(rng.normal(0.2, 1.0, n)), 0.01, 100).round(2)
        columns = [Column(name="level", kind="continuous", lower=0.01, upper=100, decimals=2)]
        frame, effect = {"level": level}, 0.4 * np.log(level)
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
    Case("breast_cancer 569", breast_cancer, f"diagnosis ~ {_NUCLEI}", 569),
    Case("breast_cancer 284", breast_cancer, f"diagnosis ~ {_NUCLEI}", 284),
    Case(
        "mimic3_heart_failure",
        mimic3_heart_failure,
        "death ~ age + gender + renal_failure + heart_rate + systolic + leucocytes + urea + anion_gap",
        1176,
    ),
    Case("flchain, nulls", flchain, f"death ~ {_FLCHAIN}", 4000, nulls=True),
    Case("support2, nulls", support2, f"hospdead ~ {_SUPPORT2}", 4000, nulls=True),
    Case("physionet2012, nulls", physionet2012, f"death ~ {_PHYSIONET}", 4000, nulls=True),
    Case("support2 linear, nulls", support2, "linear: meanbp ~ age + sex + hrt + temp", 4000, nulls=True),
    Case("flchain cox, nulls", flchain_followed, f"cox: (futime, death) ~ {_FLCHAIN}", 4000, nulls=True),
)
CASES = {case.name: case for case in (*_EVERY, *_of_predictors())}
