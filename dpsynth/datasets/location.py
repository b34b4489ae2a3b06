"""Where the file of a data set is on this machine, and whether it is the card's.

Files are not part of the package. They are looked for in the folder that the environment variable
``DPSYNTH_DATA_DIR`` names, then in the cache folder, where ``dpsynth data fetch`` puts them; they are used
only if their checksum is the card's.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from dpsynth.datasets.card import Card
from dpsynth.errors import DataError

DATA_DIR = "DPSYNTH_DATA_DIR"


def cache_folder() -> Path:
    """The folder of the operating system for files that can be fetched again."""
    import pooch

    return Path(pooch.os_cache("dpsynth"))


def file_of(card: Card, data_dir: str | Path | None = None) -> Path | None:
    """The file of a card: in ``data_dir`` alone if given, else as above; None where there is none.

    Its checksum has not been looked at.
    """
    if data_dir is not None:
        folders = [Path(data_dir)]
    else:
        named = os.environ.get(DATA_DIR)
        folders = [*([Path(named)] if named else []), cache_folder()]
    return next((path for path in (folder / card.file for folder in folders) if path.is_file()), None)


def require_file(card: Card, data_dir: str | Path | None = None) -> Path:
    """The checked file of a card.

    Raises
    ------
    DataError
        If it is not there, cannot be read, or has another checksum.
    """
    path = file_of(card, data_dir)
    if path is not None:
        check_digest(card, sha256(path), str(path))
        return path
    if data_dir is not None:
        raise DataError(f"data set {card.name!r}: {Path(data_dir) / card.file} is not there")
    raise DataError(
        f"data set {card.name!r} needs the file {card.file}: set the environment variable {DATA_DIR} to the "
        f"folder that holds it, or run dpsynth data fetch {card.name}"
    )


def state_of(card: Card) -> str:
    """Whether a data set can be loaded: ``there``, ``not there``, or ``another version``."""
    if card.source != "file":
        return "there"
    path = file_of(card)
    if path is None:
        return "not there"
    return "there" if sha256(path) == card.sha256 else "another version"


def sha256(path: Path) -> str:
    """The checksum of a file, 64 hexadecimal digits.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as problem:
        raise DataError(f"{path}: cannot be read ({problem.strerror})") from None


def check_digest(card: Card, digest: str, what: str) -> None:
    """Refuse what has another checksum than the card's file.

    Raises
    ------
    DataError
    """
    if digest != card.sha256:
        raise DataError(
            f"data set {card.name!r}: the checksum of {what} is not the card's "
            f"(sha256 {digest[:12]}…, expected {card.sha256[:12]}…): it is another version or damaged"
        )
