"""Golden values for Jia 2023: examples and experiments of the paper, and runs computed independently."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpsynth.accounting import membership_bounds, tv_bounds
from dpsynth.accounting.measures import from_parameters
from dpsynth.research.papers.jia import optimal

#: Runs: noise multiplier, sampling probability, steps.
_RUNS = ((1.1, 256 / 60000, 3525), (1.0, 0.01, 1000), (0.8, 0.005, 1000))


def values() -> Iterator[tuple[str, str, float]]:
    """Yield the name of each value, the value as written, and the value computed now."""
    laplace, gaussian = tv_bounds.laplace_tv(1.0), tv_bounds.gaussian_tv(math.sqrt(2))
    yield "Laplace(1, 1): total variation", "0.39347", laplace
    yield "Laplace(1, 1): attack accuracy", "0.69673", membership_bounds.tv_accuracy(laplace)
    yield "Gaussian, variance 2: total variation", "0.27633", gaussian
    yield "Gaussian, variance 2: attack accuracy", "0.63816", membership_bounds.tv_accuracy(gaussian)
    yield "Gaussian, std 1: total variation", "0.38292", tv_bounds.gaussian_tv(1.0)
    golden = (("0.14304", "0.11350", "1.1354"), ("0.20471", "0.16102", "1.8282"), ("0.15077", "0.11814", ""))
    for run, (pinsker, exact, epsilon) in zip(_RUNS, golden, strict=True):
        name = f"z {run[0]:g}, q {run[1]:.4g}, T {run[2]}"
        kl = tv_bounds.sampled_gaussian_kl(*run[:2])
        if epsilon == "1.1354":
            yield f"{name}: KL per step, smaller", "1.15227e-5", kl.smallest
            yield f"{name}: KL per step, larger", "1.16091e-5", kl.largest
        yield f"{name}: Pinsker (larger KL)", pinsker, tv_bounds.pinsker(run[2] * kl.largest)
        cost = from_parameters(*run, 1e-5)
        yield f"{name}: exact total variation", exact, float(cost["tv"])
        if epsilon:
            yield f"{name}: epsilon at delta 1e-5", epsilon, float(cost["epsilon"])
    for count, value in ((1, "0.1"), (10, "0.24284"), (50, "0.51941"), (100, "0.68270")):
        name = f"Theorem 18, total variation .1, k = {count}"
        yield name, value, optimal.optimal_composition(0.1, count).tv
