"""Where results may be written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from dpsynth.errors import InputError
from dpsynth.files.storage import claimed, require_free_file, require_free_folder


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


def test_a_claim_is_refused_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch a budget spent on what cannot be written in the end."""
    (tmp_path / "file").write_text("")
    (tmp_path / ".run.abcdefgh.tmp").mkdir()
    (tmp_path / ".run.abcdefgh.tmp/model.json").write_text("{}")
    (tmp_path / "volume").mkdir()
    monkeypatch.setattr("os.path.ismount", lambda path: Path(path).name == "volume")
    for name, said in (
        ("file/run", "cannot be written"),
        ("n" * 300, "cannot be written"),
        ("run", "was killed while it wrote"),
        ("volume", "is a mounted volume"),
    ):
        with pytest.raises(InputError, match=said), claimed(tmp_path / name, force=False, mark="report.json"):
            raise AssertionError("something was read")
    assert sorted(p.name for p in tmp_path.iterdir()) == [".run.abcdefgh.tmp", "file", "volume"]


def test_a_claim_without_permission() -> None:
    """Would catch a refusal by the system when all is computed."""
    folder = Path(tempfile.mkdtemp())  # below a folder that everybody may enter, unlike tmp_path
    folder.chmod(0o555)
    superuser = os.geteuid() == 0
    if superuser:  # whom permissions do not bind
        os.seteuid(65534)
    try:
        denied = pytest.raises(InputError, match=r"cannot be written.*Permission denied")
        with denied, claimed(folder / "run", force=False, mark="report.json"):
            raise AssertionError("something was read")
    finally:
        if superuser:
            os.seteuid(0)
        folder.rmdir()


def test_a_claim_sees_what_its_last_holder_wrote(tmp_path: Path) -> None:
    """Would catch a result replaced by whoever looked before it was there and waited for nothing."""
    out = tmp_path / "deep/run"
    with claimed(out, force=False, mark="report.json"):
        out.mkdir()
        (out / "report.json").write_text("{}")
    with pytest.raises(InputError, match="not empty"), claimed(out, force=False, mark="report.json"):
        pass
    with claimed(out, force=True, mark="report.json"):
        pass
    assert [p.name for p in out.parent.iterdir()] == ["run"]


def test_a_refused_folder_tells_how_its_release_goes_on_counting(tmp_path: Path) -> None:
    """Would catch advice that starts a second release of one table at the full budget again."""
    (tmp_path / "ledger.json").write_text("{}")
    with pytest.raises(InputError, match=r"another folder \(with --ledger .*ledger\.json"):
        require_free_folder(tmp_path, force=False, mark="report.json")
