"""A small table with several rows for each patient, and its schema."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsynth.table.patients import PatientSchema
from dpsynth.table.schema import Column

VISITS = PatientSchema(
    unit="id",
    order="day",
    most=6,
    columns=(
        Column(name="day", kind="integer", lower=0, upper=365),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="lab", kind="integer", lower=0, upper=99, missing=True),
        Column(name="grade", kind="categorical", categories=("a", "b", "c"), missing=True),
        Column(name="weight", kind="continuous", lower=30, upper=200),
    ),
    per_patient=("sex",),
)


def visits(n: int, seed: int = 0, most: int = 9) -> pd.DataFrame:
    """One to nine rows of each of n patients, out of order. Labs lie around the patient's own level."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, most + 1, n)
    who = np.repeat(np.arange(n), rows)
    m = len(who)
    own = rng.integers(20, 80, n)
    lab = np.clip(own[who] + rng.integers(-9, 10, m), 0, 99).astype(float)
    lab[rng.random(m) < 0.2] = np.nan
    usual = rng.integers(0, 3, n)
    grade = np.where(rng.random(m) < 0.8, usual[who], rng.integers(0, 3, m))
    words = np.array(["a", "b", "c", None], dtype=object)
    return pd.DataFrame(
        {
            "id": who,
            "day": rng.integers(0, 366, m),
            "sex": np.array(["F", "M"])[rng.integers(0, 2, n)][who],
            "lab": lab,
            "grade": words[np.where(rng.random(m) < 0.1, 3, grade)],
            "weight": np.round(60 + 5 * rng.standard_normal(m), 1),
        }
    )
