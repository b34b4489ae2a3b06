"""Files replaced whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsynth.files.atomic import replaced


def test_replaces(tmp_path: Path) -> None:
    """The new text must be there, and no temporary file beside it."""
    path = tmp_path / "a.txt"
    path.write_text("old")
    with replaced(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("trouble", [ValueError("x"), KeyboardInterrupt()])
def test_keeps_the_old_file(tmp_path: Path, trouble: BaseException) -> None:
    """A failed or interrupted write must not touch what was there."""
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(type(trouble)), replaced(path) as temporary:
        temporary.write_text("half")
        raise trouble
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
