"""The least noise whose events meet a target: one number of a profile, and the largest value it may take.

Epsilon, total variation and the other costs fall almost like a power of the noise multiplier z. A secant in
(log z, log cost) inside a bracket finds the root in a few evaluations. It uses a coarse grid of the
privacy-loss distribution first, then the full one. The root returned lies on the private side: its cost was
evaluated at full resolution and does not exceed the target. The search of dp_accounting has (epsilon, delta)
as its only target. It took 46 s, and this one 0.7 s (q = 0.002, 10,000 steps).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpsynth.checks import in_range, inside, one_of
from dpsynth.errors import InputError, PrivacyError
from dpsynth.privacy.conversions import epsilon_of_belief
from dpsynth.privacy.events import gaussian_event, training_event
from dpsynth.privacy.loss import ADD_REMOVE
from dpsynth.privacy.profile import Profile

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

_NAMES = ("epsilon", "tv", "attack-accuracy", "advantage", "belief")
_SMALLEST, _LARGEST = 1e-4, 1e7
_COARSENESS = 8.0
#: The search aims this little below the target, so that what is read off later, perhaps by another route to
#: the same number, is below it too.
_MARGIN = 1e-6


class Target:
    """A bound on a measure of privacy that falls as noise grows. It prints as its words."""

    @property
    def goal(self) -> float:
        """Largest cost that meets the target: its first number, if not said otherwise."""
        return next(iter(vars(self).values()))

    def cost(self, profile: Profile) -> float:
        """The profile's cost, from 0 to infinity."""
        raise NotImplementedError


