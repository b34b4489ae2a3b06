"""Audits of Gaussian releases: a record that moves the counts as far as any, and many noisy readings.

The auditor knows both tables and sees the noisy counts before post-processing. Everything comes from the
release itself: its exact counts of both tables, its noise, and its declared event.

One release at a time shows each mechanism. A path is every fit from the first count to the last table. It
also shows that later releases use earlier noisy statistics only, and that each noise is drawn anew. Ratios
that add up over releases assume both. One reading of one table with many made-up records is an audit without
repetition.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.attacks.lower_bounds import epsilon_lower, right_guesses
from dpsynth.audits.trials import Audited, Declared, judge_trials
from dpsynth.checks import Counted
from dpsynth.errors import InputError
from dpsynth.marginals.binning import Binning, Bins
from dpsynth.marginals.growth import Candidate, TableCells, TableChoiceRelease
from dpsynth.marginals.statistics import EdgesRelease
from dpsynth.patients.histories import Histories
from dpsynth.patients.schema import patients_of
from dpsynth.privacy.events import exponential_mechanism_event
from dpsynth.privacy.ledger import Ledger
from dpsynth.privacy.profile import Profile
from dpsynth.privacy.records import FrameRecords, GridAxis
from dpsynth.privacy.release import GaussianRelease
from dpsynth.synthesis.fit import plan_fit, read_parts
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.parts.part import Reading
from dpsynth.table.encoder import Layout
from dpsynth.table.grid import Grid
from dpsynth.table.schema import Column, Schema, TableSchema

# ------------------------------------------------------------------------------------------------
# The gradient that lies as far out as is proved possible, computed a second time: NumPy, float64, LAPACK.
#
# Nothing of `dpsynth.wgan` is used. Spectral norms are singular values of the weights in use, not those
# that a projection promises. A critic that was not projected has a gradient here that lies beyond the noise.
#
# Pedersen (2022), Theorem 3.1.1, gives the box, and Bethune et al. (2023) the ball. The smaller of the two
# is used in each layer, as the noise's shape measures it.

Floats = NDArray[np.float64]
Interval = tuple[Floats, Floats]
Weights = Sequence[tuple[Floats, Floats | None]]


@dataclass(frozen=True, eq=False)
class Farthest:
    """A gradient on the edge of what is possible, and the centre of the box that was used (zeros for a ball).

    Flat arrays in the order W1, b1, W2, ..., shaped like the critic's.
    """

    gradient: list[Floats]
    centre: list[Floats]

    @property
    def offset(self) -> Floats:
        """Gradient minus centre as one vector: contribution of one record to the released sum."""
        pairs = zip(self.gradient, self.centre, strict=True)
        return np.concatenate([np.ravel(g - c) for g, c in pairs])


def farthest(
    weights: Weights,
    layout: Layout,
    *,
    activation: str,
    slope: float,
    noise_shape: str,
    scale: Floats | None = None,
    step: float | None = None,
) -> Farthest:
    """The gradient for which the proved sensitivity is attained.

    ``weights`` are pairs W (n_in, n_out), b (n_out,) or None. The layout's records are centred, and
    multiplied by ``scale`` (dim,) and rounded towards zero to a ``step`` if they are given.
    """
    ends = layout.lo, layout.hi
    if scale is not None:
        ends = ends[0] * scale, ends[1] * scale
    if step is not None:
        ends = step * np.trunc(ends[0] / step), step * np.trunc(ends[1] / step)
    inputs, deltas = _intervals(weights, layout, activation, slope, ends)
    radii = _radii(weights, _radius(layout, ends), inputs, deltas)
    gradient: list[Floats] = []
    centres: list[Floats] = []
    for (matrix, bias), x, delta, radius in zip(weights, inputs, deltas, radii, strict=True):
        shapes = [matrix.shape] if bias is None else [matrix.shape, bias.shape]
        boxes = [_outer(x, delta)] if bias is None else [_outer(x, delta), delta]
        middles = [0.5 * (low + high) for low, high in boxes]
        corners = [high for _, high in boxes]
        ranges = np.concatenate([np.ravel(c - m) for c, m in zip(corners, middles, strict=True)])
        size = len(ranges)
        if noise_shape == "proportional":
            ball = False
        elif noise_shape == "optimal":
            ball = radius * math.sqrt(size) < float(np.abs(ranges).sum())
        else:
            ball = radius < float(np.linalg.norm(ranges))
        if ball:
            corners = [np.full(shape, radius / math.sqrt(size)) for shape in shapes]
            middles = [np.zeros(shape) for shape in shapes]
        gradient += corners
        centres += middles
    return Farthest(gradient, centres)


def _intervals(
    weights: Weights, layout: Layout, activation: str, slope: float, ends: Interval
) -> tuple[list[Interval], list[Interval]]:
    """Bounds of every layer's input and of the gradient with respect to its sum."""
    inputs: list[Interval] = [ends]
    sums: list[Interval] = []
    for layer, (matrix, bias) in enumerate(weights[:-1]):
        low, high = _first(matrix, layout, ends) if layer == 0 else _times(inputs[-1], matrix)
        shift = 0.0 if bias is None else bias
        sums.append((low + shift, high + shift))
        inputs.append(_forward(sums[-1], activation, slope))
    deltas: list[Interval] = [(np.ones(1), np.ones(1))]
    for layer in range(len(weights) - 1, 0, -1):
        upstream = _times(deltas[0], weights[layer][0].T)
        deltas.insert(0, _backward(sums[layer - 1], upstream, activation, slope))
    return inputs, deltas


