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
from dpsynth.runs.plan_record import (
    CERTAINTY,
    RELATIVE_ERROR,
    Advice,
    BudgetPlan,
    Forecast,
    PlannedStatistic,
)
from dpsynth.synthesis import default_rules
from dpsynth.synthesis.check_inputs import check_options
from dpsynth.synthesis.generators import DEFAULT, options_of
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.parts.pairwise import Pairwise
from dpsynth.synthesis.parts.part import Part, Parts
from dpsynth.synthesis.planning import planned_parts, total_delta
from dpsynth.synthesis.studies import cautions
from dpsynth.table.marginals import default_cells
from dpsynth.table.patients import TableSchema
from dpsynth.table.schema import Schema, require_reviewed
from dpsynth.table.schema_inference import check_described

if TYPE_CHECKING:
    pass

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
    also : sequence of Part
        Further statistics of the fit, as in :meth:`dpsynth.DPMarginals.fit`.

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
    planned = {each: _planned(schema, n, given, each, also) for each in sorted({*EPSILONS, own})}
    at = planned[own]
    return BudgetPlan(
        n,
        len(levels.modelled) if levels is schema else len(schema),
        own,
        total_delta(schema.levels, given),
        () if isinstance(at, str) else tuple(_statistics(at)),
        tuple(_forecast(each, found) for each, found in planned.items()),
        () if isinstance(at, str) else tuple(_advice(levels.modelled, n, at)),
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
    if sum(sizes) > default_rules.MOST_NUMBERS and parts.of(Pairwise) is None:
        why = (
            f"All columns together have {sum(sizes)} categories and numbers. "
            f"Above {default_rules.MOST_NUMBERS} there are no pairwise statistics."
        )
        found.append((max(sizes), Advice(largest.name, "use fewer categories", why)))
    return [advice for _, advice in sorted(found, key=lambda each: -each[0])]


def _coarsened(most: int) -> str:
    return f"use at most {most} categories" if most >= 2 else "drop it"
