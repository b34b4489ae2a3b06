"""Files replaced whole."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from modes import mode

from dpsynth.errors import DataError, InputError, of_records
from dpsynth.files import codec, storage
from dpsynth.files import storage as atomic
from dpsynth.files.storage import claimed, read_json, replaced
from dpsynth.studies.estimation import Linear


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


HOLD = """
import sys
from dpsynth.files.storage import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds a folder until its input ends."""
    words = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_second_process_is_refused_by_name(tmp_path: Path) -> None:
    """Would catch two runs that write one folder: the later one's model under the earlier one's ledger."""
    out = tmp_path / "out"
    with holder(out) as process:
        with pytest.raises(InputError, match=f"out is in use by process {process.pid} on "):
            storage.write_folder(out, lambda folder: None)
        with pytest.raises(InputError, match="in use"), claimed(out, force=True, mark="report.json"):
            pass
        with atomic.locked(tmp_path / "other"):
            pass
        process.communicate("")
    storage.write_folder(out, lambda folder: (folder / "a").write_text("1") and None)
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    """Would catch a folder that nobody can write any more because its writer was killed."""
    out = tmp_path / "out"
    with holder(out) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert json.loads((tmp_path / ".out.lock").read_text())["pid"] == process.pid
    storage.write_folder(out, lambda folder: None)
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_a_holder_may_write_what_it_holds_and_another_thread_may_not(tmp_path: Path) -> None:
    """Would catch a run that locks itself out, and two threads that pass for one."""
    out = tmp_path / "out"
    refused: list[str] = []

    def write() -> None:
        try:
            storage.write_folder(out, lambda folder: None)
        except InputError as problem:
            refused.append(str(problem))

    with atomic.locked(out):
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
        assert len(refused) == 1 and str(os.getpid()) in refused[0]
        write()
    assert len(refused) == 1 and list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("missing", ["module", "file system"])
def test_without_flock_the_file_is_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """Would catch systems without flock on which nothing is locked, or nothing can be written."""
    if missing == "module":
        monkeypatch.setattr(atomic, "fcntl", None)
    else:

        def flock(*args: Any) -> None:
            raise OSError(errno.ENOLCK, "no locks available")

        monkeypatch.setattr(atomic.fcntl, "flock", flock)
    out = tmp_path / "out"
    storage.write_folder(out, lambda folder: None)
    assert list(tmp_path.iterdir()) == [out]
    (tmp_path / ".out.lock").write_text("")
    with pytest.raises(InputError, match=r"in use by another process.*remove .*\.out\.lock"):
        storage.write_folder(out, lambda folder: None)


def test_a_lock_removed_by_its_holder_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch two holders: one of the file that is there, one of a file that was removed before it."""
    out, path = tmp_path / "out", tmp_path / ".out.lock"
    opened = atomic._open

    def late(file: Path, folder: Path) -> tuple[int, bool]:
        found = opened(file, folder)
        if not replaced:
            path.unlink()  # as its holder does between our opening and our locking it
            replaced.append(path.write_text('{"pid": 3}'))
        return found

    replaced: list[int] = []
    monkeypatch.setattr(atomic, "_open", late)
    with atomic.locked(out):
        assert json.loads(path.read_text())["pid"] == os.getpid()


def linked(link: Path, victim: Path) -> None:
    link.symlink_to(victim)


def hard_linked(link: Path, victim: Path) -> None:
    link.hardlink_to(victim)


def copied(link: Path, victim: Path) -> None:
    link.write_bytes(victim.read_bytes())


def piped(link: Path, victim: Path) -> None:
    os.mkfifo(link)


