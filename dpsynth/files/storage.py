"""Folders that are complete or absent, and checks of where results may be written.

Nothing is written over something that is not an earlier result of the same kind.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import socket
import stat
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from dpsynth.checks import given_twice
from dpsynth.errors import DataError, DpsynthError, InputError, RunError

# ------------------------------------------------------------------------------------------------
# Write files atomically, as JSON text too, with one writer at a time for a folder.
#
# A file is for its owner alone (0600), and so is a folder (0700), unless its writer says that it may be
# shared. Then the umask decides. So a file that somebody adds, and forgets to think about, is nobody else's
# to read.
#
# Numbers that JSON cannot hold (an infinite epsilon) are null. The lock of a folder is a file beside it. The
# kernel holds it (``flock``) as long as its process lives. The file of a killed process is taken over. It
# names the holder for a process that is refused. Without ``flock``, the file's existence is the lock. A
# killed process's file must then be removed by hand. Another user of the parent folder can plant a link in
# the lock's place. So nothing is written through a link, and a file that is no lock stays as it is.

#: what to do about a damaged file
RESTORE = "Restore it from a copy"


def finite(value: Any) -> Any:
    """Replace numbers that JSON cannot hold by None, however deep.

    Examples
    --------
    >>> finite({"epsilon": float("inf"), "entries": (1, 2.5)})
    {'epsilon': None, 'entries': [1, 2.5]}
    """
    if isinstance(value, Mapping):
        return {str(key): finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def dump_json(value: Any) -> str:
    """Return indented JSON text, letters of any alphabet as they are."""
    return json.dumps(finite(value), indent=2, ensure_ascii=False, allow_nan=False)


def write_text(path: str | os.PathLike[str], text: str, *, shared: bool = False) -> None:
    """Write a UTF-8 text file atomically, for its owner alone unless it may be ``shared``."""
    with replaced(path, shared=shared) as temporary:
        temporary.write_text(text, encoding="utf-8")


def make_folder(path: Path, *, shared: bool = False) -> None:
    """Make a folder, for its owner alone unless it may be ``shared``.

    A folder that exists is closed to others as well (0700), since it will hold confidential files that we
    alone write. InputError if it cannot be closed because it is somebody else's.
    """
    try:
        path.mkdir(0o777 if shared else 0o700)
    except FileExistsError:
        if not path.is_dir():
            raise
        if shared or not path.stat().st_mode & 0o077:
            return
        try:
            path.chmod(0o700)
        except PermissionError as problem:
            if hasattr(os, "geteuid") and path.stat().st_uid == os.geteuid():
                return  # a file system without modes
            raise InputError(
                f"{path} is another user's folder, which cannot be closed to others ({problem.strerror}). "
                "Name a folder of your own"
            ) from None


def read_json(path: str | os.PathLike[str], what: str = "") -> Any:
    """Read a UTF-8 JSON file. ``what`` stands before its path in messages.

    Examples
    --------
    >>> read_json("absent.json", "the ledger")
    Traceback (most recent call last):
    dpsynth.errors.DataError: cannot read the ledger absent.json: No such file or directory
    """
    name = f"{what} {path}".strip()
    try:
        return parse_json(Path(path).read_text(encoding="utf-8"))
    except OSError as problem:
        raise DataError(f"cannot read {name}: {problem.strerror}") from None
    except RecursionError:
        raise DataError(f"cannot read {name}: its lists and records are nested too deeply") from None
    except ValueError as problem:
        raise DataError(f"cannot read {name}: it is not JSON ({problem})") from None


def sealed(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record for JSON with ``sha256``, the checksum of its other fields in their order.

    Examples
    --------
    >>> unsealed(sealed({"step": 7}), "c.json")
    {'step': 7}
    >>> unsealed({**sealed({"step": 7}), "step": 8}, "c.json")
    Traceback (most recent call last):
    dpsynth.errors.DataError: c.json: its sha256 is not that of its contents. Restore it from a copy
    """
    return {**record, "sha256": _checksum(record)}


