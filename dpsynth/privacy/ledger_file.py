"""The file of a data set's ledger: an SQLite database of what all runs on its records cost, and may cost.

A run reserves all that it may cost, and posts each noisy statistic, before it reads a record. Processes that
share the file do so one after the other, so that together they never pass its cap. A reservation stays when
the run ends, also if it was killed: which noisy statistics it made may depend on earlier ones. A run that
posted none costs nothing.

Reserved costs add up, epsilon and delta each, as stages of a ledger do. This holds even if a run was chosen
in view of earlier results (:mod:`dpsynth.privacy.loss`). :class:`dpsynth.privacy.Ledger` reads and
writes the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import secrets
import shutil
import socket
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache, reduce
from pathlib import Path
from typing import Any

from dpsynth.checks import in_range, inside
from dpsynth.errors import DataError, DpsynthError, InputError, PrivacyError, RunError
from dpsynth.files.storage import through
from dpsynth.privacy.guarantee import UNIT, is_of_patients, round_up
from dpsynth.privacy.stages import Contents, from_record, to_record

#: environment variable that names the file
VARIABLE = "DPSYNTH_LEDGER"
#: how a run stands; one that was killed stays as it began
BEGUN, COMPLETE, INTERRUPTED, STOPPED, UNUSED = (
    "running or killed",
    "complete",
    "interrupted",
    "stopped",
    "nothing used",
)

_APPLICATION, _VERSION = 0x4450534C, 1  # "DPSL"
#: seconds for which a process waits until another one has written
_WAIT = 30.0
#: what to do if it cannot be used where it is
_ELSEWHERE = (
    "Name one on a local disk, in a folder that you may write to (ledger: in the configuration, or "
    f"{VARIABLE})"
)
_RUN = "time, folder, process, epsilon, delta, unit, state, entries"
_TABLES = (
    "CREATE TABLE caps (number INTEGER PRIMARY KEY, time TEXT, epsilon REAL, delta REAL)",
    "CREATE TABLE runs (number INTEGER PRIMARY KEY, time TEXT, folder TEXT, process TEXT, "
    "epsilon REAL, delta REAL, unit TEXT, state TEXT, entries TEXT)",
    "CREATE TABLE seal (sha256 TEXT)",  # of all rows of the others, written with every change
    "INSERT INTO seal VALUES ('')",
)


@dataclass(frozen=True)
class Cost:
    """All that a run may cost, fixed before it reads a record.

    Neighbouring tables differ in one ``unit``, added or removed. Without a guarantee ``epsilon`` is infinite.
    """

    epsilon: float
    delta: float
    unit: str = UNIT

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", in_range("epsilon", self.epsilon, 0.0, math.inf))
        object.__setattr__(self, "delta", in_range("delta", self.delta, 0.0, 1.0))

    def __str__(self) -> str:
        return f"epsilon {round_up(self.epsilon)} at delta {round_up(self.delta)}"

    @property
    def who(self) -> str:
        """Who is protected: a patient or a row."""
        return "patient" if is_of_patients(self.unit) else "row"


@dataclass(frozen=True)
class LedgerRun:
    """A run in the file.

    ``time`` (UTC) is when it began, ``folder`` what it writes, ``process`` the one that carried it out last,
    as number@computer. ``entries`` are its own noisy statistics, ``number`` its place in the file.
    """

    time: str
    folder: str
    process: str
    cost: Cost
    state: str
    entries: Contents = field(default_factory=Contents, repr=False)
    number: int = 0

    @property
    def counts(self) -> bool:
        """Whether it has cost anything."""
        return self.state != UNUSED


@dataclass(frozen=True)
class History:
    """All that the file holds. ``caps`` are the times, epsilons and deltas that were set. The last counts."""

    path: Path
    caps: tuple[tuple[str, float, float], ...] = ()
    runs: tuple[LedgerRun, ...] = ()

    @property
    def cap(self) -> tuple[float, float] | None:
        """The largest epsilon and delta of all runs together, or None if nothing limits them."""
        return self.caps[-1][1:] if self.caps else None

    @property
    def counted(self) -> tuple[LedgerRun, ...]:
        """The runs that have cost something."""
        return tuple(run for run in self.runs if run.counts)

    @property
    def used(self) -> tuple[float, float]:
        """Epsilon and delta of all runs together."""
        costs = [run.cost for run in self.counted]
        return _float(_sum(c.epsilon for c in costs)), _float(_sum(c.delta for c in costs))

    @property
    def who(self) -> str | None:
        """Who is protected, a patient or a row, or None before the first run."""
        return self.counted[-1].cost.who if self.counted else None

    def contents(self, without: int | None = None) -> Contents:
        """Noisy statistics of all runs, or of all but one."""
        kept = [run.entries for run in self.counted if run.number != without and run.entries.entries]
        return reduce(Contents.then, kept, Contents())

    def check(self, cost: Cost) -> None:
        """Raise PrivacyError if another run of this cost would pass the cap, or counts something else."""
        if self.who not in (None, cost.who):
            raise PrivacyError(
                f"the ledger {self.path} protects one {self.who}, and this run protects one {cost.who} "
                f"({cost.unit}): their costs do not add up. Give the run a ledger of its own"
            )
        if self.cap is None:
            return
        if not math.isfinite(cost.epsilon):
            raise PrivacyError(
                f"the cap of the ledger {self.path} covers no run without a guarantee: give epsilon and no "
                "seed"
            )
        costs = [*(run.cost for run in self.counted), cost]
        sums = _sum(c.epsilon for c in costs), _sum(c.delta for c in costs)
        over = [
            name
            for name, total, most in zip(("epsilon", "delta"), sums, self.cap, strict=True)
            if total > _exact(most)
        ]
        if over:
            (epsilon, delta), (most, most_delta) = self.used, self.cap
            raise PrivacyError(
                f"the cap of the ledger {self.path} is epsilon {most:g} at delta {most_delta:g}. Earlier "
                f"runs used epsilon {round_up(epsilon)} at delta {round_up(delta)}, and this one needs "
                f"{cost}. Nothing was used: give a smaller {' and '.join(over)}, or let the owner raise "
                f"the cap with `dpsynth ledger {self.path} --epsilon E --delta D`"
            )


class LedgerFile:
    """The file of one data set, which all runs on its records share.

    Parameters
    ----------
    path : path
        The file, on a disk of this computer.
    make : bool
        Whether the first run may make the file. Otherwise only :meth:`set_cap` does, so that a misspelt name
        is no new ledger.

    Examples
    --------
    >>> import tempfile
    >>> file = LedgerFile(Path(tempfile.mkdtemp()) / "clinic.ledger")
    >>> file.set_cap(epsilon=3.0, delta=1e-5)
    >>> first = file.begin(Cost(2.0, 1e-6), "first")
    >>> file.history().used
    (2.0, 1e-06)
    >>> file.begin(Cost(2.0, 1e-6), "second")
    Traceback (most recent call last):
    dpsynth.errors.PrivacyError: the cap of the ledger ... is epsilon 3 at delta 1e-05. Earlier runs used ...
    """

    def __init__(self, path: str | os.PathLike[str], *, make: bool = False) -> None:
        self.path, self.make = Path(path).absolute(), make  # whatever the working folder is later

    def __repr__(self) -> str:
        return f"LedgerFile({str(self.path)!r})"

    def set_cap(self, epsilon: float, delta: float) -> None:
        """Set the largest cost of all runs together, past and to come, and make the file if need be.

        ``epsilon`` is finite and greater than 0, ``delta`` lies in (0, 1). Raises InputError for other
        numbers, or if the file cannot be made.
        """
        cap = inside("epsilon", epsilon, 0.0, math.inf), inside("delta", delta, 0.0, 1.0)
        with _opened(self.path, make=True) as file:
            file.execute("INSERT INTO caps (time, epsilon, delta) VALUES (?, ?, ?)", (_now(), *cap))

    def history(self) -> History:
        """Read the caps and the runs.

        Raises InputError for no file, DataError for a damaged one, RunError if another process holds it for
        long.
        """
        if self.make and not self.path.exists():
            return History(self.path)
        with _opened(self.path, make=self.make) as file:
            return _read(file, self.path)

    def begin(self, cost: Cost, folder: str) -> int:
        """Reserve a run's cost and return its number in the file.

        Raises PrivacyError if the cap would be passed, or if the run counts patients and earlier ones rows.
        Nothing is reserved then.
        """
        with _opened(self.path, make=self.make) as file:
            _read(file, self.path).check(cost)
            return _insert(file, cost, folder, Contents())

    def go_on(self, left: Contents, cost: Cost, folder: str) -> tuple[int, Contents, tuple[str, Contents]]:
        """Continue the run that left a checkpoint with the ledger ``left``.

        The run has paid already, once. A checkpoint that was continued before, a copy, is a run of its own
        and pays. Return the run's number, its entries, and its state and entries if it reads nothing. Raises
        PrivacyError as :meth:`begin` does, or if the file does not hold the run.
        """
        last = left.entries[-1]
        with _opened(self.path) as file:
            history = _read(file, self.path)
            of = [run for run in history.counted if any(_same(last, entry) for entry in run.entries.entries)]
            if not of:
                raise PrivacyError(
                    f"the ledger {self.path} does not hold the run that left the checkpoint. Name the ledger "
                    "of that run, or give the checkpoint up and begin anew"
                )
            for run in of:
                if any(entry.keys == last.keys for entry in run.entries.entries):
                    entries = tuple(
                        entry.with_key() if entry.keys == last.keys else entry
                        for entry in run.entries.entries
                    )
                    own = replace(run.entries, entries=entries)
                    file.execute("UPDATE runs SET process = ? WHERE number = ?", (_process(), run.number))
                    _update(file, run.number, BEGUN, own)
                    return run.number, own, (INTERRUPTED, run.entries)
            history.check(cost)
            own = _copy(left, of[0].entries)
            return _insert(file, cost, folder, own), own, (UNUSED, Contents())

    def write(self, number: int, own: Contents, state: str = BEGUN) -> Contents:
        """Write a run's entries and how it stands. Return the entries of all others.

        Raises PrivacyError if the two are about different neighbouring tables. Nothing is written then.
        """
        with _opened(self.path) as file:
            _update(file, number, state, own)
            others = _read(file, self.path).contents(without=number)
            others.then(own)  # or PrivacyError, and nothing is written
            return others


def _same(entry: Any, other: Any) -> bool:
    return bool(entry.keys) and entry.keys[:1] == other.keys[:1]


def _copy(left: Contents, run: Contents) -> Contents:
    """The part of a checkpoint's ledger that its run had posted, as noisy statistics of a second run."""
    keys = {stage.key for stage in run.stages}
    copy = replace(left, stages=(), entries=())
    for number, stage in enumerate(left.stages, 1):
        if stage.key in keys:
            fresh = stage.renewed()
            for entry in left.of_stage(number):
                copy = copy.adding(entry.with_key(), fresh)
    return copy


