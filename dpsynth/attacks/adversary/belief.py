"""Belief of the adversary A_DI in table D, step by step: MOSAICrOWN D5.3, Algorithm 1, lines 10 and 11.

The algorithm multiplies beliefs by densities and divides by their sum, which underflows after a few steps of
a few hundred numbers. The same belief is kept here as log-odds, to which each step adds the logarithm of a
ratio of densities. Steps that take the differing record with probability q have mixtures for densities:
``(1 - q) N(others) + q N(others + record)``; the document has q = 1.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpsynth.checks import inside
from dpsynth.releases.critic import Transcript

Floats = NDArray[np.float64]


def log_ratios(seen: Transcript) -> Floats:
    """Logarithm of the density of each step's numbers under D over that under D'.

    Returns
    -------
    ndarray (T,)
        Its sum is the realised privacy loss of the run.

    Notes
    -----
    With r the released numbers without the others', and a the record, all in units of the noise, the ratio
    of ``N(a, 1)`` to ``N(0, 1)`` at r is ``exp(a . r - |a|^2 / 2)``. Both tables are compared with the one
    that has neither record, so that no density is evaluated.

    Examples
    --------
    One number is released, 1 for D and 0 for D', with standard deviation 2: 0.9 speaks for D, a little.

    >>> zero = np.zeros((1, 1))
    >>> seen = Transcript(zero + 0.9, zero, np.stack([zero + 1, zero]), zero + 2.0, 1.0)
    >>> log_ratios(seen).round(3).tolist()
    [0.1]
    """
    released = (seen.released - seen.others) / seen.stds
    under_d, under_d_prime = (
        _log_mixture(released, record / seen.stds, seen.sampling_prob) for record in seen.records
    )
    return under_d - under_d_prime


def _log_mixture(released: Floats, record: Floats, sampling_prob: float) -> Floats:
    """Return log((1 - q) + q N(record, 1) / N(0, 1)) at each row of ``released``."""
    exponent = ((released - record / 2) * record).sum(axis=1)
    if sampling_prob == 1.0:
        return np.asarray(exponent)
    return np.logaddexp(math.log1p(-sampling_prob), math.log(sampling_prob) + exponent)


def log_odds(seen: Transcript, prior: float = 0.5) -> Floats:
    """Log-odds of D against D' before the first step and after each.

    Parameters
    ----------
    seen : Transcript
    prior : float
        Belief in D before the run, inside (0, 1).

    Returns
    -------
    ndarray (T + 1,)
    """
    prior = inside("prior", prior, 0.0, 1.0)
    start = math.log(prior) - math.log1p(-prior)
    return start + np.concatenate([[0.0], np.cumsum(log_ratios(seen))])


def beliefs(seen: Transcript, prior: float = 0.5) -> Floats:
    """Belief in D before the first step and after each: beta_t(D) of Algorithm 1, line 11.

    Examples
    --------
    >>> zero = np.zeros((1, 1))
    >>> seen = Transcript(zero + 0.9, zero, np.stack([zero + 1, zero]), zero + 2.0, 1.0)
    >>> beliefs(seen).round(3).tolist()
    [0.5, 0.525]
    """
    return belief_of(log_odds(seen, prior))


def belief_of(odds: Floats) -> Floats:
    """Belief that log-odds are: ``1 / (1 + e^-odds)``, without overflow."""
    from scipy.special import expit

    return np.asarray(expit(odds))


def chooses_first(seen: Transcript, prior: float = 0.5) -> bool:
    """Whether A_DI names D at the end of the run: whether its belief in D exceeds one half."""
    return bool(log_odds(seen, prior)[-1] > 0.0)


def shifts(seen: Transcript) -> Floats:
    """How far apart the two tables' means are in each step, in units of the noise.

    Returns
    -------
    ndarray (T,)
        ``|(records[0] - records[1]) / stds|``; at most the adjacency's sensitivity over the noise.
    """
    apart = (seen.records[0] - seen.records[1]) / seen.stds
    return np.asarray(np.sqrt((apart * apart).sum(axis=1)))
