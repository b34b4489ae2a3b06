"""Would weights by a critic on windows make synthetic patients harder to recognise?

    DPSYNTH_DATA_DIR=... python benchmarks/patients_critic.py --tables diabetes --epsilons 1 3 10

Half of the patients train, and the other half judges. The critic's steps use 30 % of mu^2 beside the fit,
which has the whole epsilon. So the comparison favours the critic. Synthetic patients are chosen from twelve
times as many, by weights of at most twelve. The judge is gradient boosting on the features of the evaluation
of patients over time, in three folds. It is used on all patients, and on those with several rows.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.patients.tables import halves
from dpsynth import DPMarginals, PatientSchema
from dpsynth.evaluation.development import patient_features
from dpsynth.patients.histories import Histories
from dpsynth.privacy.gaussian_loss import analytic_sigma
from dpsynth.privacy.records import FrameRecords
from dpsynth.privacy.release import Plan
from dpsynth.research.patient_critic import CriticFit

DELTA, SHARE, MOST = 1e-6, 0.3, 12.0


def features(histories: Histories, schema: PatientSchema) -> np.ndarray:
    frame, described = patient_features(histories, schema)
    codes = {
        column.name: pd.Categorical(frame[column.name], column.categories).codes
        for column in described.columns
        if not column.is_numeric
    }
    return frame.assign(**codes).to_numpy(dtype=float, na_value=np.nan)


def recognised(real: np.ndarray, made: np.ndarray) -> float:
    """Area under the curve of real against as many synthetic patients."""
    n = min(len(real), len(made))
    x, y = np.nan_to_num(np.concatenate([real[:n], made[:n]]), nan=-1e9), np.arange(2 * n) < n
    model = HistGradientBoostingClassifier(max_iter=150, random_state=0)
    shuffled = np.random.default_rng(0).permutation(2 * n)
    p = cross_val_predict(model, x[shuffled], y[shuffled], cv=3, method="predict_proba")[:, 1]
    return roc_auc_score(y[shuffled], p)


def chosen(log_weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    weights = np.exp(log_weights - log_weights.max())
    for _ in range(50):
        weights = np.minimum(weights / weights.mean(), MOST)
    return rng.random(len(weights)) < weights / MOST


def compare(name: str, epsilon: float, wanted: int, steps: int) -> None:
    train, test, schema = halves(name)
    n, rng = schema.n_public, np.random.default_rng(0)
    histories = {"test": Histories.of(test, schema, rng), "train": Histories.of(train, schema, rng)}
    model = DPMarginals(epsilon, DELTA, random_state=0).fit(train, schema=schema)
    pool = Histories.of(model.sample(int(MOST * wanted), random_state=1), schema, rng)
    made, real = features(pool, schema), features(histories["test"], schema)
    patients, synthetic = histories["train"].to_frame(schema), pool.to_frame(schema)
    mu = np.sqrt(SHARE) / analytic_sigma(epsilon, DELTA)

    def show(arm: str, log_weights: np.ndarray, begun: float) -> None:
        taken = chosen(log_weights, np.random.default_rng(2))
        several = recognised(real[histories["test"].rows > 1][:wanted], made[taken & (pool.rows > 1)])
        everyone = recognised(real[:wanted], made[taken])
        seconds = time.process_time() - begun
        print(
            f"| {name} | {epsilon:g} | {arm} | {everyone:.3f} | {several:.3f} | {seconds:.0f} |", flush=True
        )

    show("none", np.zeros(len(made)), time.process_time())
    for arm, noise in (("steps without noise", None), ("steps", np.sqrt(steps) / mu)):
        begun = time.process_time()
        plan = Plan(sampling_prob=1.0, expected_batch=n, steps=steps, noise_multiplier=noise)
        release = CriticFit(schema=schema, synthetic=synthetic[: 3 * len(synthetic) // 5]).release(plan)
        with (records := FrameRecords(patients)).opened():
            critic = release(records, np.random.default_rng(3))
        show(arm, critic.log_weights(synthetic), begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", default=["diabetes"])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 3.0, 10.0])
    parser.add_argument("--wanted", type=int, default=5000, help="synthetic patients that are judged")
    parser.add_argument("--steps", type=int, default=300)
    asked = parser.parse_args()
    print("| table | epsilon | critic | AUC | AUC, several rows | seconds |\n|---|---|---|---|---|---|")
    for name in asked.tables:
        for epsilon in asked.epsilons:
            compare(name, epsilon, asked.wanted, asked.steps)


if __name__ == "__main__":
    main()
