"""Files that are either wholly there or not at all.

JSON text that any reader takes: what JSON has no number for (an infinite epsilon) is null.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dpsynth.errors import DataError


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


def write_text(path: str | os.PathLike[str], text: str, *, private: bool = False) -> None:
    """Write a UTF-8 text file, wholly or not at all; a private one can be read by its owner alone."""
    with replaced(path) as temporary:
        temporary.touch(0o600 if private else 0o666)
        temporary.write_text(text, encoding="utf-8")


def read_json(path: str | os.PathLike[str], what: str = "") -> Any:
    """Read a UTF-8 JSON file; ``what`` stands before its path in messages.

    Raises
    ------
    DataError
        If it cannot be read or is not JSON.

    Examples
    --------
    >>> read_json("absent.json", "the ledger")
    Traceback (most recent call last):
    dpsynth.errors.DataError: cannot read the ledger absent.json: No such file or directory
    """
    name = f"{what} {path}".strip()
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as problem:
        raise DataError(f"cannot read {name}: {problem.strerror}") from None
    except (ValueError, RecursionError) as problem:
        raise DataError(f"cannot read {name}: it is not JSON ({problem})") from None


@contextlib.contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path beside ``path``; put it in ``path``'s place if the block ends well.

    If the block raises, the temporary file is removed and a file that was at ``path`` stays as it was. The
    parent folder must exist.
    """
    target = Path(path)
    # in the same folder, since a rename is atomic only within one file system; the suffix is kept because
    # some writers choose their format by it
    temporary = target.with_name(f".{target.stem}.{secrets.token_hex(6)}.tmp{target.suffix}")
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
