"""What the trials of one mechanism say of what is declared of it: pass, or why not.

Scores are log-likelihood ratios under the declared law of the mechanism's output with and without the record:
the best test there is for what is declared, and a valid one whatever is true. Its two thresholds follow from
what is declared and from the number of trials, so that all trials count and none is spent on choosing.

Where a test of scores draws its line: fixed in advance, chosen on other trials, or paid for.

A score says how much a trial looks like one with the record; a test says "with" above a threshold. A
threshold that was chosen among the trials on which errors are counted finds differences in noise. So it is
one of

* fixed in advance, as log-likelihood ratios allow: :func:`errors_at`, with 0 for the largest total variation
  and :func:`planned_threshold` for the largest expected bound of epsilon;
* chosen on half of the trials and counted on the others: :func:`split`;
* one of several that were named in advance, each at its part of the failure probability:
  :func:`best_epsilon`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.accounting.profile import Profile
from dpsynth.attacks.audit.one_run import epsilon_lower, right_guesses
from dpsynth.attacks.audit.rates import Errors, epsilon_of_rates
from dpsynth.attacks.audit.verdict import SURE, Audited
from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import Estimate, share

Floats = NDArray[np.float64]
#: What a threshold is chosen by; the larger the better.
Aim = Callable[[Errors], float]


def errors_at(with_record: ArrayLike, without: ArrayLike, threshold: float) -> Errors:
    """Errors of the test ``score > threshold``, which must be fixed in advance.

    Parameters
    ----------
    with_record, without : array_like of shape (n,), (m,)
        Scores, higher for "with"; infinite ones allowed.

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


def by_tv(errors: Errors) -> float:
    """Aim at total variation."""
    return 1.0 - errors.fpr - errors.fnr


def by_epsilon(delta: float, level: float = 0.95) -> Aim:
    """Aim at the lower bound of epsilon at ``delta``, as these trials alone would give it."""
    return lambda errors: errors.epsilon(delta, level).lower


def split(
    with_record: ArrayLike, without: ArrayLike, aim: Aim, rng: np.random.Generator, *, tried: int = 200
) -> Errors:
    """Errors on a random half of the trials, at the threshold that serves best on the other half.

    Parameters
    ----------
    aim : callable
        :func:`by_tv`, or what :func:`by_epsilon` returns.
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


def best_epsilon(
    with_record: ArrayLike,
    without: ArrayLike,
    thresholds: Sequence[float],
    delta: float,
    level: float = 0.95,
) -> Estimate:
    """The best bound of epsilon over thresholds named in advance, all of them paid for (Bonferroni)."""
    if not thresholds:
        raise InputError("thresholds must hold at least one number, got none")
    each = 1.0 - (1.0 - level) / len(thresholds)
    found = [errors_at(with_record, without, t).epsilon(delta, each) for t in thresholds]
    return max(found, key=lambda estimate: estimate.lower)


def planned_threshold(mu: float, trials: int, delta: float, level: float = 0.95) -> float:
    """Threshold of log-likelihood ratios that is expected to bound epsilon best where the curve is Gaussian.

    Under mu-Gaussian-DP the ratio is normal with mean ``-mu^2 / 2`` without the record, ``mu^2 / 2`` with
    it, and standard deviation mu. Far out the rates differ by a large factor, but are known badly from few
    trials; the best place between depends on nothing but mu and their number.

    Parameters
    ----------
    mu : float
        Declared; greater than 0 and finite.
    trials : int
        Of each kind, about.
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


#: Standard deviations that a normal number falls short by in one of ten cases.
NINE_IN_TEN = 1.28
#: Part of the trials about which a guess is made, the most and the least likely ones.
GUESSED = 0.2


