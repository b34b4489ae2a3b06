"""Why do declared linear regressions of a skewed outcome miss least squares? One cause off at a time.

    python benchmarks/skewed_outcomes.py --repetitions 20

Resamples of flchain as in `studies.py`: creatinine by age, sex and free light chains. Each is fitted once at
each epsilon. The noisy statistics of the study are then repeated without noise, with the records in place of
the samples, and with another bound of residuals. A bound of 80 standard deviations cuts none off.
"""

from __future__ import annotations

import argparse
import warnings
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
from scipy.stats import chi2
from study_cases import CASES
from study_trials import Trial, Z, fitted, truth

from dpsynth.privacy import Ledger
from dpsynth.privacy.records import FrameRecords
from dpsynth.studies import estimation as families
from dpsynth.studies import estimation as newton
from dpsynth.studies.fitted_study import StudyReleases
from dpsynth.synthesis.fit import planned_parts
from dpsynth.synthesis.parts.studies import Studies
from dpsynth.synthesis.study_forecast import DRAWS, study_draws

NONE = 80.0
#: what is switched off: bound of residuals, whether there is noise, whether records stand in for the samples
WAYS = {
    "as it is": (3.0, True, False),
    "no noise in the study": (3.0, False, False),
    "records in place of samples": (3.0, True, True),
    "both": (3.0, False, True),
    "bound of 8": (8.0, True, False),
    "bound of 20": (20.0, True, False),
    "no bound": (NONE, True, False),
    "no bound, no noise": (NONE, False, False),
    "no bound, no noise, records": (NONE, False, True),
}


def bounded(limit: float) -> ExitStack:
    """Residuals are bounded at ``limit`` standard deviations within."""
    square = float(chi2.cdf(limit**2, 3) + limit**2 * chi2.sf(limit**2, 1))
    stack = ExitStack()
    for target, name, value in (
        (families, "RESIDUAL_BOUND", limit),
        (newton, "RESIDUAL_BOUND", limit),
        (newton, "_BOUNDED_SQUARE", square),
    ):
        stack.enter_context(patch.object(target, name, value))
    return stack


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", choices=list(CASES), default="flchain linear")
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 3.0, 10.0])
    parser.add_argument("--repetitions", type=int, default=20)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    case, known = CASES[args.case], truth(args.case)
    print("| ε | | covers least squares | covers its own target | mean z | width |")
    print("|---:|---|---:|---:|---|---:|")
    for epsilon in args.epsilon:
        told: dict[str, list[np.ndarray]] = {name: [] for name in ("real", *WAYS)}
        for repetition in range(args.repetitions):
            trial = Trial(case, epsilon, repetition)
            options = trial.declared.validate()
            also = [Studies([trial.study])]
            planned = planned_parts(trial.schema, float(case.n), options, also=also).of(Studies)
            samples = study_draws(trial.declared.model_, np.random.default_rng(repetition))
            records = trial.frame.sample(DRAWS, replace=True, random_state=repetition)
            usual = fitted(trial.frame, trial.schema, trial.study, None)
            told["real"].append(np.array([usual.values, usual.std_errors]))
            for name, (limit, noise, own) in WAYS.items():
                multiplier = planned.multiplier if noise else None
                releases = StudyReleases.plan("study", noise_multiplier=multiplier)
                with bounded(limit):
                    found = releases.run(
                        Ledger(),
                        FrameRecords(trial.frame),
                        trial.study,
                        trial.schema,
                        records if own else samples,
                        float(case.n),
                        np.random.default_rng(repetition),
                    ).estimates
                told[name].append(np.array([found.coefficients, found.std_errors]))
        usual = np.median([errors for _, errors in told["real"]], axis=0)
        for name, pairs in told.items():
            values, errors = np.array(pairs).transpose(1, 0, 2)
            z, own = (values - known.values) / errors, (values - known.target) / errors
            shown = " ".join(f"{mean:+.1f}" for mean in z.mean(axis=0))
            covers = [f"{(np.abs(each) < Z).mean():.2f}" for each in (z, own)]
            width = np.median(np.median(errors, axis=0) / usual)
            print(f"| {epsilon:g} | {name} | {covers[0]} | {covers[1]} | {shown} | {width:.2f} |", flush=True)


if __name__ == "__main__":
    main()
