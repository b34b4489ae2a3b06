"""Snapshots of a generator: its own columns, at their time, and a training that is the same without them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from dpsynth.privacy.release import Plan
from dpsynth.table.column import Column
from dpsynth.table.encoder import Encoder, Layout
from dpsynth.table.grid import Counting, Marginals, make_grids
from dpsynth.table.schema import Schema
from dpsynth.wgan.settings import TrainingSettings
from dpsynth.wgan.snapshots import (
    Snapshot,
    snapshot_columns,
    snapshot_iterations,
    snapshots_fit,
    take_snapshot,
)
from dpsynth.wgan.training import TrainingRun, generator_of, initial_state

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=90, unit="years"),
        Column(name="grade", kind="categorical", categories=("I", "II", "III")),
        Column(name="died", kind="binary", categories=("no", "yes")),
    ),
    outcome="died",
)
LAYOUT = Layout(2, ((2, 4),))
SMALL = {
    "critic_hidden": (8,),
    "generator_hidden": (8,),
    "latent": 3,
    "activation": "leaky_relu",
    "bjorck_steps": 0,
    "penalty": "none",
}


def test_columns_are_those_of_the_weights():
    """Catches columns of other weights, in another order, or drawn with other shares than the generator's.

    Without weights, numbers are in the middle of their bounds, and the biases are the odds of categories.
    """
    encoder, settings = Encoder(SCHEMA, None), TrainingSettings(**SMALL)
    bias = np.zeros(6, np.float32)
    group = encoder.group[1]
    bias[slice(*group)] = np.log([0.2, 0.3, 0.5])
    bias[encoder.group[2][1] - 1] = -20.0
    weights = [(np.zeros((3, 8), np.float32), np.zeros(8, np.float32)), (np.zeros((8, 6), np.float32), bias)]
    found = take_snapshot(40, weights, settings, encoder)
    died, age, grade = found.shares
    assert found.step == 40 and died.tolist() == [1.0, 0.0] and age.max() == 1.0
    assert grade == pytest.approx([0.2, 0.3, 0.5], abs=4 * np.sqrt(0.25 / 2000))
    (first, second, _) = told = snapshot_columns([found], encoder)
    assert [column["column"] for column in told] == ["died", "age", "grade"]
    assert (first["labels"], first["edges"], first["released"]) == (["no", "yes"], [], [])
    place = int(np.argmax(second["generated"][0]))
    assert second["edges"][place] <= 54.5 < second["edges"][place + 1]
    assert second["labels"] == [] and len(second["edges"]) == len(second["generated"][0]) + 1


def test_released_counts_are_those_of_the_marginals():
    """Catches counts of other bars, or of another column."""
    ages, grades = [20, 20, 50, 80], ["I", "II", "II", "III"]
    frame = pd.DataFrame({"age": ages, "grade": grades, "died": ["no", "yes", "yes", "yes"]})
    grids = make_grids(SCHEMA)
    cells = [grid.encode(frame[grid.column.name]) for grid in grids]
    shares = tuple(np.bincount(c, minlength=grid.size) / 4 for c, grid in zip(cells, grids, strict=True))
    encoder = Encoder(SCHEMA, Marginals(grids, shares, 4.0, None, Counting()))
    shapes = [(2,), (30,), (3,)]
    found = snapshot_columns([Snapshot(0, tuple(np.ones(shape) / shape[0] for shape in shapes))], encoder)
    died, age, grade = (column["released"] for column in found)
    assert died == pytest.approx([0.25, 0.75]) and grade == pytest.approx([0.25, 0.5, 0.25])
    edges = found[1]["edges"]
    assert age == pytest.approx(np.histogram(ages, edges)[0] / 4)
    assert snapshot_columns([], encoder) == []


def test_snapshots_of_another_table_do_not_fit():
    """Catches a model's file whose snapshots have other bars than the columns that they are drawn for."""
    encoder, good = Encoder(SCHEMA, None), (np.ones(2), np.ones(30), np.ones(3))
    assert snapshots_fit([], encoder) and snapshots_fit([Snapshot(0, good)], encoder)
    for bad in (good[:2], (*good, np.ones(3)), (np.ones(3), *good[1:]), (np.ones((2, 1)), *good[1:])):
        assert not snapshots_fit([Snapshot(0, good), Snapshot(1, bad)], encoder)


def start():
    return initial_state(LAYOUT, TrainingSettings(**SMALL), np.random.default_rng(2))


def run(look=None, *, patience=None):
    """Nine iterations in one chunk."""
    rng = np.random.default_rng(0)
    points = np.zeros((80, 4), np.float32)
    points[:, :2] = rng.random((80, 2))
    points[np.arange(80), 2 + (points[:, 0] > 0.7)] = 1
    settings = TrainingSettings(**SMALL, patience=patience)
    plan = Plan(sampling_prob=0.25, expected_batch=20.0, steps=18, noise_multiplier=1.0)
    trainer = TrainingRun(points, LAYOUT, settings, plan, bank=None, in_graph=False)
    return trainer, trainer.run(np.random.default_rng(1), state=start(), look=look)


@pytest.mark.usefixtures("eager_steps")
@pytest.mark.parametrize("patience", [None, 1])
def test_a_training_is_the_same_without_snapshots(patience):
    """Catches a step that is made twice, left out, or made with other noise, since somebody looked."""
    seen = []

    def look(step, weights):
        seen.append((step, [np.array(a) for layer in weights for a in layer]))
        return Snapshot(step, ())

    _, looked_at = run(look, patience=patience)
    _, alone = run(patience=patience)
    assert looked_at.step == alone.step and looked_at.noise == alone.noise
    pd.testing.assert_frame_equal(looked_at.history, alone.history)
    for one, other in zip(*(tf.nest.flatten(s.arrays) for s in (looked_at, alone)), strict=True):
        assert np.array_equal(one, other)
    times = [2 * at for at in snapshot_iterations(9) if at < alone.step]
    assert [step for step, _ in seen] == [*times, 2 * alone.step]
    assert [snapshot.step for snapshot in looked_at.snapshots] == [step for step, _ in seen]
    assert alone.snapshots == ()
    first, *_, last = ([a for layer in generator_of(s) for a in layer] for s in (start(), looked_at))
    for weights, (_, shown) in ((first, seen[0]), (last, seen[-1])):
        assert all(np.array_equal(a, b) for a, b in zip(weights, shown, strict=True))
    assert len({shown[0].tobytes() for _, shown in seen}) == len(seen)


@pytest.mark.slow
def test_the_compiled_program_goes_on_where_it_stopped():
    """Catches a program that is compiled anew for a snapshot, or that rounds otherwise when it is divided."""
    _, looked_at = run(lambda step, weights: Snapshot(step, ()))
    trainer, alone = run()
    assert trainer._loop.experimental_get_tracing_count() == 1
    for one, other in zip(*(tf.nest.flatten(s.arrays) for s in (looked_at, alone)), strict=True):
        assert np.array_equal(one, other)
