"""Fit a model to private records: count them if need be, plan all parts, and read them in order.

The number of records comes first, if the schema has no ``n_public``. The generator's own statistics follow,
then what is read beside it (rows of patients, pre-specified regressions), and a training run last. The ledger
reads each. Everything between is post-processing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth.accounting.contents import Stage
from dpsynth.accounting.gaussian import analytic_sigma
from dpsynth.accounting.ledger import Ledger
from dpsynth.model.base_model.network import BayesianNetwork
from dpsynth.model.base_model.rule_factors import with_rules
from dpsynth.model.generator import GeneratorModel
from dpsynth.model.reweighting.fit_reweighting import reweighted
from dpsynth.model.reweighting.fit_weights import weighted
from dpsynth.model.row_rules import rules_of_model
from dpsynth.model.wgan.settings import TrainingSettings
from dpsynth.releases.count import CountRelease
from dpsynth.releases.records import Records
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.parts.base_model import BaseModel
from dpsynth.synthesis.parts.columns import Columns
from dpsynth.synthesis.parts.critic import Critic
from dpsynth.synthesis.parts.histogram import Histogram
from dpsynth.synthesis.parts.pairwise import Pairwise
from dpsynth.synthesis.parts.part import Part, Parts, Reading
from dpsynth.synthesis.planning import planned_parts, total_delta
from dpsynth.synthesis.training import Settings, Training
from dpsynth.table.encoder import Encoder
from dpsynth.table.patients import PatientSchema, TableSchema
from dpsynth.table.schema import Schema


@dataclass(frozen=True)
class FitPlan:
    """All parts of a fit with their noise, made by `plan_fit`. ``n`` may be a noisy count.

    ``schema`` is of one row a record: of the levels, where patients have several.
    """

    schema: Schema
    patients: PatientSchema | None
    options: FitOptions
    n: float
    parts: Parts


def plan_fit(
    records: Records,
    schema: TableSchema,
    options: FitOptions,
    rng: np.random.Generator,
    ledger: Ledger,
    *,
    also: Sequence[Part[Any]] = (),
    every: bool = False,
) -> FitPlan:
    """Count the records if their number is not public, and choose all other noise.

    ``also`` are parts beside those of the generator. ``every`` plans each part that some number of records
    would bring. Raises PrivacyError if the budget is too small for the fit or for a part.
    """
    n, n_std, spent = _count(records, schema.levels, options, rng, ledger)
    parts = planned_parts(schema, n, options, n_std, spent, also=also, every=every)
    parts.check()
    patients = schema if isinstance(schema, PatientSchema) else None
    return FitPlan(schema.levels, patients, options, n, parts)


def read_parts(
    plan: FitPlan,
    records: Records,
    rng: np.random.Generator,
    ledger: Ledger,
    *,
    refine: bool = True,
) -> Reading:
    """Read all parts but a training run, and make the model. ``rng`` is secret.

    ``refine=False`` leaves out post-processing that no later part needs, for an audit of the readings.
    """
    reading, rest = Reading(ledger, records, rng, plan.n), plan.parts.rest
    for part in plan.parts.own:
        if part is not rest:
            reading.read(part)
    reading.model = build(plan, reading, refine=refine)
    for part in plan.parts.also:
        reading.model = part.extend(reading.made, reading.read(part))
    return reading


def train(
    plan: FitPlan, reading: Reading, training: Callable[[GeneratorModel, Settings], Training]
) -> tuple[GeneratorModel, list[dict[str, float]]]:
    """The model after the training run, if the fit has one, and its history."""
    critic = plan.parts.of(Critic)
    if critic is None:
        return reading.made, []
    return dataclasses.replace(critic, training=training).read(reading)


def build(plan: FitPlan, reading: Reading, *, refine: bool = True) -> GeneratorModel:
    """The generator's model, of what its own parts found: post-processing."""
    critic, base_model, marginals = plan.parts.of(Critic), reading.of(BaseModel), reading.of(Columns)
    encoder = Encoder(plan.schema.modelled, marginals)
    latent, law = 0, "normal"
    if critic is not None and isinstance(critic.settings, TrainingSettings):
        latent, law = critic.settings.latent, critic.settings.latent_law
    model = GeneratorModel(plan.schema.modelled, encoder, base_model, None, latent, law)
    if not refine:
        return model
    if base_model is not None and marginals is not None:
        base_model = _refined(base_model, plan, reading, encoder)
        base_model = base_model.coupled(marginals.grids, marginals.n, reading.rng)
    return dataclasses.replace(model, schema=plan.schema, base_model=base_model)


def _refined(
    base_model: BayesianNetwork, plan: FitPlan, reading: Reading, encoder: Encoder
) -> BayesianNetwork:
    """The base model with rules, reweighted and weighted by the statistics beside it."""
    pairs, histogram = reading.of(Pairwise), reading.of(Histogram)
    rules = rules_of_model(plan.schema, plan.patients)
    base_model = with_rules(base_model, plan.schema, encoder.grids, rules)
    if pairs is not None or base_model.rules:
        base_model = reweighted(base_model, pairs, reading.rng)
    return base_model if histogram is None else weighted(base_model, histogram, reading.rng)


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
