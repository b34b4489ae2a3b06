"""Golden values: numbers published or computed independently, and the same numbers from this package.

``dpsynth account verify`` prints them with the deviations, so that whoever relies on an installation can see
that its numbers are right there too. A value holds if it agrees to within one unit of the last digit in which
the golden value is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Runs (noise multiplier, sampling probability, steps) of section "Jia".
_RUNS = ((1.1, 256 / 60000, 3525), (1.0, 0.01, 1000), (0.8, 0.005, 1000))


@dataclass(frozen=True)
class Check:
    """A golden value and what this package computes.

    Parameters
    ----------
    source : str
        The paper.
    name : str
        What the value is.
    golden : str
        The value as written; its digits set the tolerance.
    value : float
        Computed now.
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

    def to_dict(self) -> dict[str, Any]:
        """Return the check as a dictionary that JSON can hold."""
        return {
            "source": self.source,
            "name": self.name,
            "golden": float(self.golden),
            "value": self.value,
            "deviation": self.deviation,
            "holds": self.holds,
        }


def check() -> tuple[Check, ...]:
    """Compute every golden value; takes a few seconds.

    Examples
    --------
    >>> all(check.holds for check in check())
    True
    """
    sections: dict[str, Callable[[], Iterator[tuple[str, str, float]]]] = {
        "Jia 2023": _jia,
        "Ghazi and Issa 2024": _ghazi_issa,
        "MOSAICrOWN D5.3": _mosaicrown,
        "Lowy 2024": _lowy,
    }
    return tuple(Check(source, *line) for source, lines in sections.items() for line in lines())


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


def _jia() -> Iterator[tuple[str, str, float]]:
    from dpsynth.accounting.measures import from_parameters
    from dpsynth.papers.jia import membership, optimal, tvd

    laplace, gaussian = tvd.laplace_tv(1.0), tvd.gaussian_tv(math.sqrt(2))
    yield "Laplace(1, 1): total variation", "0.39347", laplace
    yield "Laplace(1, 1): attack accuracy", "0.69673", membership.tv_accuracy(laplace)
    yield "Gaussian, variance 2: total variation", "0.27633", gaussian
    yield "Gaussian, variance 2: attack accuracy", "0.63816", membership.tv_accuracy(gaussian)
    yield "Gaussian, std 1: total variation", "0.38292", tvd.gaussian_tv(1.0)
    golden = (("0.14304", "0.11350", "1.1354"), ("0.20471", "0.16102", "1.8282"), ("0.15077", "0.11814", ""))
    for run, (pinsker, exact, epsilon) in zip(_RUNS, golden, strict=True):
        name = f"z {run[0]:g}, q {run[1]:.4g}, T {run[2]}"
        kl = tvd.sampled_gaussian_kl(*run[:2])
        if epsilon == "1.1354":
            yield f"{name}: KL per step, smaller", "1.15227e-5", kl.smallest
            yield f"{name}: KL per step, larger", "1.16091e-5", kl.largest
        yield f"{name}: Pinsker (larger KL)", pinsker, tvd.pinsker(run[2] * kl.largest)
        cost = from_parameters(*run, 1e-5)
        yield f"{name}: exact total variation", exact, float(cost["tv"])
        if epsilon:
            yield f"{name}: epsilon at delta 1e-5", epsilon, float(cost["epsilon"])
    for count, value in ((1, "0.1"), (10, "0.24284"), (50, "0.51941"), (100, "0.68270")):
        name = f"Theorem 18, total variation .1, k = {count}"
        yield name, value, optimal.optimal_composition(0.1, count).tv


