"""A made-up yearly panel whose truth is known: wages of people who gain experience where they work.

    python benchmarks/patients_panel.py --seeds 3

Each person answers in some of eight survey years, once each. The log wage is a person's own, with
effects of education, experience (0.04 a year) and union (0.10), and noise with a memory. Experience rises
by one year at most in each year. Fresh people of the same kind judge. Medians over seeds.
"""

from __future__ import annotations

import argparse
from itertools import repeat

import numpy as np
import pandas as pd
import statsmodels.api as sm
import statsmodels.formula.api as smf

from dpsynth import Column, DPMarginals, PatientSchema
from dpsynth.evaluation.development import patient_features
from dpsynth.evaluation.discriminator import discriminate
from dpsynth.patients.histories import Histories
from dpsynth.patients.rates import Rate

DELTA = 1e-5
YEARS = (1970, 1971, 1972, 1973, 1975, 1977, 1980, 1983)
REGIONS = ("north", "south", "east", "west")
NO_YES = ("no", "yes")
#: effects on the logarithm of the wage
EXPERIENCE, UNION, EDUCATION = 0.04, 0.10, 0.08


def people(n: int, seed: int) -> pd.DataFrame:
    """One row for each answer of n people."""
    rng = np.random.default_rng(seed)
    education = np.clip(rng.normal(12, 2, n).round(), 6, 18).astype(int)
    before = np.clip(rng.gamma(1.5, 2.5, n) - 0.3 * (education - 12), 0, 30)
    works = rng.beta(2, 0.8, n)
    own, likes_union = rng.normal(0, 0.3, n), rng.normal(-1.3, 1.5, n)
    region, noise = rng.integers(0, 4, n), rng.normal(0, 0.2, n)
    union, married = rng.random(n) < 0.25, rng.random(n) < 0.3 + 0.02 * before
    stays, experience, parts = rng.uniform(0.5, 1.0, n), before.copy(), []
    for year in range(YEARS[0], YEARS[-1] + 1):
        if year > YEARS[0]:
            part = np.where(rng.random(n) < works, 1.0, rng.random(n) * works)
            experience = experience + part
        noise = 0.5 * noise + rng.normal(0, 0.2 * 0.75**0.5, n)
        union = rng.random(n) < 1 / (1 + np.exp(-(likes_union + 2.5 * union - 0.8)))
        married = np.where(married, rng.random(n) < 0.97, rng.random(n) < 0.09)
        region = np.where(rng.random(n) < 0.02, rng.integers(0, 4, n), region)
        wage = 0.8 + EDUCATION * (education - 12) + EXPERIENCE * experience + UNION * union + own + noise
        hours = 2050 + 120 * married + 150 * own + rng.normal(0, 350, n)
        answers = (rng.random(n) < stays) & (year in YEARS)
        rows = {
            "id": np.arange(n),
            "year": year,
            "education": education,
            "experience": np.floor(10 * experience) / 10,
            "wage": np.clip(wage, -2, 4).round(2),
            "hours": np.clip(hours, 0, 4000).round(-1).astype(int),
            "union": np.array(NO_YES)[union.astype(int)],
            "married": np.array(NO_YES)[married.astype(int)],
            "region": np.array(REGIONS)[region],
        }
        parts.append(pd.DataFrame(rows)[answers])
    return pd.concat(parts).sort_values(["id", "year"], ignore_index=True)


