"""Synthetic patients with several rows beside other ways to make them.

    DPSYNTH_DATA_DIR=... python -m benchmarks patients --tables nafld --epsilons 3 --seeds 3

Half of the patients train, and the other half judges. Every arm protects a patient with all rows. Medians
over seeds. The columns are those of the evaluation of patients over time.
"""

from __future__ import annotations

import argparse
import os
import resource
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.patients.arms import Arm, markov, relational, several_rows, strangers, wide, wide_peer
from benchmarks.patients.tables import TABLES, halves
from benchmarks.peers.environments import Environments
from dpsynth import PatientSchema
from dpsynth.evaluation.development import trajectories
from dpsynth.evaluation.evaluators import Settings
from dpsynth.evaluation.tables import Tables


def judged(made: pd.DataFrame, train: pd.DataFrame, test: pd.DataFrame, schema: PatientSchema) -> dict:
    """Measures of a synthetic table by name."""
    tables = Tables.of(made, train=train, test=test, schema=schema)
    found = trajectories(tables, Settings.of(seed=0), np.random.default_rng(0))
    values = {measure.name: measure.value for measure in found.measures}
    lags = [abs(v) for k, v in values.items() if k.startswith("lag") and "_difference[" in k]
    within = {k: v for k, v in values.items() if k.startswith("within_sd_")}
    ratios = [
        abs(np.log(v / within[k.replace("synthetic", "train")]))
        for k, v in within.items()
        if "_synthetic[" in k and v and within[k.replace("synthetic", "train")]
    ]
    transitions = [v for k, v in values.items() if k.startswith("transition_tvd[") and v is not None]
    effects = [v for k, v in values.items() if k.startswith("mixed_effect_error[") and v is not None]
    aucs = [v for k, v in values.items() if k.startswith("patient_auc_") and "loss" not in k and v]
    return {
        "patient AUC": max(aucs, default=np.nan),
        "rows TVD": values.get("rows_tvd"),
        "gaps KS": values.get("gap_ks"),
        "lags": np.mean(lags) if lags else np.nan,
        "sd within": np.mean(ratios) if ratios else np.nan,
        "transitions": np.mean(transitions) if transitions else np.nan,
        "row correlations": values.get("row_correlation_error"),
        "mixed effects": max(effects, default=np.nan),
    }


def main(arguments: Sequence[str]) -> None:
    """Fit, judge and print a table for each data set and epsilon."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks patients", description=__doc__)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 3.0, 10.0])
    parser.add_argument("--arms", nargs="+", default=["several rows"], help="or: all")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=6, help="rows of a patient in one wide row")
    parser.add_argument("--patients", type=int, help="at most so many in each half")
    parser.add_argument("--environments", type=Path, default=Path("environments"))
    parser.add_argument("--google", help="Python of an environment that has google/dpsynth")
    parser.add_argument("--rscript", default="Rscript", help="R that has flexsynth and jsonlite")
    asked = parser.parse_args(arguments)
    first = asked.first
    environments = Environments(asked.environments, {"google": asked.google} if asked.google else {})
    arms: dict[str, Arm] = {
        "several rows": several_rows,
        "rows as strangers": strangers,
        "one wide row": wide(first),
        "one wide row, dpmm MST": wide_peer(first, "mst", environments),
        "one wide row, dpmm AIM": wide_peer(first, "aim", environments),
        "relational, google/dpsynth": relational(environments, slots=3),
        "relational of first rows, google/dpsynth": relational(environments, slots=first, first=first),
        "chain of rows, flexsynth": markov(asked.rscript),
        "chain of rows with two companions, flexsynth": markov(asked.rscript, companions=2),
    }
    chosen = list(arms) if asked.arms == ["all"] else asked.arms
    for name in asked.tables:
        train, test, schema = halves(name, asked.patients)
        print(f"\n## {name}: {schema.n_public:,} patients, {len(train):,} rows, at most {schema.most}\n")
        lines = [("real patients", "", judged(test, train, test, schema) | {"seconds": np.nan})]
        lines[0][2]["patient AUC"] = judged(train, test, test, schema)["patient AUC"]
        header = ["arm", "epsilon", *lines[0][2], "peak MiB"]
        print("| " + " | ".join(header) + " |\n|" + "---|" * len(header), flush=True)
        show(*lines[0])
        for epsilon in asked.epsilons:
            for arm in chosen:
                rounds = []
                for seed in range(asked.seeds):
                    begun = sum(os.times()[:4])  # with those of a peer's process
                    try:
                        made = arms[arm](train, schema, epsilon, seed)
                    except (RuntimeError, ValueError) as problem:
                        print(f"| {arm} | {epsilon:g} | {problem} |", flush=True)
                        break
                    seconds = sum(os.times()[:4]) - begun
                    rounds.append(judged(made, train, test, schema) | {"seconds": seconds})
                if rounds:
                    show(arm, f"{epsilon:g}", pd.DataFrame(rounds).astype(float).median().to_dict())


def show(arm: str, epsilon: str, measures: dict) -> None:
    """Print one line of the table."""
    cells = [
        "" if value is None or np.isnan(value) else f"{value:.0f}" if name == "seconds" else f"{value:.3f}"
        for name, value in measures.items()
    ]
    processes = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    peak = max(resource.getrusage(process).ru_maxrss for process in processes) / 1024
    print("| " + " | ".join([arm, epsilon, *cells, f"{peak:.0f}"]) + " |", flush=True)
