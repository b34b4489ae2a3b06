"""Where a test of scores draws its line: fixed in advance, chosen on other trials, or paid for.

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

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.attacks.audit.rates import Errors, epsilon_of_rates
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
