"""Noise calibrated to an advantage, an epsilon and a true positive rate, side by side with riskcal.

riskcal wants a newer dp_accounting than this package's environment has, so it runs in one of its own, one
after the other in the same run:

    python -m venv riskcal && riskcal/bin/pip install riskcal==1.5.1 dp-accounting==0.6.0
    python benchmarks/calibration.py --riskcal riskcal/bin/python

Without --riskcal only this package is timed. Times are those of the search alone, after the imports, once
each; q = 0.002 and 10,000 steps are the example of riskcal's README.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time

SAMPLING_PROB, STEPS, DELTA = 0.002, 10_000, 1e-5
TARGETS = ("advantage=0.1", "epsilon=1", "tpr=0.05@fpr=0.01")

# Run by the other interpreter; prints one JSON object.
RISKCAL = """
import json, sys, time
from riskcal.calibration import CalibrationConfig, CalibrationTarget, calibrate_parameter, dpsgd
q, steps, delta = 0.002, 10_000, 1e-5

def epsilon():
    target = CalibrationTarget(kind="epsilon_delta", epsilon=1.0, delta=delta)
    config = CalibrationConfig(param_min=0.1, param_max=50.0, increasing=False)
    evaluate = dpsgd.create_dpsgd_epsilon_evaluator(q, steps, delta)
    return calibrate_parameter(evaluate, target, config).parameter_value

calls = {
    "advantage=0.1": lambda: dpsgd.find_noise_multiplier_for_advantage(0.1, q, steps),
    "epsilon=1": epsilon,
    "tpr=0.05@fpr=0.01": lambda: dpsgd.find_noise_multiplier_for_err_rates(0.01, 0.95, q, steps),
}
start = time.perf_counter()
noise = calls[sys.argv[1]]()
print(json.dumps([float(noise), time.perf_counter() - start]))
"""


def theirs(python: str, target: str) -> tuple[float, float]:
    done = subprocess.run([python, "-c", RISKCAL, target], capture_output=True, text=True, check=True)
    noise, seconds = json.loads(done.stdout.splitlines()[-1])
    return noise, seconds


def ours(target: str) -> tuple[float, float]:
    from dpsynth.privacy.calibration import AdvantageTarget, calibrate_training, parse_target

    aim = AdvantageTarget(0.04, 0.01) if target.startswith("tpr") else parse_target(target, delta=DELTA)
    start = time.perf_counter()
    noise = calibrate_training(aim, SAMPLING_PROB, STEPS)
    return noise, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--riskcal", help="Python of an environment with riskcal 1.5.1")
    arguments = parser.parse_args()
    # dp_accounting is loaded by the first profile; its import is not part of a search, here or there
    from dpsynth.privacy import Profile, training_event

    Profile([training_event(1.0, 0.1, 10)]).tv()
    print(f"q {SAMPLING_PROB}, {STEPS} steps, delta {DELTA:g}")
    print("target | noise, dpsynth | seconds | noise, riskcal | seconds | ratio of times")
    for target in TARGETS:
        noise, seconds = ours(target)
        line = f"{target} | {noise:.5f} | {seconds:.2f}"
        if arguments.riskcal:
            other, longer = theirs(arguments.riskcal, target)
            line += f" | {other:.5f} | {longer:.1f} | {longer / seconds:.0f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
