"""A training that was stopped, or whose process was killed, goes on as if it had not been."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dpsynth import DPWGANGP, Column, Schema, TrainingSettings
from dpsynth.errors import InputError
from dpsynth.files.codec import apart
from dpsynth.privacy import LedgerFile
from dpsynth.synthesis import training as rooms

# As little as there is to compile.
SMALL = TrainingSettings(
    critic_hidden=(4,), generator_hidden=(4,), latent=2, activation="leaky_relu", penalty="public"
)
SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=90),
        Column(name="died", kind="binary", categories=("no", "yes")),
    ),
    n_public=200,
)


def table():
    rng = np.random.default_rng(0)
    age = rng.integers(18, 91, 200)
    return pd.DataFrame({"age": age, "died": np.where(rng.random(200) < (age - 18) / 90, "yes", "no")})


def fit(stop=None, *, seed=5, **options):
    """A fit of twenty critic steps, five iterations a chunk. ``stop`` is called after each."""
    model = DPWGANGP(2.0, 1e-5, steps=40, training=SMALL, random_state=seed)
    return model.fit(table(), schema=SCHEMA, progress=stop, **options)


def at(step, problem):
    """Something that goes wrong after this step."""

    def stop(progress):
        if progress.step == step:
            problem()

    return stop


def weights(model):
    """All arrays of a model and its snapshots, its history, and the rest of the model."""
    (rest, arrays), (_, more) = apart(model.model_), apart(model._history)
    snapshots = {name: array for name, array in more.items() if name.startswith("snapshots")}
    assert len(snapshots) == 2 * 5  # of two columns
    return rest, arrays | snapshots, model.history_


def same(model, other):
    (rest, arrays, history), (again, others, after) = weights(model), weights(other)
    return (
        rest == again
        and arrays.keys() == others.keys()
        and all(np.array_equal(arrays[name], others[name]) for name in arrays)
        and history.equals(after)
    )


@pytest.fixture(autouse=True)
def _chunks(monkeypatch):
    monkeypatch.setattr("dpsynth.wgan.training._CHUNK_STEPS", 5)


@pytest.mark.usefixtures("eager_steps")
@pytest.mark.parametrize("problem", [ZeroDivisionError, KeyboardInterrupt, MemoryError, SystemExit])
def test_a_fault_of_the_users_own_loses_nothing(tmp_path, problem):
    """Catches a `1/0` in ``progress=`` that loses a run, and a run that goes on with other noise."""

    def fault():
        raise problem

    whole = fit()
    with pytest.raises(problem):
        fit(at(20, fault), checkpoint=tmp_path / "c")
    seen = []
    resumed = DPWGANGP.resume(tmp_path / "c", table(), progress=lambda p: seen.append(p.step))
    assert seen == [30, 40] and same(resumed, whole)
    assert resumed.training_ == whole.training_ and whole.training_["snapshots"] == [0, 10, 20, 30, 40]
    assert resumed.ledger_.summary() == whole.ledger_.summary()
    assert not same(fit(seed=6), whole)


@pytest.mark.usefixtures("eager_steps")
def test_noise_of_the_operating_system_goes_on_too(tmp_path):
    """Catches a checkpoint from which two stops give another model than one."""

    def fault():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fit(at(10, fault), seed=None, checkpoint=tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    once = DPWGANGP.resume(tmp_path / "a", table())
    with pytest.raises(ZeroDivisionError):
        DPWGANGP.resume(tmp_path / "b", table(), progress=at(30, fault))
    assert same(DPWGANGP.resume(tmp_path / "b", table()), once)
    assert not same(fit(seed=None), once)


@pytest.mark.usefixtures("eager_steps")
def test_a_finished_training_is_given_again_and_keeps_no_noise(tmp_path):
    """Catches a fit that is lost before it is saved, more steps after the last, or noise that lies about."""
    whole = fit(checkpoint=tmp_path / "c")
    assert '"start": null' in (tmp_path / "c/checkpoint.json").read_text()
    seen = []
    again = DPWGANGP.resume(tmp_path / "c", table(), progress=seen.append)
    assert not seen and same(again, whole)
    assert again.ledger_.summary() == whole.ledger_.summary()
    assert (tmp_path / "c").stat().st_mode & 0o077 == 0
    fit(checkpoint=tmp_path / "c")  # it may be replaced


@pytest.mark.usefixtures("eager_steps")
def test_nobody_goes_on_from_a_training_that_goes_on(tmp_path):
    """Catches two processes that go on from one checkpoint, whose ledger holds one run."""
    refused = []

    def attempt():
        try:
            DPWGANGP.resume(tmp_path / "c", table())
        except InputError as problem:
            refused.append(str(problem))

    def other():
        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()

    fit(at(20, other), checkpoint=tmp_path / "c")
    assert len(refused) == 1 and "is in use by process" in refused[0]


@pytest.mark.usefixtures("eager_steps")
def test_a_copy_that_pays_again_gets_other_noise(tmp_path):
    """Catches one noise in two runs that the ledger's file counts as independent."""

    def fault():
        raise ZeroDivisionError

    path = tmp_path / "clinic.ledger"
    LedgerFile(path).set_cap(100.0, 0.1)
    with pytest.raises(ZeroDivisionError):
        fit(at(20, fault), seed=None, checkpoint=tmp_path / "c", ledger=path)
    shutil.copytree(tmp_path / "c", tmp_path / "copied")
    first = DPWGANGP.resume(tmp_path / "c", table())
    assert [run.state for run in LedgerFile(path).history().runs] == ["complete"]
    second = DPWGANGP.resume(tmp_path / "copied", table())
    assert len(LedgerFile(path).history().runs) == 2
    a, b = first.history_, second.history_
    assert a[:10].equals(b[:10]) and not (a["wasserstein"][10:] == b["wasserstein"][10:]).any()


