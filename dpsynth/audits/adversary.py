"""The adversary A_DI against our own critic: its setting, and its game on noisy sums of a step."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpsynth.attacks.attempt import NOTHING, Attempt
from dpsynth.attacks.beliefs import Game, Transcript, log_odds, shifts
from dpsynth.audits.trials import SURE
from dpsynth.checks import in_range, inside, one_of, whole
from dpsynth.datasets.table import Table
from dpsynth.errors import InputError, of_records
from dpsynth.evaluation.estimates import Estimate
from dpsynth.privacy.conversions import posterior_belief
from dpsynth.privacy.events import training_event
from dpsynth.privacy.loss import ADD_REMOVE, REPLACE_ONE, check_adjacency
from dpsynth.privacy.profile import Profile
from dpsynth.privacy.release import Plan
from dpsynth.table.coded import CodedTable
from dpsynth.table.encoder import Layout
from dpsynth.wgan.settings import MatchingSettings, TrainingSettings

# ------------------------------------------------------------------------------------------------
# Setting of a game against A_DI: the mechanism of a run, and the difference of the two tables.
#
# MOSAICrOWN D5.3: *dataset sensitivity* (Definition 6) compares records, *local sensitivity* (Definition 3)
# the query's values. Both search for the record, or the pair, that lies or moves the furthest. One searches
# over records, the other over their contributions to the query. The document compares images by their
# structural similarity. Here records are points, compared by Euclidean distance. A replaced record moves a
# sum of gradients by no other distance.

Floats = NDArray[np.float64]
Difference = Literal["removed", "replaced"]
Choice = Literal["dataset", "gradient", "worst-case"]
Noise = Literal["global", "local"]

#: how the differing record was chosen, in words
CHOSEN = {
    "dataset": "furthest from the others (dataset sensitivity)",
    "gradient": "that moves the first step most (local sensitivity)",
    "worst-case": "that nobody is, made up within the public bounds to move the steps as far as it can",
}


@dataclass(frozen=True)
class Setting:
    """A game of T noisy sums a run.

    ``noise_multiplier`` is that of the event of one step, in units of the sensitivity to one record more or
    less. If a record is replaced, it is twice the noise over the sensitivity. D' lacks the differing record
    or has another one in its place. The record is chosen by the distance between records (Definition 6) or by
    its move of the first step (Definition 3 at initial weights). Or it is made up. ``rank`` is 0 for the
    furthest such record, 1 for the next, -1 for the nearest. Noise is in proportion to the bound or to the
    two records ("local"). The second is not private and for DP-SGD alone.
    """

    steps: int
    noise_multiplier: float
    sampling_prob: float = 1.0
    neighbour: Difference = "removed"
    choice: Choice = "dataset"
    rank: int = 0
    noise: Noise = "global"

    def __post_init__(self) -> None:
        whole("steps", self.steps)
        inside("noise_multiplier", self.noise_multiplier, 0.0, float("inf"))
        in_range("sampling_prob", self.sampling_prob, 0.0, 1.0, low_open=True)
        one_of("neighbour", self.neighbour, get_args(Difference))
        one_of("choice", self.choice, get_args(Choice))
        one_of("noise", self.noise, get_args(Noise))

    @property
    def adjacency(self) -> str:
        """Adjacency under which the run is accounted for."""
        return ADD_REMOVE if self.neighbour == "removed" else REPLACE_ONE

    def profile(self) -> Profile:
        """Cost of one run."""
        event = training_event(self.noise_multiplier, self.sampling_prob, self.steps)
        return Profile([event], adjacency=self.adjacency)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


@dataclass(frozen=True)
class Neighbour:
    """A differing record: its place in D, that of its replacement in the pool, the distance of D and D'."""

    index: int
    replacement: int | None
    distance: float


