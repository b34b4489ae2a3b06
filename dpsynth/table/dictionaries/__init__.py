"""Data dictionaries of other programs, each in a file of its own and listed here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dpsynth.checks import few
from dpsynth.errors import InputError
from dpsynth.table.dictionaries import frictionless, labels, redcap, sdv
from dpsynth.table.dictionaries.dictionary import Dictionary

#: Readers by the program. Each gives None for a file that is not its own.
DICTIONARIES: dict[str, Callable[[Path], Dictionary | None]] = {
    "REDCap": redcap.read_redcap,
    "SPSS, Stata or SAS": labels.read_labels,
    "SDV": sdv.read_sdv,
    "Frictionless": frictionless.read_frictionless,
}


def read_dictionary(path: str | Path) -> Dictionary:
    """Read a data dictionary, whichever program wrote it.

    What it says is public: kinds, categories, limits, codes of missing values, rules. So a draft with it
    (:func:`dpsynth.table.infer_schema`) marks these as reviewed.

    Raises InputError if the file is absent, or if no program of `DICTIONARIES` writes such files.
    """
    source = Path(path)
    if not source.is_file():
        raise InputError(f"{source}: no such data dictionary")
    for read in DICTIONARIES.values():
        if (found := read(source)) is not None:
            return found
    raise InputError(f"{source}: is no data dictionary of {few([*DICTIONARIES], separator='; ')}")
