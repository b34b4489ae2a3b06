"""Audits of Gaussian releases: a record that moves the counts as far as any, and many noisy readings.

The auditor knows both tables and sees the noisy counts before post-processing. Everything comes from the
release itself: its exact counts of both tables, its noise, and its declared event.

One release at a time shows each mechanism. A path is every fit from the first count to the last table. It
also shows that later releases use earlier noisy statistics only, and that each noise is drawn anew. Ratios
that add up over releases assume both. One reading of one table with many made-up records is an audit without
repetition.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.accounting.ledger import Ledger
from dpsynth.accounting.profile import Profile
from dpsynth.attacks.lower_bounds import epsilon_lower, right_guesses
from dpsynth.attacks.trials import Audited, Declared, judge
from dpsynth.errors import InputError
from dpsynth.releases.gaussian import GaussianRelease
from dpsynth.releases.records import FrameRecords
from dpsynth.synthesis.fit import plan_fit, read_parts
from dpsynth.synthesis.options import FitOptions
from dpsynth.table.grid import Grid
from dpsynth.table.histories import Histories, in_order
from dpsynth.table.patients import PatientSchema, TableSchema
from dpsynth.table.schema import Schema

Floats = NDArray[np.float64]
#: Records that both tables have.
OTHERS = 5
#: Records that are tried as the differing one: a release of counts is moved by all alike, others are not (of
#: forty the longest score of a hazard reached .89 to 1.0 of its bound by the seed, of two hundred .998).
TRIED = 200
#: Part of the canaries whose coins are guessed.
GUESSED = 0.2


def uniform_records(schema: TableSchema, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Records of a schema made from its public grids alone, every other value at an end of its column.

    Derived columns and constraints are left out: no release reads them.
    """

    def codes(grid: Grid, n: int) -> NDArray[np.int64]:
        anywhere = rng.integers(0, grid.size, n)
        ends = np.array([0, grid.present - 1])[rng.integers(0, 2, n)]
        return np.where(rng.random(n) < 0.5, ends, anywhere)

    return _made_up(schema, n, codes, rng)


