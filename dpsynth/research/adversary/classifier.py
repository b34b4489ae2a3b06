"""DP-SGD classifiers under attack: which record differs, and the runs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth.attacks.adversary import log_odds, shifts
from dpsynth.audits.adversary_setting import Setting, differing
from dpsynth.datasets.table import Table
from dpsynth.errors import InputError
from dpsynth.evaluation.features import ClassifierEncoding
from dpsynth.research.adversary.dp_sgd import DpSgd, Floats, Network, Records, gradients, watch

#: trials of each made-up record
_TRIALS = 4


@dataclass(frozen=True)
class ClassifierSubject:
    """A classifier and the two tables, as :func:`~dpsynth.research.adversary.dp_sgd.watch` takes them.

    ``test`` are records on which accuracy is measured, if any; ``distance`` is that of the two tables, as the
    choice of the record measures it.
    """

    name: str
    others: Records
    first: Records
    second: Records | None
    test: Records | None
    classes: int
    training: DpSgd
    setting: Setting
    distance: float

    def play(self, start: int, stop: int, seed: int) -> dict[str, Any]:
        """As :class:`~dpsynth.audits.adversary_critic.CriticSubject` does."""
        numbers = range(start, stop)
        worlds = [number % 2 for number in numbers]
        rngs = [np.random.default_rng([seed, number]) for number in numbers]
        seen, network = watch(self.others, self.first, self.second, self.classes, self.training, worlds, rngs)
        reach = self.training.noise_multiplier / (1 if self.second is None else 2)
        return {
            "worlds": worlds,
            "log_odds": [log_odds(run).tolist() for run in seen],
            "moved": (np.mean([shifts(run) for run in seen], axis=0) * reach).tolist(),
            "accuracy": None if self.test is None else network.accuracy(self.test).tolist(),
        }

    def told(self) -> str:
        """As :class:`~dpsynth.audits.adversary_critic.CriticSubject` does."""
        kind = (
            f"network of {self.training.hidden} hidden units"
            if self.training.hidden
            else "softmax regression"
        )
        return f"DP-SGD, {kind}, on {len(self.others) + 1} records of {self.name}"

    def digest(self) -> str:
        """As :class:`~dpsynth.audits.adversary_critic.CriticSubject` does."""
        digest = hashlib.sha256(repr((self.training, self.setting, self.classes)).encode())
        for records in (self.others, self.first, self.second, self.test):
            if records is not None:
                digest.update(records.points.tobytes() + records.labels.tobytes())
        return digest.hexdigest()


def encoded(train: Table, test: Table) -> tuple[Records, Records, int]:
    """Records of both parts in the unit cube with their outcome as label, and the number of classes."""
    from dpsynth.table.values import category_codes

    schema = train.schema
    if schema.outcome is None or not schema.column(schema.outcome).is_categorical:
        raise InputError(f"{train.name} has no outcome of categories for a classifier; name another table")
    outcome = schema.column(schema.outcome)
    frames = [schema.conform(part.frame).frame for part in (train, test)]
    encoding = ClassifierEncoding.fit(frames[0], schema, outcome.name)
    found = [
        Records(
            np.clip(encoding.transform(frame, impute=True), 0.0, 1.0),
            np.asarray(category_codes(outcome, frame[outcome.name]), dtype=np.int64),
        )
        for frame in frames
    ]
    found = [records.take(np.flatnonzero(records.labels >= 0)) for records in found]
    return found[0], found[1], len(outcome.categories)


def classifier_subject(
    name: str, train: Records, pool: Records, classes: int, training: DpSgd, setting: Setting
) -> ClassifierSubject:
    """Choose the differing record of D.

    A replacement comes from the pool, on which accuracy is measured too. Steps, noise and sampling of
    ``training`` are those of the setting.
    """
    if setting.choice == "worst-case":
        first, second, distance = _made_up(train, classes, training, setting)
        others = train.take(range(1, len(train)))  # as many records as in the other games
        return ClassifierSubject(name, others, first, second, pool, classes, training, setting, distance)

    def moves(of: int) -> Floats:
        network = Network.drawn(train.points.shape[1], training.hidden, classes, [np.random.default_rng(0)])
        return gradients(network, (train, pool)[of], training.clip_norm)

    # Definition 6 is about whole records: the label is one of their coordinates, as one-hot / sqrt(2)
    own, other = (np.hstack([r.points, np.eye(classes)[r.labels] / np.sqrt(2)]) for r in (train, pool))
    found = differing(setting, (own, other), moves)
    others = train.take([i for i in range(len(train)) if i != found.index])
    second = None if found.replacement is None else pool.take([found.replacement])
    first = train.take([found.index])
    return ClassifierSubject(name, others, first, second, pool, classes, training, setting, found.distance)


def _made_up(
    train: Records, classes: int, training: DpSgd, setting: Setting
) -> tuple[Records, Records | None, float]:
    """The record, or pair, among corners of the cube that moves a few trial runs most."""
    best: tuple[float, Records, Records | None] | None = None
    rngs = [np.random.default_rng([1, trial]) for trial in range(_TRIALS)]
    worlds = [trial % 2 for trial in range(_TRIALS)]
    others = train.take(range(1, len(train)))
    for first, second in _corners(train, classes, setting.neighbour == "replaced"):
        seen, _ = watch(others, first, second, classes, training, worlds, rngs)
        moved = float(np.mean([(shifts(run) ** 2).sum() for run in seen]))
        if best is None or moved > best[0]:
            best = moved, first, second
    assert best is not None  # there are corners
    return best[1], best[2], float(np.sqrt(best[0]))


def _corners(train: Records, classes: int, pairs: bool) -> Iterator[tuple[Records, Records | None]]:
    """Corners of the cube with a label each, or with two labels; random ones, and those of each class."""
    width = train.points.shape[1]
    rng = np.random.default_rng(0)
    points = [np.ones(width), np.zeros(width), *(rng.random((4, width)) < 0.5).astype(np.float64)]
    middle = train.points.mean(axis=0)
    for label in range(min(classes, 4)):
        own = train.points[train.labels == label]
        if len(own):
            points.append((own.mean(axis=0) > middle).astype(np.float64))
    for point in points:
        records = [Records(point[None], np.array([label])) for label in range(min(classes, 4))]
        for label, one in enumerate(records):
            if pairs:
                yield from ((one, other) for other in records[:label])
            else:
                yield one, None
