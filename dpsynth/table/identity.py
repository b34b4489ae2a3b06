"""Who a row is about: identifiers of patients as text, alike whichever way a table came in.

This is the one definition of a patient's identity. Every reader uses it: a frame, a file, a folder of files,
a table in parts, a split. The text of a cell depends on that cell alone, so no patient's spelling moves
another. Two spellings of one identifier are one patient with one history.

- Alike are whole numbers of any type and as text (``7``, ``7.0``, ``Decimal("7.00")``). So are text and its
  UTF-8 bytes, and a day as a date and at midnight.
- Alike is text that differs in blanks around it, or in the kind or number of blanks inside it. So is text
  that differs in signs that are not seen (zero width, soft hyphen, NUL) or in its Unicode form (NFKC).
- Different are ``A1`` and ``a1``, ``007`` and ``7``, ``True`` and ``1``, ``1.1`` and ``1.10``.
- Refused are numbers that were rounded, which several patients may share. Removing one of these patients
  would change a record in place of removing it, and move a release by up to twice its sensitivity.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import OwnerWarning, of_records
from dpsynth.table.cells import ABSENT

Words = NDArray[np.object_]
Codes = NDArray[np.integer[Any]]
_WHOLE = re.compile(r"(?:-(?=0\.))?(-?\d+)\.0+")
_MIDNIGHT = re.compile(r"(\d{4}-\d\d-\d\d)[ T]00:00:00(?:\.0+)?")
#: What spreadsheets make of long numbers.
_SCIENTIFIC = re.compile(r"[+-]?\d\.\d+[eE]\+?\d+")
_LEADING_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")
#: Kinds of cells of which two are the same value where their text is, as `pandas` calls them.
_UNIFORM = ("string", "integer", "bytes", "decimal")
#: Control signs, and signs that only change how others are shown.
_UNSEEN = ("Cc", "Cf")
#: What stands for bytes that are no text.
_UNKNOWN = "\ufffd"


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
        from 2**53 on and float32 from 2**24 on, and text such as ``1.23457E+15``. If bytes are not UTF-8. The
        message names the column and the first such row.

    Examples
    --------
    >>> identities(pd.Series([7, 7.0, "7", " 7\\u200b", b"7", "A\\u00a0 1", "a 1", None, "NA"])).tolist()
    ['7', '7', '7', '7', '7', 'A 1', 'a 1', '', '']
    """
    codes, distinct = _distinct(values)
    words, bits = [*map(_word, distinct)], _bits(values.dtype)
    for code, (cell, word) in enumerate(zip(distinct, words, strict=True)):
        if (fault := _fault(cell, word, bits)) is not None:
            row = int((codes == code).argmax()) + 1
            shown = repr(cell.item() if isinstance(cell, np.generic) else cell)
            raise of_records(
                f"row {row}: {values.name!r} holds {shown:.50}, {fault}. Read the column as text"
            )
    return _present(words, missing_words)[codes]


def spellings(values: pd.Series) -> Words:
    """As `identities`, of a column that may be no identifier: nothing is refused."""
    codes, distinct = _distinct(values)
    return _present(map(_word, distinct))[codes]


def _present(words: Iterable[str], missing_words: Iterable[str] = ()) -> Words:
    """The words, "" in place of those for no value, and one "" more for the code of a missing cell."""
    absent = ABSENT | {_plain(word) for word in missing_words if not word.isdigit()}
    return np.array([*("" if word in absent else word for word in words), ""], dtype=object)


def warn_of_near_identities(name: str, ids: Words) -> None:
    """Warn of patients whose `identities` differ only in capital letters or leading zeros."""
    distinct = pd.unique(ids)
    near = pd.Series([_LEADING_ZEROS.sub("", word.casefold()) for word in distinct], dtype=object)
    count = int(near.duplicated(keep=False).sum())
    if count:
        warnings.warn(
            f"{name}: {count:,} identifiers differ from another one only in capital letters or "
            "leading zeros (confidential). Each counts as a patient. If two of them are one patient, write "
            "them alike: the guarantee covers each identifier by itself",
            OwnerWarning,
            stacklevel=3,
        )


def _distinct(values: pd.Series) -> tuple[Codes, Iterable[Any]]:
    """Number of each cell among the distinct ones, -1 if it is missing, and these."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        used = values.cat.remove_unused_categories()
        return used.cat.codes.to_numpy(), used.cat.categories
    if values.dtype != object or pd.api.types.infer_dtype(values) in _UNIFORM:
        codes, distinct = pd.factorize(values)
        return codes, distinct
    # Cells of several types each by itself: for pandas, True and 1 and 1.0 are one value, the first of them.
    codes, there = np.full(len(values), -1), values.notna().to_numpy()
    codes[there] = np.arange(there.sum())
    return codes, values[there]


def _bits(dtype: Any) -> int:
    """Bits of whole numbers that a column's floats hold. Those in a column of objects say it themselves."""
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    return _mantissa(getattr(dtype, "numpy_dtype", dtype)) if pd.api.types.is_float_dtype(dtype) else 53


def _mantissa(kind: Any) -> int:
    return int(np.finfo(kind).nmant) + 1


def _fault(cell: Any, word: str, bits: int) -> str | None:
    """Why a cell, whose text is ``word``, identifies nobody."""
    if isinstance(cell, bytes) and _UNKNOWN in word:
        return "bytes that are not UTF-8"
    rounded = _SCIENTIFIC.fullmatch(word) is not None
    if isinstance(cell, float | np.floating):
        rounded = cell % 1 != 0 or abs(float(cell)) >= 2.0 ** min(bits, _mantissa(type(cell)))
    return "a rounded number, which several patients may share" if rounded else None


def _word(cell: Any) -> str:
    """An identifier as text."""
    if isinstance(cell, float | np.floating) and cell % 1 == 0:
        cell = int(cell)  # NumPy 2 writes float32 from a million on as 1.000001e+06
    elif isinstance(cell, bytes):
        cell = cell.decode(errors="replace")
    elif isinstance(cell, np.datetime64):
        cell = pd.Timestamp(cell)
    return _plain(f"{cell:f}" if isinstance(cell, Decimal) else str(cell))


def _plain(text: str) -> str:
    """Text in its plain form."""
    if not (text.isascii() and text.isprintable()):
        seen = (sign for sign in text if sign.isspace() or unicodedata.category(sign) not in _UNSEEN)
        text = unicodedata.normalize("NFKC", "".join(seen))
    text = " ".join(text.split())
    plain = _WHOLE.fullmatch(text) or _MIDNIGHT.fullmatch(text)
    return plain[1] if plain else text
