"""From private records to a released generator, one release after the other.

The order is: number of records (only where the schema has no ``n_public``), one-way marginals, the prior's
edges and tables, moments, votes, the critic's steps. The ledger runs each of them. All noise is chosen
beforehand (`dpsynth.synthesis.budget`) so that the composed cost is at most (epsilon, delta).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsynth.accounting.calibration.gaussian_noise import analytic_sigma
from dpsynth.accounting.ledger.entries import Stage
from dpsynth.accounting.ledger.ledger import Ledger
from dpsynth.files import storage
from dpsynth.mechanism.plan import Plan
from dpsynth.model.columns.marginals import estimate_marginals
from dpsynth.model.generator import GeneratorModel, independent_points
from dpsynth.model.wgan.quiet import load_tensorflow_quietly
from dpsynth.model.wgan.settings import TrainingSettings
from dpsynth.releases.count import CountRelease
from dpsynth.releases.critic import CriticRelease
from dpsynth.releases.records import Records
from dpsynth.releases.structure import Kind
from dpsynth.synthesis import default_rules, refinements
from dpsynth.synthesis.budget import Needs, Releases, Shares, plan_releases
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.refinements import Refinements, release_refinements
from dpsynth.table.encoder import Encoder
from dpsynth.table.schema import Schema

if TYPE_CHECKING:
    from dpsynth.model.wgan.training import TrainingState

# Rows of the bank of prior draws (or public points) that training gathers from.
_BANK_ROWS = 50_000
# Delta where the schema has no public number of records, and the range of n_public^-1.5: above it a
# guarantee says little, below it the accounting resolves nothing.
_DELTA, _LEAST_DELTA, _MOST_DELTA = 1e-6, 1e-11, 1e-3


@dataclass(frozen=True)
class Progress:
    """What a progress bar may show: functions of released quantities only.

    Parameters
    ----------
    step, total : int
        Critic steps made and to be made.
    metrics : dict
        The last record of the history.
    """

    step: int
    total: int
    metrics: dict[str, float]


@dataclass(frozen=True)
class Blueprint:
    """What a fit is about to do, from public values only.

    Parameters
    ----------
    needs : Needs
        What it releases.
    delta : float
    training : TrainingSettings
    shares : Shares
    """

    needs: Needs
    delta: float
    training: TrainingSettings
    shares: Shares


def total_delta(schema: Schema, options: FitOptions) -> float:
    """The target delta, fixed before any record is read.

    Given, or n_public^-1.5, or 1e-6 where there is no ``n_public``: a delta made from a noisy count would
    be chosen after the fact and guarantee nothing.
    """
    if options.delta is not None:
        return options.delta
    if schema.n_public is None:
        return _DELTA
    return float(np.clip(float(schema.n_public) ** -1.5, _LEAST_DELTA, _MOST_DELTA))


def count_records(
    records: Records, schema: Schema, options: FitOptions, rng: np.random.Generator, ledger: Ledger
) -> tuple[float, float, tuple[float, float]]:
    """The number of records, its noise and what it cost: public and free, or a noisy count.

    The later releases' noise depends on a noisy count, so it is a stage of its own, of (epsilon_c, delta_c):
    what is composed on one privacy-loss distribution must have its noise fixed beforehand.
    """
    if schema.n_public is not None:
        return float(schema.n_public), 0.0, (0.0, 0.0)
    share = (options.shares or Shares()).count
    part = (share * (options.epsilon or 0.0), share * total_delta(schema, options))
    noise, detail = None, "no noise"
    if options.epsilon is not None:
        noise = analytic_sigma(*part)
        detail = f"Gaussian noise on the count; ({part[0]:.3g}, {part[1]:.3g}) of the budget is set aside"
    count = CountRelease(noise_multiplier=noise, stage=Stage.begin(part[1]), detail=detail)
    return ledger.run(count, records, rng), count.noise_std, part


def draw_up(schema: Schema, n: float, options: FitOptions, n_std: float = 0.0) -> Blueprint:
    """The blueprint of a fit; reads no records. ``n_std`` is the noise of a private number of records."""
    thesis = options.preset == "healthgan"
    training = default_rules.healthgan(schema) if thesis else options.training or default_rules.training(n)
    batch = min(n, options.batch_size or default_rules.batch_size(options.preset, n))
    prior: Kind | None = None
    if options.has_prior and options.prior != "none":
        usual: Kind = "tan" if schema.outcome is not None else "tree"
        prior = usual if options.prior == "auto" else options.prior
    # a noisy count must not choose what is bought: the total variation would tell of it
    known, delta = None if schema.n_public is None else n, total_delta(schema, options)
    steps, moments, votes = options.steps(known), options.moments, options.votes
    usual_shares = options.shares or Shares()
    if moments == "auto":
        moments = default_rules.buys_moments(schema, known, options.epsilon, delta, usual_shares.moments)
    if votes == "auto":
        room = options.shares is None or not steps or options.shares.with_votes < 1
        votes = (
            moments and room and default_rules.buys_votes(known, options.epsilon, delta, usual_shares.votes)
        )
    iterations = -(-steps // training.critic_steps)
    plan = None
    if iterations:
        plan = Plan(
            sampling_prob=batch / n,
            expected_batch=batch / n * n,
            steps=iterations * training.critic_steps,
            noise_multiplier=None,
            noise_shape=options.noise_shape,
            centred=options.centred,
        )
    refinable = prior is not None and len(schema) > 2
    needs = Needs(
        schema=schema,
        n=n,
        marginals=thesis or options.marginals != "none",
        prior=prior,
        plan=plan,
        moments=refinable and moments,
        votes=refinable and votes,
        studies=options.studies,
        n_std=n_std,
    )
    shares = options.shares or default_rules.shares(steps, needs.votes)
    return Blueprint(needs, delta, training, shares)


def choose_noise(blueprint: Blueprint, options: FitOptions, spent: tuple[float, float]) -> Releases:
    """Every release, with noise for what ``spent`` leaves of (epsilon, delta)."""
    delta = blueprint.delta - spent[1]
    if options.epsilon is None:
        return blueprint.needs.releases(stage=Stage.begin(delta))
    return plan_releases(
        blueprint.needs,
        epsilon=options.epsilon - spent[0],
        delta=delta,
        shares=blueprint.shares,
        counted=blueprint.needs.schema.n_public is None,
    )


def release_model(
    records: Records,
    blueprint: Blueprint,
    releases: Releases,
    options: FitOptions,
    rng: np.random.Generator,
    ledger: Ledger,
) -> tuple[GeneratorModel, Refinements]:
    """Encoder, marginals, prior and what it is refined by, paid for; the generator is not trained yet."""
    schema, training = blueprint.needs.schema, blueprint.training
    thesis = options.preset == "healthgan"
    marginals = None
    if releases.marginals is not None:
        marginals = estimate_marginals(releases.marginals, ledger.run(releases.marginals, records, rng))
    prior, bought = None, Refinements()
    if releases.prior is not None and marginals is not None:
        prior = releases.prior.run(ledger, records, marginals, rng)
        bought = release_refinements(records, releases, marginals, prior, schema, rng, ledger)
    encoder = Encoder(
        schema,
        marginals,
        numeric="minmax" if thesis else options.numeric,
        categorical="sdv" if thesis else options.categorical,
    )
    model = GeneratorModel(
        schema,
        encoder,
        prior,
        weights=None,
        latent=training.latent,
        latent_law=training.latent_law,
        match_marginals=options.match_marginals and marginals is not None and not thesis,
    )
    return model, bought


def refined(model: GeneratorModel, bought: Refinements, rng: np.random.Generator) -> GeneratorModel:
    """The model with its prior refined by what was bought: post-processing."""
    if model.prior is None:
        return model
    return dataclasses.replace(model, prior=refinements.refined(model.prior, bought, rng))


@dataclass(frozen=True)
class Training:
    """The training of a generator, but for its records, its plan and its noise.

    Parameters
    ----------
    model : GeneratorModel
        With marginals and prior, not trained.
    settings : TrainingSettings
    initial_rng : numpy.random.Generator
        Of the initial weights.
    record : dict
        What a checkpoint keeps beside the model and the state.
    checkpoint : path, optional
        Where an interrupt leaves a private checkpoint.
    progress : callable, optional
    """

    model: GeneratorModel
    settings: TrainingSettings
    initial_rng: np.random.Generator
    record: Callable[[], dict[str, Any]]
    checkpoint: str | Path | None = None
    progress: Callable[[Progress], None] | None = None

    def release(self, plan: Plan, *, stage: Stage | None = None, state: Any = None) -> CriticRelease[Trained]:
        """The critic's steps as a release; ``state`` is where to go on from."""

        def train(records: pd.DataFrame, plan: Plan, rng: np.random.Generator) -> Trained:
            return train_generator(records, plan, rng, self, state)

        words = default_rules.describe_sensitivity(self.settings, plan.noise_shape)
        return CriticRelease(plan=plan, sensitivity=words, train=train, stage=stage)


