"""The budget of a data set over all runs: never passed, never forgotten."""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from dp_accounting.pld import common, privacy_loss_distribution
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.cli import main
from dpsynth.errors import DataError, DpsynthError, InputError, PrivacyError, RunError
from dpsynth.privacy import Budget, Cost, Ledger, gaussian_event
from dpsynth.privacy import budget_file as module
from dpsynth.privacy.budget_file import Standing, Use, spending, standings

PATIENTS = "one patient with all rows"


@pytest.fixture
def budget(tmp_path: Path) -> Budget:
    """A budget of epsilon 3 at delta 1e-5."""
    made = Budget(tmp_path / "budget.db", "clinic")
    made.set(3.0, 1e-5)
    return made


def standing(cap: tuple[float, float], costs: list[Cost]) -> Standing:
    return Standing("clinic", (("", *cap),), tuple(Use("", "", cost, module.COMPLETE) for cost in costs))


NUMBERS = st.integers(0, 10**6).map(lambda number: number / 10**6)


@given(st.tuples(NUMBERS, NUMBERS), st.lists(st.tuples(NUMBERS, NUMBERS), max_size=12))
def test_no_sequence_of_runs_passes_the_budget(cap, asked):
    """Catches a run that is compared alone, a refused one that counts, or sums off in their last digit."""
    taken: list[Cost] = []
    sums, cap = [Decimal(0), Decimal(0)], tuple(cap)
    for pair in asked:
        after = [total + Decimal(str(part)) for total, part in zip(sums, pair, strict=True)]
        fits = all(total <= Decimal(str(most)) for total, most in zip(after, cap, strict=True))
        try:
            standing(cap, taken).check(Cost(*pair))
        except PrivacyError:
            assert not fits
        else:
            assert fits
            taken.append(Cost(*pair))
            sums = after
    assert standing(cap, taken).used == tuple(map(float, sums))


@pytest.mark.parametrize("pairs", [[(0.5, 0.0)] * 4, [(1.0, 1e-6), (0.3, 2e-6), (0.7, 0.0)]])
def test_the_sum_agrees_with_dp_accounting(pairs):
    """Catches a sum below what the composed privacy loss needs, or above it where that is exact."""
    make, parameters = privacy_loss_distribution.from_privacy_parameters, common.DifferentialPrivacyParameters
    losses = [make(parameters(*pair)) for pair in pairs]
    composed = functools.reduce(lambda one, other: one.compose(other), losses)
    epsilon, delta = standing((9.0, 0.1), [Cost(*pair) for pair in pairs]).used
    least = composed.get_epsilon_for_delta(delta)
    assert epsilon >= least - 1e-3
    if not delta:
        assert epsilon == pytest.approx(least, abs=1e-3)


def test_a_second_run_pays_again_and_a_third_is_refused(budget):
    """Catches a repeated run that is taken for the first, and a refusal that uses something."""
    for _ in range(2):
        budget.reserve(Cost(1.5, 1e-6), "out")
    with pytest.raises(PrivacyError, match=r"used epsilon 3 at delta 2e-06, and this one needs epsilon 0\.1"):
        budget.reserve(Cost(0.1, 1e-6), "out")
    with pytest.raises(PrivacyError, match=r"needs epsilon 0 at delta 9e-06.* a smaller delta, or"):
        budget.reserve(Cost(0.0, 9e-6), "out")
    assert budget.standing().used == (3.0, 2e-6)
    budget.set(4.0, 1e-5)
    budget.reserve(Cost(0.1, 1e-6), "out")
    assert [cap[1:] for cap in budget.standing().caps] == [(3.0, 1e-5), (4.0, 1e-5)]


def test_patients_and_rows_are_not_added(budget):
    """Catches a sum over runs that protect one row and runs that protect a patient with all rows."""
    budget.reserve(Cost(1.0, 1e-6, PATIENTS), "first")
    budget.reserve(Cost(1.0, 1e-6, "one row = one patient: the first stay"), "second")
    with pytest.raises(
        PrivacyError, match=r"protects one patient, and this run protects one row \(one row = o"
    ):
        budget.reserve(Cost(1.0, 1e-6, "one row = one stay"), "third")