def schema(n: int, *, rate: bool) -> PatientSchema:
    """Public facts, with the most that experience rises in a year or without."""
    columns = (
        Column(name="year", kind="integer", lower=YEARS[0], upper=YEARS[-1]),
        Column(name="education", kind="integer", lower=4, upper=20),
        Column(name="experience", kind="continuous", lower=0, upper=50, decimals=1, unit="years"),
        Column(name="wage", kind="continuous", lower=-2, upper=4, decimals=2),
        Column(name="hours", kind="integer", lower=0, upper=4000, step=10),
        Column(name="union", kind="binary", categories=NO_YES),
        Column(name="married", kind="binary", categories=NO_YES),
        Column(name="region", kind="categorical", categories=REGIONS),
    )
    fields = {"unit": "id", "order": "year", "most": len(YEARS), "per_patient": ("education",)}
    fields |= {"times": YEARS, "unique": True, "increasing": ("experience",)}
    fields |= {"rates": (Rate(column="experience", most=1, per="year"),)} if rate else {}
    return PatientSchema(columns=columns, n_public=n, **fields)


def effects(rows: pd.DataFrame) -> pd.DataFrame:
    """Effects on the wage with 95 % intervals, where answers of one person are alike (GEE)."""
    numbers = rows.assign(union=1.0 * (rows["union"] == "yes"), wage=rows["wage"].astype(float))
    formula, alike = "wage ~ experience + union + education", sm.cov_struct.Exchangeable()
    fit = smf.gee(formula, "id", numbers, cov_struct=alike).fit()
    return fit.conf_int().set_axis(["lower", "upper"], axis=1).assign(value=fit.params).drop("Intercept")


def measures(rows: pd.DataFrame, judge: pd.DataFrame, of: PatientSchema) -> dict[str, float]:
    """What an economist would look at first, and whether people are separated from real ones."""
    rows = rows.sort_values(["id", "year"], ignore_index=True)
    person, steps = rows.groupby("id"), rows.groupby("id")[["year", "experience"]].diff()
    wage, means = rows["wage"].astype(float), person[["wage", "experience"]].mean().astype(float)
    found = {
        "patient AUC": _auc(rows, judge, of),
        "wage, experience": wage.corr(rows["experience"]),
        "the same, of means": means["wage"].corr(means["experience"]),
        **{f"effect of {name}": value for name, value in effects(rows)["value"].items()},
        **{f"lag {lag} of wage": wage.corr(person["wage"].shift(lag)) for lag in (1, 3)},
        "not a survey year, %": 100 * (~rows["year"].isin(YEARS)).mean(),
        "twice a year, %": 100 * rows.duplicated(["id", "year"]).mean(),
        "more than the time, %": 100
        * (steps["experience"] > steps["year"] + 1e-6).sum()
        / steps["year"].count(),
    }
    return {name: float(value) for name, value in found.items()}


def _auc(rows: pd.DataFrame, judge: pd.DataFrame, of: PatientSchema) -> float:
    rng = np.random.default_rng(0)
    (real, features), (made, _) = (
        patient_features(Histories.of(table, of, rng), of) for table in (judge, rows)
    )
    apart = discriminate(real, made, features, rng=rng, limit=len(real), level=0.95)
    return max(auc.value for auc in apart.auc.values())


def main() -> None:
    """Print a column for each epsilon."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--people", type=int, default=4000)
    asked = parser.parse_args()
    n, of = asked.people, schema(asked.people, rate=True)
    real = [people(n, seed) for seed in range(asked.seeds)]
    judges = [people(n, 1000 + seed) for seed in range(asked.seeds)]
    limits = effects(real[0]).round(3)
    lines = {"real": pd.DataFrame(map(measures, real, judges, repeat(of))).median()}
    for rate, epsilon in ((False, 3.0), (True, 1.0), (True, 3.0), (True, 10.0)):
        found = []
        for seed in range(asked.seeds):
            model = DPMarginals(epsilon, DELTA, random_state=seed)
            model.fit(real[seed], schema=schema(n, rate=rate))
            found.append(measures(model.sample(n, random_state=seed), judges[seed], of))
        lines[name := f"{'rate' if rate else 'plain'}, {epsilon:g}"] = pd.DataFrame(found).median()
        print(name, lines[name].round(3).to_dict(), flush=True)
    print(limits.to_string())
    print(pd.DataFrame(lines).round(3).to_string())


if __name__ == "__main__":
    main()
