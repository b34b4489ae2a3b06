"""Chronic diseases of made-up patients whose truth is known: at each visit one of them is coded.

    python -m benchmarks.patients_chronic --seeds 3

Twelve diseases, the first ones frequent, all more frequent with age and in frail patients. Each begins at a
time of its own. Half of 8,000 patients train and half judge. Medians over seeds.
"""

from __future__ import annotations

import argparse
from itertools import combinations

import numpy as np
import pandas as pd

from benchmarks.patients.command import judged
from dpsynth import Column, DPMarginals, PatientSchema

CODES = tuple(f"d{k}" for k in range(12))
SHARES = np.linspace(0.45, 0.03, 12)
#: those frequent enough for odds ratios and ages
FREQUENT = CODES[:7]


def patients(n: int, seed: int) -> pd.DataFrame:
    """Three to fifteen visits of n patients, without those before the first disease."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(62, 14, n), 20, 95).round().astype(int)
    odds = np.log(SHARES / (1 - SHARES)) + 0.05 * (age[:, None] - 62) + 0.8 * rng.standard_normal((n, 1))
    rows = []
    for who, chance in enumerate(1 / (1 + np.exp(-odds))):
        own = np.flatnonzero(rng.random(12) < chance)
        own = own if len(own) else np.array([0])
        begin = rng.integers(0, 3000, len(own))
        for day in np.sort(rng.choice(4000, rng.integers(3, 16), replace=False)):
            if len(begun := own[begin <= day]):
                rows.append((who, day, CODES[rng.choice(begun)], age[who]))
    return pd.DataFrame(rows, columns=["id", "day", "code", "age"])


def schema(n: int, *, chronic: bool) -> PatientSchema:
    """Public facts, with the course of diseases or without."""
    columns = (
        Column(name="day", kind="integer", lower=0, upper=4000, unit="days"),
        Column(name="code", kind="categorical", categories=CODES),
        Column(name="age", kind="integer", lower=18, upper=100),
    )
    fields = {"unit": "id", "order": "day", "most": 15, "per_patient": ("age",), "n_public": n}
    return PatientSchema(columns=columns, chronic=("code",) if chronic else (), **fields)


def measures(rows: pd.DataFrame) -> dict[str, float]:
    """What a clinician would look at first."""
    ever = (pd.crosstab(rows["id"], rows["code"]) > 0).reindex(columns=list(CODES), fill_value=False)
    age, odds = rows.groupby("id")["age"].first(), []
    for one, other in combinations(FREQUENT, 2):
        cells = [
            (ever[one] == a).mul(ever[other] == b).sum() + 0.5 for a in (True, False) for b in (True, False)
        ]
        odds.append(np.log(cells[0] * cells[3] / (cells[1] * cells[2])))
    return {
        "diseases of a patient, mean": float(ever.sum(axis=1).mean()),
        "their standard deviation": float(ever.sum(axis=1).std()),
        "log odds ratio of two diseases, mean": float(np.mean(odds)),
        "patients with a disease older by, years": float(
            np.mean([age[ever[code]].mean() - age.mean() for code in FREQUENT])
        ),
        "rows with a disease that was coded before, %": 100 * float(rows.duplicated(["id", "code"]).mean()),
        "rows with the disease of the row before, %": 100
        * float((rows["code"] == rows.groupby("id")["code"].shift()).mean()),
    }


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    train, test = patients(4_000, 0), patients(4_000, 1)
    columns = {"real": measures(train) | judged(test, train, test, schema(4_000, chronic=True))}
    for chronic, epsilon in ((False, 3.0), (True, 1.0), (True, 3.0), (True, 10.0)):
        own, rounds = schema(train["id"].nunique(), chronic=chronic), []
        for seed in range(asked.seeds):
            model = DPMarginals(epsilon, 1e-5, random_state=seed).fit(train, schema=own)
            made = model.sample(4_000, random_state=seed)
            rounds.append(measures(made) | judged(made, train, test, own))
        name = f"{'chronic' if chronic else 'plain'}, ε = {epsilon:g}"
        columns[name] = pd.DataFrame(rounds).astype(float).median().to_dict()
    found = pd.DataFrame(columns).astype(float).dropna(how="all").round(3)
    print(found.to_string())


if __name__ == "__main__":
    main()
