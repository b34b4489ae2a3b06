"""One mechanism, audited: what its trials found, beside what is declared of it, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from dpsynth.attacks.attempt import Attempt
from dpsynth.attacks.audit.rates import Errors
from dpsynth.evaluation.estimates import Estimate

#: An audit is awake if it proves this part of the total variation that it could expect to prove.
AWAKE = 0.5
#: Below this total variation, what could be proved is not told from nothing.
LEAST = 0.01
#: Level at which a claim is contradicted. The record attains what is declared, so that at 95 % up to one
#: sound release in fifty would be called wrong.
SURE = 0.999
Verdict = Literal["pass", "contradicted", "asleep", "too few trials"]
#: What each verdict means, for a reader.
MEANING: dict[str, str] = {
    "pass": "nothing found above what is declared, and the audit sees what is there",
    "contradicted": "more was found than is declared: the proof or its code is wrong",
    "asleep": "less was found than a mechanism of this law shows: the audit is not looking at it",
    "too few trials": "nothing found above what is declared, but so many trials show too little to say more",
}


@dataclass(frozen=True)
class Audited:
    """One mechanism, audited.

    Parameters
    ----------
    name : str
    declared : dict of str to float
        ``epsilon`` at ``delta``, and ``tv``.
    middle, far : Errors
        Of the test at the two thresholds: for total variation, and for epsilon without assumptions.
    guessed : float
        Lower bound of epsilon from guesses about the trials (:mod:`dpsynth.attacks.audit.one_run`).
    expected_tv : float
        Lower bound of the total variation that a correct mechanism would be expected to show.
    reachable_tv : float
        The total variation that it has, on these tables.
    contradicted : bool
        Whether the trials disprove what is declared, at :data:`SURE`.
    about : str
        On what tables, and how.
    gaussian : bool
        Whether the declared curve is Gaussian, so that the bound by a Gaussian curve is one of epsilon.
    level : float
    seconds : float
    attained : float or None
        How far the record moves the release, over the bound that is declared, where it is known.
    power : bool
        Whether so many trials would contradict half of the noise, nine times in ten.
    own_noise : bool
        Whether the release had the noise that the run gives it; what is declared is of what was audited.
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
        """Epsilon of the Gaussian curve that it found; None where none is declared."""
        return self.middle.gaussian_epsilon(self.declared["delta"], self.level) if self.gaussian else None

    @property
    def lower(self) -> float:
        """Largest lower bound of epsilon among those that apply."""
        found = [self.epsilon.lower, self.guessed]
        return max(found + ([] if self.gaussian_epsilon is None else [self.gaussian_epsilon.lower]))

    @property
    def verdict(self) -> Verdict:
        """What the trials say."""
        if self.contradicted:
            return "contradicted"
        if self.power and self.tv.lower >= AWAKE * self.expected_tv >= LEAST * AWAKE:
            return "pass"
        # the other end of the interval: a correct mechanism is as seldom below it as above the lower one
        return "asleep" if self.tv.upper < self.reachable_tv else "too few trials"

    @property
    def failed(self) -> bool:
        """Whether the pass mark was missed."""
        return self.verdict in ("contradicted", "asleep")

    def attempts(self) -> tuple[Attempt, ...]:
        """The same for a report: what was found beside what is proved."""
        trials = self.middle.with_record + self.middle.without
        about = f"{self.about}; {trials:,} trials"
        failed = MEANING[self.verdict] if self.failed else ""
        shown = self.reachable_tv > 0.9 * self.declared["tv"]
        of_tv = (
            "more trials" if shown else "other tables: on these the release shows no more of what is declared"
        )
        of_law = "more trials: what the bound is about shows far out in the tails"
        name = self.name if self.own_noise else f"{self.name}, at other noise"
        nobody = Estimate(0.0, 0.0, 0.0)
        sure = replace(self, level=SURE)  # a report calls a proof wrong by these intervals
        found: list[tuple[str, Any, Estimate, float, str]] = [
            ("audit", "tv", sure.tv, self.declared["tv"], of_tv),
            ("audit", "epsilon", sure.epsilon, self.declared["epsilon"], of_law),
        ]
        if sure.gaussian_epsilon is not None:
            found.append(
                (
                    "audit, by a Gaussian curve",
                    "epsilon",
                    sure.gaussian_epsilon,
                    self.declared["epsilon"],
                    of_tv,
                )
            )
        return tuple(
            Attempt(
                f"{attack}: {name}",
                measure,
                estimate,
                proved=proved,
                control=nobody,
                about=about,
                closer=failed or closer,
                level=SURE,
                internal=False,
            )
            for attack, measure, estimate, proved, closer in found
        )

    def to_record(self) -> dict[str, Any]:
        """Return what :meth:`from_record` reads."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Audited:
        """Return the audit that :meth:`to_record` wrote down."""
        errors = {name: Errors(**record[name]) for name in ("middle", "far")}
        return cls(**{**record, **errors})

    def to_dict(self) -> dict[str, Any]:
        """Return plain data to be read; infinite numbers as None."""

        def plain(value: float) -> float | None:
            return value if math.isfinite(value) else None

        def ends(estimate: Estimate | None) -> dict[str, float | None] | None:
            if estimate is None:
                return None
            return {"value": plain(estimate.value), "lower": plain(estimate.lower)}

        return {
            "release": self.name,
            "lower": plain(self.lower),
            "declared": {name: plain(number) for name, number in self.declared.items()},
            "tv": ends(self.tv),
            "epsilon": ends(self.epsilon),
            "gaussian_epsilon": ends(self.gaussian_epsilon),
            "epsilon_by_guesses": self.guessed,
            "expected_tv": self.expected_tv,
            "attained": self.attained,
            "trials": self.middle.with_record + self.middle.without,
            "level": self.level,
            "verdict": self.verdict,
            "about": self.about,
            "seconds": self.seconds,
        }
