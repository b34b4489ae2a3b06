"""What noise can be calibrated to: one number of a profile and the largest value that it may take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from dpsynth.accounting.conversions import epsilon_of_belief
from dpsynth.accounting.profile import Profile
from dpsynth.checks import in_range, inside, one_of
from dpsynth.errors import InputError, PrivacyError


class Target(Protocol):
    """A bound on a measure of privacy that falls as noise grows."""

    @property
    def goal(self) -> float:
        """Largest cost that meets the target, greater than 0."""

    def cost(self, profile: Profile) -> float:
        """The profile's cost, from 0 to infinity; the smaller, the more private."""

    def describe(self) -> str:
        """The target in words."""


@dataclass(frozen=True)
class EpsilonTarget:
    """Epsilon at delta."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        inside("epsilon", self.epsilon, 0.0, math.inf)
        in_range("delta", self.delta, 0.0, 1.0, high_open=True)

    @property
    def goal(self) -> float:
        """Epsilon."""
        return self.epsilon

    def cost(self, profile: Profile) -> float:
        """Epsilon at delta."""
        return profile.epsilon(self.delta)

    def describe(self) -> str:
        """See :class:`Target`."""
        return f"epsilon {self.epsilon:.6g} at delta {self.delta:.3g}"


@dataclass(frozen=True)
class TvTarget:
    """Total variation, which is the largest advantage of any membership attack."""

    tv: float

    def __post_init__(self) -> None:
        inside("tv", self.tv, 0.0, 1.0)

    @property
    def goal(self) -> float:
        """Total variation."""
        return self.tv

    def cost(self, profile: Profile) -> float:
        """Total variation."""
        return profile.tv()

    def describe(self) -> str:
        """See :class:`Target`."""
        return f"total variation {self.tv:.6g}"


@dataclass(frozen=True)
class PromiseTarget:
    """Epsilon at delta, and total variation, both at once: what a stage promises before it begins."""

    epsilon: float
    delta: float
    tv: float

    def __post_init__(self) -> None:
        EpsilonTarget(self.epsilon, self.delta)
        TvTarget(self.tv)

    @property
    def goal(self) -> float:
        """Both shares at most 1."""
        return 1.0

    def cost(self, profile: Profile) -> float:
        """The larger of the shares that are used of epsilon and of the total variation."""
        return max(profile.epsilon(self.delta) / self.epsilon, profile.tv() / self.tv)

    def describe(self) -> str:
        """See :class:`Target`."""
        return f"{EpsilonTarget(self.epsilon, self.delta).describe()} with {TvTarget(self.tv).describe()}"


@dataclass(frozen=True)
class AttackAccuracyTarget:
    """Accuracy of the best membership attack whose target is a member with probability ``prior``.

    Raises
    ------
    InputError
        If guessing by the prior alone is already as accurate.
    """

    accuracy: float
    prior: float = 0.5

    def __post_init__(self) -> None:
        in_range("attack-accuracy", self.accuracy, 0.0, 1.0, high_open=True)
        inside("prior", self.prior, 0.0, 1.0)
        if self.goal <= 0.0:
            raise InputError(
                f"attack-accuracy must exceed {max(self.prior, 1 - self.prior):g}, which guessing without "
                f"any data reaches at prior {self.prior:g}; got {self.accuracy:g}"
            )

    @property
    def goal(self) -> float:
        """Accuracy beyond that of guessing without data."""
        return self.accuracy - max(self.prior, 1 - self.prior)

    def cost(self, profile: Profile) -> float:
        """Accuracy of the best attack beyond that of guessing without data."""
        return profile.attack_accuracy(self.prior) - max(self.prior, 1 - self.prior)

    def describe(self) -> str:
        """See :class:`Target`."""
        return f"attack accuracy {self.accuracy:.6g} at prior {self.prior:g}"


@dataclass(frozen=True)
class AdvantageTarget:
    """Advantage TPR - FPR of the best membership attack with a false positive rate."""

    advantage: float
    fpr: float

    def __post_init__(self) -> None:
        inside("fpr", self.fpr, 0.0, 1.0)
        inside("advantage", self.advantage, 0.0, 1.0)
        if self.advantage >= 1 - self.fpr:
            raise InputError(
                f"advantage must be less than 1 - fpr = {1 - self.fpr:g}, which no attack exceeds; "
                f"got {self.advantage:g}"
            )

    @property
    def goal(self) -> float:
        """Advantage."""
        return self.advantage

    def cost(self, profile: Profile) -> float:
        """Advantage at the rate."""
        return profile.advantage(self.fpr)

    def describe(self) -> str:
        """See :class:`Target`."""
        return f"advantage {self.advantage:.6g} at false positive rate {self.fpr:g}"


@dataclass(frozen=True)
class BeliefTarget:
    """Posterior belief that an observer exceeds with probability at most ``delta``."""

    belief: float
    delta: float
    prior: float = 0.5

    def __post_init__(self) -> None:
        inside("belief", self.belief, 0.0, 1.0)
        inside("prior", self.prior, 0.0, 1.0)
        in_range("delta", self.delta, 0.0, 1.0, high_open=True)
        if self.belief <= self.prior or self.goal == 0.0:
            raise InputError(f"belief must exceed the prior {self.prior:g}, got {self.belief:g}")

    @property
    def goal(self) -> float:
        """Privacy loss that lifts the prior to the belief."""
        return epsilon_of_belief(self.belief, self.prior)

    def cost(self, profile: Profile) -> float:
        """Privacy loss that is exceeded with probability at most delta."""
        return profile.loss_quantile(self.delta)

    def describe(self) -> str:
        """See :class:`Target`."""
        return f"belief {self.belief:.6g} from prior {self.prior:g}, but for probability {self.delta:.3g}"


@dataclass(frozen=True)
class TargetAfter:
    """A target for a new stage together with what was released before it: costs add up.

    ``epsilon``, ``delta`` and ``tv`` are those of everything before; ``total_delta`` is that of everything,
    and the new stage has what ``delta`` leaves of it. No sum bounds how often a belief goes beyond its bound,
    so ``target`` is no BeliefTarget.

    Raises
    ------
    InputError
        If the target is a belief.
    PrivacyError
        If nothing is left of delta.
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
                f"the ledger's own delta, {self.delta:.3g}, leaves nothing of {self.total_delta:.3g}; "
                "give a larger delta"
            )

    @property
    def goal(self) -> float:
        """See :class:`Target`."""
        return self.target.goal

    def cost(self, profile: Profile) -> float:
        """The target's cost of everything, the new stage being ``profile``."""
        return self.target.cost(self.whole(profile))

    def whole(self, profile: Profile) -> Profile:
        """What is known of everything."""
        epsilon = self.epsilon + profile.epsilon(self.total_delta - self.delta)
        return Profile.promised(
            epsilon, self.total_delta, self.tv + profile.tv(), adjacency=profile.adjacency
        )

    def describe(self) -> str:
        """See :class:`Target`."""
        return f"{self.target.describe()} with all earlier releases"


_NAMES = ("epsilon", "tv", "attack-accuracy", "advantage", "belief")


def parse_target(text: str, *, delta: float, prior: float = 0.5) -> Target:
    """Read a target such as ``tv=0.1``, ``epsilon=3``, ``advantage=0.1@fpr=0.01``.

    Parameters
    ----------
    text : str
        ``name=value`` with name epsilon, tv, attack-accuracy, advantage or belief; an advantage may be
        followed by ``@fpr=rate``, an attack accuracy or a belief by ``@prior=share``.
    delta : float
        For epsilon and belief.
    prior : float
        For attack accuracy and belief, where the text has none.

    Raises
    ------
    InputError
        If the text is none of these, or a number is out of range.

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