@pytest.mark.usefixtures("eager_steps")
def test_another_computer_goes_on_with_other_noise(tmp_path, monkeypatch):
    """Catches one noise for sums that two computers round differently: their difference has none."""

    def fault():
        raise ZeroDivisionError

    whole = fit()
    with pytest.raises(ZeroDivisionError):
        fit(at(20, fault), checkpoint=tmp_path / "c")
    monkeypatch.setattr("dpsynth.wgan.checkpoint.this_computer", lambda: "elsewhere")
    resumed = DPWGANGP.resume(tmp_path / "c", table())
    assert resumed.history_[:10].equals(whole.history_[:10])
    assert not (resumed.history_["wasserstein"][10:] == whole.history_["wasserstein"][10:]).any()


@pytest.mark.usefixtures("eager_steps")
def test_checkpoints_come_at_the_start_and_in_between(tmp_path, monkeypatch):
    """Catches a killed process that leaves nothing, and a checkpoint that is written too seldom."""
    steps = []

    def look():
        from dpsynth.synthesis.saved_fit import SavedFit
        from dpsynth.wgan.checkpoint import read_checkpoint

        steps.append(read_checkpoint(tmp_path / "c", SavedFit)[1].step)

    def each(progress):
        look()

    clock = iter(range(0, 10**6, 50))
    monkeypatch.setattr(rooms, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    fit(each, checkpoint=tmp_path / "c")
    look()
    # four chunks of 50 s: after the third, two minutes are over
    assert steps == [0, 0, 15, 15, 20]


@pytest.mark.usefixtures("eager_steps")
def test_a_training_that_stops_early_costs_what_was_planned():
    """Catches a ledger that counts the steps made: when a training stops depends on what it released."""
    whole = fit()
    model = DPWGANGP(2.0, 1e-5, steps=40, training=replace(SMALL, patience=1), random_state=5)
    model.fit(table(), schema=SCHEMA)
    made = len(model.history_)
    assert made < 20 and model.history_.equals(whole.history_[:made])
    told, planned = model.ledger_.summary(), whole.ledger_.summary()
    assert (told["epsilon"], told["delta"]) == (planned["epsilon"], planned["delta"])
    assert "fewer if noisy statistics say so, at the cost of all" in told["entries"][-1]["detail"]
    assert "fewer" not in planned["entries"][-1]["detail"]
    assert model.training_["made"] == 2 * made and model.training_["planned"] == 40
    taken = [step for step in (0, 10, 20, 30) if step < 2 * made]
    assert model.training_["snapshots"] == [*taken, 2 * made]


CHILD = """
import os, signal, sys
sys.path[:0] = [sys.argv[1]]
import dpsynth.wgan.training, dpsynth.synthesis.training, test_resume
dpsynth.wgan.training._CHUNK_STEPS = 5
dpsynth.synthesis.training.CHECKPOINT_SECONDS = 0.0
test_resume.fit(test_resume.at(20, lambda: os.kill(os.getpid(), signal.SIGKILL)), checkpoint=sys.argv[2])
"""


@pytest.mark.slow
def test_a_killed_process_loses_nothing(tmp_path):
    """Catches a fit that SIGKILL loses, or that goes on to other weights than a whole one."""
    here = str(Path(__file__).parent)
    child = subprocess.run(
        [sys.executable, "-c", CHILD, here, str(tmp_path / "c")],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()[-2000:]
    seen = []
    resumed = DPWGANGP.resume(tmp_path / "c", table(), progress=lambda p: seen.append(p.step))
    assert seen == [30, 40] and same(resumed, fit())


@pytest.mark.usefixtures("eager_steps")
def test_scalars_are_those_of_the_history(tmp_path):
    """Catches a log for TensorBoard that lacks an iteration, or that others can read."""
    from tensorflow import make_ndarray
    from tensorflow.core.util import event_pb2
    from tensorflow.python.lib.io import tf_record

    model = fit(log_dir=tmp_path / "log")
    assert (tmp_path / "log").stat().st_mode & 0o077 == 0
    found = {}
    (file,) = (tmp_path / "log").iterdir()
    for entry in tf_record.tf_record_iterator(str(file)):
        event = event_pb2.Event.FromString(entry)
        for value in event.summary.value:
            found[value.tag, event.step] = float(make_ndarray(value.tensor))
    rows = model.history_.set_index("step")
    assert len(found) == rows.size
    for (name, step), value in found.items():
        assert value == pytest.approx(rows.loc[step, name], rel=1e-6)
