"""Write files atomically, as JSON text too, with one writer at a time for a folder.

A file is for its owner alone (0600), and so is a folder (0700), unless its writer says that it may be shared.
Then the umask decides. So a file that somebody adds, and forgets to think about, is nobody else's to read.

Numbers that JSON cannot hold (an infinite epsilon) are null. The lock of a folder is a file beside it. The
kernel holds it (``flock``) as long as its process lives. The file of a killed process is taken over. It names
the holder for a process that is refused. Without ``flock``, the file's existence is the lock. A killed
process's file must then be removed by hand. Another user of the parent folder can plant a link in the lock's
place. So nothing is written through a link, and a file that is no lock stays as it is.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import secrets
import socket
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from dpsynth.checks import given_twice
from dpsynth.errors import DataError, InputError

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
