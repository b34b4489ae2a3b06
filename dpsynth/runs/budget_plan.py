"""Plan a fit before privacy budget is used: its noise, and the smallest groups that survive it.

Everything follows from the schema, the number of records, (epsilon, delta) and the pre-specified regressions.
They are public if the schema is reviewed. If it is not, the plan is confidential. No data file is opened.
Noise and groups are exact. Interval widths are estimates (`dpsynth.synthesis.studies.expected_widening`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from dpsynth.accounting.profile import Profile
from dpsynth.errors import InputError, PrivacyError
from dpsynth.releases.tables import OUTCOME_SHARE
from dpsynth.runs.plan_record import (
    CERTAINTY,
    RELATIVE_ERROR,
    WIDEST,
    Advice,
    BudgetPlan,
    Forecast,
    PlannedStatistic,
)
from dpsynth.studies.study import Study
from dpsynth.synthesis import default_rules
from dpsynth.synthesis.budget import STEPS, Releases, divided
from dpsynth.synthesis.check_inputs import check_options
from dpsynth.synthesis.generators import DEFAULT, options_of
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.planning import Blueprint, choose_noise, draw_up, total_delta
from dpsynth.synthesis.studies import cautions, check_widening, expected_widening, smallest_subgroup
from dpsynth.table.marginals import default_cells
from dpsynth.table.patients import TableSchema
from dpsynth.table.schema import Schema, require_reviewed
from dpsynth.table.schema_inference import check_described

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

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
    **options: Any,
) -> BudgetPlan:
    """Plan a fit from public numbers: noise, smallest groups and interval widths.

    No data file is opened and no privacy budget is used. Raises InputError if a number is out of range, or a
    study or an option is wrong, PrivacyError if the schema has unreviewed fields.

    Parameters
    ----------
    schema : Schema or PatientSchema
        Reviewed public description of the table. With ``accept_unreviewed=True`` it may be a draft. The plan
        is then confidential.
    n : int, optional
        Number of records, or of patients with several rows, that will be fitted, at least 30. By default it
        is the schema's ``n_public``. If the table is split, give the number of the training part.
    generator : {"marginals", "wgan-gp", "matching"}
        Generator of the fit.
    epsilon, delta, **options
        Arguments of its estimator, such as ``studies``.

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
    check_options(schema, given)
    levels = schema.levels
    if given.epsilon is None:
        raise InputError("epsilon is null. A fit without noise needs no plan: give a number")

    own = float(given.epsilon)
    planned = {each: _planned(schema, n, given, each) for each in sorted({*EPSILONS, own})}
    at = planned[own]
    return BudgetPlan(
        n,
        len(levels.modelled) if levels is schema else len(schema),
        own,
        total_delta(schema.levels, given),
        () if isinstance(at, str) else tuple(_statistics(*at)),
        tuple(_forecast(each, found, given.declared, schema) for each, found in planned.items()),
        () if isinstance(at, str) else tuple(_advice(levels.modelled, n, *at)),
        tuple(unreviewed),
        schema.unconfirmed,
        tuple(
            f"Study {study.label}: {caution}"
            for study in given.declared
            for caution in cautions(study, schema)
        ),
        schema.counted,
    )


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


#: a fit's blueprint and releases
_Planned = tuple[Blueprint, Releases]


def _planned(schema: TableSchema, n: int, options: FitOptions, epsilon: float) -> _Planned | str:
    """The releases of a fit at an epsilon, or why it would be refused."""
    options = options.model_copy(update={"epsilon": epsilon})
    blueprint = draw_up(schema, float(n), options)
    try:
        releases = choose_noise(blueprint, options, (0.0, 0.0))
        check_widening(options.declared, releases.studies, schema, float(n))
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
    if releases.visits is not None:
        add(releases.visits.name, "visits", [releases.visits.event])
    for study in releases.studies:
        add(f"regression {study.first.study}", "study", study.events)
    if releases.plan is not None:
        add(STEPS, STEPS, [releases.plan.event])
    # noise is solved for all together: what a statistic that is not needed leaves goes to the others
    total = sum(each.share for each in found)
    return [dataclasses.replace(each, share=each.share / total) for each in found]


def _pair_std(releases: Releases) -> float | None:
    """Noise in a cell of two columns: of the outcome and another, or of two that the base model joins."""
    tables = None if releases.base_model is None else releases.base_model.tables
    if tables is None or not tables.count:
        return None
    return tables.noise_std / (math.sqrt(OUTCOME_SHARE) if tables.with_outcome else 1.0)


def _forecast(
    epsilon: float, found: _Planned | str, studies: Sequence[Study], schema: TableSchema
) -> Forecast:
    if isinstance(found, str):
        return Forecast(epsilon, refused=found)
    blueprint, releases = found
    noise = releases.marginals.noise_std
    pair = _pair_std(releases)
    planned = [(study, each.multiplier) for study, each in zip(studies, releases.studies, strict=True)]
    n = blueprint.needs.n
    return Forecast(
        epsilon,
        noise,
        smallest_group(noise),
        None if pair is None else smallest_group(pair),
        Profile(releases.events).attack_accuracy(),
        # the size of a subgroup is not public
        {s.label: expected_widening(s, schema, n, z) for s, z in planned if s.where is None},
        {s.label: smallest_subgroup(s, schema, z, WIDEST) for s, z in planned if s.where is not None},
    )


def _advice(schema: Schema, n: int, blueprint: Blueprint, releases: Releases) -> list[Advice]:
    """Columns whose cells have too few records on average for the noise, those of most cells first.

    With the outcome, ordinal columns are left out: their bins are merged to what the noise allows.
    """
    noise, pair = releases.marginals.noise_std, None
    if releases.base_model is not None and releases.base_model.tables.with_outcome:
        pair = _pair_std(releases)
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
                f"{n / size:,.0f} records each on average. A count needs {group:,}."
            )
            found.append((size, Advice(column.name, _coarsened(n // group - column.missing), why)))
        elif pair is not None and not column.is_ordinal and n / (size * classes) < smallest_group(pair):
            needed = smallest_group(pair)
            why = (
                f"With the outcome it has {size * classes} cells, {n / (size * classes):,.0f} records each "
                f"on average. A count needs {needed:,}."
            )
            found.append(
                (size, Advice(column.name, _coarsened(n // (needed * classes) - column.missing), why))
            )
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