def differing(setting: Setting, points: tuple[Floats, Floats], moves: Callable[[int], Floats]) -> Neighbour:
    """Choose the record in which D and D' differ, among real ones.

    ``points`` are those of D and of a pool of records that are not in D. ``moves`` gives the contribution of
    each record of D (0) or of the pool (1) to the query.
    """
    removed, rank = setting.neighbour == "removed", setting.rank
    if setting.choice == "gradient":
        return largest(moves(0)) if removed else replacements(moves(0), moves(1))[0]
    count, nearest = (-rank, True) if rank < 0 else (rank + 1, False)
    if removed:
        return removals(points[0], count, nearest=nearest)[-1]
    return replacements(*points, count, nearest=nearest)[-1]


def removals(points: Floats, count: int = 1, *, nearest: bool = False) -> list[Neighbour]:
    """Records of D that lie furthest from all others, or nearest to them: D' lacks one of them.

    Their distance is the mean over the other records. The document removes the image that is least similar to
    all others.

    Examples
    --------
    >>> removals(np.array([[0.0], [1.0], [5.0]]))
    [Neighbour(index=2, replacement=None, distance=4.5)]
    """
    points = _checked("points", points)
    if len(points) < 2:
        raise of_records(f"points must hold at least two records, got {len(points)}")
    means = np.concatenate([block.sum(axis=1) for block in _distances(points, points)]) / (len(points) - 1)
    order = np.argsort(means if nearest else -means, kind="stable")[:count]
    return [Neighbour(int(i), None, float(means[i])) for i in order]


def largest(moves: Floats) -> Neighbour:
    """The record that alone moves the query furthest: local sensitivity if D' lacks a record."""
    norms = np.linalg.norm(_checked("moves", moves), axis=1)
    place = int(norms.argmax())
    return Neighbour(place, None, float(norms[place]))


def replacements(points: Floats, pool: Floats, count: int = 1, *, nearest: bool = False) -> list[Neighbour]:
    """Records of D, each with the pool's record furthest from it, or nearest, by that distance.

    With points it is dataset sensitivity, with contributions to the query local sensitivity.

    Examples
    --------
    >>> replacements(np.array([[0.0], [1.0]]), np.array([[2.0], [-0.5]]))
    [Neighbour(index=0, replacement=0, distance=2.0)]
    """
    points, pool = _checked("points", points), _checked("pool", pool)
    if not len(pool) or points.shape[1] != pool.shape[1]:
        raise InputError(f"pool must hold records of {points.shape[1]} numbers, got shape {pool.shape}")
    found: list[tuple[float, int]] = []
    for block in _distances(points, pool):
        best = block.argmin(axis=1) if nearest else block.argmax(axis=1)
        found += [(float(row[j]), int(j)) for row, j in zip(block, best, strict=True)]
    ends = np.array([distance for distance, _ in found])
    order = np.argsort(ends if nearest else -ends, kind="stable")[:count]
    return [Neighbour(int(i), found[i][1], found[i][0]) for i in order]


def _distances(points: Floats, pool: Floats, rows: int = 256) -> Iterator[Floats]:
    """Euclidean distances, some rows at a time, exact, not from the expansion of the square."""
    from scipy.spatial.distance import cdist

    for start in range(0, len(points), rows):
        yield cdist(points[start : start + rows], pool)


def _checked(name: str, points: Floats) -> Floats:
    points = np.asarray(points, dtype=np.float64)
    if points.ndim != 2 or not len(points) or not np.isfinite(points).all():
        raise InputError(f"{name} must be finite numbers, one row a record, got shape {points.shape}")
    return points


# ------------------------------------------------------------------------------------------------
# The adversary A_DI against our own critic: the production step's noisy sums, and which record differs.
#
# :func:`quick_attempts` takes a few seconds, for the report of a run and its own plan. It simulates runs
# whose differing record moves every step by all that the accounting allows: the worst case itself. Such a
# run releases one number a step, the part along the difference of the means. It gives an adversary who knows
# both means the same log-odds as a Gaussian mechanism in any number of dimensions. The exact total variation
# and the exact exceedance are therefore reached here, and nowhere passed.
#
# Everything else here reads real records without noise. Its results are confidential.

#: initial weights over which moves of the first step are averaged, and corners that are tried
_INITIAL, _CORNERS = 4, 200
#: simulated runs of the whole plan; watched trainings of its first steps
SIMULATED, WATCHED, WATCHED_STEPS = 1000, 8, 20
#: the reported belief is one that a record at the bound passes with this probability
PASSED = 0.01


