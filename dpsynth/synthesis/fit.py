"""Fit a model to private records: the order of all noisy statistics.

The number of records comes first, if the schema has no ``n_public``. Single-column counts and the base
model's edges and tables follow. Then come pairwise statistics, the nearest-neighbour histogram and the tables
of patients' rows. Studies and the critic steps (`Training`) are last. The ledger runs each of them.
Everything between is post-processing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.contents import Stage
from dpsynth.accounting.gaussian import analytic_sigma
from dpsynth.accounting.ledger import Ledger
from dpsynth.errors import InputError, RunError
from dpsynth.files import storage
from dpsynth.mechanism.plan import Plan
from dpsynth.model.base_model.network import BayesianNetwork
from dpsynth.model.base_model.rule_factors import with_rules
from dpsynth.model.columns.marginals import estimate_marginals
from dpsynth.model.generator import GeneratorModel, independent_points
from dpsynth.model.reweighting.fit_reweighting import reweighted
from dpsynth.model.reweighting.fit_weights import weighted
from dpsynth.model.row_rules import rules_of_model
from dpsynth.model.trajectories import Trajectories, likely_parents
from dpsynth.model.wgan.matched_points import coordinate_scale
from dpsynth.model.wgan.quiet import load_tensorflow_quietly
from dpsynth.model.wgan.settings import MatchingSettings, TrainingSettings
from dpsynth.releases.bins import Bins
from dpsynth.releases.count import CountRelease
from dpsynth.releases.critic import CriticRelease
from dpsynth.releases.features import FourierFeatures, PairFeatures
from dpsynth.releases.neighbour_histogram import Groups, NeighbourHistogram, group_count
from dpsynth.releases.pairwise_statistics import PairwiseStatistics
from dpsynth.releases.records import Records
from dpsynth.synthesis import default_rules
from dpsynth.synthesis.budget import Releases
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.planning import Blueprint, choose_noise, draw_up, total_delta
from dpsynth.synthesis.studies import check_widening, fit_studies
from dpsynth.table.encoder import Encoder
from dpsynth.table.marginals import Marginals
from dpsynth.table.patients import TableSchema
from dpsynth.table.schema import Schema

if TYPE_CHECKING:
    from dpsynth.model.wgan.training import TrainingState


#: Samples of the base model for the length of a record's features, and for groups.
_DRAWS = 20_000
#: Synthetic patients for the links between categories of a row.
_PARENTS = 5_000


@dataclass(frozen=True)
class FitPlan:
    """All releases of a fit with their noise, made by `plan_fit`. ``n`` may be a noisy count."""

    schema: Schema
    options: FitOptions
    n: float
    blueprint: Blueprint
    releases: Releases


#: Noisy statistics beside the base model.
Refinements = tuple[PairwiseStatistics | None, NeighbourHistogram | None]


def plan_fit(
    records: Records, schema: TableSchema, options: FitOptions, rng: np.random.Generator, ledger: Ledger
) -> FitPlan:
    """Count the records if their number is not public, and choose all other noise.

    Raises PrivacyError if the budget is too small for the run or for a study.
    """
    levels = schema.levels
    n, n_std, spent = _count(records, levels, options, rng, ledger)
    blueprint = draw_up(schema, n, options, n_std)
    releases = choose_noise(blueprint, options, spent)
    check_widening(options.declared, releases.studies, schema, n)
    return FitPlan(levels, options, n, blueprint, releases)


def fit_releases(records: Records, plan: FitPlan, rng: np.random.Generator, ledger: Ledger) -> GeneratorModel:
    """Release all but the critic steps, and make the untrained model. ``rng`` is secret."""
    model, (pairs, histogram) = release_statistics(records, plan, rng, ledger)
    base_model = model.base_model
    if base_model is not None:
        visits = plan.releases.visits
        rules = rules_of_model(plan.schema, None if visits is None else visits.schema)
        base_model = with_rules(base_model, plan.schema, model.encoder.grids, rules)
        if pairs is not None or base_model.rules:
            base_model = reweighted(base_model, pairs, rng)
    if base_model is not None and histogram is not None:
        base_model = weighted(base_model, histogram, rng)
    marginals = model.encoder.marginals
    if base_model is not None and marginals is not None:
        base_model = base_model.coupled(marginals.grids, marginals.n, rng)
    model = dataclasses.replace(model, schema=plan.schema, base_model=base_model)
    model = dataclasses.replace(model, trajectories=release_rows(records, model, plan, rng, ledger))
    studies, planned = plan.options.declared, plan.releases.studies
    fitted = fit_studies(records, model, studies, planned, plan.n, rng, ledger)
    return dataclasses.replace(model, studies=fitted)


def release_rows(
    records: Records, model: GeneratorModel, plan: FitPlan, rng: np.random.Generator, ledger: Ledger
) -> Trajectories | None:
    """The tables of rows, where patients have several. ``model`` is that of their levels."""
    visits = plan.releases.visits
    if visits is None:
        return None
    parents = likely_parents(visits.schema, model.sample(_PARENTS, rng))
    noisy = ledger.run(dataclasses.replace(visits, parents=tuple(parents.items())), records, rng)
    return Trajectories.of(visits.schema, noisy, visits.noise_std, parents)


def release_statistics(
    records: Records, plan: FitPlan, rng: np.random.Generator, ledger: Ledger
) -> tuple[GeneratorModel, Refinements]:
    """All releases of the levels but studies and critic steps: an untrained model, and its refinements.

    The model is not reweighted. The levels are the records themselves where each is one row.
    """
    releases, training = plan.releases, plan.blueprint.training
    schema = plan.blueprint.needs.schema
    base_model = None
    refinements: Refinements = None, None
    marginals = estimate_marginals(releases.marginals, ledger.run(releases.marginals, records, rng))
    if releases.base_model is not None:
        base_model = releases.base_model.run(ledger, records, marginals, rng)
        refinements = _release_refinements(records, plan, marginals, base_model, rng, ledger)
    encoder = Encoder(schema, marginals)
    latent, law = 0, "normal"
    if isinstance(training, TrainingSettings):
        latent, law = training.latent, training.latent_law
    return GeneratorModel(schema, encoder, base_model, None, latent, law), refinements


def _release_refinements(
    records: Records,
    plan: FitPlan,
    marginals: Marginals,
    base_model: BayesianNetwork,
    rng: np.random.Generator,
    ledger: Ledger,
) -> Refinements:
    """Release statistics beside the base model, with features and groups from its samples."""
    releases, schema = plan.releases, plan.blueprint.needs.schema
    if releases.pairwise_statistics is None and releases.neighbour_histogram is None:
        return None, None
    bins, draws = Bins(marginals.grids, base_model.binnings, marginals.n), base_model.sample(_DRAWS, rng)
    pairs = histogram = None
    if releases.pairwise_statistics is not None:
        outcome = None if schema.outcome is None else schema.names.index(schema.outcome)
        products = PairFeatures.of(bins, draws, outcome)
        pairs = ledger.run(releases.pairwise_statistics.at((bins, products)), records, rng)
    if releases.neighbour_histogram is not None:
        groups = Groups.of(bins, draws, group_count(bins.n, releases.neighbour_histogram.noise_std), rng)
        features = FourierFeatures.of(groups.tables, rng)
        histogram = ledger.run(releases.neighbour_histogram.at((bins, groups, features)), records, rng)
    return pairs, histogram


def _count(
    records: Records, schema: Schema, options: FitOptions, rng: np.random.Generator, ledger: Ledger
) -> tuple[float, float, tuple[float, float]]:
    """The number of records, its noise and its cost: public and free, or a noisy count.

    The later releases and their noise depend on a noisy count. The count is therefore a stage of its own,
    of (epsilon_c, delta_c): one privacy-loss distribution composes only releases whose noise was fixed
    beforehand.
    """
    if schema.n_public is not None:
        return float(schema.n_public), 0.0, (0.0, 0.0)
    share = options.division.count
    part = (share * (options.epsilon or 0.0), share * total_delta(schema, options))
    noise, detail = None, "no noise"
    if options.epsilon is not None:
        noise = analytic_sigma(*part)
        detail = f"Gaussian noise on the count, a stage that costs ε = {part[0]:.3g} at δ = {part[1]:.3g}"
    count = CountRelease(noise_multiplier=noise, stage=Stage.begin(part[1]), detail=detail)
    return ledger.run(count, records, rng), count.noise_std, part


# Rows of the bank of public points that training gathers from.
_BANK_ROWS = 50_000


@dataclass(frozen=True)
class Progress:
    """State of a training for a progress bar, from released quantities only.

    Parameters
    ----------
    step, total : int
        Critic steps made and to be made. With matched points, these are random critics, in proportion to the
        iterations.
    metrics : dict
        The last record of the history.
    """

    step: int
    total: int
    metrics: dict[str, float]


@dataclass(frozen=True)
class Training:
    """The training of a generator, or the matching of its points, without records, plan and noise.

    Parameters
    ----------
    initial_rng : Generator
        Public: of the initial weights, or of the random critics and the points.
    record : callable
        Returns the values that a checkpoint stores beside the model and the state.
    checkpoint : path, optional
        Folder for a private checkpoint after an interrupt.
    """

    model: GeneratorModel
    settings: TrainingSettings | MatchingSettings
    initial_rng: np.random.Generator
    record: Callable[[], dict[str, Any]]
    checkpoint: str | Path | None = None
    progress: Callable[[Progress], None] | None = None

    def release(self, plan: Plan, *, stage: Stage | None = None, state: Any = None) -> CriticRelease[Trained]:
        """The critic steps as a release, continued from ``state``."""

        def train(records: Records, plan: Plan, rng: np.random.Generator) -> Trained:
            return train_generator(records, plan, rng, self, state)

        words = default_rules.describe_sensitivity(self.settings, plan.noise_shape)
        return CriticRelease(plan=plan, sensitivity=words, train=train, stage=stage)


#: A model with a trained generator, and the history of its training.
Trained = tuple[GeneratorModel, list[dict[str, float]]]


def train_generator(
    records: Records, plan: Plan, rng: np.random.Generator, training: Training, state: Any = None
) -> Trained:
    """The model with a generator or matched points, and its history. Arguments are `trained_state`'s."""
    if isinstance(training.settings, MatchingSettings):
        return _match(records, plan, rng, training, training.settings)
    trained = trained_state(records, plan, rng, training, state)
    return dataclasses.replace(training.model, weights=trained.generator), trained.history


