"""The lists of mutants are in order, and the runner fails where a mutant is not caught as it must be."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from catalogue import HERE, Mutant, read_rooms
from run import some, touched

ROOT = HERE.parents[1]
MUTANTS = read_rooms()


@pytest.mark.slow
def test_every_mutant_applies_and_names_its_tests():
    """Catches a mutant that source or tests have moved away from, which would prove nothing any more."""
    for mutant in MUTANTS:
        file, faulty = mutant.mutate(ROOT / "dpsynth")
        compile(faulty, file, "exec")
        assert mutant.tests and all(old != new for _, old, new in mutant.edits), mutant.name


def test_every_mutant_names_cases_that_there_are(request, found):
    """Catches a case of a test that was renamed or left out: its mutant would be called untested in CI."""
    if any("::" in argument for argument in request.config.args):
        pytest.skip("single tests were asked for: the others of their files were not looked for")
    files = {test.split("::")[0] for test in found}
    known = found | {test.split("[")[0] for test in found}
    named = {test: mutant.name for mutant in MUTANTS for test in mutant.tests if test.split("::")[0] in files}
    assert named and not {test: name for test, name in named.items() if test not in known}


def test_the_lists_are_long_enough_and_without_doubles():
    """Catches a room lost in a merge, and two mutants that cannot be told apart."""
    names = Counter(mutant.name for mutant in MUTANTS)
    assert not [name for name, times in names.items() if times > 1]
    assert not set(names) & {mutant.room for mutant in MUTANTS}
    rooms = Counter(mutant.room for mutant in MUTANTS)
    expected = (
        "accounting attacks attacks_synthetic audit bounds budget checkpoint datasets drafts ledger "
        "mechanism paths releases report research step studies verdicts"
    )
    assert sorted(rooms) == expected.split() and min(rooms.values()) >= 5 and len(MUTANTS) >= 40


SOURCE = """
LIMIT = 3

def add_up(values):
    return sum(values) + 0

class Sum:
    def of(self, values):
        if values:  # whatever the layout
            return add_up(
                values)
        return LIMIT
"""
TESTS = """
import pytest
from small.sums import Sum, add_up

def test_sum():
    assert add_up([1, 2]) == 3

def test_of():
    assert (Sum().of([1, 2]), Sum().of([])) == (3, 3)

def test_asleep():
    add_up([1, 2])

def test_broken():
    assert add_up([1, 2]) == 5

@pytest.mark.skip(reason="never")
def test_skipped():
    assert add_up([1, 2]) == 5
