"""Would a clinician believe the columns? Spread, tails, point masses and habits of digits at a given epsilon.

    python benchmarks/columns.py breast_cancer flchain support2 --epsilon 1 3 10 --seeds 5 [--columns]

Half of the table trains, half tests (stratified by outcome, split seed 0). Both sides are compared at the
declared step. Of each column:

spread   its standard deviation over the real one's
p99      error of the 99th percentile, in real standard deviations
tail     the larger of this and the error of the 1st percentile
masses   largest error in the share of a value that holds more than 5 % of the real records
tvd      total variation distance of its values from those of held-out records
alone    area under the curve of boosted trees that tell held-out real from synthetic records by this column

Printed are medians over seeds, column by column, and the spread of the worst fit; then the share of columns
within the aims (spread 0.8 to 1.25, tail below 0.5, masses below 0.05), the deviation of the number of
missing cells a row (gaps), and the usual measures.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

import dpsynth
from dpsynth.synthesis.generators import options_of, unfitted

MODES: dict[str, dict[str, object]] = {
    "TAN": {"statistics": {"base_model": "tan", "pairwise_statistics": False}},
    "default": {},
}
USUAL = {"AUC": "auc_mean", "NN": "nn_accuracy_train", "TVD": "tvd_mean", "corr": "correlation_error"}


def on_steps(frame: pd.DataFrame, schema: dpsynth.Schema) -> pd.DataFrame:
    """The conformed frame with every number on its column's declared step."""
    frame = schema.conform(frame).frame.reset_index(drop=True)
    for column in schema.columns:
        if column.is_numeric and column.resolution is not None:
            steps = np.rint((frame[column.name].astype(float) - column.lower) / column.resolution)
            frame[column.name] = np.round(column.lower + steps * column.resolution, 9)
    return frame


def tails(real: pd.Series, made: pd.Series) -> dict[str, float]:
    a, b = (s.dropna().to_numpy(dtype=float) for s in (real, made))
    if len(b) < 2 or a.std() == 0:
        return {"spread": np.nan, "tail": np.nan, "masses": np.nan}
    ends = [abs(np.quantile(b, p) - np.quantile(a, p)) / a.std() for p in (0.01, 0.99)]
    values, counts = np.unique(np.round(a, 9), return_counts=True)
    heavy = values[counts > 0.05 * len(a)]
    masses = [abs(np.mean(np.round(b, 9) == v) - np.mean(np.round(a, 9) == v)) for v in heavy]
    return {
        "spread": b.std() / a.std(),
        "p99": ends[1],
        "tail": max(ends),
        "masses": max(masses, default=0.0),
    }


def distance(held: pd.Series, made: pd.Series) -> float:
    """Total variation distance of two columns' values, missing ones among them."""
    shares = [series.value_counts(normalize=True, dropna=False) for series in (held, made)]
    return float(shares[0].sub(shares[1], fill_value=0.0).abs().sum() / 2)


def told_apart(real: pd.DataFrame, made: pd.DataFrame, seed: int = 0) -> float:
    """Cross-validated AUC of boosted trees between two frames of numbers, at least 1/2."""
    size = min(len(real), len(made))
    both = pd.concat([real.sample(size, random_state=seed), made.sample(size, random_state=seed)])
    label = np.repeat([0, 1], size)
    model = HistGradientBoostingClassifier(max_iter=60, random_state=0)
    score = cross_val_predict(model, both.to_numpy(float), label, cv=3, method="predict_proba")[:, 1]
    return max(0.5, float(roc_auc_score(label, score)))


def numbers(frame: pd.DataFrame, schema: dpsynth.Schema) -> pd.DataFrame:
    made = {}
    for column in schema.columns:
        series = frame[column.name]
        made[column.name] = (
            series.astype(float)
            if column.is_numeric
            else series.astype(object).map({c: i for i, c in enumerate(column.categories)}).astype(float)
        )
    return pd.DataFrame(made)


