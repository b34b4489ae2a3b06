"""What an attack on a synthetic table reached: on training records, on held-out records, without the table.

Training records and held-out ones are alike but for one thing: the synthetic table was made from the first.
What an attack reaches on held-out records it learned about the population; only the excess on training
records is memory of persons. Following anonymeter (Giomi et al. 2023, "A unified framework for quantifying
privacy risk in synthetic data"), the excess is also given as a share of what was left to gain,
``(rate - held out) / (1 - held out)``, in [0, 1]. Two things are done otherwise: rates are the shares
themselves, with Clopper and Pearson's intervals, where anonymeter's are the centres of Wilson's intervals,
which are drawn towards 1/2; and the interval of the ratio is Donner and Zou's, not a first-order one, so that
it excludes 0 exactly where the interval of the difference does.

References
----------
Donner, Zou (2012), "Closed-form confidence intervals for functions of the normal mean and standard
deviation", Statistical Methods in Medical Research 21 (MOVER-R, the ratio).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.attacks.attempt import Attempt
from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import Estimate, share, share_difference

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: the questions of WP 216, and that of differential privacy
RISKS = ("singling out", "linkability", "inference", "membership")


@dataclass(frozen=True)
class Risk:
    """One attack on a synthetic table. Internal.

    Parameters
    ----------
    risk : str
        One of :data:`RISKS`.
    attack : str
        How, in a few words.
    holds : str
        What the attacker holds beside the synthetic table.
    rate : Estimate
        Share of the attacks on training records that were right.
    without : Estimate
        The same for an attacker without the synthetic table.
    held_out : Estimate
        The same, with the table, on held-out records.
    excess : Estimate
        ``rate - held_out``.
    normalised : Estimate
        ``(rate - held_out) / (1 - held_out)``, cut off at 0 and 1: anonymeter's risk.
    tries : tuple of (int, int)
        Attacks on training and on held-out records.
    proved : float or None
        Upper bound on the expected excess; None where none is proved.
    level : float
        Confidence level of the intervals.
    about : str
        What else has to be said.
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
    more: tuple[Attempt, ...] = ()

    def __post_init__(self) -> None:
        if self.risk not in RISKS:
            raise InputError(f"risk must be one of {', '.join(RISKS)}, got {self.risk!r}")

    @property
    def found(self) -> bool:
        """Whether training records are attacked better than held-out ones, by the whole interval."""
        return self.excess.lower > 0

    def found_among(self, attacks: int) -> bool:
        """Whether it is found by an interval that holds for so many attacks together (Bonferroni).

        The lower end is moved as that of a normal distribution would be.
        """
        from scipy.stats import norm

        tails = (1 - self.level) / 2, (1 - self.level) / (2 * attacks)
        wider = float(norm.isf(tails[1]) / norm.isf(tails[0]))
        return self.excess.value - wider * (self.excess.value - self.excess.lower) > 0

    def attempts(self) -> tuple[Attempt, ...]:
        """Return the rate beside the attacker without the table, the excess beside its bound, and more."""
        name = f"{self.risk}, {self.attack}"
        tried = f"{self.tries[0]:,} attacks on training, {self.tries[1]:,} on held-out records"
        rate = Attempt(name, "rate", self.rate, None, self.without, tried, _NO_BOUND, self.level)
        excess = Attempt(
            f"{name}, beyond held-out records",
            "advantage",
            self.excess,
            self.proved,
            None,
            f"{tried}; {100 * self.normalised.value:.1f} % of what was left to gain "
            f"({100 * self.normalised.lower:.1f} to {100 * self.normalised.upper:.1f} %)",
            _CLOSER if self.proved is not None else "",
            self.level,
            one_table=True,
        )
        return (rate, excess, *self.more)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        plain = {**asdict(self), "tries": list(self.tries), "found": self.found, "internal": True}
        return {**plain, "more": [attempt.to_dict() for attempt in self.more]}


_NO_BOUND = "no bound is proved: what holds for the whole population can be inferred from any useful table"
_CLOSER = (
    "the table would have to repeat single records; the bound allows for an attacker who sees every noisy "
    "number and knows all other records, and who asks for the one record that shows most"
)


@dataclass(frozen=True)
class Compared:
    """Training against held-out records: the rates, their difference and :attr:`Risk.normalised`."""

    rate: Estimate
    held_out: Estimate
    excess: Estimate
    normalised: Estimate


def compared(train: Bools, held_out: Bools, level: float = 0.95) -> Compared:
    """Compare the successes of an attack on training records with those on held-out ones.

    Parameters
    ----------
    train, held_out : ndarray of bool of shape (n,), (h,)
        Whether each attack was right; at least one each.

    Notes
    -----
    The synthetic table is held fixed. If it owes nothing to the particular training records, records of both
    kinds are independent draws of one distribution, and so are their successes: the binomial distribution is
    right, and Newcombe's squares of Clopper and Pearson's intervals err to the safe side.

    Examples
    --------
    >>> found = compared(np.array([True] * 60 + [False] * 40), np.array([True] * 20 + [False] * 80))
    >>> round(found.excess.value, 3), round(found.normalised.value, 3), found.normalised.lower > 0
    (0.4, 0.5, True)
    """
    return of_rates(
        share(int(train.sum()), len(train), level), share(int(held_out.sum()), len(held_out), level)
    )


def of_rates(rate: Estimate, held_out: Estimate) -> Compared:
    """Compare two rates of independent samples."""
    return Compared(rate, held_out, share_difference(rate, held_out), _normalised(rate, held_out))


def mean_rate(values: Floats, level: float = 0.95) -> Estimate:
    """Mean of independent values in [0, 1] with Student's interval; exact where all are alike.

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
    """Return an excess as a share of what was left to gain, ``1 - held_out`` held fixed, within [0, 1]."""
    left = 1.0 - held_out
    if left <= 0:
        return Estimate(0.0, 0.0, 0.0)
    return Estimate(*(min(max(end / left, 0.0), 1.0) for end in (excess.value, excess.lower, excess.upper)))


def _normalised(rate: Estimate, held_out: Estimate) -> Estimate:
    """``1 - q1 / q2`` with q the shares of failures; MOVER-R by its roots, which exist in [0, 1]."""
    q1, low1, high1 = 1 - rate.value, 1 - rate.upper, 1 - rate.lower
    q2, low2, high2 = 1 - held_out.value, 1 - held_out.upper, 1 - held_out.lower

    def largest(ratio: float) -> float:  # upper limit of q1 - ratio q2, falling in the ratio
        return q1 - ratio * q2 + math.hypot(high1 - q1, ratio * (q2 - low2))

    def smallest(ratio: float) -> float:
        return q1 - ratio * q2 - math.hypot(q1 - low1, ratio * (high2 - q2))

    value = 1 - q1 / q2 if q2 > 0 else 0.0
    return Estimate(min(max(value, 0.0), 1.0), 1 - _root(largest), 1 - _root(smallest))


def _root(falling: Callable[[float], float]) -> float:
    """Where a falling function with a value of at least 0 at 0 crosses 0; 1 where it does not before."""
    from scipy.optimize import brentq

    if falling(1.0) >= 0:
        return 1.0
    return float(brentq(falling, 0.0, 1.0)) if falling(0.0) > 0 else 0.0