def _insert(file: sqlite3.Connection, cost: Cost, folder: str, own: Contents) -> int:
    row = (_now(), folder, _process(), cost.epsilon, cost.delta, cost.unit, BEGUN, _dumped(own))
    added = file.execute(f"INSERT INTO runs ({_RUN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    return int(added.lastrowid or 0)


def _update(file: sqlite3.Connection, number: int, state: str, own: Contents) -> None:
    file.execute("UPDATE runs SET state = ?, entries = ? WHERE number = ?", (state, _dumped(own), number))


def _read(file: sqlite3.Connection, path: Path) -> History:
    caps = file.execute("SELECT time, epsilon, delta FROM caps ORDER BY number").fetchall()
    rows = file.execute(f"SELECT number, {_RUN} FROM runs ORDER BY number").fetchall()
    runs = (
        LedgerRun(time, folder, process, Cost(epsilon, delta, unit), state, _loaded(entries), number)
        for number, time, folder, process, epsilon, delta, unit, state, entries in rows
    )
    return History(path, tuple(caps), tuple(runs))


def _dumped(own: Contents) -> str:
    return json.dumps(to_record(own, total=False), allow_nan=False)


@lru_cache(maxsize=1024)
def _loaded(text: str) -> Contents:
    return from_record(json.loads(text))


def _exact(number: float) -> Fraction | float:
    """A number as it is written: ten times 0.1 is 1. Infinity stays."""
    return Fraction(repr(number)) if math.isfinite(number) else number


def _sum(numbers: Iterable[float]) -> Fraction | float:
    return sum(map(_exact, numbers), Fraction())


def _float(number: Fraction | float) -> float:
    """The nearest float, or infinity for a number that is beyond all of them."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _now() -> str:
    return datetime.now(UTC).isoformat(" ", "seconds").removesuffix("+00:00")


def _process() -> str:
    return f"{os.getpid()}@{socket.gethostname()}"


@contextmanager
def _opened(path: Path, *, make: bool = False) -> Iterator[sqlite3.Connection]:
    """One transaction that no other process writes beside, kept if the block ends well."""
    if not path.is_file() and not make:
        raise InputError(
            f"there is no ledger {path}. `dpsynth ledger {path} --epsilon E --delta D` makes one"
        )
    try:
        if make:
            _make(path)
        with closing(_connected(path)) as file:
            _check(file, path)
            file.execute("BEGIN IMMEDIATE")
            seal = _seal(file)
            if file.execute("SELECT sha256 FROM seal").fetchall() != [(seal,)]:
                raise sqlite3.DatabaseError("its sha256 is not that of its contents")
            yield file
            if (changed := _seal(file)) != seal:
                file.execute("UPDATE seal SET sha256 = ?", (changed,))
            file.execute("COMMIT")
    except OSError as problem:
        raise InputError(f"the ledger {path} cannot be made ({problem.strerror}). {_ELSEWHERE}") from None
    except sqlite3.Error as problem:
        raise _fault(path, problem) from None


def _seal(file: sqlite3.Connection) -> str:
    """Checksum of all rows, by which a damaged or changed file is known."""
    rows = [file.execute(f"SELECT * FROM {table} ORDER BY number").fetchall() for table in ("caps", "runs")]
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def _make(path: Path) -> None:
    """Make a ledger that its owner alone can read, unless there is a file. It has its name once complete."""
    if path.exists():
        return
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(_connected(temporary)) as file:
            file.execute("BEGIN")
            for statement in _TABLES:
                file.execute(statement)
            file.execute("UPDATE seal SET sha256 = ?", (_seal(file),))
            file.execute(f"PRAGMA application_id = {_APPLICATION}")
            file.execute(f"PRAGMA user_version = {_VERSION}")
            file.execute("COMMIT")
            # last: what is in a write-ahead log, which a full disk leaves there, has not the final name
            if _pragma(file, "journal_mode = WAL") != "wal":
                raise InputError(f"{path}: processes cannot share a ledger here. {_ELSEWHERE}")
        with contextlib.suppress(FileExistsError):  # another process was faster
            os.link(temporary, path)
        through(path.parent)
    finally:
        for end in ("", "-wal", "-shm", "-journal"):
            temporary.with_name(f"{temporary.name}{end}").unlink(missing_ok=True)


def _connected(path: Path) -> sqlite3.Connection:
    address = f"{path.as_uri()}?mode=rw"
    file = sqlite3.connect(address, uri=True, timeout=_WAIT, isolation_level=None)
    try:
        file.execute("PRAGMA synchronous = FULL")  # what is posted outlives a loss of power
    except sqlite3.Error:
        file.close()
        raise
    return file


def _check(file: sqlite3.Connection, path: Path) -> None:
    """Check that the file is a ledger, whole and of this version."""
    if _pragma(file, "application_id") != _APPLICATION:
        raise DataError(f"{path} is no ledger's file")
    if (version := _pragma(file, "user_version")) != _VERSION:
        raise DataError(
            f"{path} was written by another dpsynth (version {version}, this one reads {_VERSION})"
        )
    if _pragma(file, "quick_check") != "ok":
        raise sqlite3.DatabaseError("its contents are damaged")


def _pragma(file: sqlite3.Connection, name: str) -> Any:
    return file.execute(f"PRAGMA {name}").fetchone()[0]


def _is_full(path: Path) -> bool:
    """Whether the disk has no room for what SQLite keeps beside a file of a few statistics."""
    return shutil.disk_usage(path.parent).free < 2**20


def _fault(path: Path, problem: sqlite3.Error) -> DpsynthError:
    name = getattr(problem, "sqlite_errorname", "SQLITE_CORRUPT")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return RunError(
            f"{path} was in use by another process for {_WAIT:g} seconds. Nothing was used: run it again"
        )
    if name == "SQLITE_FULL" or (name.startswith("SQLITE_IOERR") and _is_full(path)):
        return RunError(f"{path}: No space left on device. Correct this and run it again")
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR", "SQLITE_CONSTRAINT")):
        return DataError(f"{path} is no ledger's file, or a damaged one ({problem}). Restore a copy of it")
    return InputError(f"{path} cannot be used ({problem}). {_ELSEWHERE}")