# Records whose gradients are summed at once.
_BLOCK = 50_000


def _encoded(records: Records, encoder: Encoder, rng: np.random.Generator) -> NDArray[np.float32]:
    """Private points of the records, in a file if the records are in parts and many."""
    return records.rows(partial(encoder.transform_rows, seed=int(rng.integers(2**63))))


def _match(
    records: Records,
    plan: Plan,
    rng: np.random.Generator,
    training: Training,
    settings: MatchingSettings,
) -> Trained:
    """The model with points that match gradients at random critics, and the history of the matching."""
    load_tensorflow_quietly()
    from dpsynth.model.wgan.gradient_matching import Critics, GradientRelease, matched

    encoder, public = training.model.encoder, training.initial_rng
    critics = Critics.draw(plan.steps, encoder.layout.dim, settings, public)
    release = GradientRelease(
        critics, encoder.layout, coordinate_scale(encoder, settings.outcome_scale), plan
    )
    points = _encoded(records, encoder, rng)
    released = release((points[i : i + _BLOCK] for i in range(0, len(points), _BLOCK)), rng)
    history: list[dict[str, float]] = []

    def on_chunk(iterations: int, difference: float) -> None:
        history.append({"step": iterations, "difference": difference})
        if training.progress is not None:
            done = plan.steps * iterations // settings.iterations
            training.progress(Progress(done, plan.steps, history[-1]))

    try:
        found, _ = matched(
            released, encoder.layout, encoder.group_probabilities(), settings, public, on_chunk
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "The noisy gradients had used privacy budget before the interrupt, see the ledger. They were not "
            "kept, so the fit cannot go on. Another fit uses privacy budget again"
        ) from None
    return dataclasses.replace(training.model, matched=found), history


