"""Where results may be written: never over something that is not an earlier result of the same kind."""

from __future__ import annotations

from pathlib import Path

from dpsynth.errors import InputError


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

    Examples
    --------
    >>> require_free_folder(Path("/"), force=True, mark="report.json")
    Traceback (most recent call last):
    dpsynth.errors.InputError: / is not the name of a folder to write
    """
    if not folder.name:
        raise InputError(f"{folder} is not the name of a folder to write")
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{folder} is a file; name a folder")
    if not any(folder.iterdir()):
        return
    if not force:
        raise InputError(
            f"{folder} exists and is not empty; name another folder, or add --force to replace it"
        )
    if not (folder / mark).exists():
        raise InputError(
            f"{folder} holds no {mark}: it is no earlier result, and --force does not replace it"
        )


def require_free_file(path: Path, *, force: bool) -> None:
    """Refuse a file that exists, unless it may be replaced, and one whose folder does not exist.

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
