"""Who a row is about: identifiers of patients as text, alike whichever way a table came in.

This is the one definition of a patient's identity. Every reader uses it: a frame, a file, a folder of files,
a table in parts, a split. The text of a cell depends on that cell alone, so no patient's spelling moves
another. Two spellings of one identifier are one patient with one history.

- Alike are whole numbers of any type and as text (``7``, ``7.0``, ``+7``, ``7.``, ``Decimal("7.00")``). So
  are text and its UTF-8 bytes, and a day as a date and at midnight.
- Alike is text that differs in blanks around it, or in the kind or number of blanks inside it. So is text
  that differs in signs that are not seen (zero width, soft hyphen, NUL, variation selectors). So is text that
  differs in the kind of its hyphens, or in its Unicode form (NFKC).
- Different are ``A1`` and ``a1``, ``007`` and ``7``, ``True`` and ``1``, ``1.1`` and ``1.10``.
- Refused are numbers that were rounded, which several patients may share. Removing one of these patients
  would change a record in place of removing it, and move a release by up to twice its sensitivity. Text is
  such a number if it has an exponent with a sign (``1E+11``, ``1e+05``) or a decimal mark (``1,23457E11``).
- ``1E5`` and ``12E5`` are accepted as codes. Programs that round write the sign (spreadsheets, R, Python, C).
  SAS and MySQL may write ``1E11``, but then other numbers of the column have decimals.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import OwnerWarning, of_records
from dpsynth.table.cells import ABSENT, BYTES, distinct_raw_cells, unescape

Words = NDArray[np.object_]
_WHOLE = re.compile(r"(?:\+(?=\d)|-(?=0+(?:\.|\Z)))?(-?\d+)(?:\.0*)?")
_MIDNIGHT = re.compile(r"(\d{4}-\d\d-\d\d)[ T]00:00(?::00(?:\.0+)?)?")
#: What programs make of long numbers.
_SCIENTIFIC = re.compile(
    r"[+-]?(?:(?:\d+[.,·]\d*|[.,·]\d+) ?(?:[eEdD] ?[+-]?|[×x*] ?10\^?)|\d+ ?[eEdD] ?[+-])\d+"
)
#: What spreadsheets show of cells that are too narrow, or that hold an error.
_NOT_SHOWN = re.compile(r"#+|#(?:DIV/0|NAME|NULL|NUM|REF|VALUE)[!?]")
_LEADING_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")
_POWER = re.compile(r"(\d{1,15})e(\d{1,2})")
_ZEROS = re.compile(r"(\d+),0+")
#: Control signs, and signs that only change how others are shown.
_UNSEEN = ("Cc", "Cf")
#: Others without a width: Default_Ignorable_Code_Point of Unicode 16 (DerivedCoreProperties.txt).
_IGNORED = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
#: Hyphens, dashes and the minus are one sign, which word processors exchange. U+2800 looks like a blank.
_SHAPES = str.maketrans({**dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"), "\u2800": " "})
#: What stands for bytes that are no text: several patients may share it.
_LOST = re.compile("[\ufffd\ud800-\udfff]")


def identities(values: pd.Series, missing_words: Iterable[str] = ()) -> Words:
    """Identifiers of patients as text, one for all spellings, "" where a row does not say whose it is.

    Parameters
    ----------
    values : pandas.Series, shape (rows,)
        A column of identifiers of any type.
    missing_words : iterable of str
        Words that stand for no value. Those of digits do not: they may identify a patient.

    Returns
    -------
    ndarray of str, shape (rows,)

    Raises
    ------
    DataError
        If a number was rounded, so that several patients may share it. Floats that are not whole are, float64
        from 2**53 on and float32 from 2**24 on, and text such as ``1E+15``. If bytes or text are not UTF-8.
        The message names the column and the first such row.

    Examples
    --------
    >>> identities(pd.Series([7, 7.0, "7", " 7\\u200b", b"7", "A\\u00a0 1", "a 1", None, "NA"])).tolist()
    ['7', '7', '7', '7', '7', 'A 1', 'a 1', '', '']
    """
    if isinstance(values.dtype, pd.SparseDtype):
        values = pd.Series(np.asarray(values), name=values.name)
    codes, distinct = distinct_raw_cells(values)
    words, bits = [*map(_word, distinct)], _bits(values.dtype)
    for code, (cell, word) in enumerate(zip(distinct, words, strict=True)):
        if (fault := _fault(cell, word, bits)) is not None:
            row = int((codes == code).argmax()) + 1
            shown = repr(cell.item() if isinstance(cell, np.generic) else cell)
            raise of_records(f"row {row}: {values.name!r} holds {shown:.50}, {fault}")
    return _present(words, missing_words)[codes]


def spellings(values: pd.Series) -> Words:
    """As `identities`, of a column that may be no identifier: nothing is refused."""
    codes, distinct = distinct_raw_cells(values)
    return _present(map(_word, distinct))[codes]


def _present(words: Iterable[str], missing_words: Iterable[str] = ()) -> Words:
    """The words, "" in place of those for no value, and one "" more for the code of a missing cell."""
    absent = ABSENT | {_plain(word) for word in missing_words if not word.isdigit()}
    return np.array([*("" if word in absent else word for word in words), ""], dtype=object)


def near(words: Iterable[str]) -> list[str]:
    """Texts of `identities`, alike where a person may take two of them for one.

    Examples
    --------
    >>> near(["a1", "A1", "007", "7", "1E5", "100000", "7,0", "'-a"])
    ['a1', 'a1', '7', '7', '100000', '100000', '7', '-a']
    """
    return [_near(unescape(word).casefold()) for word in words]


def _near(word: str) -> str:
    if power := _POWER.fullmatch(word):
        word = power[1] + "0" * int(power[2])
    elif whole := _ZEROS.fullmatch(word):
        word = whole[1]
    return _LEADING_ZEROS.sub("", word)


def warn_of_near_identities(name: str, alike: Iterable[Any]) -> None:
    """Warn of patients whose `identities` are `near` to each other. ``alike``: of each, or a hash of it."""
    count = int(pd.Series(alike).duplicated(keep=False).sum())
    if count:
        warnings.warn(
            f"{name}: {count:,} identifiers differ from another one only in capital letters, leading zeros, "
            "an apostrophe in front or the way a number is written (confidential). Each counts as a patient. "
            "If two of them are one patient, write them alike: the guarantee covers each one by itself",
            OwnerWarning,
            stacklevel=3,
        )


def _bits(dtype: Any) -> int:
    """Bits of whole numbers that a column's floats hold. Those in a column of objects say it themselves."""
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    return _mantissa(getattr(dtype, "numpy_dtype", dtype)) if pd.api.types.is_float_dtype(dtype) else 53