def test_data_sets_are_apart(budget):
    """Catches a cost that another data set's run has, and a mistyped name that makes a budget of its own."""
    other = Budget(budget.path, "lab")
    with pytest.raises(InputError, match=r"holds no budget of 'lab' \(it has: clinic\)"):
        other.reserve(Cost(1.0, 1e-6), "out")
    other.set(1.0, 1e-6)
    other.reserve(Cost(1.0, 1e-6), "out")
    assert [(one.name, one.used[0]) for one in standings(budget.path)] == [("clinic", 0.0), ("lab", 1.0)]


SHARED = """
import sys
from dpsynth.privacy.budget_file import Budget, Cost
from dpsynth.errors import PrivacyError
budget = Budget(sys.argv[1], "clinic")
print(flush=True)
sys.stdin.readline()
try:
    budget.reserve(Cost(0.5, 1e-6), "shared")
    print("reserved")
except PrivacyError:
    print("refused")
"""


@pytest.mark.slow
def test_twenty_processes_never_pass_the_budget(budget):
    """Catches processes that compare at the same time what each of them then uses."""
    command = [sys.executable, "-c", SHARED, str(budget.path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, cwd=budget.path.parent, **pipes) for _ in range(20)]
    for process in processes:
        process.stdout.readline()  # it is ready
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    said = sorted(process.communicate()[0].strip() for process in processes)
    assert said == ["refused"] * 14 + ["reserved"] * 6
    assert budget.standing().used == (3.0, 6e-6)


KILLED = """
import os, signal, sys
from dpsynth.privacy import Budget, Ledger
from dpsynth.privacy.budget_file import Cost, spending
with spending(Budget(sys.argv[1], "clinic"), Cost(2.0, 1e-6), Ledger(), "killed"):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_has_paid(budget):
    """Catches a cost that is written only when a run ends."""
    killed = subprocess.run([sys.executable, "-c", KILLED, str(budget.path)], cwd=budget.path.parent)
    assert killed.returncode == -signal.SIGKILL
    assert [use.state for use in budget.standing().uses] == ["running or killed"]
    with pytest.raises(PrivacyError):
        budget.reserve(Cost(2.0, 1e-6), "next")


def test_a_run_that_fails_has_paid_if_it_released_something(budget):
    """Catches a failed run that is given back although it had read records, and one that had not and pays."""
    ledger = Ledger()
    with pytest.raises(DataError), spending(budget, Cost(2.0, 1e-6), ledger, "no such column"):
        raise DataError("no such column")
    assert budget.standing().used == (0.0, 0.0)
    with pytest.raises(RunError), spending(budget, Cost(2.0, 1e-6), ledger, "diverged"):
        ledger.post("counts", gaussian_event(1.0), sensitivity="1")
        raise RunError("diverged")
    assert budget.standing().used == (2.0, 1e-6)
    assert [use.state for use in budget.standing().uses] == ["nothing used", "stopped"]


def interrupted(checkpoint: Path, ledger: Ledger) -> None:
    """Leave a checkpoint."""
    ledger.post("critic", gaussian_event(1.0), sensitivity="1")
    checkpoint.mkdir()
    (checkpoint / "checkpoint.json").write_text(json.dumps({"ledger": ledger.to_dict()}))


def test_a_run_that_read_nothing_has_no_key(budget, tmp_path):
    """Catches a refused fit that makes another run's checkpoint its own, which then goes on for nothing."""
    checkpoint = tmp_path / "out.checkpoint"
    interrupted(checkpoint, Ledger())  # by a run without a budget
    with pytest.raises(DataError), spending(budget, Cost(2.0, 1e-6), Ledger(), "out", checkpoint):
        raise DataError("the checkpoint exists")
    budget.set(1.0, 1e-6)
    with (
        pytest.raises(PrivacyError),
        spending(budget, Cost(2.0, 1e-6), Ledger(), "out", checkpoint, resumed=True),
    ):
        raise AssertionError("the checkpoint was resumed without payment")


