"""Folders are written whole or not at all."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from dpsynth.errors import InputError
from dpsynth.files import storage
from dpsynth.files.storage import claimed, require_free_file, require_free_folder


def fail_midway(folder):
    (folder / "half.txt").write_text("half")
    raise RuntimeError("disk full")


def test_a_failure_leaves_the_old_folder_and_no_rest(tmp_path):
    """Catches a half-written result, or an old one lost to a failed new one."""
    target = tmp_path / "run"
    storage.write_folder(target, lambda f: (f / "old.txt").write_text("old") and None)
    with pytest.raises(RuntimeError):
        storage.write_folder(target, fail_midway, replace=True)
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    assert (target / "old.txt").read_text() == "old"


def test_replacing_is_asked_for(tmp_path):
    """Catches an earlier result overwritten without a word."""
    target = tmp_path / "run"
    storage.write_folder(target, lambda f: (f / "a").write_text("1") and None)
    with pytest.raises(InputError, match="not empty"):
        storage.write_folder(target, lambda f: None)
    storage.write_folder(target, lambda f: (f / "b").write_text("2") and None, replace=True)
    assert [p.name for p in target.iterdir()] == ["b"] and len(list(tmp_path.iterdir())) == 1
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is a file"):
        storage.write_folder(tmp_path / "file", lambda f: None, replace=True)


KILLED = """
import os, signal, sys
from pathlib import Path
from dpsynth.files import storage

def kill(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

def fill(folder):
    (folder / "half.txt").write_text("half")
    if worth:
        (folder / "model").mkdir()
        (folder / "model/model.json").write_text("{}")
    if when == "filling":
        kill()

out, when, worth = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "worth"
if when == "renaming":
    os.replace, replaced = (lambda *a: kill() if a[1] == out else replaced(*a)), os.replace
storage.write_folder(out, fill, replace=True)
"""


def killed(out, when, worth):
    words = [sys.executable, "-c", KILLED, str(out), when, "worth" if worth else "nothing"]
    assert subprocess.run(words).returncode == -signal.SIGKILL


def say(text):
    return lambda folder: (folder / "a.txt").write_text(text) and None


@pytest.mark.parametrize("when", ["filling", "renaming"])
def test_what_a_killed_process_left_is_removed(tmp_path, when):
    """Catches half-written tables that pile up in folders that nobody sees."""
    out = tmp_path / "run"
    killed(out, when, worth=False)
    (tmp_path / ".run.2.abcdefgh.tmp").mkdir()  # another's: of run.2
    (tmp_path / ".run.notes.tmp").mkdir()
    assert len(storage.leftovers(out)) == 1
    storage.write_folder(out, say("new"))
    assert sorted(p.name for p in tmp_path.iterdir()) == [".run.2.abcdefgh.tmp", ".run.notes.tmp", "run"]


def test_what_a_killed_process_had_paid_for_is_named(tmp_path):
    """Catches a release that cost a budget and lies unseen in a hidden folder, or is deleted unasked."""
    out = tmp_path / "run"
    killed(out, "renaming", worth=True)
    (rest,) = storage.leftovers(out)
    with pytest.raises(InputError, match=re.escape(str(rest))):
        storage.write_folder(out, say("new"))
    assert (rest / "model/model.json").exists() and not out.exists()
    with pytest.raises(RuntimeError):
        storage.write_folder(out, fail_midway, replace=True)
    assert rest.exists()  # until something is there in its place
    storage.write_folder(out, say("new"), replace=True)
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_an_earlier_result_survives_a_kill_between_two_renames(tmp_path):
    """Catches an earlier result that --force has put aside and that nobody is told of."""
    out = tmp_path / "run"
    storage.write_folder(out, lambda f: (f / "model.json").write_text("old") and None)
    killed(out, "renaming", worth=False)
    assert not out.exists()
    with pytest.raises(InputError, match=r"\.old: rename that folder"):
        storage.write_folder(out, say("new"))
    (old,) = [rest for rest in storage.leftovers(out) if rest.suffix == ".old"]
    assert (old / "old/model.json").read_text() == "old"


def test_an_interrupt_between_two_renames_puts_the_earlier_result_back(tmp_path, monkeypatch):
    """Catches Ctrl-C that makes an earlier result disappear."""
    out = tmp_path / "run"
    storage.write_folder(out, say("old"))
    replace = os.replace

    def interrupted(source, target):
        if target == out and Path(source).name != "old":
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        storage.write_folder(out, say("new"), replace=True)
    assert [p.name for p in tmp_path.iterdir()] == ["run"] and (out / "a.txt").read_text() == "old"


def test_folders_above_are_made_and_not_left_behind(tmp_path):
    """Catches empty folders left by a command that failed."""
    with pytest.raises(RuntimeError):
        storage.write_folder(tmp_path / "a/b/run", fail_midway)
    assert list(tmp_path.iterdir()) == []
    storage.write_folder(tmp_path / "a/b/run", say("new"))
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot be written"):
        storage.write_folder(tmp_path / "file/run", say("new"))


def test_only_an_earlier_result_may_be_replaced(tmp_path: Path) -> None:
    """Would catch --force that deletes somebody's thesis because --out named its folder."""
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="exists and is not empty"):
        require_free_folder(tmp_path, force=False, mark="report.json")
    with pytest.raises(InputError, match=r"holds no report\.json"):
        require_free_folder(tmp_path, force=True, mark="report.json")
    (tmp_path / "report.json").write_text("{}")
    require_free_folder(tmp_path, force=True, mark="report.json")


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
    (tmp_path / "out.ledger").write_text("")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/report.json").write_text("{}")
    with pytest.raises(InputError, match=r"another folder \(with DPSYNTH_LEDGER=.*out\.ledger"):
        require_free_folder(tmp_path / "out", force=False, mark="report.json")


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_no_folder_to_write(tmp_path, there):
    """Results written where a link leads, or a link replaced while its folder keeps the old results."""
    other, link = tmp_path / "other", tmp_path / "run"
    if there:
        other.mkdir()
        (other / "model.json").write_text("{}")
    link.symlink_to(other)
    with pytest.raises(InputError, match=r"run is a symbolic link\. Name the folder that it leads to"):
        require_free_folder(link, force=True, mark="model.json")
    with pytest.raises(InputError, match="symbolic link"):
        storage.write_folder(link, fail_midway, replace=True)
    assert link.is_symlink()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == (["other", "run"] if there else ["run"])
