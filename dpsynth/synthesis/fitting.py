"""From private records to a released generator, one release after the other.

The order is: number of records (only where the schema has no ``n_public``), one-way marginals, the prior's
edges and tables, the critic's steps. Each is posted to the ledger before the records are read for it. All
noise is chosen beforehand (`dpsynth.synthesis.budget`) so that the composed cost is at most (epsilon, delta).
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.accounting.events.events import non_private_event
from dpsynth.accounting.ledger.ledger import Ledger
from dpsynth.errors import DataError, OwnerWarning
from dpsynth.files import storage
from dpsynth.gan.quiet import load_tensorflow_quietly
from dpsynth.gan.settings import TrainingSettings
from dpsynth.mechanism.plan import Plan
from dpsynth.releases.marginals import (
    count_event,
    make_grids,
    marginals_event,
    public_sizes,
    release_count,
    release_marginals,
    sensitivity_squared,
)
from dpsynth.releases.prior import Prior, fit_prior, prior_events
from dpsynth.synthesis import presets
from dpsynth.synthesis.budget import Budget, Shares, gaussian_mu, plan_budget
from dpsynth.synthesis.model import GeneratorModel, independent_points
from dpsynth.synthesis.options import FitOptions
from dpsynth.table.encoder import Encoder
from dpsynth.table.schema import Schema

# Rows of the bank of prior draws (or public points) that training gathers from.
_BANK_ROWS = 50_000
# Delta where the schema has no public number of records, and the range of n_public^-1.5: above it a
# guarantee says little, below it the accounting resolves nothing.
_DELTA, _LEAST_DELTA, _MOST_DELTA = 1e-6, 1e-11, 1e-3
# Share of n_public by which the number of rows may differ from it.
_N_TOLERANCE = 0.1


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
    schema : Schema
    n : float
        Public or privately counted number of records.
    delta : float
    sampling_prob : float
        Of the critic's Poisson samples.
    training : TrainingSettings
    steps : int
        Critic steps, a multiple of ``training.critic_steps``.
    prior : {"none", "tree", "tan"}
    """

    schema: Schema
    n: float
    delta: float
    sampling_prob: float
    training: TrainingSettings
    steps: int
    prior: str


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


def check_n_public(records: pd.DataFrame, schema: Schema, *, accept: bool) -> None:
    """Compare the public number of records with the table, for its owner only and before anything is spent.

    Everything is scaled to ``n_public``. A part of a table that is drawn record by record differs from its
    expected number n by at most 4 sqrt(n), but for 1 case in 10,000; a tenth leaves room for a registry that
    grows. The whole table's number given for a half of it is beyond both, from 64 records on.

    Warns
    -----
    OwnerWarning
        If they differ by more than half of that.

    Raises
    ------
    DataError
        If they differ by more than that, and ``accept`` is not set.
    """
    if schema.n_public is None:
        return
    n, rows = schema.n_public, len(records)
    tolerance = max(_N_TOLERANCE * n, 4 * math.sqrt(n))
    if abs(rows - n) <= tolerance / 2:
        return
    said = f"n_public is {n:,}, but the table to fit has {rows:,} rows (internal: not for release)"
    if abs(rows - n) > tolerance and not accept:
        raise DataError(
            f"{said}, and every count is scaled to n_public; give the number for these rows (of a training "
            "part: its own), or go on all the same with accept_n_public (--accept-n-public)"
        )
    warnings.warn(f"{said}; every count is scaled to n_public", OwnerWarning, stacklevel=3)


def count_records(
    records: pd.DataFrame, schema: Schema, options: FitOptions, rng: np.random.Generator, ledger: Ledger
) -> tuple[float, tuple[float, float]]:
    """The number of records and what it cost: public and free, or a noisy count (sensitivity 1).

    The later releases' noise depends on a noisy count, so it is a stage of its own, of (epsilon_c, delta_c):
    what is composed on one privacy-loss distribution must have its noise fixed beforehand.
    """
    if schema.n_public is not None:
        return float(schema.n_public), (0.0, 0.0)
    if options.epsilon is None:
        return float(max(len(records), 1)), (0.0, 0.0)
    share = (options.shares or Shares()).count
    part = (share * options.epsilon, share * total_delta(schema, options))
    multiplier = 1.0 / gaussian_mu(*part)
    ledger.begin_stage(part[1])
    ledger.post(
        "number of records",
        count_event(multiplier),
        sensitivity="1",
        detail=f"Gaussian noise on the count; ({part[0]:.3g}, {part[1]:.3g}) of the budget is set aside",
    )
    return max(release_count(records, multiplier, rng), 1.0), part