def test_an_interrupted_run_goes_on_once(budget, tmp_path):
    """Catches a resumed run that pays twice, and a copy of its checkpoint that pays nothing elsewhere."""
    ledger, checkpoint = Ledger(), tmp_path / "out.checkpoint"
    cost, copy = Cost(2.0, 1e-6), tmp_path / "copy.checkpoint"
    with pytest.raises(KeyboardInterrupt), spending(budget, cost, ledger, "out", checkpoint):
        interrupted(checkpoint, ledger)
        raise KeyboardInterrupt
    assert [use.state for use in budget.standing().uses] == ["interrupted"]
    shutil.copytree(checkpoint, copy)
    budget.reserve(cost, "out", module._resume_key(checkpoint))  # it goes on, and is killed then
    assert [use.state for use in budget.standing().uses] == ["running or killed"]
    with pytest.raises(PrivacyError), spending(budget, cost, ledger, "copy", copy, resumed=True):
        raise AssertionError("the copy was resumed without payment")
    budget.set(4.0, 1e-5)
    with pytest.raises(RunError), spending(budget, cost, ledger, "copy", copy, resumed=True):
        raise RunError("before its next step")
    assert budget.standing().used == (4.0, 2e-6)


def test_a_file_is_named_with_a_data_set(monkeypatch):
    """Catches a run that is not counted although a file of budgets is named."""
    monkeypatch.delenv("DPSYNTH_BUDGET", raising=False)
    assert Budget.chosen(None) is None
    with pytest.raises(InputError, match="a budget needs a file"):
        Budget.chosen("clinic")
    monkeypatch.setenv("DPSYNTH_BUDGET", "shared.db")
    with pytest.raises(InputError, match="must name its data set"):
        Budget.chosen(None)
    assert repr(Budget.chosen("clinic", "own.db")) == "Budget('own.db', 'clinic')"
    for name in ("", " ", "a\nb", "a" * 101):
        with pytest.raises(InputError, match="1 to 100 printable characters"):
            Budget.chosen(name)


def test_the_file_is_its_owners_alone(budget):
    """Catches a history that other users of the computer can read, also in SQLite's files beside it."""
    with module._opened(budget.path) as file:
        file.execute("UPDATE caps SET epsilon = 4.0")
        files = list(budget.path.parent.glob("budget.db*"))
        assert len(files) == 3  # WAL mode
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def wrong_file(path: Path, how: str) -> None:
    """Spoil a file of budgets."""
    if how == "absent":
        path.unlink()
    elif how == "text":
        path.write_text("epsilon: 3\n" * 500)
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "cut":
        path.write_bytes(path.read_bytes()[:-5000])
    elif how == "bytes":
        content = bytearray(path.read_bytes())
        content[4096:4200] = os.urandom(104)
        path.write_bytes(content)
    else:
        sql = {
            "other": "PRAGMA application_id = 7",
            "newer": "PRAGMA user_version = 9",
            "numbers": "PRAGMA ignore_check_constraints = 1; UPDATE caps SET epsilon = 'much'",
        }[how]
        file = sqlite3.connect(path)
        file.executescript(sql)
        file.close()


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("absent", "there is no budget's file"),
        ("text", "is no budget's file, or a damaged one"),
        ("empty", "is no budget's file"),
        ("cut", "is no budget's file, or a damaged one"),
        ("bytes", "is no budget's file, or a damaged one"),
        ("numbers", "is no budget's file, or a damaged one"),
        ("other", "is no budget's file"),
        ("newer", "written by another dpsynth"),
    ],
)
def test_a_wrong_file_is_one_sentence(budget, how, said):
    """Catches a damaged or wrong file that is taken for an empty budget, or that ends in a traceback."""
    wrong_file(budget.path, how)
    with pytest.raises(InputError, match=said):
        budget.reserve(Cost(1.0, 1e-6), "out")
    assert budget.path.exists() != (how == "absent")


