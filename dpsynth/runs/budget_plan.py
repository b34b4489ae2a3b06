"""Plan a fit before privacy budget is used: its noise, and what simulated tables lose.

Everything follows from the schema, the number of records, (epsilon, delta) and the pre-specified regressions.
They are public if the schema is reviewed. If it is not, the plan is confidential. No data file is opened.
Noise is exact. AUC loss and interval widths come from fits of simulated tables
(`dpsynth.runs.simulated_tables`), and real tables may differ from these.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from dpsynth.accounting.profile import Profile
from dpsynth.checks import few, together
from dpsynth.errors import CONFIDENTIAL, InputError, PrivacyError
from dpsynth.progress import shown, simulation_bar
from dpsynth.releases.tables import OUTCOME_SHARE
from dpsynth.report.formats import plain
from dpsynth.report.verdicts.utility import USEFUL_WITHIN
from dpsynth.runs.plan_simulation import MOST_SIMULATED, simulated_fits
from dpsynth.studies.study import Study
from dpsynth.synthesis import default_rules
from dpsynth.synthesis.budget import STEPS, Releases, divided
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.planning import Blueprint, choose_noise, draw_up, total_delta
from dpsynth.synthesis.studies import check_studies, check_widening
from dpsynth.table.marginals import default_cells
from dpsynth.table.schema import Schema, require_reviewed

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent
    from matplotlib.figure import Figure

#: epsilons that every plan compares
EPSILONS = (0.5, 1.0, 3.0, 10.0)
#: a group survives if its count has at most this relative error, in this share of repeats
RELATIVE_ERROR, CERTAINTY = 0.3, 0.95
#: fewest records of a plan
FEWEST = 30
#: largest group, as a part of the records, that may be lost, and how wide intervals may become
_LARGEST_LOST, _WIDEST = 0.1, 2.0
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
class Spread:
    """A number over simulated tables: mean, smallest and largest."""

    mean: float
    smallest: float
    largest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of at least one value."""
        return cls(float(np.mean(values)), float(min(values)), float(max(values)))


@dataclass(frozen=True)
class Forecast:
    """Expected results at one epsilon.

    ``noise_std``: of a single-column count, in records. None without such counts.
    ``smallest_group``: fewest records in a value of one column whose count survives the noise.
    ``smallest_pair``: the same in a cell of the outcome and one column. None if there are no such tables.
    ``attack_accuracy``: largest share of right guesses about membership, from even odds.
    ``real_auc``, ``auc_loss``: over simulated tables. None without an outcome. Loss is real minus synthetic.
    ``widening``: width of each regression's intervals over their width without noise.
    ``refused``: why a fit would be refused. Empty if it would not.
    """

    epsilon: float
    noise_std: float | None = None
    smallest_group: int | None = None
    smallest_pair: int | None = None
    attack_accuracy: float | None = None
    real_auc: Spread | None = None
    auc_loss: Spread | None = None
    widening: dict[str, Spread] = dataclasses.field(default_factory=dict)
    refused: str = ""


@dataclass(frozen=True)
class Advice:
    """A column to drop or coarsen, and why."""

    column: str
    action: str
    why: str