@dataclass(frozen=True)
class EpsilonTarget(Target):
    """Epsilon at delta."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        inside("epsilon", self.epsilon, 0.0, math.inf)
        in_range("delta", self.delta, 0.0, 1.0, high_open=True)

    def cost(self, profile: Profile) -> float:
        """Epsilon at delta."""
        return profile.epsilon(self.delta)

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:.6g} at delta {self.delta:.3g}"


@dataclass(frozen=True)
class TvTarget(Target):
    """Total variation, which is the largest advantage of any membership attack."""

    tv: float

    def __post_init__(self) -> None:
        inside("tv", self.tv, 0.0, 1.0)

    def cost(self, profile: Profile) -> float:
        """Total variation."""
        return profile.tv()

    def __str__(self) -> str:
        return f"total variation {self.tv:.6g}"


@dataclass(frozen=True)
class PromiseTarget(Target):
    """Epsilon at delta and total variation at once: what a stage promises before it begins."""

    epsilon: float
    delta: float
    tv: float
    goal = 1.0

    def __post_init__(self) -> None:
        EpsilonTarget(self.epsilon, self.delta)
        TvTarget(self.tv)

    def cost(self, profile: Profile) -> float:
        """The larger of the shares used of epsilon and of the total variation."""
        return max(profile.epsilon(self.delta) / self.epsilon, profile.tv() / self.tv)

    def __str__(self) -> str:
        return f"{EpsilonTarget(self.epsilon, self.delta)} with {TvTarget(self.tv)}"


@dataclass(frozen=True)
class AttackAccuracyTarget(Target):
    """Accuracy of the best membership attack whose target is a member with probability ``prior``.

    Costs count beyond the accuracy of guessing without data, which must not already reach the target.
    """

    accuracy: float
    prior: float = 0.5

    def __post_init__(self) -> None:
        in_range("attack-accuracy", self.accuracy, 0.0, 1.0, high_open=True)
        inside("prior", self.prior, 0.0, 1.0)
        if self.goal <= 0.0:
            raise InputError(
                f"attack-accuracy must exceed {self._guessed:g}, which guessing without any data reaches at "
                f"prior probability {self.prior:g}, but is {self.accuracy:g}"
            )

    @property
    def _guessed(self) -> float:
        return max(self.prior, 1 - self.prior)

    @property
    def goal(self) -> float:
        """Accuracy beyond that of guessing without data."""
        return self.accuracy - self._guessed

    def cost(self, profile: Profile) -> float:
        """Accuracy beyond that of guessing without data."""
        return profile.attack_accuracy(self.prior) - self._guessed

    def __str__(self) -> str:
        return f"attack accuracy {self.accuracy:.6g} at prior probability {self.prior:g}"


@dataclass(frozen=True)
class AdvantageTarget(Target):
    """Advantage TPR - FPR of the best membership attack with a false positive rate."""

    advantage: float
    fpr: float

    def __post_init__(self) -> None:
        inside("fpr", self.fpr, 0.0, 1.0)
        inside("advantage", self.advantage, 0.0, 1.0)
        if self.advantage >= 1 - self.fpr:
            raise InputError(
                f"advantage must be less than 1 - fpr = {1 - self.fpr:g}, which no attack exceeds, "
                f"but is {self.advantage:g}"
            )

    def cost(self, profile: Profile) -> float:
        """Advantage at the rate."""
        return profile.advantage(self.fpr)

    def __str__(self) -> str:
        return f"advantage {self.advantage:.6g} at false positive rate {self.fpr:g}"


@dataclass(frozen=True)
class BeliefTarget(Target):
    """Posterior belief that no observer of any record exceeds with more than probability ``delta``."""

    belief: float
    delta: float
    prior: float = 0.5

    def __post_init__(self) -> None:
        inside("belief", self.belief, 0.0, 1.0)
        inside("prior", self.prior, 0.0, 1.0)
        in_range("delta", self.delta, 0.0, 1.0, high_open=True)
        if self.belief <= self.prior or self.goal == 0.0:
            raise InputError(f"belief must exceed the prior probability {self.prior:g}, not {self.belief:g}")

    @property
    def goal(self) -> float:
        """Privacy loss that raises the prior probability to the belief."""
        return epsilon_of_belief(self.belief, self.prior)

    def cost(self, profile: Profile) -> float:
        """Privacy loss that no record exceeds with more than probability delta."""
        return profile.largest_loss_quantile(self.delta)

    def __str__(self) -> str:
        return f"belief {self.belief:.6g} from prior {self.prior:g}, but for probability {self.delta:.3g}"


@dataclass(frozen=True)
class TargetAfter(Target):
    """A target for a new stage together with all stages before it, whose costs add up.

    ``epsilon``, ``delta`` and ``tv`` are those of everything before. ``total_delta`` is that of everything.
    The new stage gets ``total_delta - delta``. No sum bounds how often a belief exceeds its bound, so
    ``target`` is no BeliefTarget.
    """

    target: Target
    epsilon: float
    delta: float
    tv: float
    total_delta: float

    def __post_init__(self) -> None:
        if isinstance(self.target, BeliefTarget):
            raise InputError("a belief target cannot be met together with a ledger: nothing bounds their sum")
        if not self.delta < self.total_delta:
            raise PrivacyError(
                f"the ledger's own delta, {self.delta:.3g}, leaves nothing of {self.total_delta:.3g}: "
                "give a larger delta"
            )

    @property
    def goal(self) -> float:
        """Largest cost that meets the target."""
        return self.target.goal

    def cost(self, profile: Profile) -> float:
        """The target's cost of everything, with ``profile`` as the new stage."""
        return self.target.cost(self.whole(profile))

    def whole(self, profile: Profile) -> Profile:
        """Profile of everything."""
        epsilon = self.epsilon + profile.epsilon(self.total_delta - self.delta)
        return Profile.promised(
            epsilon, self.total_delta, self.tv + profile.tv(), adjacency=profile.adjacency
        )

    def __str__(self) -> str:
        return f"{self.target} with all earlier noisy statistics"


