"""Jia, Tan, Liu, Li, Liu, Lv and Dong 2023, "Total variation distance privacy": Theorem 18.

The paper's full title goes on: "Accurately measuring inference attacks and improving utility".
:mod:`dpsynth.privacy` has the parts that runs need. `tv_bounds` has mechanisms, composition and bounds
from KL (Theorems 6 to 13, Definition 5, section 5.1). `membership_bounds` has bounds of attacks (Theorems 3,
4 and 14 to 17, Proposition 1, section 4.2). Here is section 6.1: how well releases of one total variation
(TV) can compose.
"""

from __future__ import annotations

import math

from dpsynth.checks import in_range, whole
from dpsynth.errors import InputError
from dpsynth.privacy.conversions import largest_tv
from dpsynth.research.papers.ghazi_issa import compose
from dpsynth.research.papers.trade_off import Pair

_LARGEST_COUNT = 100_000


def optimal_composition(tv: float, count: int) -> tuple[Pair, ...]:
    """Composition of ``count`` releases that are each as good as a release of this TV can be (Theorem 18).

    It is the best case among all mechanisms of TV ``tv`` (in [0, 1)), reached by randomised response of
    ``epsilon = ln((1 + tv) / (1 - tv))``. The paper's proof leaves out the logarithm, and (6) prints ``(1 +
    epsilon)^count`` for ``(1 + e^epsilon)^count``. It is **never a guarantee for a given mechanism**. With tv
    0.1 and count 10 its TV is 0.243. A mechanism that reveals the record with probability 0.1 has 0.651
    (:func:`~dpsynth.privacy.profile.naive_composition`).

    Returns
    -------
    tuple of Pair
        As of :func:`~dpsynth.research.papers.ghazi_issa.compose`: the first delta is the total variation.
    """
    tv = in_range("tv", tv, 0.0, 1.0, high_open=True)
    if whole("count", count) > _LARGEST_COUNT:
        raise InputError(f"count must be at most {_LARGEST_COUNT}, not {count}")
    epsilon = math.log1p(tv) - math.log1p(-tv)
    return compose(epsilon, 0.0, largest_tv(epsilon), count)
