"""Train many runs of a small DP-SGD classifier side by side, and write down what A_DI sees.

Abadi et al. 2016, "Deep learning with differential privacy", Algorithm 1, with Poisson sampling. It is
softmax regression or a network of one hidden layer. Each record's gradient is clipped to a norm C, and the
sum has normal noise. NumPy only. The gradients of a layer are outer products, so their norms need no
per-record gradient (Goodfellow 2015). It exists to be attacked. It trains without using privacy budget, and
its records of a run are as secret as the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.attacks.beliefs import Transcript, log_odds, shifts
from dpsynth.audits.adversary import Setting, differing
from dpsynth.checks import inside, whole
from dpsynth.datasets.table import Table
from dpsynth.errors import InputError
from dpsynth.evaluation.tables import ClassifierEncoding
from dpsynth.research.ltu.trainers import digest

Floats = NDArray[np.float64]

#: what every result says whose noise is scaled to local sensitivity
NOT_PRIVATE = "NOT PRIVATE (noise scaled to two records)"
#: trials of each made-up record
_TRIALS = 4


@dataclass(frozen=True)
class DpSgd:
    """A classifier and its plain gradient steps on the mean over the expected batch.

    The noise std is the setting's noise multiplier times ``clip_norm`` C, the sensitivity to one record more
    or less. ``hidden`` is the width of the hidden layer (tanh), 0 for softmax regression.
    """

    clip_norm: float = 1.0
    learning_rate: float = 0.5
    hidden: int = 0

    def __post_init__(self) -> None:
        inside("clip_norm", self.clip_norm, 0.0, np.inf)
        inside("learning_rate", self.learning_rate, 0.0, np.inf)
        whole("hidden", self.hidden, 0)


@dataclass(frozen=True)
class LabelledPoints:
    """n labelled records in the unit cube, points (n, d) and labels in [0, classes)."""

    points: Floats
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        if np.ndim(self.points) != 2 or np.shape(self.labels) != (len(self.points),):
            raise InputError(
                f"labels must be one a record, got {np.shape(self.labels)} for points of shape "
                f"{np.shape(self.points)}"
            )

    def __len__(self) -> int:
        return len(self.points)

    def take(self, rows: NDArray[np.int64] | Sequence[int]) -> LabelledPoints:
        """Some of the records, in this order."""
        return LabelledPoints(self.points[rows], self.labels[rows])


@dataclass(frozen=True)
class Network:
    """Flat weights of R runs, shape (R, P), and how they make layers."""

    weights: Floats
    inputs: int
    hidden: int
    classes: int

    @classmethod
    def drawn(cls, inputs: int, hidden: int, classes: int, rngs: Sequence[np.random.Generator]) -> Network:
        """Zeros for softmax regression. Glorot's uniform samples for hidden layers, with biases of zero."""
        if not hidden:
            return cls(np.zeros((len(rngs), (inputs + 1) * classes)), inputs, 0, classes)
        rows = []
        for rng in rngs:
            parts = []
            for fan_in, fan_out in ((inputs, hidden), (hidden, classes)):
                reach = np.sqrt(6.0 / (fan_in + fan_out))
                matrix = np.vstack([rng.uniform(-reach, reach, (fan_in, fan_out)), np.zeros((1, fan_out))])
                parts.append(matrix.ravel())
            rows.append(np.concatenate(parts))
        return cls(np.array(rows), inputs, hidden, classes)

    @property
    def layers(self) -> list[Floats]:
        """Matrices (R, n_in + 1, n_out), the bias last."""
        runs, widths = len(self.weights), [self.inputs, self.classes]
        if self.hidden:
            widths.insert(1, self.hidden)
        found, start = [], 0
        for fan_in, fan_out in pairwise(widths):
            stop = start + (fan_in + 1) * fan_out
            found.append(self.weights[:, start:stop].reshape(runs, fan_in + 1, fan_out))
            start = stop
        return found

    def moved(self, by: Floats) -> Network:
        """The same network with ``by``, (R, P), added to its weights."""
        return Network(self.weights + by, self.inputs, self.hidden, self.classes)

    def activations(self, points: Floats) -> list[Floats]:
        """Inputs of each layer with a one appended, (n, d + 1), (R, n, hidden + 1), and probabilities."""
        layers = self.layers
        found = [_with_ones(points)]
        if self.hidden:
            found.append(_with_ones(np.tanh(found[0] @ layers[0])))
        logits = found[-1] @ layers[-1]
        odds = np.exp(logits - logits.max(axis=2, keepdims=True))
        return [*found, odds / odds.sum(axis=2, keepdims=True)]

    def accuracy(self, records: LabelledPoints) -> Floats:
        """Share of records whose most probable class is their label, shape (R,)."""
        named = self.activations(records.points)[-1].argmax(axis=2)
        return np.asarray((named == records.labels).mean(axis=1))

    def clipped_sum(self, records: LabelledPoints, clip_norm: float, taken: Floats | None = None) -> Floats:
        """Sum of the clipped gradients of the loss of the records that each run takes, shape (R, P).

        ``taken`` (R, n) is 1 where a run takes a record, 0 elsewhere. All are taken by default.
        """
        *inputs, probabilities = self.activations(records.points)
        deltas = [probabilities - np.eye(self.classes)[records.labels]]
        if self.hidden:
            # through tanh, whose derivative is 1 - tanh^2; the appended one has no input
            upstream = deltas[0] @ self.layers[-1][:, :-1].transpose(0, 2, 1)
            deltas.insert(0, upstream * (1.0 - inputs[-1][:, :, :-1] ** 2))
        pairs = list(zip(inputs, deltas, strict=True))
        squares = sum((x * x).sum(axis=-1) * (d * d).sum(axis=2) for x, d in pairs)
        factors = np.minimum(1.0, clip_norm / np.sqrt(np.maximum(squares, 1e-300)))
        if taken is not None:
            factors = factors * taken
        sums = [np.swapaxes(x, -1, -2) @ (d * factors[:, :, None]) for x, d in pairs]
        return np.concatenate([s.reshape(len(s), -1) for s in sums], axis=1)


