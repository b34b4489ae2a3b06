"""Plan a fit's releases and their noise from the schema, the options and the number of records alone.

A noisy count may choose the releases. `plan_releases` then holds them to a cost that was fixed before it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsynth.accounting.budget_file import Cost
from dpsynth.accounting.contents import Stage
from dpsynth.accounting.ledger import Ledger
from dpsynth.model.wgan.settings import MatchingSettings, TrainingSettings
from dpsynth.synthesis.budget import Needs, Releases, Shares, plan_releases
from dpsynth.synthesis.options import FitOptions
from dpsynth.table.patients import TableSchema
from dpsynth.table.schema import Schema

# Delta where the schema has no public number of records, and the range of n_public^-1.5: above it a
# guarantee says little, below it the accounting resolves nothing.
_DELTA, _LEAST_DELTA, _MOST_DELTA = 1e-6, 1e-11, 1e-3


@dataclass(frozen=True)
class Blueprint:
    """The plan of a fit, from public values and the noisy count only."""

    needs: Needs
    delta: float
    training: TrainingSettings | MatchingSettings | None
    shares: Shares


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


def draw_up(described: TableSchema, n: float, options: FitOptions, n_std: float = 0.0) -> Blueprint:
    """Plan a fit without records. ``n_std`` is the noise of a private number of records."""
    delta = total_delta(described.levels.modelled, options)
    return Blueprint(options.needs(described, n, delta, n_std), delta, options.settings(n), options.division)


def choose_noise(blueprint: Blueprint, options: FitOptions, spent: tuple[float, float]) -> Releases:
    """Every release, with noise for the rest of (epsilon, delta) after ``spent``."""
    delta = blueprint.delta - spent[1]
    if options.epsilon is None:
        return blueprint.needs.releases({}, stage=Stage.begin(delta))
    return plan_releases(
        blueprint.needs,
        epsilon=options.epsilon - spent[0],
        delta=delta,
        shares=blueprint.shares,
        counted=blueprint.needs.schema.n_public is None,
    )
