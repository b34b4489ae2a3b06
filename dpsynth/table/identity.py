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
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import OwnerWarning, of_records
from dpsynth.table.cells import ABSENT, BYTES, told_apart, unescape

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
    codes, distinct = told_apart(values)
    words, bits = [*map(_word, distinct)], _bits(values.dtype)
    for code, (cell, word) in enumerate(zip(distinct, words, strict=True)):
        if (fault := _fault(cell, word, bits)) is not None:
            row = int((codes == code).argmax()) + 1
            shown = repr(cell.item() if isinstance(cell, np.generic) else cell)
            raise of_records(f"row {row}: {values.name!r} holds {shown:.50}, {fault}")
    return _present(words, missing_words)[codes]


def spellings(values: pd.Series) -> Words:
    """As `identities`, of a column that may be no identifier: nothing is refused."""
    codes, distinct = told_apart(values)
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
