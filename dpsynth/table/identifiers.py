"""Find columns that identify a person, a stay or a row, and persons with several rows.

A table is protected row by row. An identifier cannot be synthesized, since it has as many values as rows. So
such columns are left out of a draft, and several rows of one person are reported.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth.errors import OwnerWarning
from dpsynth.table.identity import spellings

_PERSON = {"patient", "patientid", "subject", "subjectid", "person", "participant", "mrn", "ssn", "pid"}
_PERSON |= {"pat", "patid", "ptid", "subjid", "usubjid", "eid", "seqn", "empi", "nhs", "cpr"}
_EVENT = {"stay", "visit", "admission", "episode", "case"}  # or its day, or how often
_STAY = _EVENT | {"encounter", "hadm", "icustay", "record", "row"}
_LABEL = {"id", "ids", "nr", "nbr", "no", "num", "number", "identifier", "key", "uid", "uuid", "index"}
_CONTACT = {"surname", "lastname", "firstname", "forename", "email", "phone", "telephone", "address"}
_NAMED = re.compile(r"(?:(?:first|last|sur|full|given|family|patient|subject)[ _.-]*)?names?", re.IGNORECASE)
_COUNTED = {"n", "num", "number", "count", "total", "times", "years", "year", "yr", "age", "score"}
_CODED = {"id", "code", "type", "group", "grp", "class", "cat", "category", "status", "grade", "stage"}

#: an identifier has more values than this or than half the rows; fewer are the codes of a category
_FEW = 50
_MANY_WHOLE = 100  # as many different whole numbers as ages and vital signs have


def tokens(name: str) -> list[str]:
    """Split a column's name into lower-case words.

    Examples
    --------
    >>> tokens("patientID_nbr.2")
    ['patient', 'id', 'nbr', '2']
    """
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", name)]


def is_person(name: str) -> bool:
    """Whether a column of this name says whose row it is.

    Examples
    --------
    >>> [is_person(name) for name in ("patient_nbr", "MRN", "ID", "patient_age", "encounter_id")]
    [True, True, True, False, False]
    """
    words = set(tokens(name))
    said_of = _PERSON | _LABEL | {"record", "medical", "hospital", "study"}
    return words == {"id"} or bool(words & _PERSON and words <= said_of)


@dataclass(frozen=True)
class Repeated:
    """Number of rows and of different values of a column that names persons. Confidential."""

    name: str
    rows: int
    distinct: int
    most: int


def repeated_persons(frame: pd.DataFrame) -> Iterator[Repeated]:
    """Yield the columns by which a person seems to have several rows."""
    for position, name in enumerate(map(str, frame.columns)):
        if is_person(name):
            ids = pd.Series(spellings(frame.iloc[:, position]))
            counts = ids[ids != ""].value_counts()
            rows, distinct = int(counts.sum()), len(counts)
            if 1 < distinct < rows:
                yield Repeated(name, rows, distinct, int(counts.iloc[0]))


def warn_of_repeated_persons(frame: pd.DataFrame) -> None:
    """Warn what the guarantee covers if a person seems to have several rows."""
    for found in repeated_persons(frame):
        warnings.warn(
            f"{found.name}: {found.rows:,} rows have {found.distinct:,} different values, one of them "
            f"{found.most:,} times (confidential). If these are persons, the guarantee covers "
            "one row, not one person: a person with k rows has at least k times epsilon. Describe several "
            "rows with a PatientSchema (dpsynth schema infer drafts one), or make one row a person first",
            OwnerWarning,
            stacklevel=3,
        )


def named_identifier(name: str, n_distinct: int, n: int) -> bool:
    """Whether a column of this name and with so many values in ``n`` rows is an identifier.

    Examples
    --------
    >>> named_identifier("encounter_id", 900, 1000), named_identifier("admission_type_id", 8, 1000)
    (True, False)
    """
    words = tokens(name)
    if is_person(name) and words != ["id"]:
        return True
    contact = bool(_CONTACT & set(words) or _NAMED.fullmatch(name.strip()))
    label = bool(words) and not _is_vague(words) and (words[-1] in _LABEL or set(words) <= _STAY | _LABEL)
    return (contact or (label and not _COUNTED & set(words))) and (
        n_distinct > _FEW or 2 * n_distinct > n > 1
    )


def _is_vague(words: list[str]) -> bool:
    """Whether a name such as ``admission`` or ``disease_index`` may be a measurement's too."""
    return set(words) <= _EVENT or (words[-1:] == ["index"] and not set(words) <= _STAY | _LABEL)


def numbers_identify(name: str, whole: np.ndarray, n: int) -> bool:
    """Whether whole numbers, sorted and distinct in ``n`` present rows, are identifiers.

    Fewer values are enough where the name may be an identifier's.
    """
    least = 1 if _is_vague(tokens(name)) else _MANY_WHOLE
    counts_rows = len(whole) == n >= 20 and whole[-1] - whole[0] == n - 1
    return bool(counts_rows or (len(whole) > least and len(whole) >= 0.9 * n))


def words_identify(n_distinct: int, n: int) -> bool:
    """Whether text with so many distinct words in ``n`` present rows is identifiers or free text."""
    return n_distinct > max(_FEW, n // 2) or n_distinct == n >= 20


def looks_coded(name: str, n_distinct: int, n: int) -> bool:
    """Whether few distinct whole numbers look like the codes of a category, not like a count."""
    words = tokens(name)
    most = 50 if words and words[-1] in _CODED else 10
    counted = _COUNTED & set(words) - ({"number"} if words and words[-1] in _CODED else set())
    return 2 < n_distinct <= most and n >= 5 * n_distinct and not counted
