"""Put each mutant into a copy of the package and see that the tests named beside it fail.

    python tests/mutants/run.py               every mutant
    python tests/mutants/run.py bounds        a room; names of mutants work as well
    python tests/mutants/run.py --changed     those that a change since the last full table may concern
    python tests/mutants/run.py --most 100    at most so many of them, each commit others
    python tests/mutants/run.py --keep        every mutant; the table is kept with its commit in table.md

Prints a table and exits with 1 when a mutant survives, no longer applies, breaks more than its promise (the
tests crash instead of failing by an assertion), or when its tests fail without it.

Every run is a fresh process, forked from one that has imported the heavy libraries but not dpsynth; the
package is copied and patched in a temporary folder, which comes first on the path.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from catalogue import HERE, Mutant, Stale, read_rooms

ROOT = HERE.parents[1]
TABLE = HERE / "table.md"
#: seconds after which a run is given up, and one of all tests without a fault
LIMIT, LIMIT_OF_ALL = 300, 1200
# Imported once, before forking; what is absent is left to the tests.
HEAVY = (
    "distributed",
    "dp_accounting",
    "hypothesis",
    "jinja2",
    "matplotlib.figure",
    "mpmath",
    "pandas",
    "pyarrow.dataset",
    "pydantic.main",
    "randomgen",
    "rich.console",
    "scipy.stats",
    "sklearn.ensemble",
    "sklearn.linear_model",
    "statsmodels.api",
    "tensorflow",
    "typer",
    "yaml",
)


@dataclass(frozen=True)
class Outcome:
    """What the tests of one run did.

    Parameters
    ----------
    passed : tuple of str
    failed : dict of str to str
        How each failing test failed: ``assertion``, or the name of another exception.
    code : int or None
        Of pytest; None where it was given up.
    seconds, cpu : float
        By the clock, and of processor time.
    log : str
    """

    passed: tuple[str, ...]
    failed: dict[str, str]
    code: int | None
    seconds: float
    cpu: float
    log: str


class _Recorder:
    """A pytest plugin that writes down what passed and how the rest failed."""

    def __init__(self, wanted: tuple[str, ...]) -> None:
        self.wanted = wanted
        self.passed: list[str] = []
        self.failed: dict[str, str] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Of whole files, keep the tests that are asked for; one that is not there stops no other."""
        items[:] = [item for item in items if {item.nodeid, item.nodeid.split("[")[0]} & set(self.wanted)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.passed.append(report.nodeid)

    def pytest_exception_interact(self, node: pytest.Item, call: pytest.CallInfo, report: object) -> None:
        self.failed[node.nodeid] = _how(call.excinfo.value)


def _how(problem: BaseException) -> str:
    """Whether a test's own statement failed, or it stumbled over something else."""
    if isinstance(problem, BaseExceptionGroup):  # several examples of one Hypothesis test
        kinds = {_how(inner) for inner in problem.exceptions}
        return "assertion" if kinds == {"assertion"} else ", ".join(sorted(kinds - {"assertion"}))
    if isinstance(problem, AssertionError | pytest.fail.Exception):
        return "assertion"
    return type(problem).__name__


def _quiet_hypothesis() -> None:
    """The same examples every time, none kept, and no search for the smallest one that fails."""
    from hypothesis import Phase, settings

    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("mutants", derandomize=True, database=None, phases=phases, deadline=None)
    settings.load_profile("mutants")


def preload() -> None:
    """Import what every run would import again."""
    os.environ |= {
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_NUM_INTRAOP_THREADS": "1",
        "TF_NUM_INTEROP_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)  # TensorFlow writes past sys.stderr
        for name in HEAVY:
            with contextlib.suppress(ImportError):
                __import__(name)
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
    gc.freeze()  # or each collection in a child walks, and so copies, everything imported here


@dataclass
class Job:
    """One run of pytest on one copy of the package.

    Parameters
    ----------
    mutant : Mutant or None
        None: the copy is as it is, and all tests are run to the end.
    tests : tuple of str
    """

    mutant: Mutant | None
    tests: tuple[str, ...]
    started: float = 0.0
    folder: Path = Path()

    def start(self, package: Path, root: Path, folder: Path) -> int:
        """Fork; the process number of the child."""
        self.started, self.folder = time.perf_counter(), folder
        folder.mkdir()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 on forking with threads
            pid = os.fork()
        if pid == 0:
            code = 3
            try:
                code = self._child(package, root)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        return pid

    def late(self) -> bool:
        """Whether it has run for longer than it may."""
        return time.perf_counter() - self.started > (LIMIT_OF_ALL if self.mutant is None else LIMIT)

    def _child(self, package: Path, root: Path) -> int:
        os.setpgid(0, 0)
        log = os.open(self.folder / "log", os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        copied = self.folder / package.name
        # links to the clean files and their compiled ones; the faulty file is a new one
        shutil.copytree(package, copied, copy_function=os.link)
        cards = package.parent / "datasets"
        if cards.is_dir():
            (self.folder / cards.name).symlink_to(cards)
        if self.mutant is not None:
            file, text = self.mutant.mutate(package)
            path = copied / file
            path.unlink()
            path.write_text(text, encoding="utf-8")
            for stale in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
                stale.unlink()
        os.chdir(root)
        sys.path[0] = str(self.folder)  # in place of this script's folder
        # of processes that tests start. Without the second they would import the clean package of this folder
        os.environ |= {"PYTHONPATH": str(self.folder), "PYTHONSAFEPATH": "1"}
        if "hypothesis" in sys.modules:
            _quiet_hypothesis()
        recorder = _Recorder(self.tests)
        options = [
            "-q",
            "-m",
            "",
            "-p",
            "no:cacheprovider",
            "--tb=native",
            "-W",
            "ignore::pytest.PytestAssertRewriteWarning",
        ]
        options += ["-x"] if self.mutant is not None else []
        files = dict.fromkeys(test.split("::")[0] for test in self.tests)
        code = int(pytest.main([*options, *files], plugins=[recorder]))
        module = sys.modules.get(package.name)
        if module is not None and not str(module.__file__).startswith(str(copied)):
            print(f"the tests imported {module.__file__}, not the copy")
            code = 3
        seen = {"passed": recorder.passed, "failed": recorder.failed}
        (self.folder / "seen.json").write_text(json.dumps(seen))
        return code

    def finish(self, status: int | None, cpu: float) -> Outcome:
        """What came of it; ``status`` is None where the run was given up."""
        seconds = time.perf_counter() - self.started
        code = None if status is None else os.waitstatus_to_exitcode(status)
        log = (self.folder / "log").read_text(errors="replace") if (self.folder / "log").exists() else ""
        path = self.folder / "seen.json"
        seen = json.loads(path.read_text()) if path.exists() else {"passed": [], "failed": {}}
        shutil.rmtree(self.folder, ignore_errors=True)
        return Outcome(tuple(seen["passed"]), seen["failed"], code, seconds, cpu, log)


def run_all(jobs: Sequence[Job], package: Path, root: Path, workers: int) -> list[Outcome]:
    """Outcomes of all jobs, ``workers`` at a time."""
    outcomes: dict[int, Outcome] = {}
    running: dict[int, int] = {}
    waiting = list(range(len(jobs)))
    with tempfile.TemporaryDirectory(prefix="mutants.") as scratch:
        clean = Path(scratch) / "clean" / package.name
        shutil.copytree(package, clean, ignore=shutil.ignore_patterns("__pycache__"))
        if (package.parent / "datasets").is_dir():  # the data cards, a package of their own
            shutil.copytree(package.parent / "datasets", Path(scratch) / "clean" / "datasets")
        _compile(clean)
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    place = waiting.pop(0)
                    running[jobs[place].start(clean, root, Path(scratch) / str(place))] = place
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                late = [p for p, i in running.items() if jobs[i].late()]
                if pid == 0 and late:
                    pid, status = late[0], None
                    os.killpg(pid, signal.SIGKILL)
                    usage = os.wait4(pid, 0)[2]
                if pid in running:
                    place = running.pop(pid)
                    outcomes[place] = jobs[place].finish(status, usage.ru_utime + usage.ru_stime)
                    if sys.stderr.isatty():
                        print(f"\r{len(outcomes)} of {len(jobs)} ", end="", file=sys.stderr)
                else:
                    time.sleep(0.02)
        finally:
            for pid in running:
                os.killpg(pid, signal.SIGKILL)
    return [outcomes[place] for place in range(len(jobs))]


def _compile(package: Path) -> None:
    import compileall

    compileall.compile_dir(package, quiet=2)


def verdict(mutant: Mutant, outcome: Outcome, sound: set[str]) -> tuple[bool, str]:
    """Whether a mutant was caught as it must be, and by what or why not.

    Parameters
    ----------
    mutant : Mutant
    outcome : Outcome
        Of its tests with the fault.
    sound : set of str
        Tests that pass without it.
    """
    if outcome.code is None:
        return False, f"NO ANSWER after {LIMIT} s"
    if outcome.code == pytest.ExitCode.NO_TESTS_COLLECTED:
        return False, "NOT TESTED: there is no such test"
    if outcome.code == 0:
        return False, "SURVIVES" if outcome.passed else "NOT TESTED: all its tests were skipped"
    caught = [name for name, how in outcome.failed.items() if how == "assertion"]
    if outcome.code != 1 or not caught:
        how = ", ".join(f"{name}: {how}" for name, how in outcome.failed.items())
        return False, f"CRASHES ({how or 'see below'})"
    if caught[0] not in sound:
        return False, f"{_short(caught[0])} FAILS WITHOUT IT"
    return True, _short(caught[0])


def _short(nodeid: str) -> str:
    return nodeid.removeprefix("tests/")


def touched(mutants: Sequence[Mutant], files: Sequence[str], package: Path) -> list[Mutant]:
    """Mutants that a change of these files may concern: of the rooms, lists and tests that it touches.

    Parameters
    ----------
    files : sequence of str
        Relative to the repository.
    package : Path
    """
    paths = [Path(file) for file in files]
    shared = ("tests/helpers", "tests/mutants", "dpsynth")  # Python files there serve every room
    if any(
        path.suffix == ".py" and (path.parent.as_posix() in shared or path.name == "conftest.py")
        for path in paths
    ):
        return list(mutants)
    rooms = {path.parts[1] for path in paths if path.parts[0] == "dpsynth"}
    lists = {path.stem for path in paths if path.suffix == ".toml" and path.parent.name == "mutants"}
    return [
        mutant
        for mutant in mutants
        if Path(mutant.file(package)).parts[0] in rooms
        or mutant.room in lists
        or {test.split("::")[0] for test in mutant.tests} & {path.as_posix() for path in paths}
    ]


def some(mutants: Sequence[Mutant], most: int, commit: str) -> list[Mutant]:
    """At most so many mutants, in their order, chosen by the commit: another commit tries others."""
    order = sorted(mutants, key=lambda mutant: hashlib.sha256(f"{commit} {mutant.name}".encode()).digest())
    chosen = {mutant.name for mutant in order[:most]}
    return [mutant for mutant in mutants if mutant.name in chosen]


def commit_of(root: Path) -> str:
    """The commit that is checked out; empty where there is no repository."""
    found = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True)
    return found.stdout.strip()


def changed_files(root: Path) -> list[str] | None:
    """Files that differ from the commit of the last full table; None where that cannot be known."""
    kept = re.search(r"commit ([0-9a-f]{40})", TABLE.read_text(encoding="utf-8")) if TABLE.exists() else None
    if kept is None:
        return None
    command = ["git", "-C", str(root), "diff", "--name-only", kept[1]]
    found = subprocess.run(command, capture_output=True, text=True)
    return found.stdout.split() if found.returncode == 0 else None


def keep(text: str, root: Path) -> None:
    """Write the table of a full run, where there is a repository."""
    if commit := commit_of(root):
        words = f"All mutants are caught at commit {commit}.\n\n```\n{text}\n```\n"
        TABLE.write_text(words, encoding="utf-8")


def table(rows: Sequence[tuple[Mutant, str, float]]) -> str:
    """The table as text, one line a mutant."""
    widths = [max(len(m.name) for m, _, _ in rows), max(len(m.promise) for m, _, _ in rows)]
    lines = []
    for place, (mutant, by, seconds) in enumerate(rows):
        if place == 0 or rows[place - 1][0].room != mutant.room:
            lines.append(f"{mutant.room}")
        lines.append(f"  {mutant.name:<{widths[0]}}  {mutant.promise:<{widths[1]}}  {seconds:5.1f} s  {by}")
    return "\n".join(lines)


def judge(mutants: Sequence[Mutant], package: Path, root: Path, workers: int) -> tuple[bool, str]:
    """Run mutants and print the table; whether every one was caught, and the table."""
    applying, stale = [], []
    for mutant in mutants:
        try:
            mutant.mutate(package)
            applying.append(mutant)
        except Stale as problem:
            stale.append((mutant, str(problem)))
    tests = sorted({test for mutant in applying for test in mutant.tests})
    # Without a fault first, in as many parts as there are workers, a file whole in one of them.
    parts: list[list[str]] = [[] for _ in range(workers)]
    for file in sorted({test.split("::")[0] for test in tests}):
        min(parts, key=len).extend(test for test in tests if test.split("::")[0] == file)
    jobs = [Job(None, tuple(part)) for part in parts if part]
    clean = len(jobs)
    jobs += [Job(mutant, mutant.tests) for mutant in applying]
    outcomes = run_all(jobs, package, root, workers)
    sound = {name for outcome in outcomes[:clean] for name in outcome.passed}
    rows, unwell, good = [], [], 0
    for mutant, outcome in zip(applying, outcomes[clean:], strict=True):
        caught, by = verdict(mutant, outcome, sound)
        rows.append((mutant, by, outcome.seconds))
        good += caught
        if not caught:
            unwell.append(f"[{mutant.name}] {by}\n{outcome.log[-2000:] if by.startswith('CRASHES') else ''}")
    text = table(rows) if rows else ""
    print(text)
    for outcome in outcomes[:clean]:
        if outcome.code not in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
            unwell.append(f"Without any mutant:\n{outcome.log[-4000:]}")
    known = sound.union(*(outcome.failed for outcome in outcomes[:clean]))
    known |= {name.split("[")[0] for name in known}
    unwell += [
        f"{test} was not run: there is no such test, or it was skipped" for test in tests if test not in known
    ]
    unwell += [f"[{mutant.name}] DOES NOT APPLY\n{why}" for mutant, why in stale]
    for problem in unwell:
        print(f"\n{problem.rstrip()}")
    cpu = sum(outcome.cpu for outcome in outcomes)
    print(f"\n{good} of {len(mutants)} mutants caught; {cpu:.0f} s of processor time")
    return not unwell, text


def main(argv: Sequence[str] | None = None) -> int:
    """Command line; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="rooms or mutants; all by default")
    parser.add_argument("--changed", action="store_true", help="those that a change may concern")
    parser.add_argument("--keep", action="store_true", help="keep the table of all of them")
    parser.add_argument("--most", type=int, help="at most so many, each commit others")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--root", type=Path, default=ROOT, help="folder of the package and its tests")
    parser.add_argument("--package", default="dpsynth")
    parser.add_argument("--rooms", type=Path, default=HERE, help="folder of the lists")
    options = parser.parse_args(argv)
    mutants = read_rooms(options.rooms, options.root / "tests")
    known = {name for mutant in mutants for name in (mutant.room, mutant.name)}
    if unknown := sorted(set(options.names) - known):
        parser.error(f"there is no room or mutant {', '.join(unknown)}")
    if options.names:
        mutants = [m for m in mutants if {m.room, m.name} & set(options.names)]
    files = changed_files(options.root) if options.changed else None
    if files is not None:
        mutants = touched(mutants, files, options.root / options.package)
    if options.most is not None and len(mutants) > options.most:
        print(f"{options.most} of {len(mutants)} mutants are run, the others with other commits")
        mutants = some(mutants, options.most, commit_of(options.root))
    start = time.perf_counter()
    if options.package == "dpsynth":
        preload()
    well, text = judge(mutants, options.root / options.package, options.root, options.workers)
    if well and options.keep and not (options.names or options.changed or options.most):
        keep(text, options.root)
    print(f"{time.perf_counter() - start:.0f} s in all")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