#: A model with a trained generator, and the history of its training.
Trained = tuple[GeneratorModel, list[dict[str, float]]]


def train_generator(
    records: pd.DataFrame, plan: Plan, rng: np.random.Generator, training: Training, state: Any = None
) -> Trained:
    """The model with a trained generator, and its history; arguments are those of `trained_state`."""
    trained = trained_state(records, plan, rng, training, state)
    return dataclasses.replace(training.model, weights=trained.generator), trained.history


def trained_state(
    records: pd.DataFrame, plan: Plan, rng: np.random.Generator, training: Training, state: Any = None
) -> TrainingState:
    """Critic and generator after the plan's steps, with the history.

    Parameters
    ----------
    records : DataFrame
        Conformed private records.
    plan : Plan
    rng : numpy.random.Generator
        Of the noise and samples (secret).
    training : Training
    state : TrainingState, optional
        Where to go on from.
    """
    load_tensorflow_quietly()
    from dpsynth.model.wgan.checkpoint import write_checkpoint
    from dpsynth.model.wgan.training import Trainer

    model, settings = training.model, training.settings
    bank = None
    if model.prior is not None:
        bank = model.prior.sample_points(_BANK_ROWS, model.encoder, rng)
    elif settings.penalty == "public":
        bank = independent_points(model.encoder, _BANK_ROWS, rng)

    def on_chunk(current: TrainingState, total: int) -> None:
        if training.progress is not None:
            scale = settings.critic_steps
            training.progress(Progress(current.step * scale, total * scale, current.history[-1]))

    def on_interrupt(current: TrainingState) -> None:
        if training.checkpoint is not None:
            meta, arrays = model.to_state()
            kept = {**training.record(), "model": meta}
            stored = storage.prefixed("model", arrays)
            write_checkpoint(training.checkpoint, kept, stored, current, plan, settings, records)

    trainer = Trainer(
        model.encoder.transform(records, rng),
        model.encoder.layout,
        settings,
        plan,
        bank=bank,
        with_prior=model.prior is not None,
    )
    return trainer.run(
        rng, initial_rng=training.initial_rng, state=state, on_chunk=on_chunk, on_interrupt=on_interrupt
    )