def _times(x: Interval, matrix: Floats) -> Interval:
    up, down = np.maximum(matrix, 0.0), np.minimum(matrix, 0.0)
    return x[0] @ up + x[1] @ down, x[1] @ up + x[0] @ down


def _first(matrix: Floats, layout: Layout, ends: Interval) -> Interval:
    """Bounds of records: numbers by their signs, a one-hot group by its extreme entry."""
    numbers = slice(0, layout.n_numeric)
    low, high = _times((ends[0][numbers], ends[1][numbers]), matrix[numbers])
    for start, stop in layout.groups:
        rows = _entries(ends, start, stop) @ matrix[start:stop]
        low, high = low + rows.min(axis=0), high + rows.max(axis=0)
    return low, high


def _entries(ends: Interval, start: int, stop: int) -> Floats:
    """A group's coordinates, one row for each category that a record may have."""
    low, high = ends[0][start:stop], ends[1][start:stop]
    return np.where(np.eye(stop - start, dtype=bool), high, low)


def _forward(s: Interval, activation: str, slope: float) -> Interval:
    if activation == "maxmin":
        low, high = (
            np.concatenate([np.maximum(end[0::2], end[1::2]), np.minimum(end[0::2], end[1::2])]) for end in s
        )
        return low, high
    flat = 0.0 if activation == "relu" else slope
    return np.where(s[0] > 0, s[0], flat * s[0]), np.where(s[1] > 0, s[1], flat * s[1])


def _backward(s: Interval, upstream: Interval, activation: str, slope: float) -> Interval:
    if activation != "maxmin":
        flat = 0.0 if activation == "relu" else slope
        ends = [np.where(end > 0, 1.0, flat) for end in s]
        corners = np.stack([d * u for d in ends for u in upstream])
        return corners.min(axis=0), corners.max(axis=0)
    half = len(s[0]) // 2
    low, high = np.empty(2 * half), np.empty(2 * half)
    for pair in range(half):
        first, second = 2 * pair, 2 * pair + 1
        # the larger of a pair feeds the maximum, the other one the minimum
        above = (s[0][first] > s[1][second], s[0][second] > s[1][first])
        for place, other in ((0, 1), (1, 0)):
            routes = [pair] if above[place] else [pair + half] if above[other] else [pair, pair + half]
            low[first + place] = min(upstream[0][r] for r in routes)
            high[first + place] = max(upstream[1][r] for r in routes)
    return low, high


def _outer(x: Interval, delta: Interval) -> Interval:
    corners = np.stack([np.outer(a, b) for a in x for b in delta])
    return corners.min(axis=0), corners.max(axis=0)


def _radius(layout: Layout, ends: Interval) -> float:
    """Largest norm of a record: numbers at an end, and any one entry of a group."""
    numbers = np.maximum(abs(ends[0]), abs(ends[1]))[: layout.n_numeric]
    squared = float(numbers @ numbers)
    for start, stop in layout.groups:
        squared += float((_entries(ends, start, stop) ** 2).sum(axis=1).max())
    return math.sqrt(squared)