def one_run(name: str, mode: str, epsilon: float, seed: int, quick: bool) -> list[dict[str, object]]:
    train, test = dpsynth.datasets.train_test(dpsynth.datasets.load(name), test_fraction=0.5, seed=0)
    model = unfitted(options_of(epsilon=epsilon, random_state=seed, **MODES[mode]))
    model.fit(train.frame, schema=train.schema)
    made = model.sample(len(train.frame), random_state=seed)
    schema = train.schema
    real, held, synthetic = (on_steps(f, schema) for f in (train.frame, test.frame, made))
    key = {"data": name, "mode": mode, "epsilon": epsilon, "seed": seed}
    rows: list[dict[str, object]] = []
    held_numbers, made_numbers = numbers(held, schema), numbers(synthetic, schema)
    for column in schema.columns:
        ordinal = column.is_ordinal and not isinstance(column.categories[0], str)
        if column.is_numeric or ordinal:
            row: dict[str, object] = {**key, "column": column.name}
            row |= tails(real[column.name], synthetic[column.name])
            row["tvd"] = distance(held_numbers[column.name], made_numbers[column.name])
            row["alone"] = told_apart(held_numbers[[column.name]], made_numbers[[column.name]])
            rows.append(row)
    usual: dict[str, object] = {**key, "column": "(all)"}
    gaps = [frame.isna().sum(axis=1).std() for frame in (real, synthetic)]
    usual |= {"gaps_real": gaps[0], "gaps": gaps[1]}
    if not quick:
        usual["discriminator"] = told_apart(held_numbers, made_numbers)
        found = dpsynth.evaluate(
            made, train=train.frame, test=test.frame, schema=schema, seed=0, reference=False, effects=()
        )
        usual |= {short: found[measure].value for short, measure in USUAL.items()}
    return [*rows, usual]


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    keys = ["data", "mode", "epsilon"]
    columns = (
        frame[frame["column"] != "(all)"].groupby([*keys, "column"], sort=False).median(numeric_only=True)
    )
    within = pd.DataFrame(
        {
            "spread ok": columns["spread"].between(0.8, 1.25),
            "tail ok": columns["tail"] < 0.5,
            "masses ok": columns["masses"] < 0.05,
            "worst spread": columns["spread"],
            "worst tail": columns["tail"],
            "worst masses": columns["masses"],
            "worst alone": columns.get("alone", np.nan),
        }
    )
    far = lambda s: s.iloc[np.abs(np.log(np.maximum(s, 1e-9))).argmax()]  # noqa: E731
    ways = {c: "mean" for c in within if c.endswith("ok")} | {
        c: "max" for c in within if c.startswith("worst")
    }
    table = within.groupby(keys, sort=False).agg(ways | {"worst spread": far})
    usual = frame[frame["column"] == "(all)"].groupby(keys, sort=False).median(numeric_only=True)
    kept = [c for c in (*USUAL, "discriminator", "gaps_real", "gaps") if c in usual]
    return table.join(usual[kept])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+")
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 3.0, 10.0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--what", nargs="+", choices=sorted(MODES), default=["TAN"])
    parser.add_argument("--quick", action="store_true", help="columns only, no models")
    parser.add_argument("--columns", action="store_true", help="print every column as well")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows: list[dict[str, object]] = []
    for name in args.data:
        for mode in args.what:
            for epsilon in args.epsilon:
                for seed in range(args.seeds):
                    rows += one_run(name, mode, epsilon, seed, args.quick)
                print(f"{name} {mode} {epsilon:g}", file=sys.stderr, flush=True)
    frame = pd.DataFrame(rows)
    if args.out:
        args.out.write_text("\n".join(json.dumps(r) for r in rows) + "\n")
    with pd.option_context("display.width", 250, "display.max_columns", 40, "display.max_rows", 500):
        if args.columns:
            kept = frame[frame["column"] != "(all)"].drop(columns=["seed"])
            keys = ["data", "mode", "epsilon", "column"]
            found = kept.groupby(keys, sort=False)
            worst = found["spread"].agg(lambda s: s.iloc[np.abs(np.log(np.maximum(s, 1e-9))).argmax()])
            print(found.median(numeric_only=True).assign(worst_spread=worst).round(3).to_string())
        print(summary(frame).round(3).to_string())


if __name__ == "__main__":
    main()
