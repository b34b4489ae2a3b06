"""Our own critic under attack: the production step's noisy sums, and which record differs."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.attacks.adversary.belief import log_odds, shifts
from dpsynth.attacks.adversary.neighbours import Neighbour, largest, removals, replacements
from dpsynth.audits.adversary.setting import Setting, by_rank
from dpsynth.datasets.table import Table
from dpsynth.errors import InputError
from dpsynth.mechanism.plan import Plan
from dpsynth.model.wgan.settings import TrainingSettings
from dpsynth.table.layout import Layout

Floats = NDArray[np.float64]

#: initial weights over which moves of the first step are averaged, and corners that are tried
_INITIAL, _CORNERS = 4, 200


@dataclass(frozen=True)
class CriticSubject:
    """A critic's training and the two tables.

    Parameters
    ----------
    name : str
        Of the table.
    others : ndarray (n - 1, dim)
        Encoded records, in the unit cube.
    first : ndarray (dim,)
    second : ndarray (dim,) or None
    layout, training, plan
        As for :class:`~dpsynth.model.wgan.recorded_training.Watched`.
    setting : Setting
    distance : float
        Of the two tables, as the choice measures it.
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
        """See :class:`~dpsynth.audits.adversary.setting.Subject`."""
        watched = _watched(_Key(self.digest(), self))
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
        """See :class:`~dpsynth.audits.adversary.setting.Subject`."""
        return f"the critic's training on {len(self.others) + 1} records of {self.name}"

    def digest(self) -> str:
        """See :class:`~dpsynth.audits.adversary.setting.Subject`."""
        settings = (self.layout, self.training, self.plan, self.setting)
        digest = hashlib.sha256(repr(settings).encode())
        for records in (self.others, self.first, self.second):
            if records is not None:
                digest.update(np.ascontiguousarray(records).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class _Key:
    """A subject by its digest, so that its program is compiled once in a process."""

    digest: str
    subject: CriticSubject

    def __hash__(self) -> int:
        return hash(self.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.digest == other.digest


@functools.lru_cache(maxsize=2)
def _watched(key: _Key) -> Any:
    from dpsynth.model.wgan.recorded_training import Watched

    it = key.subject
    return Watched(it.others, it.first, it.second, it.layout, it.training, it.plan)


def encoded(train: Table, test: Table) -> tuple[Floats, Floats, Layout]:
    """Both parts as points of the unit cube, scaled by public bounds, and their layout."""
    from dpsynth.table.encoder import Encoder

    schema = train.schema
    encoder = Encoder(schema, None, numeric="minmax")
    found = [
        np.asarray(encoder.transform(schema.conform(part.frame).frame, np.random.default_rng(0)), np.float64)
        for part in (train, test)
    ]
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
    """Choose the differing record.

    Parameters
    ----------
    name : str
    train : ndarray (n, dim)
        D.
    pool : ndarray (m, dim)
        Not in D: where a replacement comes from.
    layout : Layout
    training : TrainingSettings
    setting : Setting
    plan : Plan, optional
        Of which the noise's shape and centring are taken; the rest is the setting's.

    Raises
    ------
    InputError
        If the noise is local, or the steps are no whole generator iterations.
    """
    if setting.noise != "global":
        raise InputError("noise must be 'global' for the critic, whose noise follows its proved bounds")
    if setting.steps % training.critic_steps:
        raise InputError(
            f"steps must be a multiple of critic_steps, {training.critic_steps}, got {setting.steps}"
        )
    played: dict[str, Any] = {
        "sampling_prob": setting.sampling_prob,
        "expected_batch": setting.sampling_prob * len(train),
        "steps": setting.steps,
        "noise_multiplier": setting.noise_multiplier,
    }
    plan = Plan(**played) if plan is None else replace(plan, **played)
    removed = setting.neighbour == "removed"
    if setting.choice == "worst-case":
        corners = _corners(layout)
        moves = _moves(corners, layout, training, plan)
        made = largest(moves)[0] if removed else replacements(moves, moves)[0]
        second = None if made.replacement is None else corners[made.replacement]
        others, first, distance = train[1:], corners[made.index], made.distance
    else:
        found = _neighbour(train, pool, layout, training, plan, setting)
        second = None if found.replacement is None else pool[found.replacement]
        others, first = np.delete(train, found.index, axis=0), train[found.index]
        distance = found.distance
    return CriticSubject(name, others, first, second, layout, training, plan, setting, distance)


def _neighbour(
    train: Floats, pool: Floats, layout: Layout, training: TrainingSettings, plan: Plan, setting: Setting
) -> Neighbour:
    removed, rank = setting.neighbour == "removed", setting.rank
    if setting.choice == "gradient":
        moves = _moves(train, layout, training, plan)
        return largest(moves)[0] if removed else replacements(moves, _moves(pool, layout, training, plan))[0]
    count, last = max(rank + 1, 1), max(-rank, 1)
    if removed:
        return by_rank(removals(train, count), removals(train, last, nearest=True), rank)
    return by_rank(replacements(train, pool, count), replacements(train, pool, last, nearest=True), rank)


def _corners(layout: Layout) -> Floats:
    """Corners of the domain: all numbers least or largest, and random ones; one category of each group."""
    rng = np.random.default_rng(0)
    corners = (rng.random((_CORNERS, layout.dim)) < 0.5).astype(np.float64)
    corners[0], corners[1] = 0.0, 1.0
    for start, stop in layout.groups:
        corners[:, start:stop] = np.eye(stop - start)[rng.integers(stop - start, size=len(corners))]
    return corners


def _moves(points: Floats, layout: Layout, training: TrainingSettings, plan: Plan) -> Floats:
    """What each record adds to the first released sum, in units of the noise, from several initial weights.

    Returns
    -------
    ndarray (n, initial weights * P)
    """
    import tensorflow as tf

    from dpsynth.model.wgan.critic import critic_pass
    from dpsynth.model.wgan.networks import unflatten
    from dpsynth.model.wgan.training import build_step, initial_state

    step = build_step(
        layout,
        training,
        plan,
        n_records=len(points),
        n_bank=0,
        with_base_model=False,
        in_graph=False,
        n_steps=1,
    )
    assert step.noise_scales is not None  # the plan adds noise
    centred = tf.constant((points - layout.center).astype(np.float32))
    found = []
    for number in range(_INITIAL):
        state = initial_state(layout, training, with_base_model=False, rng=np.random.default_rng(number))
        initial = [tf.constant(a) for a in state.arrays["critic"]]
        weights = unflatten(step.constrain(initial), output_bias=False)
        centres, stds = step.noise_scales(weights)
        _, inputs, deltas = critic_pass(weights, centred, step.activation)
        parts: list[Floats] = []
        for x, delta, (_, bias) in zip(inputs, deltas, weights, strict=True):
            parts.append(np.einsum("ni,nj->nij", x, delta))
            if bias is not None:
                parts.append(np.asarray(delta))
        moves = [
            (g - c) / s
            for g, c, s in zip(parts, map(np.asarray, centres), map(np.asarray, stds), strict=True)
        ]
        found.append(np.concatenate([m.reshape(len(points), -1) for m in moves], axis=1))
    return np.concatenate(found, axis=1).astype(np.float64)
