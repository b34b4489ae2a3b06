"""The file of a data set's ledger: its cap is never passed, and nothing in it is forgotten."""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import pickle
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from dp_accounting.pld import common, privacy_loss_distribution
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.cli import main
from dpsynth.errors import DataError, DpsynthError, InputError, PrivacyError, RunError
from dpsynth.privacy import Cost, Ledger, LedgerFile, Profile, epsilon_delta_event, gaussian_event
from dpsynth.privacy import ledger_file as module
from dpsynth.privacy.ledger_file import History, LedgerRun
from dpsynth.privacy.records import FrameRecords

PATIENTS = "one patient with all rows"


@pytest.fixture
def file(tmp_path: Path) -> LedgerFile:
    """A ledger with a cap of epsilon 3 at delta 1e-5."""
    made = LedgerFile(tmp_path / "clinic.ledger")
    made.set_cap(3.0, 1e-5)
    return made


@contextlib.contextmanager
def goes_through() -> Iterator[None]:
    """Fail where the package refuses."""
    try:
        yield
    except DpsynthError as problem:
        pytest.fail(str(problem))


def history(cap: tuple[float, float], costs: list[Cost]) -> History:
    runs = tuple(LedgerRun("", "", "", cost, module.COMPLETE) for cost in costs)
    return History(Path("clinic.ledger"), (("", *cap),), runs)


def states(file: LedgerFile) -> list[str]:
    return [run.state for run in file.history().runs]


NUMBERS = st.integers(0, 10**6).map(lambda number: number / 10**6)


@given(st.tuples(NUMBERS, NUMBERS), st.lists(st.tuples(NUMBERS, NUMBERS), max_size=12))
def test_no_sequence_of_runs_passes_the_cap(cap, asked):
    """Catches a run that is compared alone, a refused one that counts, or sums off in their last digit."""
    taken: list[Cost] = []
    sums, cap = [Decimal(0), Decimal(0)], tuple(cap)
    for pair in asked:
        after = [total + Decimal(str(part)) for total, part in zip(sums, pair, strict=True)]
        fits = all(total <= Decimal(str(most)) for total, most in zip(after, cap, strict=True))
        try:
            history(cap, taken).check(Cost(*pair))
        except PrivacyError:
            assert not fits
        else:
            assert fits
            taken.append(Cost(*pair))
            sums = after
    assert history(cap, taken).used == tuple(map(float, sums))


@pytest.mark.parametrize("pairs", [[(0.5, 0.0)] * 4, [(1.0, 1e-6), (0.3, 2e-6), (0.7, 0.0)]])
def test_the_sum_agrees_with_dp_accounting(pairs):
    """Catches a sum below what the composed privacy loss needs, or above it where that is exact."""
    make, parameters = privacy_loss_distribution.from_privacy_parameters, common.DifferentialPrivacyParameters
    losses = [make(parameters(*pair)) for pair in pairs]
    composed = functools.reduce(lambda one, other: one.compose(other), losses)
    epsilon, delta = history((9.0, 0.1), [Cost(*pair) for pair in pairs]).used
    least = composed.get_epsilon_for_delta(delta)
    assert epsilon >= least - 1e-3
    if not delta:
        assert epsilon == pytest.approx(least, abs=1e-3)


def test_a_second_run_pays_again_and_a_third_is_refused(file):
    """Catches a repeated run that is taken for the first, and a refusal that uses something."""
    for _ in range(2):
        file.begin(Cost(1.5, 1e-6), "out")
    with pytest.raises(PrivacyError, match=r"used epsilon 3 at delta 2e-06, and this one needs epsilon 0\.1"):
        file.begin(Cost(0.1, 1e-6), "out")
    with pytest.raises(PrivacyError, match=r"needs epsilon 0 at delta 9e-06.* a smaller delta, or"):
        file.begin(Cost(0.0, 9e-6), "out")
    assert file.history().used == (3.0, 2e-6)
    file.set_cap(4.0, 1e-5)
    file.begin(Cost(0.1, 1e-6), "out")
    assert [cap[1:] for cap in file.history().caps] == [(3.0, 1e-5), (4.0, 1e-5)]


def test_patients_and_rows_are_not_added(file):
    """Catches a sum over runs that protect one row and runs that protect a patient with all rows."""
    file.begin(Cost(1.0, 1e-6, PATIENTS), "first")
    file.begin(Cost(1.0, 1e-6, "one row = one patient: the first stay"), "second")
    with pytest.raises(
        PrivacyError, match=r"protects one patient, and this run protects one row \(one row = o"
    ):
        file.begin(Cost(1.0, 1e-6, "one row = one stay"), "third")


