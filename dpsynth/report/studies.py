"""What is said of declared studies: their private estimates as rows of a table, and how to quote them.

A regression is declared before the fit, part of the budget buys its score, and the released estimates come
with intervals that hold both errors; page and Markdown say it in the same words.
"""

from __future__ import annotations

from dpsynth.report.formats import level_text, p_value
from dpsynth.report.run_report import RunReport
from dpsynth.studies.digits import effect_texts
from dpsynth.studies.estimates import Estimates
from dpsynth.studies.life_table import SurvivalCurve

#: of every interval here
LEVEL = 0.95
#: how an analyst uses these numbers, and which others not to use
GUIDE = (
    "These intervals hold both the sampling of the records and the noise that was added for privacy: they "
    "can be quoted as those of a published study are, with what is remarked on them.",
    "The same regression fitted to the synthetic table itself (a naive analysis) gives intervals that are "
    "too short, since it takes synthetic records for observed ones.",
    "For an analysis of your own, draw several tables with sample_many(m, study=...), analyse each, and put "
    "their estimates together with dpsynth.combine.",
)
#: what stands beside an estimate that may be shared
PAID = "paid for"


def guidance(report: RunReport) -> tuple[str, ...]:
    """Return what a reader of the estimates must know, a sentence each.

    Where they may not be shared it is that, and nothing about quoting them; where the guarantee leaves
    something out, that comes last.
    """
    if report.withheld:
        return (report.withheld,)
    if report.guarantee is not None and report.guarantee.excluded:
        left_out = "; ".join(report.guarantee.excluded)
        return (*GUIDE, f"The guarantee leaves something out, for these estimates as well: {left_out}.")
    return GUIDE


def described(estimates: Estimates) -> str:
    """What was fitted, what its noise costs, and what else a reader of the intervals should know.

    Examples
    --------
    >>> import numpy as np
    >>> told = Estimates("m", "linear", "linear: sbp ~ age", "sbp", ("age",), np.ones(1), np.eye(1), 1.25)
    >>> described(told)
    'Declared before the fit as linear: sbp ~ age; intervals are 1.2 times as wide as without noise.'
    """
    first = f"Declared before the fit as {estimates.formula}; {widened(estimates)}."
    return " ".join((first, *estimates.remarks))


def surviving(curve: SurvivalCurve) -> str:
    """What a survival curve is, in one sentence.

    Examples
    --------
    >>> import numpy as np
    >>> surviving(SurvivalCurve(*np.array([[30], [0.9], [0.8], [0.95]]), unit="days"))
    'Survival by time (days), whatever the predictors; bands of 95 % at each time hold sampling and noise.'
    """
    unit = f" ({curve.unit})" if curve.unit else ""
    held = f"bands of {level_text(curve.level)} at each time hold sampling and noise"
    return f"Survival by time{unit}, whatever the predictors; {held}."


def widened(estimates: Estimates) -> str:
    """How much the noise widens the intervals, in words."""
    return f"intervals are {estimates.widened}"


def rows(estimates: Estimates) -> list[tuple[str, str, str, str]]:
    """Term, effect, interval and p-value of each term, as text.

    Examples
    --------
    >>> import numpy as np
    >>> rows(Estimates("m", "linear", "linear: sbp ~ age", "sbp", ("age",), np.ones(1), np.eye(1), 1.2))
    [('age', '1.00', '-0.96 to 2.96', '0.317')]
    """
    found = []
    for effect in estimates.effects(LEVEL):
        estimate, lower, upper = effect_texts(effect)
        found.append((effect["term"], estimate, f"{lower} to {upper}", p_value(effect["p_value"])))
    return found
