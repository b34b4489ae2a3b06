"""The lists of mutants are in order, and the runner fails where a mutant is not caught as it must be."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from catalogue import HERE, Mutant, read_rooms
from run import touched

ROOT = HERE.parents[1]
MUTANTS = read_rooms()


@cache
def functions(file: str) -> set[str]:
    """Tests of a file."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("room", sorted({mutant.room for mutant in MUTANTS}))
def test_every_mutant_applies_and_names_its_tests(room: str):
    """Catches a mutant that source or tests have moved away from, which would prove nothing any more."""
    for mutant in (mutant for mutant in MUTANTS if mutant.room == room):
        faulty = mutant.mutate(ROOT / "dpsynth")
        if mutant.file.endswith(".py"):
            compile(faulty, mutant.file, "exec")
        assert faulty != (ROOT / "dpsynth" / mutant.file).read_text(encoding="utf-8"), mutant.name
        assert mutant.tests, mutant.name
        for test in mutant.tests:
            file, _, name = test.partition("::")
            assert name.split("[")[0] in functions(file), f"{mutant.name}: there is no test {test}"


def test_the_lists_are_long_enough_and_without_doubles():
    """Catches a room lost in a merge, and two mutants that cannot be told apart."""
    names = Counter(mutant.name for mutant in MUTANTS)
    assert not [name for name, times in names.items() if times > 1]
    assert not set(names) & {mutant.room for mutant in MUTANTS}
    rooms = Counter(mutant.room for mutant in MUTANTS)
    expected = (
        "accounting attacks attacks_synthetic audit bounds budget checkpoint cohorts datasets defenses "
        "ledger ltu mechanism paths published releases report step studies verdicts"
    )
    assert sorted(rooms) == expected.split() and min(rooms.values()) >= 5 and len(MUTANTS) >= 40


SOURCE = "def add_up(values):\n    return sum(values) + 0\n"
TESTS = """
import pytest
from small.sums import add_up

def test_sum():
    assert add_up([1, 2]) == 3

def test_asleep():
    add_up([1, 2])

def test_broken():
    assert add_up([1, 2]) == 5

@pytest.mark.skip(reason="never")
def test_skipped():
    assert add_up([1, 2]) == 5
"""
FAULTS = {  # name: old, new, test, what the runner must say
    "caught": ("+ 0", "+ 1", "test_sum", "test_sums.py::test_sum"),
    "asleep": ("+ 0", "+ 1", "test_asleep", "SURVIVES"),
    "equivalent": ("+ 0", "- 0", "test_sum", "SURVIVES"),
    "gone": ("+ 7", "+ 1", "test_sum", "DOES NOT APPLY"),
    "ambiguous": ("s", "t", "test_sum", "DOES NOT APPLY"),
    "always-failing": ("+ 0", "+ 1", "test_broken", "test_sums.py::test_broken FAILS WITHOUT IT"),
    "stumbling": ("+ 0", "+ x", "test_sum", "CRASHES (tests/test_sums.py::test_sum: NameError)"),
    "no-python": ("+ 0", "+ (", "test_sum", "CRASHES"),
    "skipped": ("+ 0", "+ 1", "test_skipped", "NOT TESTED: all its tests were skipped"),
    "nowhere": ("+ 0", "+ 1", "test_nowhere", "NOT TESTED: there is no such test"),
}


def run(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "run.py"), *arguments]
    fast = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=fast)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small package with its tests, one of them broken, and a room of mutants."""
    folder = tmp_path_factory.mktemp("project")
    rooms = "\n".join(
        f"[{name}]\npromise = 'sums are sums'\nfile = 'sums.py'\nold = '{old}'\nnew = '{new}'\n"
        f"tests = ['test_sums.py::{test}']"
        for name, (old, new, test, _) in FAULTS.items()
    )
    files = {
        "small/__init__.py": "",
        "small/sums.py": SOURCE,
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
    assert code == 1 and "1 of 10 mutants caught" in text, text
    for name, (_, _, _, words) in FAULTS.items():
        lines = [line for line in text.splitlines() if line.startswith((f"  {name} ", f"[{name}]"))]
        assert lines and any(words in line for line in lines), (name, text)
    assert "occurs 3 times in sums.py" in text and "occurs 0 times in sums.py" in text


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
def test_what_a_change_may_concern_is_run(files, names):
    """Catches a mutant that is left out although its code, its list or its tests have changed."""
    mutants = [
        Mutant("x", "a", "", "releases/bins.py", (), ("tests/releases/test_bins.py::test_one",)),
        Mutant("y", "b", "", "model/step.py", (), ("tests/model/test_step.py::test_two[1]",)),
        Mutant("x", "c", "", "releases/count.py", (), ("tests/model/test_step.py::test_two",)),
    ]
    assert "".join(mutant.name for mutant in touched(mutants, files)) == names


def test_an_unknown_name_is_refused():
    """Catches a slip of the pen in a name that runs nothing and passes."""
    done = run("no-such-mutant")
    assert done.returncode == 2 and "there is no room or mutant no-such-mutant" in done.stderr
