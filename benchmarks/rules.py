"""What rules do to a sample: refused alone, as factors of the draw, and as differences.

    python benchmarks/rules.py [--seeds 5] [--tables clinic breast_cancer vital_signs diabetes130 randhie]

A half of each table is fitted (at most 10,000 records), with the default budget, and as many are sampled, but
at least 5,000.

refused      draws that break a rule are refused, and the rest is weighted back to the released counts
drawn        rules are factors of the sweeps, and values are exchanged within bins, as in the package
differences  the larger of two columns is the smaller plus a modelled difference (breast_cancer)

Each line has the share of draws that obey, the total variation distance of the worst column from its released
counts (in at most 100 ranges), the AUC of the outcome on the other half, the mean absolute error of rank
correlations, and the processor's seconds for fit and sample.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

import dpsynth
from dpsynth import Column, DPMarginals, Schema
from dpsynth.synthesis.sampling import margin

NO_YES = ("no", "yes")
CLINIC = Schema(
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
    return CLINIC.conform(pd.DataFrame(values)).frame


FEATURES = ("radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity")
FEATURES += ("concave_points", "symmetry", "fractal_dimension")
#: Measurements of a patient in PhysioNet 2012, with wide public limits and decimals.
VITALS = {
    "HR": (0, 300, 0),
    "Temp": (20, 45, 1),
    "RespRate": (0, 80, 0),
    "NISysABP": (20, 300, 0),
    "Glucose": (10, 1000, 0),
}


def vital_signs() -> tuple[pd.DataFrame, Schema]:
    """Lowest, first, median and highest value of five measurements in two days of intensive care."""
    folder = Path(os.environ["DPSYNTH_DATA_DIR"])
    raw = pd.read_csv(folder / "PhysionetChallenge2012-set-a.csv.gz")
    columns, rules, values = [], [], {}
    for name, (lower, upper, decimals) in VITALS.items():
        parts = [f"{name}_{kind}" for kind in ("lowest", "first", "median", "highest")]
        low, first, median, high = parts
        rules += [f"{low} <= {first}", f"{first} <= {high}", f"{low} <= {median}", f"{median} <= {high}"]
        for part in parts:
            columns.append(
                Column(
                    name=part, kind="continuous", lower=lower, upper=upper, decimals=decimals, missing=True
                )
            )
            values[part] = raw[part].where(raw[part] > 0).round(decimals).clip(lower, upper)
    columns += [
        Column(name="age", kind="integer", lower=16, upper=90),
        Column(name="death", kind="binary", categories=(0, 1)),
    ]
    values |= {"age": raw["Age"].clip(16, 90).astype(int), "death": raw["In-hospital_death"]}
    schema = Schema(columns=tuple(columns), outcome="death", constraints=tuple(rules))
    return schema.conform(pd.DataFrame(values)).frame, schema


def table(name: str) -> tuple[pd.DataFrame, Schema, list[tuple[str, str]]]:
    """Records, their schema, and the pairs (smaller, larger) that differences can stand for."""
    if name == "clinic":
        return clinic(8000, 0), CLINIC, []
    if name == "vital_signs":
        frame, schema = vital_signs()
        return frame, schema, []
    known = dpsynth.datasets.load(name)
    schema, pairs = known.schema, []
    if name == "breast_cancer":
        pairs = [(f"mean_{part}", f"worst_{part}") for part in FEATURES]
        schema = remade(schema, schema.columns, [f"{low} <= {high}" for low, high in pairs])
    return schema.conform(known.frame).frame, schema, pairs


def remade(schema: Schema, columns: tuple[Column, ...], constraints: list[str] | tuple[str, ...]) -> Schema:
    return Schema(columns=columns, outcome=schema.outcome, constraints=tuple(constraints))


def differences(
    frame: pd.DataFrame, schema: Schema, pairs: list[tuple[str, str]]
) -> tuple[pd.DataFrame, Schema]:
    """The same table, with each larger column as the smaller and a modelled difference."""
    smaller = {high: low for low, high in pairs}
    columns, frame = [], frame.copy()
    for column in schema.columns:
        if column.name not in smaller:
            columns.append(column)
            continue
        low, high = smaller[column.name], column.name
        upper = column.bounds[1] - schema.column(low).bounds[0]
        gap = {"name": f"{high}_more", "lower": 0.0, "upper": upper, "derived": None, "scale": "linear"}
        columns.append(column.model_copy(update=gap))
        columns.append(column.model_copy(update={"derived": f"{low} + {high}_more"}))
        frame[f"{high}_more"] = frame[high] - frame[low]
    return frame, remade(schema, tuple(columns), ())


def codes(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Numbers of all columns, categories by their place."""
    found = {}
    for column in schema.columns:
        series = frame[column.name]
        if not column.is_numeric:
            series = pd.Series(pd.Categorical(series, categories=list(column.categories)).codes)
            series = series.where(series >= 0)
        found[column.name] = pd.to_numeric(series).to_numpy(float, na_value=np.nan)
    return pd.DataFrame(found)