@dataclass(frozen=True, eq=False)
class CriticSubject:
    """A critic's training and the two tables, encoded in the unit cube.

    ``others`` (n - 1, dim) are the records of both, ``first`` (dim,) that of D, ``second`` the one that D'
    has in its place, if any. ``distance`` is that of the tables, as the choice of the record measures it.
    """

    name: str
    others: Floats
    first: Floats
    second: Floats | None
    layout: Layout
    training: TrainingSettings
    plan: Plan
    setting: Setting
    distance: float

    def play(self, start: int, stop: int, seed: int) -> dict[str, Any]:
        """Carry out the runs with these numbers: even ones are on D, odd ones on D'.

        Return ``worlds`` (runs,), ``log_odds`` (runs, T + 1), ``moved`` (T,), and ``accuracy``, (runs,) or
        None. ``moved`` is the mean distance of the two tables' means over runs, as a part of the bound.
        """
        watched = _watched(self)
        numbers = range(start, stop)
        worlds, odds, moved = [number % 2 for number in numbers], [], []
        for number, world in zip(numbers, worlds, strict=True):
            noise, initial = (np.random.default_rng([seed, number, part]) for part in (0, 1))
            seen = watched.run(world, noise, initial)
            odds.append(log_odds(seen).tolist())
            moved.append(shifts(seen))
        assert self.plan.noise_multiplier is not None  # Watched refuses it
        reach = self.plan.noise_multiplier / (1 if self.second is None else 2)
        moves = (np.mean(moved, axis=0) * reach).tolist()
        return {"worlds": worlds, "log_odds": odds, "moved": moves, "accuracy": None}

    def told(self) -> str:
        """The training and its records, in one sentence."""
        return f"the critic's training on {len(self.others) + 1} records of {self.name}"

    def digest(self) -> str:
        """Digest of the records and of their training."""
        settings = (self.layout, self.training, self.plan, self.setting)
        digest = hashlib.sha256(repr(settings).encode())
        for records in (self.others, self.first, self.second):
            if records is not None:
                digest.update(np.ascontiguousarray(records).tobytes())
        return digest.hexdigest()

    def __hash__(self) -> int:
        return hash(self.digest())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CriticSubject) and self.digest() == other.digest()


@functools.lru_cache(maxsize=2)  # by the subject's digest, so that its program is compiled once in a process
def _watched(it: CriticSubject) -> Any:
    from dpsynth.audits.critic_training import Watched

    return Watched(it.others, it.first, it.second, it.layout, it.training, it.plan)


def encoded(train: Table, test: Table) -> tuple[Floats, Floats, Layout]:
    """Both parts as points of the unit cube, scaled by public bounds, and their layout."""
    from dpsynth.table.encoder import Encoder

    schema = train.schema
    encoder = Encoder(schema, None)
    parts = (CodedTable(schema.conform(part.frame).frame) for part in (train, test))
    found = [encoder.transform(part, np.random.default_rng(0)).astype(np.float64) for part in parts]
    return found[0], found[1], encoder.layout


def critic_subject(
    name: str,
    train: Floats,
    pool: Floats,
    layout: Layout,
    training: TrainingSettings,
    setting: Setting,
    plan: Plan | None = None,
) -> CriticSubject:
    """Choose the record of D, ``train`` (n, dim), that differs. A replacement comes from ``pool`` (m, dim).

    The plan gives the noise's shape and centring, the setting all else.
    """
    if setting.noise != "global":
        raise InputError("noise must be 'global' for the WGAN critic, whose noise follows its proved bounds")
    if setting.steps % training.critic_steps:
        raise InputError(
            f"steps must be a multiple of `critic_steps`, {training.critic_steps}, got {setting.steps}"
        )
    played: dict[str, Any] = {
        "sampling_prob": setting.sampling_prob,
        "expected_batch": setting.sampling_prob * len(train),
        "steps": setting.steps,
        "noise_multiplier": setting.noise_multiplier,
    }
    plan = Plan(**played) if plan is None else replace(plan, **played)
    if setting.choice == "worst-case":
        pool = _corners(layout)
        moves = _moves(pool, layout, training, plan)
        found = largest(moves) if setting.neighbour == "removed" else replacements(moves, moves)[0]
        others, first = train[1:], pool[found.index]
    else:
        records = train, pool
        found = differing(setting, records, lambda of: _moves(records[of], layout, training, plan))
        others, first = np.delete(train, found.index, axis=0), train[found.index]
    second = None if found.replacement is None else pool[found.replacement]
    return CriticSubject(name, others, first, second, layout, training, plan, setting, found.distance)


