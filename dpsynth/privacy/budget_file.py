"""Budget of data sets over all runs: an SQLite file that says what they may cost, and have cost.

A run reserves all that it may cost before it reads a record. Reservations are made one after the other, so
that processes which share the file never pass the largest cost together. A reservation stays when the run
ends, also if it was killed: which noisy statistics it made may depend on earlier ones. A run that posted none
costs nothing.

Costs of runs add up, epsilon and delta each, as stages of a ledger do. This holds even if a run was chosen in
view of earlier results (:mod:`dpsynth.privacy.loss`).
"""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from dpsynth.checks import few, in_range, inside, text
from dpsynth.errors import DataError, DpsynthError, InputError, PrivacyError, RunError
from dpsynth.files.storage import read_json, unsealed
from dpsynth.privacy.guarantee import FORGOTTEN, UNIT, is_of_patients, round_up
from dpsynth.privacy.ledger import Ledger

# ------------------------------------------------------------------------------------------------
# Journal of a folder: the noisy statistics of its table that no run of the same folder may lose.
#
# A folder that is replaced may have been shared. A run that was given up, failed or was killed may have read
# the table. So the ledger of a run is kept in a *journal* beside its folder. It is there from before the
# first statistic until the folder with the final ledger is complete. A new run continues from the journal,
# from the folder that it replaces and from a checkpoint that it gives up. A stage in several of them counts
# once. A failed run costs what its last stage was promised, since when it stopped may depend on noisy
# statistics. Two runs of one folder may have read different tables. This is not checked: adding up is always
# right.

_CHECKPOINTS = ("checkpoint.json", "checkpoint.used.json")


def journal_file(out: str | Path) -> Path:
    """Path of a folder's journal: a hidden file, which no user's file is mistaken for.

    Examples
    --------
    >>> journal_file("runs/demo").name
    '.demo.journal.json'
    """
    path = Path(out)
    return path.with_name(f".{path.name}.journal.json")


@contextlib.contextmanager
def journalled(
    out: Path, named: Ledger | None, *, forget: bool, say: Callable[[str], None]
) -> Iterator[Ledger]:
    """Give the ledger that a run or fit of ``out`` continues from, with a journal until the block ends.

    ``named`` holds the noisy statistics that the user names. With ``forget`` the ledger begins from ``named``
    alone although there is more, and says so. If the block raises, the journal stays, and ``say`` gets what
    it cost.
    """
    ledger, journal = Ledger(), journal_file(out)
    if named is not None:
        ledger.join(named)
    if forget:
        if not all(_is_in(path, ledger) for path in _places(out)):
            ledger.exclude(FORGOTTEN)
    else:
        for path in _places(out):
            try:
                earlier = _read(path)
            except DpsynthError as problem:
                raise type(problem)(
                    f"{problem}. Correct the file, or add --forget-earlier to continue without any earlier "
                    "ledger of the folder"
                ) from None
            new = ledger.join(earlier)
            if new:
                say(f"{new} earlier noisy statistics taken over from {path}. The new ledger counts them too")
    ledger.journal = journal
    before = len(ledger.entries)
    try:
        yield ledger
    except BaseException:
        if journal.exists() and len(ledger.entries) > before:
            say(
                f"the run stopped after {ledger.spent_since(before)}. "
                f"The next run of {out} counts this cost, which stands in {journal}"
            )
        raise
    journal.unlink(missing_ok=True)


def give_up(checkpoint: Path) -> None:
    """Mark a checkpoint as used, so nothing continues from it, but its ledger still counts."""
    waiting, used = (checkpoint / name for name in _CHECKPOINTS)
    if waiting.exists():
        os.replace(waiting, used)


def is_waiting(checkpoint: Path) -> bool:
    """Whether a run can go on from a checkpoint."""
    return (checkpoint / _CHECKPOINTS[0]).is_file()


def checkpoint_ledger(checkpoint: Path) -> Ledger:
    """The ledger in a checkpoint."""
    return _read(next(checkpoint / name for name in _CHECKPOINTS if (checkpoint / name).is_file()))


