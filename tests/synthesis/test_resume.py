"""A training that was stopped, or whose process was killed, goes on as if it had not been."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from dpsynth import DPWGANGP, Column, DPCriticMatching, Schema, TrainingSettings
from dpsynth.errors import InputError
from dpsynth.files.codec import apart
from dpsynth.privacy import LedgerFile
from dpsynth.synthesis import training as rooms
from dpsynth.wgan.settings import MatchingSettings

# As little as there is to compile.
SMALL = TrainingSettings(
    critic_hidden=(4,), generator_hidden=(4,), latent=2, activation="leaky_relu", penalty="public", replay=10
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


def unfitted(kind, seed=5):
    """A generator whose progress goes from 10 to 40, in four chunks of its iterations."""
    if kind is DPWGANGP:
        return DPWGANGP(2.0, 1e-5, steps=40, training=SMALL, random_state=seed)
    return DPCriticMatching(2.0, 1e-5, critics=40, random_state=seed)


def fit(stop=None, *, kind=DPWGANGP, seed=5, **options):
    """A fit. ``stop`` is called after each chunk."""
    return unfitted(kind, seed).fit(table(), schema=SCHEMA, progress=stop, **options)


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
    assert len(snapshots) == (2 * 5 if isinstance(model, DPWGANGP) else 0)  # of two columns
    return rest, arrays | snapshots, model.history_


def same(model, other):
    (rest, arrays, history), (again, others, after) = weights(model), weights(other)
    return (
        rest == again
        and arrays.keys() == others.keys()
        and all(np.array_equal(arrays[name], others[name]) for name in arrays)
        and history.equals(after)
    )


def shorten(setattr):
    """Twenty iterations, five a chunk."""
    few = MatchingSettings(critic_width=2, points=40, iterations=20)
    setattr("dpsynth.wgan.training._CHUNK_STEPS", 5)
    setattr("dpsynth.wgan.matching._CHUNK", 5)
    setattr("dpsynth.synthesis.matching.MatchingOptions.settings", lambda self, n: few)


@pytest.fixture(autouse=True)
def _chunks(monkeypatch):
    shorten(monkeypatch.setattr)


kinds = pytest.mark.parametrize("kind", [DPWGANGP, DPCriticMatching])


@pytest.mark.usefixtures("eager_steps")
@kinds
@pytest.mark.parametrize("problem", [ZeroDivisionError, KeyboardInterrupt, MemoryError, SystemExit])
def test_a_fault_of_the_users_own_loses_nothing(tmp_path, problem, kind):
    """Catches a `1/0` in ``progress=`` that loses a run, and a run that goes on with other noise."""

    def fault():
        raise problem

    whole = fit(kind=kind)
    with pytest.raises(problem):
        fit(at(20, fault), kind=kind, checkpoint=tmp_path / "c")
    seen = []
    resumed = kind.resume(tmp_path / "c", table(), progress=lambda p: seen.append(p.step))
    assert seen == [30, 40] and same(resumed, whole)
    assert resumed.training_ == whole.training_
    assert whole.training_.get("snapshots", [0, 10, 20, 30, 40]) == [0, 10, 20, 30, 40]
    assert resumed.ledger_.summary() == whole.ledger_.summary()
    assert not same(fit(kind=kind, seed=6), whole)


@pytest.mark.usefixtures("eager_steps")
@kinds
def test_noise_of_the_operating_system_goes_on_too(tmp_path, kind):
    """Catches a checkpoint from which two stops give another model than one."""

    def fault():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fit(at(10, fault), kind=kind, seed=None, checkpoint=tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    once = kind.resume(tmp_path / "a", table())
    with pytest.raises(ZeroDivisionError):
        kind.resume(tmp_path / "b", table(), progress=at(30, fault))
    assert same(kind.resume(tmp_path / "b", table()), once)
    assert not same(fit(kind=kind, seed=None), once)


@pytest.mark.usefixtures("eager_steps")
@kinds
def test_a_finished_training_is_given_again_and_keeps_no_noise(tmp_path, kind):
    """Catches a fit that is lost before it is saved, more steps after the last, or noise that lies about."""
    whole = fit(kind=kind, checkpoint=tmp_path / "c")
    written = (tmp_path / "c/checkpoint.json").read_text()
    assert '"start": null' in written and '"noise": null' in written
    seen = []
    again = kind.resume(tmp_path / "c", table(), progress=seen.append)
    assert not seen and same(again, whole)
    assert again.ledger_.summary() == whole.ledger_.summary()
    assert (tmp_path / "c").stat().st_mode & 0o077 == 0
    fit(kind=kind, checkpoint=tmp_path / "c")  # it may be replaced


@pytest.mark.usefixtures("eager_steps")
@kinds
def test_nobody_goes_on_from_a_training_that_goes_on(tmp_path, kind):
    """Catches two processes that go on from one checkpoint, whose ledger holds one run."""
    refused = []

    def attempt():
        try:
            kind.resume(tmp_path / "c", table())
        except InputError as problem:
            refused.append(str(problem))

    def other():
        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()

    fit(at(20, other), kind=kind, checkpoint=tmp_path / "c")
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


def interrupted_before_the_release(monkeypatch, **options):
    """A fit that is stopped while random critics see the records."""

    def fault(self, blocks):
        raise ZeroDivisionError

    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr("dpsynth.wgan.matching.GradientRelease.query", fault)
        fit(kind=DPCriticMatching, **options)


@pytest.mark.usefixtures("eager_steps")
@pytest.mark.parametrize("seed", [5, None])
def test_a_stop_while_gradients_are_summed_loses_nothing(tmp_path, monkeypatch, seed):
    """Catches a release that is paid for and lost, or other random critics after a stop."""
    interrupted_before_the_release(monkeypatch, seed=seed, checkpoint=tmp_path / "c")
    shutil.copytree(tmp_path / "c", tmp_path / "copied")
    resumed = DPCriticMatching.resume(tmp_path / "c", table())
    assert same(DPCriticMatching.resume(tmp_path / "copied", table()), resumed)
    if seed is not None:
        assert same(fit(kind=DPCriticMatching), resumed)


@pytest.mark.usefixtures("eager_steps")
def test_released_gradients_are_kept_at_once_and_their_noise_is_not(tmp_path):
    """Catches gradients that a kill loses after they were paid for, or their noise beside them."""
    seen = []

    def look(progress):
        left = json.loads((tmp_path / "c/checkpoint.json").read_text())["interrupted"]
        seen.append((left["step"], "means" in left["state"], left["start"], left["noise"], left["ended"]))

    fit(look, kind=DPCriticMatching, checkpoint=tmp_path / "c")
    assert seen == 4 * [(0, True, None, None, False)]


@pytest.mark.usefixtures("eager_steps")
def test_a_copy_from_before_the_release_gets_other_noise(tmp_path, monkeypatch):
    """Catches one noise in two releases that the ledger's file counts as independent."""
    path = tmp_path / "clinic.ledger"
    LedgerFile(path).set_cap(100.0, 0.1)
    interrupted_before_the_release(monkeypatch, seed=None, checkpoint=tmp_path / "c", ledger=path)
    shutil.copytree(tmp_path / "c", tmp_path / "copied")
    first, second = (DPCriticMatching.resume(tmp_path / name, table()) for name in ("c", "copied"))
    assert len(LedgerFile(path).history().runs) == 2
    assert not (first.history_["difference"] == second.history_["difference"]).any()


