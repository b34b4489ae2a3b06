"""From private records to a model, one noisy statistic after the other: the one place that orders them.

The order is: number of records (only where the schema has no ``n_public``), single-column counts, the base
model's edges and tables, moments, votes, studies. The critic's steps come last
(`dpsynth.synthesis.training`). The ledger runs each of them. What is made of them between is post-processing.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from dpsynth.accounting.contents import Stage
from dpsynth.accounting.gaussian import analytic_sigma
from dpsynth.accounting.ledger import Ledger
from dpsynth.model.base_model.network import Prior
from dpsynth.model.columns.marginals import estimate_marginals
from dpsynth.model.generator import GeneratorModel
from dpsynth.model.reweighting.fit_reweighting import tilted
from dpsynth.model.reweighting.fit_weights import weighted
from dpsynth.releases.bins import Bins
from dpsynth.releases.count import CountRelease
from dpsynth.releases.features import FourierFeatures, PairFeatures
from dpsynth.releases.groups import Groups
from dpsynth.releases.moments import Moments
from dpsynth.releases.records import Records
from dpsynth.releases.votes import Votes, group_count
from dpsynth.synthesis.budget import Releases, Shares
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.planning import Blueprint, choose_noise, draw_up, total_delta
from dpsynth.synthesis.studies import check_widening, fit_studies
from dpsynth.table.encoder import Encoder
from dpsynth.table.marginals import Marginals
from dpsynth.table.schema import Schema

#: Draws of the base model that say how long the features of a record are, and where groups are.
_DRAWS = 20_000


@dataclass(frozen=True)
class FitPlan:
    """What a fit releases, noise and all; made by `plan_fit`.

    Parameters
    ----------
    schema : Schema
    options : FitOptions
    n : float
        Public or noisy number of records.
    blueprint : Blueprint
    releases : Releases
    """

    schema: Schema
    options: FitOptions
    n: float
    blueprint: Blueprint
    releases: Releases


@dataclass(frozen=True)
class Refinements:
    """What was bought beside the prior.

    Parameters
    ----------
    moments : Moments, optional
    votes : Votes, optional
    """

    moments: Moments | None = None
    votes: Votes | None = None


def plan_fit(
    records: Records, schema: Schema, options: FitOptions, rng: np.random.Generator, ledger: Ledger
) -> FitPlan:
    """Count the records, where their number is not public, and choose the noise of everything else.

    Raises
    ------
    PrivacyError
        If the budget cannot pay for the run, or cannot bear a study.
    """
    n, n_std, spent = _count(records, schema, options, rng, ledger)
    blueprint = draw_up(schema.modelled, n, options, n_std)
    releases = choose_noise(blueprint, options, spent)
    check_widening(options.studies, releases.studies, schema, n)
    return FitPlan(schema, options, n, blueprint, releases)


def fit_releases(records: Records, plan: FitPlan, rng: np.random.Generator, ledger: Ledger) -> GeneratorModel:
    """Release everything but the critic's steps, and make the model of it; the generator is not trained yet.

    Parameters
    ----------
    records : Records
        Conformed to the schema.
    plan : FitPlan
    rng : numpy.random.Generator
        Of noise and draws (secret).
    ledger : Ledger
    """
    model, bought = release_statistics(records, plan, rng, ledger)
    model = dataclasses.replace(_refined(model, bought, rng), schema=plan.schema)
    studies, planned = plan.options.studies, plan.releases.studies
    fitted = fit_studies(records, model, studies, planned, plan.n, rng, ledger)
    return dataclasses.replace(model, studies=fitted)


def release_statistics(
    records: Records, plan: FitPlan, rng: np.random.Generator, ledger: Ledger
) -> tuple[GeneratorModel, Refinements]:
    """Single-column counts, base model, and what it will be reweighted to: all but studies and critic steps.

    Returns
    -------
    GeneratorModel
        Neither reweighted nor trained.
    Refinements
    """
    options, releases, training = plan.options, plan.releases, plan.blueprint.training
    schema = plan.blueprint.needs.schema
    thesis = options.preset == "healthgan"
    marginals = None
    if releases.marginals is not None:
        marginals = estimate_marginals(releases.marginals, ledger.run(releases.marginals, records, rng))
    prior, bought = None, Refinements()
    if releases.prior is not None and marginals is not None:
        prior = releases.prior.run(ledger, records, marginals, rng)
        bought = _release_refinements(records, releases, marginals, prior, schema, rng, ledger)
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


def _release_refinements(
    records: Records,
    releases: Releases,
    marginals: Marginals,
    prior: Prior,
    schema: Schema,
    rng: np.random.Generator,
    ledger: Ledger,
) -> Refinements:
    """Moments and votes, where they are among the releases; features and groups are of the prior's draws."""
    if releases.moments is None and releases.votes is None:
        return Refinements()
    bins, draws = Bins(marginals.grids, prior.binnings, marginals.n), prior.sample(_DRAWS, rng)
    moments, votes = None, None
    if releases.moments is not None:
        outcome = None if schema.outcome is None else schema.names.index(schema.outcome)
        products = PairFeatures.of(bins, draws, outcome)
        moments = ledger.run(releases.moments.of(bins, products), records, rng)
    if releases.votes is not None:
        groups = Groups.of(bins, draws, group_count(bins.n, releases.votes.noise_std), rng)
        features = FourierFeatures.of(groups.tables, rng)
        votes = ledger.run(releases.votes.of(bins, groups, features), records, rng)
    return Refinements(moments, votes)


def _refined(model: GeneratorModel, bought: Refinements, rng: np.random.Generator) -> GeneratorModel:
    """The model with its base model reweighted by what was bought: post-processing."""
    prior = model.prior
    if prior is None:
        return model
    if bought.moments is not None:
        prior = tilted(prior, bought.moments, rng)
    if bought.votes is not None:
        prior = weighted(prior, bought.votes, rng)
    return dataclasses.replace(model, prior=prior)


def _count(
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
