"""Runs whose differing record moves every step by all that the accounting allows: the worst case itself.

What is released is one number a step. A Gaussian mechanism in any number of dimensions gives an adversary
who knows both means the same log-odds as this one number does (the part along the difference of the means),
so that the exact total variation and the exact exceedance are reached here, and nowhere passed.
"""

from __future__ import annotations

import numpy as np

from dpsynth.accounting.events.normal_form import REPLACE_ONE, check_adjacency
from dpsynth.checks import inside, whole
from dpsynth.releases.transcript import Transcript


def run_at_the_bound(
    noise_multiplier: float,
    sampling_prob: float,
    steps: int,
    world: int,
    rng: np.random.Generator,
    *,
    adjacency: str = "add/remove",
) -> Transcript:
    """One run of T steps on D (world 0) or D' (world 1).

    Parameters
    ----------
    noise_multiplier : float
        Of the event of one step, in units of the sensitivity to adding or removing one record.
    sampling_prob : float
        In (0, 1].
    steps : int
        At least 1.
    world : {0, 1}
    rng : numpy.random.Generator
    adjacency : {"add/remove", "replace-one"}
        Under replace-one the two records move the sum in opposite directions.

    Examples
    --------
    >>> run_at_the_bound(8.4, 1.0, 30, 0, np.random.default_rng(0)).released.shape
    (30, 1)
    """
    inside("noise_multiplier", noise_multiplier, 0.0, np.inf)
    one = np.ones((whole("steps", steps), 1))
    other = -one if check_adjacency(adjacency) == REPLACE_ONE else 0.0 * one
    records = np.stack([one, other])
    taken = rng.random(one.shape) < sampling_prob
    released = np.where(taken, records[world], 0.0) + noise_multiplier * rng.standard_normal(one.shape)
    return Transcript(released, 0.0 * one, records, noise_multiplier * one, sampling_prob)
