"""Weigh a base model's samples by a released histogram: post-processing, free of cost.

The base model puts q of its samples into a group, and the nearest-neighbour histogram counts c of n records.
A sample of the group should then count for c / (n q). Both are uncertain, and groups are many. So departures
of c / (n q) from 1 are taken to have one variance. It is estimated from how far all counts together depart
beyond their noise and their sampling (empirical Bayes, Efron and Morris 1973). Each is shrunk accordingly. If
the nearest-neighbour histogram is only noise, all weights are 1. Released Fourier features add a smooth
factor (`dpsynth.model.reweighting.weights`). It is fitted to samples that have the groups' weights already.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpsynth.model.base_model.network import BayesianNetwork
from dpsynth.model.reweighting.weights import FourierReweighting, Weighting, fourier_reweighting
from dpsynth.releases.neighbour_histogram import NeighbourHistogram

Floats = NDArray[np.float64]

#: Samples of the base model from which its expectations are computed, and those that random Fourier features
#: are fitted to.
_DRAWS, _FITTED = 60_000, 20_000
#: Most that a draw counts for, by the nearest-neighbour histogram and random Fourier features, and for the
#: sake of marginals alone: so many are made at most for each one that is kept.
_MOST, _MOST_RAKED = 16.0, 4.0
_ROUNDS = 20
#: Standard deviations by which a public number of records may miss the nearest-neighbour histogram's sum.
_DOUBT = 3.0
#: Of the draws, those whose weight may be above the greatest that counts.
_ABOVE = 0.001


def group_weights(histogram: NeighbourHistogram, drawn: Floats, draws: int) -> Floats:
    """Weight of a sample of each group, shape (groups,): at most 16, and 1 on average over samples.

    ``drawn``, shape (groups,): share of the base model's samples in each group.

    Examples
    --------
    >>> from dpsynth.releases.neighbour_histogram import Groups
    >>> groups = Groups((), np.zeros((2, 0), np.float32))
    >>> even = np.array([0.5, 0.5])
    >>> clear = NeighbourHistogram(groups, np.array([900.0, 100.0]), 1.0, 1000.0)
    >>> group_weights(clear, even, 60_000).round(2)
    array([1.8, 0.2])
    >>> noise = NeighbourHistogram(groups, np.array([510.0, 490.0]), 30.0, 1000.0)
    >>> group_weights(noise, even, 60_000)
    array([1., 1.])
    """
    n = histogram.cast
    expected = n * drawn
    gap = histogram.counts - expected
    variance = histogram.noise_std**2 + expected * (1.0 + n / draws)
    between = max((gap @ gap - variance.sum()) / max(expected @ expected, 1e-300), 0.0)
    if between == 0.0:
        return np.ones(len(drawn))
    kept = between * expected / (between * expected**2 + variance + 1e-300)
    weights = np.maximum(1.0 + kept * gap, 0.0)
    for _ in range(_ROUNDS):
        weights = np.minimum(weights / max(weights @ drawn, 1e-300), _MOST)
    return np.asarray(weights)


def weighted(
    base_model: BayesianNetwork, histogram: NeighbourHistogram, rng: np.random.Generator
) -> BayesianNetwork:
    """The base model with weights that make its samples agree with the released histogram.

    ``base_model``: reweighted already, if it is to be.
    """
    bare = replace(base_model, weighting=None)
    draws = bare.sample(_DRAWS, rng)
    label = histogram.groups.labels(draws)
    drawn = np.bincount(label, minlength=histogram.groups.size) / len(draws)
    weights = group_weights(histogram, drawn, len(draws))
    counted = weights[label]
    fourier = _fourier(histogram, draws[:_FITTED], counted[:_FITTED])
    if fourier is not None:
        counted = counted * fourier.of(draws)
        weights, counted = weights / counted.mean(), counted / counted.mean()
    columns, missing, of = _kept_marginals(bare, draws, counted)
    swept = np.full(missing.shape, bare.reweighting is not None)
    if bare.reweighting is not None:
        # sweeps draw with the factors: there is less to choose by, and so fewer samples are needed
        swept &= True if bare.missing_law is None else ~bare.counted.loose
        bare = replace(bare, reweighting=bare.reweighting.times(columns, np.where(swept, missing, 1.0)))
        among = swept[bare.missing(draws)]
        raked = np.divide(of, counted, out=np.ones_like(of), where=counted > 0)
        mean = raked[among].mean() if among.any() else 1.0
        missing, of = np.where(swept, mean, missing), np.where(among, mean * counted, of)
    asked, most = (float(np.quantile(by, 1 - _ABOVE)) for by in (counted, of))
    most = float(np.clip(most, 1.0, np.clip(asked, _MOST_RAKED, _MOST)))
    groups, noise_std = histogram.groups, histogram.noise_std
    weighting = Weighting(groups, weights, columns, missing, swept, most, noise_std, fourier)
    return replace(bare, weighting=weighting)


def _fourier(
    histogram: NeighbourHistogram, draws: NDArray[np.int64], weights: Floats
) -> FourierReweighting | None:
    """The factor from released features, beside the groups' weights."""
    if histogram.features is None or histogram.fourier is None or not weights.any():
        return None
    n = _records(histogram)
    mean, noise_std = histogram.fourier / n, histogram.noise_std / n
    return fourier_reweighting(histogram.features, mean, noise_std, n, draws, weights)


def _records(histogram: NeighbourHistogram) -> float:
    """The number of records: the public or released one, unless the histogram's own sum contradicts it.

    The sum has the noise of all groups, and a mean of random Fourier features that is a hundredth off is
    structure.
    """
    own, doubt = histogram.cast, _DOUBT * histogram.noise_std * np.sqrt(histogram.groups.size)
    return histogram.n if abs(own - histogram.n) <= doubt else own


def _kept_marginals(
    base_model: BayesianNetwork, draws: NDArray[np.int64], weights: Floats
) -> tuple[tuple[Floats, ...], Floats, Floats]:
    """Rake: factors that keep released marginals and missing values, and weights with them."""
    number = base_model.missing(draws)
    columns = [np.ones(binning.size) for binning in base_model.binnings]
    missing = np.ones(len(base_model.panel) + 1)
    if np.all(weights == 1.0):
        return tuple(columns), missing, weights
    for _ in range(_ROUNDS):
        for j, binning in enumerate(base_model.binnings):
            weights = weights * _factor(columns[j], draws[:, j], weights, binning.probabilities)
        if base_model.missing_law is not None:
            weights = weights * _factor(missing, number, weights, base_model.counted.law)
    return tuple(columns), missing, weights


def _factor(kept: Floats, label: NDArray[np.int64], weights: Floats, law: Floats) -> Floats:
    """Factor of each sample towards ``law`` of labels, by whose factors ``kept`` is multiplied."""
    have = np.bincount(label, weights=weights, minlength=len(law)) / len(label)
    factor = np.divide(law, have, out=np.ones_like(have), where=have > 0)
    np.clip(factor, 0.25, 4.0, out=factor)
    kept *= factor
    return np.asarray(factor[label])