def unsealed(record: Any, what: str) -> Any:
    """Return what was read without its checksum, or raise DataError, beginning with ``what``, if it differs.

    A file of an earlier version, which has no checksum, is returned as it is.
    """
    if not isinstance(record, dict) or "sha256" not in record:
        return record
    rest = {key: value for key, value in record.items() if key != "sha256"}
    if record["sha256"] != _checksum(rest):
        raise DataError(f"{what}: its sha256 is not that of its contents. {RESTORE}")
    return rest


def _checksum(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record).encode()).hexdigest()


def parse_json(text: str) -> Any:
    """Read JSON text, or raise ValueError. A key given twice, NaN and infinity are errors, as JSON has none.

    Examples
    --------
    >>> parse_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ValueError: the key 'a' is given twice
    """
    return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"the key {given_twice(key for key, _ in pairs)!r} is given twice")
    return found


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number in JSON")


@contextlib.contextmanager
def replaced(path: str | os.PathLike[str], *, shared: bool = False) -> Iterator[Path]:
    """Give an empty temporary file beside ``path``, which takes ``path``'s place if the block ends well.

    Its owner alone can read it, from its first byte on, unless it may be ``shared``.
    If the block raises, the temporary file is removed and a file that was at ``path`` stays as it was. The
    parent folder must exist. If ``path`` is a symbolic link, the new file replaces the link, and what the
    link leads to stays as it was.
    """
    target = Path(path)
    # in the same folder, since a rename is atomic only within one file system; the suffix is kept because
    # some writers choose their format by it
    temporary = target.with_name(f".{target.stem}.{secrets.token_hex(6)}.tmp{target.suffix}")
    try:
        temporary.touch(0o666 if shared else 0o600, exist_ok=False)
        yield temporary
        through(temporary)
        os.replace(temporary, target)
        through(target.parent)
    except OSError as problem:
        raise named(problem, target, temporary) from None
    finally:
        with contextlib.suppress(OSError):  # of a folder that has become read-only: the problem is known
            temporary.unlink(missing_ok=True)


def through(path: Path) -> None:
    """Write a file, or the names in a folder, through to the disk, so that they outlast a loss of power."""
    if not path.is_dir():
        with open(path, "rb+") as file:
            os.fsync(file.fileno())
        return
    with contextlib.suppress(OSError):  # some file systems cannot, and some systems open no folder
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


_DISK = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO))


def named(problem: OSError, path: Path, temporary: Path) -> OSError:
    """The same problem, about the path that the user knows. A write to a full disk names none."""
    unnamed = problem.filename is None and problem.errno in _DISK
    if unnamed or str(problem.filename).startswith(str(temporary)):
        return OSError(problem.errno, problem.strerror, str(path))
    return problem


fcntl: Any
try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None

# Of this thread of execution, so that what writes a folder may be called by what holds it already.
_HELD: ContextVar[frozenset[Path]] = ContextVar("_HELD", default=frozenset())
# What a file system says that cannot lock.
_HOLDER = b'{"pid": '  # as a lock begins
_NO_LOCKS = frozenset((errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL))


@contextmanager
def locked(folder: str | Path) -> Iterator[None]:
    """Lock a folder against other processes and threads. Its parent must exist, the folder need not.

    Raises InputError if it is in use, naming the process and its machine.
    """
    folder = Path(folder)
    path = folder.parent.resolve() / f".{folder.name}.lock"
    if path in _HELD.get():
        yield
        return
    file = _take(path, folder)
    before = _HELD.set(_HELD.get() | {path})
    try:
        yield
    finally:
        _HELD.reset(before)
        with contextlib.suppress(OSError):  # of a folder that has become read-only: it is not held any more
            path.unlink(missing_ok=True)  # while it is held, so that nobody's new file is removed
        os.close(file)


