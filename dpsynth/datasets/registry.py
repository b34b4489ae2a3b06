"""Data sets by name: the card, the checked file, the table.

Files are not part of the package. They are looked for in the folder that the environment variable
``DPSYNTH_DATA_DIR`` names, then in the cache folder, where ``dpsynth data NAME --fetch`` puts them. Their
checksum must be the card's.

The card says what is done to the file's records before they are a table. It may name a preparation
(:mod:`dpsynth.datasets.table`), renames, recodes, and constants in place of missing values. These
steps read records before any ledger does. Their public rules derive a patient's row from that patient's
records alone. Unless the card says otherwise, a guarantee about one row is one about one patient.
"""

from __future__ import annotations

import hashlib
import os
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd

from dpsynth.datasets.table import PREPARATIONS, Card, Table, cards_folder
from dpsynth.errors import DataError
from dpsynth.files.storage import sha256
from dpsynth.files.text import read_text, stems
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


#: data that may not be fetched by a program, with what must be signed and where
CREDENTIALED = {
    "mimic3": (
        "MIMIC-III",
        "PhysioNet Credentialed Health Data License 1.5.0",
        "https://physionet.org/content/mimiciii/1.4/",
    )
}


def names() -> tuple[str, ...]:
    """Return the names of the data sets that have a card, in alphabetical order."""
    return stems(cards_folder())


def card(name: str) -> Card:
    """Return the card of a data set: one of :func:`names`, or the path of a card of one's own (``.yaml``).

    Raises DataError if there is none, it needs credentials and has no card, or it is not a valid card.

    Examples
    --------
    >>> card("flchain").table.outcome
    'death'
    """
    if name.endswith(".yaml"):
        return Card.from_yaml(read_text(name, error=DataError), origin=name)
    if name in CREDENTIALED:
        what, licence, page = CREDENTIALED[name]
        raise DataError(credentials_needed(what, licence, page))
    if name not in names():
        raise DataError(f"there is no data set {name!r} (data sets: {', '.join(names())})")
    entry = cards_folder().joinpath(f"{name}.yaml")
    found = Card.from_yaml(entry.read_text(encoding="utf-8"), origin=f"data card {name}.yaml")
    if found.name != name:
        raise DataError(f"data card {name}.yaml: name must be {name!r}, got {found.name!r}")
    return found


def credentials_needed(what: str, licence: str, page: str | None) -> str:
    """Error for data that are given to persons only."""
    return (
        f"{what} is given only to persons who have signed for it ({licence}): apply and download it at {page}"
        ", and keep it where that licence allows"
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
    if found.source != "file":
        read = _from_scikit_learn if found.source == "scikit-learn" else _from_statsmodels
        return table_of(found, read(found))
    path = require_file(found, data_dir)
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
    absent = [source for source in (*found.leaking, *found.sources.values()) if source not in made.columns]
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
