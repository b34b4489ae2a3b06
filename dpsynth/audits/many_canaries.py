"""One reading of one table that holds many made-up records, each by a coin: an audit without repetition.

Steinke, Nasr, Jagielski (2023). Canaries share cells, so that each adds to the noise of the others' scores;
the bound holds all the same, and loses little while their number is small beside the noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth.attacks.audit.one_run import epsilon_lower, right_guesses
from dpsynth.audits.releases import exact
from dpsynth.releases.gaussian import GaussianRelease
from dpsynth.releases.records import FrameRecords

#: Part of the canaries whose coins are guessed.
GUESSED = 0.2


@dataclass(frozen=True)
class OneRun:
    """What one reading showed.

    Attributes
    ----------
    canaries, guesses, right : int
    epsilon_lower : float
        At delta, with confidence ``level``.
    """

    canaries: int
    guesses: int
    right: int
    epsilon_lower: float


def audit_in_one_run(
    release: GaussianRelease,
    canaries: pd.DataFrame,
    *,
    delta: float,
    rng: np.random.Generator,
    level: float = 0.95,
) -> OneRun:
    """Read a release once and guess the coin of every canary from the noisy counts.

    Parameters
    ----------
    release : GaussianRelease
    canaries : DataFrame of shape (m, columns)
        Made-up records.
    delta : float
    rng : numpy.random.Generator
        Of coins and noise.
    level : float
    """
    coins = rng.random(len(canaries)) < 0.5
    nobody = exact(release, canaries.iloc[:0])
    # what each canary adds to the counts, by itself: shape (m, cells)
    own = np.stack([exact(release, canaries.iloc[i : i + 1]) - nobody for i in range(len(canaries))])
    records = FrameRecords(canaries[coins].reset_index(drop=True))
    with records.opened():
        noisy = np.concatenate([np.ravel(array) for array in release.measure(records, rng)])
    # without a canary the others are there with probability 1/2 each
    expected = nobody + 0.5 * own.sum(axis=0) - 0.5 * own
    scores = ((noisy - expected) * own).sum(axis=1) - 0.5 * (own**2).sum(axis=1)
    guesses = max(round(GUESSED * len(canaries)), 1)
    right = right_guesses(scores, coins, guesses)
    return OneRun(len(canaries), guesses, right, epsilon_lower(len(canaries), guesses, right, delta, level))