def draw_up(schema: Schema, n: float, options: FitOptions) -> Blueprint:
    """The blueprint of a fit; reads no records."""
    thesis = options.preset == "healthgan"
    training = presets.healthgan(schema) if thesis else options.training or TrainingSettings()
    iterations = -(-options.training_steps // training.critic_steps)
    batch = min(n, options.batch_size or presets.batch_size(options.preset, n))
    prior = options.prior
    if prior == "auto":
        prior = "tan" if schema.outcome is not None else "tree"
    if thesis or options.marginals == "none":
        prior = "none"
    return Blueprint(
        schema=schema,
        n=n,
        delta=total_delta(schema, options),
        sampling_prob=batch / n,
        training=training,
        steps=iterations * training.critic_steps,
        prior=prior,
    )


def share_out(
    blueprint: Blueprint, options: FitOptions, spent: tuple[float, float], ledger: Ledger
) -> Budget:
    """The noise of every release, for what ``spent`` leaves of (epsilon, delta): a stage of the ledger."""
    delta = blueprint.delta - spent[1]
    if options.epsilon is None:
        ledger.begin_stage(delta)
        return Budget()
    epsilon = options.epsilon - spent[0]
    budget = plan_budget(
        blueprint.schema,
        epsilon=epsilon,
        delta=delta,
        prior=blueprint.prior,
        marginal_method=options.marginals,
        with_marginals=options.marginals != "none",
        sampling_prob=blueprint.sampling_prob,
        steps=blueprint.steps,
        shares=options.shares or Shares(),
        counted=blueprint.schema.n_public is None,
    )
    # What holds whatever the count has said; without a count, the noise is fixed and says it itself.
    counted = blueprint.schema.n_public is None
    ledger.begin_stage(delta, epsilon=epsilon if counted else None, tv=budget.tv)
    return budget


def release_model(
    records: pd.DataFrame,
    blueprint: Blueprint,
    budget: Budget,
    options: FitOptions,
    rng: np.random.Generator,
    ledger: Ledger,
) -> GeneratorModel:
    """Marginals and prior, paid for; the generator is not trained yet.

    Adjacency: add or remove one record. Sensitivities are posted with the events.
    """
    schema, marginals = blueprint.schema, None
    thesis = options.preset == "healthgan"
    if options.epsilon is None:
        ledger.post(
            "fit without noise",
            non_private_event(),
            sensitivity="unbounded",
            detail="epsilon is null: no noise was added anywhere",
        )
    if options.marginals != "none" or thesis:
        method: Any = "histogram" if options.marginals == "none" else options.marginals
        if budget.marginals is not None:
            ledger.post(
                "one-way marginals",
                marginals_event(schema, budget.marginals, method),
                sensitivity=_marginal_sensitivity(schema, method),
                detail=_marginal_noise(schema, method, budget.marginals, blueprint.n),
            )
        marginals = release_marginals(
            records, schema, noise_multiplier=budget.marginals, n=blueprint.n, rng=rng, method=method
        )
    numeric: Any = "minmax" if thesis else options.numeric
    categorical: Any = "sdv" if thesis else options.categorical
    return GeneratorModel(
        schema,
        Encoder(schema, marginals, numeric=numeric, categorical=categorical),
        _release_prior(records, blueprint, marginals, budget, rng, ledger),
        weights=None,
        latent=blueprint.training.latent,
        latent_law=blueprint.training.latent_law,
        match_marginals=options.match_marginals and marginals is not None and not thesis,
    )


def _release_prior(
    records: pd.DataFrame,
    blueprint: Blueprint,
    marginals: Any,
    budget: Budget,
    rng: np.random.Generator,
    ledger: Ledger,
) -> Prior | None:
    if blueprint.prior == "none":
        return None
    kind: Any = blueprint.prior
    if budget.tables is not None:
        events = prior_events(blueprint.schema, kind, budget.tables, budget.selection_epsilon)
        for name, event, sensitivity in events:
            ledger.post(name, event, sensitivity=sensitivity)
    return fit_prior(
        records,
        blueprint.schema,
        marginals,
        kind=kind,
        noise_multiplier=budget.tables,
        selection_epsilon=budget.selection_epsilon,
        rng=rng,
    )


def plan_training(blueprint: Blueprint, budget: Budget, options: FitOptions, ledger: Ledger) -> Plan:
    """The plan of the critic's steps, posted to the ledger."""
    plan = Plan(
        sampling_prob=blueprint.sampling_prob,
        expected_batch=blueprint.sampling_prob * blueprint.n,
        steps=blueprint.steps,
        noise_multiplier=budget.training,
        noise_shape=options.noise_shape,
        centred=options.centred,
    )
    if budget.training is not None:
        ledger.post(
            "critic steps",
            plan.event,
            sensitivity=presets.describe_sensitivity(blueprint.training, options.noise_shape),
            detail=f"{plan.steps} Poisson-sampled steps, q = {plan.sampling_prob:.6g}",
        )
    return plan


def train_generator(
    records: pd.DataFrame,
    model: GeneratorModel,
    settings: TrainingSettings,
    plan: Plan,
    rng: np.random.Generator,
    *,
    initial_rng: np.random.Generator,
    state: Any = None,
    record: dict[str, Any],
    checkpoint: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> tuple[GeneratorModel, list[dict[str, float]]]:
    """The model with a trained generator, and its history.

    Parameters
    ----------
    records : DataFrame
        Conformed private records.
    model : GeneratorModel
        With marginals and prior, not trained.
    settings : TrainingSettings
    plan : Plan
        Already posted to the ledger.
    rng, initial_rng : numpy.random.Generator
        Of the noise and samples (secret), and of the initial weights.
    state : TrainingState, optional
        Where to go on from.
    record : dict
        What a checkpoint keeps beside the model and the state.
    checkpoint : path, optional
        Where an interrupt leaves a private checkpoint.
    progress : callable, optional
    """
    load_tensorflow_quietly()
    from dpsynth.gan.checkpoint import write_checkpoint
    from dpsynth.gan.training import Trainer, TrainingState

    bank = None
    if model.prior is not None:
        bank = model.prior.sample_points(_BANK_ROWS, model.encoder, rng)
    elif settings.penalty == "public":
        bank = independent_points(model.encoder, _BANK_ROWS, rng)

    def on_chunk(current: TrainingState, total: int) -> None:
        if progress is not None:
            scale = settings.critic_steps
            progress(Progress(current.step * scale, total * scale, current.history[-1]))

    def on_interrupt(current: TrainingState) -> None:
        if checkpoint is not None:
            meta, arrays = model.to_state()
            kept = {**record, "model": meta}
            stored = storage.prefixed("model", arrays)
            write_checkpoint(checkpoint, kept, stored, current, plan, settings, records)

    trainer = Trainer(
        model.encoder.transform(records, rng),
        model.encoder.layout,
        settings,
        plan,
        bank=bank,
        with_prior=model.prior is not None,
    )
    trained = trainer.run(
        rng, initial_rng=initial_rng, state=state, on_chunk=on_chunk, on_interrupt=on_interrupt
    )
    return dataclasses.replace(model, weights=trained.generator), trained.history


def _marginal_noise(schema: Schema, method: str, multiplier: float, n: float) -> str:
    """The noise in the words of somebody who reads a table of counts."""
    grids = make_grids(schema, *public_sizes(schema, n, multiplier))
    std = multiplier * math.sqrt(sensitivity_squared(grids, method))
    return (
        f"{method} of {len(schema)} columns, Gaussian noise: a count is off by about {std:.3g} of {n:,.0f} "
        f"records ({100 * std / n:.2g} %)"
    )


def _marginal_sensitivity(schema: Schema, method: str) -> str:
    histograms = sensitivity_squared(make_grids(schema))
    base = f"sqrt({histograms}) (one count in each of {len(schema)} columns"
    base += ")" if histograms == len(schema) else " and one in the number of missing values)"
    return base if method == "histogram" else f"{base}, with a count in every level of a tree"
