"""AIM (McKenna, Mullins, Sheldon and Miklau 2022) as a generator of dpsynth: own-generator.md explains it."""

# ruff: noqa: E402 (JAX computes in float64 from the first import of mbi on)

import math
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import ClassVar

import jax
import numpy as np
from dp_accounting.dp_event import ComposedDpEvent
from pydantic import Field

jax.config.update("jax_enable_x64", True)
import mbi

from dpsynth.files.codec import record
from dpsynth.marginals.binning import Bins
from dpsynth.marginals.chain_fit import ChainFit
from dpsynth.marginals.network import BayesianNetwork
from dpsynth.privacy.events import exponential_mechanism_event, gaussian_event, non_private_event
from dpsynth.privacy.loss import ADD_REMOVE
from dpsynth.privacy.noise import SCORE_STEP, choose, with_noise
from dpsynth.privacy.release import Adaptive
from dpsynth.synthesis.marginals import Chained
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.parts.columns import Columns
from dpsynth.synthesis.parts.part import Part, Parts, Statistic
from dpsynth.synthesis.synthesizer import Synthesizer

MOST_MEGABYTES = 1.0  # of a model: no choice may make it larger


@dataclass(frozen=True, kw_only=True)
class AimRelease(Adaptive[Bins]):
    """Rounds of two steps: choose two columns, and count them with noise. Both see the model so far."""

    name: ClassVar[str] = "AIM"
    adjacency: ClassVar[str] = ADD_REMOVE
    sensitivity: ClassVar[str] = "1 a table and 1 a score: one record moves one cell of a table by 1"
    rounds: int
    noise: float | None
    stage: object = None

    @property
    def detail(self):
        return f"{self.rounds} rounds, each an exponential mechanism and a Gaussian one"

    @property
    def std(self):  # nine tenths of mu^2 for the tables
        return 0.0 if self.noise is None else self.noise * math.sqrt(self.rounds / 0.9)

    @property
    def epsilon(self):  # a choice has a loss of variance epsilon^2 / 3, which is mu^2 of many
        return None if self.noise is None else math.sqrt(3 * 0.1 / self.rounds) / self.noise

    @property
    def event(self):
        if self.noise is None:
            return non_private_event()
        choices = exponential_mechanism_event(self.epsilon, self.rounds)
        return ComposedDpEvent([choices, gaussian_event(self.std, self.rounds)])

    def __call__(self, records, rng):
        """Read the records. The ledger calls it when the cost is posted."""
        bins = self.given
        domain = mbi.Domain(range(len(bins.binnings)), [binning.size for binning in bins.binnings])
        pairs = list(combinations(domain.attributes, 2))
        counts = records.counts([[bins.axes[a], bins.axes[b]] for a, b in pairs])
        exact = dict(zip(pairs, counts, strict=True))
        found = [
            mbi.LinearMeasurement(bins.n * binning.probabilities, (j,), max(self.std, 1.0))
            for j, binning in enumerate(bins.binnings)
        ]
        fit = partial(mbi.estimation.MirrorDescent().estimate, domain, known_total=bins.n, iters=200)
        model = fit(found)
        for _ in range(self.rounds):
            cliques = [tuple(clique) for clique in model.cliques]
            size = mbi.junction_tree.hypothetical_model_size
            left = [pair for pair in pairs if size(domain, [*cliques, pair]) <= MOST_MEGABYTES]
            noise = [self.std * math.sqrt(2 / math.pi) * exact[pair].size for pair in left]
            scores = [
                np.abs(exact[pair] - in_steps(table_of(model, pair))).sum() - in_steps(expected)
                for pair, expected in zip(left, noise, strict=True)
            ]
            pair = left[choose(scores, self.epsilon, rng)]
            (noisy,) = with_noise([exact[pair]], 1.0, self.std, rng)
            found.append(mbi.LinearMeasurement(noisy.ravel(), pair, max(self.std, 1.0)))
            model = fit(found, warm_start=model)
        return model


def table_of(model, columns):
    """Expected counts of some columns, with an axis each."""
    return np.asarray(model.project(tuple(columns)).datavector(flatten=False), np.float64)


def in_steps(values):
    """Whole numbers of a public step: one record then moves a score by at most 1, exactly."""
    return np.rint(np.asarray(values) / SCORE_STEP) * SCORE_STEP


def network(model, bins, marginals, std):
    """The model as a Bayesian network: each column given its earlier neighbours in the junction tree."""
    tree, order = mbi.junction_tree.make_junction_tree(model.domain, [tuple(c) for c in model.cliques])
    order, factors = order[::-1], []
    for place, child in enumerate(order[1:], 1):
        beside = {j for clique in tree.nodes if child in clique for j in clique}
        parents = tuple(j for j in order[:place] if j in beside) or (order[0],)
        factors.append((parents, child, np.maximum(table_of(model, (*parents, child)), 0.0)))
    cells = marginals.probabilities
    return BayesianNetwork("aim", order[0], bins.binnings, cells, tuple(factors), noise_std=std)


@dataclass(frozen=True)
class Rounds(Part[BayesianNetwork]):
    """All rounds, of one share of the budget."""

    rounds: int

    @property
    def release(self):
        return AimRelease(rounds=self.rounds, noise=self.noise, stage=self.stage)

    @property
    def statistics(self):
        return (Statistic("AIM", (self.release.event,), noise_std=self.release.std),)

    def read(self, reading):
        marginals, release = reading.of(Columns), self.release
        bins = Bins.of(marginals, root=None, classes=1, noise_std=release.std)
        return network(reading.run(release.at(bins)), bins, marginals, release.std)


@record
class AimOptions(FitOptions):
    generator: ClassVar[str] = "aim"
    rounds: int = Field(default=8, ge=1)

    def parts(self, described, n, delta, n_std=0.0, *, every=False):
        columns = Columns(described.levels.modelled, n, n_std, share=0.2)
        return Parts((columns, Rounds(self.rounds, share=0.8)), (), delta)

    def build(self, described, reading):
        model = super().build(described, reading)
        rounds, columns = reading.of(Rounds), reading.of(Columns)
        chain = ChainFit(rounds, columns, None, reading.rng, model.schema).chain
        return replace(model, sampler=Chained(chain))


class DPAIM(Synthesizer):
    """The estimator."""

    options = AimOptions

    def __init__(self, epsilon=3.0, delta=None, *, rounds=8, accept_unreviewed=False, random_state=None):
        self.epsilon, self.delta, self.rounds = epsilon, delta, rounds
        self.accept_unreviewed, self.random_state = accept_unreviewed, random_state
