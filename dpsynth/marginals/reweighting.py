"""A base model reweighted to further noisy statistics: post-processing, free of cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpsynth.marginals.gibbs import Reweighting
from dpsynth.marginals.network import BayesianNetwork
from dpsynth.marginals.statistics import PairwiseStatistics

# ------------------------------------------------------------------------------------------------
# Fit a reweighting: the distribution nearest to the base model that has the released mean features.
#
# With released means m, noise of variance s^2 in each and sampling noise of variance C / n (C: a feature's
# variance), the reweighting maximises
#
#     T . m  -  log E_base[exp(T . features)]  -  1 / 2 sum of w (s^2 + C / n) T^2,
#
# which is convex. Its penalty assumes a Gaussian for what the tree lacks: the base model counts for as much
# as w records. This w is estimated: the gap between released and base model means has variance ``C / w + s^2
# + C / n`` (empirical Bayes, Efron and Morris 1973). If the gap is all noise, w is infinite, and n is taken.
# Kinds of products have a w each, because the base model is not equally precise for all. A TAN has counted
# every column with the outcome, but few pairs of the others, and few of these in each class. A product that
# stands out of its kind, as one interaction among many pairs without any, has its own w.
#
# The gradient needs means under the reweighted distribution. They come from chains that continue while T
# changes (stochastic approximation, Younes 1989, and "persistent contrastive divergence", Tieleman 2008).
# Each step is one sweep of the heat bath. Each product's step is divided by its variance. Steps of products
# that go together would add up. If numbers are normal, covariances of their products are products of
# correlations (Isserlis 1918). So steps are divided by each eigenvalue above 1 of the numbers' correlations,
# on both sides. Compared with a WGAN, T is the critic and the chains are the generator. Post-processing,
# free of cost.

Floats = NDArray[np.float64]

#: Records of the chains: as many as the table has, but no fewer and no more.
_CHAINS = (10_000, 40_000)
#: Products of all chains together, at most, where there are more chains than the least number.
_PRODUCTS = 400_000_000
_STEPS, _RATE = 60, 0.3
#: Longest step of one entry of the reweighting.
_LONGEST = 0.3
#: The last part of the steps, whose reweightings are averaged.
_AVERAGED = 1 / 3
#: Shares of bins are compared with this much added to each.
_SHARE = 1e-4
#: A product is believed by itself from so many standard deviations of noise and of its kind on.
_OUTSTANDING = 4.0
#: Least sum of variances of a kind of products.
_LEAST = 1e-12

#: Draws of the base model that its own means are taken from.
_DRAWS = 40_000


def weights_of(
    released: PairwiseStatistics, mean: Floats, variance: Floats, draws: int
) -> tuple[Floats, Floats]:
    """Number of records that the base model counts for, per product, or n if statistics are only noise.

    ``mean``, ``variance``, shape of ``features.products``: of the features under the base model.

    Returns array, shape (3,): by the kind of a product (`PairFeatures.kinds`). Also array, of the shape of
    ``features.products``: of each product. This is its kind's number, or its own if it stands out of its kind
    and of noise.
    """
    kinds, square = released.features.kinds, (released.mean - mean) ** 2
    noise = released.noise_std**2 + variance * (1.0 / released.n + 1.0 / draws)
    pairs = np.zeros(kinds.shape, dtype=bool)
    pairs[released.features.places] = True
    outstanding = np.zeros_like(pairs)
    for _ in range(2):  # the second time without those of the first
        rest = pairs & ~outstanding

        def sums(of: Floats, among: NDArray[np.bool_] = rest) -> Floats:
            return np.bincount(kinds[among], weights=of[among], minlength=3).astype(np.float64)

        known = sums(variance)
        weights = known / np.maximum(sums(square - noise), np.maximum(known, _LEAST) / released.n)
        # of a column that hardly varies pairwise statistics are noise, whatever their gap
        tells = known > np.maximum(sums(np.full_like(square, released.noise_std**2)), _LEAST)
        weights = np.where(tells, weights, released.n)
        of_each = weights[kinds]
        outstanding = (square > _OUTSTANDING**2 * (noise + variance / of_each)) & tells[kinds]
    own = variance / np.maximum(square, _LEAST)
    return weights, np.where(outstanding, np.minimum(own, of_each), of_each)


def reweighted(
    base_model: BayesianNetwork, released: PairwiseStatistics | None, rng: np.random.Generator
) -> BayesianNetwork:
    """The base model with a reweighting that makes its samples agree with released pairwise statistics.

    ``base_model``: the fit starts from its reweighting, if it has one.
    ``released``: None if there are none. Only the columns' terms are then fitted, which rules make necessary.
    """
    bare = replace(base_model, reweighting=None)
    if released is None:
        nothing = Reweighting.of_columns(bare.binnings, bare.panel)
        released = PairwiseStatistics(nothing.features, np.zeros(nothing.pairs.shape), 0.0, n=_CHAINS[0])
    mean, variance = released.features.mean_and_variance(bare.sample(_DRAWS, rng))
    weights = weights_of(released, mean, variance, _DRAWS)[1]
    most = _PRODUCTS // max(released.features.products.size, 1)
    chains = base_model.sample(int(np.clip(min(released.n, most), *_CHAINS)), rng)
    fit = _Fit(bare, released, weights, chains, rng)
    if base_model.reweighting is None:
        return replace(bare, reweighting=fit.run(_STEPS))
    start = base_model.reweighting
    fit.parts = [part.astype(np.float64) for part in (start.pairs, start.missing, *start.columns)]
    return replace(bare, reweighting=fit.run(_STEPS // 3))


class _Fit:
    """Reweighting and chains during a fit."""

    def __init__(
        self,
        base_model: BayesianNetwork,
        released: PairwiseStatistics,
        weights: Floats,
        chains: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> None:
        self.base_model, self.released, self.chains, self.rng = base_model, released, chains, rng
        #: of each product
        self.weights = weights
        self.bath = base_model.heat_bath()
        #: of each block of products
        self.damping = [_damping(one) for one, _ in released.features.factors(chains, np.float32)]
        pairs = np.zeros(released.features.products.shape)
        columns = [np.zeros(binning.size) for binning in base_model.binnings]
        missing = np.zeros(len(base_model.panel) + 1)
        if base_model.missing_law is not None:
            # the chains have the released number of missing values, the tables alone another one
            missing += base_model.counted.log_number
            for j, factor in base_model.counted.columns.items():
                columns[j][self.bath.last[j]] += np.log(factor)
        #: T, m and h of a `Reweighting`
        self.parts = [pairs, missing, *columns]

    def run(self, steps: int) -> Reweighting:
        """The average of the last reweightings."""
        kept, totals = 0, [np.zeros_like(part) for part in self.parts]
        for step in range(steps):
            # full steps first; towards the end shorter ones, whose chains can follow
            self.step(_RATE * min(1.0, steps / (2.0 * (step + 1))))
            if step >= steps * (1 - _AVERAGED):
                kept += 1
                totals = [total + part for total, part in zip(totals, self.parts, strict=True)]
            self.bath.sweep(self.chains, self.reweighting(), self.rng)
        self.parts = [total / kept for total in totals]
        return self.reweighting()

    def reweighting(self) -> Reweighting:
        """The reweighting as it is."""
        released = self.released
        pairs, missing, *columns = (part.astype(np.float32) for part in self.parts)
        mean, std = released.mean.astype(np.float32), released.noise_std
        return Reweighting(released.features, pairs, tuple(columns), missing, mean, std)

    def step(self, rate: float) -> None:
        """Move the reweighting towards the released numbers, from where the chains are."""
        pairs, missing, *columns = self.parts
        mean, variance = self.released.features.mean_and_variance(self.chains)
        penalty = self.weights * (self.released.noise_std**2 + variance / self.released.n)
        gradient = self.released.mean - mean - penalty * pairs
        scale = np.sqrt(np.maximum(variance + penalty, 1e-6))
        move = rate * self.damped(gradient / scale) / scale
        pairs += np.where(self.released.features.products, np.clip(move, -_LONGEST, _LONGEST), 0.0)
        n = len(self.chains)
        for j, (binning, column) in enumerate(zip(self.base_model.binnings, columns, strict=True)):
            have = np.bincount(self.chains[:, j], minlength=binning.size) / n
            column += rate * _towards(binning.probabilities, have)
        if self.bath.panel:
            have = np.bincount(self.bath.missing(self.chains), minlength=len(missing)) / n
            missing += rate * _towards(self.base_model.counted.law, have)

    def damped(self, move: Floats) -> Floats:
        """A move whose parts along numbers that go together are made shorter."""
        blocks = np.split(move, len(self.damping), axis=1)
        return np.hstack([by @ block @ by for by, block in zip(self.damping, blocks, strict=True)])


def _damping(numbers: NDArray[np.float32]) -> Floats:
    """Inverse of the numbers' correlations, where these are stronger than of independent numbers.

    ``numbers``, shape (m, size).
    """
    apart = numbers - numbers.mean(axis=0)
    apart /= np.maximum(np.sqrt((apart**2).mean(axis=0)), 1e-3)
    strength, along = np.linalg.eigh((apart.T @ apart / len(apart)).astype(np.float64))
    return (along / np.maximum(strength, 1.0)) @ along.T


def _towards(wanted: Floats, have: Floats) -> Floats:
    return np.clip(np.log((wanted + _SHARE) / (have + _SHARE)), -0.5, 0.5)
