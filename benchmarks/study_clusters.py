"""Do intervals of a regression of patients' rows cover, where the rows of a patient are much alike?

    python benchmarks/study_clusters.py --repetitions 200 --out rounds

A simulated population with known coefficients. Each patient has 1 to 8 rows, and those with a high value have
more. The residuals of a patient's rows have correlation 0.8. One linear and one logistic regression are
declared in each fit. The table compares, by term, the intervals of the fit with those of the real rows, for
patients as clusters and as if rows were independent.
"""

from __future__ import annotations

import argparse
import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm

import dpsynth
from dpsynth import PatientSchema
from dpsynth.files.storage import carry_out
from dpsynth.table import Column

STUDIES = ("linear: hdl ~ sex + day", "logistic: ill ~ sex + day")
TERMS = ("hdl: sex", "hdl: day", "ill: sex", "ill: day")
#: days of the unit in which both regressions report the time
UNIT = 100
MOST = 8


def schema(n: int) -> PatientSchema:
    """The public description of n patients."""
    return PatientSchema(
        unit="id",
        order="day",
        most=MOST,
        n_public=n,
        columns=(
            Column(name="day", kind="integer", lower=0, upper=2000),
            Column(name="sex", kind="binary", categories=("F", "M")),
            Column(name="hdl", kind="integer", lower=5, upper=150),
            Column(name="ill", kind="binary", categories=("no", "yes")),
        ),
        per_patient=("sex",),
    )


def cohort(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """The rows of n patients of the population."""
    own, sick = rng.standard_normal((2, n))
    rows = 1 + rng.binomial(MOST - 1, 1 / (1 + np.exp(-own - sick)))
    patient = np.repeat(np.arange(n), rows)
    sex, day = rng.integers(0, 2, n), rng.integers(0, 2001, len(patient))
    hdl = (
        55 - 8 * sex[patient] + 0.25 * day / UNIT + 10 * own[patient] + 5 * rng.standard_normal(len(patient))
    )
    odds = np.exp(-1 + 0.6 * sex[patient] + 0.03 * day / UNIT + 3.5 * sick[patient])
    return pd.DataFrame(
        {
            "id": patient,
            "day": day,
            "sex": np.array(["F", "M"])[sex][patient],
            "hdl": hdl.round().clip(5, 150),
            "ill": np.where(rng.random(len(patient)) < odds / (1 + odds), "yes", "no"),
        }
    )


def fitted(frame: pd.DataFrame) -> np.ndarray:
    """Coefficients of the real rows with both standard errors, shape (3, terms): clusters, independent."""
    x = sm.add_constant(np.column_stack([frame["sex"] == "M", frame["day"] / UNIT]).astype(float))
    weights = (1 / frame.groupby("id")["id"].transform("size")).to_numpy()
    parts = []
    for y, family in (
        (frame["hdl"], sm.families.Gaussian()),
        (frame["ill"] == "yes", sm.families.Binomial()),
    ):
        gee = sm.GEE(np.asarray(y, float), x, groups=frame["id"], family=family, weights=weights).fit()
        scores = x * (weights * (np.asarray(y, float) - gee.fittedvalues))[:, None]
        mean = gee.fittedvalues
        variance = mean * (1 - mean) if isinstance(family, sm.families.Binomial) else np.ones(len(x))
        bread = np.linalg.inv((x * (weights * variance)[:, None]).T @ x)
        naive = np.sqrt(np.diag(bread @ scores.T @ scores @ bread))
        parts.append(np.stack([gee.params, gee.bse, naive])[:, 1:])
    return np.concatenate(parts, axis=1)


@cache
def truth() -> np.ndarray:
    """Coefficients of the population, from 400,000 of its patients."""
    return fitted(cohort(400_000, np.random.default_rng(2026)))[0]


def told(task: tuple[int, float | None, int]) -> dict[str, Any]:
    """Coefficients and standard errors of one cohort, from its rows (epsilon None) or from a fit."""
    repetition, epsilon, n = task
    frame = cohort(n, np.random.default_rng([7, repetition]))
    if epsilon is None:
        values, clusters, naive = fitted(frame)
        return {"values": values.tolist(), "clusters": clusters.tolist(), "independent": naive.tolist()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = dpsynth.DPMarginals(epsilon, 1e-6, random_state=repetition)
        found = model.fit(frame, schema=schema(n), also=[dpsynth.Studies(STUDIES)]).estimates_
    return {
        "values": np.concatenate([each.coefficients for each in found]).tolist(),
        "errors": np.concatenate([each.std_errors for each in found]).tolist(),
    }


def line(name: str, values: np.ndarray, errors: np.ndarray, usual: np.ndarray) -> str:
    """Coverage with its standard error, mean square of z, and width beside that of clusters, by term."""
    z = (values - truth()) / errors
    held = (np.abs(z) < 1.959964).mean(axis=0)
    cells = [
        f"{share:.3f} ({np.sqrt(share * (1 - share) / len(z)):.3f}), {square:.2f}, {width:.2f}"
        for share, square, width in zip(
            held, (z**2).mean(axis=0), np.median(errors / usual, axis=0), strict=True
        )
    ]
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Carry out the repetitions that are missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[3.0, 10.0])
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--patients", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", help="Folder of the rounds, which a later call goes on with.")
    args = parser.parse_args()
    tasks = {
        f"{epsilon or 'real'}-{k}": (k, epsilon, args.patients)
        for k in range(args.repetitions)
        for epsilon in (None, *args.epsilon)
    }
    done = carry_out(told, tasks, folder=args.out, settings={"patients": args.patients}, jobs=args.jobs)

    def column(epsilon: float | None, key: str) -> np.ndarray:
        return np.array([done[f"{epsilon or 'real'}-{k}"][key] for k in range(args.repetitions)])

    usual = column(None, "clusters")
    print("| coverage (standard error), z², width | " + " | ".join(TERMS) + " |\n|---|" + "---|" * len(TERMS))
    print(line("real rows, patients as clusters", column(None, "values"), usual, usual))
    print(line("real rows, as if independent", column(None, "values"), column(None, "independent"), usual))
    for epsilon in args.epsilon:
        print(line(f"ε = {epsilon:g}", column(epsilon, "values"), column(epsilon, "errors"), usual))


if __name__ == "__main__":
    main()
