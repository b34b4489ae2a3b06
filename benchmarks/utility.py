"""Utility at a given epsilon: the prior alone, the GAN alone, both, and per-record clipping, side by side.

    python benchmarks/utility.py flchain support2 --epsilon 1 3 10 --seeds 5 [--what "GAN alone"]

Half of the table trains, half tests (stratified by outcome, split seed 0); delta = n_public^-1.5; everything
is paid for. One line of JSON a run on stderr, then the medians over seeds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

import dpsynth
from dpsynth import Shares, TrainingSettings

MEASURES = {
    "AUC": "auc_mean",
    "NN": "nn_accuracy_train",
    "TVD": "tvd_mean",
    "corr": "correlation_error",
    "positive": "positive_rate_synthetic",
}
# Without a prior the marginals cost a tenth of mu^2 and the critic has the rest.
GAN_SHARES = Shares(marginals=0.1)
MODES: dict[str, dict[str, object]] = {
    "tree alone": {"prior": "tree", "training_steps": 0},
    "TAN alone": {"prior": "tan", "training_steps": 0},
    "GAN alone": {"prior": "none", "training_steps": 1000, "shares": GAN_SHARES},
    "TAN + GAN": {"prior": "tan"},
    "GAN alone, clipping": {
        "prior": "none",
        "training_steps": 1000,
        "shares": GAN_SHARES,
        "noise_shape": "spherical",
        "training": TrainingSettings(
            activation="leaky_relu",
            critic_hidden=(16, 16),
            critic_constraint="none",
            penalty="public",
            penalty_weight=1.0,
            clip_norm=1.0,
            critic_learning_rate=3e-3,
        ),
    },
    "GAN alone, clipping, spectral": {
        "prior": "none",
        "training_steps": 1000,
        "shares": GAN_SHARES,
        "noise_shape": "spherical",
        "training": TrainingSettings(clip_norm=1.0),
    },
}


def one_run(name: str, mode: str, epsilon: float, seed: int) -> dict[str, object]:
    train, test = dpsynth.datasets.train_test(dpsynth.datasets.load(name), test_fraction=0.5, seed=0)
    start = time.perf_counter()
    model = dpsynth.DPWGANGP(epsilon=epsilon, random_state=seed, **MODES[mode])
    model.fit(train.frame, schema=train.schema)
    seconds = time.perf_counter() - start
    synthetic = model.sample(len(train.frame), random_state=seed)
    found = dpsynth.evaluate(
        synthetic, train=train.frame, test=test.frame, schema=train.schema, seed=0, reference=False
    )
    row = {"data": name, "mode": mode, "epsilon": epsilon, "seed": seed}
    row |= {"spent": model.ledger_.epsilon(model.delta_), "seconds": seconds}
    return row | {short: found[measure].value for short, measure in MEASURES.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+")
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 3.0, 10.0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--what", nargs="+", choices=sorted(MODES), default=list(MODES))
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows = []
    for name in args.data:
        for mode in args.what:
            for epsilon in args.epsilon:
                for seed in range(args.seeds):
                    rows.append(one_run(name, mode, epsilon, seed))
                    line = json.dumps(rows[-1])
                    print(line, file=sys.stderr, flush=True)
                    if args.out:
                        with args.out.open("a") as sink:
                            sink.write(line + "\n")
    frame = pd.DataFrame(rows)
    keys = ["data", "mode", "epsilon"]
    table = frame.drop(columns="seed").groupby(keys, sort=False).median(numeric_only=True)
    with pd.option_context("display.width", 200, "display.max_columns", 20):
        print(table.round(3).to_string())
    assert np.all(frame["spent"] <= frame["epsilon"] + 1e-9)


if __name__ == "__main__":
    main()