@dataclass(frozen=True)
class Declared:
    """What is claimed of a mechanism.

    Parameters
    ----------
    profile : Profile
        The ledger's, composed.
    delta : float
        At which epsilon is told.
    """

    profile: Profile
    delta: float

    @property
    def epsilon(self) -> float:
        """At delta."""
        return self.profile.epsilon(self.delta)

    @property
    def tv(self) -> float:
        """Total variation."""
        return self.profile.tv()

    def best_rates(self) -> tuple[float, float]:
        """False positive and false negative rate of the best test, where they add to the least."""
        grid = np.linspace(0.0, 1.0, 2001)
        fnr = np.asarray(self.profile.fnr(grid))
        place = int(np.argmin(grid + fnr))
        return float(grid[place]), float(fnr[place])


def judge(
    name: str,
    scores: ArrayLike,
    with_record: ArrayLike,
    declared: Declared,
    *,
    about: str,
    expected: tuple[float, float] | None = None,
    gaussian: bool = True,
    level: float = 0.95,
    seconds: float = 0.0,
    attained: float | None = None,
) -> Audited:
    """Judge a mechanism by its trials.

    Parameters
    ----------
    name : str
    scores : array_like of shape (n,)
        Log-likelihood ratios, higher for "with"; infinite ones allowed.
    with_record : array_like of bool, shape (n,)
        Which table each trial was of, by a fair coin of its own.
    declared : Declared
    expected : (float, float), optional
        Error rates at threshold 0 that a correct mechanism shows on these tables; by default the best that
        is declared.

    Raises
    ------
    InputError
        If there is no trial of a kind, or what is declared is no privacy at all.
    """
    values, coins = np.asarray(scores, dtype=np.float64), np.asarray(with_record, dtype=bool)
    if not declared.profile.private:
        raise InputError(f"{name}: nothing is declared that an audit could contradict, for there is no noise")
    if values.shape != coins.shape or not 0 < coins.sum() < len(coins):
        raise InputError(f"{name}: each kind of table needs at least one trial")
    member, other = values[coins], values[~coins]
    trials = min(len(member), len(other))
    middle = errors_at(member, other, 0.0)
    far = middle
    if gaussian:  # other laws may have no ratios but two
        line = planned_threshold(declared.profile.mu(), trials, declared.delta, level)
        far = errors_at(member, other, line)
    guesses = max(round(GUESSED * len(values)), 1)
    right = right_guesses(values, coins, guesses)
    guessed, surely_guessed = (
        epsilon_lower(len(values), guesses, right, declared.delta, each) for each in (level, SURE)
    )
    found = [surely_guessed, far.epsilon(declared.delta, SURE).lower]
    if gaussian:
        found.append(middle.gaussian_epsilon(declared.delta, SURE).lower)
    contradicted = (
        middle.contradict(declared.profile, SURE)
        or far.contradict(declared.profile, SURE)
        or middle.tv(SURE).lower > declared.tv
        or max(found) > declared.epsilon
    )
    rates = declared.best_rates() if expected is None else expected
    hoped = Errors(*(n for r in rates for n in (min(math.ceil(r * trials), trials), trials)))
    return Audited(
        name,
        {"epsilon": declared.epsilon, "delta": declared.delta, "tv": declared.tv},
        middle,
        far,
        guessed,
        hoped.tv(level).lower,
        1.0 - sum(rates),
        contradicted,
        about,
        gaussian,
        level,
        seconds,
        attained,
        power=not gaussian or _notices_half(rates, trials, declared.tv),
    )


def _notices_half(rates: tuple[float, float], trials: int, tv: float) -> bool:
    """Whether trials of a Gaussian release with half of its noise would contradict its total variation."""
    from scipy.special import ndtr, ndtri

    halved = [float(ndtr(2.0 * ndtri(rate))) for rate in rates]
    found = Errors(*(n for rate in halved for n in (min(math.ceil(rate * trials), trials), trials)))
    chance = NINE_IN_TEN * math.sqrt(sum(rate * (1.0 - rate) for rate in halved) / trials)
    return found.tv(SURE).lower - chance > tv
