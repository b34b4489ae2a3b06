"""What the trials of one mechanism say of what is declared of it: pass, or why not.

Scores are log-likelihood ratios under the declared law of the mechanism's output with and without the record:
the best test there is for what is declared, and a valid one whatever is true. Its two thresholds follow from
what is declared and from the number of trials, so that all trials count and none is spent on choosing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpsynth.accounting.profile import Profile
from dpsynth.attacks.audit.one_run import epsilon_lower, right_guesses
from dpsynth.attacks.audit.rates import Errors
from dpsynth.attacks.audit.thresholds import errors_at, planned_threshold
from dpsynth.attacks.audit.verdict import SURE, Audited
from dpsynth.errors import InputError

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
