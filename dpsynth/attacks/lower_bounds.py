"""Lower bounds of the privacy loss of a mechanism, from error rates of a membership test and from guesses.

A test that decides "with" or "without" the record errs at two rates. Every guarantee is a curve that
bounds one rate by the other. Two rates below the curve disprove it. Independent trials give Clopper and
Pearson's upper ends of both rates, at half of the failure probability each. Conclusions from both ends are
valid at the whole level.

A score says how similar a trial is to one with the record, and a test says "with" above a threshold. A
threshold that was chosen among the trials on which errors are counted finds differences in noise. It is
therefore fixed in advance (:func:`errors_at`, with :func:`planned_threshold`). Or it is chosen on one half
of the trials and counted on the other (:func:`split`).

An audit with one run has many canaries, each in the table by a coin of its own, and guesses these coins.
Theorem 5.2 of Steinke et al. bounds guesses of r of m fair coins from a mechanism's output. Under
(epsilon, 0)-differential privacy with add/remove, the number of right ones is at most, in distribution,
binomial of r with probability ``e^epsilon / (1 + e^epsilon)``. Delta adds ``2 m delta max_i P[v > B >= v -
i] / i`` to the probability of at least v right guesses. The choice of coins may depend on the output,
their number may not. Independent runs with one coin each are the same experiment.

References ---------- Kairouz, Oh, Viswanath (2015), "The composition theorem for differential privacy",
Theorem 2.1 (the region of error rates); Jagielski, Ullman, Oprea (2020), "Auditing differentially private
machine learning"; Nasr et al. (2023), "Tight auditing of differentially private machine learning" (the
bound for a Gaussian curve); Steinke, Nasr, Jagielski (2023), "Privacy auditing with one (1) training run".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpsynth.attacks.attempt import Floats
from dpsynth.checks import in_range, whole
from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import Estimate, share
from dpsynth.privacy.events import gaussian_event
from dpsynth.privacy.profile import Profile

#: What a threshold is chosen by; the larger the better.
Aim = Callable[["Errors"], float]
#: How close to the root the lower bound of epsilon stops, below it.
_CLOSE = 1e-6
#: Above this no audit tells anything apart.
_MOST = 60.0


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
    Every estimate's ``lower`` is valid for the mechanism at the given level: it lies above the truth in at
    most ``1 - level`` of all audits. ``upper`` bounds, at the same level, the gain of *this test*. A better
    test may gain more.

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

    def _bounded(self, bound: Callable[[float, float], float], level: float) -> Estimate:
        """Implication of two error rates: the lower it is, the higher the rates."""
        low, high = self.ends(level)
        return Estimate(*(bound(*rates) for rates in ((self.fpr, self.fnr), high, low)))

    def tv(self, level: float = 0.95) -> Estimate:
        """Total variation: ``TPR - FPR``, in [0, 1], 0 for a test that errs oftener than a coin."""
        return self._bounded(lambda fpr, fnr: max(1.0 - fpr - fnr, 0.0), level)

    def epsilon(self, delta: float, level: float = 0.95) -> Estimate:
        """Epsilon at ``delta``, whatever the mechanism: log of (TPR - delta) / FPR, or of the other side.

        Kairouz et al. (2015), Theorem 2.1. The value is infinite if no trial erred.
        """
        in_range("delta", delta, 0.0, 1.0)
        return self._bounded(lambda fpr, fnr: epsilon_of_rates(fpr, fnr, delta), level)

    def mu(self, level: float = 0.95) -> Estimate:
        """Gaussian DP's mu of the Gaussian curve through the two rates (Nasr et al. 2023, section 4)."""
        return self._bounded(mu_of_rates, level)

    def gaussian_epsilon(self, delta: float, level: float = 0.95) -> Estimate:
        """Epsilon at ``delta`` of that Gaussian curve: a bound for mechanisms whose curve is Gaussian."""
        return self._bounded(lambda fpr, fnr: epsilon_of_mu(mu_of_rates(fpr, fnr), delta), level)

    def contradict(self, declared: Profile, level: float = 0.95) -> bool:
        """Whether both rates lie below the declared trade-off curve.

        It is a disproof of the whole profile at ``level``, without any assumption.
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
    """Epsilon at ``delta`` of mu-Gaussian-DP, infinite for infinite mu or ``delta`` 0.

    Examples
    --------
    >>> round(epsilon_of_mu(1.0, 1e-5), 4), epsilon_of_mu(0.0, 1e-5)
    (4.3772, 0.0)
    """
    if mu == 0.0:
        return 0.0
    return math.inf if math.isinf(mu) else Profile([gaussian_event(1.0 / mu)]).epsilon(delta)


def errors_at(with_record: ArrayLike, without: ArrayLike, threshold: float) -> Errors:
    """Errors of the test ``score > threshold``, which must be fixed in advance.

    Parameters
    ----------
    with_record, without : array_like of shape (n,), (m,)
        Scores, higher for "with". They may be infinite.

    Raises
    ------
    InputError
        If there is no trial of a kind, or a score is no number.

    Examples
    --------
    >>> errors_at([0.1, 2.0], [-1.0, -2.0, 3.0], 0.0)
    Errors(false_positives=1, without=3, false_negatives=0, with_record=2)
    """
    member, other = _scores(with_record), _scores(without)
    return Errors(int((other > threshold).sum()), len(other), int((member <= threshold).sum()), len(member))


def by_epsilon(delta: float, level: float = 0.95) -> Aim:
    """Aim at the lower bound of epsilon at ``delta``, as these trials alone would give it."""
    return lambda errors: errors.epsilon(delta, level).lower


def split(
    with_record: ArrayLike, without: ArrayLike, aim: Aim, rng: np.random.Generator, *, tried: int = 200
) -> Errors:
    """Errors on a random half of the trials, at the threshold that serves best on the other half.

    Parameters
    ----------
    with_record, without : array_like of shape (n,), (m,)
        Scores, higher for "with", at least two of each.
    aim : callable
        Takes :class:`Errors` and returns the number to maximise, as from :func:`by_epsilon`.
    rng : numpy.random.Generator
        Chooses the halves.
    tried : int
        Thresholds that are tried, quantiles of the scores.

    Raises
    ------
    InputError
        If there are fewer than two trials of a kind.
    """
    halves = []
    for scores in (_scores(with_record), _scores(without)):
        if len(scores) < 2:
            raise InputError("a threshold is chosen on half of the trials: at least two of a kind are needed")
        mixed = rng.permutation(scores)
        halves.append((mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :]))
    (member, member_left), (other, other_left) = halves
    pooled = np.sort(np.concatenate([member, other]))
    places = np.unique(np.linspace(0, len(pooled) - 1, tried).astype(int))
    best = max((float(pooled[place]) for place in places), key=lambda t: aim(errors_at(member, other, t)))
    return errors_at(member_left, other_left, best)


def planned_threshold(mu: float, trials: int, delta: float, level: float = 0.95) -> float:
    """Threshold of log-likelihood ratios that is expected to bound epsilon best if the curve is Gaussian.

    Under mu-Gaussian-DP the ratio is normal with mean ``-mu^2 / 2`` without the record, ``mu^2 / 2`` with
    it, and standard deviation mu. Far out the rates differ by a large factor, but are known badly from few
    trials. The best place depends on nothing but mu and the number of trials of each kind.
    """
    from scipy.special import ndtr

    if not (math.isfinite(mu) and mu > 0.0) or trials < 1:
        raise InputError(f"mu must be positive and finite and trials at least 1, got {mu}, {trials}")
    places = np.linspace(0.0, 4.5, 91)

    def bound(place: float) -> float:
        rates = (float(ndtr(-place)), float(ndtr(place - mu)))
        fpr, fnr = (share(math.ceil(rate * trials), trials, level).upper for rate in rates)
        return epsilon_of_rates(fpr, fnr, delta)

    best = max(places, key=bound)
    return float(-0.5 * mu**2 + mu * best)


def _scores(values: ArrayLike) -> Floats:
    scores = np.asarray(values, dtype=np.float64)
    if scores.ndim != 1 or not len(scores) or np.isnan(scores).any():
        raise InputError("scores must be one number a trial, and no NaN")
    return scores


def right_guesses(scores: ArrayLike, included: ArrayLike, guesses: int) -> int:
    """Number of right guesses: the largest scores are taken for "in", the smallest for "out".

    Parameters
    ----------
    scores : array_like of shape (m,)
        One a canary, higher for "in".
    included : array_like of bool, shape (m,)
        Its coin.
    guesses : int
        r, even or odd, at most m, fixed in advance. If it is odd, one more is "in".

    Raises
    ------
    InputError
        If the shapes differ, a score is NaN, or there are more guesses than canaries.

    Examples
    --------
    >>> right_guesses([5.0, -4.0, 0.1, 3.0], [True, False, False, False], 3)
    2
    """
    values, coins = np.asarray(scores, dtype=np.float64), np.asarray(included, dtype=bool)
    if values.ndim != 1 or values.shape != coins.shape or np.isnan(values).any():
        raise InputError("scores and included must be one number and one coin a canary")
    if not 1 <= guesses <= len(values):
        raise InputError(f"guesses must lie in [1, {len(values)}], got {guesses}")
    order = np.argsort(values, kind="stable")
    lowest, highest = order[: guesses // 2], order[len(order) - (guesses - guesses // 2) :]
    return int((~coins[lowest]).sum() + coins[highest].sum())


def p_value(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """Largest probability of v right of r guesses about m canaries under (epsilon, delta), Theorem 5.2.

    Examples
    --------
    >>> round(p_value(1000, 100, 80, 1.0, 0.0), 5), round(p_value(1000, 100, 80, 1.0, 1e-5), 5)
    (0.07156, 0.07301)
    """
    from scipy.stats import binom

    for name, number in (("canaries", canaries), ("guesses", guesses)):
        whole(name, number)
    if not 0 <= right <= guesses <= canaries:
        raise InputError(
            f"right, guesses, canaries must not decrease in this order, got {right}, {guesses}, {canaries}"
        )
    in_range("epsilon", epsilon, 0.0, math.inf)
    in_range("delta", delta, 0.0, 1.0)
    truth = 1.0 / (1.0 + math.exp(-epsilon))
    p = float(binom.sf(right - 1, guesses, truth))
    if delta > 0.0 and right > 0:
        steps = np.arange(1, right + 1)
        # P[v > B >= v - i], i = 1 ... v
        below = np.cumsum(binom.pmf(right - steps, guesses, truth)) / steps
        p += 2.0 * canaries * delta * float(below.max())
    return min(p, 1.0)


def epsilon_lower(canaries: int, guesses: int, right: int, delta: float, level: float = 0.95) -> float:
    """Lower bound of epsilon at ``delta``, with confidence ``level``, 0 if the guesses show nothing.

    Parameters
    ----------
    canaries, guesses, right : int
        All coins, those that were guessed, and those that were guessed right.
    delta : float
        In [0, 1].
    level : float
        In (0, 1).

    Raises
    ------
    InputError
        If a number is out of range.

    Examples
    --------
    >>> round(epsilon_lower(1000, 100, 80, 1e-5), 3), epsilon_lower(1000, 100, 50, 1e-5)
    (0.955, 0.0)
    """
    in_range("level", level, 0.0, 1.0, low_open=True, high_open=True)

    def refuted(epsilon: float) -> bool:
        return p_value(canaries, guesses, right, epsilon, delta) < 1.0 - level

    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while refuted(high):
        low, high = high, 2.0 * high
        if low > _MOST:
            return low
    while high - low > _CLOSE:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