def judged(
    train: pd.DataFrame, test: pd.DataFrame, fitted: Schema, schema: Schema, epsilon: float, seed: int
) -> list[float]:
    """The numbers of a line of the table."""
    start = time.process_time()
    model = DPMarginals(epsilon, 1e-5, random_state=seed).fit(train, schema=fitted.with_n_public(len(train)))
    fit = time.process_time() - start
    start = time.process_time()
    sample = model.sample(max(len(test), 5000), random_state=seed)
    seconds = time.process_time() - start
    assert not any(rule.broken(sample).any() for rule in schema.rules)
    marginals, far = model.model_.encoder.marginals, 0.0
    for grid, p in zip(marginals.grids, marginals.probabilities, strict=True):
        labels, target = margin(grid, p)
        cells = labels[grid.encode(sample[grid.column.name])]
        share = np.bincount(cells, minlength=len(target)) / len(sample)
        far = max(far, 0.5 * float(np.abs(share - target).sum()))
    made, real, outcome = codes(sample, schema), codes(test, schema), schema.outcome
    made, real = (part[part[outcome].notna()] for part in (made, real))
    trees = HistGradientBoostingClassifier(random_state=0).fit(made.drop(columns=outcome), made[outcome])
    scores = trees.predict_proba(real.drop(columns=outcome))
    several = real[outcome].nunique() > 2
    auc = roc_auc_score(real[outcome], scores if several else scores[:, 1], multi_class="ovr")
    error = np.nanmean(np.abs(made.rank().corr().to_numpy() - real.rank().corr().to_numpy()))
    tried = model.acceptance_
    return [
        tried.obey_all / max(tried.candidates, 1) if tried.candidates else 1.0,
        far,
        auc,
        error,
        fit,
        seconds,
    ]


def arms(schema: Schema, pairs: list[tuple[str, str]]) -> dict[str, Callable[..., list[float]]]:
    def refused(*given: object) -> list[float]:
        with mock.patch("dpsynth.synthesis.marginals.with_rules", lambda base_model, *_: base_model):
            return judged(*given)

    def as_differences(train, test, _, __, epsilon, seed):  # type: ignore[no-untyped-def]
        made, fitted = differences(train, schema, pairs)
        return judged(made, test, fitted, schema, epsilon, seed)

    return {"refused": refused, "drawn": judged} | ({"differences": as_differences} if pairs else {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    every = ["clinic", "breast_cancer", "vital_signs", "diabetes130", "randhie"]
    parser.add_argument("--tables", nargs="+", default=every)
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 3.0, 10.0])
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    print("| table | ε | rules | obey | worst column | AUC | correlation | fit, s | sample, s |")
    print("|---|---:|---|---:|---:|---:|---:|---:|---:|")
    for name in given.tables:
        frame, schema, pairs = table(name)
        wrong = [rule.broken(frame) for rule in schema.rules]
        frame = frame[~np.logical_or.reduce(wrong)].reset_index(drop=True)
        for epsilon in given.epsilon:
            for arm, run in arms(schema, pairs).items():
                lines = []
                for seed in range(given.seeds):
                    order = np.random.default_rng(seed).permutation(len(frame))[:20_000]
                    half = len(order) // 2
                    train, test = (
                        frame.iloc[rows].reset_index(drop=True) for rows in (order[:half], order[half:])
                    )
                    try:
                        lines.append(run(train, test, schema, schema, epsilon, seed))
                    except dpsynth.errors.RejectionError:
                        continue
                failed = f" ({given.seeds - len(lines)} of {given.seeds} failed)" * (len(lines) < given.seeds)
                medians = np.median(lines, axis=0) if lines else np.full(6, np.nan)
                numbers = " | ".join(f"{number:.3f}" for number in medians[:4])
                seconds = " | ".join(f"{number:.1f}" for number in medians[4:])
                print(f"| {name} | {epsilon:g} | {arm}{failed} | {numbers} | {seconds} |", flush=True)


if __name__ == "__main__":
    main()
