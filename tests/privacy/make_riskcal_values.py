"""Store what riskcal says of DP-SGD, as a reference that shares no code with this package's trade-off curves.

riskcal wants a newer dp_accounting than this package's environment has, so it runs in one of its own:

    python -m venv riskcal && riskcal/bin/pip install riskcal==1.5.1 dp-accounting==0.6.0
    riskcal/bin/python tests/privacy/make_riskcal_values.py

Adjacency is add/remove one record. riskcal calls the false positive rate alpha and the false negative rate
beta. Its advantage is delta at epsilon 0 of a privacy-loss distribution that covers both directions. Its beta
is symmetrised (Dong, Roth and Su 2019, Definition F.1): the curve for removing a record up to the point of
slope -1, its mirror image beyond the mirrored point, and a straight line between them.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from dp_accounting import get_sigma_gaussian
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism
from riskcal import analysis
from riskcal.calibration import CalibrationConfig, CalibrationTarget, calibrate_parameter, dpsgd

GRID = 1e-4  # riskcal's default
FPRS = [1e-4, 1e-3, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.99]
PRIORS = [0.5, 0.9]  # of membership; riskcal's Bayes risk is the least error, not the largest accuracy
SETTINGS = [  # noise multiplier, sampling probability, steps
    (1.0, 1.0, 1),
    (5.0, 1.0, 30),
    (0.6, 0.01, 10),
    (1.0, 0.01, 1000),
    (0.8, 0.005, 1000),
    (1.1, 256 / 60000, 3525),
    (1.025, 0.002, 10000),
    (1.4, 0.005, 6000),
    (7.0, 0.005, 6000),
    (0.5, 0.1, 5),
    (2.0, 0.5, 20),
]
PURE = [0.1, 0.5, 1.0, 2.0, 5.0]  # mu of Gaussian releases
SIGMAS = [(0.0, 0.1), (0.1, 1e-3), (0.5, 1e-9), (1.0, 1e-5), (2.19722, 0.01), (6.0, 1e-6), (50.0, 1e-12)]


def of_setting(noise_multiplier: float, sampling_prob: float, steps: int) -> dict[str, Any]:
    pld = from_gaussian_mechanism(
        standard_deviation=noise_multiplier,
        sampling_prob=sampling_prob,
        use_connect_dots=True,
        value_discretization_interval=GRID,
    ).self_compose(steps)
    return {
        "noise_multiplier": noise_multiplier,
        "sampling_prob": sampling_prob,
        "steps": steps,
        "advantage": float(analysis.get_advantage_from_pld(pld)),
        "fnr": [float(b) for b in analysis.get_beta_from_pld(pld, alpha=np.array(FPRS))],
        "bayes_error": [float(r) for r in analysis.get_bayes_risk_from_pld(pld, prior=np.array(PRIORS))],
        "epsilon_at_1e-5": float(pld.get_epsilon_for_delta(1e-5)),
    }


def timed(call: Callable[[], float]) -> tuple[float, float]:
    start = time.perf_counter()
    value = call()
    return float(value), round(time.perf_counter() - start, 2)


def calibrations() -> list[dict[str, Any]]:
    run = {"sampling_prob": 0.002, "steps": 10000}
    cases: list[dict[str, Any]] = []
    noise, seconds = timed(lambda: dpsgd.find_noise_multiplier_for_advantage(0.1, 0.002, 10000))
    reached = dpsgd.get_advantage_for_dpsgd(noise, 0.002, 10000)
    cases.append({"kind": "advantage", "target": 0.1, **run, "noise_multiplier": noise, "seconds": seconds})
    cases[-1]["reached"] = float(reached)
    for fpr, tpr in ((0.01, 0.05), (0.1, 0.2)):
        noise, seconds = timed(
            lambda fpr=fpr, tpr=tpr: dpsgd.find_noise_multiplier_for_err_rates(fpr, 1 - tpr, 0.002, 10000)
        )
        fnr = dpsgd.get_beta_for_dpsgd(noise, 0.002, 10000, alpha=fpr)
        cases.append({"kind": "tpr", "fpr": fpr, "target": tpr, **run, "noise_multiplier": noise})
        cases[-1] |= {"seconds": seconds, "reached": 1 - float(fnr)}
    target = CalibrationTarget(kind="epsilon_delta", epsilon=1.0, delta=1e-5)
    config = CalibrationConfig(param_min=0.1, param_max=50.0, increasing=False)
    evaluate = dpsgd.create_dpsgd_epsilon_evaluator(0.002, 10000, 1e-5)
    noise, seconds = timed(lambda: calibrate_parameter(evaluate, target, config).parameter_value)
    cases.append({"kind": "epsilon", "target": 1.0, "delta": 1e-5, **run, "noise_multiplier": noise})
    cases[-1] |= {"seconds": seconds, "reached": float(evaluate(noise).epsilon)}
    return cases


def main() -> None:
    values = {
        "versions": {name: version(name) for name in ("riskcal", "dp-accounting", "numpy", "scipy")},
        "python": platform.python_version(),
        "adjacency": "add/remove",
        "grid": GRID,
        "tolerance": {"target": 1e-3, "noise_multiplier": 1e-3},
        "fprs": FPRS,
        "priors": PRIORS,
        "settings": [of_setting(*setting) for setting in SETTINGS],
        "pure_gaussian": [
            {
                "mu": mu,
                "advantage": float(analysis.get_advantage_from_gdp(mu)),
                "fnr": [float(b) for b in analysis.get_beta_from_gdp(mu, np.array(FPRS))],
            }
            for mu in PURE
        ],
        "calibrations": calibrations(),
        "gaussian_sigma": [
            {"epsilon": epsilon, "delta": delta, "sigma": float(get_sigma_gaussian(epsilon, delta))}
            for epsilon, delta in SIGMAS
        ],
    }
    Path(__file__).with_name("riskcal_values.json").write_text(json.dumps(values, indent=1) + "\n")


if __name__ == "__main__":
    main()