def trained_state(
    records: Records, plan: Plan, rng: np.random.Generator, training: Training, state: Any = None
) -> TrainingState:
    """WGAN critic, generator and history after the plan's steps. ``rng`` is secret, ``state`` a start."""
    load_tensorflow_quietly()
    from dpsynth.model.wgan.checkpoint import recognised, write_checkpoint
    from dpsynth.model.wgan.training import Trainer, initial_state

    model, settings = training.model, training.settings
    if isinstance(settings, MatchingSettings):
        raise InputError("matched points have no trained WGAN critic: use DPWGANGP")
    bank = None
    if settings.penalty == "public":
        bank = independent_points(model.encoder, _BANK_ROWS, rng)

    def on_chunk(current: TrainingState, total: int) -> None:
        if training.progress is not None:
            scale = settings.critic_steps
            training.progress(Progress(current.step * scale, total * scale, current.history[-1]))

    # Read now: on an interrupt there may be no time, or no workers.
    table = {} if training.checkpoint is None else recognised(records)

    def on_interrupt(current: TrainingState) -> None:
        if training.checkpoint is not None:
            meta, arrays = model.to_state()
            kept = {**training.record(), "model": meta}
            stored = storage.prefixed("model", arrays)
            write_checkpoint(training.checkpoint, kept, stored, current, plan, settings, table)

    layout = model.encoder.layout
    if state is None:
        state = initial_state(layout, settings, training.initial_rng)
    try:
        points = _encoded(records, model.encoder, rng)
    except (KeyboardInterrupt, RunError):
        on_interrupt(state)
        raise
    trainer = Trainer(points, layout, settings, plan, bank=bank)
    return trainer.run(rng, state=state, on_chunk=on_chunk, on_interrupt=on_interrupt)