SHARED = """
import sys
import tempfile
from dpsynth.privacy import Cost, Ledger, gaussian_event
from dpsynth.errors import PrivacyError
ledger = Ledger.open(sys.argv[1])
print(flush=True)
sys.stdin.readline()
try:
    with ledger.reserved(Cost(0.5, 1e-6), "shared"):
        ledger.begin_stage(1e-6)
        ledger.post("counts", gaussian_event(20.0), sensitivity="1")
    print("reserved")
except PrivacyError:
    print("refused")
"""


@pytest.mark.slow
def test_ten_processes_never_pass_the_cap(file):
    """Catches processes that compare at the same time what each of them then uses."""
    command = [sys.executable, "-c", SHARED, str(file.path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, cwd=file.path.parent, **pipes) for _ in range(10)]
    for process in processes:
        process.stdout.readline()  # it is ready
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    said = sorted(process.communicate()[0].strip() for process in processes)
    assert said == ["refused"] * 4 + ["reserved"] * 6
    assert file.history().used == (3.0, 6e-6)
    whole = Ledger.open(file.path)  # and none loses another's statistic
    assert len({entry.keys for entry in whole.entries}) == len(whole.stages) == 6
    assert whole.delta == pytest.approx(6e-6)


KILLED = """
import os, signal, sys
from dpsynth.privacy import Cost, Ledger, gaussian_event
ledger = Ledger.open(sys.argv[1])
with ledger.reserved(Cost(2.0, 1e-6), "killed"):
    if len(sys.argv) > 2:
        ledger.begin_stage(1e-6)
        ledger.post("counts", gaussian_event(20.0), sensitivity="1")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("posted", [(), ("posted",)])
def test_a_killed_run_has_paid(file, posted):
    """Catches a cost, or a statistic, that is written only when a run ends."""
    command = [sys.executable, "-c", KILLED, str(file.path), *posted]
    assert subprocess.run(command, cwd=file.path.parent).returncode == -signal.SIGKILL
    assert states(file) == ["running or killed"]
    assert [entry.name for entry in Ledger.open(file.path).entries] == ["counts"] * len(posted)
    with pytest.raises(PrivacyError):
        file.begin(Cost(2.0, 1e-6), "next")


def post(ledger: Ledger, name: str = "counts") -> None:
    ledger.begin_stage(1e-6)
    ledger.post(name, gaussian_event(200.0), sensitivity="1")


def say_of(ledger: Ledger, mark: str) -> None:
    if mark == "seeded":
        ledger.seeded = True
    else:
        getattr(ledger, mark)("bounds read off the data")


def marks_in(file: LedgerFile) -> bool:
    contents = Ledger.open(file.path)
    return contents.seeded or bool(contents.excluded) or bool(contents.generators)


def reserve(ledger: Ledger, act) -> None:
    with ledger.reserved(Cost(0.5, 1e-6), "a run"):
        act(ledger)


@pytest.mark.parametrize("mark", ["exclude", "seeded", "drawn_by"])
def test_what_a_guarantee_does_not_cover_reaches_the_file(file, mark):
    """Catches a mark that stands in memory alone, so that the file reads as private."""

    def say(ledger):
        say_of(ledger, mark)
        return ledger

    def marked():
        return say(Ledger.open(file.path))

    def written():
        return marks_in(file)

    for run in (post, lambda ledger: reserve(ledger, post)):
        run(ledger := Ledger.open(file.path))
        with pytest.raises(PrivacyError, match=f"{mark} comes after a run that is complete"):
            say(ledger)
    assert not written()
    ledger = pickle.loads(pickle.dumps(marked()))
    with pytest.raises(DataError), ledger.reserved(Cost(0.1, 1e-6), "no such column"):
        raise DataError("no such column")
    post(ledger)
    assert written()


@pytest.mark.parametrize("mark", ["exclude", "seeded", "drawn_by"])
def test_a_mark_is_kept_when_a_run_goes_on(file, mark):
    left = interrupted(file)
    resumed = Ledger.open(file.path)
    say_of(resumed, mark)
    for _ in range(2):
        with contextlib.suppress(DataError), resumed.reserved(Cost(2.0, 1e-6), "resumed", resumed=left):
            raise DataError("another table")
    with resumed.reserved(Cost(2.0, 1e-6), "resumed", resumed=left):
        resumed.resume(Steps(), FrameRecords(pd.DataFrame({"a": [1]})), np.random.default_rng(0))
    assert marks_in(file)


def test_a_run_that_fails_has_paid_if_it_released_something(file):
    """Catches a failed run that is given back although it had read records, and one that had not and pays."""
    ledger = Ledger.open(file.path)
    with pytest.raises(DataError), ledger.reserved(Cost(2.0, 1e-6), "no such column"):
        ledger.exclude("a reason of this run")
        raise DataError("no such column")
    assert file.history().used == (0.0, 0.0) and ledger.excluded == ()
    with pytest.raises(RunError), ledger.reserved(Cost(2.0, 1e-6), "diverged"):
        post(ledger)
        raise RunError("diverged")
    assert file.history().used == (2.0, 1e-6)
    assert states(file) == ["nothing used", "stopped"]
    assert [entry.name for entry in ledger.entries] == ["counts"]


class Steps:
    """A release that was posted as a whole and may be interrupted."""

    resumed = True
    name, event, sensitivity, adjacency, detail, stage = (
        "steps",
        gaussian_event(4.0),
        "1",
        "add/remove",
        "",
        None,
    )

    def __call__(self, records, rng):
        return records


def interrupted(file: LedgerFile) -> Ledger:
    """The ledger in the checkpoint of a run of epsilon 2 that was interrupted."""
    ledger = Ledger.open(file.path)
    with pytest.raises(KeyboardInterrupt), ledger.reserved(Cost(2.0, 1e-6), "out"):
        post(ledger)
        ledger.post("steps", Steps.event, sensitivity="1")
        left = Ledger.from_dict(ledger.to_dict())
        raise KeyboardInterrupt
    return left


def goes_on(file: LedgerFile, left: Ledger) -> Ledger:
    ledger = Ledger.open(file.path)
    with ledger.reserved(Cost(2.0, 1e-6), "resumed", resumed=left):
        records = FrameRecords(pd.DataFrame({"a": [1]}))
        ledger.resume(Steps(), records, np.random.default_rng(0))
    return ledger


def test_an_interrupted_run_goes_on_once(file):
    """Catches a resumed run that pays twice, and a copy of its checkpoint that pays nothing elsewhere."""
    left = interrupted(file)
    assert states(file) == ["interrupted"]
    assert [entry.name for entry in goes_on(file, left).entries] == ["counts", "steps"]
    assert states(file) == ["complete"] and file.history().used == (2.0, 1e-6)
    with pytest.raises(PrivacyError, match="Earlier runs used epsilon 2"):
        goes_on(file, left)
    file.set_cap(4.0, 1e-5)
    both = goes_on(file, left)
    assert file.history().used == (4.0, 2e-6)
    assert [entry.name for entry in both.entries] == ["counts", "steps"] * 2
    assert len({stage.key for stage in both.stages}) == 2
    assert both.epsilon(2e-6) == pytest.approx(2 * left.epsilon(1e-6))
    assert Ledger.open(file.path).to_dict() == both.to_dict()


def test_a_copy_that_is_resumed_at_the_same_time_pays(file):
    """Catches a checkpoint that looks unused until the run that goes on from it posts something."""
    left, ledger = interrupted(file), Ledger.open(file.path)
    with pytest.raises(RunError), ledger.reserved(Cost(2.0, 1e-6), "out", resumed=left):
        with pytest.raises(PrivacyError, match="Earlier runs used epsilon 2"):
            goes_on(file, left)
        raise RunError("before its next step")
    assert states(file) == ["interrupted"] and file.history().used == (2.0, 1e-6)


def test_a_continuation_that_reads_nothing_takes_nothing(file):
    """Catches a run that was given another table, and then cannot go on, or a copy that pays for that."""
    left, ledger = interrupted(file), Ledger.open(file.path)
    for _ in range(2):
        with (
            goes_through(),
            pytest.raises(DataError),
            ledger.reserved(Cost(2.0, 1e-6), "out", resumed=left),
        ):
            raise DataError("another table")
    assert ledger.to_dict() == left.to_dict()
    goes_on(file, left)
    file.set_cap(4.0, 1e-5)
    with pytest.raises(DataError), Ledger.open(file.path).reserved(Cost(2.0, 1e-6), "copy", resumed=left):
        raise DataError("another table")
    assert states(file) == ["complete", "nothing used"] and file.history().used == (2.0, 1e-6)


def test_a_run_that_was_interrupted_twice_pays_once(file):
    """Catches a continuation whose own checkpoint is taken for a copy, or one that goes on twice for nothing.

    It has read the records when it is interrupted again. Before that nothing writes a second checkpoint, and
    the first one goes on, as the test above shows.
    """
    left, ledger = interrupted(file), Ledger.open(file.path)

    class Interrupted(Steps):
        def __call__(self, records, rng):
            raise KeyboardInterrupt

    records = FrameRecords(pd.DataFrame({"a": [1]}))
    with pytest.raises(KeyboardInterrupt), ledger.reserved(Cost(2.0, 1e-6), "out", resumed=left):
        with pytest.raises(KeyboardInterrupt):
            ledger.resume(Interrupted(), records, np.random.default_rng(0))
        again = Ledger.from_dict(ledger.to_dict())
        raise KeyboardInterrupt
    assert states(file) == ["interrupted"] and file.history().used == (2.0, 1e-6)
    with pytest.raises(PrivacyError, match="Earlier runs used epsilon 2"):
        goes_on(file, left)  # it has been continued: another continuation is a second run
    goes_on(file, again)
    assert states(file) == ["complete"] and file.history().used == (2.0, 1e-6)
    with pytest.raises(PrivacyError, match="Earlier runs used epsilon 2"):
        goes_on(file, again)


def test_a_checkpoint_of_another_ledger_is_not_resumed(file, tmp_path):
    """Catches a run that goes on where nothing of it was paid."""
    other = LedgerFile(tmp_path / "other.ledger")
    other.set_cap(3.0, 1e-5)
    left, _ = interrupted(other), interrupted(file)  # a run of the same words
    with pytest.raises(PrivacyError, match="does not hold the run that left the checkpoint"):
        goes_on(file, left)
    assert states(file) == ["interrupted"]


def test_what_is_posted_outside_of_a_run_pays(file):
    """Catches a statistic of the user's own, or another tool's, that no cap sees."""
    ledger = Ledger.open(file.path)
    with pytest.raises(PrivacyError, match="names no delta"):
        ledger.post("deaths", gaussian_event(60.0), sensitivity="1")
    ledger.begin_stage(1e-6)
    ledger.post("run of 3 May", epsilon_delta_event(1.0, 1e-6), sensitivity="another tool's")
    assert file.history().used == pytest.approx((1.0, 1e-6))
    ledger.post("deaths", gaussian_event(60.0), sensitivity="1")
    alone = Profile([gaussian_event(60.0)]).epsilon(1e-6)
    assert file.history().used == pytest.approx((1.0 + alone, 2e-6))
    with pytest.raises(PrivacyError, match="needs epsilon"):
        ledger.post("means", gaussian_event(1.0), sensitivity="1")
    assert [entry.name for entry in ledger.entries] == ["run of 3 May", "deaths"]
    assert len({stage.key for stage in ledger.stages}) == 2
    again = Ledger.open(file.path)
    assert again.entries == ledger.entries
    again.post("births", gaussian_event(600.0), sensitivity="1")
    assert len({stage.key for stage in again.stages}) == 3


def test_a_reservation_is_for_one_fit_of_one_thread(file):
    """Catches a second fit, a larger one or another thread's under a cost that was reserved once."""
    ledger, cost = Ledger.open(file.path), Cost(1.0, 1e-6)
    with ledger.reserved(cost, "out"):
        with (
            pytest.raises(PrivacyError, match="was reserved for one fit"),
            ledger.reserved(Cost(2.0, 1e-6), "x"),
        ):
            raise AssertionError("a larger fit was not paid")
        problems: list[BaseException] = []

        def elsewhere() -> None:
            for call in (lambda: ledger.reserved(cost, "x").__enter__(), lambda: post(ledger)):
                try:
                    call()
                except DpsynthError as problem:
                    problems.append(problem)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert ["another thread" in str(problem) for problem in problems] == [True, True]
        with ledger.reserved(cost, "a fit"):
            post(ledger)
        with pytest.raises(PrivacyError, match="was reserved for one fit"), ledger.reserved(cost, "second"):
            raise AssertionError("a second fit was not paid")
        assert copy.deepcopy(ledger)._reservation is None
    assert states(file) == ["complete"] and len(ledger.entries) == 1