@pytest.mark.parametrize(
    "change",
    [
        "uses SET epsilon = 9e999",
        "uses SET epsilon = -1.0",
        "uses SET epsilon = 'much'",
        "uses SET delta = 1.5",
        "uses SET delta = 9e999",
        "uses SET unit = x'00ff'",
        "uses SET state = 3.5e0 || x'ff', run = x'ff'",
        "caps SET epsilon = 9e999",
        "caps SET epsilon = 0.0",
        "caps SET delta = 1.0",
        "caps SET delta = 9e999",
    ],
)
def test_an_impossible_cost_is_one_sentence(budget, change, monkeypatch, capsys):
    """Catches a traceback, or a run that is let through, where somebody wrote an infinite cost or budget."""
    budget.reserve(Cost(1.0, 1e-6), "earlier")
    file = sqlite3.connect(budget.path)
    file.executescript(f"PRAGMA ignore_check_constraints = 1; UPDATE {change}")
    file.close()
    with pytest.raises(DataError, match=r"is no budget's file, or a damaged one .*Restore a copy of it"):
        budget.reserve(Cost(1.0, 1e-6), "out")
    monkeypatch.setenv("DPSYNTH_BUDGET", str(budget.path))
    for command in (["budget"], ["budget", "show", "clinic"], ["budget", "--json"]):
        assert main(command) == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("epsilon", [5e-324, 1e12, 1.7e308])
def test_an_absurd_cost_is_refused_in_one_sentence(budget, epsilon, monkeypatch, capsys):
    """Catches a traceback where costs that are numbers, but no sensible ones, add up beyond every float."""
    budget.set(1.7e308, 0.5)
    for run in ("first", "second"):
        file = sqlite3.connect(budget.path)
        file.execute(
            "INSERT INTO uses (time, data_set, epsilon, delta, unit, run, state) VALUES "
            f"('2026-01-01', 'clinic', {epsilon!r}, 1e-6, 'one row', '{run}', 'complete')"
        )
        file.commit()
        file.close()
    if epsilon > 1e300:
        with pytest.raises(PrivacyError, match="Earlier runs used epsilon inf at delta 2e-06"):
            budget.reserve(Cost(1.0, 1e-6), "out")
    else:
        budget.reserve(Cost(1.0, 1e-6), "out")
    monkeypatch.setenv("DPSYNTH_BUDGET", str(budget.path))
    for command in (["budget"], ["budget", "show", "clinic"], ["budget", "show", "clinic", "--json"]):
        assert main(command) == 0
    assert capsys.readouterr().err == ""


def test_a_file_in_use_is_waited_for_and_then_said(budget, monkeypatch):
    """Catches a reservation that goes on beside another one, or a wait without end."""
    monkeypatch.setattr(module, "_WAIT", 0.05)
    with (
        module._opened(budget.path),
        pytest.raises(RunError, match=r"in use by another process for 0\.05 seconds"),
    ):
        budget.reserve(Cost(1.0, 1e-6), "out")


def test_where_no_file_can_be_shared(tmp_path, monkeypatch):
    """Catches a folder that cannot hold the file, or a file system without WAL mode, said as a traceback."""
    with pytest.raises(InputError, match="cannot be made"):
        Budget(tmp_path / "absent" / "budget.db", "clinic").set(1.0, 1e-6)
    asked = module._pragma
    monkeypatch.setattr(
        module, "_pragma", lambda file, name: "delete" if "journal" in name else asked(file, name)
    )
    with pytest.raises(InputError, match="Put it on a local disk"):
        Budget(tmp_path / "budget.db", "clinic").set(1.0, 1e-6)


def test_a_cost_without_a_guarantee_is_refused(budget):
    """Catches a run without noise in the sum."""
    with pytest.raises(PrivacyError, match="covers no run without a guarantee"):
        budget.reserve(Cost(float("inf"), 1e-6), "out")
    for epsilon, delta in ((0.0, 1e-6), (float("inf"), 1e-6), (1.0, 0.0), (1.0, 1.0)):
        with pytest.raises(DpsynthError, match="must lie in"):
            budget.set(epsilon, delta)
