"""Golden values for Lowy 2024: six numbers of our own as parent set, by direct sums and quadrature."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from dpsynth.research.papers.lowy.exponential import exponential_pmp
from dpsynth.research.papers.lowy.gaussian import gaussian_dp_delta, gaussian_pmp_delta
from dpsynth.research.papers.lowy.mixture import gaussian_pmp_exact_delta

Array = NDArray[np.float64]


def values() -> Iterator[tuple[str, str, float]]:
    """Yield the name of each value, the value as written, and the value computed now."""
    parent = np.array([0.0, 0.1, 0.3, 0.35, 0.6, 1.0])
    golden = {
        "bound": ("0.238145", "0.154050", "0.0938760", "0.0300639"),
        "exact delta": ("0.233776", "0.147419", "0.0832192", "0.0182912"),
        "worst-case DP, range 1": ("0.323078", "0.242394", "0.172284", "0.0727144"),
    }
    compute: dict[str, Callable[[float], float]] = {
        "bound": lambda epsilon: gaussian_pmp_delta(parent, 0.4, epsilon),
        "exact delta": lambda epsilon: gaussian_pmp_exact_delta(parent, 0.4, epsilon),
        "worst-case DP, range 1": lambda epsilon: gaussian_dp_delta(1.0, 3, 0.4, epsilon),
    }
    for kind, figures in golden.items():
        for epsilon, value in zip((0.0, 0.25, 0.5, 1.0), figures, strict=True):
            yield f"Gaussian, sigma .4: {kind} at eps {epsilon:g}", value, compute[kind](epsilon)
    outputs = np.array([0.0, 0.25, 0.5, 0.75, 1.0])

    def loss(records: Array, outputs: Array) -> Array:
        return np.abs(np.mean(records) - outputs)

    for epsilon, value in ((1.0, "0.409459"), (5.0, "1.870415"), (10.0, "3.737748")):
        result = exponential_pmp(parent, loss, outputs, epsilon, sensitivity=1 / 3)
        yield f"exponential mechanism, eps {epsilon:g}: eps_PMP", value, result.epsilon_pmp
