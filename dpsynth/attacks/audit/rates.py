"""Lower bounds of epsilon, total variation and Gaussian DP from the errors of one membership test.

A test that is told "with" or "without" the record errs at two rates. Every guarantee is a curve that bounds
one rate by the other, so that two rates that lie below the curve disprove it. Both rates are known from
independent trials, up to Clopper and Pearson's upper ends at half of the failure probability each: what is
concluded from the two ends together holds at the whole level.

References
----------
Kairouz, Oh, Viswanath (2015), "The composition theorem for differential privacy", Theorem 2.1 (the region of
error rates); Jagielski, Ullman, Oprea (2020), "Auditing differentially private machine learning"; Nasr et al.
(2023), "Tight auditing of differentially private machine learning" (the bound for a Gaussian curve).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpsynth.accounting.events import gaussian_event
from dpsynth.accounting.profile import Profile
from dpsynth.checks import in_range
from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import Estimate, share


@dataclass(frozen=True)
class Errors:
    """Errors of a membership test in independent trials.

    The test must be fixed before these trials: a threshold chosen among them finds epsilon in noise.

    Parameters
    ----------
    false_positives, without : int
        Trials without the record that the test took for trials with it, and all trials without it.
    false_negatives, with_record : int
        Trials with the record that the test took for trials without it, and all trials with it.

    Raises
    ------
    InputError
        If there is no trial of a kind, or more errors than trials.

    Notes
    -----
    Every estimate's ``lower`` holds for the mechanism at the given level: it lies above the truth in at most
    ``1 - level`` of all audits. ``upper`` bounds, at the same level, what *this test* gains, not what the
    mechanism gives away to a better one.

    Examples
    --------
    >>> errors = Errors(30, 1000, 700, 1000)
    >>> found = errors.epsilon(1e-5)
    >>> round(found.value, 3), round(found.lower, 3)
    (2.303, 1.854)
    """

    false_positives: int
    without: int
    false_negatives: int
    with_record: int

    def __post_init__(self) -> None:
        for name, errors, trials in (
            ("without", self.false_positives, self.without),
            ("with_record", self.false_negatives, self.with_record),
        ):
            if trials < 1 or not 0 <= errors <= trials:
                raise InputError(
                    f"{name} must count at least 1 trial and its errors at most as many, "
                    f"got {errors} of {trials}"
                )

    @property
    def fpr(self) -> float:
        """Share of false positives."""
        return self.false_positives / self.without

    @property
    def fnr(self) -> float:
        """Share of false negatives."""
        return self.false_negatives / self.with_record

    def ends(self, level: float = 0.95) -> tuple[tuple[float, float], tuple[float, float]]:
        """Lower and upper ends of both rates: ``(fpr, fnr)`` twice, each pair jointly at ``level``."""
        # a two-sided interval leaves (1 - level) / 2 on either side, which is each rate's half
        fpr = share(self.false_positives, self.without, level)
        fnr = share(self.false_negatives, self.with_record, level)
        return (fpr.lower, fnr.lower), (fpr.upper, fnr.upper)

    def tv(self, level: float = 0.95) -> Estimate:
        """Total variation: ``TPR - FPR``, in [0, 1]; a test that errs oftener than a coin shows 0."""
        low, high = self.ends(level)
        return Estimate(*(max(1.0 - a - b, 0.0) for a, b in ((self.fpr, self.fnr), high, low)))

    def epsilon(self, delta: float, level: float = 0.95) -> Estimate:
        """Epsilon at ``delta``, whatever the mechanism: log of (TPR - delta) / FPR, or of the other side.

        Kairouz et al. (2015), Theorem 2.1. Infinite as a value where no trial erred.
        """
        in_range("delta", delta, 0.0, 1.0)
        low, high = self.ends(level)
        return Estimate(*(epsilon_of_rates(a, b, delta) for a, b in ((self.fpr, self.fnr), high, low)))

    def mu(self, level: float = 0.95) -> Estimate:
        """Gaussian DP's mu of the Gaussian curve through the two rates (Nasr et al. 2023, section 4)."""
        low, high = self.ends(level)
        return Estimate(*(mu_of_rates(a, b) for a, b in ((self.fpr, self.fnr), high, low)))

    def gaussian_epsilon(self, delta: float, level: float = 0.95) -> Estimate:
        """Epsilon at ``delta`` of that Gaussian curve: a bound for mechanisms whose curve is Gaussian."""
        mu = self.mu(level)
        value, lower, upper = (epsilon_of_mu(end, delta) for end in (mu.value, mu.lower, mu.upper))
        return Estimate(value, lower, upper)

    def contradict(self, declared: Profile, level: float = 0.95) -> bool:
        """Whether both rates lie below the declared trade-off curve: a disproof at ``level``, of the whole
        profile and without any assumption.
        """
        _, (fpr, fnr) = self.ends(level)
        return fnr < float(declared.fnr(fpr))


def epsilon_of_rates(fpr: float, fnr: float, delta: float) -> float:
    """Smallest epsilon, at least 0, that allows these error rates at ``delta``.

    Examples
    --------
    >>> round(epsilon_of_rates(0.1, 0.1, 0.0), 4), epsilon_of_rates(0.5, 0.5, 0.0)
    (2.1972, 0.0)
    """
    found = 0.0
    # either claim may be the rare one: TPR <= e^eps FPR + delta and TNR <= e^eps FNR + delta
    for error, other in ((fpr, fnr), (fnr, fpr)):
        gain = 1.0 - other - delta
        if gain > 0.0:
            found = max(found, math.inf if error == 0.0 else math.log(gain / error))
    return found


def mu_of_rates(fpr: float, fnr: float) -> float:
    """Gaussian-DP mu, at least 0, whose trade-off curve passes through these error rates.

    Dong, Roth, Su (2022), (6): ``fnr = Phi(Phi^-1(1 - fpr) - mu)``.
    """
    from scipy.special import ndtri

    if fpr + fnr >= 1.0:
        return 0.0
    if min(fpr, fnr) == 0.0:
        return math.inf
    return float(-ndtri(fpr) - ndtri(fnr))


def epsilon_of_mu(mu: float, delta: float) -> float:
    """Epsilon at ``delta`` of mu-Gaussian-DP; infinite for infinite mu or ``delta`` 0.

    Examples
    --------
    >>> round(epsilon_of_mu(1.0, 1e-5), 4), epsilon_of_mu(0.0, 1e-5)
    (4.3772, 0.0)
    """
    if mu == 0.0:
        return 0.0
    return math.inf if math.isinf(mu) else Profile([gaussian_event(1.0 / mu)]).epsilon(delta)
