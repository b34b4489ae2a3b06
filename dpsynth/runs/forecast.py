"""Plan a fit before privacy budget is used: its noise, and the smallest groups that survive it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats

from dpsynth import datasets
from dpsynth.checks import Counted, few, together
from dpsynth.datasets.table import AnyTable, PatientTable, Table
from dpsynth.errors import CONFIDENTIAL, DataError, InputError, PrivacyError
from dpsynth.evaluation.tables import Tables
from dpsynth.patients.schema import patients_of, read_schema
from dpsynth.privacy.profile import Profile, percent
from dpsynth.report.words import column_value, plain
from dpsynth.runs.config import RunConfig
from dpsynth.studies.study import Estimates
from dpsynth.synthesis import default_rules
from dpsynth.synthesis.check_inputs import check_options
from dpsynth.synthesis.fit import planned_parts, total_delta
from dpsynth.synthesis.generators import DEFAULT, options_of
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.parts.pairwise import Pairwise
from dpsynth.synthesis.parts.part import Part, Parts
from dpsynth.synthesis.study_forecast import check_studies
from dpsynth.table.drafts import check_described
from dpsynth.table.grid import default_cells
from dpsynth.table.schema import Schema, TableSchema, require_reviewed

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# ------------------------------------------------------------------------------------------------
# Errors of a run that are found before a record is read.
#
# The real table of a run: loaded, split in two, and put beside the synthetic one.

#: rows of a synthetic table that are kept in memory for evaluation, whatever its length
EVALUATED_ROWS = 500_000


def load_table(config: RunConfig) -> Table | PatientTable:
    """Load the table that a configuration names."""
    if config.data is not None:
        data = config.data
        schema, file = read_schema(data.schema_path), data.schema_path
        return datasets.open_table(data.path, schema, schema_file=file)
    return datasets.load(str(config.dataset))


def split_table(config: RunConfig, table: AnyTable) -> tuple[AnyTable, AnyTable]:
    """Split a table into its training and test part, as a configuration says, the same way every time."""
    split = datasets.train_test if config.split.method == "stratified" else datasets.independent_split
    return split(table, config.split.test_fraction, config.split.seed)


def compared(
    sampled: pd.DataFrame,
    train: Table | PatientTable,
    test: Table | PatientTable,
    declared: tuple[Estimates, ...] = (),
) -> Tables:
    """Conform a synthetic table and both parts of the real one. ``declared`` are private estimates.

    The first records of a large synthetic table are used, of patients those with all their rows.
    """
    first = train.schema.head(sampled, EVALUATED_ROWS)
    return Tables.of(first, train=train.frame, test=test.frame, schema=train.schema, declared=declared)


def check_run(config: RunConfig) -> TableSchema:
    """Check a run's schema, studies and evaluation's settings, and that its table is there.

    Returns the schema of the whole table. Raises InputError, whose message starts with the key in the
    configuration, and PrivacyError if the schema holds fields read off the records that nobody accepted.

    Examples
    --------
    >>> evaluate = {"constraints": ["age > 18"]}
    >>> wrong = {"dataset": "breast_cancer", "model": {"epsilon": 3}, "evaluate": evaluate}
    >>> check_run(RunConfig.from_dict(wrong))
    Traceback (most recent call last):
    dpsynth.errors.InputError: evaluate: constraint 'age > 18': 'age' is not a column (columns: ...
    """
    if config.data is None:
        schema: TableSchema = datasets.card(str(config.dataset)).table
    else:
        schema = read_schema(Path(config.data.schema_path))
    try:
        check_studies(config.studies, schema)
    except InputError as problem:
        raise InputError(f"studies: {problem}") from None
    if config.evaluate.enabled:
        try:
            config.evaluate.check(schema.levels)
        except InputError as problem:
            raise InputError(f"evaluate: {problem}") from None
    require_reviewed(schema, config.accept_unreviewed)
    if config.data is not None and not (path := Path(config.data.path)).is_file():
        if not path.is_dir():
            raise DataError(f"{path}: there is no such file")
        if not schema.several:  # whose rows may come from several files
            raise DataError(f"{path} is a folder. Name a CSV or Parquet file")
    return schema


# ------------------------------------------------------------------------------------------------
# The record of a plan: its forecasts, the verdict that follows from them, and the text that is printed.

#: a group survives if its count has at most this relative error, in this share of repeats
RELATIVE_ERROR, CERTAINTY = 0.3, 0.95
#: largest group, as a part of the records, that may be lost, and how wide intervals may become
_LARGEST_LOST, WIDEST = 0.1, 2.0
#: columns that are printed with advice
_MOST_ADVICE = 8
#: columns that are printed with the noise in their means
_MOST_MEANS = 30


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
    ``means``: of each column of numbers, about the standard deviation that the noise adds to its mean, as if
    no estimate corrected the counts. On four public tables, at epsilon 1 or 3, root mean squared errors of
    synthetic means were 0.11 to 1.08 times as large, 0.48 at the median of 34 columns.
    ``attack_accuracy``: largest share of right guesses about membership, from even odds.
    ``widening``: expected width of each regression's intervals over their width without noise.
    ``subgroups``: of each regression in a subgroup, the fewest records that keep the width below twice that.
    ``refused``: why a fit would be refused. Empty if it would not.
    """

    epsilon: float
    noise_std: float | None = None
    smallest_group: int | None = None
    smallest_pair: int | None = None
    means: dict[str, float] = dataclasses.field(default_factory=dict)
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
        The meaning of ``records``. Patients have several rows, if the schema says so.
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
    counted: Counted = Counted.RECORDS

    @property
    def confidential(self) -> str:
        """Why the plan must not be shared, in a few sentences. Empty if it may be."""
        if self.unreviewed:
            why = f"Fields of the schema were read off the {self.counted}, and nobody reviewed them"
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
            group = f", groups of {at.smallest_group:,} or more {self.counted} survive"
        return f"{'Yes' if _enough(at, n) else 'No'}: with {given}{group}."

    @property
    def which_epsilon(self) -> str:
        """The smallest epsilon that is enough, in one sentence."""
        tried = together([plain(each.epsilon) for each in self.forecasts])
        enough = [each for each in self.forecasts if _enough(each, self.records)]
        if not enough:
            return f"None of {tried} is enough: use more {self.counted} or fewer columns."
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
        from dpsynth.report.plots import draw_groups

        groups = [(each.epsilon, each.smallest_group) for each in self.forecasts if each.smallest_group]
        figure = draw_groups(groups, of=f"{self.records:,} {self.counted}")
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
            f"{self.records:,} {self.counted} (taken as public), {self.columns} columns:",
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
        if self._means:
            heads = tuple(f"at {plain(each.epsilon)}" for each in self.forecasts)
            lines += ["", "Noise in means:", *_aligned([("column", *heads), *self._means[:_MOST_MEANS]])]
            more = len(self._means) - _MOST_MEANS
            lines += [f"and {more} more columns"] if more > 0 else []
        if self.cautions:
            lines += ["", *self.cautions]
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
    def _subgroups(self) -> list[str]:
        return list(dict.fromkeys(name for each in self.forecasts for name in each.subgroups))

    @property
    def _means(self) -> list[tuple[str, ...]]:
        names = dict.fromkeys(name for each in self.forecasts for name in each.means)
        return [
            (name, *(column_value(each.means.get(name)) or "-" for each in self.forecasts)) for name in names
        ]

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
        return (plain(at.epsilon), guess, _noise_line(at.noise_std), *groups, *widths)


def _enough(at: Forecast, n: int) -> bool:
    """Whether groups of a tenth of the records survive and intervals stay narrow enough."""
    lost = at.smallest_group is not None and at.smallest_group > _LARGEST_LOST * n
    return not (at.refused or lost or any(width > WIDEST for width in at.widening.values()))


def _statistic(each: PlannedStatistic) -> tuple[str, ...]:
    return (each.name, f"{100 * each.share:.0f} %", f"{each.epsilon:.2f}", _noise_line(each.noise_std))


def _noise_line(std: float | None) -> str:
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
        f"Enough means: groups of {100 * _LARGEST_LOST:.0f} % of the {found.counted} survive.",
        "Guesses right: most right guesses about who is in the data, where half of the people are.",
        f"Noise: standard deviation of the noise in a single-column count, in {found.counted}.",
        f"Smallest group: fewest {found.counted} with one value of a column whose count is within "
        f"{100 * RELATIVE_ERROR:.0f} % in {100 * CERTAINTY:.0f} of 100 repeats.",
    ]
    if any(each.smallest_pair is not None for each in found.forecasts):
        lines.append(f"Smallest pair: the same for {found.counted} that share the values of two columns.")
    if any(each.means for each in found.forecasts):
        lines.append(
            "Noise in means: about the standard deviation that noise adds to the mean of a column, in its "
            "unit. Most fits come nearer, as they correct impossible counts. Narrow bounds lower it."
        )
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


