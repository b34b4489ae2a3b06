"""Data sets by name: the card, the checked file, the table.

Files are not part of the package. They are looked for in the folder that the environment variable
``DPSYNTH_DATA_DIR`` names, and are used only if their checksum is the card's.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pandas as pd

from dpsynth.datasets.card import Card, cards_folder
from dpsynth.datasets.table import Table
from dpsynth.errors import DataError
from dpsynth.table.io import read_csv_text

DATA_DIR = "DPSYNTH_DATA_DIR"


def names() -> tuple[str, ...]:
    """Return the names of the data sets that have a card, in alphabetical order."""
    entries = [entry.name for entry in cards_folder().iterdir()]
    return tuple(sorted(entry.removesuffix(".yaml") for entry in entries if entry.endswith(".yaml")))


def card(name: str) -> Card:
    """Return the card of a data set.

    Raises
    ------
    DataError
        If there is none of that name, or it is not a valid card.

    Examples
    --------
    >>> card("flchain").table.outcome
    'death'
    """
    if name not in names():
        raise DataError(f"there is no data set {name!r} (data sets: {', '.join(names())})")
    entry = cards_folder().joinpath(f"{name}.yaml")
    found = Card.from_yaml(entry.read_text(encoding="utf-8"), origin=f"data card {name}.yaml")
    if found.name != name:
        raise DataError(f"data card {name}.yaml: name must be {name!r}, got {found.name!r}")
    return found


def load(name: str, *, data_dir: str | Path | None = None) -> Table:
    """Load a data set.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    data_dir : path, optional
        The folder of the data files; by default the one that ``DPSYNTH_DATA_DIR`` names.

    Returns
    -------
    Table
        The frame has the schema's columns and canonical dtypes. Values outside the public bounds are there
        as they were recorded; what encodes the records clips and rounds them.

    Raises
    ------
    DataError
        If there is no such data set, the folder or the file is not found, the checksum differs, or the file
        does not fit the schema.

    Examples
    --------
    >>> table = load("breast_cancer")
    >>> table.frame.shape, table.outcome, table.schema.n_public
    ((569, 31), 'diagnosis', 569)
    """
    found = card(name)
    if found.source == "scikit-learn":
        return _table(found, _from_scikit_learn(found), None)
    path = _find(found, data_dir)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    _check_digest(found, digest, str(path))
    return _table(found, read_csv_text(path, found.table.columns), path)


def _table(found: Card, raw: pd.DataFrame, path: Path | None) -> Table:
    sources = {name: found.columns.get(name, name) for name in found.table.names}
    absent = [source for source in sources.values() if source not in raw.columns]
    if absent:
        raise DataError(
            f"{path or found.file}: the column {absent[0]!r} that data set {found.name!r} needs is absent"
        )
    chosen = pd.DataFrame({name: raw[source] for name, source in sources.items()})
    for name, value in found.fill.items():
        chosen[name] = chosen[name].where(chosen[name].notna(), value)
    return Table(found.table.check(chosen, path=path), found.table, found.name, found)


def _find(found: Card, data_dir: str | Path | None) -> Path:
    folder = data_dir if data_dir is not None else os.environ.get(DATA_DIR)
    if not folder:
        raise DataError(
            f"data set {found.name!r} needs the file {found.file}: "
            f"set the environment variable {DATA_DIR} to the folder that holds it"
        )
    path = Path(folder) / found.file
    if not path.is_file():
        raise DataError(
            f"data set {found.name!r}: {path} is not there; {DATA_DIR} must name the folder that holds it"
        )
    return path


def _check_digest(found: Card, digest: str, what: str) -> None:
    if digest != found.sha256:
        raise DataError(
            f"data set {found.name!r}: the checksum of {what} is not the card's "
            f"(sha256 {digest[:12]}…, expected {found.sha256[:12]}…): it is another version or damaged"
        )


def _from_scikit_learn(found: Card) -> pd.DataFrame:
    from sklearn import datasets as bundled

    reader = getattr(bundled, f"load_{found.file}", None)
    if reader is None:
        raise DataError(f"data set {found.name!r}: scikit-learn has no load_{found.file}")
    bunch = reader()
    values = np.asarray(bunch.data, dtype="<f8"), np.asarray(bunch.target, dtype="<i8")
    digest = hashlib.sha256(values[0].tobytes() + values[1].tobytes()).hexdigest()
    _check_digest(found, digest, f"scikit-learn's load_{found.file}")
    frame = pd.DataFrame(bunch.data, columns=[str(name) for name in bunch.feature_names])
    frame["target"] = np.asarray(bunch.target_names, dtype=object)[bunch.target]
    return frame
