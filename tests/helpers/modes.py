"""Who may read a file: what other users of the computer can open."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def usual_umask() -> Iterator[None]:
    """The umask of most computers, with which everybody can read a file that nobody thought about."""
    if os.name == "nt":
        pytest.skip("Windows has no modes")
    before = os.umask(0o022)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> set[str]:
    """Files and folders below a folder that others can read or list, by their names in it."""
    return {
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if stat.S_IMODE(path.stat().st_mode) & 0o077
    }


def mode(path: str | Path) -> int:
    """The mode of a file or folder."""
    return stat.S_IMODE(Path(path).stat().st_mode)