def watch(
    others: LabelledPoints,
    first: LabelledPoints,
    second: LabelledPoints | None,
    classes: int,
    training: DpSgd,
    setting: Setting,
    worlds: Sequence[int],
    rngs: Sequence[np.random.Generator],
) -> tuple[list[Transcript], Network]:
    """Train once for each generator, on D (world 0) or D' (world 1), and write down what is released.

    Both tables have ``others``. D also has the record ``first``, and D' has ``second`` in its place, or
    nothing. A run's generator is for initial weights, samples and noise. Local noise is in proportion to the
    distance of the two candidates' clipped gradients in this very step. It is **not private**: it protects no
    record but these two (D5.3, Definition 3).
    """
    runs, q, clip = len(rngs), setting.sampling_prob, training.clip_norm
    network = Network.drawn(others.points.shape[1], training.hidden, classes, rngs)
    expected = q * (len(others) + 1)  # public: both tables are known to whoever plays this game
    in_world = np.asarray(worlds) == 0
    reach = clip if second is None else 2 * clip
    seen: list[list[Floats]] = []
    for _ in range(setting.steps):
        taken = np.array([rng.random(len(others) + 1) < q for rng in rngs], dtype=np.float64)
        rest = network.clipped_sum(others, clip, taken[:, :-1])
        under_d = network.clipped_sum(first, clip)
        under_d_prime = np.zeros_like(rest) if second is None else network.clipped_sum(second, clip)
        std = np.full((runs, 1), setting.noise_multiplier * clip)
        if setting.noise == "local":  # not private
            std = std * (np.linalg.norm(under_d - under_d_prime, axis=1, keepdims=True) / reach)
            if not (std > 0.0).all():
                raise InputError("noise must be 'global' where the differing records have the same gradient")
        mean = rest + taken[:, -1:] * np.where(in_world[:, None], under_d, under_d_prime)
        released = mean + std * np.array([rng.standard_normal(rest.shape[1]) for rng in rngs])
        seen.append([released, rest, under_d, under_d_prime, np.broadcast_to(std, rest.shape)])
        network = network.moved(-training.learning_rate / expected * released)
    released, rest, under_d, under_d_prime, std = (
        np.stack(parts, axis=1) for parts in zip(*seen, strict=True)
    )
    transcripts = [
        Transcript(released[run], rest[run], np.stack([under_d[run], under_d_prime[run]]), std[run], q)
        for run in range(runs)
    ]
    return transcripts, network


def clipped_gradients(network: Network, records: LabelledPoints, clip_norm: float) -> Floats:
    """Each record's own clipped gradient at the first run's weights, shape (n, P)."""
    one = Network(network.weights[:1], network.inputs, network.hidden, network.classes)
    return np.concatenate([one.clipped_sum(records.take([i]), clip_norm) for i in range(len(records))])


@dataclass(frozen=True)
class ClassifierSubject:
    """A classifier and the two tables, as :func:`watch` takes them.

    ``test`` are records on which accuracy is measured, if any. ``distance`` is that of the two tables, as the
    choice of the record measures it.
    """

    name: str
    others: LabelledPoints
    first: LabelledPoints
    second: LabelledPoints | None
    test: LabelledPoints | None
    classes: int
    training: DpSgd
    setting: Setting
    distance: float

    def play(self, start: int, stop: int, seed: int) -> dict[str, Any]:
        """As :class:`~dpsynth.audits.adversary.CriticSubject` does."""
        numbers = range(start, stop)
        worlds = [number % 2 for number in numbers]
        rngs = [np.random.default_rng([seed, number]) for number in numbers]
        seen, network = watch(
            self.others, self.first, self.second, self.classes, self.training, self.setting, worlds, rngs
        )
        reach = self.setting.noise_multiplier / (1 if self.second is None else 2)
        return {
            "worlds": worlds,
            "log_odds": [log_odds(run).tolist() for run in seen],
            "moved": (np.mean([shifts(run) for run in seen], axis=0) * reach).tolist(),
            "accuracy": None if self.test is None else network.accuracy(self.test).tolist(),
        }

    def told(self) -> str:
        """As :class:`~dpsynth.audits.adversary.CriticSubject` does."""
        units = self.training.hidden
        kind = f"network of {units} hidden units" if units else "softmax regression"
        return f"DP-SGD, {kind}, on {len(self.others) + 1} records of {self.name}"

    def digest(self) -> str:
        """As :class:`~dpsynth.audits.adversary.CriticSubject` does."""
        told = np.frombuffer(repr((self.training, self.setting, self.classes)).encode(), np.uint8)
        tables = (self.others, self.first, self.second, self.test)
        return digest(told, *(part for table in tables if table for part in vars(table).values()))