def test_every_post_is_in_the_file_before_it_returns(file):
    """Catches a reading that nothing tells of when the process is killed, and a run blind to the others."""
    one, two = Ledger.open(file.path), Ledger.open(file.path)
    with one.reserved(Cost(1.0, 1e-6), "one"), two.reserved(Cost(1.0, 1e-6), "two"):
        post(one, "of one")
        assert [entry.name for entry in Ledger.open(file.path).entries] == ["of one"]
        post(two, "of two")
        assert [entry.name for entry in two.entries] == ["of one", "of two"]
    assert sorted(entry.name for entry in one.entries) == ["of one", "of two"]
    assert one.counts(two) and two.counts(one)
    other = Ledger()
    post(other)
    assert not one.counts(other)


def test_without_a_cap_anything_is_counted(tmp_path):
    """Catches a folder's own ledger that refuses a run, or a cap that forgets one without a guarantee."""
    file = LedgerFile(tmp_path / "out.ledger", make=True)
    assert file.history().runs == () and not file.path.exists()
    file.begin(Cost(float("inf"), 1e-6), "not private")
    file.begin(Cost(9.0, 1e-6), "out")
    assert file.history().cap is None and file.history().used[0] == float("inf")
    file.set_cap(100.0, 0.5)
    with pytest.raises(PrivacyError, match="Earlier runs used epsilon inf"):
        file.begin(Cost(1.0, 1e-6), "out")


