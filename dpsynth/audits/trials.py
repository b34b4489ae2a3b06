"""Verdict of the trials of one mechanism on its declared guarantee: pass, or the reason why not.

Scores are log-likelihood ratios under the declared distribution of the mechanism's output, with and without
the record. This test is the best for the declared guarantee, and valid for any mechanism. Its two thresholds
follow from the guarantee and the number of trials. All trials count therefore, and none is used for choosing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from dpsynth.attacks.attempt import NOTHING, Attempt, Measure
from dpsynth.attacks.lower_bounds import Errors, epsilon_lower, errors_at, planned_threshold, right_guesses
from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import Estimate
from dpsynth.files.storage import finite
from dpsynth.privacy.profile import Profile

#: An audit is awake if it proves this part of the total variation that it could expect to prove.
AWAKE = 0.5
#: Below this total variation, a result cannot be separated from nothing.
LEAST = 0.01
#: Level at which a claim is contradicted, or an audit is called asleep. The record attains what is declared,
#: so that at 95 % up to one sound release in fifty would be called wrong, and as many sound audits asleep.
SURE = 0.999
#: Standard deviations that a normal number falls short by in one of ten cases.
NINE_IN_TEN = 1.28
#: Part of the trials about which a guess is made, the most and the least likely ones.
GUESSED = 0.2
Verdict = Literal["pass", "contradicted", "asleep", "too few trials"]
#: What each verdict means, for a reader.
MEANING: dict[str, str] = {
    "pass": "nothing found above the declared cost, and the audit has enough power",
    "contradicted": "more was found than is declared: the proof or its code is wrong",
    "asleep": "less was found than a correct mechanism shows: the audit itself is faulty",
    "too few trials": "nothing found above the declared cost, but the trials are too few for more",
}


@dataclass(frozen=True)
class Audited:
    """One mechanism, audited: results of its trials, beside its declared guarantee.

    ``declared`` is ``epsilon`` at ``delta``, and ``tv``. ``middle`` and ``far`` are the errors of the test at
    two thresholds: for total variation, and for epsilon without assumptions. ``guessed`` is a lower bound of
    epsilon from guesses about the trials (Steinke et al. 2023). A correct mechanism has the total variation
    ``reachable_tv`` on these tables. Its expected lower bound is ``expected_tv``. ``contradicted`` is at
    level :data:`SURE`. With a Gaussian declared curve the bound by a Gaussian curve is one of epsilon.
    ``attained`` is how far the record moves the release, over the declared bound, if known. With ``power`` so
    many trials would contradict half of the noise, nine times in ten. Without ``own_noise`` the release had
    less noise than in the run. The declared guarantee is that of the audited release.
    """

    name: str
    declared: dict[str, float]
    middle: Errors
    far: Errors
    guessed: float
    expected_tv: float
    reachable_tv: float
    contradicted: bool
    about: str
    gaussian: bool = True
    level: float = 0.95
    seconds: float = 0.0
    attained: float | None = None
    power: bool = True
    own_noise: bool = True

    @property
    def tv(self) -> Estimate:
        """Total variation that the test found."""
        return self.middle.tv(self.level)

    @property
    def epsilon(self) -> Estimate:
        """Epsilon that it found, whatever the mechanism."""
        return self.far.epsilon(self.declared["delta"], self.level)

    @property
    def gaussian_epsilon(self) -> Estimate | None:
        """Epsilon of the Gaussian curve that it found, None if none is declared."""
        return self.middle.gaussian_epsilon(self.declared["delta"], self.level) if self.gaussian else None

    @property
    def lower(self) -> float:
        """Largest lower bound of epsilon among those that apply."""
        gaussian = 0.0 if self.gaussian_epsilon is None else self.gaussian_epsilon.lower
        return max(self.epsilon.lower, self.guessed, gaussian)

    @property
    def verdict(self) -> Verdict:
        """Verdict of the trials."""
        if self.contradicted:
            return "contradicted"
        if self.power and self.tv.lower >= AWAKE * self.expected_tv >= LEAST * AWAKE:
            return "pass"
        return "asleep" if self.middle.tv(SURE).upper < self.reachable_tv else "too few trials"

    @property
    def failed(self) -> bool:
        """Whether the pass mark was missed."""
        return self.verdict in ("contradicted", "asleep")

    @property
    def trials(self) -> int:
        """Runs on either table."""
        return self.middle.with_record + self.middle.without

    def attempts(self) -> tuple[Attempt, ...]:
        """The same for a report: each result beside its proved bound."""
        of_tv = "other tables. On these the noisy statistic shows less than is declared"
        if self.reachable_tv > 0.9 * self.declared["tv"]:
            of_tv = "more trials"
        of_law = "more trials. The bound concerns the far tails"
        name = self.name if self.own_noise else f"{self.name}, at other noise"
        sure = replace(self, level=SURE)  # a report calls a proof wrong by these intervals
        found: list[tuple[str, Measure, Estimate | None, str]] = [
            ("audit", "tv", sure.tv, of_tv),
            ("audit", "epsilon", sure.epsilon, of_law),
            ("audit, by a Gaussian curve", "epsilon", sure.gaussian_epsilon, of_tv),
        ]
        return tuple(
            Attempt(
                f"{attack}: {name}",
                measure,
                estimate,
                proved=self.declared[measure],
                control=NOTHING,
                about=f"{self.about}, {self.trials:,} trials",
                closer=MEANING[self.verdict] if self.failed else closer,
                level=SURE,
                internal=False,
            )
            for attack, measure, estimate, closer in found
            if estimate is not None
        )

    def to_record(self) -> dict[str, Any]:
        """Return the record that :meth:`from_record` reads."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Audited:
        """Return the audit that :meth:`to_record` wrote down."""
        errors = {name: Errors(**record[name]) for name in ("middle", "far")}
        return cls(**{**record, **errors})

    def to_dict(self) -> dict[str, Any]:
        """Return plain data to be read, infinite numbers as None."""
        found = {"tv": self.tv, "epsilon": self.epsilon, "gaussian_epsilon": self.gaussian_epsilon}
        ends = {name: one and {"value": one.value, "lower": one.lower} for name, one in found.items()}
        same = ("expected_tv", "attained", "trials", "level", "verdict", "about", "seconds")
        return finite(
            {"release": self.name, "lower": self.lower, "declared": self.declared, **ends}
            | {"epsilon_by_guesses": self.guessed}
            | {name: getattr(self, name) for name in same}
        )