def _take(path: Path, folder: Path) -> int:
    while True:
        file, fresh = _open(path, folder)
        if not _lock(file, fresh):
            os.close(file)
            raise InputError(_in_use(path, folder))
        try:
            same = os.path.samestat(os.fstat(file), path.lstat())
        except FileNotFoundError:
            same = False
        if same:
            break
        os.close(file)  # its holder removed it between our opening and locking it
    if not _is_ours(file):
        os.close(file)
        raise InputError(f"{path} is no lock of dpsynth. Move it away, or name another folder than {folder}")
    os.ftruncate(file, 0)
    os.write(file, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode())
    return file


def _is_ours(file: int) -> bool:
    """Whether a file is a lock that may be overwritten: plain, of one name, empty or as we write it."""
    known = os.fstat(file)
    if not stat.S_ISREG(known.st_mode) or known.st_nlink > 1:
        return False
    begins = os.read(file, len(_HOLDER))
    os.lseek(file, 0, os.SEEK_SET)
    return begins in (b"", _HOLDER)


def _open(path: Path, folder: Path) -> tuple[int, bool]:
    """The lock file and whether it is new."""
    flags = os.O_RDWR | os.O_CREAT
    try:
        try:
            return os.open(path, flags | os.O_EXCL, 0o600), True
        except FileExistsError:
            return unlinked(path, flags, 0o600), False
    except OSError as problem:
        raise InputError(f"{folder} cannot be written: {path.name}: {problem.strerror}") from None


def unlinked(path: str | os.PathLike[str], flags: int, mode: int = 0o666) -> int:
    """`os.open` that follows no symbolic link in the last part of ``path``."""
    if os.path.islink(path):
        raise OSError(errno.ELOOP, "it is a symbolic link, which is not followed", os.fspath(path))
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), mode)


def _lock(file: int, fresh: bool) -> bool:
    if fcntl is None:
        return fresh
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as problem:
        if problem.errno not in _NO_LOCKS:
            raise
        return fresh
    return True


def _in_use(path: Path, folder: Path) -> str:
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
        who = f"process {holder['pid']} on {holder['host']}"
    except (OSError, ValueError, KeyError, TypeError):  # between its making and its writing
        who = "another process"
    return (
        f"{folder} is in use by {who}; wait for it or name another folder "
        f"(if that process is dead, remove {path})"
    )


# Files that are the outcome of a spent budget, or private: a killed process's folder that holds one is named.
_KEPT = ("model.json", "model/model.json", "checkpoint.json")


def write_folder(
    path: str | Path, fill: Callable[[Path], None], *, replace: bool = False, shared: bool = False
) -> Path:
    """Let ``fill`` write a folder under a temporary name beside ``path``, and rename it when it is complete.

    Its owner alone can list it unless it may be ``shared``: it then holds no confidential file.

    Two processes never write one folder at a time, and what a killed process left is removed or named: see
    `clear_leftovers`. A folder that may be replaced stays untouched until the new one is complete.
    """
    path = Path(path)
    _check_own_folder(path)
    with parents_made(path), locked(path):
        if path.is_dir() and any(path.iterdir()) and not replace:
            raise InputError(
                f"{path} exists and is not empty. Name another folder, or give replace=True to replace it"
            )
        clear_leftovers(path, keep_worthy=replace)
        _write(path, fill, shared)
        for rest in leftovers(path):
            shutil.rmtree(rest)
    return path