def parse_target(text: str, *, delta: float, prior: float = 0.5) -> Target:
    """Read a target such as ``tv=0.1``, ``epsilon=3``, ``advantage=0.1@fpr=0.01``.

    Names are epsilon, tv, attack-accuracy, advantage and belief. An attack accuracy or a belief may be
    followed by ``@prior=share``, which replaces ``prior``. ``delta`` is for epsilon and belief. Raises
    InputError for other text, and for a number out of range.

    Examples
    --------
    >>> parse_target("advantage=0.1@fpr=0.01", delta=1e-5)
    AdvantageTarget(advantage=0.1, fpr=0.01)
    """
    head, _, tail = text.partition("@")
    name, value = _pair(text, head)
    one_of("target", name, _NAMES)
    fpr = None
    if tail:
        key, number = _pair(text, tail)
        if (name, key) == ("advantage", "fpr"):
            fpr = number
        elif key == "prior" and name in ("attack-accuracy", "belief"):
            prior = number
        else:
            raise InputError(f"target {text!r}: {key!r} does not go with {name}")
    match name:
        case "epsilon":
            return EpsilonTarget(value, delta)
        case "attack-accuracy":
            return AttackAccuracyTarget(value, prior)
        case "belief":
            return BeliefTarget(value, delta, prior)
        case "advantage" if fpr is not None:
            return AdvantageTarget(value, fpr)
        case _:  # an advantage over all false positive rates is the total variation
            return TvTarget(value)


def _pair(whole: str, part: str) -> tuple[str, float]:
    name, equals, number = part.partition("=")
    try:
        if not equals:
            raise ValueError
        return name.strip(), float(number)
    except ValueError:
        raise InputError(f"target {whole!r} must look like tv=0.1 or advantage=0.1@fpr=0.01") from None


def calibrate(
    events_of: Callable[[float], Sequence[DpEvent]],
    target: Target,
    *,
    adjacency: str = ADD_REMOVE,
    start: float = 1.0,
    rtol: float = 1e-3,
) -> float:
    """Return the smallest noise multiplier whose events meet a target.

    Parameters
    ----------
    events_of : callable
        ``events_of(z)`` is the list of all events of the run when the calibrated part has multiplier ``z``.
        The cost must fall as ``z`` grows. A call with ``z = inf`` shows whether the rest alone exceeds the
        target.
    target : Target
        Such as :class:`TvTarget`.
    adjacency : {"add/remove", "replace-one"}
        See :class:`Profile`.
    start : float
        First guess of the multiplier. A good one saves an evaluation or two.
    rtol : float
        Largest relative excess over the smallest multiplier, in [1e-5, 1].

    Returns
    -------
    float
        A multiplier for which ``target.cost(Profile(events_of(z), ...)) <= target.goal`` holds.

    Raises
    ------
    PrivacyError
        If even infinite noise in the calibrated part exceeds the target, or no multiplier up to 1e7 keeps it.
    InputError
        If an argument is out of range or NaN, or the cost does not depend on the multiplier.

    Examples
    --------
    >>> from dpsynth.privacy import TvTarget, gaussian_event
    >>> z = calibrate(lambda z: [gaussian_event(z, count=4)], EpsilonTarget(1.0, 1e-5))
    >>> round(z, 1), Profile([gaussian_event(z, count=4)]).epsilon(1e-5) <= 1.0
    (7.5, True)
    >>> round(calibrate(lambda z: [gaussian_event(z)], TvTarget(0.1)), 2)
    3.98
    """
    start = in_range("start", start, _SMALLEST, _LARGEST)
    rtol = in_range("rtol", rtol, 1e-5, 1.0)
    goal = target.goal * (1 - _MARGIN)

    def cost(multiplier: float, coarseness: float = 1.0) -> float:
        return target.cost(Profile(events_of(multiplier), adjacency=adjacency, coarseness=coarseness))

    rest = cost(math.inf)
    if rest > goal:
        raise PrivacyError(
            f"the budget, {target}, is exceeded even without the calibrated noise: the other "
            f"events alone cost {rest:.6g} of {target.goal:.6g}"
        )
    coarse, slope = least_noise(lambda z: cost(z, _COARSENESS), goal, start, rtol, slope=-1.0)
    return least_noise(cost, goal, coarse, rtol, slope)[0]


