"""The files of data sets: found, checked, downloaded, and made into tables.

A file that comes with the package lies beside its card. Others are looked for in the folder that the
environment variable ``DPSYNTH_DATA_DIR`` names, then in the cache folder, where ``dpsynth data NAME --fetch``
puts them. Their checksum must be the card's.

The card says what is done to the file's records before they are a table. It may name a preparation
(:mod:`dpsynth.datasets.preparations`), renames, recodes, and constants in place of missing values. These
steps read records before any ledger does. Their public rules derive a patient's row from that patient's
records alone. Unless the card says otherwise, a guarantee about one row is one about one patient.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import zipfile
from collections.abc import Callable
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.datasets.data_cards import Card, card, cards_folder, credentials_needed
from dpsynth.datasets.preparations import PREPARATIONS
from dpsynth.datasets.table import Table
from dpsynth.errors import DataError, InputError, RunError
from dpsynth.files.storage import locked, replaced, sha256, unlinked
from dpsynth.table.csv import text_frame
from dpsynth.table.csv_format import CsvFormat
from dpsynth.table.files import reading

DATA_DIR = "DPSYNTH_DATA_DIR"


def cache_folder() -> Path:
    """The folder of the operating system for files that can be fetched again."""
    import pooch

    return Path(pooch.os_cache("dpsynth"))


def file_of(card: Card, data_dir: str | Path | None = None) -> Path | None:
    """Find a card's file, in ``data_dir`` alone if given, else as above. None if there is none.

    Its checksum has not been looked at.
    """
    if data_dir is not None:
        folders = [Path(data_dir)]
    else:
        named = os.environ.get(DATA_DIR)
        folders = [*([Path(named)] if named else []), cache_folder()]
    return next((path for path in (folder / card.file for folder in folders) if path.is_file()), None)


def require_file(card: Card, data_dir: str | Path | None = None) -> Path:
    """The checked file of a card."""
    path = file_of(card, data_dir)
    if path is not None:
        check_digest(card, sha256(path), str(path))
        return path
    if data_dir is not None:
        raise DataError(f"data set {card.name!r}: {Path(data_dir) / card.file} is not there")
    raise DataError(
        f"data set {card.name!r} needs the file {card.file}: set the environment variable {DATA_DIR} to the "
        f"folder that holds it, or run dpsynth data {card.name} --fetch"
    )


def state_of(card: Card) -> str:
    """Whether a data set can be loaded: ``there``, ``not there``, or ``another version``."""
    if card.source != "file":
        return "there"
    path = file_of(card)
    if path is None:
        return "not there"
    return "there" if sha256(path) == card.sha256 else "another version"


def check_digest(card: Card, digest: str, what: str) -> None:
    """Refuse what has another checksum than the card's file."""
    if digest != card.sha256:
        raise DataError(
            f"data set {card.name!r}: the checksum of {what} is not the card's "
            f"(sha256 {digest[:12]}…, expected {card.sha256[:12]}…): it is another version or damaged"
        )


def load(name: str, *, data_dir: str | Path | None = None) -> Table:
    """Load a data set: one of :func:`names`, or the path of a card of one's own (``.yaml``).

    ``data_dir`` is the folder of the data files, by default the one that ``DPSYNTH_DATA_DIR`` names, then the
    cache folder of ``dpsynth data NAME --fetch``. Nothing is downloaded. The frame has the schema's columns
    and canonical dtypes. Values outside the public bounds stay as they were recorded. They are clipped and
    rounded when records are encoded. Raises DataError if there is no such data set or file, the checksum
    differs, or the file does not fit the schema.

    Examples
    --------
    >>> table = load("breast_cancer")
    >>> table.frame.shape, table.outcome, table.schema.n_public
    ((569, 31), 'diagnosis', 569)
    """
    found = card(name)
    if found.source in _PACKAGES:
        return table_of(found, _PACKAGES[found.source](found))
    if found.source == "dpsynth":
        with resources.as_file(cards_folder() / found.file) as shipped:
            check_digest(found, sha256(shipped), str(shipped))
            return _read(found, shipped)
    return _read(found, require_file(found, data_dir))


def _read(found: Card, path: Path) -> Table:
    """Read a CSV file."""
    with reading(path):
        # under the file's names, so that a declared word such as ``NA`` is read as one
        columns = [found.table[name].model_copy(update={"name": s}) for name, s in found.sources.items()]
        cells, _ = text_frame(path, columns, CsvFormat())
    return table_of(found, cells, path)


def table_of(found: Card, raw: pd.DataFrame, path: Path | None = None) -> Table:
    """Make a card's table of its file's cells: text, values of a package's data, or None if absent.

    ``path`` is the file, so that an error can name its line.
    """
    what = str(path or found.file)
    made = raw
    if found.preparation is not None:
        try:
            made = PREPARATIONS[found.preparation](raw)
        except DataError as problem:
            raise DataError(f"{what}: {problem}") from None
    absent = [source for source in found.sources.values() if source not in made.columns]
    if absent:
        raise DataError(f"{what}: the column {absent[0]!r} that data set {found.name!r} needs is absent")
    chosen = pd.DataFrame({name: made[source] for name, source in found.sources.items()})
    for name, words in found.recode.items():
        chosen[name] = np.array([words.get(cell, cell) for cell in chosen[name]], dtype=object)
    for name in found.required:
        chosen = chosen[chosen[name].notna()]
    for name, value in found.fill.items():
        chosen[name] = chosen[name].where(chosen[name].notna(), value)
    whole = len(chosen) == len(raw)  # else rows of the frame are not lines of the file
    checked = found.table.check(chosen.reset_index(drop=True), path=path if whole else None)
    return Table(checked, found.table, found.name, found)


def _from_scikit_learn(found: Card) -> pd.DataFrame:
    from sklearn import datasets as bundled

    reader = getattr(bundled, f"load_{found.file}", None)
    if reader is None:
        raise DataError(f"data set {found.name!r}: scikit-learn has no load_{found.file}")
    bunch = reader()
    values = np.asarray(bunch.data, dtype="<f8"), np.asarray(bunch.target, dtype="<i8")
    digest = hashlib.sha256(values[0].tobytes() + values[1].tobytes()).hexdigest()
    check_digest(found, digest, f"scikit-learn's load_{found.file}")
    frame = pd.DataFrame(bunch.data, columns=[str(name) for name in bunch.feature_names])
    frame["target"] = np.asarray(bunch.target_names, dtype=object)[bunch.target]
    return frame


def _from_statsmodels(found: Card) -> pd.DataFrame:
    try:
        bundled = import_module(f"statsmodels.datasets.{found.file}")
    except ModuleNotFoundError:
        raise DataError(f"data set {found.name!r}: statsmodels has no datasets.{found.file}") from None
    frame: pd.DataFrame = bundled.load_pandas().data
    digest = hashlib.sha256(frame.to_numpy(dtype="<f8").tobytes()).hexdigest()
    check_digest(found, digest, f"statsmodels' datasets.{found.file}")
    return frame.astype(np.float64)


_PACKAGES = {"scikit-learn": _from_scikit_learn, "statsmodels": _from_statsmodels}


# ------------------------------------------------------------------------------------------------
# Download the files of data sets, with pooch, from their cards' addresses: complete and checked, or absent.
#
# An incomplete file is kept under a hidden name, and the next attempt continues it. The file gets its own
# name only when its checksum is the card's.


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