def test_the_file_is_its_owners_alone(file):
    """Catches a history that other users of the computer can read, also in SQLite's files beside it."""
    with module._opened(file.path) as opened:
        opened.execute("UPDATE caps SET epsilon = 4.0")
        files = list(file.path.parent.glob("clinic.ledger*"))
        assert len(files) == 3  # WAL mode
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def wrong_file(path: Path, how: str) -> None:
    """Spoil a ledger."""
    if how == "absent":
        path.unlink()
    elif how == "text":
        path.write_text("epsilon: 3\n" * 500)
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "cut":
        path.write_bytes(path.read_bytes()[:-3000])
    elif how == "bytes":
        content = bytearray(path.read_bytes())
        content[4096:4200] = os.urandom(104)
        path.write_bytes(content)
    else:
        sql = {
            "other": "PRAGMA application_id = 7",
            "newer": "PRAGMA user_version = 9",
            "cap": "UPDATE caps SET epsilon = 4.0",
            "no run": "DELETE FROM runs",
            "cost": "UPDATE runs SET epsilon = 0.5",
            "entries": "UPDATE runs SET entries = replace(entries, '200.0', '900.0')",
            "state": "UPDATE runs SET state = 'nothing used'",
            "no seal": "DELETE FROM seal",
            "text in blob": "UPDATE runs SET state = x'ff'",
        }[how]
        opened = sqlite3.connect(path)
        opened.executescript(sql)
        opened.close()


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("absent", "there is no ledger"),
        ("text", "is no ledger's file, or a damaged one"),
        ("empty", "is no ledger's file"),
        ("cut", "is no ledger's file, or a damaged one"),
        ("bytes", "is no ledger's file, or a damaged one"),
        *(
            (how, r"or a damaged one \(its sha256 is not that of its contents\)")
            for how in ("cap", "no run", "cost", "entries", "state", "no seal", "text in blob")
        ),
        ("other", "is no ledger's file"),
        ("newer", "written by another dpsynth"),
    ],
)
def test_a_wrong_file_is_one_sentence(file, how, said, capsys):
    """Catches a damaged, changed or wrong file that is taken for a ledger, or that ends in a traceback."""
    ledger = Ledger.open(file.path)
    with ledger.reserved(Cost(1.0, 1e-6), "earlier"):
        post(ledger)
    wrong_file(file.path, how)
    for call in (lambda: file.begin(Cost(1.0, 1e-6), "out"), lambda: Ledger.open(file.path)):
        with pytest.raises(InputError, match=said):
            call()
    assert file.path.exists() != (how == "absent")
    for options in ([], ["--json"], ["--epsilon", "9", "--delta", "0.1"]):
        if "--epsilon" not in options or how != "absent":  # a cap makes a file
            assert main(["ledger", str(file.path), *options]) == 2
            assert capsys.readouterr().err.count("\n") == 1


