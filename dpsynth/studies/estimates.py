"""Private estimates of a pre-specified regression: coefficients with their covariance.

All numbers here are functions of private releases and public values, and may be shared. The covariance
includes the sampling of the records *and* the noise for privacy. An interval is about the population.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from dpsynth.checks import inside
from dpsynth.files.codec import record
from dpsynth.studies.digits import aligned, effect_texts, p_text
from dpsynth.studies.life_table import SurvivalCurve

Floats = NDArray[np.float64]

#: names of the coefficients of each kind, on the scale that studies report
MEASURES: dict[str, str] = {
    "logistic": "odds ratio",
    "linear": "difference",
    "cox": "hazard ratio",
    "share": "share",
    "mean": "mean",
}
#: kind of the estimate of a regression without predictors, by the regression's kind
ALONE: dict[str, str] = {"logistic": "share", "linear": "mean"}


class Effect(TypedDict):
    """One term: its effect on the scale of `Estimates.measure`, with an interval.

    A share or a mean has no p-value.
    """

    term: str
    estimate: float
    lower: float
    upper: float
    p_value: float | None


@record
@dataclass(frozen=True, eq=False)
class Estimates:
    """The private estimates of one pre-specified regression.

    Attributes
    ----------
    formula : str
        The regression as text.
    terms : tuple of str
        Names of the p coefficients, without the intercept. Without predictors, the outcome.
    coefficients, covariance : ndarray of shape (p,), (p, p)
        On the additive scale: log odds, log hazard, or the outcome's unit.
    widening : float
        Width of the intervals over their width without noise: the median over the terms.
    survival : SurvivalCurve, optional
        Survival of all records of a survival study, whatever their predictors.
    remarks : tuple of str
        Cautions for a reader of the intervals.

    Examples
    --------
    >>> found = Estimates("mortality", "logistic", "logistic: died ~ age", "died", ("age (per 10 years)",),
    ...                   np.array([0.5]), np.array([[0.01]]), 1.2)
    >>> print(found)
    mortality: logistic: died ~ age
    term                odds ratio  95 % interval     p
    age (per 10 years)        1.65  1.36 to 2.01  <.001
    Intervals include sampling error and privacy noise: 1.2 times as wide as without noise.
    """

    study: str
    kind: str
    formula: str
    outcome: str
    terms: tuple[str, ...]
    coefficients: Floats
    covariance: Floats
    widening: float
    survival: SurvivalCurve | None = None
    remarks: tuple[str, ...] = ()

    @property
    def measure(self) -> str:
        """Kind of effect: odds ratio, difference or hazard ratio. Share or mean without predictors."""
        return MEASURES[self.kind]

    @property
    def no_effect(self) -> float | None:
        """Value of no effect on the scale of :attr:`measure`. None for a share or a mean."""
        return None if self.kind in ALONE.values() else self._shown(0.0)

    @property
    def std_errors(self) -> Floats:
        """Standard errors on the additive scale, shape (p,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def widened(self) -> str:
        """Cost of the noise, in words, never less than 1."""
        return f"{max(1.0, self.widening):.1f} times as wide as without noise"

    def effects(self, level: float = 0.95) -> list[Effect]:
        """Every term's effect with a normal interval, on the scale of :attr:`measure`.

        Raises
        ------
        InputError
            If ``level`` is not in (0, 1).
        """
        from scipy import stats

        half = float(stats.norm.ppf(0.5 + inside("level", level, 0.0, 1.0) / 2))
        rows: list[Effect] = []
        for term, value, error in zip(self.terms, self.coefficients, self.std_errors, strict=True):
            values = (value, value - half * error, value + half * error)
            estimate, lower, upper = (self._shown(float(v)) for v in values)
            p = None if self.no_effect is None else 2.0 * float(stats.norm.sf(abs(value) / error))
            rows.append({"term": term, "estimate": estimate, "lower": lower, "upper": upper, "p_value": p})
        return rows

    def _shown(self, value: float) -> float:
        if self.kind in {"linear", "mean"}:
            return value
        # beyond exp(700) there is no float
        ratio = math.exp(min(max(value, -700.0), 700.0))
        return ratio / (1.0 + ratio) if self.kind == "share" else ratio

    def __str__(self) -> str:
        rows = [("term", self.measure, "95 % interval", "p")]
        for row in self.effects():
            estimate, lower, upper = effect_texts(row)
            rows.append((row["term"], estimate, f"{lower} to {upper}", p_text(row["p_value"])))
        lines = [f"{self.study}: {self.formula}", *aligned(rows, "<><>")]
        lines += [f"Intervals include sampling error and privacy noise: {self.widened}.", *self.remarks]
        return "\n".join(lines if self.survival is None else [*lines, str(self.survival)])
