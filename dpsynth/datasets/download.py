"""Download the files of data sets, with pooch, from their cards' addresses: complete and checked, or absent.

An incomplete file is kept under a hidden name, and the next attempt continues it. The file gets its own
name only when its checksum is the card's.
"""

from __future__ import annotations

import logging
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpsynth.datasets.registry import DATA_DIR, cache_folder, card, credentials_needed, file_of
from dpsynth.datasets.table import Card
from dpsynth.errors import DataError, InputError, RunError
from dpsynth.files.storage import locked, replaced, sha256, unlinked

_SECONDS = 30.0  # without a byte, after which an address counts as out of reach
_PIECE = 1 << 16


def fetch(
    name: str, folder: str | Path | None = None, *, say: Callable[[str], None] = lambda line: None
) -> Path | None:
    """Return the path of a data set's file, downloaded if needed. None if it comes with a package.

    ``name`` is a data set, or the path of a card of one's own. A file found in ``DPSYNTH_DATA_DIR`` or the
    cache folder is copied to ``folder``. Without one, a file that is found stays where it is, and another
    goes into the cache folder. ``say`` receives a line before something is downloaded.

    Raises
    ------
    DataError
        If there is no such data set or no address of its file, or it needs credentials. If a file of another
        checksum is in the way, or the folder is in use or cannot be written to.
    RunError
        If the address cannot be reached, or what it gives is not the card's file.
    """
    found = card(name)
    if found.source != "file":
        return None
    there = file_of(found, folder)
    target = (Path(folder) if folder is not None else cache_folder()) / found.file
    if there is not None:
        digest = sha256(there)
        if digest == found.sha256:
            return there
        if folder is not None or there != target:  # a file of somebody's, who may want it
            raise DataError(
                f"data set {found.name!r}: {there} is another version or damaged (sha256 {digest}, expected "
                f"{found.sha256}): move it away and fetch again"
            )
    elsewhere = file_of(found) if folder is not None else None
    if elsewhere is not None and sha256(elsewhere) == found.sha256:
        _write(target, lambda: _copy(elsewhere, target, shared=not found.credentials))
        return target
    if found.credentials:
        raise DataError(credentials_needed(found.title, found.licence, found.licence_page))
    address = found.origin.address
    if address is None:
        raise DataError(
            f"data set {found.name!r}: no stable address of {found.file} is known. Get it from "
            f"{found.origin.url or 'its publisher'} and put it into {target.parent}"
        )
    say(f"fetching {address}")
    _write(target, lambda: _download(found, address, target))
    return target


def _write(target: Path, work: Callable[[], None]) -> None:
    """Call what writes ``target``, alone, in a folder that is made."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(target):
            work()
    except InputError as problem:
        raise DataError(f"{problem}. --dir names another folder") from None
    except OSError as problem:
        raise DataError(
            f"{target.parent} cannot be written to ({problem.strerror}). --dir names another folder"
        ) from None


def _copy(source: Path, target: Path, *, shared: bool) -> None:
    with replaced(target, shared=shared) as temporary:
        shutil.copyfile(source, temporary)


def _download(found: Card, address: str, target: Path) -> None:
    """Put the card's file in ``target``'s place."""
    if found.origin.member is None:
        _retrieve(found, address, target, found.sha256)
        return
    archive = target.with_name(f".{target.name}.zip")
    try:
        _retrieve(found, address, archive, str(found.origin.archive_sha256))
        with replaced(target, shared=True) as temporary:
            _unpack(archive, found.origin.member, temporary)
            digest = sha256(temporary)
            if digest != found.sha256:
                raise RunError(_another(target.name, address, digest, found.sha256))
    finally:
        archive.unlink(missing_ok=True)


def _retrieve(found: Card, address: str, target: Path, expected: str) -> None:
    """Download a file whose checksum is known, or continue its download."""
    import pooch
    from requests import RequestException

    pooch.get_logger().setLevel(logging.WARNING)  # `say` has told it
    resumed = _Resumed(target.with_name(f".{target.name}.part"))
    while True:
        try:
            pooch.retrieve(
                address, f"sha256:{expected}", fname=target.name, path=target.parent, downloader=resumed
            )
            return
        except RequestException as problem:
            raise RunError(_unreached(found, address, target, problem)) from None
        except ValueError:  # pooch: another checksum; it has removed what came
            if not resumed.went_on:
                raise RunError(_another(target.name, address, resumed.digest, expected)) from None


class _Resumed:
    """Downloads for pooch that continue an incomplete file, if the server can do that."""

    def __init__(self, part: Path) -> None:
        self.part = part
        self.went_on = False  # whether the last download began with an earlier one's part
        self.digest = ""  # of what the last one gave

    def __call__(self, url: str, output_file: str | Path, pooch: Any, check_only: bool = False) -> None:
        import requests

        begun = self.part.stat().st_size if self.part.exists() else 0
        # the bytes as they are: those of a compressed answer could not be counted
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={begun}-"} if begun else {})
        with requests.get(url, headers=headers, stream=True, timeout=_SECONDS) as answer:
            if begun and answer.status_code == 416:  # nothing comes after this part: it is none of the file
                self.part.unlink()
                return self(url, output_file, pooch)
            answer.raise_for_status()
            self.went_on = bool(begun) and answer.status_code == 206
            with open(self.part, "ab" if self.went_on else "wb", opener=unlinked) as file:
                for piece in answer.iter_content(_PIECE):
                    file.write(piece)
        self.digest = sha256(self.part)
        os.replace(self.part, output_file)


def _unpack(archive: Path, member: str, path: Path) -> None:
    try:
        with zipfile.ZipFile(archive) as opened, opened.open(member) as source, open(path, "wb") as file:
            shutil.copyfileobj(source, file)
    except (KeyError, zipfile.BadZipFile) as problem:
        raise RunError(f"the archive does not give {member}: {problem}") from None


def _another(file: str, address: str, digest: str, expected: str) -> str:
    return (
        f"{address} gave another {file.removeprefix('.')} than the card's (sha256 {digest}, expected "
        f"{expected}); nothing was kept: it was damaged on the way or has been replaced there"
    )


def _unreached(found: Card, address: str, target: Path, problem: Exception) -> str:
    answer = getattr(problem, "response", None)
    reason = f"it answers {answer.status_code}" if answer is not None else type(problem).__name__
    member = "" if found.origin.member is None else f", unpack {found.origin.member}"
    return (
        f"data set {found.name!r}: {address} cannot be read ({reason}); fetch again, or download it "
        f"elsewhere{member} and put it as {found.file} into {target.parent}, or into the folder that "
        f"{DATA_DIR} names (sha256 {found.sha256})"
    )