def _ghazi_issa() -> Iterator[tuple[str, str, float]]:
    from dpsynth.papers.ghazi_issa import approx_tv
    from dpsynth.papers.ghazi_issa.staircase import staircase_tv

    half = -math.expm1(-0.5)
    runs: tuple[tuple[str, float, float, float, int, str, tuple[str, ...]], ...] = (
        ("eps 1, eta 1-e^-.5, k 2", 1.0, 0.0, half, 2, "0.148551", ("0.451919", "0.244919", "0")),
        (
            "eps .5, delta 1e-6, eta .1, k 5",
            0.5,
            1e-6,
            0.1,
            5,
            "0.591705",
            # The fifth is also written 4.22192e-4; arithmetic with 50 digits gives 4.2219076e-4.
            ("0.266282", "0.113305", "0.0325099", "0.00553174", "4.22191e-4", "4.99999e-6"),
        ),
        (
            "eps .5, largest eta, k 3",
            0.5,
            0.0,
            approx_tv.largest_tv(0.5),
            3,
            "0",
            ("0.360032", "0.152452", "0.0948951", "0"),
        ),
    )
    for name, epsilon, delta, tv, k, erased, deltas in runs:
        yield f"{name}: erasure a", erased, approx_tv.erasure_probability(epsilon, delta, tv)
        for pair, value in zip(approx_tv.compose(epsilon, delta, tv, k), deltas, strict=True):
            yield f"{name}: delta at {pair.epsilon:g}", value, pair.delta
    for gamma, value in ((0.2, "0.39690"), (0.5, "0.46212"), (0.8, "0.36180")):
        yield f"staircase, eps 1, gamma {gamma:g}: total variation", value, staircase_tv(1.0, gamma)


def _mosaicrown() -> Iterator[tuple[str, str, float]]:
    from dpsynth.papers.mosaicrown import identifiability, rdp

    epsilon = identifiability.epsilon_of_belief(0.9)
    yield "belief .9: epsilon", "2.19722", epsilon
    yield "belief .9, delta .01, one release: rho_a", "0.27631", identifiability.advantage(epsilon, 0.01)
    for orders, value in (("real", "0.25619"), ("integer", "0.25566")):
        options: dict[str, Any] = {"steps": 30, "integer_orders": orders == "integer"}
        noise = rdp.noise_for_belief_rdp(0.9, 0.01, **options)
        advantage = rdp.rdp_guarantee(noise, 0.01, **options).advantage
        yield f"belief .9, delta .01, 30 steps, {orders} orders: rho_a", value, advantage


def _lowy() -> Iterator[tuple[str, str, float]]:
    from dpsynth.papers.lowy import pmp

    values = np.array([0.0, 0.1, 0.3, 0.35, 0.6, 1.0])
    golden = {
        "bound": ("0.238145", "0.154050", "0.0938760", "0.0300639"),
        "exact delta": ("0.233776", "0.147419", "0.0832192", "0.0182912"),
        "worst-case DP, range 1": ("0.323078", "0.242394", "0.172284", "0.0727144"),
    }
    compute: dict[str, Callable[[float], float]] = {
        "bound": lambda epsilon: pmp.gaussian_pmp_delta(values, 0.4, epsilon),
        "exact delta": lambda epsilon: pmp.gaussian_pmp_exact_delta(values, 0.4, epsilon),
        "worst-case DP, range 1": lambda epsilon: pmp.gaussian_dp_delta(1.0, 3, 0.4, epsilon),
    }
    for kind, figures in golden.items():
        for epsilon, value in zip((0.0, 0.25, 0.5, 1.0), figures, strict=True):
            yield f"Gaussian, sigma .4: {kind} at eps {epsilon:g}", value, compute[kind](epsilon)
    outputs = np.array([0.0, 0.25, 0.5, 0.75, 1.0])

    def loss(records: Any, outputs: Any) -> Any:
        return np.abs(np.mean(records) - outputs)

    for epsilon, value in ((1.0, "0.409459"), (5.0, "1.870415"), (10.0, "3.737748")):
        result = pmp.exponential_pmp(values, loss, outputs, epsilon, sensitivity=1 / 3)
        yield f"exponential mechanism, eps {epsilon:g}: eps_PMP", value, result.epsilon_pmp
