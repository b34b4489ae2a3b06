"""The record of a plan: its forecasts, the verdict that follows from them, and the text that is printed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpsynth.accounting.measures import percent
from dpsynth.checks import about_patients, few, together
from dpsynth.errors import CONFIDENTIAL
from dpsynth.report.formats import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: a group survives if its count has at most this relative error, in this share of repeats
RELATIVE_ERROR, CERTAINTY = 0.3, 0.95
#: largest group, as a part of the records, that may be lost, and how wide intervals may become
_LARGEST_LOST, WIDEST = 0.1, 2.0
#: columns that are printed with advice
_MOST_ADVICE = 8


@dataclass(frozen=True)
class PlannedStatistic:
    """One noisy statistic.

    ``share``: part of the privacy budget (of mu^2).
    ``epsilon``: of this statistic alone, at the plan's delta.
    ``noise_std``: standard deviation of the noise in each count, in records. None if it is no count.
    """

    name: str
    share: float
    epsilon: float
    noise_std: float | None = None


@dataclass(frozen=True)
class Forecast:
    """Expected results at one epsilon.

    ``noise_std``: of a single-column count, in records. None without such counts.
    ``smallest_group``: fewest records in a value of one column whose count survives the noise.
    ``smallest_pair``: the same in a cell of two columns that are counted together. These are the outcome and
    another column. Without an outcome, they are two that the base model joins. None without such tables.
    ``attack_accuracy``: largest share of right guesses about membership, from even odds.
    ``widening``: expected width of each regression's intervals over their width without noise.
    ``subgroups``: of each regression in a subgroup, the fewest records that keep the width below twice that.
    ``refused``: why a fit would be refused. Empty if it would not.
    """

    epsilon: float
    noise_std: float | None = None
    smallest_group: int | None = None
    smallest_pair: int | None = None
    attack_accuracy: float | None = None
    widening: dict[str, float] = dataclasses.field(default_factory=dict)
    subgroups: dict[str, int] = dataclasses.field(default_factory=dict)
    refused: str = ""


@dataclass(frozen=True)
class Advice:
    """A column to drop or coarsen, and why."""

    column: str
    action: str
    why: str


@dataclass(frozen=True)
class BudgetPlan:
    """Forecast of a fit from public numbers alone, made by `dpsynth.plan`.

    Attributes
    ----------
    records, columns : int
        Size of the table to fit.
    epsilon, delta : float
        The budget that ``statistics``, in the order of a fit, and ``advice`` are for.
    forecasts : tuple of Forecast
        One for each of the epsilons that every plan compares and the plan's own epsilon, ascending.
    advice : tuple of Advice
        Columns whose values have too few records for the noise.
    unreviewed : tuple of str
        Columns with fields that were read off the records. If there are any, the plan is confidential.
    unconfirmed : tuple of str
        Columns whose list of categories or codes nobody confirmed as public.
    cautions : tuple of str
        Meaning of a regression's estimates, because each record's influence is bounded.
    counted : {"records", "patients"}
        The meaning of ``records``. Patients have several rows, and ``advice`` then names their levels.
    """

    records: int
    columns: int
    epsilon: float
    delta: float
    statistics: tuple[PlannedStatistic, ...]
    forecasts: tuple[Forecast, ...]
    advice: tuple[Advice, ...]
    unreviewed: tuple[str, ...] = ()
    unconfirmed: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    counted: str = "records"

    @property
    def confidential(self) -> str:
        """Why the plan must not be shared, in a few sentences. Empty if it may be."""
        if self.unreviewed:
            why = "Fields of the schema were read off the records, and nobody reviewed them"
        elif self.unconfirmed:
            why = "Nobody confirmed that the lists of categories or codes of these columns are public"
        else:
            return ""
        return (
            f"{CONFIDENTIAL.capitalize()}: do not share this plan. {why} "
            f"({few(self.unreviewed or self.unconfirmed)}). The plan repeats numbers of them, such as how "
            "many categories a column has."
        )

    @property
    def forecast(self) -> Forecast:
        """The forecast at the plan's own epsilon."""
        return next(each for each in self.forecasts if each.epsilon == self.epsilon)

    @property
    def large_enough(self) -> str:
        """Whether the table is large enough, in one sentence."""
        at, n = self.forecast, self.records
        given = f"{n:,} {self.counted} at epsilon {plain(at.epsilon)}"
        if at.refused:
            return f"No: a fit of {given} would be refused, for the reason below."
        group = ""
        if at.smallest_group is not None:
            group = f", groups of {at.smallest_group:,} or more records survive"
        return f"{'Yes' if _enough(at, n) else 'No'}: with {given}{group}."

    @property
    def which_epsilon(self) -> str:
        """The smallest epsilon that is enough, in one sentence."""
        tried = together([plain(each.epsilon) for each in self.forecasts])
        enough = [each for each in self.forecasts if _enough(each, self.records)]
        if not enough:
            return f"None of {tried} is enough: use more records or fewer columns."
        return f"{plain(enough[0].epsilon)} is the smallest of {tried} that is enough."

    def to_dict(self) -> dict[str, Any]:
        """JSON-able record."""
        answers = {"large_enough": self.large_enough, "which_epsilon": self.which_epsilon}
        return {
            "confidential": self.confidential,
            **dataclasses.asdict(self),
            **answers,
            "scope": _scope(self),
        }

    def plot(self) -> Figure:
        """Draw the smallest group against epsilon."""
        from dpsynth.report.drawing.budget import draw_groups

        groups = [(each.epsilon, each.smallest_group) for each in self.forecasts if each.smallest_group]
        figure = draw_groups(groups, records=self.records)
        if self.confidential:
            figure.suptitle(f"{CONFIDENTIAL.capitalize()}: do not share", fontsize=9)
        return figure

    def __str__(self) -> str:
        lines = [
            *([self.confidential, ""] if self.confidential else []),
            f"Is my table large enough? {self.large_enough}",
            f"Which epsilon? {self.which_epsilon}",
            "",
            f"Noisy statistics at epsilon {plain(self.epsilon)}, delta {self.delta:.2g}, "
            f"{self.records:,} records (taken as public), {self.columns} columns:",
            *_aligned(
                [
                    ("statistic", "share", "epsilon alone", "noise per count"),
                    *map(_statistic, self.statistics),
                ]
            ),
            "",
            "At each epsilon:",
            *_aligned([self._heads, *map(self._row, self.forecasts)]),
            *(
                f"A fit at epsilon {plain(f.epsilon)} would be refused: {f.refused}."
                for f in self.forecasts
                if f.refused
            ),
        ]
        if self.cautions:
            lines += ["", *self.cautions]
        if self.advice:
            lines += ["", "Columns to drop or coarsen:"]
            lines += [f"- {each.column}: {each.action}. {each.why}" for each in self.advice[:_MOST_ADVICE]]
            more = len(self.advice) - _MOST_ADVICE
            lines += [f"- and {more} more: the table is small for this budget."] if more > 0 else []
        text = "\n".join([*lines, "", *_scope(self)])
        return about_patients(text) if self.counted == "patients" else text

    @property
    def _studies(self) -> list[str]:
        return list(dict.fromkeys(name for each in self.forecasts for name in each.widening))

    @property
    def _subgroups(self) -> list[str]:
        return list(dict.fromkeys(name for each in self.forecasts for name in each.subgroups))

    @property
    def _heads(self) -> tuple[str, ...]:
        studies = [f"width {name}" for name in self._studies]
        studies += [f"subgroup {name}" for name in self._subgroups]
        return ("epsilon", "guesses right", "noise", "smallest group", "smallest pair", *studies)

    def _row(self, at: Forecast) -> tuple[str, ...]:
        def whole(value: float | None) -> str:
            return "-" if value is None else f"{value:,.0f}"

        guess = "-" if at.attack_accuracy is None else f"{percent(at.attack_accuracy)} %"
        widths = [f"{at.widening[name]:.1f}" if name in at.widening else "-" for name in self._studies]
        widths += [whole(at.subgroups.get(name)) for name in self._subgroups]
        groups = (whole(at.smallest_group), whole(at.smallest_pair))
        return (plain(at.epsilon), guess, _noise(at.noise_std), *groups, *widths)