@pytest.mark.skipif(os.name == "nt", reason="Windows lets few users make links")
@pytest.mark.parametrize("text", ["a ledger " * 20, ""], ids=["full", "empty"])
@pytest.mark.parametrize("plant", [linked, hard_linked, copied, piped])
def test_nothing_is_written_over_what_somebody_planted_as_a_lock(
    tmp_path: Path, plant: Callable[[Path, Path], None], text: str
) -> None:
    """Catches a file of ours that is emptied because another user put a link to it where a lock will be."""
    victim, shared = tmp_path / "ledger.json", tmp_path / "shared"
    victim.write_text(text)
    shared.mkdir()
    planted = shared / ".run.lock"
    plant(planted, victim)
    if plant is copied and not text:  # an empty plain file is a lock whose holder was killed
        with atomic.locked(shared / "run"):
            pass
        return
    with (
        pytest.raises(InputError, match=r"\.run\.lock.*(symbolic link|no lock of dpsynth)") as said,
        atomic.locked(shared / "run"),
    ):
        pass
    assert victim.read_text() == text and os.path.lexists(planted)
    assert len(str(said.value).splitlines()) == 1


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
def test_a_lock_is_its_owners(tmp_path: Path) -> None:
    """Catches a lock that others can write into, and so the sentence about who holds it."""
    before = os.umask(0)
    try:
        with atomic.locked(tmp_path / "out"):
            assert mode(tmp_path / ".out.lock") == 0o600
    finally:
        os.umask(before)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
def test_a_folder_that_exists_is_closed_as_a_new_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches confidential files in a folder that others can list, or put links into."""
    for name, shared in (("closed", False), ("open", True)):
        folder = tmp_path / name
        folder.mkdir()
        folder.chmod(0o777)
        atomic.make_folder(folder, shared=shared)
        assert mode(folder) == (0o777 if shared else 0o700)
    (tmp_path / "closed").chmod(0o750)

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "chmod", refuse)
        atomic.make_folder(tmp_path / "closed")  # a file system without modes
        patch.setattr(os, "geteuid", lambda: (tmp_path / "closed").stat().st_uid + 1)
        with pytest.raises(InputError, match=r"another user's folder.*Name a folder of your own"):
            atomic.make_folder(tmp_path / "closed")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"epsilon": 3, "epsilon": 1}', "the key 'epsilon' is given twice"),
        ('{"epsilon": NaN}', "NaN"),
        ('{"epsilon": -Infinity}', "-Infinity"),
        ("[" * 100_000, "nested too deeply"),
        ('{"epsilon": ' + "9" * 5000 + "}", "4300 digits"),
        ('{"epsilon": "\\ud800', "not JSON"),
        ("\ufeff{}", "BOM"),
    ],
    ids=lambda text: text[:16],
)
def test_a_hostile_record_is_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    """The second of two costs taken for the first, a number that is none, or a crash."""
    path = tmp_path / "ledger.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=f"^cannot read the ledger .*{said}"):
        read_json(path, "the ledger")


def test_a_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    """A link that somebody put in place of a result, which makes us overwrite a file of theirs."""
    other, link = tmp_path / "other.txt", tmp_path / "link.txt"
    other.write_text("theirs")
    link.symlink_to(other)
    atomic.write_text(link, "ours")
    assert (other.read_text(), link.read_text(), link.is_symlink()) == ("theirs", "ours", False)


def test_what_has_its_final_name_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a ledger or model that a loss of power empties, or that has its old contents again.

    A file is written through before it is renamed, and its folder after that, which holds the name.
    """
    done: list[Path] = []
    sync, replace = os.fsync, os.replace

    def fsync(handle: int) -> None:
        done.append(Path(os.readlink(f"/proc/self/fd/{handle}")))
        sync(handle)

    def renamed(old: Path, new: Path) -> None:
        parts = [old, *old.rglob("*")] if old.is_dir() else [old]
        assert set(parts) <= set(done)
        done.clear()
        replace(old, new)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", renamed)
    atomic.write_text(tmp_path / "ledger.json", "{}")
    assert done == [tmp_path]
    storage.write_folder(tmp_path / "model", lambda folder: codec.write(folder, "model", Linear(0.5)))
    assert done == [tmp_path]


def test_an_error_can_be_printed_and_is_short() -> None:
    """Halves of characters, which no terminal prints, or a message of 200 MB that quotes a file."""
    assert str(DataError("name '\ud800'")).encode() == b"name '\\ud800'"
    message = str(of_records("x" * 10**6))
    assert len(message) < 5_000
    assert message.endswith("(confidential)")
