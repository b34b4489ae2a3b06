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
from dpsynth.privacy.events import gaussian_event
from dpsynth.privacy.gaussian_loss import analytic_sigma
from dpsynth.privacy.ledger import Ledger
from dpsynth.privacy.ledger_file import Cost
from dpsynth.privacy.profile import Profile
from dpsynth.privacy.records import Records
from dpsynth.privacy.release import CountRelease
from dpsynth.privacy.stages import Stage
from dpsynth.progress import STAGES
from dpsynth.synthesis.model import GeneratorModel
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.parts.critic import Critic
from dpsynth.synthesis.parts.part import Part, Parts, Reading, promised_tv
from dpsynth.synthesis.training import CriticTrainer, Trained, Training
from dpsynth.table.schema import Schema, TableSchema
from dpsynth.wgan.history import TrainingHistory

# ------------------------------------------------------------------------------------------------
# Plan a fit's parts and their noise from the schema, the options and the number of records alone.
#
# A noisy count may choose the parts. Their noise then holds to a cost that was fixed before it.

# Delta where the schema has no public number of records, and the range of n_public^-1.5: above it a
# guarantee says little, below it the accounting resolves nothing.
_DELTA, _LEAST_DELTA, _MOST_DELTA = 1e-6, 1e-11, 1e-3
#: records of a fit that will count them, to look at shares, which do not depend on the number
_SOME = 1000.0


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
    own = options.parts(described, n, delta, n_std, every=every)
    parts = own.beside([part.at(described, n) for part in also])
    if options.epsilon is None:
        return parts.without_noise(_left(delta, spent[1]))
    counted = described.levels.n_public is None
    return parts.with_noise(_left(options.epsilon, spent[0]), _left(delta, spent[1]), counted=counted)


def _left(total: float, spent: float) -> float:
    """What may be spent beside ``spent``: their sum, rounded as a ledger rounds it, is at most ``total``."""
    left = total - spent
    while math.fsum((spent, left)) > total:
        left = math.nextafter(left, 0.0)
    return left


def check_also(schema: TableSchema, options: FitOptions, also: Sequence[Part[Any]]) -> None:
    """Raise InputError for a caller's parts that do not fit the schema or the generator, or leave nothing."""
    if not also:
        return
    for part in also:
        if part.needs_associations and not options.associates:
            raise InputError(
                f"{type(part).__name__} needs a model with the columns' associations, and generator "
                f"{options.generator} has none when further parts are read. Use generator marginals "
                "(DPMarginals)"
            )
    n = None if schema.n_public is None else float(schema.n_public)
    own = options.parts(schema, n or _SOME, total_delta(schema.levels.modelled, options))
    own.beside([part.at(schema, n) for part in also])


def outlook(schema: TableSchema, options: FitOptions, also: Sequence[Part[Any]]) -> list[str]:
    """What the noise of further parts will do, before a record is read: a sentence each.

    Raises InputError as `check_also`, and PrivacyError if the budget is too small for a part.
    """
    check_also(schema, options, also)
    if not also:
        return []
    if schema.n_public is None:
        return [line for part in also for line in part.at(schema, None).outlook]
    parts = planned_parts(schema, float(schema.n_public), options, also=also)
    parts.check()
    return [line for part in parts for line in part.outlook]


@dataclass(frozen=True)
class FitPlan:
    """All parts of a fit with their noise, made by `plan_fit`. ``n`` may be a noisy count."""

    schema: TableSchema
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
    return FitPlan(schema, options, n, parts)


def read_parts(plan: FitPlan, reading: Reading) -> GeneratorModel:
    """Read all parts but a training run, and make the model."""
    for part in plan.parts.own:
        if part is not plan.parts.rest:
            STAGES.info("fit: %s", ", ".join(each.name for each in part.statistics))
            reading.read(part)
    STAGES.info("fit: the model of these statistics")
    reading.model = plan.options.build(plan.schema, reading)
    for part in plan.parts.also:
        STAGES.info("fit: %s", type(part).__name__.lower())
        reading.model = part.extend(reading.made, reading.read(part))
    return reading.made


def train(
    plan: FitPlan, reading: Reading, training: Callable[[GeneratorModel, CriticTrainer], Training]
) -> Trained:
    """The model after the training run, if the fit has one, and its history."""
    critic = plan.parts.of(Critic)
    if critic is None:
        return reading.made, TrainingHistory()
    STAGES.info("fit: %s", ", ".join(each.name for each in critic.statistics))
    return dataclasses.replace(critic, training=training).read(reading)


def _for_count(schema: Schema, options: FitOptions) -> tuple[float, float]:
    """What a private count may cost."""
    share = options.division.count
    return share * (options.epsilon or 0.0), share * total_delta(schema, options)


def profile_without_count(schema: TableSchema, options: FitOptions) -> Profile:
    """What a fit promises that has yet to count its records: a stage for the count, and one for the rest."""
    epsilon, delta = options.epsilon or 0.0, total_delta(schema.levels.modelled, options)
    spent = _for_count(schema.levels, options)
    counted = Profile([gaussian_event(analytic_sigma(*spent))])
    mu = 1 / analytic_sigma(_left(epsilon, spent[0]), _left(delta, spent[1]))
    return Profile.promised(epsilon, delta, min(counted.tv() + promised_tv(mu), 1.0))


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
    part = _for_count(schema, options)
    noise, detail = None, "no noise"
    if options.epsilon is not None:
        noise = analytic_sigma(*part)
        detail = f"Gaussian noise on the count, a stage that costs ε = {part[0]:.3g} at δ = {part[1]:.3g}"
    count = CountRelease(noise_multiplier=noise, stage=Stage.begin(part[1]), detail=detail)
    if noise is not None:  # the least noise has this epsilon up to rounding, and the ledger says what it is
        part = max(part[0], Profile([count.event]).epsilon(part[1])), part[1]
    return ledger.run(count, records, rng), count.noise_std, part
