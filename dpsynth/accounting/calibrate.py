"""Smallest noise multiplier that keeps a list of events within (epsilon, delta).

Epsilon falls almost like a power of the noise multiplier z, so a secant in (log z, log epsilon) inside a
bracket finds the root in a few evaluations, first on a coarse grid of the privacy-loss distribution, then
on the full one. As in dp_accounting's calibration, the root returned lies on the private side: its epsilon
was evaluated at full resolution and does not exceed the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dpsynth.accounting.atoms import ADD_REMOVE
from dpsynth.accounting.checks import in_range
from dpsynth.accounting.profile import Profile
from dpsynth.errors import InputError, PrivacyError

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

_SMALLEST, _LARGEST = 1e-4, 1e7
_COARSENESS = 8.0
#: The search aims this little below the target, so that epsilon read off with a failure charge (solved to
#: 1e-9) is below it too.
_MARGIN = 1e-6


def calibrate(
    events_of: Callable[[float], Sequence[DpEvent]],
    *,
    epsilon: float,
    delta: float,
    adjacency: str = ADD_REMOVE,
    failure_probability: float = 0.0,
    start: float = 1.0,
    rtol: float = 1e-3,
) -> float:
    """Return the smallest noise multiplier whose events cost at most ``epsilon`` at ``delta``.

    Parameters
    ----------
    events_of : callable
        ``events_of(z)`` is the list of all events of the run when the calibrated part has multiplier ``z``;
        the cost must fall as ``z`` grows. It is also called with ``z = inf`` (the calibrated part costs
        nothing) to see whether the rest alone exceeds the budget.
    epsilon : float
        Target, greater than 0 and finite.
    delta : float
        Target, in [0, 1).
    adjacency : {"add/remove", "replace-one"}
        See :class:`~dpsynth.accounting.profile.Profile`.
    failure_probability : float
        Probability of leaving the events' description, charged as in ``Profile``.
    start : float
        First guess of the multiplier; a good one saves an evaluation or two.
    rtol : float
        The result exceeds the smallest multiplier by at most this relative amount; in [1e-5, 1].

    Returns
    -------
    float
        The noise multiplier; ``Profile(events_of(z), ...).epsilon(delta) <= epsilon`` holds for it.

    Raises
    ------
    PrivacyError
        If even infinite noise in the calibrated part exceeds the budget, or no multiplier up to 1e7 keeps it.
    InputError
        If an argument is out of range or NaN, or the cost does not depend on the multiplier.

    Examples
    --------
    >>> from dpsynth.accounting.events import gaussian_event
    >>> z = calibrate(lambda z: [gaussian_event(z, count=4)], epsilon=1.0, delta=1e-5)
    >>> round(z, 1), Profile([gaussian_event(z, count=4)]).epsilon(1e-5) <= 1.0
    (7.5, True)
    """
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf, low_open=True, high_open=True)
    delta = in_range("delta", delta, 0.0, 1.0, high_open=True)
    failure = in_range("failure_probability", failure_probability, 0.0, 1.0)
    start = in_range("start", start, _SMALLEST, _LARGEST)
    rtol = in_range("rtol", rtol, 1e-5, 1.0)
    goal = epsilon * (1 - _MARGIN)
    # delta(goal) + (1 + e^goal) p <= delta, with the failure charge on the other side.
    room = delta - failure * (1 + math.exp(min(goal, 700.0)))
    if room < 0.0:
        raise PrivacyError(
            f"a failure probability of {failure:.3g} alone exceeds delta {delta:.3g} at epsilon {epsilon:.6g}"
        )

    def cost(multiplier: float, coarseness: float = 1.0) -> float:
        return Profile(events_of(multiplier), adjacency=adjacency, coarseness=coarseness).epsilon(room)

    rest = cost(math.inf)
    if rest > goal:
        raise PrivacyError(
            f"the budget epsilon {epsilon:.6g} at delta {delta:.3g} is exceeded even without the calibrated "
            f"noise: the other events alone cost epsilon {rest:.6g}"
        )
    coarse = _smallest(lambda z: cost(z, _COARSENESS), goal, start, rtol)
    return _smallest(cost, goal, coarse, rtol)


def _smallest(cost: Callable[[float], float], goal: float, start: float, rtol: float) -> float:
    """Smallest z with ``cost(z) <= goal`` to ``rtol``, by a bracketed secant from ``start``."""
    fails, holds = 0.0, math.inf
    points: list[tuple[float, float]] = []
    guess = start
    for evaluation in range(1, 101):
        value = cost(guess)
        if value <= goal:
            holds = guess
        else:
            fails = guess
        if holds <= fails * (1 + rtol):
            return holds
        if fails >= _LARGEST:
            raise PrivacyError(f"no noise multiplier up to {_LARGEST:g} keeps epsilon at {goal:.6g}")
        if holds <= _SMALLEST:
            raise InputError(
                f"the cost of events_of(z) stays below epsilon {goal:.6g} for every z: nothing to calibrate"
            )
        if 0.0 < value < math.inf:
            points.append((math.log(guess), math.log(value / goal)))
        bracketed = fails > 0.0 and holds < math.inf
        aim = guess * math.exp(_secant_step(points, value))
        # Test just beyond the estimated root, on the side that would close the bracket.
        aim *= math.exp(rtol / 3 if value > goal else -rtol / 3)
        if not bracketed and evaluation >= 3:
            aim = max(aim, 2 * guess) if value > goal else min(aim, guess / 2)
        elif bracketed and ((evaluation >= 8 and evaluation % 2 == 0) or not fails < aim < holds):
            aim = math.sqrt(fails * holds)
        guess = min(max(aim, _SMALLEST), _LARGEST)
    raise PrivacyError(f"the cost of events_of(z) is no falling function of z near {guess:.6g}")


def _secant_step(points: list[tuple[float, float]], value: float) -> float:
    """Step in log z from the last point to the secant's root; the slope is -1 until two points show it."""
    if value == 0.0 or math.isinf(value):
        return -math.log(4) if value == 0.0 else math.log(4)
    slope = -1.0
    if len(points) >= 2 and points[-1][0] != points[-2][0]:
        slope = (points[-1][1] - points[-2][1]) / (points[-1][0] - points[-2][0])
    step = -points[-1][1] / min(max(slope, -5.0), -0.05)
    return min(max(step, -math.log(16)), math.log(16))