def _write(path: Path, fill: Callable[[Path], None], shared: bool) -> None:
    fresh = _temporary(path, "tmp", shared=shared)
    try:
        fill(fresh)
        for written in (*fresh.rglob("*"), fresh):
            through(written)
        if path.exists():
            aside = _temporary(path, "old")
            try:
                os.replace(path, aside / "old")
                os.replace(fresh, path)
            finally:
                if not path.exists():
                    os.replace(aside / "old", path)
                shutil.rmtree(aside)
        else:
            os.replace(fresh, path)
        through(path.parent)
    except OSError as problem:
        raise named(problem, path, fresh) from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _temporary(path: Path, suffix: str, *, shared: bool = False) -> Path:
    made = path.with_name(f".{path.name}.{secrets.token_hex(4)}.{suffix}")
    try:
        make_folder(made, shared=shared)
    except OSError as problem:
        raise InputError(f"{path} cannot be written ({problem.strerror or problem})") from None
    return made


@contextmanager
def parents_made(path: Path) -> Iterator[None]:
    """Make the folders above ``path``. Those that are empty in the end are removed again."""
    made = [folder for folder in path.parents if not folder.exists()]
    try:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise InputError(f"{path} cannot be written ({problem.strerror or problem})") from None
        yield
    finally:
        with suppress(OSError):
            for folder in made:
                folder.rmdir()


def leftovers(path: Path) -> list[Path]:
    """Temporary folders that killed processes left when writing ``path``, whose lock the caller holds."""
    # as `_temporary` and earlier versions name them: a neighbour's (run.2 beside run) are not taken for ours
    pattern = re.compile(re.escape(f".{path.name}.") + r"[a-z0-9_]{8}\.(tmp|old)")
    return sorted(entry for entry in path.parent.iterdir() if pattern.fullmatch(entry.name))


def mend(path: Path) -> None:
    """Put a folder back whose replacement was killed between two renames, and remove what else was left.

    Without the folder, or its parent, nothing happens. Raises InputError if another process writes it.
    """
    if not path.parent.is_dir():
        return
    with locked(path):
        left = leftovers(path)
        for rest in left:
            if not path.exists() and (rest / "old").is_dir():
                os.replace(rest / "old", path)
        if path.exists():
            for rest in left:
                shutil.rmtree(rest)


def clear_leftovers(path: Path, *, keep_worthy: bool) -> None:
    """Remove the remains of killed processes that wrote ``path``, whose lock the caller holds.

    Parameters
    ----------
    keep_worthy : bool
        Leave what holds a model or a checkpoint where it is, without a word, until ``path`` is replaced.
    """
    for rest in leftovers(path):
        if not any((rest / place / name).exists() for place in ("", "old") for name in _KEPT):
            shutil.rmtree(rest)
        elif not keep_worthy:
            raise InputError(
                f"an earlier command was killed while it wrote {path}. Its results, which used budget, are "
                f"in {rest}: rename that folder to keep it, or add --force to delete it"
            )


def damaged(folder: str | Path, name: str, problem: object) -> DataError:
    """The error for a folder that does not hold what it should, in two sentences."""
    reason = (
        f"{problem} is absent"
        if isinstance(problem, KeyError)
        else (str(problem) or "unreadable").splitlines()[0]
    )
    return DataError(f"{folder} holds a damaged {name}: {reason}. {RESTORE}")


def check_format(folder: str | Path, name: str, found: object, known: int) -> None:
    """Refuse another format of a folder, saying which of the two is the newer.

    Examples
    --------
    >>> check_format("runs/m", "model", 9, 2)
    Traceback (most recent call last):
    dpsynth.errors.DataError: the model in runs/m was written by a newer dpsynth (format 9, this one reads 2)
    """
    if found != known:
        newer = isinstance(found, int) and found > known
        by = "a newer dpsynth" if newer else "another dpsynth"
        raise DataError(
            f"the {name} in {folder} was written by {by} (format {found}, this one reads {known})"
        )


