"""Fetching files: from a server of our own that can hang up, lie, compress and resume."""

from __future__ import annotations

import hashlib
import io
import os
import socket
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dpsynth.datasets import fetch, load
from dpsynth.datasets import files as data_files
from dpsynth.errors import DataError, RunError

ROWS = "a,b,id\n" + "".join(f"{i % 10},{'no' if i % 3 else 'yes'},{i}\n" for i in range(40_000))
FILE = ROWS.encode()
CARD = """
name: tiny
title: Tiny
description: Two columns.
origin: {citation: Nobody, %s}
licence: CC0
file: tiny.csv
sha256: "%s"
bounds: made up
one_row: each row somebody else
leaking: {id: a number}
schema:
  unit: one made-up person
  n_public: 40000
  outcome: b
  columns:
  - {name: a, kind: integer, lower: 0, upper: 9}
  - {name: b, kind: binary, categories: [no, yes]}
"""


class Server(ThreadingHTTPServer):
    """Serves ``content`` at every path; ``cut`` bytes into an answer it hangs up."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.cut, self.status, self.ranges = FILE, None, 200, True
        self.asked: list[str | None] = []

    def handle_error(self, request, client_address) -> None:
        pass

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/tiny"


class Handler(BaseHTTPRequestHandler):
    """One answer."""

    server: Server

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.asked.append(wanted)
        body, status = self.server.content, self.server.status
        if wanted and self.server.ranges and status == 200:
            begin = int(wanted.removeprefix("bytes=").removesuffix("-"))
            body, status = body[begin:], 206 if begin < len(body) else 416
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.server.cut])

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and no folder of the user's."""
    folder = tmp_path / "cache" / "dpsynth"
    monkeypatch.setattr(data_files, "cache_folder", lambda: folder)
    monkeypatch.delenv("DPSYNTH_DATA_DIR", raising=False)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return folder


def write_card(folder: Path, url: str, content: bytes = FILE, more: str = "", **changed: str) -> str:
    text = CARD % (f"download: '{url}'{more}", hashlib.sha256(content).hexdigest())
    for old, new in changed.items():
        text = text.replace(f"{old}:", new)
    path = folder / "tiny.yaml"
    path.write_text(text)
    return str(path)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_fetch_and_load(server: Server, cache: Path, tmp_path: Path) -> None:
    """A file that is fetched and then not found, fetched twice, or told of only afterwards."""
    card = write_card(tmp_path, server.url)
    with pytest.raises(DataError, match=r"needs the file tiny\.csv: set .* or run dpsynth data tiny --fetch"):
        load(card)
    said: list[str] = []
    path = fetch(card, say=said.append)
    assert path == cache / "tiny.csv" and path.read_bytes() == FILE and files(cache) == ["tiny.csv"]
    assert said == [f"fetching {server.url}"]
    assert len(load(card).frame) == 40_000
    assert fetch(card) == path and len(server.asked) == 1