@pytest.mark.usefixtures("eager_steps")
def test_gradients_are_released_once(tmp_path, monkeypatch):
    """Catches a training that goes on and reads the records again, with other noise or the same."""

    def fault():
        raise ZeroDivisionError

    whole = fit(kind=DPCriticMatching)
    with pytest.raises(ZeroDivisionError):
        fit(at(10, fault), kind=DPCriticMatching, checkpoint=tmp_path / "c")
    read = []

    def query(self, blocks):
        read.append(blocks)
        return np.zeros(self.centres_and_stds[1].shape, np.int64)

    monkeypatch.setattr("dpsynth.wgan.matching.GradientRelease.query", query)
    resumed = DPCriticMatching.resume(tmp_path / "c", table())
    assert not read and same(resumed, whole)


def test_a_checkpoint_of_another_generator_is_refused(tmp_path, eager_steps):
    """Catches weights that another generator takes for its own, whose options happen to be the same."""

    class OtherOptions(DPWGANGP.options):
        generator: ClassVar[str] = "other"

    class Other(DPWGANGP):
        options = OtherOptions

    fit(checkpoint=tmp_path / "c")
    with pytest.raises(InputError, match="is a checkpoint of generator wgan-gp"):
        Other.resume(tmp_path / "c", table())


def elsewhere(patch):
    patch.setattr("dpsynth.wgan.checkpoint.platform.node", lambda: "elsewhere")


def with_other_threads(patch):
    patch.setattr("tensorflow.config.threading.get_intra_op_parallelism_threads", lambda: 77)


def with_other_threads_asked_for(patch):
    patch.setenv("TF_NUM_INTRAOP_THREADS", "77")


@pytest.mark.parametrize("move", [elsewhere, with_other_threads, with_other_threads_asked_for])
@pytest.mark.usefixtures("eager_steps")
def test_another_computer_goes_on_with_other_noise(tmp_path, monkeypatch, move):
    """Catches one noise for sums that two computers, or other threads, round differently.

    Their difference has none.
    """

    def fault():
        raise ZeroDivisionError

    whole = fit()
    with pytest.raises(ZeroDivisionError):
        fit(at(20, fault), checkpoint=tmp_path / "c")
    move(monkeypatch)
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
import dpsynth, pytest, test_resume
test_resume.shorten(pytest.MonkeyPatch().setattr)
test_resume.rooms.CHECKPOINT_SECONDS = 0.0
kill = test_resume.at(20, lambda: os.kill(os.getpid(), signal.SIGKILL))
test_resume.fit(kill, kind=getattr(dpsynth, sys.argv[3]), checkpoint=sys.argv[2])
"""


@pytest.mark.slow
@kinds
def test_a_killed_process_loses_nothing(tmp_path, kind):
    """Catches a fit that SIGKILL loses, or that goes on to other weights than a whole one."""
    here = str(Path(__file__).parent)
    child = subprocess.run(
        [sys.executable, "-c", CHILD, here, str(tmp_path / "c"), kind.__name__],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()[-2000:]
    seen = []
    resumed = kind.resume(tmp_path / "c", table(), progress=lambda p: seen.append(p.step))
    assert seen == [30, 40] and same(resumed, fit(kind=kind))


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