def labelled_points(train: Table, test: Table) -> tuple[LabelledPoints, LabelledPoints, int]:
    """Records of both parts in the unit cube with their outcome as label, and the number of classes."""
    from dpsynth.table.kinds.category import category_codes

    schema = train.schema
    if schema.outcome is None or not schema.column(schema.outcome).is_categorical:
        raise InputError(f"{train.name} has no outcome of categories for a classifier. Name another table")
    outcome = schema.column(schema.outcome)
    frames = [schema.conform(part.frame).frame for part in (train, test)]
    encoding = ClassifierEncoding.fit(frames[0], schema, outcome.name)
    found = [
        LabelledPoints(
            np.clip(encoding.transform(frame, impute=True), 0.0, 1.0),
            np.asarray(category_codes(outcome, frame[outcome.name]), dtype=np.int64),
        )
        for frame in frames
    ]
    found = [records.take(np.flatnonzero(records.labels >= 0)) for records in found]
    return found[0], found[1], len(outcome.categories)


def classifier_subject(
    name: str, train: LabelledPoints, pool: LabelledPoints, classes: int, training: DpSgd, setting: Setting
) -> ClassifierSubject:
    """Choose the differing record of D.

    A replacement comes from the pool, on which accuracy is measured too.
    """

    def moves(of: int) -> Floats:
        network = Network.drawn(train.points.shape[1], training.hidden, classes, [np.random.default_rng(0)])
        return clipped_gradients(network, (train, pool)[of], training.clip_norm)

    if setting.choice == "worst-case":
        others = train.take(range(1, len(train)))  # as many records as in the other games
        first, second, distance = _made_up(others, train, classes, training, setting)
    else:
        # Definition 6 is about whole records: the label is one of their coordinates, as one-hot / sqrt(2)
        own, other = (np.hstack([r.points, np.eye(classes)[r.labels] / np.sqrt(2)]) for r in (train, pool))
        found = differing(setting, (own, other), moves)
        others = train.take([i for i in range(len(train)) if i != found.index])
        first, distance = train.take([found.index]), found.distance
        second = None if found.replacement is None else pool.take([found.replacement])
    return ClassifierSubject(name, others, first, second, pool, classes, training, setting, distance)


def _made_up(
    others: LabelledPoints, train: LabelledPoints, classes: int, training: DpSgd, setting: Setting
) -> tuple[LabelledPoints, LabelledPoints | None, float]:
    """The record, or pair, among corners of the cube that moves a few trial runs most, and how far."""
    rngs = [np.random.default_rng([1, trial]) for trial in range(_TRIALS)]
    worlds = [trial % 2 for trial in range(_TRIALS)]
    tried = []
    for first, second in _corners(train, classes, setting.neighbour == "replaced"):
        seen, _ = watch(others, first, second, classes, training, setting, worlds, rngs)
        tried.append((float(np.mean([(shifts(run) ** 2).sum() for run in seen])), first, second))
    moved, first, second = max(tried, key=lambda one: one[0])
    return first, second, float(np.sqrt(moved))


def _corners(
    train: LabelledPoints, classes: int, pairs: bool
) -> Iterator[tuple[LabelledPoints, LabelledPoints | None]]:
    """Corners of the cube with a label each, or with two labels: random ones, and those of each class."""
    width = train.points.shape[1]
    rng = np.random.default_rng(0)
    points = [np.ones(width), np.zeros(width), *(rng.random((4, width)) < 0.5).astype(np.float64)]
    middle = train.points.mean(axis=0)
    for label in range(min(classes, 4)):
        own = train.points[train.labels == label]
        if len(own):
            points.append((own.mean(axis=0) > middle).astype(np.float64))
    for point in points:
        records = [LabelledPoints(point[None], np.array([label])) for label in range(min(classes, 4))]
        for label, one in enumerate(records):
            if pairs:
                yield from ((one, other) for other in records[:label])
            else:
                yield one, None


def _with_ones(x: Floats) -> Floats:
    return np.concatenate([x, np.ones((*x.shape[:-1], 1))], axis=-1)
