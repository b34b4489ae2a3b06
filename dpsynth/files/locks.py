"""One writer at a time for a folder: a lock file beside it, held for as long as its process lives.

The lock is the kernel's (``flock``), so that it ends with the process that holds it, however that ends; a
file that a killed process left is taken over. The file names the holder for whoever is refused. Where there
is no ``flock``, the file's existence is the lock, and a killed process's file has to be removed by hand.
"""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from dpsynth.errors import InputError

fcntl: Any
try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None

# Of this thread of execution, so that what writes a folder may be called by what holds it already.
_HELD: ContextVar[frozenset[Path]] = ContextVar("_HELD", default=frozenset())
# What a file system says that cannot lock.
_NO_LOCKS = frozenset((errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL))


@contextmanager
def locked(folder: str | Path) -> Iterator[None]:
    """Hold a folder, which need not exist, against other processes and threads; its parent must exist.

    Raises
    ------
    InputError
        If it is in use, naming the process and its machine, or if nothing can be written beside it.
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
        path.unlink(missing_ok=True)  # while it is held, so that nobody's new file is removed
        os.close(file)


def _take(path: Path, folder: Path) -> int:
    while True:
        file, fresh = _open(path, folder)
        if not _lock(file, fresh):
            os.close(file)
            raise InputError(_in_use(path, folder))
        try:
            same = os.path.samestat(os.fstat(file), path.stat())
        except FileNotFoundError:
            same = False
        if same:
            break
        os.close(file)  # its holder removed it between our opening and locking it
    os.ftruncate(file, 0)
    os.write(file, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode())
    return file


def _open(path: Path, folder: Path) -> tuple[int, bool]:
    """The lock file and whether it is new."""
    flags = os.O_RDWR | os.O_CREAT
    try:
        try:
            return os.open(path, flags | os.O_EXCL, 0o644), True
        except FileExistsError:
            return os.open(path, flags, 0o644), False
    except OSError as problem:
        raise InputError(f"{folder} cannot be written: {path.name}: {problem.strerror}") from None


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
