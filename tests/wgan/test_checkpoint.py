"""Private checkpoints: of one table, for their owner's eyes."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from dpsynth.errors import DataError, InputError
from dpsynth.files.codec import record
from dpsynth.files.storage import mend
from dpsynth.privacy.noise import generator_at, generator_state, secure_generator
from dpsynth.privacy.records import FrameRecords
from dpsynth.privacy.release import Plan
from dpsynth.runs.spending import give_up
from dpsynth.table.encoder import Layout
from dpsynth.wgan.checkpoint import (
    Interrupted,
    check_target,
    recognised,
    take_checkpoint,
    write_checkpoint,
)
from dpsynth.wgan.history import TrainingHistory
from dpsynth.wgan.settings import TrainingSettings
from dpsynth.wgan.state import TrainingState
from dpsynth.wgan.training import initial_state

TABLE = pd.DataFrame({"age": [31, 58, 44], "died": ["no", "yes", "no"]})
SETTINGS = TrainingSettings(critic_hidden=(4,), generator_hidden=(3,), latent=2, penalty="none")
PLAN = Plan(sampling_prob=0.5, expected_batch=2.0, steps=40, noise_multiplier=1.5)


@record
@dataclass(frozen=True, eq=False)
class Fit:
    """A fit in miniature."""

    ledger: int
    history: TrainingHistory
    model: NDArray[np.float64]
    interrupted: Interrupted | None


def write(folder, step=7, ended=False):
    """What an interrupted run leaves."""
    state = initial_state(Layout(2), SETTINGS, rng=np.random.default_rng(0))
    rows = pd.DataFrame({"step": [14], "noise_std": [0.5]})
    noise = generator_state(secure_generator())
    state = TrainingState(state.arrays, step, rows, noise, awaits_noise=not ended)
    with (records := FrameRecords(TABLE)).opened():
        left = Interrupted.of(state, PLAN, recognised(records), "{}", ended=ended)
    write_checkpoint(folder, Fit(1, TrainingHistory.of(state.history), np.ones(2), left))
    return folder


@pytest.fixture
def left(tmp_path):
    """The folder that an interrupted run has left."""
    return write(tmp_path / "c")


def take(folder, table=TABLE):
    return take_checkpoint(folder, Fit, lambda saved: FrameRecords(table))


def test_what_was_written_comes_back(left):
    """Catches a run that goes on from other weights, moments, steps or under another plan."""
    saved, kept, records = take(left)
    start = initial_state(Layout(2), SETTINGS, rng=np.random.default_rng(0)).arrays
    assert saved.ledger == 1 and saved.model.tolist() == [1.0, 1.0] and records._frame() is TABLE
    state = kept.state_with(saved.history)
    assert (state.step, kept.plan) == (7, PLAN)
    assert str(state.history.to_dict("records")) == "[{'step': 14, 'noise_std': 0.5}]"  # a whole number still
    assert kept.start == "{}" and generator_state(generator_at(state.noise)) == state.noise
    for name in ("critic", "generator", "average"):
        assert all(np.array_equal(a, b) for a, b in zip(state.arrays[name], start[name], strict=True))


def test_a_checkpoint_that_was_given_up_is_not_used(left):
    """Catches a continuation of a run whose place another one has taken."""
    give_up(left)
    with pytest.raises(DataError, match="was given up"):
        take(left)


def test_what_is_finished_keeps_no_noise(tmp_path):
    """Catches a state from which the noise of a whole training can be found, kept when nothing needs it."""
    _, kept, _ = take(write(tmp_path / "c", ended=True))
    assert (kept.start, kept.noise) == (None, None)


@pytest.mark.parametrize(
    "state", ["", "{}", '{"bit_generator": "seed"}', '{"bit_generator": "AESCounter", "s": 1}']
)
def test_a_state_that_was_made_up_is_refused(state):
    """Catches a traceback, or a call of whatever a damaged file names."""
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    with pytest.raises(DataError, match="no state of a generator"):
        generator_at(state)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


@pytest.mark.parametrize(
    "other",
    [TABLE.iloc[:2], TABLE.iloc[[1, 0, 2]], TABLE.assign(age=[31, 58, 45]), TABLE.iloc[[0, 1, 2, 2]]],
    ids=["fewer", "other order", "another value", "more"],
)
def test_another_table_is_refused_and_uses_nothing_up(left, other):
    """Catches a run that goes on with records its ledger knows nothing of."""
    with pytest.raises(DataError, match="another table"):
        take(left, other)
    take(left)


@pytest.mark.parametrize("name", ["checkpoint.json", "checkpoint.npz"])
def test_a_damaged_checkpoint_is_refused_and_not_used_up(left, name):
    """Catches a run that goes on from another step or other weights than those that were left."""
    whole = (left / name).read_bytes()
    changed = whole.replace(b'"step": 7', b'"step": 1') if name.endswith("json") else whole[:-30]
    assert changed != whole
    (left / name).write_bytes(changed)
    with pytest.raises(DataError, match=f"damaged checkpoint: {name}"):
        take(left)
    (left / name).write_bytes(whole)
    take(left)


def test_a_model_without_its_training_is_no_checkpoint(left, tmp_path):
    """Catches a traceback, or a released model that starts a training anew."""
    write_checkpoint(tmp_path / "m", Fit(1, TrainingHistory(), np.ones(2), None))
    with pytest.raises(DataError, match="damaged checkpoint: its training is absent"):
        take(tmp_path / "m")


def test_the_digest_cannot_be_looked_up(tmp_path):
    """Catches a digest without a salt of its own: the same table would give the same one everywhere."""
    written = [json.loads((write(tmp_path / name) / "checkpoint.json").read_text()) for name in ("a", "b")]
    told = [record["interrupted"]["table"] for record in written]
    assert told[0]["digest"] != told[1]["digest"] and told[0]["salt"] != told[1]["salt"]


def test_a_kill_between_two_renames_loses_nothing(left):
    """Catches a checkpoint that is lost when a process is killed while it puts a new one in its place."""
    whole = (left / "checkpoint.json").read_bytes()
    aside, fresh = (left.with_name(f".c.0123456{n}.{end}") for n, end in ((7, "old"), (8, "tmp")))
    aside.mkdir()
    fresh.mkdir()
    (fresh / "checkpoint.json").write_text("{")
    left.rename(aside / "old")
    mend(left)
    assert left.is_dir() and (left / "checkpoint.json").read_bytes() == whole
    assert [entry.name for entry in left.parent.iterdir()] == ["c"]
    mend(left.with_name("absent"))
    mend(left / "no" / "parent")
    take(left)


def test_only_the_owner_may_look(left):
    """Catches private optimiser state that any user of the machine can read."""
    assert left.stat().st_mode & 0o077 == 0
    assert (left / "README.txt").read_text().startswith("PRIVATE")


def test_no_other_folder_is_replaced(left, tmp_path):
    """Catches a checkpoint that deletes whatever folder was named, or a training that has not ended."""
    check_target(write(tmp_path / "finished", ended=True))
    with pytest.raises(InputError, match="has not ended"):
        check_target(left)
    give_up(left)
    check_target(left)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/patients.csv").write_text("age\n40\n")
    with pytest.raises(InputError, match="holds other files"):
        check_target(tmp_path / "mine")
