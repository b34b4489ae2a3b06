"""Audits of Gaussian releases: a record that moves the counts as far as any, and many noisy readings.

The auditor knows both tables and sees the noisy counts before anything is made of them. Everything comes from
the release itself: its exact counts of both tables, its noise, and what its event declares.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.accounting.profile import Profile
from dpsynth.attacks.audit.trials import Declared, judge
from dpsynth.attacks.audit.verdict import Audited
from dpsynth.audits.recording_ledger import Remembered
from dpsynth.releases.gaussian import GaussianRelease
from dpsynth.releases.records import FrameRecords
from dpsynth.table.grid import Grid
from dpsynth.table.schema import Schema

Floats = NDArray[np.float64]
#: Records that both tables have.
OTHERS = 5
#: Records that are tried as the differing one: a release of counts is moved by all alike, others are not (of
#: forty the longest score of a hazard reached .89 to 1.0 of its bound by the seed, of two hundred .998).
TRIED = 200


def uniform_records(schema: Schema, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Records of a schema made from its public grids alone, every other column at one of its ends.

    Parameters
    ----------
    schema : Schema
        Derived columns and constraints are left out: no release reads them.
    n : int

    Returns
    -------
    DataFrame of shape (n, columns)
    """
    columns = {}
    for grid in map(Grid.from_column, schema.modelled.columns):
        codes = rng.integers(0, grid.size, n)
        ends = np.array([0, grid.present - 1])[rng.integers(0, 2, n)]
        codes = np.where(rng.random(n) < 0.5, ends, codes)
        columns[grid.column.name] = grid.decode(codes, rng.random(n))
    return pd.DataFrame(columns)


def typical_records(schema: Schema, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Made-up records in the middle of the grids, for what a release is given by earlier ones.

    A bound that is set by such records is passed by :func:`uniform_records`, which is its worst case.
    """
    columns = {}
    for grid in map(Grid.from_column, schema.modelled.columns):
        codes = rng.integers(0, grid.present, (5, n)).mean(axis=0).astype(int)
        columns[grid.column.name] = grid.decode(codes, rng.random(n))
    return pd.DataFrame(columns)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Two tables that differ by one record, and how far a release's counts lie apart.

    Parameters
    ----------
    without, with_record : DataFrame
    moved : float
        L2 distance of the exact counts.
    """

    without: pd.DataFrame
    with_record: pd.DataFrame
    moved: float


def exact(release: GaussianRelease, frame: pd.DataFrame) -> Floats:
    """All exact counts of a made-up table, shape (cells,)."""
    records = FrameRecords(frame)
    with records.opened():
        return cells(release.query(records))


def cells(arrays: object) -> Floats:
    """Arrays of counts as one vector."""
    return np.concatenate([np.ravel(array) for array in arrays])  # type: ignore[attr-defined]


def neighbours_of(release: GaussianRelease, made_up: pd.DataFrame) -> Neighbours:
    """The neighbours among made-up records that move a release the most.

    Parameters
    ----------
    made_up : DataFrame
        The first `OTHERS` are in both tables; of the next `TRIED` one is taken.
    """
    others = made_up.iloc[:OTHERS]
    base = exact(release, others)
    best = Neighbours(others, others, 0.0)
    for row in range(len(others), min(len(others) + TRIED, len(made_up))):
        frame = pd.concat([others, made_up.iloc[row : row + 1]], ignore_index=True)
        moved = float(np.linalg.norm(exact(release, frame) - base))
        if moved > best.moved:
            best = Neighbours(others, frame, moved)
    return best


def scores_of(
    release: GaussianRelease, pair: Neighbours, coins: NDArray[np.bool_], rng: np.random.Generator
) -> Floats:
    """Log-likelihood ratio of each noisy reading under the declared noise, shape of ``coins``.

    With d the difference of the exact counts and s the declared standard deviation, a reading y of the table
    without the record has ``<y - q, d> / s^2 - |d|^2 / (2 s^2)``.
    """
    declared = release.event.noise_multiplier * release.l2_sensitivity
    tables = [Remembered(frame) for frame in (pair.without, pair.with_record)]
    base = exact(release, pair.without)
    apart = exact(release, pair.with_record) - base
    direction = apart / declared**2
    offset = float(base @ direction) + 0.5 * float(apart @ direction)
    places = np.flatnonzero(direction)
    scores = np.empty(len(coins))
    with tables[0].opened(), tables[1].opened():
        for trial, coin in enumerate(coins):
            noisy = cells(release.measure(tables[int(coin)], rng))
            scores[trial] = noisy[places] @ direction[places] - offset
    return scores


def audit_release(
    release: GaussianRelease,
    made_up: pd.DataFrame,
    *,
    delta: float,
    trials: int,
    rng: np.random.Generator,
    tell: Callable[[str], None] = lambda name: None,
) -> Audited:
    """Audit one Gaussian release.

    Parameters
    ----------
    release : GaussianRelease
        With noise, and with the bins or the point that it is taken at.
    made_up : DataFrame
        See :func:`neighbours_of`.
    delta : float
    trials : int
        Noisy readings, of either table by a coin.
    rng : numpy.random.Generator
        Of coins and noise.
    tell : callable, optional
        Called with the release's name before it is audited.

    Returns
    -------
    Audited
    """
    from scipy.special import ndtr

    tell(release.name)
    start = time.perf_counter()
    pair = neighbours_of(release, made_up)
    coins = rng.random(trials) < 0.5
    scores = scores_of(release, pair, coins, rng)
    attained = pair.moved / release.l2_sensitivity
    error = float(ndtr(-0.5 * min(attained, 1.0) / release.event.noise_multiplier))
    return judge(
        release.name,
        scores,
        coins,
        Declared(Profile([release.event]), delta),
        about=f"two tables of {len(pair.without)} and {len(pair.with_record)} made-up records, seen before "
        "post-processing",
        expected=(error, error),
        seconds=time.perf_counter() - start,
        attained=attained,
    )
