"""Does the evaluation catch what it should? Tables of known worth, measured side by side.

    python benchmarks/caught.py [breast_cancer flchain] [--seeds 5]

A fresh third of the real table (as good as a synthetic table can be), a bootstrap of the training records
(remembers everybody), independent columns (each right, together useless), one outcome only (collapsed) and a
private table at epsilon = 3. For each: the medians over seeds of the main numbers, and in how many of the
seeds each verdict was given.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Callable

import numpy as np
import pandas as pd

import dpsynth
from dpsynth.datasets.table import Table
from dpsynth.report.verdicts.rules import judge

NUMBERS = ("auc_mean", "auc_real_mean", "nn_accuracy_train", "privacy_loss", "membership_auc", "tvd_mean")
Maker = Callable[[Table, pd.DataFrame, np.random.Generator], pd.DataFrame]


def fresh(train: Table, spare: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return spare


def bootstrap(train: Table, spare: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return train.frame.iloc[rng.integers(len(train.frame), size=len(train.frame))].reset_index(drop=True)


def independent(train: Table, spare: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    columns = {name: train.frame[name].to_numpy()[rng.permutation(len(train.frame))] for name in train.frame}
    return pd.DataFrame(columns).astype(train.frame.dtypes.to_dict())


def collapsed(train: Table, spare: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    column = train.schema.column(str(train.outcome))
    return spare.assign(**{column.name: column.categories[0]}).astype(spare.dtypes.to_dict())


def private(train: Table, spare: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    model = dpsynth.DPMarginals(epsilon=3.0, delta=1e-5)
    model.fit(train.frame, schema=train.schema)
    return model.sample(len(train.frame))


MAKERS: dict[str, Maker] = {
    "fresh real records": fresh,
    "bootstrap of training": bootstrap,
    "independent columns": independent,
    "one outcome only": collapsed,
    "dpsynth, epsilon 3": private,
}


def main() -> None:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("datasets", nargs="*", default=["breast_cancer"])
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in arguments.datasets:
        table = dpsynth.datasets.load(name)
        print(f"\n{name}: thirds of {len(table.frame)} records train, test and stand for a perfect table")
        print("| table | " + " | ".join(NUMBERS) + " | verdicts (of seeds) |")
        print("|---" * (len(NUMBERS) + 2) + "|")
        for label, make in MAKERS.items():
            values: dict[str, list[float]] = {number: [] for number in NUMBERS}
            given: Counter[str] = Counter()
            for seed in range(arguments.seeds):
                rest, test = dpsynth.datasets.train_test(table, 1 / 3, seed)
                train, spare = dpsynth.datasets.train_test(rest, 0.5, seed)
                made = make(train, spare.frame.reset_index(drop=True), np.random.default_rng(seed))
                found = dpsynth.evaluate(
                    made, train=train.frame, test=test.frame, schema=train.schema, seed=seed
                )
                given.update(v.code for v in judge(found) if v.severity in ("caution", "bad"))
                for number in NUMBERS:
                    if number in found and found[number].value is not None:
                        values[number].append(float(found[number].value))
            cells = [f"{np.median(values[number]):.3f}" if values[number] else "n/a" for number in NUMBERS]
            said = ", ".join(f"{code} {times}" for code, times in sorted(given.items())) or "none"
            print("| " + " | ".join([label, *cells, said]) + " |", flush=True)


if __name__ == "__main__":
    main()