# ------------------------------------------------------------------------------------------------
# Plan a fit before privacy budget is used: its noise, and the smallest groups that survive it.
#
# Everything follows from the schema, the number of records, (epsilon, delta) and the pre-specified
# regressions. They are public if the schema is reviewed. If it is not, the plan is confidential. No data
# file is opened. Noise and groups are exact. Interval widths are estimates
# (`dpsynth.synthesis.study_forecast.expected_widening`).

#: epsilons that every plan compares
EPSILONS = (0.5, 1.0, 3.0, 10.0)
#: fewest records of a plan
FEWEST = 30


def plan(
    schema: TableSchema,
    n: int | None = None,
    *,
    generator: str = DEFAULT,
    epsilon: float = 3.0,
    delta: float | None = None,
    also: Sequence[Part[Any]] = (),
    **options: Any,
) -> BudgetPlan:
    """Plan a fit from public numbers: noise, smallest groups and interval widths.

    No data file is opened and no privacy budget is used. Raises InputError if a number is out of range, or a
    part or an option is wrong, PrivacyError if the schema has unreviewed fields.

    Parameters
    ----------
    schema : TableSchema
        Reviewed public description of the table. With ``accept_unreviewed=True`` it may be a draft. The plan
        is then confidential.
    n : int, optional
        Number of records, or of patients with several rows, that will be fitted, at least 30. By default it
        is the schema's ``n_public``. If the table is split, give the number of the training part.
    generator : {"marginals", "wgan-gp", "matching"}
        Generator of the fit.
    epsilon, delta, **options
        Arguments of its estimator.
    also : sequence of Part
        Further statistics of the fit, such as :class:`dpsynth.Studies`.

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
    check_described(schema)
    given = options_of(generator, **options, epsilon=epsilon, delta=delta)
    unreviewed = require_reviewed(schema, given.accept_unreviewed)
    n = _records(schema, n)
    # The default delta is that of the fit, which has no public number where the schema has none.
    given = given.model_copy(update={"delta": total_delta(schema.levels, given)})
    schema = schema.with_n_public(n)
    check_options(schema, given, also)
    levels = schema.levels
    if given.epsilon is None:
        raise InputError("epsilon is null. A fit without noise needs no plan: give a number")

    own = float(given.epsilon)
    planned = {each: _planned(schema, n, given, each, also) for each in sorted({*EPSILONS, own})}
    at = planned[own]
    parts = [part.at(schema, float(n)) for part in also] if isinstance(at, str) else at
    return BudgetPlan(
        n,
        len(levels.modelled) if levels is schema else len(schema),
        own,
        total_delta(schema.levels, given),
        () if isinstance(at, str) else tuple(_statistics(at)),
        tuple(_forecast(each, found) for each, found in planned.items()),
        () if isinstance(at, str) else tuple(_of_columns(_advice(levels.ungrouped.modelled, n, at), schema)),
        tuple(unreviewed),
        schema.unconfirmed,
        tuple(_capital(line) for part in parts for line in part.cautions),
        schema.counted,
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def smallest_group(noise_std: float) -> int:
    """Fewest records whose noisy count has a relative error of at most 30 % in 95 of 100 repeats.

    >>> smallest_group(14.0)
    92
    """
    return max(math.ceil(float(stats.norm.ppf(0.5 + CERTAINTY / 2)) * noise_std / RELATIVE_ERROR), 1)


def _records(schema: TableSchema, n: int | None) -> int:
    n = schema.n_public if n is None else n
    if n is None:
        raise InputError("the schema has no n_public: give n (--records), the number of records to fit")
    if isinstance(n, bool) or not isinstance(n, int | np.integer):
        raise InputError(f"n must be a whole number of records, got {n!r}")
    if n < FEWEST:
        raise InputError(f"n must be at least {FEWEST} records, got {n}: noise would hide every count")
    return int(n)


def _planned(
    schema: TableSchema, n: int, options: FitOptions, epsilon: float, also: Sequence[Part[Any]]
) -> Parts | str:
    """The parts of a fit at an epsilon, or why it would be refused."""
    try:
        options = options.model_copy(update={"epsilon": epsilon})
        parts = planned_parts(schema, float(n), options, also=also)
        parts.check()
    except PrivacyError as problem:
        return str(problem)
    return parts


def _statistics(parts: Parts) -> list[PlannedStatistic]:
    """Noisy statistics in the order of a fit."""
    shares = parts.shares
    found = [
        PlannedStatistic(
            each.name,
            shares[type(part)] * each.share,
            Profile(each.events).epsilon(parts.delta),
            each.noise_std,
        )
        for part in parts
        for each in part.statistics
    ]
    # noise is solved for all together: what a statistic that is not needed leaves goes to the others
    total = sum(each.share for each in found)
    return [dataclasses.replace(each, share=each.share / total) for each in found]


def _noise(parts: Parts, of: str) -> float | None:
    """Least noise in the counts of one column, or of pairs, None if there are none."""
    found = [getattr(each, of) for part in parts for each in part.statistics]
    return min((std for std in found if std is not None), default=None)


def _forecast(epsilon: float, parts: Parts | str) -> Forecast:
    if isinstance(parts, str):
        return Forecast(epsilon, refused=parts)
    noise, pair = _noise(parts, "column_std"), _noise(parts, "pair_std")
    regressions = [each for part in parts for each in part.statistics if each.widening is not None]
    return Forecast(
        epsilon,
        noise,
        None if noise is None else smallest_group(noise),
        None if pair is None else smallest_group(pair),
        {name: std for part in parts for each in part.statistics for name, std in each.means.items()},
        Profile(parts.events).attack_accuracy(),
        # the size of a subgroup is not public
        {each.of: each.widening for each in regressions if each.widening and each.subgroups is None},
        {each.of: each.subgroups[0] for each in regressions if each.subgroups is not None},
    )


def _advice(schema: Schema, n: int, parts: Parts) -> list[Advice]:
    """Columns whose cells have too few records on average for the noise, those of most cells first.

    With the outcome, ordinal columns are left out: their bins are merged to what the noise allows.
    """
    noise, pair = _noise(parts, "column_std"), _noise(parts, "outcome_std")
    if noise is None:
        return []
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
                f"It has {len(column.categories)} categories{' and missing values' * column.missing}, "
                f"{n / size:,.0f} {schema.counted} each on average. A count needs {group:,}."
            )
            found.append((size, Advice(column.name, _coarsened(n // group - column.missing), why)))
        elif pair is not None and not column.is_ordinal and n / (size * classes) < smallest_group(pair):
            needed = smallest_group(pair)
            why = (
                f"With the outcome it has {size * classes} cells, {n / (size * classes):,.0f} "
                f"{schema.counted} each on average. A count needs {needed:,}."
            )
            found.append(
                (size, Advice(column.name, _coarsened(n // (needed * classes) - column.missing), why))
            )
    sizes = default_rules.numbers_per_column(schema)
    largest = schema.columns[int(np.argmax(sizes))]
    products = default_rules.products_of_pairs(schema)
    if products > default_rules.MOST_PRODUCTS and parts.of(Pairwise) is None:
        why = (
            f"Two columns' categories and numbers have {products:,} products in all. "
            f"Above {default_rules.MOST_PRODUCTS:,} there are no pairwise statistics."
        )
        found.append((max(sizes), Advice(largest.name, "use fewer categories", why)))
    return [advice for _, advice in sorted(found, key=lambda each: -each[0])]


def _of_columns(advice: Sequence[Advice], schema: TableSchema) -> Iterator[Advice]:
    """Advice about columns: that about a level of patients if it has its column's categories."""
    patients = patients_of(schema)
    courses = () if patients is None else patients.courses
    source = {level.name: course.source(level) for course in courses for level in course.levels}
    for each in advice:
        if (name := source.get(each.column)) is None:
            yield each
        elif schema.table.column(name).categories == schema.levels.column(each.column).categories:
            yield dataclasses.replace(each, column=name)


def _coarsened(most: int) -> str:
    return f"use at most {most} categories" if most >= 2 else "drop it"
