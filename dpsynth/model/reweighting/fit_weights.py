"""Weigh a prior's draws by released votes: post-processing, free of cost.

Where the prior puts q of its draws into a group and the votes say c of n records, c / (n q) is what a draw of
the group should count for. Both are uncertain, and groups are many: departures of c / (n q) from 1 are taken
to have one variance, which is estimated from how far all counts together depart beyond their noise and their
sampling (empirical Bayes, Efron and Morris 1973), and each is shrunk accordingly. Where votes tell nothing
but noise, all weights are 1. What released Fourier features tell beside them is a smooth factor
(`dpsynth.model.reweighting.fit_fourier`), which is fitted to draws that have the groups' weights already.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpsynth.model.base_model.network import Prior
from dpsynth.model.reweighting.fit_fourier import FourierTilt, fourier_tilt
from dpsynth.model.reweighting.weights import Weighting
from dpsynth.releases.votes import Votes

Floats = NDArray[np.float64]

#: Draws of the prior that say what it expects; and those that waves are fitted to.
_DRAWS, _FITTED = 60_000, 20_000
#: Most that a draw counts for, by votes and waves, and for the sake of marginals alone: so many are made at
#: most for each one that is kept.
_MOST, _MOST_RAKED = 16.0, 4.0
_ROUNDS = 20
#: Standard deviations by which a public number of records may miss the votes' sum.
_DOUBT = 3.0
#: Of the draws, those whose weight may be above the greatest that counts.
_ABOVE = 0.001


def group_weights(votes: Votes, drawn: Floats, draws: int) -> Floats:
    """What a draw of each group counts for, shape (groups,): at most 16, and 1 on average over draws.

    Parameters
    ----------
    votes : Votes
    drawn : array, shape (groups,)
        Share of the prior's draws in each group.
    draws : int
        From how many draws they are.

    Examples
    --------
    >>> from dpsynth.releases.groups import Groups
    >>> groups = Groups((), np.zeros((2, 0), np.float32))
    >>> even = np.array([0.5, 0.5])
    >>> group_weights(Votes(groups, np.array([900.0, 100.0]), 1.0, 1000.0), even, 60_000).round(2)
    array([1.8, 0.2])
    >>> group_weights(Votes(groups, np.array([510.0, 490.0]), 30.0, 1000.0), even, 60_000)  # all noise
    array([1., 1.])
    """
    n = votes.cast
    expected = n * drawn
    gap = votes.counts - expected
    variance = votes.noise_std**2 + expected * (1.0 + n / draws)
    between = max((gap @ gap - variance.sum()) / max(expected @ expected, 1e-300), 0.0)
    if between == 0.0:
        return np.ones(len(drawn))
    kept = between * expected / (between * expected**2 + variance + 1e-300)
    weights = np.maximum(1.0 + kept * gap, 0.0)
    for _ in range(_ROUNDS):
        weights = np.minimum(weights / max(weights @ drawn, 1e-300), _MOST)
    return np.asarray(weights)


def weighted(prior: Prior, votes: Votes, rng: np.random.Generator) -> Prior:
    """The prior with weights that make its draws agree with released votes.

    Parameters
    ----------
    prior : Prior
        Tilted already, where it is to be.
    votes : Votes
        Of the same bins.
    rng : numpy Generator
    """
    bare = replace(prior, weighting=None)
    draws = bare.sample(_DRAWS, rng)
    label = votes.groups.labels(draws)
    drawn = np.bincount(label, minlength=votes.groups.size) / len(draws)
    weights = group_weights(votes, drawn, len(draws))
    counted = weights[label]
    waves = _waves(votes, draws[:_FITTED], counted[:_FITTED])
    if waves is not None:
        counted = counted * waves.of(draws)
        weights, counted = weights / counted.mean(), counted / counted.mean()
    columns, missing, of = _kept_marginals(bare, draws, counted)
    asked, most = (float(np.quantile(by, 1 - _ABOVE)) for by in (counted, of))
    most = float(np.clip(most, 1.0, np.clip(asked, _MOST_RAKED, _MOST)))
    weighting = Weighting(votes.groups, weights, columns, missing, most, votes.noise_std, waves)
    return replace(bare, weighting=weighting)


def _waves(votes: Votes, draws: NDArray[np.int64], weights: Floats) -> FourierTilt | None:
    """What the released features tell beside the groups' weights."""
    if votes.features is None or votes.waves is None or not weights.any():
        return None
    n = _records(votes)
    return fourier_tilt(votes.features, votes.waves / n, votes.noise_std / n, n, draws, weights)


def _records(votes: Votes) -> float:
    """How many records voted: the public or released number, if the votes' own sum does not contradict it.

    That sum has the noise of all groups, and a mean of waves that is a hundredth off is structure.
    """
    own, doubt = votes.cast, _DOUBT * votes.noise_std * np.sqrt(votes.groups.size)
    return votes.n if abs(own - votes.n) <= doubt else own


def _kept_marginals(
    prior: Prior, draws: NDArray[np.int64], weights: Floats
) -> tuple[tuple[Floats, ...], Floats, Floats]:
    """Factors that keep released marginals and the law of missing values (raking), and weights with them."""
    number = prior.missing(draws)
    columns = [np.ones(binning.size) for binning in prior.binnings]
    missing = np.ones(len(prior.panel) + 1)
    if np.all(weights == 1.0):
        return tuple(columns), missing, weights
    for _ in range(_ROUNDS):
        for j, binning in enumerate(prior.binnings):
            weights = weights * _factor(columns[j], draws[:, j], weights, binning.probabilities)
        if prior.missing_law is not None:
            weights = weights * _factor(missing, number, weights, prior.counted.law)
    return tuple(columns), missing, weights


def _factor(kept: Floats, label: NDArray[np.int64], weights: Floats, law: Floats) -> Floats:
    """Factor of each draw towards a law of its labels; ``kept`` is multiplied by the labels' factors."""
    have = np.bincount(label, weights=weights, minlength=len(law)) / len(label)
    factor = np.divide(law, have, out=np.ones_like(have), where=have > 0)
    np.clip(factor, 0.25, 4.0, out=factor)
    kept *= factor
    return np.asarray(factor[label])