def _is_in(path: Path, ledger: Ledger) -> bool:
    try:
        return ledger.holds(_read(path))
    except DpsynthError:  # what cannot be read cannot be known to be nothing
        return False


def _places(out: Path) -> list[Path]:
    """Files that hold a ledger of ``out``, one of a finished folder."""
    finished = [out / "ledger.json", out / "model.json", out / "model" / "model.json"]
    checkpoint = [out.with_name(f"{out.name}.checkpoint") / name for name in _CHECKPOINTS]
    first = next((path for path in finished if path.is_file()), None)
    return [path for path in (first, journal_file(out), *checkpoint) if path is not None and path.is_file()]


def _read(path: Path) -> Ledger:
    if path.name.endswith(("ledger.json", "journal.json")):
        return Ledger.load(path)
    record = unsealed(read_json(path), f"cannot read the ledger in {path}")
    try:
        return Ledger.from_dict(record["ledger"])
    except (KeyError, TypeError) as problem:
        raise DataError(f"{path} holds no ledger ({problem})") from None
    except DataError as problem:
        raise DataError(f"{path}: {problem}") from None


#: environment variable that names the file
VARIABLE = "DPSYNTH_BUDGET"
#: how a run stands; one that was killed stays as it began
BEGUN, COMPLETE, INTERRUPTED, STOPPED, UNUSED = (
    "running or killed",
    "complete",
    "interrupted",
    "stopped",
    "nothing used",
)