def _radii(weights: Weights, radius: float, inputs: list[Interval], deltas: list[Interval]) -> list[float]:
    """Norm of each layer's gradient at most: ``sqrt(|x|^2 + 1) |delta|``, no 1 without a bias."""
    norms = [float(np.linalg.svd(matrix, compute_uv=False)[0]) for matrix, _ in weights]
    x = radius
    xs: list[float] = []
    for (_, bias), bound, norm in zip(weights, inputs, norms, strict=True):
        x = min(x, _norm(bound))
        xs.append(x)
        x = norm * x + (0.0 if bias is None else float(np.linalg.norm(bias)))
    delta = 1.0
    radii: list[float] = []
    for layer in range(len(weights) - 1, -1, -1):
        delta = min(delta, _norm(deltas[layer]))
        ones = 0.0 if weights[layer][1] is None else 1.0
        radii.insert(0, math.sqrt(xs[layer] ** 2 + ones) * delta)
        delta *= norms[layer]
    return radii


def _norm(bound: Interval) -> float:
    return float(np.linalg.norm(np.maximum(np.abs(bound[0]), np.abs(bound[1]))))


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

    levels, patients = drawn(schema.levels, n), patients_of(schema)
    if patients is None:
        return levels
    patient = np.repeat(np.arange(n), rng.integers(1, patients.most + 1, n))
    rows = patients.in_order(drawn(patients.table, len(patient)).assign(**{patients.unit: patient}))
    histories = Histories.of(rows, patients, rng).to_frame(patients)
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
        kept = self.__dict__.setdefault("_answers", {})
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
        return weighted_vector(release, (array * step for array, step in arrays))


def weighted_vector(release: GaussianRelease, arrays: Iterable[NDArray]) -> Floats:
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
            noisy = weighted_vector(release, release.measure(tables[int(coin)], rng))
            scores[trial] = noisy[places] @ direction[places] - offset
    return scores


