"""What a declared study's share of the budget costs the rest of the table.

    python benchmarks/study_share.py support2 flchain --epsilon 1 3 --seeds 5 [--out runs.jsonl]

Half of the table trains, half tests (stratified by outcome, split seed 0); the default model, without
training, with no study and with one of eight terms, which has 0.3 of mu^2. Medians over seeds and ranges:
areas under the curve of models trained on the synthetic and tested on the held-out records, nearest-neighbour
accuracy against the training records, and the worst column's error of the 1st or 99th percentile, in its real
standard deviations. Models are trained on a random part of 2,000 records, neighbours are among 800.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import pandas as pd
from study_cases import CASES

import dpsynth

MEASURES = {
    "AUC, logistic": "auc_logistic_regression",
    "AUC, boosting": "auc_hist_gradient_boosting",
    "NN accuracy": "nn_accuracy_train",
    "worst tail": "percentile_error_worst",
}
PARTS = {"records": 2000}


def one_run(name: str, epsilon: float, seed: int, *, declared: bool) -> dict[str, object]:
    """Measures of one table; with a study, how many times as wide its intervals are as without noise."""
    train, test = dpsynth.datasets.train_test(dpsynth.datasets.load(name), test_fraction=0.5, seed=0)
    also = [dpsynth.Studies([CASES[name].study()])] if declared else []
    model = dpsynth.DPMarginals(epsilon=epsilon, random_state=seed)
    model.fit(train.frame, schema=train.schema, also=also)
    made = model.sample(len(train.frame), random_state=seed)
    real = {"train": train.frame, "test": test.frame, "schema": train.schema}
    found = dpsynth.evaluate(made, **real, seed=0, reference=False, effects=(), **PARTS)
    row: dict[str, object] = {"table": name, "ε": epsilon, "study": "yes" if declared else "no", "seed": seed}
    row |= {short: abs(found[measure].value) for short, measure in MEASURES.items()}
    if declared:
        expected = also[0].expected_widening(train.schema, model)
        row |= {"expected": expected["study"], "told": model.study("study").widening}
    return row


def summary(rows: list[dict[str, object]]) -> str:
    """Markdown: the median over seeds of each measure, and its range in brackets."""
    columns = [*MEASURES, "expected", "told"]
    lines = ["| table | ε | study | " + " | ".join([*MEASURES, "widening expected", "told"]) + " |"]
    lines.append("|---|---:|---|" + "---:|" * len(columns))
    for keys, part in pd.DataFrame(rows).groupby(["table", "ε", "study"], sort=False):
        cells = [f"{keys[0]}", f"{keys[1]:g}", f"{keys[2]}"]
        for column in columns:
            values = part[column].dropna() if column in part else pd.Series(dtype=float)
            digits = 3 if column in MEASURES else 2
            shown = [f"{value:.{digits}f}" for value in (values.median(), values.min(), values.max())]
            cells.append(f"{shown[0]} ({shown[1]} to {shown[2]})" if len(values) else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+")
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 3.0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows: list[dict[str, object]] = []
    for name in args.data:
        for epsilon in args.epsilon:
            for declared in (False, True):
                for seed in range(args.seeds):
                    rows.append(one_run(name, epsilon, seed, declared=declared))
                    if args.out:
                        args.out.write_text("".join(json.dumps(row) + "\n" for row in rows))
                print(f"{name} {epsilon:g} declared={declared}", file=sys.stderr, flush=True)
    print(summary(rows))


if __name__ == "__main__":
    main()
