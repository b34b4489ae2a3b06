"""Fit a model to private records: count them if need be, plan all parts, and read them in order.

The number of records comes first, if the schema has no ``n_public``. The generator's own statistics follow,
then what is read beside it (rows of patients, pre-specified regressions), and a training run last. The ledger
reads each. Everything between is post-processing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth.errors import InputError
from dpsynth.marginals.network import BayesianNetwork, with_rules
from dpsynth.marginals.reweighting import reweighted, weighted
from dpsynth.patients.schema import PatientSchema, TableSchema
from dpsynth.privacy.budget_file import Cost
from dpsynth.privacy.contents import Stage
from dpsynth.privacy.gaussian import analytic_sigma
from dpsynth.privacy.ledger import Ledger
from dpsynth.privacy.records import Records
from dpsynth.privacy.release import CountRelease
from dpsynth.synthesis.model import GeneratorModel
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.parts.base_model import BaseModel
from dpsynth.synthesis.parts.columns import Columns
from dpsynth.synthesis.parts.critic import Critic
from dpsynth.synthesis.parts.histogram import Histogram
from dpsynth.synthesis.parts.pairwise import Pairwise
from dpsynth.synthesis.parts.part import Part, Parts, Reading
from dpsynth.synthesis.parts.regressions import Regressions
from dpsynth.synthesis.row_rules import rules_of_model
from dpsynth.synthesis.studies import MOST_WIDENING, check_studies, may_lack
from dpsynth.synthesis.training import Settings, Training
from dpsynth.table.encoder import Encoder
from dpsynth.table.schema import Schema
from dpsynth.wgan.settings import TrainingSettings

# ------------------------------------------------------------------------------------------------
# Plan a fit's parts and their noise from the schema, the options and the number of records alone.
#
# A noisy count may choose the parts. Their noise then holds to a cost that was fixed before it.

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
