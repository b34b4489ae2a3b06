"""Folders that are complete or absent, and checks of where results may be written.

Nothing is written over something that is not an earlier result of the same kind.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpsynth.errors import DataError, InputError
from dpsynth.files.atomic import (
    RESTORE,
    locked,
    make_folder,
    named,
    read_json,
    through,
    unsealed,
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
        book = folder / "ledger.json"
        counted = f" (with --ledger {book}, if it is about the same table)" if book.exists() else ""
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
