"""Golden values: numbers published or computed independently, and the same numbers from this package.

``python -m dpsynth.research.papers.golden`` prints them with the deviations. A value holds if it agrees to
within one unit of the last digit in which the golden value is written. Each source's function yields the name
of each value, the value as written, and the value computed now.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.attacks.membership_bounds import tv_accuracy
from dpsynth.attacks.tv_bounds import pinsker, sampled_gaussian_kl, staircase_tv
from dpsynth.privacy.conversions import epsilon_of_belief, largest_tv
from dpsynth.privacy.profile import from_parameters
from dpsynth.research.papers.ghazi_issa import compose, erasure_probability
from dpsynth.research.papers.jia import gaussian_tv, laplace_tv, optimal_composition
from dpsynth.research.papers.lowy import exponential_pmp
from dpsynth.research.papers.lowy_gaussian import (
    gaussian_dp_delta,
    gaussian_pmp_delta,
    gaussian_pmp_exact_delta,
)
from dpsynth.research.papers.mosaicrown import advantage, noise_for_belief_rdp, rdp_guarantee


def mosaicrown_values() -> Iterator[tuple[str, str, float]]:
    """MOSAICrOWN D5.3: the belief of .9 that its experiments allow."""
    epsilon = epsilon_of_belief(0.9)
    yield "belief .9: epsilon", "2.19722", epsilon
    yield "belief .9, delta .01, one release: rho_a", "0.27631", advantage(epsilon, 0.01)
    for orders, value in (("real", "0.25619"), ("integer", "0.25566")):
        whole = orders == "integer"
        noise = noise_for_belief_rdp(0.9, 0.01, 30, integer_orders=whole)
        rho_a = rdp_guarantee(noise, 0.01, 30, integer_orders=whole).advantage
        yield f"belief .9, delta .01, 30 steps, {orders} orders: rho_a", value, rho_a


def lowy_values() -> Iterator[tuple[str, str, float]]:
    """Lowy 2024: six numbers of our own as parent set, by direct sums and quadrature."""
    parent = np.array([0.0, 0.1, 0.3, 0.35, 0.6, 1.0])
    kinds: dict[str, tuple[Callable[[float], float], str]] = {
        "bound": (lambda e: gaussian_pmp_delta(parent, 0.4, e), "0.238145 0.154050 0.0938760 0.0300639"),
        "exact delta": (
            lambda e: gaussian_pmp_exact_delta(parent, 0.4, e),
            "0.233776 0.147419 0.0832192 0.0182912",
        ),
        "worst-case DP, range 1": (
            lambda e: gaussian_dp_delta(1.0, 3, 0.4, e),
            "0.323078 0.242394 0.172284 0.0727144",
        ),
    }
    for kind, (compute, figures) in kinds.items():
        for epsilon, value in zip((0.0, 0.25, 0.5, 1.0), figures.split(), strict=True):
            yield f"Gaussian, sigma .4: {kind} at eps {epsilon:g}", value, compute(epsilon)
    outputs = np.array([0.0, 0.25, 0.5, 0.75, 1.0])

    def loss(records: NDArray[np.float64], outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.abs(np.mean(records) - outputs)

    for epsilon, value in ((1.0, "0.409459"), (5.0, "1.870415"), (10.0, "3.737748")):
        result = exponential_pmp(parent, loss, outputs, epsilon, sensitivity=1 / 3)
        yield f"exponential mechanism, eps {epsilon:g}: eps_PMP", value, result.epsilon_pmp


def ghazi_issa_values() -> Iterator[tuple[str, str, float]]:
    """Ghazi and Issa 2024: Theorem 2 and the staircase, by arithmetic with 50 digits."""
    half = -math.expm1(-0.5)
    # The fifth delta of the second is also written 4.22192e-4; 50 digits give 4.2219076e-4.
    runs = (
        ("eps 1, eta 1-e^-.5, k 2", (1.0, 0.0, half, 2), "0.148551 0.451919 0.244919 0"),
        (
            "eps .5, delta 1e-6, eta .1, k 5",
            (0.5, 1e-6, 0.1, 5),
            "0.591705 0.266282 0.113305 0.0325099 0.00553174 4.22191e-4 4.99999e-6",
        ),
        ("eps .5, largest eta, k 3", (0.5, 0.0, largest_tv(0.5), 3), "0 0.360032 0.152452 0.0948951 0"),
    )
    for name, mechanism, values in runs:
        erased, *deltas = values.split()
        yield f"{name}: erasure a", erased, erasure_probability(*mechanism[:3])
        for pair, value in zip(compose(*mechanism), deltas, strict=True):
            yield f"{name}: delta at {pair.epsilon:g}", value, pair.delta
    for gamma, value in ((0.2, "0.39690"), (0.5, "0.46212"), (0.8, "0.36180")):
        yield f"staircase, eps 1, gamma {gamma:g}: total variation", value, staircase_tv(1.0, gamma)


#: Runs: noise multiplier, sampling probability, steps.
_RUNS = ((1.1, 256 / 60000, 3525), (1.0, 0.01, 1000), (0.8, 0.005, 1000))


def jia_values() -> Iterator[tuple[str, str, float]]:
    """Jia 2023: examples and experiments of the paper, and runs computed independently."""
    laplace, gaussian = laplace_tv(1.0), gaussian_tv(math.sqrt(2))
    yield "Laplace(1, 1): total variation", "0.39347", laplace
    yield "Laplace(1, 1): attack accuracy", "0.69673", tv_accuracy(laplace)
    yield "Gaussian, variance 2: total variation", "0.27633", gaussian
    yield "Gaussian, variance 2: attack accuracy", "0.63816", tv_accuracy(gaussian)
    yield "Gaussian, std 1: total variation", "0.38292", gaussian_tv(1.0)
    golden = (("0.14304", "0.11350", "1.1354"), ("0.20471", "0.16102", "1.8282"), ("0.15077", "0.11814", ""))
    for run, (printed, exact, epsilon) in zip(_RUNS, golden, strict=True):
        name = f"z {run[0]:g}, q {run[1]:.4g}, T {run[2]}"
        kl = sampled_gaussian_kl(*run[:2])
        if epsilon == "1.1354":
            yield f"{name}: KL per step, smaller", "1.15227e-5", min(kl)
            yield f"{name}: KL per step, larger", "1.16091e-5", max(kl)
        yield f"{name}: Pinsker (larger KL)", printed, pinsker(run[2] * max(kl))
        cost = from_parameters(*run, 1e-5)
        yield f"{name}: exact total variation", exact, float(cost["tv"])
        if epsilon:
            yield f"{name}: epsilon at delta 1e-5", epsilon, float(cost["epsilon"])
    for count, value in ((1, "0.1"), (10, "0.24284"), (50, "0.51941"), (100, "0.68270")):
        name = f"Theorem 18, total variation .1, k = {count}"
        yield name, value, optimal_composition(0.1, count)[0].delta


@dataclass(frozen=True)
class Check:
    """A golden value and what this package computes.

    ``golden`` is the value as written, whose digits set the tolerance. ``value`` is computed now.
    """

    source: str
    name: str
    golden: str
    value: float

    @property
    def deviation(self) -> float:
        """Computed less golden."""
        return self.value - float(self.golden)

    @property
    def holds(self) -> bool:
        """Whether the two agree to one unit of the last written digit.

        Examples
        --------
        >>> Check("x", "y", "0.25", 0.2549).holds, Check("x", "y", "0.25", 0.2649).holds
        (True, False)
        """
        mantissa, _, exponent = self.golden.lower().partition("e")
        places = len(mantissa.partition(".")[2]) - int(exponent or 0)
        return abs(self.deviation) <= 1.000001 * 10.0**-places

    def to_dict(self) -> dict[str, str | float | bool]:
        """Return the check as a dictionary that JSON can hold."""
        computed = {"deviation": self.deviation, "holds": self.holds}
        return asdict(self) | {"golden": float(self.golden)} | computed


#: Each source's golden values: an iterator of (name, value as written, value computed now).
_SOURCES = {
    "Jia 2023": jia_values,
    "Ghazi and Issa 2024": ghazi_issa_values,
    "MOSAICrOWN D5.3": mosaicrown_values,
    "Lowy 2024": lowy_values,
}


def check_golden_values() -> tuple[Check, ...]:
    """Compute every golden value, which takes a few seconds."""
    return tuple(Check(source, *line) for source, values in _SOURCES.items() for line in values())


def to_table(checks: Sequence[Check]) -> str:
    """A readable table of checks, and how many hold."""
    width = max(len(check.name) for check in checks)
    lines = [f"{'value':<{width}}  {'golden':>12}  {'computed':>14}  {'deviation':>10}"]
    source = ""
    for one in checks:
        if one.source != source:
            source = one.source
            lines.append(source)
        lines.append(
            f"{one.name:<{width}}  {one.golden:>12}  {one.value:>14.8g}  {one.deviation:>10.1e}"
            + ("" if one.holds else "  DIFFERS")
        )
    held = sum(one.holds for one in checks)
    lines.append(f"{held} of {len(checks)} values agree to the last digit in which they are written")
    return "\n".join(lines)


def print_values() -> int:
    """Print every golden value, computed again. Return 1 if one differs, else 0."""
    checks = check_golden_values()
    print(to_table(checks))
    return 0 if all(check.holds for check in checks) else 1


if __name__ == "__main__":
    sys.exit(print_values())
