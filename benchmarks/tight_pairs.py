"""Columns that are nearly functions of each other: the spread of one given the other, over the real one.

    python benchmarks/tight_pairs.py [--seeds 3] [--epsilon 1 3 10]

Half the distance between the 16th and 84th percentile of what a straight line leaves of one column, within
ten parts of the other of equal size, averaged. *Independent*: values within bins are drawn independently of
each other, as before they were coupled. *Coupled*: as in the package. Two tables: a made-up ward of 5,000
patients with PT and INR (correlation .99), haematocrit and red cells (.93), systolic and diastolic pressure
(.78) and 12 other columns; and 4,000 patients of PhysioNet 2012 (needs DPSYNTH_DATA_DIR).
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd

from dpsynth import Column, DPMarginals, Schema
from dpsynth.marginals.network import BayesianNetwork

#: Lower and upper limit, decimals and scale.
LIMITS = {
    "pt": (8, 120, 1, "log"),
    "inr": (0.5, 12, 2, "log"),
    "haematocrit": (10, 65, 1, "linear"),
    "red_cells": (1, 8, 2, "linear"),
    "systolic": (40, 280, 0, "linear"),
    "diastolic": (10, 180, 0, "linear"),
    "mean_pressure": (20, 220, 0, "linear"),
    "urea": (1, 250, 0, "log"),
    "creatinine": (0.1, 25, 1, "log"),
    "ast": (4, 20_000, 0, "log"),
    "alt": (2, 15_000, 0, "log"),
    "sodium": (95, 185, 0, "linear"),
    "bicarbonate": (3, 60, 0, "linear"),
}


def ward(n: int) -> tuple[pd.DataFrame, Schema, list[tuple[str, str]]]:
    rng = np.random.default_rng(0)
    pt, haematocrit, systolic = (
        np.exp(rng.normal(2.65, 0.25, n)),
        rng.normal(35, 6, n),
        rng.normal(125, 22, n),
    )
    age = rng.integers(20, 95, n)
    values = {
        "pt": pt,
        "inr": (pt / 12.5) ** 1.05 * np.exp(rng.normal(0, 0.03, n)),
        "haematocrit": haematocrit,
        "red_cells": haematocrit / 9 + rng.normal(0, 0.25, n),
        "systolic": systolic,
        "diastolic": 0.45 * systolic + 8 + rng.normal(0, 8, n),
    }
    died = rng.random(n) < 1 / (1 + np.exp(-(age - 75) / 10 - (pt - 15) / 10))
    others = [Column(name=f"x{k}", kind="continuous", lower=-5, upper=5, decimals=2) for k in range(10)]
    noise = {column.name: rng.normal(size=n).round(2).clip(-5, 5) for column in others}
    ages = Column(name="age", kind="integer", lower=18, upper=100)
    frame, schema = made(values, died, [*others, ages], noise | {"age": age})
    return frame, schema, [("pt", "inr"), ("haematocrit", "red_cells"), ("systolic", "diastolic")]


def intensive_care() -> tuple[pd.DataFrame, Schema, list[tuple[str, str]]]:
    raw = pd.read_csv(Path(os.environ["DPSYNTH_DATA_DIR"]) / "PhysionetChallenge2012-set-a.csv.gz")
    names = {
        "systolic": "NISysABP_first",
        "diastolic": "NIDiasABP_first",
        "mean_pressure": "NIMAP_first",
        "urea": "BUN_first",
        "creatinine": "Creatinine_first",
        "ast": "AST_first",
        "alt": "ALT_first",
        "haematocrit": "HCT_first",
        "sodium": "Na_first",
        "bicarbonate": "HCO3_first",
    }
    values = {name: raw[column].where(raw[column] > 0) for name, column in names.items()}
    ages = Column(name="age", kind="integer", lower=16, upper=90)
    frame, schema = made(values, raw["In-hospital_death"] == 1, [ages], {"age": raw["Age"].clip(16, 90)})
    pairs = [("systolic", "diastolic"), ("systolic", "mean_pressure"), ("diastolic", "mean_pressure")]
    return frame, schema, [*pairs, ("urea", "creatinine"), ("ast", "alt")]


def made(values, died, others, more) -> tuple[pd.DataFrame, Schema]:  # type: ignore[no-untyped-def]
    """A table of measurements with public limits and of other columns, with death as its outcome."""
    columns, found = list(others), dict(more)
    for name, series in values.items():
        lower, upper, decimals, scale = LIMITS[name]
        missing = bool(pd.isna(series).any())
        limits = {"lower": lower, "upper": upper, "decimals": decimals, "scale": scale}
        columns.append(Column(name=name, kind="continuous", missing=missing, **limits))
        found[name] = np.clip(np.round(series, decimals), lower, upper)
    columns.append(Column(name="died", kind="binary", categories=("no", "yes")))
    found["died"] = np.where(died, "yes", "no")
    schema = Schema(columns=tuple(columns), outcome="died", n_public=len(died))
    return schema.conform(pd.DataFrame(found)).frame, schema


def left(frame: pd.DataFrame, of: str, given: str) -> float:
    """What a line leaves of one column within tenths of another, as half the middle 68 %."""
    both = frame[[given, of]].dropna().astype(float)
    spreads = []
    for _, part in both.groupby(pd.qcut(both[given], 10, duplicates="drop"), observed=True):
        if len(part) > 20:
            design = np.column_stack([np.ones(len(part)), part[given]])
            rest = part[of] - design @ np.linalg.lstsq(design, part[of], rcond=None)[0]
            spreads.append(float(np.subtract(*np.quantile(rest, [0.84, 0.16]))) / 2)
    return float(np.mean(spreads))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 3.0, 10.0])
    given = parser.parse_args()
    print("| table | ε | column, given | independent | coupled |\n|---|---:|---|---:|---:|")
    for name, (frame, schema, pairs) in {"ward": ward(5000), "PhysioNet 2012": intensive_care()}.items():
        both = [pair for one, other in pairs for pair in ((one, other), (other, one))]
        for epsilon in given.epsilon:
            ratios = np.empty((2, given.seeds, len(both)))
            for seed in range(given.seeds):
                for arm, coupled in enumerate((lambda base_model, *_: base_model, BayesianNetwork.coupled)):
                    with mock.patch.object(BayesianNetwork, "coupled", coupled):
                        model = DPMarginals(epsilon, 1e-5, random_state=seed).fit(frame, schema=schema)
                    sample = model.sample(len(frame), random_state=seed)
                    ratios[arm, seed] = [left(sample, *pair) / left(frame, *pair) for pair in both]
            for pair, apart, together in zip(both, *np.median(ratios, axis=1), strict=True):
                print(
                    f"| {name} | {epsilon:g} | {pair[0]}, {pair[1]} | {apart:.2f} | {together:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
