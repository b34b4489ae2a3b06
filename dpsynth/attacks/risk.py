"""The result of an attack on a synthetic table, and the bound of differential privacy on it.

Training records and held-out ones have one difference: the synthetic table was made from the first.
Success on held-out records comes from the population. Only the excess on training records is memorisation
of persons. As in anonymeter (Giomi et al. 2023) it is also given as a share of the remaining gain, ``(rate
- held out) / (1 - held out)``. Rates are the shares themselves, with Clopper and Pearson's intervals. The
interval of the ratio is Donner and Zou's. It excludes 0 exactly if the interval of the difference does.

Bounds are about one record that is in the training table or not, all else being the same. A split by a
coin for each record gives an attacker just that question. A split in exact numbers exchanges one record
for another, which is two steps. Bounds are valid on average over the split and the noise. Intervals of
attacks on one table take that table as fixed. One table's number may therefore pass a bound without
disproving it. Attacks that fit many times (shadow models, the audit of tables) can disprove it.

* membership: TPR - FPR is at most the total variation (Jia 2023). The accuracy from even odds is at most
  half of one plus that, TPR at an FPR at most the trade-off curve.
* linkability and inference: a success on a record is a test of its membership. The *excess* over held-out
  records is therefore at most the total variation as well. The rate itself has no bound.
* singling out: if a description fits exactly one record depends on all of them, and nothing is claimed.

References ---------- Donner, Zou (2012), "Closed-form confidence intervals for functions of the normal
mean and standard deviation", Statistical Methods in Medical Research 21 (MOVER-R, the ratio).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.attacks.attempt import Attempt, Floats
from dpsynth.checks import Counted
from dpsynth.evaluation.estimates import Estimate, share, share_difference, sure_end
from dpsynth.privacy.profile import Profile

Bools = NDArray[np.bool_]
#: what the name of an excess goes on with, after that of its attack and before the noun
BEYOND = ", beyond held-out "
_NO_BOUND = "no bound is proved. Facts about the whole population can be inferred from any useful table"
CLOSER = (
    "the table would have to repeat single {records}. The bound allows for an attacker who sees every noisy "
    "number and knows all other {records}"
)
_MOST = ", and asks for the one {record} that shows most"


@dataclass(frozen=True)
class Proved:
    """Bounds that follow from a privacy profile.

    Parameters
    ----------
    profile : Profile or None
        Privacy profile of the synthetic table. If it is None, nothing is known and every bound is None.
    coins : bool
        Whether each record was put into the training part by a coin of its own.

    Examples
    --------
    >>> proved = Proved(Profile.promised(1.0, 0.0, 1.0), coins=True)
    >>> round(proved.advantage, 4), round(proved.accuracy, 4), Proved().advantage
    (0.4621, 0.7311, None)
    """

    profile: Profile | None = None
    coins: bool = True

    @property
    def advantage(self) -> float | None:
        """Upper bound on TPR - FPR."""
        if self.profile is None:
            return None
        return min(1.0, self.profile.tv() * (1 if self.coins else 2))

    @property
    def accuracy(self) -> float | None:
        """Upper bound on the accuracy of naming members among records that are in or out by a coin."""
        return None if self.profile is None else self.profile.attack_accuracy()

    @property
    def pairs(self) -> float | None:
        """Upper bound on the accuracy of naming the member of a pair: one record exchanged for another."""
        return None if self.profile is None else min(1.0, 0.5 + self.profile.tv())

    def tpr(self, fpr: float) -> float | None:
        """Upper bound on the true positive rate at a false positive rate."""
        if self.profile is None:
            return None
        if self.coins:
            return float(self.profile.tpr(fpr))
        assert self.advantage is not None
        return min(1.0, fpr + self.advantage)


@dataclass(frozen=True)
class Risk:
    """One attack on a synthetic table, with shares of right tries. Confidential.

    Attributes
    ----------
    risk, attack : str
        Name in :data:`dpsynth.attacks.suite.ATTACKS`, and how it was tried, in a few words.
    holds : str
        Knowledge of the attacker beside the synthetic table.
    rate, without, held_out : Estimate
        On training records, without the synthetic table, and with the table on held-out records.
    excess : Estimate
        ``rate - held_out``.
    normalised : Estimate
        ``(rate - held_out) / (1 - held_out)``, cut off at 0 and 1: anonymeter's risk.
    tries : tuple of (int, int)
        Attacks on training and on held-out records.
    proved : float or None
        Upper bound on the expected excess, None if none is proved.
    level : float
        Confidence level of the intervals.
    about : str
        A remark.
    counted : {"records", "patients"}
        What was attacked (:class:`dpsynth.checks.Counted`).
    more : tuple of Attempt
        Further numbers of the same attack.
    """

    risk: str
    attack: str
    holds: str
    rate: Estimate
    without: Estimate
    held_out: Estimate
    excess: Estimate
    normalised: Estimate
    tries: tuple[int, int]
    proved: float | None = None
    level: float = 0.95
    about: str = ""
    counted: Counted = Counted.RECORDS
    more: tuple[Attempt, ...] = ()

    @classmethod
    def of(
        cls,
        risk: str,
        attack: str,
        holds: str,
        rates: tuple[Estimate, Estimate, Estimate],
        tries: tuple[int, int],
        **rest: Any,
    ) -> Risk:
        """Build a risk from independent rates: on training records, without the table, on held-out records.

        Examples
        --------
        >>> rates = share(60, 100), share(10, 100), share(20, 100)
        >>> found = Risk.of("linkability", "halves", "two files", rates, (100, 100))
        >>> round(found.excess.value, 3), round(found.normalised.value, 3), found.normalised.lower > 0
        (0.4, 0.5, True)
        """
        rate, without, held_out = rates
        excess, part = share_difference(rate, held_out), mover_ratio(rate, held_out)
        return cls(risk, attack, holds, rate, without, held_out, excess, part, tries, **rest)

    @property
    def found(self) -> bool:
        """Whether training records are attacked better than held-out ones, by the whole interval."""
        return self.excess.lower > 0

    def found_among(self, attacks: int) -> bool:
        """Whether it is found by an interval that is valid for so many attacks together."""
        return sure_end(self.excess, self.level, attacks) > 0

    def attempts(self) -> tuple[Attempt, ...]:
        """Return the rate beside the attacker without the table, the excess beside its bound, and more."""
        name = f"{self.risk}, {self.attack}"
        tried = f"{self.tries[0]:,} attacks on training, {self.tries[1]:,} on held-out {self.counted}"
        rate = Attempt(name, "rate", self.rate, None, self.without, tried, _NO_BOUND, self.level)
        excess = Attempt(
            f"{name}{BEYOND}{self.counted}",
            "advantage",
            self.excess,
            self.proved,
            None,
            f"{tried}, {100 * self.normalised.value:.1f} % of the possible gain "
            f"({100 * self.normalised.lower:.1f} to {100 * self.normalised.upper:.1f} %)",
            self.counted.fill(CLOSER + _MOST) if self.proved is not None else "",
            self.level,
            one_table=True,
        )
        return (rate, excess, *self.more)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        plain = {**asdict(self), "tries": list(self.tries), "found": self.found, "internal": True}
        return {**plain, "more": [attempt.to_dict() for attempt in self.more]}


def rate_of(right: Bools, level: float = 0.95) -> Estimate:
    """Share of an attack's tries that were right, at least one, with Clopper and Pearson's interval.

    The synthetic table is held fixed. If it does not depend on the particular training records, records of
    both kinds are independent samples of one distribution, and so are their successes. Then the binomial
    distribution is right, and Newcombe's squares of these intervals err to the safe side.
    """
    return share(int(right.sum()), len(right), level)


def mean_rate(values: Floats, level: float = 0.95) -> Estimate:
    """Mean of independent values in [0, 1] with Student's interval, exact if all are equal.

    Examples
    --------
    >>> mean_rate(np.ones(10)).upper, round(mean_rate(np.ones(10)).lower, 3)
    (1.0, 0.692)
    """
    from scipy.stats import t

    n, value = len(values), float(values.mean())
    if n < 2 or float(values.var()) < 1e-12:
        alike = share(round(value * n), n, level)
        return Estimate(value, min(value, alike.lower), max(value, alike.upper))
    reach = float(t.isf((1 - level) / 2, n - 1)) * float(values.std(ddof=1)) / math.sqrt(n)
    return Estimate(value, max(value - reach, 0.0), min(value + reach, 1.0))


def scaled(excess: Estimate, held_out: float) -> Estimate:
    """Return an excess as a share of the remaining gain, ``1 - held_out`` held fixed, within [0, 1]."""
    left = 1.0 - held_out
    if left <= 0:
        return Estimate(0.0, 0.0, 0.0)
    return Estimate(*(min(max(end / left, 0.0), 1.0) for end in (excess.value, excess.lower, excess.upper)))


def mover_ratio(rate: Estimate, held_out: Estimate) -> Estimate:
    """``1 - q1 / q2`` with q the shares of failures: MOVER-R by its roots, which exist in [0, 1]."""
    q1, low1, high1 = 1 - rate.value, 1 - rate.upper, 1 - rate.lower
    q2, low2, high2 = 1 - held_out.value, 1 - held_out.upper, 1 - held_out.lower

    def largest(ratio: float) -> float:  # upper limit of q1 - ratio q2, falling in the ratio
        return q1 - ratio * q2 + math.hypot(high1 - q1, ratio * (q2 - low2))

    def smallest(ratio: float) -> float:
        return q1 - ratio * q2 - math.hypot(q1 - low1, ratio * (high2 - q2))

    value = 1 - q1 / q2 if q2 > 0 else 0.0
    return Estimate(min(max(value, 0.0), 1.0), 1 - _root(largest), 1 - _root(smallest))


def _root(falling: Callable[[float], float]) -> float:
    """Root of a falling function with a value of at least 0 at 0, or 1 if it does not cross before."""
    from scipy.optimize import brentq

    if falling(1.0) >= 0:
        return 1.0
    return float(brentq(falling, 0.0, 1.0)) if falling(0.0) > 0 else 0.0
