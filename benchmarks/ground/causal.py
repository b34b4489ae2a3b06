"""Made-up patients by a structural causal model: a drug that helps most and harms carriers of a variant.

Age, sex and habits act on laboratory values and the stage of a disease, the stage on who is treated, and all
of them on death. Whether somebody carries the variant is independent of everything else but death, and so of
the treatment: the pair "treated, carrier" shows nothing, its interaction decides.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from benchmarks.ground.known import Floats, Structure, answers, is_yes, kept, yes_no
from dpsynth.table import Column, Schema

SMOKING = ("never", "former", "current")
STAGES = ("I", "II", "III", "IV")

SCHEMA = Schema(
    name="causal",
    outcome="died",
    constraints=("diastolic < systolic",),
    columns=(
        Column(name="age", kind="integer", lower=18, upper=100, unit="years"),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="smoking", kind="categorical", categories=SMOKING),
        Column(name="bmi", kind="continuous", lower=14, upper=60, decimals=1),
        yes_no("diabetes"),
        Column(name="creatinine", kind="continuous", lower=20, upper=1500, decimals=0, scale="log"),
        Column(name="crp", kind="continuous", lower=0.1, upper=500, decimals=1, scale="log"),
        Column(name="haemoglobin", kind="continuous", lower=40, upper=220, decimals=0),
        Column(name="systolic", kind="integer", lower=60, upper=260),
        Column(name="diastolic", kind="integer", lower=30, upper=150),
        Column(name="stage", kind="ordinal", categories=STAGES),
        yes_no("carrier"),
        yes_no("treated"),
        yes_no("died"),
    ),
)


def draw(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Independent patients; each column is made of those before it."""

    def noise(scale: float = 1.0) -> Floats:
        return scale * rng.standard_normal(n)

    def happens(logit: ArrayLike) -> np.ndarray:
        return rng.random(n) < 1 / (1 + np.exp(-np.asarray(logit)))

    age = np.clip(63 + noise(14), 18, 100).round()
    old = (age - 63) / 14
    male = rng.random(n) < 0.52
    habit = np.digitize(0.5 * male - 0.2 * old + noise(), [0.2, 1.1])
    bmi = np.clip(27 - 0.8 * old + 1.0 * (habit == 0) + noise(4.5), 14, 60).round(1)
    diabetes = happens(-1.6 + 0.4 * old + 0.12 * (bmi - 27))
    creatinine = np.clip(np.exp(4.3 + 0.15 * male + 0.15 * old + 0.25 * diabetes + noise(0.3)), 20, 1500)
    severity = 0.4 * old + 0.4 * (habit == 2) + 0.3 * diabetes + noise()
    stage = np.digitize(severity, [-0.4, 0.5, 1.3])
    crp = np.clip(np.exp(1.5 + 0.5 * severity + noise(0.8)), 0.1, 500).round(1)
    haemoglobin = np.clip(133 + 12 * male - 5 * severity - 0.03 * creatinine + noise(13), 40, 220)
    systolic = np.clip(132 + 6 * old + 0.6 * (bmi - 27) - 4 * severity + noise(15), 60, 260).round()
    pulse = np.maximum(0.38 * systolic + 3 * old + noise(7), 8)
    diastolic = np.clip(systolic - pulse, 30, 150).round()
    carrier = rng.random(n) < 0.4
    treated = happens(-0.4 + 0.6 * (stage - 1) - 0.3 * old)
    risk = -1.6 + 0.6 * old + 0.5 * (stage - 1) + 0.8 * np.log(creatinine / 80) + 0.3 * np.log(crp / 5)
    died = happens(risk + np.where(treated, np.where(carrier, 1.2, -1.2), 0.0))
    return pd.DataFrame(
        {
            "age": age.astype(int),
            "sex": np.where(male, "M", "F").astype(object),
            "smoking": np.array(SMOKING, dtype=object)[habit],
            "bmi": bmi,
            "diabetes": answers(diabetes),
            "creatinine": creatinine.round(),
            "crp": crp,
            "haemoglobin": haemoglobin.round(),
            "systolic": systolic.astype(int),
            "diastolic": np.minimum(diastolic, systolic - 1).astype(int),
            "stage": np.array(STAGES, dtype=object)[stage],
            "carrier": answers(carrier),
            "treated": answers(treated),
            "died": answers(died),
        }
    )


def interaction(frame: pd.DataFrame) -> float:
    """Log odds ratio of death by treatment among carriers, minus the same among others.

    One half is added to each of the eight counts, so that it is finite.
    """
    carrier, treated, died = (is_yes(frame[name]) for name in ("carrier", "treated", "died"))
    counts = np.bincount(4 * carrier + 2 * treated + died, minlength=8).reshape(2, 2, 2) + 0.5
    odds = np.log(counts[:, :, 1] / counts[:, :, 0])
    ratios = odds[:, 1] - odds[:, 0]
    return float(ratios[1] - ratios[0])


@cache
def true_interaction() -> float:
    """That of the population, to about .01: of a million patients."""
    return interaction(draw(1_000_000, np.random.default_rng(15)))


CAUSAL = Structure(
    name="causal",
    about="Patients by a causal model; a drug helps, but harms carriers of a variant.",
    schema=SCHEMA,
    draw=draw,
    score=lambda frame: kept(interaction(frame), true_interaction()),
    score_name="interaction kept (0: none)",
)
