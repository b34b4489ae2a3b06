"""Setting of a game against A_DI: the mechanism of a run, and the difference of the two tables.

MOSAICrOWN D5.3: *dataset sensitivity* (Definition 6) compares records, *local sensitivity* (Definition 3) the
query's values. Both search for the record, or the pair, that lies or moves the furthest. One searches over
records, the other over their contributions to the query. The document compares images by their structural
similarity. Here records are points, compared by Euclidean distance. A replaced record moves a sum of
gradients by no other distance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.events import training_event
from dpsynth.accounting.normal_form import ADD_REMOVE, REPLACE_ONE
from dpsynth.accounting.profile import Profile
from dpsynth.checks import in_range, inside, one_of, whole
from dpsynth.errors import InputError, of_records

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