def audit_release(
    release: GaussianRelease,
    made_up: pd.DataFrame,
    *,
    delta: float,
    trials: int,
    rng: np.random.Generator,
    counted: Counted = Counted.RECORDS,
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
    return judge_trials(
        release.name,
        scores,
        coins,
        Declared(Profile([release.event]), delta),
        about=f"two tables of {len(pair.without)} and {len(pair.with_record)} made-up {counted}, seen before "
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
        self.score += float((weighted_vector(release, noisy) - base - 0.5 * apart) @ apart) / std**2
        return release.finish(noisy)


def audit_path(schema: TableSchema, options: FitOptions, *, trials: int, rng: np.random.Generator) -> Audited:
    """Audit the generator's releases before the critic as one mechanism: so many fits of the base model."""
    if schema.n_public is None:
        raise InputError("schema has no n_public, on which the plan of a path depends: declare it")
    start = time.perf_counter()
    made_up = uniform_records(schema, OTHERS + 1, rng)
    without = made_up.iloc[:OTHERS]
    plan = plan_fit(FrameRecords(without), schema, options, rng, Ledger())
    coins = rng.random(trials) < 0.5
    scores = np.empty(trials)
    for trial, coin in enumerate(coins):
        ledger = ScoringLedger(without, made_up)
        records = FrameRecords(made_up if coin else without)
        read_parts(plan, Reading(ledger, records, rng, plan.n, refine=False))
        scores[trial] = ledger.score
    return judge_trials(
        "base model's path",
        scores,
        coins,
        Declared(
            Profile([event for part in plan.parts.readings for event in part.events]),
            plan.parts.delta,
        ),
        about=f"tables of {OTHERS} and {OTHERS + 1} made-up {schema.counted}, all noisy counts of a fit "
        "together",
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
        noisy = weighted_vector(release, release.measure(records, rng))
    # without a canary the others are there with probability 1/2 each
    expected = nobody + 0.5 * own.sum(axis=0) - 0.5 * own
    scores = ((noisy - expected) * own).sum(axis=1) - 0.5 * (own**2).sum(axis=1)
    guesses = max(round(GUESSED * len(canaries)), 1)
    right = right_guesses(scores, coins, guesses)
    return epsilon_lower(len(canaries), guesses, right, delta)


# ------------------------------------------------------------------------------------------------
# Audit of what a fit chooses to count: an exponential mechanism, with its scores moved the farthest.
#
# The worst case is made up. Without the record all pairs of columns score alike. With it the pairs of one
# column lose 1 and all others gain 1. This column is then chosen e^epsilon times less often, less a part for
# the number of candidates. The auditor uses the first choice. Its distribution on both tables follows from
# the definition, and not from the mechanism's code.
#
# A choice's own epsilon is a few hundredths in most runs. No number of trials shows anything then, and the
# same code is audited at epsilon 1.

#: Columns of the made-up table; the tree grows from the first, so that its first choice has one less.
COLUMNS = 8
#: The column whose pairs lose where all others gain.
LOSING = 5
#: Epsilon of a choice at which the mechanism is audited if its own is smaller.
LEAST_EPSILON = 1.0
# Released number of records, and how many of them are expected in cell (0, 0) of a losing pair: more than the
# one that comes. In other pairs as good as nobody is.
_N, _EXPECTED, _SHARE = 1e6, 3.0, 0.9
_MADE_UP = Schema(
    columns=tuple(Column(name=f"c{j}", kind="binary", categories=(0, 1)) for j in range(COLUMNS))
)

Choosing = TypeVar("Choosing", EdgesRelease, TableChoiceRelease)


def worst_case(release: Choosing) -> Choosing:
    """Release on the made-up table's schema and bins, at its own epsilon or at `LEAST_EPSILON`."""
    if release.epsilon is None:
        raise InputError(f"{release.name}: no noise, so nothing is declared that an audit could contradict")
    epsilon = max(release.epsilon, LEAST_EPSILON)
    grids = tuple(Grid.from_column(column) for column in _MADE_UP.columns)
    if isinstance(release, EdgesRelease):
        rare = _EXPECTED / (_SHARE * _N)
        first = [_SHARE if j == LOSING else rare for j in range(COLUMNS)]
        binnings = tuple(Binning(np.arange(2), np.array([p, 1.0 - p])) for p in first)
        std, bins = release.table_std, Bins(grids, binnings, _N)
        return EdgesRelease(schema=_MADE_UP, kind="tree", epsilon=epsilon, table_std=std).at(bins)
    labels = (np.arange(2), np.arange(2))
    # the same numbers in other cells, so that noise and sampling explain as much
    losing = np.array([[_EXPECTED, 0.0], [_EXPECTED, 0.0]])
    gaining = np.array([[0.0, _EXPECTED], [_EXPECTED, 0.0]])
    tables = [
        Candidate(
            TableCells((0, j), labels),
            (GridAxis(grids[0]), GridAxis(grids[j])),
            losing if j == LOSING else gaining,
            1.0,
        )
        for j in range(1, COLUMNS)
    ]
    # without noise in its tables nothing is lost of how far the record moves a score
    return replace(release, count=1, epsilon=epsilon, noise_std=0.0, stage=None, read_with=[tables])


def _lost(chosen: Sequence[Any]) -> bool:
    """Whether the losing column is the first choice."""
    first = chosen[0]
    return bool((first.cells.columns if isinstance(first, Candidate) else first)[-1] == LOSING)


def rarely(epsilon: float) -> tuple[float, float]:
    """Probability that the losing column is the first choice, without and with the record.

    McSherry and Talwar (2007): proportional to exp(epsilon score / 2), with scores of +1 and -1.

    Examples
    --------
    >>> without, present = rarely(1.0)
    >>> round(without, 4), round(present, 4), round(without / present, 3)
    (0.1429, 0.0578, 2.473)
    """
    others = COLUMNS - 2
    return 1.0 / (others + 1), 1.0 / (others * math.exp(epsilon) + 1)


def audit_choices(
    release: Choosing,
    *,
    delta: float,
    trials: int,
    rng: np.random.Generator,
    counted: Counted = Counted.RECORDS,
) -> Audited:
    """Audit a choice of what to count, by so many choices. The release's own columns do not matter."""
    start = time.perf_counter()
    worst = worst_case(release)
    epsilon = worst.epsilon or 0.0
    without, present = rarely(epsilon)
    names = _MADE_UP.names
    empty = pd.DataFrame({name: pd.Series([], dtype="int64") for name in names})
    one = pd.DataFrame({name: [0] for name in names})
    tables = [Remembered(_MADE_UP.conform(frame).frame) for frame in (empty, one)]
    coins = rng.random(trials) < 0.5
    scores = np.empty(trials)
    with tables[0].opened(), tables[1].opened():
        for trial, coin in enumerate(coins):
            lost = _lost(worst(tables[int(coin)], rng))
            scores[trial] = math.log(present / without) if lost else math.log((1 - present) / (1 - without))
    own = "" if release.epsilon == worst.epsilon else f", not its own {release.epsilon:.3g}"
    audited = judge_trials(
        release.name,
        scores,
        coins,
        Declared(Profile([exponential_mechanism_event(epsilon)]), delta),
        about=f"the first choice, with none and one made-up {counted.one} of {COLUMNS} columns, at epsilon "
        f"{epsilon:g} a choice{own}",
        expected=(1.0 - without, present),
        gaussian=False,
        seconds=time.perf_counter() - start,
    )
    return replace(audited, own_noise=not own)
