"""Plan a fit's parts and their noise from the schema, the options and the number of records alone.

A noisy count may choose the parts. Their noise then holds to a cost that was fixed before it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpsynth.accounting.budget_file import Cost
from dpsynth.accounting.ledger import Ledger
from dpsynth.errors import InputError
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.parts.part import Part, Parts
from dpsynth.synthesis.parts.regressions import Regressions
from dpsynth.synthesis.studies import MOST_WIDENING, check_studies, may_lack
from dpsynth.table.patients import TableSchema
from dpsynth.table.schema import Schema

# Delta where the schema has no public number of records, and the range of n_public^-1.5: above it a
# guarantee says little, below it the accounting resolves nothing.
_DELTA, _LEAST_DELTA, _MOST_DELTA = 1e-6, 1e-11, 1e-3


def total_delta(schema: Schema, options: FitOptions) -> float:
    """The target delta, fixed before any record is read: given, n_public^-1.5, or 1e-6 without ``n_public``.

    A delta made from a noisy count would be chosen after the fact and guarantee nothing.
    """
    if options.delta is not None:
        return options.delta
    if schema.n_public is None:
        return _DELTA
    return float(np.clip(float(schema.n_public) ** -1.5, _LEAST_DELTA, _MOST_DELTA))


def cost_of(schema: TableSchema, options: FitOptions) -> Cost:
    """All that a fit may cost, from its options and its schema alone. A seed leaves no guarantee."""
    ledger = Ledger()
    ledger.about(schema.levels.unit)
    private = options.epsilon is not None and options.random_state is None
    epsilon = options.epsilon if private and options.epsilon is not None else math.inf
    return Cost(epsilon, total_delta(schema.levels.modelled, options), ledger.unit)


def planned_parts(
    described: TableSchema,
    n: float,
    options: FitOptions,
    n_std: float = 0.0,
    spent: tuple[float, float] = (0.0, 0.0),
    *,
    also: Sequence[Part[Any]] = (),
    every: bool = False,
) -> Parts:
    """The parts of a fit with noise for the rest of (epsilon, delta) after ``spent``.

    ``n`` is public or a noisy count, ``n_std`` the noise of the count. ``also`` are parts that the caller
    gives. ``every`` has each part that some number of records would bring.
    """
    delta = total_delta(described.levels.modelled, options)
    parts = options.parts(described, n, delta, n_std, every=every).beside(also)
    if options.epsilon is None:
        return parts.without_noise(delta - spent[1])
    counted = described.levels.n_public is None
    return parts.with_noise(options.epsilon - spent[0], delta - spent[1], counted=counted)


def planned_widening(options: FitOptions, schema: TableSchema) -> dict[str, float]:
    """Expected widening of each study, before a record is read.

    Raises InputError if a study does not fit the schema or the number of records is not public. Raises
    PrivacyError if the budget is too small for a study.
    """
    regressions = _regressions(options, schema)
    return {} if regressions is None else regressions.widenings


def _regressions(options: FitOptions, schema: TableSchema) -> Regressions | None:
    """The studies of a fit with their noise, with the same errors."""
    check_studies(options.declared, schema)
    if not options.declared:
        return None
    if schema.n_public is None:
        raise InputError(
            "schema has no n_public. The width of intervals depends on the number of records, which a fit "
            "then counts privately, before anything else"
        )
    found = planned_parts(schema, float(schema.n_public), options).of(Regressions)
    if found is not None:
        found.check()
    return found


def widening_lines(options: FitOptions, schema: TableSchema) -> list[str]:
    """One sentence a study about `planned_widening`, or why it is unknown, with the same errors."""
    check_studies(options.declared, schema)
    if options.declared and schema.n_public is None:
        return [
            "studies: the width of their intervals depends on the number of records, which is private. The "
            "fit counts them first. A study that the budget cannot bear is refused after that count"
        ]
    regressions = _regressions(options, schema)
    if regressions is None:
        return []
    said = []
    for study, statistic in zip(options.declared, regressions.statistics, strict=True):
        text = f"intervals about {statistic.widening:.1f} times as wide as without noise"
        if statistic.subgroups is not None:
            twice, most = statistic.subgroups
            text = (
                f"intervals about 2 times as wide as without noise if its subgroup has {twice:,} "
                f"{schema.counted}, and {MOST_WIDENING:g} times if it has {most:,}"
            )
        lack = ", and wider where records lack a value" if may_lack(study, schema) else ""
        said.append(f"study {study.label}: {text}{lack}")
    return said