def _mantissa(kind: Any) -> int:
    return int(np.finfo(kind).nmant) + 1


def _fault(cell: Any, word: str, bits: int) -> str | None:
    """Why a cell, whose text is ``word``, identifies nobody, and what to do."""
    if not word.isascii() and _LOST.search(word):
        what = "bytes that are" if isinstance(cell, BYTES) else "text that is"
        return f"{what} not UTF-8, so that signs are lost. Read the file with its encoding"
    if isinstance(cell, float | np.floating):
        rounded = cell % 1 != 0 or abs(float(cell)) >= 2.0 ** min(bits, _mantissa(type(cell)))
        return f"{_SHARED}. Read the column as text" if rounded else None
    if _SCIENTIFIC.fullmatch(word):
        return f"{_SHARED}. Export the column as text. If this is a code, put a letter in front of each one"
    if _NOT_SHOWN.fullmatch(word):
        return "which a spreadsheet shows in place of a value. Export the column as text"
    return None


_SHARED = "a rounded number, which several patients may share"


def _word(cell: Any) -> str:
    """An identifier as text."""
    if isinstance(cell, float | np.floating) and cell % 1 == 0:
        cell = int(cell)  # NumPy 2 writes float32 from a million on as 1.000001e+06
    elif isinstance(cell, BYTES):
        cell = bytes(cell).decode(errors="replace")
    elif isinstance(cell, np.datetime64):
        cell = pd.Timestamp(cell)
    return _plain(f"{cell:f}" if isinstance(cell, Decimal) else str(cell))


def _plain(text: str) -> str:
    """Text in its plain form."""
    if not (text.isascii() and text.isprintable()):
        seen = (sign for sign in text if sign.isspace() or unicodedata.category(sign) not in _UNSEEN)
        text = unicodedata.normalize("NFKC", _IGNORED.sub("", "".join(seen))).translate(_SHAPES)
    text = " ".join(text.split())
    plain = _WHOLE.fullmatch(text) or _MIDNIGHT.fullmatch(text)
    return plain[1] if plain else text


# ------------------------------------------------------------------------------------------------
# Find columns that identify a person, a stay or a row, and persons with several rows.
#
# A table is protected row by row. An identifier cannot be synthesized, since it has as many values as rows.
# So such columns are left out of a draft, and several rows of one person are reported.

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
