"""Where results may be written: never over something that is not an earlier result of the same kind."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpsynth.errors import InputError
from dpsynth.files.locks import locked
from dpsynth.files.storage import clear_leftovers, parents_made


@contextmanager
def claimed(folder: Path, *, force: bool, mark: str) -> Iterator[None]:
    """Hold a folder that a command is going to write, from before it reads anything until it has ended.

    What can be known beforehand is that it may be written, that nobody else is writing it, and that no
    killed command left in a hidden folder what it had paid for. Other remains of killed commands are removed.

    Raises
    ------
    InputError
    """
    require_free_folder(folder, force=force, mark=mark)
    with parents_made(folder), locked(folder):
        require_free_folder(
            folder, force=force, mark=mark
        )  # who held it a pairwise statistic ago may have filled it
        clear_leftovers(folder, keep_worthy=force)
        yield


def require_free_folder(folder: Path, *, force: bool, mark: str) -> None:
    """Refuse a folder that holds something, unless it is an earlier result and may be replaced.

    Parameters
    ----------
    folder : Path
        A folder yet to be written; it may exist if it is empty.
    force : bool
        Whether an earlier result may be replaced.
    mark : str
        A file that every such result holds. Somebody's home folder does not, and stays.

    Raises
    ------
    InputError
    """
    if not folder.name:
        raise InputError(f"{folder} is not the name of a folder to write")
    if not os.path.lexists(folder):
        return
    if os.path.ismount(folder):
        raise InputError(f"{folder} is a mounted volume, which cannot be renamed; name a folder inside it")
    if not folder.is_dir():
        raise InputError(f"{folder} is a file; name a folder")
    try:
        if not any(folder.iterdir()):
            return
    except OSError as problem:
        raise InputError(f"{folder} cannot be read ({problem.strerror})") from None
    if not force:
        # A release in another folder knows nothing of this one unless it is told.
        book = folder / "ledger.json"
        counted = f" (with --ledger {book}, if it is about the same table)" if book.exists() else ""
        raise InputError(
            f"{folder} exists and is not empty; name another folder{counted}, or add --force to replace it"
        )
    if not (folder / mark).exists():
        raise InputError(
            f"{folder} holds no {mark}: it is no earlier result, and --force does not replace it"
        )


def require_free_file(path: Path, *, force: bool) -> None:
    """Refuse a file that exists, unless it may be replaced, and one whose folder cannot be written to.

    Raises
    ------
    InputError
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file")
    if path.exists() and not force:
        raise InputError(f"{path} exists; name another file, or add --force to replace it")
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} does not exist")
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as problem:
        raise InputError(f"{path} cannot be written ({problem.strerror})") from None