@dataclass(frozen=True)
class BudgetPlan:
    """Forecast of a fit from public numbers alone, made by `plan`.

    Attributes
    ----------
    records, columns : int
        Size of the table to fit.
    epsilon, delta : float
        The budget that ``statistics`` and ``advice`` are for.
    statistics : tuple of PlannedStatistic
        Noisy statistics, in the order of a fit.
    forecasts : tuple of Forecast
        One for each of :data:`EPSILONS` and the plan's own epsilon, ascending.
    advice : tuple of Advice
        Columns whose values have too few records for the noise.
    tables, simulated_records : int
        Simulated tables at each epsilon, and their records. If they have fewer records than the table, their
        noise is reduced in proportion.
    auc : float or None
        Declared AUC of the true risk. None: from 0.66 to 0.9 over the tables.
    unreviewed : tuple of str
        Columns with fields that were read off the records. If there are any, the plan is confidential.
    """

    records: int
    columns: int
    epsilon: float
    delta: float
    statistics: tuple[PlannedStatistic, ...]
    forecasts: tuple[Forecast, ...]
    advice: tuple[Advice, ...]
    tables: int
    simulated_records: int
    auc: float | None = None
    unreviewed: tuple[str, ...] = ()

    @property
    def confidential(self) -> str:
        """Why the plan must not be shared, in one sentence. Empty if it may be."""
        if not self.unreviewed:
            return ""
        return (
            f"{CONFIDENTIAL.capitalize()}: do not share this plan. Fields of the schema were read off the "
            f"records, and nobody reviewed them ({few(self.unreviewed)}). The plan repeats numbers of them, "
            "such as how many categories a column has."
        )

    @property
    def forecast(self) -> Forecast:
        """The forecast at the plan's own epsilon."""
        return next(each for each in self.forecasts if each.epsilon == self.epsilon)

    @property
    def large_enough(self) -> str:
        """Whether the table is large enough, in one sentence."""
        at, n = self.forecast, self.records
        given = f"{n:,} records at epsilon {plain(at.epsilon)}"
        if at.refused:
            return f"No: a fit of {given} would be refused, for the reason below."
        lacking = _lacking(at, n)
        group = (
            "" if at.smallest_group is None else f"groups of {at.smallest_group:,} or more records survive"
        )
        loss = "" if at.auc_loss is None else f"the expected AUC loss is {at.auc_loss.mean:.2f}"
        facts = " and ".join(fact for fact in (loss, group) if fact)
        partly = at.auc_loss is not None and "AUC" not in lacking and (at.smallest_group or 0) < n / 2
        verdict = "Yes" if not lacking else "Partly" if partly else "No"
        return f"{verdict}: with {given}, {facts}."

    @property
    def which_epsilon(self) -> str:
        """The smallest epsilon that is enough, in one sentence."""
        tried = together([plain(each.epsilon) for each in self.forecasts])
        enough = [each for each in self.forecasts if not each.refused and not _lacking(each, self.records)]
        if not enough:
            return f"None of {tried} is enough: use more records or fewer columns."
        return f"{plain(enough[0].epsilon)} is the smallest of {tried} that is enough."

    @property
    def _enough(self) -> list[str]:
        lines = [f"Enough means: groups of {100 * _LARGEST_LOST:.0f} % of the records survive."]
        if any(each.auc_loss is not None for each in self.forecasts):
            lines.append(
                f"The AUC of real records is at least {0.5 + USEFUL_WITHIN:g}. The loss is at most "
                f"{USEFUL_WITHIN:g} and at most half of the AUC above 0.5."
            )
        if self._studies:
            lines.append(f"Intervals are at most {_WIDEST:g} times as wide as without noise.")
        return lines

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
        """Draw AUC loss and smallest group against epsilon."""
        from dpsynth.report.drawing.budget import draw_plan

        known = [each for each in self.forecasts if not each.refused]
        losses = [
            (each.epsilon, each.auc_loss.mean, each.auc_loss.smallest, each.auc_loss.largest)
            for each in known
            if each.auc_loss is not None
        ]
        groups = [(each.epsilon, each.smallest_group) for each in known if each.smallest_group is not None]
        figure = draw_plan(losses, groups, records=self.records, tables=self.tables, limit=USEFUL_WITHIN)
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
            f"At each epsilon (of {self.tables} simulated tables: mean, and smallest to largest):",
            *_aligned([self._heads, *map(self._row, self.forecasts)]),
            *(
                f"A fit at epsilon {plain(f.epsilon)} would be refused: {f.refused}."
                for f in self.forecasts
                if f.refused
            ),
        ]
        if self.advice:
            lines += ["", "Columns to drop or coarsen:"]
            lines += [f"- {each.column}: {each.action}. {each.why}" for each in self.advice[:_MOST_ADVICE]]
            more = len(self.advice) - _MOST_ADVICE
            lines += [f"- and {more} more: the table is small for this budget."] if more > 0 else []
        return "\n".join([*lines, "", *_scope(self)])

    @property
    def _studies(self) -> list[str]:
        return list(dict.fromkeys(name for each in self.forecasts for name in each.widening))

    @property
    def _heads(self) -> tuple[str, ...]:
        studies = [f"width {name}" for name in self._studies]
        return ("epsilon", "guesses right", "noise", "smallest group", "with outcome", "AUC loss", *studies)

    def _row(self, at: Forecast) -> tuple[str, ...]:
        def whole(value: float | None) -> str:
            return "-" if value is None else f"{value:,.0f}"

        guess = "-" if at.attack_accuracy is None else f"{100 * at.attack_accuracy:.0f} %"
        widths = [_spread(at.widening.get(name), 1) for name in self._studies]
        noise = "-" if at.noise_std is None else f"{at.noise_std:,.1f}"
        groups = (whole(at.smallest_group), whole(at.smallest_pair))
        return (plain(at.epsilon), guess, noise, *groups, _spread(at.auc_loss, 3), *widths)


