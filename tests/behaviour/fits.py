"""Nine ways to fit a generator to made-up tables, through the public interface alone.

What stands behind that interface may move: `record` compares the ledger, the samples and the estimates of
these fits with those of before, and `benchmarks/behaviour.py` their utility. `GENERATORS` and `fitted` are
the only lines that name an estimator or read its attributes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

import dpsynth
from dpsynth.files.codec import to_plain

BUDGET = {"epsilon": 3.0, "delta": 1e-5}
STEPS = {
    "steps": 8,
    "batch_size": 250,
    "noise_shape": "layerwise",
    "training": dpsynth.TrainingSettings(
        critic_hidden=(8,), generator_hidden=(8,), latent=3, penalty="data", critic_steps=2
    ),
}

GENERATORS: dict[str, Callable[..., Any]] = {
    "marginals": lambda **options: dpsynth.DPMarginals(**BUDGET, **options),
    "wgan": lambda **options: dpsynth.DPWGANGP(**BUDGET, **STEPS, **options),
    "matching": lambda **options: dpsynth.DPCriticMatching(**BUDGET, critics=3, **options),
}


@contextmanager
def in_parts(case: Case) -> Iterator[Any]:
    """The table in three files, which two workers in threads read."""
    from distributed import Client

    workers = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with TemporaryDirectory() as folder, Client(**workers, set_as_default=False) as client:
        for k in range(3):
            case.frame.iloc[k::3].to_parquet(Path(folder) / f"{k}.parquet", index=False)
        yield dpsynth.privacy.PartitionedRecords(dpsynth.table.ParquetTable(folder), case.schema, client)


@contextmanager
def step_by_step() -> Iterator[None]:
    """TensorFlow without XLA: to compile a few steps takes longer than to run them."""
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@cache
def fitted(name: str, seed: int = 0) -> tuple[dict[str, Any], pd.DataFrame, dict[str, Any]]:
    """Fit a configuration. Return its ledger as JSON, records drawn, and estimates by study."""
    case = CASES[name]
    model = GENERATORS[case.generator](random_state=seed, **case.options)
    with (
        warnings.catch_warnings(action="ignore"),
        threadpool_limits(1),  # sums of several threads have other last bits
        in_parts(case) if case.parts else nullcontext(case.frame) as records,
        step_by_step() if case.generator == "wgan" else nullcontext(),
    ):
        model.fit(records, schema=case.schema, also=case.also)
        samples = [model.sample(500), *([model.sample(100, where=case.where)] if case.where else [])]
    estimates = {found.study: to_plain(found) for found in model.estimates_}
    return model.ledger_.to_dict(), pd.concat(samples, ignore_index=True), estimates


def stays(n: int) -> pd.DataFrame:
    """One stay in a hospital of each of n patients: columns of every kind, in which others show."""
    rng = np.random.default_rng(47)
    age, sex, stage = rng.integers(18, 96, n), rng.choice(["F", "M"], n), rng.integers(0, 3, n)
    died = rng.random(n) < 1 / (1 + np.exp(6 - age / 20 - 0.8 * stage))
    weight = np.round(60 + 15 * (sex == "M") + 10 * rng.standard_normal(n), 1)
    creatinine = np.round(np.exp(0.3 * stage + 0.4 * rng.standard_normal(n)), 1).clip(0.2, 15)
    columns = {
        "age": age,
        "sex": sex,
        "admitted": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, n), unit="D"),
        "stage": np.array(["I", "II", "III"])[stage],
        "ward": rng.choice(["surgery", "medicine", "eyes", "?"], n, p=[0.4, 0.4, 0.1, 0.1]),
        "creatinine": np.where(rng.random(n) < 0.1, np.nan, creatinine),
        "weight": weight,
        "height": np.round(1.45 + weight / 400 + 0.06 * rng.standard_normal(n), 2),
        "dose": np.where(stage == 0, 0, 5 * rng.integers(1, 20, n)),
        "days": np.where(rng.random(n) < 0.05, 999, rng.integers(1, np.where(died, 9, 41))),
        "died": np.where(died, "yes", "no"),
    }
    return pd.DataFrame(columns)


COLUMNS = """
age: {kind: integer, lower: 18, upper: 95}
sex: {kind: binary, categories: [F, M]}
admitted: {kind: date, lower: 2020-01-01, upper: 2022-12-31, cycles: [weekday]}
stage: {kind: ordinal, categories: [I, II, III]}
ward: {kind: categorical, categories: [surgery, medicine, eyes], missing: true}
creatinine: {kind: continuous, lower: 0.1, upper: 20, decimals: 1, scale: log, missing: true}
weight: {kind: continuous, lower: 30, upper: 150, decimals: 1}
height: {kind: continuous, lower: 1.2, upper: 2.2, decimals: 2}
bmi: {kind: continuous, lower: 8, upper: 90, decimals: 1, derived: weight / height ** 2}
dose: {kind: integer, lower: 0, upper: 100}
days: {kind: integer, lower: 0, upper: 60, special: [999]}
died: {kind: binary, categories: ['no', 'yes']}
"""


def visits() -> pd.DataFrame:
    """One to six visits of each of 300 patients, whose values are alike."""
    rng = np.random.default_rng(48)
    who = np.repeat(np.arange(300), rng.integers(1, 7, 300))
    usual, m = rng.normal(50, 12, 300)[who], len(who)
    hdl = np.where(rng.random(m) < 0.2, np.nan, np.round(usual + 6 * rng.standard_normal(m)).clip(5, 150))
    smoker = np.where(rng.random(m) < 0.2 + 0.4 * (usual < 45), "yes", "no")
    sex = rng.choice(["F", "M"], 300)[who]
    day = rng.integers(0, 2000, m)
    return pd.DataFrame({"patient": who, "day": day, "sex": sex, "hdl": hdl, "smoker": smoker})


VISITS = """
unit: patient
rows: {most: 5, order: day}
n_public: 300
columns:
- {name: day, kind: integer, lower: 0, upper: 2000}
- {name: sex, kind: binary, categories: [F, M], per: patient}
- {name: hdl, kind: integer, lower: 5, upper: 150, missing: true}
- {name: smoker, kind: binary, categories: ['no', 'yes']}
"""


@dataclass(frozen=True)
class Case:
    """A generator, a table with its schema, and a condition on which records are drawn besides."""

    frame: pd.DataFrame
    schema: Any
    generator: str = "marginals"
    options: dict[str, Any] = field(default_factory=dict)
    also: tuple[Any, ...] = ()
    where: str | None = None
    parts: bool = False


def case(n: int, names: str, *fields: str, **more: Any) -> Case:
    """A configuration on some columns of n stays."""
    described = dict(line.split(": {") for line in COLUMNS.strip().split("\n"))
    listed = [f"- {{name: {name}, {described[name]}" for name in names.split()]
    schema = dpsynth.Schema.from_yaml("\n".join([*fields, "missing_words: ['?']", "columns:", *listed]))
    return Case(stays(n)[[name for name in names.split() if name != "bmi"]], schema, **more)


PUBLIC = "n_public: 1000"
OUTCOME = "outcome: died"
RULES = "constraints: [stage = I implies dose = 0, died = yes implies days <= 10 or days = 999]"
WITH_RULES = "stage weight height bmi dose days died"
COX = {"model": "cox: (days, died) ~ age", "name": "survival"}
STUDIES = ["logistic: died ~ age + sex where age >= 40", COX]

CASES = {
    "outcome": case(2000, "age sex admitted creatinine died", OUTCOME),
    "plain": case(1000, "sex stage ward weight days", PUBLIC),
    "rules": case(1000, WITH_RULES, PUBLIC, OUTCOME, RULES, where="dose > 20"),
    "patients": Case(visits(), dpsynth.PatientSchema.from_yaml(VISITS)),
    "study": case(1000, "age sex weight days died", PUBLIC, OUTCOME, also=(dpsynth.Studies(STUDIES),)),
    "parts": case(1000, WITH_RULES, RULES, parts=True),
    "wgan": case(1000, "age ward creatinine died", PUBLIC, generator="wgan"),
    # enough records for rounds of further tables
    "growth": case(6000, "sex stage dose died", "n_public: 6000", OUTCOME),
    "matching": case(300, "age ward died", "n_public: 300", OUTCOME, generator="matching"),
}
