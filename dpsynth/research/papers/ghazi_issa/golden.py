"""Golden values for Ghazi and Issa 2024: Theorem 2 and the staircase, by arithmetic with 50 digits."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpsynth.accounting.conversions import largest_tv
from dpsynth.accounting.staircase import staircase_tv
from dpsynth.research.papers.ghazi_issa import approx_tv


def values() -> Iterator[tuple[str, str, float]]:
    """Yield the name of each value, the value as written, and the value computed now."""
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
            largest_tv(0.5),
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
