"""Analyses of patients over time: is a synthetic estimate within the real one's 95 % interval?

    DPSYNTH_DATA_DIR=... python benchmarks/patients_analyses.py

NAFLD with follow-up: Kaplan-Meier, Cox by age and sex, and the change of HDL over time. Diabetes-130: return
within 30 days and what goes with it. The first half of the patients trains. Epsilon 1, 3 and 10, delta 1e-5,
three seeds. Intervals of the real table are over patients.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels.api as sm
from statsmodels.duration.api import SurvfuncRight
from statsmodels.duration.hazard_regression import PHReg
from statsmodels.genmod.cov_struct import Independence

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.patients.tables import halves
from dpsynth import DPMarginals

#: an estimate and its standard error
Found = dict[str, tuple[float, float]]


def followed(rows: pd.DataFrame) -> Found:
    """Survival at 5 and 10 years, hazard ratios, and the regression of HDL on time."""
    first = rows.groupby("id")[["futime", "status", "age", "male"]].first().astype(float)
    curve = SurvfuncRight(np.maximum(first["futime"], 1), first["status"])
    found: Found = {}
    for years in (5, 10):
        place = np.searchsorted(curve.surv_times, years * 365.25, side="right") - 1
        found[f"alive after {years} years"] = (curve.surv_prob[place], curve.surv_prob_se[place])
    x = pd.DataFrame({"age": first["age"] / 10, "male": first["male"]})
    cox = PHReg(np.maximum(first["futime"], 1), x, status=first["status"]).fit()
    found |= {f"log hazard, {name}": (b, se) for name, b, se in zip(x, cox.params, cox.bse, strict=True)}
    return found | _gee(rows, "hdl", {"time": "days", "age": "age", "male": "male"}, sm.families.Gaussian())


def diabetes(rows: pd.DataFrame) -> Found:
    """Encounters that end in a return within 30 days, and what goes with it."""
    rows = rows.assign(
        back=(rows["readmitted"] == "<30").astype(float),
        years=rows["age"].astype(str).str.extract(r"\[(\d+)", expand=False).astype(float),
        insulin_up=(rows["insulin"] == "Up").astype(float),
    )
    mean = rows.groupby("id")["back"].max()
    found: Found = {"patients ever back within 30 days": (mean.mean(), mean.std() / len(mean) ** 0.5)}
    terms = {
        "inpatient stays": "number_inpatient",
        "age": "years",
        "days in hospital": "time_in_hospital",
        "insulin up": "insulin_up",
    }
    return found | _gee(rows, "back", terms, sm.families.Binomial())


def _gee(rows: pd.DataFrame, outcome: str, terms: dict[str, str], family: object) -> Found:
    frame = rows[["id", outcome, *terms.values()]].astype({name: float for name in terms.values()}).dropna()
    x = frame[list(terms.values())].set_axis(list(terms), axis=1)
    x = x.assign(
        **{name: x[name] / (3652.5 if name == "time" else 10) for name in ("time", "age") if name in x}
    )
    model = sm.GEE(
        frame[outcome].astype(float),
        sm.add_constant(x),
        frame["id"],
        family=family,
        cov_struct=Independence(),
    )
    fit = model.fit()
    return {f"{outcome} by {name}": (fit.params[name], fit.bse[name]) for name in terms}


def main() -> None:
    """Fit, analyse and print one table for each data set."""
    warnings.simplefilter("ignore")
    for name, analyse in (("followed", followed), ("diabetes", diabetes)):
        train, test, schema = halves(name)
        real, other = analyse(train), analyse(test)
        columns = {"real (95 % interval)": [], "other half": []}
        for term, (estimate, error) in real.items():
            columns["real (95 % interval)"].append(
                f"{estimate:.3f} ({estimate - 1.96 * error:.3f} to {estimate + 1.96 * error:.3f})"
            )
            columns["other half"].append(_shown([other[term]], real[term]))
        for epsilon in (1.0, 3.0, 10.0):
            made = []
            for seed in range(3):
                model = DPMarginals(epsilon, 1e-5, random_state=seed).fit(train, schema=schema)
                made.append(analyse(model.sample(schema.n_public, random_state=seed)))
            columns[f"ε = {epsilon:g}"] = [_shown([each[term] for each in made], real[term]) for term in real]
        print(f"\n## {name}: {schema.n_public:,} patients, {len(train):,} rows\n")
        print("| | " + " | ".join(columns) + " |\n|---|" + "---|" * len(columns))
        for term, *cells in zip(real, *columns.values(), strict=True):
            print(f"| {term} | " + " | ".join(cells) + " |", flush=True)


def _shown(made: list[tuple[float, float]], real: tuple[float, float]) -> str:
    """Median estimate, and how many lie in the real interval."""
    inside = sum(abs(estimate - real[0]) <= 1.96 * real[1] for estimate, _ in made)
    return f"{np.median([estimate for estimate, _ in made]):.3f} ({inside} of {len(made)})"


if __name__ == "__main__":
    main()
