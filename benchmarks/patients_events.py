"""Diagnoses of made-up patients whose truth is known: who has one, when, and at which age.

    python benchmarks/patients_events.py --seeds 3

Each patient has an index diagnosis within 30 days of day 0 (91 %) or later, and up to seven others before or
after it, the older the more. A patient has each once. Medians over seeds.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from dpsynth import Column, DPMarginals, PatientSchema

#: log odds at age 58, and for each year more
RISKS = {
    "diabetes": (-2.2, 0.03),
    "hypertension": (-0.6, 0.05),
    "infarction": (-2.6, 0.09),
    "stroke": (-3.0, 0.1),
    "failure": (-2.8, 0.08),
    "renal": (-2.8, 0.05),
    "copd": (-2.4, 0.03),
}
CODES = ("index", *RISKS)


def patients(n: int, seed: int) -> pd.DataFrame:
    """One row for each diagnosis of n patients."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(58, 13, n), 20, 90).round()
    end = np.clip(rng.exponential(2500, n) + 200, 30, 8000).round()
    frail = 0.8 * rng.standard_normal(n)
    index = np.where(rng.random(n) < 0.91, rng.integers(0, 30, n), rng.integers(30, 300, n))
    parts = [pd.DataFrame({"id": np.arange(n), "day": index, "code": "index"})]
    for code, (odds, slope) in RISKS.items():
        has = rng.random(n) < 1 / (1 + np.exp(-(odds + slope * (age - 58) + frail)))
        day = np.where(rng.random(n) < 0.4, -rng.exponential(1500, n), rng.random(n) * end)
        parts.append(pd.DataFrame({"id": np.arange(n), "day": np.clip(day, -8000, 8000), "code": code})[has])
    rows = pd.concat(parts, ignore_index=True)
    who = rows["id"].to_numpy()
    rows["day"] = np.minimum(rows["day"], end[who]).round().astype(int)
    return rows.assign(age=age[who].astype(int), end=end[who].astype(int))


def schema(n: int, *, once: bool) -> PatientSchema:
    """Public facts, with the course of diagnoses or without."""
    columns = (
        Column(name="age", kind="integer", lower=18, upper=100),
        Column(name="end", kind="integer", lower=0, upper=8000, unit="days"),
        Column(name="day", kind="integer", lower=-8000, upper=8000, unit="days"),
        Column(name="code", kind="categorical", categories=CODES),
    )
    course = ("code",) if once else ()
    fields = {"unit": "id", "order": "day", "most": 8, "per_patient": ("age", "end"), "once": course}
    return PatientSchema(columns=columns, n_public=n, until="end" if once else None, **fields)


def measures(rows: pd.DataFrame) -> dict[str, float]:
    """What a clinician would look at first."""
    ever, age = pd.crosstab(rows["id"], rows["code"]) > 0, rows.groupby("id")["age"].first()
    index, stroke = (rows[rows["code"] == code] for code in ("index", "stroke"))
    one, other = ever["diabetes"], ever["hypertension"]
    cells = [float((one == a).mul(other == b).sum()) + 0.5 for a in (True, False) for b in (True, False)]
    last = rows.groupby("id")["end"].first() - rows.groupby("id")["day"].max()
    return {
        "repeated, %": 100 * float(rows.duplicated(["id", "code"]).mean()),
        "index within 30 days, %": 100 * float(index["day"].between(0, 30).sum()) / len(ever),
        "infarction older by, years": float(age[ever["infarction"]].mean() - age.mean()),
        "age at stroke": float((stroke["age"] + stroke["day"] / 365.25).mean()),
        "odds ratio diabetes, hypertension": cells[0] * cells[3] / (cells[1] * cells[2]),
        "last row to end, days": float(last.median()),
        "rows after the end, %": 100 * float((rows["day"] > rows["end"]).mean()),
    }


def main() -> None:
    """Print a line for each schema and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--patients", type=int, default=4000)
    asked = parser.parse_args()
    real = [measures(patients(asked.patients, seed)) for seed in range(asked.seeds)]
    lines = {"real": pd.DataFrame(real).median()}
    for once in (False, True):
        for epsilon in (1.0, 3.0, 10.0):
            found = []
            for seed in range(asked.seeds):
                model = DPMarginals(epsilon, 1e-5, random_state=seed)
                model.fit(patients(asked.patients, seed), schema=schema(asked.patients, once=once))
                found.append(measures(model.sample(asked.patients, random_state=seed)))
            lines[f"{'once, until' if once else 'plain'}, {epsilon:g}"] = pd.DataFrame(found).median()
    print(pd.DataFrame(lines).T.round(1).to_string())


if __name__ == "__main__":
    main()