def plan(
    schema: Schema,
    n: int | None = None,
    *,
    epsilon: float = 3.0,
    delta: float | None = None,
    studies: Sequence[Study | str | dict[str, Any]] = (),
    auc: float | None = None,
    tables: int = 5,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> BudgetPlan:
    """Plan a fit from public numbers: noise, smallest group, AUC loss and interval widths.

    No data file is opened and no privacy budget is used. AUC loss and interval widths are estimates from
    simulated tables of the schema's shape. They are drawn with fixed seeds: a plan is the same each time.

    Parameters
    ----------
    schema : Schema
        Reviewed public description of the table. With ``accept_unreviewed=True`` it may be a draft. The plan
        is then confidential.
    n : int, optional
        Number of records that will be fitted, at least 30. By default it is the schema's ``n_public``. If the
        table is split, give the number of the training part.
    epsilon, delta, studies, **options
        Arguments of :class:`dpsynth.DPWGANGP` for the fit.
    auc : float, optional
        AUC of the best model of the outcome, in (0.5, 1), if it is known from the literature. Without it,
        simulated tables go from weak (0.66) to strong dependence (0.9). Models of few records reach less.
    tables : int
        Simulated tables at each epsilon.
    progress : callable, optional
        Called with the number of fits done and of all fits.

    Returns
    -------
    BudgetPlan

    Raises
    ------
    InputError
        If a number is out of range, or a study or an option is wrong.
    PrivacyError
        If the schema has unreviewed fields.

    Examples
    --------
    >>> from dpsynth import Column
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=18, upper=90),
    ...                          Column(name="died", kind="binary", categories=("no", "yes"))))
    >>> found = plan(schema, 1000, epsilon=1.0)
    >>> [(each.epsilon, each.smallest_group) for each in found.forecasts]
    [(0.5, 149), (1.0, 79), (3.0, 29), (10.0, 11)]
    >>> found.which_epsilon
    '1 is the smallest of 0.5, 1, 3 and 10 that is enough.'
    """
    if not isinstance(schema, Schema):
        raise InputError(f"schema must be a Schema (Schema.from_yaml reads one), got {type(schema).__name__}")
    given = FitOptions.of(**{**options, "epsilon": epsilon, "delta": delta, "studies": studies})
    unreviewed = require_reviewed(schema, given.accept_unreviewed)
    n = _records(schema, n)
    # The default delta is that of the fit, which has no public number where the schema has none.
    given = FitOptions.of(
        **{**options, "epsilon": epsilon, "delta": total_delta(schema, given), "studies": studies}
    )
    schema = schema.with_n_public(n)
    check_studies(given.studies, schema)
    if auc is not None and not 0.5 < auc < 1:
        raise InputError(f"auc must be greater than 0.5 and less than 1, got {auc:g}")
    if tables < 1:
        raise InputError(f"tables must be at least 1, got {tables}")
    if given.epsilon is None:
        raise InputError("epsilon is null. A fit without noise needs no plan: give a number")

    own = float(given.epsilon)
    planned = {each: _planned(schema, n, given, each) for each in sorted({*EPSILONS, own})}
    fitted = [each for each, found in planned.items() if not isinstance(found, str)]
    with shown(progress, simulation_bar) as draw:
        simulated = simulated_fits(schema, n, given, fitted, auc, tables, draw)
    forecasts = [_forecast(each, found, simulated.get(each, [])) for each, found in planned.items()]
    at = planned[own]
    return BudgetPlan(
        n,
        len(schema.modelled),
        own,
        total_delta(schema, given),
        () if isinstance(at, str) else tuple(_statistics(*at)),
        tuple(forecasts),
        () if isinstance(at, str) else tuple(_advice(schema.modelled, n, *at)),
        tables,
        min(n, MOST_SIMULATED),
        auc,
        tuple(unreviewed),
    )


def smallest_group(noise_std: float) -> int:
    """Fewest records whose noisy count has a relative error of at most 30 % in 95 of 100 repeats.

    >>> smallest_group(14.0)
    92
    """
    return max(math.ceil(float(stats.norm.ppf(0.5 + CERTAINTY / 2)) * noise_std / RELATIVE_ERROR), 1)


def _records(schema: Schema, n: int | None) -> int:
    n = schema.n_public if n is None else n
    if n is None:
        raise InputError("the schema has no n_public: give n (--records), the number of records to fit")
    if isinstance(n, bool) or not isinstance(n, int | np.integer):
        raise InputError(f"n must be a whole number of records, got {n!r}")
    if n < FEWEST:
        raise InputError(f"n must be at least {FEWEST} records, got {n}: noise would hide every count")
    return int(n)


#: a fit's blueprint and releases
_Planned = tuple[Blueprint, Releases]


def _planned(schema: Schema, n: int, options: FitOptions, epsilon: float) -> _Planned | str:
    """The releases of a fit at an epsilon, or why it would be refused."""
    options = options.model_copy(update={"epsilon": epsilon})
    blueprint = draw_up(schema.modelled, float(n), options)
    try:
        releases = choose_noise(blueprint, options, (0.0, 0.0))
        check_widening(options.studies, releases.studies, schema, float(n))
    except PrivacyError as problem:
        return str(problem)
    return blueprint, releases


def _statistics(blueprint: Blueprint, releases: Releases) -> list[PlannedStatistic]:
    """Noisy statistics in the order of a fit."""
    shares = divided(blueprint.needs, blueprint.shares)
    delta = blueprint.delta
    found = []

    def add(name: str, part: str, events: list[DpEvent], noise_std: float | None = None) -> None:
        found.append(PlannedStatistic(name, shares[part], Profile(events).epsilon(delta), noise_std))

    if releases.marginals is not None:
        add("single-column counts", "marginals", [releases.marginals.event], releases.marginals.noise_std)
    if releases.base_model is not None:
        edges, tables = releases.base_model.edges, releases.base_model.tables
        if edges.choices:
            add("choice of the base model's edges", "selection", [edges.event])
        if tables.count:
            add("base model's cross-tabulations", "tables", [tables.event], tables.noise_std)
    if releases.pairwise_statistics is not None:
        add("pairwise statistics", "pairwise_statistics", [releases.pairwise_statistics.event])
    if releases.neighbour_histogram is not None:
        histogram = releases.neighbour_histogram
        add("nearest-neighbour histogram", "neighbour_histogram", [histogram.event], histogram.noise_std)
    for study in releases.studies:
        add(f"regression {study.first.study}", "study", study.events)
    if releases.plan is not None:
        add(STEPS, STEPS, [releases.plan.event])
    # noise is solved for all together: what a statistic that is not needed leaves goes to the others
    total = sum(each.share for each in found)
    return [dataclasses.replace(each, share=each.share / total) for each in found]


def _pair_std(releases: Releases) -> float | None:
    """Noise in a cell of the outcome and one column. None if there are no such tables."""
    if releases.base_model is None or not releases.base_model.tables.with_outcome:
        return None
    return releases.base_model.tables.noise_std / math.sqrt(OUTCOME_SHARE)


def _forecast(epsilon: float, found: _Planned | str, simulated: Sequence[dict[str, Any]]) -> Forecast:
    if isinstance(found, str):
        return Forecast(epsilon, refused=found)
    releases, pair = found[1], _pair_std(found[1])
    noise = None if releases.marginals is None else releases.marginals.noise_std
    real = [each["real"] for each in simulated if "real" in each]
    names = list(dict.fromkeys(name for each in simulated for name in each["widening"]))
    return Forecast(
        epsilon,
        noise,
        None if noise is None else smallest_group(noise),
        None if pair is None else smallest_group(pair),
        Profile(releases.events).attack_accuracy(),
        Spread.of(real) if real else None,
        Spread.of([each["real"] - each["synthetic"] for each in simulated]) if real else None,
        {name: Spread.of([each["widening"][name] for each in simulated]) for name in names},
    )


def _advice(schema: Schema, n: int, blueprint: Blueprint, releases: Releases) -> list[Advice]:
    """Columns whose cells have too few records on average for the noise, those of most cells first.

    With the outcome, ordinal columns are left out: their bins are merged to what the noise allows.
    """
    if releases.marginals is None:
        return []
    noise, pair = releases.marginals.noise_std, _pair_std(releases)
    group = smallest_group(noise)
    classes = 1 if schema.outcome is None else len(schema.column(schema.outcome).categories)
    found: list[tuple[int, Advice]] = []
    for column in schema.columns:
        if column.name == schema.outcome:
            continue
        if column.is_numeric:
            most = default_cells(n, noise)
            if (column.cells or 0) > most:
                why = f"It declares {column.cells} cells, and the noise leaves {most} of them meaningful."
                found.append((column.cells or 0, Advice(column.name, f"declare at most {most} cells", why)))
            continue
        size = len(column.categories) + column.missing
        if n / size < group:
            why = (
                f"It has {size} categories, {n / size:,.0f} records each on average. A count needs {group:,}."
            )
            found.append((size, Advice(column.name, _coarsened(n // group), why)))
        elif pair is not None and not column.is_ordinal and n / (size * classes) < smallest_group(pair):
            needed = smallest_group(pair)
            why = (
                f"With the outcome it has {size * classes} cells, {n / (size * classes):,.0f} records each "
                f"on average. A count needs {needed:,}."
            )
            found.append((size, Advice(column.name, _coarsened(n // (needed * classes)), why)))
    sizes = default_rules.numbers_of(schema)
    largest = schema.columns[int(np.argmax(sizes))]
    if sum(sizes) > default_rules.MOST_NUMBERS and not blueprint.needs.pairwise_statistics:
        why = (
            f"All columns together have {sum(sizes)} categories and numbers. "
            f"Above {default_rules.MOST_NUMBERS} there are no pairwise statistics."
        )
        found.append((max(sizes), Advice(largest.name, "use fewer categories", why)))
    return [advice for _, advice in sorted(found, key=lambda each: -each[0])]


def _coarsened(most: int) -> str:
    return f"use at most {most} categories" if most >= 2 else "drop it"


def _lacking(at: Forecast, n: int) -> list[str]:
    """The results that are not good enough at an epsilon."""
    lacking = []
    if at.auc_loss is not None and at.real_auc is not None:
        learned = at.real_auc.mean - 0.5
        if learned < USEFUL_WITHIN or at.auc_loss.mean > min(USEFUL_WITHIN, learned / 2):
            lacking.append("AUC")
    if at.smallest_group is not None and at.smallest_group > _LARGEST_LOST * n:
        lacking.append("groups")
    if any(width.mean > _WIDEST for width in at.widening.values()):
        lacking.append("intervals")
    return lacking


def _statistic(each: PlannedStatistic) -> tuple[str, ...]:
    noise = "-" if each.noise_std is None else f"{each.noise_std:,.1f}"
    return (each.name, f"{100 * each.share:.0f} %", f"{each.epsilon:.2f}", noise)


def _spread(found: Spread | None, places: int) -> str:
    if found is None:
        return "-"
    mean, low, high = (f"{value:.{places}f}" for value in (found.mean, found.smallest, found.largest))
    return f"{mean} ({low} to {high})"


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
        *found._enough,
        "Guesses right: most right guesses about who is in the data, where half of the people are.",
        "Noise: standard deviation of the noise in a single-column count, in records.",
        f"Smallest group: fewest records with one value of a column whose count is within "
        f"{100 * RELATIVE_ERROR:.0f} % in {100 * CERTAINTY:.0f} of 100 repeats.",
    ]
    real = next((each.real_auc for each in found.forecasts if each.real_auc is not None), None)
    if any(each.smallest_pair is not None for each in found.forecasts):
        lines.append("With outcome: the same for records that share the outcome as well.")
    if real is not None:
        lines += [
            "AUC loss: models trained on real records minus models trained on synthetic records.",
            f"Models of the simulated real records reach an AUC of {_spread(real, 2)}.",
        ]
    if any(each.widening for each in found.forecasts):
        lines.append("Width: width of the intervals of a regression over their width without noise.")
    lines.append("AUC loss and widths are estimates from simulated tables only. Yours may lose more or less.")
    if real is not None:  # benchmarks/results/plan.md
        lines.append("In a test on seven real tables, the expected AUC loss was off by 0.03 on average.")
    if found.simulated_records < found.records:
        lines.append(
            f"Simulated tables have {found.simulated_records:,} records and noise reduced in proportion."
        )
    return lines
