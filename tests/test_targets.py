"""Where results may be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsynth.errors import InputError
from dpsynth.targets import require_free_file, require_free_folder


def test_new_and_empty_folders_are_free(tmp_path: Path) -> None:
    """Would catch a refusal of a folder that was made beforehand."""
    require_free_folder(tmp_path / "new" / "deep", force=False, mark="report.json")
    require_free_folder(tmp_path, force=False, mark="report.json")


def test_only_an_earlier_result_may_be_replaced(tmp_path: Path) -> None:
    """Would catch --force that deletes somebody's thesis because --out named its folder."""
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="exists and is not empty"):
        require_free_folder(tmp_path, force=False, mark="report.json")
    with pytest.raises(InputError, match=r"holds no report\.json"):
        require_free_folder(tmp_path, force=True, mark="report.json")
    (tmp_path / "report.json").write_text("{}")
    require_free_folder(tmp_path, force=True, mark="report.json")


def test_folders_and_files_are_not_confused(tmp_path: Path) -> None:
    """Would catch an OSError from deep inside where a name is taken by the other kind."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        require_free_folder(tmp_path / "file", force=True, mark="report.json")
    with pytest.raises(InputError, match="is a folder"):
        require_free_file(tmp_path, force=True)


def test_files(tmp_path: Path) -> None:
    """Would catch a file overwritten without being asked."""
    target = tmp_path / "s.csv"
    require_free_file(target, force=False)
    target.write_text("old")
    with pytest.raises(InputError, match="exists"):
        require_free_file(target, force=False)
    require_free_file(target, force=True)
    with pytest.raises(InputError, match=r"the folder .*absent does not exist"):
        require_free_file(tmp_path / "absent" / "s.csv", force=False)
