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
from dpsynth.errors import InputError
from dpsynth.mechanism.plan import Plan
from dpsynth.model.wgan.settings import MatchingSettings, TrainingSettings
from dpsynth.releases.structure import Kind
from dpsynth.synthesis import default_rules
from dpsynth.synthesis.budget import Needs, Releases, Shares, plan_releases
from dpsynth.synthesis.options import FitOptions
from dpsynth.table.patients import PatientSchema, TableSchema
from dpsynth.table.schema import Schema

# Delta where the schema has no public number of records, and the range of n_public^-1.5: above it a
# guarantee says little, below it the accounting resolves nothing.
_DELTA, _LEAST_DELTA, _MOST_DELTA = 1e-6, 1e-11, 1e-3


@dataclass(frozen=True)
class Blueprint:
    """The plan of a fit, from public values and the noisy count only."""

    needs: Needs
    delta: float
    training: TrainingSettings | MatchingSettings
    shares: Shares


def check_matching(options: FitOptions) -> None:
    """Refuse what only an alternating training can do: a batch size, or thousands of critics' steps."""
    if not options.has_matching:
        return
    if options.training_steps != "auto" and options.training_steps > default_rules.MOST_CRITICS:
        raise InputError(
            "training_steps is the number of random WGAN critics without a base model, at most "
            f"{default_rules.MOST_CRITICS}, got {options.training_steps}. For an alternating training of so "
            "many steps, give training=TrainingSettings() as well"
        )
    if options.batch_size is not None:
        raise InputError(
            "batch_size must not be given without a base model: each step reads every record. Leave it "
            "out, or give training=TrainingSettings() for an alternating training"
        )


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
    check_matching(options)
    schema = described.levels.modelled
    visits = described if isinstance(described, PatientSchema) else None
    training: TrainingSettings | MatchingSettings = options.training or default_rules.training(n)
    batch = min(n, options.batch_size or default_rules.batch_size(n))
    if options.has_matching:
        training, batch = MatchingSettings(), n
    base_model: Kind | None = None
    if options.has_base_model and options.base_model != "none":
        usual: Kind = "tan" if schema.outcome is not None else "tree"
        base_model = usual if options.base_model == "auto" else options.base_model
    delta = total_delta(schema, options)
    steps, pairs, histogram = options.steps, options.pairwise_statistics, options.neighbour_histogram
    usual_shares = options.shares or Shares()
    if pairs == "auto":
        pairs = default_rules.has_pairwise_statistics(
            schema, n, options.epsilon, delta, usual_shares.pairwise_statistics
        )
    if histogram == "auto":
        share = usual_shares.neighbour_histogram
        histogram = pairs and default_rules.has_neighbour_histogram(n, options.epsilon, delta, share)
    round_of = training.critic_steps if isinstance(training, TrainingSettings) else 1
    iterations = -(-steps // round_of)
    plan = None
    if iterations:
        plan = Plan(
            sampling_prob=batch / n,
            expected_batch=batch / n * n,
            steps=iterations * round_of,
            noise_multiplier=None,
            noise_shape=options.noise_shape,
        )
    refinable = base_model is not None and len(schema) > 2
    needs = Needs(
        schema=schema,
        n=n,
        base_model=base_model,
        plan=plan,
        pairwise_statistics=refinable and pairs,
        neighbour_histogram=refinable and histogram,
        studies=options.studies,
        n_std=n_std,
        visits=visits,
    )
    return Blueprint(needs, delta, training, usual_shares)


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