def test_a_file_in_use_is_waited_for_and_then_said(file, monkeypatch):
    """Catches a reservation that goes on beside another one, or a wait without end."""
    monkeypatch.setattr(module, "_WAIT", 0.05)
    with (
        module._opened(file.path),
        pytest.raises(RunError, match=r"in use by another process for 0\.05 seconds"),
    ):
        file.begin(Cost(1.0, 1e-6), "out")


def test_where_no_file_can_be_shared(tmp_path, monkeypatch):
    """Catches a folder that cannot hold the file, or a file system without WAL mode, said as a traceback."""
    with pytest.raises(InputError, match="cannot be made"):
        LedgerFile(tmp_path / "absent" / "clinic.ledger").set_cap(1.0, 1e-6)
    asked = module._pragma
    monkeypatch.setattr(
        module, "_pragma", lambda opened, name: "delete" if "journal" in name else asked(opened, name)
    )
    with pytest.raises(InputError, match="Name one on a local disk"):
        LedgerFile(tmp_path / "clinic.ledger").set_cap(1.0, 1e-6)


def test_a_cost_without_a_guarantee_is_refused(file):
    """Catches a run without noise in the sum."""
    with pytest.raises(PrivacyError, match="covers no run without a guarantee"):
        file.begin(Cost(float("inf"), 1e-6), "out")
    for epsilon, delta in ((0.0, 1e-6), (float("inf"), 1e-6), (1.0, 0.0), (1.0, 1.0)):
        with pytest.raises(DpsynthError, match="must lie in"):
            file.set_cap(epsilon, delta)