def sha256(path: Path) -> str:
    """The checksum of a file, 64 hexadecimal digits."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as problem:
        raise DataError(f"{path}: cannot be read ({problem.strerror})") from None


def check_same_ledger(ledger: str | Path, model: str | Path) -> None:
    """Refuse a ledger beside a model that is not the one in the model. Absent files are accepted."""
    record = Path(model) / "model.json"
    if not (Path(ledger).is_file() and record.is_file()):
        return
    inside, beside = read_json(record), unsealed(read_json(ledger), f"cannot read {ledger}")
    if isinstance(beside, dict):  # owner, contact and table are not the model's
        beside.pop("published", None)
    if not isinstance(inside, dict) or inside.get("ledger") != beside:
        raise DataError(f"{ledger} is not the ledger of the model in {model}: one of them was changed")


@contextmanager
def claimed(folder: Path, *, force: bool, mark: str) -> Iterator[None]:
    """Hold a folder that a command is going to write, from before it reads anything until it has ended.

    It is checked that the folder may be written, and that no other process is writing it. Results on which a
    killed command had used budget, left in a hidden folder, are named. Its other remains are removed.
    """
    require_free_folder(folder, force=force, mark=mark)
    with parents_made(folder), locked(folder):
        require_free_folder(folder, force=force, mark=mark)  # who held it a moment ago may have filled it
        clear_leftovers(folder, keep_worthy=force)
        yield


def require_free_folder(folder: Path, *, force: bool, mark: str) -> None:
    """Refuse a folder that holds something, unless it is an earlier result and may be replaced.

    ``mark`` is a file that every such result holds. Somebody's home folder does not, and stays.
    """
    if not folder.name:
        raise InputError(f"{folder} is not the name of a folder to write")
    _check_own_folder(folder)
    if not os.path.lexists(folder):
        return
    if os.path.ismount(folder):
        raise InputError(f"{folder} is a mounted volume, which cannot be renamed. Name a folder inside it")
    try:
        if not any(folder.iterdir()):
            return
    except OSError as problem:
        raise InputError(f"{folder} cannot be read ({problem.strerror})") from None
    if not force:
        # A release in another folder knows nothing of this one unless it is told.
        ledger = folder.with_name(f"{folder.name}.ledger")
        counted = f" (with DPSYNTH_LEDGER={ledger}, if it is about the same table)" if ledger.exists() else ""
        raise InputError(
            f"{folder} exists and is not empty. Name another folder{counted}, or add --force to replace it"
        )
    if not (folder / mark).exists():
        raise InputError(
            f"{folder} holds no {mark}: it is no earlier result, and --force does not replace it"
        )


def _check_own_folder(folder: Path) -> None:
    """Refuse a file, and a link: replacing it would leave the folder that it leads to as it was."""
    if os.path.islink(folder):
        raise InputError(
            f"{folder} is a symbolic link. Name the folder that it leads to, {folder.readlink()}"
        )
    if os.path.lexists(folder) and not folder.is_dir():
        raise InputError(f"{folder} is a file. Name a folder")


def require_free_file(path: Path, *, force: bool) -> None:
    """Refuse a file that exists, unless it may be replaced, and one whose folder cannot be written to."""
    if path.is_dir():
        raise InputError(f"{path} is a folder. Name a file")
    if path.exists() and not force:
        raise InputError(f"{path} exists. Name another file, or add --force to replace it")
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} does not exist")
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as problem:
        raise InputError(f"{path} cannot be written ({problem.strerror})") from None


# ------------------------------------------------------------------------------------------------
# Many independent rounds of one experiment, in parallel, each kept in a file when it ends.
#
# A round's file is complete or absent. The same call on the same folder carries out the missing rounds,
# after an interruption or with more rounds than before. A folder of another experiment is refused.

#: what a folder of rounds was begun with, and the folder of the rounds inside it
STARTED, ROUNDS = "started.json", "rounds"
#: called with how many rounds are there, how many there will be, the last one's label and its seconds
OnRound = Callable[[int, int, str, float], None]
Work = Callable[[Any], Mapping[str, Any]]


def print_nothing(done: int, total: int, label: str, seconds: float) -> None:
    """Print nothing."""


def carry_out(
    work: Work,
    tasks: Mapping[str, Any],
    *,
    folder: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    jobs: int = 1,
    on_round: OnRound = print_nothing,
) -> dict[str, dict[str, Any]]:
    """Carry out the rounds that are missing, and return all of them in the order of ``tasks``.

    ``work(task)`` returns plain data. With several jobs it and the tasks are sent to other processes, so both
    must be picklable. Randomness is in the task. The label of a task names the round's file in ``folder``.
    ``settings`` are plain data that every round depends on, kept beside the rounds. The number of rounds is
    not one of them.

    Examples
    --------
    >>> carry_out(lambda x: {"square": x * x}, {"a": 2, "b": 3})
    {'a': {'square': 4}, 'b': {'square': 9}}
    """
    with ExitStack() as held:
        rounds, kept = None, {}
        if folder is not None:
            # workers of an earlier call are used again, and may stand in the folder of that time
            out = Path(folder).absolute()
            held.enter_context(parents_made(out))
            held.enter_context(locked(out))
            _begin(out, dict(settings or {}))
            rounds = out / ROUNDS
            kept = {label: _read(path) for label in tasks if (path := round_file(rounds, label)).is_file()}
        missing = {label: task for label, task in tasks.items() if label not in kept}
        done = side_by_side(work, missing, rounds=rounds, jobs=jobs)
        for number, (label, record, seconds) in enumerate(done, start=len(kept) + 1):
            kept[label] = record
            on_round(number, len(tasks), label, seconds)
        return {label: kept[label] for label in tasks}


def side_by_side(
    work: Work, tasks: Mapping[str, Any], *, rounds: Path | None, jobs: int
) -> Iterator[tuple[str, dict[str, Any], float]]:
    """Carry out rounds, each kept in a file of the folder ``rounds`` if there is one."""
    from joblib import Parallel, delayed

    if jobs < 1:
        raise InputError(f"jobs must be at least 1, got {jobs}")
    with warnings.catch_warnings():
        # joblib replaces workers that have grown, as TensorFlow's do, and need not say so
        warnings.filterwarnings("ignore", message="A worker stopped", module="joblib")
        parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch=jobs)
        done: Iterator[tuple[str, str, float]] = parallel(
            delayed(_carried_out)(work, label, task, None if rounds is None else round_file(rounds, label))
            for label, task in tasks.items()
        )
        for label, text, seconds in done:
            yield label, json.loads(text), seconds


def round_file(rounds: Path, label: str) -> Path:
    """The file of a round in the folder of rounds."""
    return rounds / f"{label}.json"


def _carried_out(work: Work, label: str, task: Any, path: Path | None) -> tuple[str, str, float]:
    """Carry out a round and write its file, in a process of its own if there are several."""
    from threadpoolctl import threadpool_limits

    start = time.perf_counter()
    try:
        with threadpool_limits(1):
            text = dump_json(work(task))
    except DpsynthError as problem:
        raise RunError(f"{label}: {problem}") from None
    except Exception as problem:
        raise RunError(f"{label} failed ({type(problem).__name__}: {problem})") from problem
    if path is not None:
        write_text(path, text + "\n")
    return label, text, time.perf_counter() - start


def _begin(out: Path, settings: dict[str, Any]) -> None:
    """Make the folder, or see that it holds rounds of these settings."""
    text = dump_json({"settings": settings})
    if (out / STARTED).is_file():
        if read_json(out / STARTED) != json.loads(text):
            raise InputError(f"{out} holds rounds of other settings or records. Name another folder")
        return
    require_free_folder(out, force=False, mark=STARTED)
    make_folder(out)
    make_folder(out / ROUNDS)
    write_text(out / STARTED, text + "\n")


def _read(path: Path) -> dict[str, Any]:
    record = read_json(path)
    if not isinstance(record, dict):
        raise DataError(
            f"{path} is no record of a round. Remove it, and the same command carries it out anew"
        )
    return record