def calibrate_training(
    target: Target,
    sampling_prob: float,
    steps: int,
    *,
    adjacency: str = ADD_REMOVE,
) -> float:
    """Return the smallest noise multiplier of a training run that meets a target.

    ``sampling_prob`` and ``steps`` are those of :func:`~dpsynth.privacy.training_event`.

    Examples
    --------
    >>> from dpsynth.privacy import TvTarget
    >>> round(calibrate_training(TvTarget(0.1), 0.002, 10_000), 3)
    1.025
    """
    training_event(1.0, sampling_prob, steps)  # checks both numbers

    guess = _central_limit(target, sampling_prob, steps)
    return calibrate(
        lambda z: [training_event(z, sampling_prob, steps)], target, adjacency=adjacency, start=guess
    )


def _central_limit(target: Target, sampling_prob: float, steps: int) -> float:
    """Multiplier that meets the target in the limit of many steps: a guess, from which the search starts."""
    low, high = 1e-6, 1e3  # of the mu of a single Gaussian release
    for _ in range(40):
        mu = math.sqrt(low * high)
        if target.cost(Profile([gaussian_event(1 / mu)])) <= target.goal:
            low = mu
        else:
            high = mu
    if sampling_prob == 1.0:
        multiplier = math.sqrt(steps) / low
    else:
        # Dong, Roth and Su 2019, Corollary 5.4: mu = q sqrt(T (e^{1 / z^2} - 1))
        multiplier = 1 / math.sqrt(math.log1p((low / sampling_prob) ** 2 / steps))
    return min(max(multiplier, _SMALLEST), _LARGEST)


def least_noise(
    cost: Callable[[float], float], goal: float, start: float, rtol: float, slope: float
) -> tuple[float, float]:
    """Smallest z with ``cost(z) <= goal`` to ``rtol``, by a bracketed secant, and the last slope.

    ``slope`` is that of log cost in log z until two points show it.
    """
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
            return holds, slope
        if fails >= _LARGEST:
            raise PrivacyError(f"no noise multiplier up to {_LARGEST:g} keeps the cost at {goal:.6g}")
        if holds <= _SMALLEST:
            raise InputError(
                f"the cost of events_of(z) stays below {goal:.6g} for every z: nothing to calibrate"
            )
        if 0.0 < value < math.inf:
            points.append((math.log(guess), math.log(value / goal)))
            slope = _secant_slope(points, slope)
        bracketed = fails > 0.0 and holds < math.inf
        aim = guess * math.exp(_secant_step(points, value, slope))
        # Test just beyond the estimated root, on the side that would close the bracket.
        aim *= math.exp(rtol / 3 if value > goal else -rtol / 3)
        if not bracketed and evaluation >= 3:
            aim = max(aim, 2 * guess) if value > goal else min(aim, guess / 2)
        elif bracketed and ((evaluation >= 8 and evaluation % 2 == 0) or not fails < aim < holds):
            aim = math.sqrt(fails * holds)
        guess = min(max(aim, _SMALLEST), _LARGEST)
    raise PrivacyError(f"the cost of events_of(z) is no falling function of z near {guess:.6g}")


def _secant_slope(points: list[tuple[float, float]], slope: float) -> float:
    """Slope between the last two points, within a cost's range, or the old slope if they are too close."""
    if len(points) >= 2 and abs(points[-1][0] - points[-2][0]) > 1e-5:
        slope = (points[-1][1] - points[-2][1]) / (points[-1][0] - points[-2][0])
    return min(max(slope, -20.0), -0.05)


def _secant_step(points: list[tuple[float, float]], value: float, slope: float) -> float:
    """Step in log z from the last point to the secant's root."""
    if value == 0.0 or math.isinf(value):
        return -math.log(4) if value == 0.0 else math.log(4)
    return min(max(-points[-1][1] / slope, -math.log(16)), math.log(16))