def _enough(at: Forecast, n: int) -> bool:
    """Whether groups of a tenth of the records survive and intervals stay narrow enough."""
    lost = at.smallest_group is not None and at.smallest_group > _LARGEST_LOST * n
    return not (at.refused or lost or any(width > WIDEST for width in at.widening.values()))


def _statistic(each: PlannedStatistic) -> tuple[str, ...]:
    return (each.name, f"{100 * each.share:.0f} %", f"{each.epsilon:.2f}", _noise(each.noise_std))


def _noise(std: float | None) -> str:
    return "-" if std is None else f"{std:,.1f}"


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows of text with columns of one width, the first to the left."""
    wide = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return [
        "  ".join(
            [
                f"{row[0]:{wide[0]}}",
                *(f"{cell:>{size}}" for cell, size in zip(row[1:], wide[1:], strict=True)),
            ]
        )
        for row in rows
    ]


def _scope(found: BudgetPlan) -> list[str]:
    """The meaning of the words and of the estimates."""
    lines = [
        f"Enough means: groups of {100 * _LARGEST_LOST:.0f} % of the records survive.",
        "Guesses right: most right guesses about who is in the data, where half of the people are.",
        "Noise: standard deviation of the noise in a single-column count, in records.",
        f"Smallest group: fewest records with one value of a column whose count is within "
        f"{100 * RELATIVE_ERROR:.0f} % in {100 * CERTAINTY:.0f} of 100 repeats.",
    ]
    if any(each.smallest_pair is not None for each in found.forecasts):
        lines.append("Smallest pair: the same for records that share the values of two columns.")
    if any(each.widening for each in found.forecasts):
        lines[0] += f" Intervals are at most {WIDEST:g} times as wide as without noise."
        lines.append(
            "Width: expected width of the intervals of a regression over their width without noise. "
            "Rare outcomes and correlated predictors increase it."
        )
    if any(each.subgroups for each in found.forecasts):
        lines.append(
            f"Subgroup: about the fewest {found.counted} in it for intervals of {WIDEST:g} times that width."
        )
    return lines