FORKED = """
import os, sys
from dpsynth.privacy import Cost, Ledger, gaussian_event
from dpsynth.errors import DataError

def post(ledger, name):
    ledger.post(name, gaussian_event(20.0), sensitivity="1")

def child(act):
    number = os.fork()
    if not number:
        act()
        os._exit(0)
    assert os.waitpid(number, 0)[1] == 0

ledger = Ledger.open(sys.argv[1])
number = None
try:
    with ledger.reserved(Cost(1.0, 1e-6), "parent"):
        ledger.begin_stage(1e-6, epsilon=0.5)
        child(lambda: post(ledger, "of a child, first"))
        number = os.fork()
        if not number:
            raise DataError("a child that leaves the block without a statistic")
        assert os.waitpid(number, 0)[1] == 0
        post(ledger, "of the parent")
        child(lambda: post(ledger, "of a child, later"))
        post(ledger, "of the parent, later")
except DataError:
    os._exit(0)
child(lambda: (ledger.begin_stage(1e-6), post(ledger, "of a child, last")))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no forks")
def test_a_forked_process_posts_a_run_of_its_own(file):
    """Catches a fork that writes over its parent's run, repeats it, ends it, or uses its cost."""
    file.set_cap(9.0, 1e-3)
    done = subprocess.run([sys.executable, "-c", FORKED, str(file.path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    runs = file.history().runs
    assert [[entry.name for entry in run.entries.entries] for run in runs] == [
        ["of the parent", "of the parent, later"],
        ["of a child, first"],
        ["of a child, later"],
        ["of a child, last"],
    ]
    assert {run.state for run in runs} == {"complete"} and len({run.process for run in runs}) == 4
    assert [run.cost.delta for run in runs] == [1e-6] * 4
    whole = Ledger.open(file.path)
    assert len({stage.key for stage in whole.stages}) == 4
    assert Ledger.from_dict(whole.to_dict()).entries == whole.entries


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda ledger: pickle.loads(pickle.dumps(ledger))])
def test_a_copy_of_a_ledger_posts_a_run_of_its_own(file, copied):
    """Catches a copy that posts again what the run of its original had posted."""
    ledger = Ledger.open(file.path)
    with ledger.reserved(Cost(1.0, 2e-6), "out"):
        post(ledger)
        other = copied(ledger)
        assert other.to_dict() == ledger.to_dict()
        with other.reserved(Cost(1.0, 4e-6), "copy"):
            other.post("of the copy", gaussian_event(60.0), sensitivity="1")
        post(ledger, "more")
    names = [[entry.name for entry in run.entries.entries] for run in file.history().runs]
    assert names == [["counts", "more"], ["of the copy"]]
    assert ledger.counts(other) and len({stage.key for stage in Ledger.open(file.path).stages}) == 3


def test_what_no_guarantee_covers_together_is_not_written(file):
    """Catches a statistic that makes the file unreadable because another process was faster."""
    one, two = Ledger.open(file.path), Ledger.open(file.path)
    post(one)
    for ledger in (two, Ledger.open(file.path)):
        ledger.begin_stage(1e-6)
        with pytest.raises(PrivacyError, match=r"cannot be summed|neighbouring datasets"):
            ledger.post("others", gaussian_event(60.0), sensitivity="1", adjacency="replace-one")
    assert states(file) == ["complete", "nothing used", "nothing used"]
    assert [entry.name for entry in Ledger.open(file.path).entries] == ["counts"]


def test_another_thread_continues_no_run(file):
    """Catches a thread that resumes under the reservation of another."""
    left, ledger = interrupted(file), Ledger.open(file.path)
    problems: list[BaseException] = []

    def elsewhere() -> None:
        try:
            ledger.resume(Steps(), FrameRecords(pd.DataFrame({"a": [1]})), np.random.default_rng(0))
        except InputError as problem:
            problems.append(problem)

    with pytest.raises(DataError), ledger.reserved(Cost(2.0, 1e-6), "out", resumed=left):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        raise DataError("nothing was read")
    assert ["another thread" in str(problem) for problem in problems] == [True]
    goes_on(file, left)


def test_two_names_of_one_file_are_one_ledger(file, monkeypatch):
    """Catches a link, or a path from another folder, behind which runs are not counted."""
    folder = file.path.parent
    (folder / "link").symlink_to(file.path)
    (folder / "deep").mkdir()
    monkeypatch.chdir(folder)
    assert LedgerFile("clinic.ledger").path == file.path
    relative = Ledger.open("clinic.ledger")
    with (
        relative.reserved(Cost(0.5, 1e-6), "relative"),
        Ledger.open("link").reserved(Cost(0.5, 1e-6), "link"),
        Ledger.open("deep/../clinic.ledger").reserved(Cost(0.5, 1e-6), "deep"),
    ):
        monkeypatch.chdir("deep")
        post(relative)  # the file that it opened, whatever the working folder is now
    assert [run.folder for run in file.history().runs] == ["relative", "link", "deep"]
    assert file.history().used == (1.5, 3e-6) and len(relative.entries) == 1


class Stopped:
    """A connection that is stopped before its statement number ``left`` of all."""

    left = 0
    stop: Callable[[], None]

    def __init__(self, opened: sqlite3.Connection) -> None:
        self.opened = opened

    def execute(self, *statement: Any) -> Any:
        Stopped.left -= 1
        if Stopped.left == 0:
            Stopped.stop()
        return self.opened.execute(*statement)

    def close(self) -> None:
        self.opened.close()


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> type[Stopped]:
    """Connections that can be stopped before each of their statements."""
    connected = module._connected
    monkeypatch.setattr(module, "_connected", lambda path: Stopped(connected(path)))
    return Stopped


def whole_run(ledger: Ledger, read: Callable[[], None]) -> None:
    """A run of epsilon 1 that reads the records twice."""
    with ledger.reserved(Cost(1.0, 1e-6), "out"):
        ledger.begin_stage(1e-6)
        for name in ("first", "second"):
            ledger.post(name, gaussian_event(60.0), sensitivity="1")
            read()


def statements(path: Path, stopped: type[Stopped]) -> int:
    """Number of statements of a whole run."""
    stopped.left = 0
    whole_run(Ledger.open(path, make=True), lambda: None)
    path.unlink()
    return -stopped.left


def check_after_a_stop(path: Path, read: int) -> None:
    """What was read is paid and told, and the next run finds a whole file."""
    history = LedgerFile(path, make=True).history()
    own = [entry.name for run in history.counted for entry in run.entries.entries]
    assert read <= len(own) <= read + 1 and own == ["first", "second"][: len(own)]
    assert history.used in ([(1.0, 1e-6)] if read else [(0.0, 0.0), (1.0, 1e-6)])
    whole_run(Ledger.open(path, make=True), lambda: None)
    assert len(Ledger.open(path).entries) == len(own) + 2
    assert not list(path.parent.glob("*.tmp"))


@pytest.mark.slow
def test_a_run_interrupted_anywhere_has_paid_for_what_it_read(tmp_path, stopped):
    """Catches a statement after which Ctrl-C loses a statistic, counts it twice or leaves half a file."""
    path = tmp_path / "clinic.ledger"
    for number in range(1, statements(path, stopped) + 1):
        reads: list[str] = []

        def interrupt() -> None:
            raise KeyboardInterrupt

        stopped.left, stopped.stop = number, interrupt
        ledger = None
        with pytest.raises(KeyboardInterrupt):
            ledger = Ledger.open(path, make=True)
            whole_run(ledger, lambda: reads.append("read"))  # noqa: B023
        assert stopped.left <= 0
        stopped.left = 0
        if ledger is not None:  # which can go on
            told = [entry.name for entry in ledger.entries]
            assert len(reads) <= len(told) <= len(reads) + 1
            before = len(Ledger.open(path, make=True).entries)
            with goes_through():
                ledger.begin_stage(1e-6)
                ledger.post("later", gaussian_event(60.0), sensitivity="1")
            assert len(Ledger.open(path).entries) == before + 1
            assert len({stage.key for stage in ledger.stages}) == len(ledger.stages)
            path.unlink()
            continue
        check_after_a_stop(path, len(reads))
        path.unlink()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no forks")
def test_a_run_killed_anywhere_has_paid_for_what_it_read(tmp_path, stopped):
    """Catches a statement after which SIGKILL loses a statistic that was read, or leaves half a file.

    At every third statement: Ctrl-C at each of them is tested above.
    """
    path, log = tmp_path / "clinic.ledger", tmp_path / "log"
    for number in range(1, statements(path, stopped) + 1, 3):
        log.write_text("")
        process = os.fork()
        if not process:
            stopped.left, stopped.stop = number, lambda: os.kill(os.getpid(), signal.SIGKILL)
            with log.open("a") as file:
                whole_run(Ledger.open(path, make=True), lambda: print("read", file=file, flush=True))
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
        for left in path.parent.glob("*.tmp*"):  # hidden, and of no use
            left.unlink()
        check_after_a_stop(path, len(log.read_text().split()))
        for left in path.parent.glob("clinic.ledger*"):
            left.unlink()


def test_a_full_disk_is_one_sentence(file, monkeypatch, capsys):
    """Catches a full disk that ends in a traceback, in a run that reads, or in a file that nobody can use."""
    connected = module._connected

    def full(path: Path) -> sqlite3.Connection:
        opened = connected(path)
        opened.execute("PRAGMA max_page_count = 1")  # SQLite takes the number that there is now
        return opened

    ledger = Ledger.open(file.path)
    with monkeypatch.context() as patch:
        patch.setattr(module, "_connected", full)
        with pytest.raises(RunError, match="No space left on device"), ledger.reserved(Cost(1.0, 9e-6), "o"):
            for _ in range(100):
                post(ledger, "counts of many columns" * 50)
                many = len(ledger.entries)
    assert [entry.name for entry in Ledger.open(file.path).entries][:many] == [
        entry.name for entry in ledger.entries
    ]
    assert file.history().used == (1.0, 9e-6)
    assert main(["ledger", str(file.path)]) == 0


def test_a_folder_that_is_read_only_is_one_sentence(capsys):
    """Catches a ledger that takes no entry, and a run that goes on without it."""
    folder = Path(tempfile.mkdtemp())  # below a folder that everybody may enter, unlike tmp_path
    file = LedgerFile(folder / "clinic.ledger")
    file.set_cap(3.0, 1e-5)
    superuser = os.geteuid() == 0
    if superuser:  # whom permissions do not bind
        os.chown(file.path, 65534, -1)
        os.chown(folder, 65534, -1)
        os.seteuid(65534)
    try:
        for mode, path in ((0o555, folder), (0o400, file.path)):
            path.chmod(mode)
            with pytest.raises(InputError, match=r"cannot be used .* that you may write to"):
                file.begin(Cost(1.0, 1e-6), "out")
            assert main(["ledger", str(file.path), "--epsilon", "9", "--delta", "0.1"]) == 2
            assert capsys.readouterr().err.count("\n") == 1
            path.chmod(0o700)
        folder.chmod(0o555)
        with pytest.raises(InputError, match=r"other.ledger cannot be made \(Permission denied\)"):
            LedgerFile(folder / "other.ledger").set_cap(1.0, 1e-6)
        folder.chmod(0o700)
    finally:
        if superuser:
            os.seteuid(0)
        shutil.rmtree(folder)


def test_a_ledger_has_its_name_once_it_is_complete(tmp_path, monkeypatch):
    """Catches a new file whose tables a full disk kept in a write-ahead log, which has another name."""
    connected, others = module._connected, list[sqlite3.Connection]()

    class Kept(Stopped):
        def close(self) -> None:
            path = self.opened.execute("PRAGMA database_list").fetchone()[2]
            others.append(sqlite3.connect(path))  # so that this end copies nothing out of the log
            others[-1].execute("SELECT count(*) FROM sqlite_master").fetchall()
            super().close()

    with monkeypatch.context() as patch:
        patch.setattr(module, "_connected", lambda path: Kept(connected(path)))
        module._make(tmp_path / "clinic.ledger")
    for other in others:
        other.close()
    with goes_through():
        assert LedgerFile(tmp_path / "clinic.ledger").history().runs == ()
    assert [path.name for path in tmp_path.iterdir()] == ["clinic.ledger"]


@pytest.mark.parametrize("more", [gaussian_event(2.0), epsilon_delta_event(0.1, 1e-5)])
def test_a_run_posts_no_more_than_it_reserved(file, more):
    """Catches a run that costs more than the cap of the file has counted, in epsilon or in delta."""
    ledger = Ledger.open(file.path)
    with ledger.reserved(Cost(0.5, 1e-6), "small"):
        ledger.post("first", gaussian_event(40.0), sensitivity="1")
        with pytest.raises(PrivacyError, match=r"'second' would make small cost epsilon .* reserved"):
            ledger.post("second", more, sensitivity="1")
        ledger.post("third", gaussian_event(40.0), sensitivity="1")
    assert [entry.name for entry in Ledger.open(file.path).entries] == ["first", "third"]