@dataclass(frozen=True)
class Declared:
    """Declared guarantee of a mechanism: the ledger's profile, and the delta at which epsilon is given."""

    profile: Profile
    delta: float

    @property
    def epsilon(self) -> float:
        """At delta."""
        return self.profile.epsilon(self.delta)

    def best_rates(self) -> tuple[float, float]:
        """False positive and false negative rate of the best test, where they add to the least."""
        grid = np.linspace(0.0, 1.0, 2001)
        fnr = np.asarray(self.profile.fnr(grid))
        place = int(np.argmin(grid + fnr))
        return float(grid[place]), float(fnr[place])


def judge_trials(
    name: str,
    scores: ArrayLike,
    with_record: ArrayLike,
    declared: Declared,
    *,
    about: str,
    expected: tuple[float, float] | None = None,
    gaussian: bool = True,
    seconds: float = 0.0,
    attained: float | None = None,
) -> Audited:
    """Judge a mechanism by its trials.

    ``scores`` are log-likelihood ratios, higher for "with". They may be infinite. ``with_record`` gives the
    table of each trial, chosen by a fair coin of its own. ``expected`` are the error rates at threshold 0 of
    a correct mechanism on these tables, by default the best under the declared guarantee.
    """
    values, coins = np.asarray(scores, dtype=np.float64), np.asarray(with_record, dtype=bool)
    profile, delta, level = declared.profile, declared.delta, 0.95
    if not profile.private:
        raise InputError(f"{name}: nothing is declared that an audit could contradict, for there is no noise")
    if values.shape != coins.shape or not 0 < coins.sum() < len(coins):
        raise InputError(f"{name}: each kind of table needs at least one trial")
    member, other = values[coins], values[~coins]
    trials = min(len(member), len(other))
    middle = errors_at(member, other, 0.0)
    far = middle
    if gaussian:  # other distributions may have no ratios but two
        far = errors_at(member, other, planned_threshold(profile.mu(), trials, delta, level))
    guesses = max(round(GUESSED * len(values)), 1)
    right = right_guesses(values, coins, guesses)
    guessed, surely_guessed = (
        epsilon_lower(len(values), guesses, right, delta, each) for each in (level, SURE)
    )
    found = [surely_guessed, far.epsilon(delta, SURE).lower]
    if gaussian:
        found.append(middle.gaussian_epsilon(delta, SURE).lower)
    epsilon, tv = declared.epsilon, profile.tv()
    contradicted = (
        middle.contradict(profile, SURE)
        or far.contradict(profile, SURE)
        or middle.tv(SURE).lower > tv
        or max(found) > epsilon
    )
    rates = declared.best_rates() if expected is None else expected
    return Audited(
        name,
        {"epsilon": epsilon, "delta": delta, "tv": tv},
        middle,
        far,
        guessed,
        _expected(rates, trials).tv(level).lower,
        1.0 - sum(rates),
        contradicted,
        about,
        gaussian,
        level,
        seconds,
        attained,
        power=not gaussian or _notices_half(rates, trials, tv),
    )


def _expected(rates: tuple[float, float], trials: int) -> Errors:
    """Errors at these rates in so many trials of each kind, rounded up."""
    return Errors(*(n for rate in rates for n in (min(math.ceil(rate * trials), trials), trials)))


def _notices_half(rates: tuple[float, float], trials: int, tv: float) -> bool:
    """Whether trials of a Gaussian release with half of its noise would contradict its total variation."""
    from scipy.special import ndtr, ndtri

    first, second = (float(ndtr(2.0 * ndtri(rate))) for rate in rates)
    spread = first * (1.0 - first) + second * (1.0 - second)
    chance = NINE_IN_TEN * math.sqrt(spread / trials)
    return _expected((first, second), trials).tv(SURE).lower - chance > tv