def test_the_users_folder_is_looked_at_first(
    server: Server, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is downloaded although the user has it, or a user's file that is replaced."""
    card = write_card(tmp_path, server.url)
    monkeypatch.setenv("DPSYNTH_DATA_DIR", str(tmp_path))
    (tmp_path / "tiny.csv").write_bytes(FILE)
    assert fetch(card) == tmp_path / "tiny.csv"
    assert fetch(card, tmp_path / "new") == tmp_path / "new" / "tiny.csv"  # copied
    assert server.asked == []
    (tmp_path / "tiny.csv").write_bytes(b"mine")
    with pytest.raises(DataError, match=r"tiny\.csv is another version or damaged .* move it away"):
        fetch(card)
    with pytest.raises(DataError, match=r"checksum of .*tiny\.csv is not the card's"):
        load(card)
    assert (tmp_path / "tiny.csv").read_bytes() == b"mine"


def test_a_file_of_that_name_in_the_chosen_folder_stays(server: Server, cache: Path, tmp_path: Path) -> None:
    """A file of somebody's that is overwritten without a word."""
    card = write_card(tmp_path, server.url)
    (tmp_path / "tiny.csv").write_bytes(b"mine")
    with pytest.raises(DataError, match="move it away"):
        fetch(card, tmp_path)
    assert (tmp_path / "tiny.csv").read_bytes() == b"mine" and server.asked == []


def test_an_interrupted_download_goes_on(server: Server, cache: Path, tmp_path: Path) -> None:
    """A half file under the name of a whole one, or a download that begins from nothing each time."""
    card = write_card(tmp_path, server.url)
    server.cut = 200_000
    with pytest.raises(RunError, match=r"cannot be read \(ChunkedEncodingError\); fetch again, or download"):
        fetch(card)
    assert files(cache) == [".tiny.csv.part"]
    with pytest.raises(DataError, match="needs the file"):
        load(card)
    server.cut = None
    assert fetch(card).read_bytes() == FILE
    begun = int(server.asked[1].removeprefix("bytes=").removesuffix("-"))
    assert server.asked[0] is None and 100_000 < begun <= 200_000
    assert files(cache) == ["tiny.csv"]


def test_control_c_leaves_a_part_to_go_on_from(
    server: Server, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C that leaves a whole-looking file, a lock or nothing at all."""
    card = write_card(tmp_path, server.url)
    import requests

    whole = requests.Response.iter_content

    def interrupted(self, size):
        yield next(whole(self, size))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(requests.Response, "iter_content", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fetch(card)
    assert files(cache) == [".tiny.csv.part"]
    assert fetch(card).read_bytes() == FILE and server.asked[1] is not None


@pytest.mark.parametrize("ranges", [True, False])
def test_a_part_of_another_file_is_given_up(
    server: Server, cache: Path, tmp_path: Path, ranges: bool
) -> None:
    """A part of a replaced file that spoils every later attempt, with servers that resume or do not."""
    server.ranges = ranges
    cache.mkdir(parents=True)
    for part in (b"x" * 1000, b"x" * (len(FILE) + 5)):
        (cache / ".tiny.csv.part").write_bytes(part)
        assert fetch(write_card(tmp_path, server.url)).read_bytes() == FILE
        assert files(cache) == ["tiny.csv"]
        (cache / "tiny.csv").unlink()


@pytest.mark.skipif(os.name == "nt", reason="Windows lets few users make links")
def test_nothing_is_written_through_a_link_in_the_cache(server: Server, cache: Path, tmp_path: Path) -> None:
    """Catches a file of ours that grows because another user of a shared cache put a link to it there."""
    cache.mkdir(parents=True)
    victim = tmp_path / "ledger.json"
    victim.write_bytes(b"x" * 1000)
    (cache / ".tiny.csv.part").symlink_to(victim)
    with pytest.raises(DataError, match="symbolic link"):
        fetch(write_card(tmp_path, server.url))
    assert victim.read_bytes() == b"x" * 1000


def test_a_damaged_file_in_the_cache_is_fetched_again(server: Server, cache: Path, tmp_path: Path) -> None:
    """A truncated file in the cache that has to be found and removed by hand."""
    card = write_card(tmp_path, server.url)
    fetch(card).write_bytes(FILE[:1000])
    with pytest.raises(DataError, match="checksum of"):
        load(card)
    assert fetch(card).read_bytes() == FILE and len(server.asked) == 2


def test_another_file_is_not_kept(server: Server, cache: Path, tmp_path: Path) -> None:
    """What is not the card's file under its name, or a message without what was expected and found."""
    card = write_card(tmp_path, server.url)
    server.content = FILE.replace(b"yes", b"yea")
    found, expected = (hashlib.sha256(content).hexdigest() for content in (server.content, FILE))
    words = (
        rf"gave another tiny\.csv than the card's \(sha256 {found}, expected {expected}\); nothing was kept"
    )
    with pytest.raises(RunError, match=words):
        fetch(card)
    assert files(cache) == []


def test_offline(cache: Path, tmp_path: Path) -> None:
    """Without a network: a traceback, or no word on where to get the file and where to put it."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/tiny"
        with pytest.raises(RunError) as caught:
            fetch(write_card(tmp_path, url))
    told = str(caught.value)
    assert "\n" not in told and url in told and "(ConnectionError)" in told
    assert f"put it as tiny.csv into {cache}, or into the folder that DPSYNTH_DATA_DIR names" in told
    assert files(cache) == []


def packed(content: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/tiny.csv", content)
    return made.getvalue()


def test_a_member_of_an_archive(server: Server, cache: Path, tmp_path: Path) -> None:
    """An archive left beside its file, or under its name."""
    server.content = packed(FILE)
    digest = hashlib.sha256(server.content).hexdigest()
    card = write_card(tmp_path, server.url, more=f", member: folder/tiny.csv, archive_sha256: '{digest}'")
    assert fetch(card).read_bytes() == FILE
    assert files(cache) == ["tiny.csv"]


@pytest.mark.parametrize(
    ("content", "member", "words"),
    [
        (packed(FILE[:-5]), "folder/tiny.csv", r"gave another tiny\.csv"),
        (packed(FILE), "tiny.csv", r"the archive does not give tiny\.csv"),
        (b"no archive", "folder/tiny.csv", "the archive does not give"),
    ],
    ids=["member", "name", "no_archive"],
)
def test_a_wrong_archive(
    server: Server, cache: Path, tmp_path: Path, content: bytes, member: str, words: str
) -> None:
    """A member of another checksum kept, because the archive's own was right."""
    server.content = content
    digest = hashlib.sha256(content).hexdigest()
    more = f", member: {member}, archive_sha256: '{digest}'"
    with pytest.raises(RunError, match=words):
        fetch(write_card(tmp_path, server.url, more=more))
    assert files(cache) == []


def test_a_folder_that_cannot_be_written(
    server: Server, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read-only cache that ends in a traceback, or an answer that does not say what to do."""
    card = write_card(tmp_path, server.url)
    cache.parent.write_text("a file where a folder should be")
    with pytest.raises(DataError, match=r"cannot be written to \(.*\)\. --dir names another folder"):
        fetch(card)
    assert fetch(card, tmp_path / "other").read_bytes() == FILE

    def refuse(*arguments: object, **named: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("dpsynth.files.storage.os.open", refuse)  # chmod does not stop root
    with pytest.raises(
        DataError, match=r"cannot be written: .*Permission denied\. --dir names another folder"
    ):
        fetch(card, tmp_path / "read_only")


def test_credentials(cache: Path, tmp_path: Path) -> None:
    """A download without the licence that somebody has to sign, or no word on where to sign it."""
    card = write_card(
        tmp_path, "http://127.0.0.1:9/", licence="credentials: true\nlicence_page: https://sign.it\nlicence:"
    )
    with pytest.raises(
        DataError, match=r"Tiny is given only to persons .*\(CC0\): apply .* at https://sign\.it"
    ):
        fetch(card)
    with pytest.raises(DataError, match=r"MIMIC-III .* https://physionet\.org/content/mimiciii"):
        fetch("mimic3")