"""
HEAD = "if values:\n    ..."
FAULTS = {  # name: symbol, old, new, test, what the runner must say
    "caught": ("add_up", "sum(values) + 0", "sum(values) + 1", "test_sum", "test_sums.py::test_sum"),
    "any-body": ("Sum.of", HEAD, HEAD.replace("values", "not values"), "test_of", "test_sums.py::test_of"),
    "other-layout": (
        "of",
        "add_up( values )",
        "0",
        "test_of",
        "DOES NOT APPLY\nroom.toml, [other-layout]: of ",
    ),
    "its-layout": ("Sum.of", "add_up( values )", "0", "test_of", "test_sums.py::test_of"),
    "left-out": ("Sum.of", "return LIMIT", "", "test_of", "test_sums.py::test_of"),
    "constant": ("sums.LIMIT", "3", "4", "test_sums.py::test_of", "test_sums.py::test_of"),
    "two-symbols": ("LIMIT", "3", "4", "test_of", "stands in others.py, sums.py"),
    "no-symbol": ("add", "0", "1", "test_sum", "stands in no file"),
    "asleep": ("add_up", "0", "1", "test_asleep", "SURVIVES"),
    "equivalent": ("add_up", "sum(values) + 0", "sum(values) - 0", "test_sum", "SURVIVES"),
    "gone": ("add_up", "7", "1", "test_sum", "this occurs 0 times in add_up (sums.py)"),
    "ambiguous": ("Sum.of", "values", "[]", "test_sum", "this occurs 2 times in Sum.of (sums.py)"),
    "always-failing": ("add_up", "0", "1", "test_broken", "test_sums.py::test_broken FAILS WITHOUT IT"),
    "stumbling": ("add_up", "0", "x", "test_sum", "CRASHES (tests/test_sums.py::test_sum: NameError)"),
    "no-python": ("add_up", "0", "(", "test_sum", "DOES NOT APPLY\nroom.toml, [no-python]: no Python: ("),
    "skipped": ("add_up", "0", "1", "test_skipped", "NOT TESTED: all its tests were skipped"),
    "no-case": ("add_up", "0", "1", "test_sum[1]", "NOT TESTED: there is no such test"),
    "nowhere": ("add_up", "0", "1", "test_nowhere", "no single file has the test test_nowhere"),
}
CAUGHT = ("caught", "any-body", "its-layout", "left-out", "constant")


def run(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "run.py"), *arguments]
    fast = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=fast)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small package with its tests, one of them broken, and a room of mutants."""
    folder = tmp_path_factory.mktemp("project")
    rooms = "\n".join(
        f"[{name}]\npromise = 'sums are sums'\nsymbol = '{symbol}'\nold = '''{old}'''\nnew = '''{new}'''\n"
        f"tests = ['{test}']"
        for name, (symbol, old, new, test, _) in FAULTS.items()
    )
    files = {
        "small/__init__.py": "",
        "small/sums.py": SOURCE,
        "small/others.py": "LIMIT = 3",
        "tests/test_sums.py": TESTS,
        "pytest.ini": "[pytest]",
        "rooms/room.toml": rooms,
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def judged(small: Path, *names: str) -> tuple[int, str]:
    """Exit code and output of the runner."""
    done = run(*names, "--root", str(small), "--package", "small", "--rooms", str(small / "rooms"), cwd=small)
    assert done.stderr == "" and (small / "small/sums.py").read_text() == SOURCE
    return done.returncode, done.stdout


def test_only_an_assertion_that_fails_with_the_mutant_alone_is_a_catch(small):
    """Catches a runner that calls a survivor, a crash, a skip or a test that always fails a catch."""
    code, text = judged(small)
    assert code == 1 and f"{len(CAUGHT)} of {len(FAULTS)} mutants caught" in text, text
    for name, (*_, words) in FAULTS.items():
        row = rf"^  {name} .*{re.escape(words)}" if name in CAUGHT else rf"\[{name}\].*{re.escape(words)}"
        assert re.search(row, text, re.MULTILINE if name in CAUGHT else re.DOTALL), (name, text)


@pytest.mark.parametrize(("name", "code"), [("caught", 0), ("asleep", 1), ("gone", 1), ("nowhere", 1)])
def test_exit_code(small, name, code):
    """Catches a survivor that CI does not hear of, and a run that fails although all were caught."""
    assert judged(small, name)[0] == code


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["docs/how-to/schema.md", "tests/table/test_schema.py"], ""),
        (["dpsynth/releases/count.py"], "ac"),
        (["tests/mutants/y.toml"], "b"),
        (["tests/model/test_step.py"], "bc"),
        (["tests/helpers/releases.py"], "abc"),
        (["tests/mutants/run.py"], "abc"),
        (["dpsynth/checks.py"], "abc"),
    ],
)
def test_what_a_change_may_concern_is_run(tmp_path, files, names):
    """Catches a mutant that is left out although its code, its list or its tests have changed."""
    for file, symbol in (
        ("releases/bins.py", "edges"),
        ("model/step.py", "step"),
        ("releases/count.py", "n"),
    ):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(f"{symbol} = 1")
    mutants = [
        Mutant("x", "a", "", (("edges", "1", "2"),), ("tests/releases/test_bins.py::test_one",)),
        Mutant("y", "b", "", (("step", "1", "2"),), ("tests/model/test_step.py::test_two[1]",)),
        Mutant("x", "c", "", (("count.n", "1", "2"),), ("tests/model/test_step.py::test_two",)),
    ]
    assert "".join(mutant.name for mutant in touched(mutants, files, tmp_path)) == names


def test_what_one_commit_leaves_out_comes_up_in_others():
    """Catches mutants that no short run ever tries, and a short run that is long."""
    short = [some(MUTANTS, 50, f"commit {number}") for number in range(200)]
    assert {len(mutants) for mutants in short} == {50} and short[0] == some(MUTANTS, 50, "commit 0")
    assert {mutant.name for mutants in short for mutant in mutants} == {mutant.name for mutant in MUTANTS}
    assert some(MUTANTS, len(MUTANTS) + 1, "") == MUTANTS


def test_an_unknown_name_is_refused():
    """Catches a slip of the pen in a name that runs nothing and passes."""
    done = run("no-such-mutant")
    assert done.returncode == 2 and "there is no room or mutant no-such-mutant" in done.stderr
