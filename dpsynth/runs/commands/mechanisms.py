"""``--mechanism``: single mechanisms by name, and which event describes each of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpsynth.accounting.events.events import (
    approx_tv_event,
    epsilon_delta_event,
    gaussian_event,
    laplace_event,
)
from dpsynth.accounting.staircase import staircase_tv
from dpsynth.checks import inside, one_of
from dpsynth.errors import InputError

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

_NEEDS = {
    "gaussian": ({"noise_multiplier"},),
    "laplace": ({"noise_multiplier"}, {"epsilon"}),
    "staircase": ({"epsilon", "gamma"},),
    "exponential": ({"epsilon"},),
}


def mechanism_event(
    name: str,
    *,
    noise_multiplier: float | None = None,
    epsilon: float | None = None,
    gamma: float | None = None,
    count: int = 1,
) -> DpEvent:
    """Event of ``count`` releases of a mechanism.

    Parameters
    ----------
    name : {"gaussian", "laplace", "staircase", "exponential"}
        Gaussian and Laplace noise on a number; the staircase mechanism (Geng and Viswanath 2014); the
        exponential mechanism, of which only epsilon counts.
    noise_multiplier : float, optional
        Gaussian: std over L2 sensitivity. Laplace: scale over L1 sensitivity, which is 1 / epsilon.
    epsilon : float, optional
        Of one Laplace, staircase or exponential release, greater than 0.
    gamma : float, optional
        Staircase: width of the upper step as a share of the sensitivity, in [0, 1].
    count : int
        Number of releases, at least 1.

    Raises
    ------
    InputError
        If the mechanism is unknown, lacks a parameter or has one that does not go with it, or a number is out
        of range.
    """
    one_of("mechanism", name, _NEEDS)
    values = {"noise_multiplier": noise_multiplier, "epsilon": epsilon, "gamma": gamma}
    given = {key for key, value in values.items() if value is not None}
    if given not in _NEEDS[name]:
        wanted = " or ".join(" and ".join(sorted(needs)) for needs in _NEEDS[name])
        raise InputError(
            f"mechanism {name} takes {wanted}; got {', '.join(sorted(given)) or 'neither noise nor epsilon'}"
        )
    if epsilon is not None:
        epsilon = inside("epsilon", epsilon, 0.0, math.inf)
    match name:
        case "gaussian":
            return gaussian_event(_given(noise_multiplier), count)
        case "laplace":
            return laplace_event(1 / epsilon if epsilon is not None else _given(noise_multiplier), count)
        case "staircase":
            return approx_tv_event(_given(epsilon), staircase_tv(_given(epsilon), _given(gamma)), count=count)
        case _:
            return epsilon_delta_event(_given(epsilon), count=count)


def _given(value: float | None) -> float:
    if value is None:  # the check of which were given comes before
        raise InputError("a parameter of the mechanism is missing")
    return value