_APPLICATION, _VERSION = 0x44505342, 1  # "DPSB"
#: seconds for which a process waits until another one has written
_WAIT = 30.0
_NUMBER = "REAL NOT NULL CHECK (typeof({0}) = 'real' AND {0} >= 0)"
_TABLES = (
    "CREATE TABLE caps (number INTEGER PRIMARY KEY, time TEXT NOT NULL, data_set TEXT NOT NULL, "
    f"epsilon {_NUMBER.format('epsilon')}, delta {_NUMBER.format('delta')})",
    "CREATE TABLE uses (number INTEGER PRIMARY KEY, time TEXT NOT NULL, data_set TEXT NOT NULL, "
    f"epsilon {_NUMBER.format('epsilon')}, delta {_NUMBER.format('delta')}, "
    "unit TEXT NOT NULL, run TEXT NOT NULL, state TEXT NOT NULL, resume_key TEXT)",
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

    @property
    def who(self) -> str:
        """Who is protected: a patient or a row."""
        return "patient" if is_of_patients(self.unit) else "row"


@dataclass(frozen=True)
class Use:
    """A cost in the file: when it was reserved (UTC), by which run, and how the run stands."""

    time: str
    run: str
    cost: Cost
    state: str

    @property
    def counts(self) -> bool:
        """Whether it has used budget."""
        return self.state != UNUSED


@dataclass(frozen=True)
class Standing:
    """Budget of a data set and the runs in it. ``caps`` are the times, epsilons and deltas that were set."""

    name: str
    caps: tuple[tuple[str, float, float], ...]
    uses: tuple[Use, ...]

    @property
    def cap(self) -> tuple[float, float]:
        """The largest epsilon and delta of all runs together."""
        return self.caps[-1][1:]

    @property
    def counted(self) -> tuple[Use, ...]:
        """The runs that have used budget."""
        return tuple(use for use in self.uses if use.counts)

    @property
    def used(self) -> tuple[float, float]:
        """Epsilon and delta of all runs together."""
        costs = [use.cost for use in self.counted]
        return _float(_sum(c.epsilon for c in costs)), _float(_sum(c.delta for c in costs))

    @property
    def who(self) -> str | None:
        """Who is protected, a patient or a row, or None before the first run."""
        return self.counted[-1].cost.who if self.counted else None

    def check(self, cost: Cost) -> None:
        """Raise PrivacyError if another run of this cost would pass the cap, or counts something else."""
        if not math.isfinite(cost.epsilon):
            raise PrivacyError(
                f"the budget of {self.name!r} covers no run without a guarantee: give epsilon and no seed"
            )
        if self.who not in (None, cost.who):
            raise PrivacyError(
                f"the budget of {self.name!r} protects one {self.who}, and this run protects one {cost.who} "
                f"({cost.unit}): their costs do not add up. Give the run a data set of its own"
            )
        costs = [*(use.cost for use in self.counted), cost]
        sums = _sum(c.epsilon for c in costs), _sum(c.delta for c in costs)
        over = [
            name
            for name, total, most in zip(("epsilon", "delta"), sums, self.cap, strict=True)
            if total > _exact(most)
        ]
        if over:
            (epsilon, delta), (most, most_delta) = self.used, self.cap
            raise PrivacyError(
                f"the budget of {self.name!r} is epsilon {most:g} at delta {most_delta:g}. Earlier runs used "
                f"epsilon {round_up(epsilon)} at delta {round_up(delta)}, and this one needs epsilon "
                f"{round_up(cost.epsilon)} at delta {round_up(cost.delta)}. Nothing was used: give a smaller "
                f"{' and '.join(over)}, or let the owner raise the budget with `dpsynth budget set`"
            )


class Budget:
    """The budget of a data set in a file that all runs share.

    ``dpsynth budget set`` or :meth:`set` makes the file. Give the same file and name to every fit of the same
    table.

    Parameters
    ----------
    path : path
        The file, on a disk of this computer.
    name : str
        The data set's name: 1 to 100 printable characters.

    Examples
    --------
    >>> import tempfile
    >>> budget = Budget(Path(tempfile.mkdtemp()) / "budget.db", "clinic")
    >>> budget.set(epsilon=3.0, delta=1e-5)
    >>> first = budget.reserve(Cost(2.0, 1e-6), "first")
    >>> budget.standing().used
    (2.0, 1e-06)
    >>> budget.reserve(Cost(2.0, 1e-6), "second")
    Traceback (most recent call last):
    dpsynth.errors.PrivacyError: the budget of 'clinic' is epsilon 3 at delta 1e-05. Earlier runs used ...
    """

    def __init__(self, path: str | os.PathLike[str], name: str) -> None:
        self.path, self.name = Path(path), name
        if not isinstance(name, str) or not 0 < len(name.strip()) <= 100 or not name.isprintable():
            raise InputError(
                f"the name of a data set must be 1 to 100 printable characters, not {name!r:.120}"
            )

    def __repr__(self) -> str:
        return f"Budget({str(self.path)!r}, {self.name!r})"

    @classmethod
    def chosen(cls, name: str | None, path: str | None = None) -> Budget | None:
        """The budget of a run, or None if no file is named, here or by ``DPSYNTH_BUDGET``.

        Raises InputError if only a file is named, or only a data set.
        """
        file = path or os.environ.get(VARIABLE)
        if not file:
            if name is not None:
                raise InputError(f"a budget needs a file: set {VARIABLE}, or write budget: path")
            return None
        if name is None:
            raise InputError(
                f"{file} holds budgets, so the run must name its data set: --budget NAME, or budget: name"
            )
        return cls(file, name)

    @classmethod
    def of_fit(cls, given: Budget | Literal["environment"] | None) -> Budget | None:
        """The budget of a fit in Python, or None if nothing counts its cost.

        Raises InputError if nobody gave one, and ``DPSYNTH_BUDGET`` names a file: as for a command, no fit is
        left out in silence.
        """
        if given is None or isinstance(given, Budget):
            return given
        if given != "environment":
            raise InputError(f"budget must be a Budget or None, got {type(given).__name__}")
        if file := os.environ.get(VARIABLE):
            raise InputError(
                f"{VARIABLE} names a file of budgets, so a fit must name its data set: "
                f"budget=Budget({file!r}, NAME). For records of nobody, such as simulated ones, give "
                "budget=None"
            )
        return None

    def set(self, epsilon: float, delta: float) -> None:
        """Set the largest cost of all runs together, past and to come, and make the file if need be.

        ``epsilon`` is finite and greater than 0, ``delta`` lies in (0, 1). The file is readable by its owner
        alone. Raises InputError for other numbers, or if the file cannot be made.
        """
        cap = inside("epsilon", epsilon, 0.0, math.inf), inside("delta", delta, 0.0, 1.0)
        with _opened(self.path, make=True) as file:
            file.execute(
                "INSERT INTO caps (time, data_set, epsilon, delta) VALUES (?, ?, ?, ?)",
                (_now(), self.name, *cap),
            )

    def standing(self) -> Standing:
        """Read the budget and its runs.

        Its ``cap`` and ``used`` are epsilon and delta, and ``uses`` the history. Raises InputError for a name
        without a budget, DataError for a damaged file, RunError if another process holds it for long.
        """
        with _opened(self.path) as file:
            return self._standing(file)

    def reserve(self, cost: Cost, run: str, resume_key: str | None = None) -> int:
        """Reserve a run's cost and return its number in the file.

        A run that was interrupted with this ``resume_key`` has paid already. A key is taken once.

        Raises PrivacyError if the cap would be passed, or if the run counts patients and earlier ones rows.
        Nothing is reserved then.
        """
        with _opened(self.path) as file:
            found = file.execute(
                "SELECT number FROM uses WHERE data_set = ? AND resume_key = ?", (self.name, resume_key)
            ).fetchone()
            if found is not None:
                _note(file, found[0], BEGUN, None)
                return found[0]
            self._standing(file).check(cost)
            row = (_now(), self.name, cost.epsilon, cost.delta, cost.unit, run, BEGUN)
            added = file.execute(
                "INSERT INTO uses (time, data_set, epsilon, delta, unit, run, state) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                row,
            )
            return int(added.lastrowid or 0)

    def _standing(self, file: sqlite3.Connection) -> Standing:
        of = "WHERE data_set = ? ORDER BY number"
        caps = file.execute(f"SELECT time, epsilon, delta FROM caps {of}", (self.name,)).fetchall()
        if not caps:
            known = few(_names(file)) or "none"
            raise InputError(
                f"{self.path} holds no budget of {self.name!r} (it has: {known}). "
                "`dpsynth budget set NAME --epsilon E --delta D` sets one"
            )
        rows = file.execute(
            f"SELECT time, run, epsilon, delta, unit, state FROM uses {of}", (self.name,)
        ).fetchall()
        try:
            for _, epsilon, delta in caps:
                inside("epsilon", epsilon, 0.0, math.inf)
                inside("delta", delta, 0.0, 1.0)
            uses = tuple(Use(time, run, Cost(*cost), state) for time, run, *cost, state in rows)
            for use in uses:
                in_range("epsilon", use.cost.epsilon, 0.0, math.inf, high_open=True)
                for name, value in (("unit", use.cost.unit), ("run", use.run), ("state", use.state)):
                    text(name, value, may_be_empty=True)
        except InputError as problem:
            raise sqlite3.DatabaseError(f"an impossible budget or cost: {problem}") from None
        return Standing(self.name, tuple(caps), uses)


@contextmanager
def spending(
    budget: Budget | None,
    cost: Cost,
    ledger: Ledger,
    run: str,
    checkpoint: Path | None = None,
    *,
    resumed: bool = False,
) -> Iterator[None]:
    """Reserve the cost of the block, which posts into ``ledger``, and note how it ends.

    An interrupt may leave a ``checkpoint``. A block that goes on from it has paid already. Without a budget,
    nothing happens.
    """
    if budget is None:
        yield
        return
    before = len(ledger.entries)
    number = budget.reserve(cost, run, _resume_key(checkpoint) if resumed else None)
    try:
        yield
    except BaseException:
        if not resumed and len(ledger.entries) == before:
            _end(budget, number, UNUSED)
        else:
            _end(budget, number, STOPPED, checkpoint)
        raise
    _end(budget, number, COMPLETE)


def _end(budget: Budget, number: int, state: str, checkpoint: Path | None = None) -> None:
    """Note how a run ended, and the key of its checkpoint. If that fails, its cost stays reserved."""
    with contextlib.suppress(DpsynthError):
        key = _resume_key(checkpoint)
        with _opened(budget.path) as file:
            _note(file, number, state if key is None else INTERRUPTED, key)


def _note(file: sqlite3.Connection, number: int, state: str, resume_key: str | None) -> None:
    file.execute("UPDATE uses SET state = ?, resume_key = ? WHERE number = ?", (state, resume_key, number))


def standings(path: str | os.PathLike[str]) -> tuple[Standing, ...]:
    """All data sets of a budget's file, by name."""
    with _opened(Path(path)) as file:
        return tuple(Budget(path, name)._standing(file) for name in _names(file))


def _names(file: sqlite3.Connection) -> list[str]:
    return [name for (name,) in file.execute("SELECT DISTINCT data_set FROM caps ORDER BY data_set")]


def _resume_key(checkpoint: Path | None) -> str | None:
    """A checkpoint's key, which every continuation changes, or None without a checkpoint to go on from."""
    if checkpoint is None or not is_waiting(checkpoint):
        return None
    return checkpoint_ledger(checkpoint).entries[-1].keys[-1]


def _exact(number: float) -> Fraction:
    """A number as it is written: ten times 0.1 is 1."""
    return Fraction(repr(number))


def _sum(numbers: Iterable[float]) -> Fraction:
    return sum(map(_exact, numbers), Fraction())


def _float(number: Fraction) -> float:
    """The nearest float, or infinity for a number that is beyond all of them."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _now() -> str:
    return datetime.now(UTC).isoformat(" ", "seconds").removesuffix("+00:00")


@contextmanager
def _opened(path: Path, *, make: bool = False) -> Iterator[sqlite3.Connection]:
    """One transaction that no other process writes beside, kept if the block ends well."""
    if not path.is_file() and not make:
        raise InputError(f"there is no budget's file {path}. `dpsynth budget set` makes one")
    try:
        if make:
            _make(path)
        address = f"{path.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(address, uri=True, timeout=_WAIT, isolation_level=None)) as file:
            _prepare(file, path, make)
            file.execute("BEGIN IMMEDIATE")
            if _pragma(file, "quick_check") != "ok":
                raise sqlite3.DatabaseError("its contents are damaged")
            yield file
            file.execute("COMMIT")
    except OSError as problem:
        raise InputError(f"the budget's file {path} cannot be made ({problem.strerror})") from None
    except sqlite3.Error as problem:
        raise _fault(path, problem) from None


def _make(path: Path) -> None:
    """Make an empty file that its owner alone can read, unless there is one."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _prepare(file: sqlite3.Connection, path: Path, make: bool) -> None:
    """Check that the file holds budgets, and lay it out if it is new."""
    file.execute("PRAGMA synchronous = FULL")  # a reservation outlives a loss of power
    if make and not file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        if _pragma(file, "journal_mode = WAL") != "wal":
            raise InputError(f"{path}: processes cannot share a budget's file here. Put it on a local disk")
        file.execute("BEGIN IMMEDIATE")
        if not _pragma(file, "application_id"):  # which another process may have written meanwhile
            for table in _TABLES:
                file.execute(table)
            file.execute(f"PRAGMA application_id = {_APPLICATION}")
            file.execute(f"PRAGMA user_version = {_VERSION}")
        file.execute("COMMIT")
    if _pragma(file, "application_id") != _APPLICATION:
        raise DataError(f"{path} is no budget's file")
    if (version := _pragma(file, "user_version")) != _VERSION:
        raise DataError(
            f"{path} was written by another dpsynth (version {version}, this one reads {_VERSION})"
        )


def _pragma(file: sqlite3.Connection, name: str) -> Any:
    return file.execute(f"PRAGMA {name}").fetchone()[0]


def _fault(path: Path, problem: sqlite3.Error) -> DpsynthError:
    name = getattr(problem, "sqlite_errorname", "SQLITE_CORRUPT")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return RunError(
            f"{path} was in use by another process for {_WAIT:g} seconds. Nothing was used: run it again"
        )
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR", "SQLITE_CONSTRAINT")):
        return DataError(f"{path} is no budget's file, or a damaged one ({problem}). Restore a copy of it")
    return InputError(
        f"{path} cannot be used ({problem}). Put it into a folder on a local disk that you may write to"
    )