def _corners(layout: Layout) -> Floats:
    """Corners of the domain: all numbers least or largest, and random ones, one category of each group."""
    rng = np.random.default_rng(0)
    corners = (rng.random((_CORNERS, layout.dim)) < 0.5).astype(np.float64)
    corners[0], corners[1] = 0.0, 1.0
    for start, stop in layout.groups:
        corners[:, start:stop] = np.eye(stop - start)[rng.integers(stop - start, size=len(corners))]
    return corners


def _moves(points: Floats, layout: Layout, training: TrainingSettings, plan: Plan) -> Floats:
    """Contribution of each record to the first released sum, in units of the noise.

    It is from several initial weights, with shape (n, initial weights * P).
    """
    import tensorflow as tf

    from dpsynth.wgan.algorithm import critic_pass
    from dpsynth.wgan.networks import unflatten
    from dpsynth.wgan.training import build_step, initial_state

    shape: dict[str, Any] = {"n_records": len(points), "n_bank": 0, "n_steps": 1}
    step = build_step(layout, training, plan, in_graph=False, **shape)
    assert step.noise_scales is not None  # the plan adds noise
    centred = tf.constant((points - layout.center).astype(np.float32))
    found = []
    for number in range(_INITIAL):
        state = initial_state(layout, training, np.random.default_rng(number))
        initial = [tf.constant(a) for a in state.arrays["critic"]]
        weights = unflatten(step.constrain(initial), output_bias=False)
        centres, stds = step.noise_scales(weights)
        _, inputs, deltas = critic_pass(weights, centred, step.activation)
        parts: list[Floats] = []
        for x, delta, (_, bias) in zip(inputs, deltas, weights, strict=True):
            parts.append(np.einsum("ni,nj->nij", x, delta))
            parts += [] if bias is None else [np.asarray(delta)]
        moves = [(g - np.asarray(c)) / np.asarray(s) for g, c, s in zip(parts, centres, stds, strict=True)]
        found.append(np.concatenate([m.reshape(len(points), -1) for m in moves], axis=1))
    return np.concatenate(found, axis=1).astype(np.float64)


