"""What rules do to a sample: marginals and dependence without rules, by refusal alone, and as we sample.

    python benchmarks/rules.py

A made-up clinic of 4,000 records that obey five rules (inequality, implications, structural zeros, structural
missing values); a TAN base model alone, 20,000 records sampled; medians over 5 seeds. "Released" is the mean
total variation distance of the columns from their released marginals, "truth" from 100,000 fresh records of
the clinic; "correlation" the mean absolute error of rank correlations against those.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd

from dpsynth import DPWGANGP, Column, Schema

NO_YES = ("no", "yes")
SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=90),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="pregnant", kind="binary", categories=NO_YES),
        Column(name="sbp", kind="integer", lower=70, upper=240),
        Column(name="dbp", kind="integer", lower=30, upper=150),
        Column(name="treated", kind="binary", categories=NO_YES),
        Column(name="dose", kind="continuous", lower=0, upper=20, step=0.5),
        Column(name="weight", kind="continuous", lower=35, upper=200, decimals=1),
        Column(name="height", kind="continuous", lower=1.3, upper=2.1, decimals=2),
        Column(name="psa", kind="continuous", lower=0.1, upper=50, decimals=1, scale="log", missing=True),
        Column(name="died", kind="binary", categories=NO_YES),
    ),
    outcome="died",
    n_public=4000,
    constraints=(
        "dbp < sbp",
        "pregnant = yes implies sex = F and age < 56",
        "treated = no implies dose = 0",
        "treated = yes implies dose > 0",
        "sex = F implies psa is missing",
    ),
)


def clinic(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, female = rng.integers(18, 91, n), rng.random(n) < 0.55
    sbp = rng.normal(105 + 0.45 * age, 16).round().clip(70, 240)
    treated = rng.random(n) < np.where(sbp > 140, 0.7, 0.25)
    psa = rng.lognormal(0.5, 0.8, n).round(1).clip(0.1, 50)
    values = {
        "age": age,
        "sex": np.where(female, "F", "M"),
        "pregnant": np.where(female & (age < 50) & (rng.random(n) < 0.25), "yes", "no"),
        "sbp": sbp,
        "dbp": np.minimum((0.6 * sbp + rng.normal(5, 8, n)).round().clip(30, 150), sbp - 10),
        "treated": np.where(treated, "yes", "no"),
        "dose": np.where(treated, rng.integers(1, 41, n) / 2, 0.0),
        "weight": rng.normal(np.where(female, 68, 82), 13).round(1).clip(35, 200),
        "height": rng.normal(np.where(female, 1.65, 1.78), 0.07).round(2).clip(1.3, 2.1),
        "psa": np.where(female | (rng.random(n) < 0.2), np.nan, psa),
        "died": np.where(rng.random(n) < 1 / (1 + np.exp((75 - age) / 8)), "yes", "no"),
    }
    return SCHEMA.conform(pd.DataFrame(values)).frame


def correlations(frame: pd.DataFrame) -> np.ndarray:
    numbers = {
        column.name: frame[column.name].rank()
        if column.is_numeric
        else (frame[column.name] == column.categories[1]).astype(float)
        for column in SCHEMA.columns
    }
    return pd.DataFrame(numbers).corr().to_numpy()


def main() -> None:
    truth = clinic(100_000, 1000)
    print("| ε | records that obey | sampled | released | worst column | truth | correlation |")
    print("|---:|---:|---|---:|---:|---:|---:|")
    for epsilon in (1.0, 3.0, 10.0):
        rows, obeying = [], []
        for seed in range(5):
            model = DPWGANGP(epsilon, 1e-5, training_steps=0, random_state=seed)
            model.fit(clinic(4000, seed), schema=SCHEMA)
            free = dataclasses.replace(model.model_, schema=SCHEMA.modelled)
            plain = free.sample(20_000, np.random.default_rng(seed))
            obeys = ~np.logical_or.reduce([rule.broken(plain) for rule in SCHEMA.rules])
            obeying.append(obeys.mean())
            marginals = model.model_.encoder.marginals
            row = []
            for frame in (plain, plain[obeys], model.sample(20_000, random_state=seed)):
                released, real = [], []
                for grid, p in zip(marginals.grids, marginals.probabilities, strict=True):
                    name = grid.column.name
                    share = np.bincount(grid.encode(frame[name]), minlength=grid.size) / len(frame)
                    fresh = np.bincount(grid.encode(truth[name]), minlength=grid.size) / len(truth)
                    released.append(0.5 * np.abs(share - p).sum())
                    real.append(0.5 * np.abs(share - fresh).sum())
                error = np.nanmean(np.abs(correlations(frame) - correlations(truth)))
                row.append([np.mean(released), np.max(released), np.mean(real), error])
            rows.append(row)
        medians = np.median(rows, axis=0)
        for name, line in zip(("without rules", "refused", "as sampled"), medians, strict=True):
            numbers = " | ".join(f"{number:.4f}" for number in line)
            print(f"| {epsilon:g} | {np.median(obeying):.3f} | {name} | {numbers} |")


if __name__ == "__main__":
    main()
