"""What a classifier can tell of RAND HIE's records when it has seen rows of the same family.

    python benchmarks/randhie_families.py [--epsilon 3] [--seeds 5]

Rows of one person, and of one family, repeat the plan, the amounts and the index of diseases. A classifier
that was trained on some of them recognises the others. So three areas under the curve are printed:

real       two halves of the real families against each other, folds by row: the least that a generator can
           reach that knows no family
by row     held-out real against synthetic records, folds by row, as the page has it
by family  the same with all rows of a family in one fold: 0.5 is no difference

Families are rows with the same plan and amounts; groups of more than 20 rows are no family.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, cross_val_predict

import dpsynth

PLAN = ["coinsurance", "deductible", "incentive", "expense_limit"]
MOST_ROWS = 20


def coded(frame: pd.DataFrame) -> pd.DataFrame:
    """The table in numbers."""
    words = frame.select_dtypes(exclude="number").columns
    return frame.assign(**{name: pd.Categorical(frame[name]).codes for name in words}).astype(float)


def families(frame: pd.DataFrame) -> np.ndarray:
    """Number of each row's family; rows of large groups are families of their own."""
    group = frame.groupby(PLAN).ngroup().to_numpy()
    alone = np.bincount(group)[group] > MOST_ROWS
    return np.where(alone, group.max() + 1 + np.arange(len(group)), group)


def auc(rows: np.ndarray, label: np.ndarray, folds: object, groups: np.ndarray | None = None) -> float:
    model = HistGradientBoostingClassifier(max_iter=60, random_state=0)
    score = cross_val_predict(model, rows, label, cv=folds, groups=groups, method="predict_proba")[:, 1]
    return float(roc_auc_score(label, score))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    table = dpsynth.datasets.load("randhie")
    train, test = dpsynth.datasets.independent_split(table, 0.5, 0)
    whole, held = coded(table.frame), coded(test.frame)
    found = []
    for seed in range(args.seeds):
        by_row = StratifiedKFold(3, shuffle=True, random_state=seed)
        family = families(whole)
        side = np.random.default_rng(seed).integers(0, 2, family.max() + 1)[family]
        model = dpsynth.DPMarginals(epsilon=args.epsilon, delta=1e-5, random_state=seed)
        made = coded(model.fit(train.frame, schema=train.schema).sample(len(held))[list(held)])
        rows, label = np.vstack([held, made]), np.repeat([0, 1], len(held))
        own = families(held)
        groups = np.concatenate([own, own.max() + 1 + np.arange(len(made))])
        by_family = StratifiedGroupKFold(3, shuffle=True, random_state=seed)
        found.append(
            {
                "real": auc(whole.to_numpy(), side, by_row),
                "by row": auc(rows, label, by_row),
                "by family": auc(rows, label, by_family, groups),
            }
        )
    shown = pd.DataFrame(found)
    print(shown.agg(["median", "min", "max"]).round(3).to_string())


if __name__ == "__main__":
    main()