def typical_records(schema: TableSchema, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Made-up records in the middle of the grids, for the inputs that a release gets from earlier ones.

    :func:`uniform_records` exceed a bound that is set by such records, and are its worst case.
    """

    def codes(grid: Grid, n: int) -> NDArray[np.int64]:
        return rng.integers(0, grid.present, (5, n)).mean(axis=0).astype(np.int64)

    return _made_up(schema, n, codes, rng)


def _made_up(
    schema: TableSchema, n: int, codes: Callable[[Grid, int], NDArray[np.int64]], rng: np.random.Generator
) -> pd.DataFrame:
    """Records with such cells. Levels and rows of patients are drawn apart: the worst case of both."""

    def drawn(of: Schema, n: int) -> pd.DataFrame:
        grids = map(Grid.from_column, of.modelled.columns)
        return pd.DataFrame({grid.column.name: grid.decode(codes(grid, n), rng.random(n)) for grid in grids})

    levels = drawn(schema.levels, n)
    if not isinstance(schema, PatientSchema):
        return levels
    patient = np.repeat(np.arange(n), rng.integers(1, schema.most + 1, n))
    rows = drawn(schema.table, len(patient)).assign(**{schema.unit: patient})
    histories = Histories.of(in_order(rows, schema), schema, rng).to_frame(schema)
    return pd.concat([levels, histories.drop(columns=levels.columns)], axis=1)


class WatchingLedger(Ledger):
    """A ledger that also keeps every release that it runs, in order, in ``releases``.

    Auditors can then run again a release with bins or a point from an earlier one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.releases: list[Any] = []

    def run(self, release: Any, records: Any, rng: np.random.Generator) -> Any:
        """Post and run the release, as every ledger does, and keep it."""
        self.releases.append(release)
        return super().run(release, records, rng)


class Remembered(FrameRecords):
    """Records that count themselves once and answer from memory afterwards.

    One release asks the same questions every time: ten thousand trials then cost their noise.
    """

    def _counts(self, tables: Any) -> Any:
        return self._once("counts", lambda: super(Remembered, self)._counts(tables))

    def _sums(self, of: Any, columns: Any) -> Any:
        return self._once("sums", lambda: super(Remembered, self)._sums(of, columns))

    def _once(self, name: str, count: Any) -> Any:
        kept = self.__dict__.setdefault("_kept", {})
        if name not in kept:
            kept[name] = count()
        return [array.copy() for array in kept[name]]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Two tables that differ by one record, and the L2 distance of a release's exact counts of them."""

    without: pd.DataFrame
    with_record: pd.DataFrame
    moved: float


def exact(release: GaussianRelease, frame: pd.DataFrame) -> Floats:
    """All exact counts of a made-up table in the units of the sensitivity, shape (cells,)."""
    records = FrameRecords(frame)
    with records.opened():
        arrays = zip(release.query(records), release.steps, strict=False)
        return weighted(release, (array * step for array, step in arrays))


def weighted(release: GaussianRelease, arrays: Iterable[NDArray]) -> Floats:
    """A release's arrays as one vector, in the units of its sensitivity, shape (cells,)."""
    return np.concatenate(
        [np.ravel(array) * weight for array, weight in zip(arrays, release.weights, strict=False)]
    )


def neighbours_of(release: GaussianRelease, made_up: pd.DataFrame) -> Neighbours:
    """The neighbours among made-up records that move a release the most.

    The first `OTHERS` are in both tables, and one of the next `TRIED` is taken.
    """
    others = made_up.iloc[:OTHERS]
    base = exact(release, others)
    tried = [Neighbours(others, others, 0.0)]
    for row in range(len(others), min(len(others) + TRIED, len(made_up))):
        frame = pd.concat([others, made_up.iloc[row : row + 1]], ignore_index=True)
        tried.append(Neighbours(others, frame, float(np.linalg.norm(exact(release, frame) - base))))
    return max(tried, key=lambda pair: pair.moved)


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
            noisy = weighted(release, release.measure(tables[int(coin)], rng))
            scores[trial] = noisy[places] @ direction[places] - offset
    return scores


def audit_release(
    release: GaussianRelease, made_up: pd.DataFrame, *, delta: float, trials: int, rng: np.random.Generator
) -> Audited:
    """Audit one Gaussian release, with its bins or the point that it is taken at, by so many noisy readings.

    Each is of either table of :func:`neighbours_of`, by a coin.
    """
    from scipy.special import ndtr

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


class ScoringLedger(Ledger):
    """A ledger that adds up the log-likelihood ratios of the Gaussian releases that it runs.

    A fit reads one of the two tables.
    """

    def __init__(self, without: Any, with_record: Any) -> None:
        super().__init__()
        self.tables = (without, with_record)
        self.score = 0.0

    def run(self, release: Any, records: Any, rng: np.random.Generator) -> Any:
        """Post and run. A Gaussian release is scored between its noise and its post-processing."""
        if not isinstance(release, GaussianRelease):
            return super().run(release, records, rng)
        self.post(release.name, release.event, sensitivity=release.sensitivity)
        with records.opened():
            noisy = release.measure(records, rng)
        base = exact(release, self.tables[0])
        apart = exact(release, self.tables[1]) - base
        std = release.event.noise_multiplier * release.l2_sensitivity
        self.score += float((weighted(release, noisy) - base - 0.5 * apart) @ apart) / std**2
        return release.finish(noisy)


def audit_path(schema: TableSchema, options: FitOptions, *, trials: int, rng: np.random.Generator) -> Audited:
    """Audit the releases before studies and the critic as one mechanism: so many fits of the base model."""
    if schema.n_public is None:
        raise InputError("schema has no n_public, on which the plan of a path depends: declare it")
    start = time.perf_counter()
    options = options.model_copy(update={"studies": ()})
    made_up = uniform_records(schema, OTHERS + 1, rng)
    without = made_up.iloc[:OTHERS]
    plan = plan_fit(FrameRecords(without), schema, options, rng, Ledger())
    coins = rng.random(trials) < 0.5
    scores = np.empty(trials)
    for trial, coin in enumerate(coins):
        ledger = ScoringLedger(without, made_up)
        records = FrameRecords(made_up if coin else without)
        read_parts(plan, records, rng, ledger, refine=False)
        scores[trial] = ledger.score
    return judge(
        "base model's path",
        scores,
        coins,
        Declared(
            Profile([event for part in plan.parts.readings for event in part.events]),
            plan.parts.delta,
        ),
        about=f"tables of {OTHERS} and {OTHERS + 1} made-up records, all noisy counts of a fit together",
        seconds=time.perf_counter() - start,
    )


def audit_in_one_run(
    release: GaussianRelease, canaries: pd.DataFrame, *, delta: float, rng: np.random.Generator
) -> float:
    """Read a release once, guess the coin of every canary, and bound epsilon from below with 95 % confidence.

    Steinke, Nasr, Jagielski (2023). Canaries share cells, so each adds to the noise of the others' scores.
    The bound is valid all the same, and loses little while their number is small beside the noise.

    Parameters
    ----------
    release : GaussianRelease
        With noise, and with its bins.
    canaries : DataFrame of shape (m, columns)
        Made-up records, each in the table by a coin of its own.
    delta : float
        At which epsilon is bounded.
    rng : numpy.random.Generator
        Draws coins and noise.

    Returns
    -------
    float
        At least 0.
    """
    coins = rng.random(len(canaries)) < 0.5
    nobody = exact(release, canaries.iloc[:0])
    # what each canary adds to the counts, by itself: shape (m, cells)
    own = np.stack([exact(release, canaries.iloc[i : i + 1]) - nobody for i in range(len(canaries))])
    records = FrameRecords(canaries[coins].reset_index(drop=True))
    with records.opened():
        noisy = weighted(release, release.measure(records, rng))
    # without a canary the others are there with probability 1/2 each
    expected = nobody + 0.5 * own.sum(axis=0) - 0.5 * own
    scores = ((noisy - expected) * own).sum(axis=1) - 0.5 * (own**2).sum(axis=1)
    guesses = max(round(GUESSED * len(canaries)), 1)
    right = right_guesses(scores, coins, guesses)
    return epsilon_lower(len(canaries), guesses, right, delta)
