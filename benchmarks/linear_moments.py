"""Would pairwise statistics, released once, serve a linear study better than scores?

    python benchmarks/linear_moments.py --repetitions 40

A linear study has a shorter way than scores: release ``S = sum w z z'`` once, with ``z = (1, x, r)``, and
solve the normal equations. Here it gets all of the study's mu^2 in one reading, and whatever else the package
knows: x is whitened by the base model's draws, r is the residual from their fit over its standard deviation,
clipped at 3 as the package clips it, and ``w(x) = min(1, C^2 / (|x|^2 + 9))``, so that a record's ``w z z'``
is of Frobenius norm C^2 at most: its sensitivity. C is the one with the shortest intervals on the draws.
"""

from __future__ import annotations

import argparse

import numpy as np
from study_cases import CASES
from study_trials import Trial, seed

from dpsynth.studies.estimation import RESIDUAL_BOUND, mode
from dpsynth.studies.statistics import symmetric, triangle
from dpsynth.synthesis.fit import planned_parts
from dpsynth.synthesis.parts.studies import Studies
from dpsynth.synthesis.study_forecast import DRAWS

NAMES = ("flchain linear", "support2 linear")
TRIED = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.995)


class PairwiseStatistics:
    """The estimator at one fit to draws: design, line and whitening are released."""

    def __init__(self, trial, rng):
        model = trial.declared.model_
        design = model.studies[0].design
        x, y = design.read(model.sample(DRAWS, rng))
        self.start, self.design = mode(design, x, y, trial.case.n / DRAWS)
        rows = design.rows(x)[:, 0]
        values, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
        self.whitening = (vectors * np.maximum(values, 0.01 * values.mean()) ** -0.5) @ vectors.T
        options = trial.declared.validate()
        parts = planned_parts(trial.schema, trial.case.n, options, also=[Studies([trial.study])])
        self.multiplier = parts.of(Studies).multiplier
        bounds, scale = np.quantile(self.reach(x), TRIED), trial.case.n / DRAWS
        expected = [self.told(self.sums(x, y, c) * scale, c)[1] for c in bounds]
        errors = np.sqrt([np.diag(covariance) for covariance in expected])
        self.bound = bounds[(errors / errors.min(axis=0)).mean(axis=1).argmin()]

    def reach(self, x):
        white = self.design.rows(x)[:, 0] @ self.whitening
        return np.sqrt((white**2).sum(axis=1) + RESIDUAL_BOUND**2)

    def sums(self, x, y, bound):
        rows = self.design.rows(x)[:, 0]
        left = (y - rows @ self.start) / self.design.family.spread
        z = np.column_stack([rows @ self.whitening, np.clip(left, -RESIDUAL_BOUND, RESIDUAL_BOUND)])
        weights = np.minimum(1.0, (bound / self.reach(x)) ** 2)
        return (z * weights[:, None]).T @ z

    def released(self, x, y, rng):
        vector = triangle(self.sums(x, y, self.bound))
        std = self.multiplier * self.bound**2
        return symmetric(vector + std * rng.standard_normal(len(vector)))

    def told(self, sums, bound, *, noisy=True):
        """Slopes and their covariance, sampling and noise, in reported units."""
        std = self.multiplier * bound**2 * noisy
        values, vectors = np.linalg.eigh(sums[:-1, :-1])
        inverse = (vectors / np.maximum(values, max(std, 1e-9))) @ vectors.T
        step = inverse @ sums[:-1, -1]
        variance = max(sums[-1, -1] - sums[:-1, -1] @ step, 0.0) / max(
            np.trace(sums[:-1, :-1]) / len(step), 1
        )
        # noise on S, an entry off the diagonal with half the variance, times (-step, 1)
        noise = std**2 / 2 * ((step @ step + 1.0) * np.eye(len(step)) + np.outer(step, step))
        covariance = inverse * variance + inverse @ noise @ inverse
        back = self.whitening * self.design.family.spread
        return self.design.reported(self.start + back @ step, back @ covariance @ back)


def one(name, epsilon, repetition):
    """Real, declared and pairwise_statistics: value, standard error and own target, each (p,)."""
    trial = Trial(CASES[name], epsilon, repetition)
    rng = np.random.default_rng(seed(name, epsilon, repetition, "pairwise_statistics"))
    real, found = trial.fitted(trial.frame), trial.declared.estimates_[0]
    way = PairwiseStatistics(trial, rng)
    slopes, covariance = way.told(way.released(*way.design.read(trial.frame), rng), way.bound)
    population = way.design.read(trial.case.population()[0])
    target, _ = way.told(way.sums(*population, way.bound), way.bound, noisy=False)
    return trial.truth.values, {
        "real": (real.values, real.std_errors, trial.truth.values),
        "scores": (found.coefficients, found.std_errors, trial.truth.target),
        "pairwise_statistics": (slopes, np.sqrt(np.diag(covariance)), target),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=40)
    count = parser.parse_args().repetitions
    print("| study | ε | | error | from own target | width | coverage | of own target | bias of target |")
    print("|---|---:|---|" + "---:|" * 6)
    for name in NAMES:
        for epsilon in (1.0, 3.0):
            runs = [one(name, epsilon, k) for k in range(count)]
            for way in ("real", "scores", "pairwise_statistics"):
                truth = runs[0][0]
                value, error, target = (np.array([run[way][i] for _, run in runs]) for i in range(3))
                unit = np.array([run["real"][1] for _, run in runs])
                held, own = (np.mean(np.abs(value - of) <= 1.96 * error) for of in (truth, target))
                cells = (np.abs(value - truth) / unit, np.abs(value - target) / unit, error / unit)
                shown = " | ".join(f"{np.median(cell):.2f}" for cell in cells)
                shown += f" | {held:.2f} | {own:.2f} | {np.median(np.abs(target - truth) / unit):.2f}"
                print(f"| {name} | {epsilon:g} | {way} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
