"""What an attacker may reach, in place of epsilon."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from dpsynth.files.codec import OptionGroup
from dpsynth.privacy.calibration import AdvantageTarget, Target, TvTarget
from dpsynth.privacy.profile import Profile


class RiskLimit(OptionGroup):
    """The most that a membership attack may reach: an advantage, or hits at a rate of false alarms.

    ``advantage`` bounds the true positive rate minus the false positive rate of every attack. It is the total
    variation. ``tpr`` bounds the true positive rate of every attack whose false positive rate is ``fpr``.

    Examples
    --------
    >>> print(RiskLimit(advantage=0.2))
    an advantage of at most 0.2
    >>> print(RiskLimit(tpr=0.1, fpr=0.01))
    a true positive rate of at most 0.1 at a false positive rate of 0.01
    """

    advantage: float | None = Field(default=None, gt=0, lt=1)
    tpr: float | None = Field(default=None, gt=0, lt=1)
    fpr: float | None = Field(default=None, gt=0, lt=1)

    @model_validator(mode="after")
    def _one_bound(self) -> Self:
        if (self.advantage is None) == (self.tpr is None and self.fpr is None):
            raise ValueError("give advantage, or both tpr and fpr")
        if self.advantage is not None:
            return self
        if self.tpr is None or self.fpr is None:
            raise ValueError(
                f"{'tpr' if self.tpr is None else 'fpr'} is missing: tpr and fpr belong together"
            )
        if self.tpr <= self.fpr:
            raise ValueError(
                f"tpr must exceed fpr, {self.fpr:g}, which blind guessing reaches: got {self.tpr:g}"
            )
        return self

    @property
    def target(self) -> Target:
        """The bound, as `calibrate` takes it."""
        if self.advantage is not None:
            return TvTarget(self.advantage)
        assert self.tpr is not None and self.fpr is not None
        return AdvantageTarget(self.tpr - self.fpr, self.fpr)

    def kept(self, profile: Profile) -> bool:
        """Whether every attack on a mechanism of this privacy loss stays within the bound."""
        return self.target.cost(profile) <= self.target.goal

    def __str__(self) -> str:
        if self.advantage is not None:
            return f"an advantage of at most {self.advantage:g}"
        return f"a true positive rate of at most {self.tpr:g} at a false positive rate of {self.fpr:g}"
