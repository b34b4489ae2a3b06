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

ROOT = HERE.parents[1]
MUTANTS = read_rooms()


@cache
def functions(file: str) -> set[str]:
    """Tests of a file."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_every_mutant_applies_and_names_its_tests(mutant: Mutant):
    """Catches a mutant that source or tests have moved away from, which would prove nothing any more."""
    faulty = mutant.mutate(ROOT / "dpsynth")
    if mutant.file.endswith(".py"):
        compile(faulty, mutant.file, "exec")
    assert faulty != (ROOT / "dpsynth" / mutant.file).read_text(encoding="utf-8")
    assert mutant.tests
    for test in mutant.tests:
        file, _, name = test.partition("::")
        assert name.split("[")[0] in functions(file), f"there is no test {test}"


def test_the_lists_are_long_enough_and_without_doubles():
    """Catches a room lost in a merge, and two mutants that cannot be told apart."""
    names = Counter(mutant.name for mutant in MUTANTS)
    assert not [name for name, times in names.items() if times > 1]
    assert not set(names) & {mutant.room for mutant in MUTANTS}
    rooms = Counter(mutant.room for mutant in MUTANTS)
        "accounting bounds checkpoint cohorts datasets ledger mechanism paths published "
        "releases report step studies"
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


def test_an_unknown_name_is_refused():
    """Catches a slip of the pen in a name that runs nothing and passes."""
    done = run("no-such-mutant")
    assert done.returncode == 2 and "there is no room or mutant no-such-mutant" in done.stderr
