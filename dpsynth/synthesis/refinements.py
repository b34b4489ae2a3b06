"""What a prior's draws are refined by: moments of pairs of columns, and votes for groups of draws with waves.

Both are read, each in one release, with the prior as it was bought; what is made of them afterwards is
post-processing: the prior is tilted towards the moments, and its draws are weighed by the votes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsynth.accounting.ledger.ledger import Ledger
from dpsynth.model.base_model.network import Prior
from dpsynth.model.reweighting.fit_reweighting import tilted
from dpsynth.model.reweighting.fit_weights import weighted
from dpsynth.releases.bins import Bins
from dpsynth.releases.features import PairFeatures
from dpsynth.releases.fourier import FourierFeatures
from dpsynth.releases.groups import Groups
from dpsynth.releases.moments import Moments
from dpsynth.releases.records import Records
from dpsynth.releases.votes import Votes, group_count
from dpsynth.synthesis.budget import Releases
from dpsynth.table.marginals import Marginals
from dpsynth.table.schema import Schema

#: Draws of the prior that say how long the features of a record are, and where groups are.
_DRAWS = 20_000


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


def release_refinements(
    records: Records,
    releases: Releases,
    marginals: Marginals,
    prior: Prior,
    schema: Schema,
    rng: np.random.Generator,
    ledger: Ledger,
) -> Refinements:
    """Moments and votes, as far as they are among the releases; features and groups are of the prior's draws.

    Parameters
    ----------
    records : Records
    releases : Releases
    marginals : Marginals
        Released.
    prior : Prior
        Released, neither tilted nor weighed.
    schema : Schema
    rng : numpy Generator
    ledger : Ledger
    """
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


def refined(prior: Prior, bought: Refinements, rng: np.random.Generator) -> Prior:
    """The prior, tilted and weighed by what was bought: post-processing."""
    if bought.moments is not None:
        prior = tilted(prior, bought.moments, rng)
    if bought.votes is not None:
        prior = weighted(prior, bought.votes, rng)
    return prior