def run_at_the_bound(
    noise_multiplier: float,
    sampling_prob: float,
    steps: int,
    world: int,
    rng: np.random.Generator,
    *,
    adjacency: str = "add/remove",
) -> Transcript:
    """Simulate a run on D (world 0) or D' (world 1), whose differing record moves every step by the bound.

    Parameters
    ----------
    noise_multiplier : float
        For the event of one step, in units of the sensitivity to adding or removing one record.
    sampling_prob : float
        Probability of the record in each step, in (0, 1].
    steps : int
        Noisy sums T, at least 1.
    world : {0, 1}
        Which table it is on.
    rng : numpy.random.Generator
        Draws the noise.
    adjacency : {"add/remove", "replace-one"}
        Under replace-one the two records move the sum in opposite directions.

    Returns
    -------
    Transcript
        One number a step.

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


def quick_attempts(
    plan: Plan,
    training: TrainingSettings | MatchingSettings,
    layout: Layout,
    points: Floats,
    *,
    name: str,
    seed: int = 0,
    scale: NDArray[np.float32] | None = None,
) -> tuple[Attempt, ...]:
    """Attack a simulated record at the bound over the whole plan, and a real one in its first steps.

    ``points`` are encoded records of the table with this name, (n, dim). Return advantage and exceedance of
    the simulation, which reads no record and is not confidential. Then comes the advantage computed for the
    record that lies furthest from all others. A plan without noise gives nothing. If the penalty reads
    records, they cannot be watched, and the last is absent.

    A few trainings cannot show an advantage of a tenth. They do show which part of the bound a record moves a
    step by. The advantage is that of the plan with the noise divided by this part, as if later steps were
    like the first. Its interval is Student's, of the part over trainings. Gradients at random critics have no
    training: there the part is that of other critics, drawn anew. ``scale`` is their coordinates' factor.
    """
    if plan.noise_multiplier is None:
        return ()
    whole = Setting(plan.steps, plan.noise_multiplier, plan.sampling_prob)
    profile = whole.profile()
    belief = max(posterior_belief(profile.loss_quantile(PASSED)), 0.5 + 1e-6)
    rng, worlds = np.random.default_rng(seed), np.arange(SIMULATED) % 2
    played = plan.noise_multiplier, plan.sampling_prob, plan.steps
    odds = np.array([log_odds(run_at_the_bound(*played, world, rng))[-1] for world in worlds])
    simulated = Game(worlds, odds).attempts(
        profile,
        belief,
        attack="A_DI against a record at the bound",
        about=f"simulated, all {plan.steps:,} WGAN critic steps of this run, no record read",
        closer="nothing: this is the worst case that the accounting is about",
        level=SURE,
    )
    found = tuple(replace(attempt, internal=False) for attempt in simulated)
    if isinstance(training, MatchingSettings):
        if len(points) < 2:
            return found
        parts = _parts_of_critics(plan, training, layout, np.asarray(points, np.float64), scale, seed)
        return (*found, _reckoned(whole, parts, profile.tv(), name, "sets of random critics"))
    steps = min(plan.steps, max(WATCHED_STEPS // training.critic_steps, 1) * training.critic_steps)
    if training.penalty == "data" or len(points) < 2 or steps % training.critic_steps:
        return found
    short = replace(whole, steps=steps)
    subject = critic_subject(name, np.asarray(points, np.float64), points, layout, training, short, plan)
    parts = np.array([np.mean(subject.play(run, run + 1, seed)["moved"]) for run in range(WATCHED)])
    return (*found, _reckoned(whole, parts, profile.tv(), name, "trainings"))


def _parts_of_critics(
    plan: Plan,
    training: MatchingSettings,
    layout: Layout,
    points: Floats,
    scale: NDArray[np.float32] | None,
    seed: int,
) -> Floats:
    """Part of the bound by which the record furthest from all others moves a gradient, by set of critics."""
    from dpsynth.wgan.matching import Critics, GradientRelease

    factor = np.ones(layout.dim, np.float32) if scale is None else scale
    few = replace(plan, steps=_INITIAL)
    own = points[removals(points)[0].index][None].astype(np.float32)
    parts = []
    for number in range(WATCHED):
        critics = Critics.draw(_INITIAL, layout.dim, training, np.random.default_rng([seed, number]))
        release = GradientRelease(critics, layout, factor, few)
        moved = [np.linalg.norm(release.contributions(own, t)) for t in range(_INITIAL)]
        parts.append(float(np.mean(moved)))
    return np.array(parts)


def _reckoned(whole: Setting, parts: Floats, tv: float, name: str, sources: str) -> Attempt:
    from scipy.stats import t as student

    middle, level = float(parts.mean()), 0.95
    reach = float(student.isf((1 - level) / 2, len(parts) - 1) * parts.std(ddof=1) / np.sqrt(len(parts)))
    ends = [min(max(part, 0.0), 1.0) for part in (middle, middle - reach, middle + reach)]
    value, lower, upper = (_tv_of_part(whole, part) for part in ends)
    return Attempt(
        "A_DI against the record furthest from all others",
        "advantage",
        Estimate(value, lower, upper),
        tv,
        NOTHING,
        f"reckoned from {len(parts)} {sources} on {name}: it moves a step by {middle:.0%} of the bound",
        "a record that moves every step by the whole bound, always in the same direction",
        level,
    )


def _tv_of_part(whole: Setting, part: float) -> float:
    if part <= 0.0:
        return 0.0
    event = training_event(whole.noise_multiplier / part, whole.sampling_prob, whole.steps)
    return Profile([event], coarseness=4.0).tv()
