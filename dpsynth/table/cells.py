"""Read the text cells of a column: numbers, words for a missing value, codes, or words.

A file has no types. Readers that guess take ``None`` ("not done") for a missing value, one typing error for
sixty categories and the code ``010`` for ten. Here every distinct word is read, and each omission is
reported. Numbers such as -9, 99 or 999 look like codes if they stand apart from what is measured.

Text that a spreadsheet would run as a formula gets an apostrophe in front (OWASP, *CSV Injection*). Anyone
who could type into the records can put a category ``=HYPERLINK("http://…")`` into the table. Many a
spreadsheet begins a new cell at a semicolon or a tab in one of ours, so that what follows gets it as well. It
may skip blanks, quotes and signs that are not seen before a formula. So the apostrophe stands after them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import of_records
from dpsynth.table.frames import pandas_of

#: what other programs write for a missing value; a column that declares one of these as a category keeps it
ABSENT = frozenset(("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "<NA>", "."))

#: cells that hold the bytes of a text
BYTES = (bytes, bytearray, memoryview)

_MAYBE_ABSENT = frozenset(("na", "n/a", "#n/a", "nan", "null", "none", "<na>", ".", "?", "-", "--"))
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_CODE = re.compile(r"[+-]?0\d+", re.ASCII)  # digits behind a leading zero are a code: 010 is not ten
#: texts that are written alike, by what they are
SHAPES = {
    "times of day": re.compile(r"\d{1,2}:\d{2}(?::\d{2})?(?: ?[AaPp]\.?[Mm]\.?)?"),
    "dates with years of two digits": re.compile(
        r"(?:\d{1,2}[-/.]\d{1,2}[-/.]|\d{1,2}[- ]?[A-Za-z]{3,9}[- ]?)\d{2}(?: .*)?"
    ),
    "dates": re.compile(
        r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[ T]\d{1,2}:\d{2}.*)?"
        r"|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{2}|\d{4})(?: .*)?"
        r"|\d{1,2}[- ]?[A-Za-z]{3,9}[- ]?\d{2,4}(?: .*)?|\d{1,2}:\d{2}(?::\d{2})?"
    ),
    "hexadecimal numbers": re.compile(r"0[xX][0-9A-Fa-f]+"),
    # 3,5 and 1.200,50 and 1,200.50, the last two also with other marks between thousands
    "numbers with commas": re.compile(
        r"[+-]?(?:\d*|\d{1,3}(?:[.' \u2019\u00a0\u202f]\d{3})+),\d+|[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?"
    ),
    "limits": re.compile(r"(?:[<>≤≥~]=?)\s*[+-]?\d+\.?\d*"),
    "percentages": re.compile(r"[+-]?\d+\.?\d*\s*%"),
}

Floats = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]
_DIGITS = range(1, 6)
_REPEATED = {float(digit * length) for digit in "789" for length in _DIGITS}
_NEGATIVE = {-float(value) for value in (*range(1, 10), *_REPEATED)}
_POSITIVE = {value for value in _REPEATED if value > 9} | {97.0, 98.0, 997.0, 998.0, 9997.0, 9998.0}
# Of the other values: a code lies half their range away where it is common, twice where it is rare.
_APART, _FAR = 0.5, 2.0
_CLOSE = 0.05  # nearer than this to the others, no code is told from them
_SPIKE = 5  # times as frequent as the values nearby
_NEARBY = 5  # how many of these are looked at
# An end that may stand for no value, whatever it is: its share of the cells and least number, how much more
# often than those nearby, its distance in ranges of the others and in their steps, and how many others.
_OFTEN, _FEW, _OFTENER, _GAP, _STEPS, _FEWEST = 0.01, 5, 2.0, 0.12, 8.0, 10
# also the full-width and the small signs, which some spreadsheets take for the ASCII ones; signs alone ("-",
# "++", the results of tests) and plain numbers are no formulas
_SIGNS = r"=+\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b"
_PLAIN = r"[+-]*(?:\d+\.?\d*|\.\d+)?"
# at which other programs may begin a cell or a row in the middle of ours
_CUT = r";|\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029"
# what may stand before a formula: quotes, blanks, control and format signs, and letters that are not seen
_SKIPPED = (
    r"\"'\x00-\x08\x0e-\x1b\x1f\x20\x7f-\x84\x86-\xa0\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    r"\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u202a-\u202f\u205f-\u206f\u3000\u3164\ufe00-\ufe0f"
    r"\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_RUN = f"[{_SKIPPED}{_CUT}]"
# a run is looked at from its first sign alone, so that a cell of 100,000 blanks takes no longer than others
_FORMULA = re.compile(
    rf"(?:\A{_RUN}*+|(?<!{_RUN})(?=[{_SKIPPED}]*+[{_CUT}]){_RUN}++)(?!{_PLAIN}\Z)[{_SIGNS}]"
)


def plain_table(frame: pd.DataFrame) -> pd.DataFrame:
    """A table as drafts and fits both take it, whatever program made the frame.

    It may be a table of another library (`dpsynth.table.frames`). Names are text. Bytes are UTF-8 text. Blank
    text is a missing value. Arrow's columns are pandas' own.
    Categories are text, numbers or true/false. DataError names a column with other bytes. InputError says
    what is no DataFrame.

    Examples
    --------
    >>> plain_table(pd.DataFrame({5: [b"F", b"M"], "a": [" ", "x"]})).to_dict("list")
    {'5': ['F', 'M'], 'a': [None, 'x']}
    """
    frame = pandas_of(frame)
    names = [str(name) for name in frame.columns]
    given = [frame.iloc[:, i] for i in range(len(names))]
    made = [_plain_column(*column) for column in zip(names, given, strict=True)]
    if any(new is not old for new, old in zip(made, given, strict=True)):
        frame = pd.DataFrame(dict(enumerate(made)), index=frame.index)
    return frame if list(frame.columns) == names else frame.set_axis(names, axis=1)


def _plain_column(name: str, values: pd.Series) -> pd.Series:
    if isinstance(values.dtype, pd.ArrowDtype):
        import pyarrow as pa

        # which would make floats of whole numbers with missing values
        whole = {kind: pd.Int64Dtype() for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())}
        own = pa.array(values.array).to_pandas(types_mapper=whole.get)
        values = own.set_axis(values.index)
    if isinstance(values.dtype, pd.CategoricalDtype):
        old = list(values.cat.categories)
        new = [_plain_cell(name, word) for word in old]
        new = [word.strip() if isinstance(word, str) else word for word in new]
        if new == old:
            return values
        if None not in new and len({*new}) == len(new):
            return values.cat.rename_categories(new)
        return values.map(dict(zip(old, new, strict=True)), na_action="ignore").astype(object)
    if values.dtype != object and not isinstance(values.dtype, pd.StringDtype):
        return values
    cells = values.to_numpy(dtype=object)
    odd = [isinstance(cell, BYTES) or (isinstance(cell, str) and not cell.strip()) for cell in cells]
    if not any(odd):
        return values
    made = cells.copy()
    made[odd] = [_plain_cell(name, cell) for cell in cells[odd]]
    return pd.Series(made, index=values.index, dtype=object)


#: kinds of cells that are told from their text by whoever reads them
_KNOWN = (str, bool, int, float, Decimal, np.generic)


def _plain_cell(name: str, cell: Any) -> Any:
    if isinstance(cell, BYTES):
        try:
            cell = bytes(cell).decode()
        except UnicodeDecodeError:
            raise of_records(
                f"column {name!r} holds bytes that are not UTF-8. Read the file with its encoding, such as "
                "pandas.read_sas(path, encoding='latin-1')"
            ) from None
    elif not isinstance(cell, _KNOWN):
        cell = str(cell)
    return None if isinstance(cell, str) and not cell.strip() else cell


#: Types of which equal cells are alike. Of others (decimals, times) those that are written alike are: for
#: Python ``1.1`` and ``1.10`` are one decimal.
_ALIKE = frozenset((str, bytes, bool, int, float))


def distinct_cells(values: pd.Series) -> tuple[Codes, list[Any]]:
    """Distinct cells, without NumPy scalars, and the place of each row's among them, -1 for a missing value.

    Cells of different types stay distinct: ``True == 1``, and one must not decide how the other is read.
    """
    codes, distinct = distinct_raw_cells(values)
    return codes, [cell.item() if isinstance(cell, np.generic) else cell for cell in distinct]


def distinct_raw_cells(values: pd.Series) -> tuple[Codes, Iterable[Any]]:
    """As `distinct_cells`, with the cells as they are.

    Whether two cells are alike depends on these two alone. `pandas.factorize` chooses its rule by all cells.
    In a column of text it stops at a NUL, and in a mixed one True is the 1 of an earlier row.

    Examples
    --------
    >>> cells = ["a", True, 1, "a", Decimal("1.0"), None, Decimal("1.00"), "a\\0"]
    >>> distinct_raw_cells(pd.Series(cells, dtype=object))[0].tolist()
    [0, 1, 2, 0, 3, -1, 4, 5]
    """
    if isinstance(values.dtype, pd.CategoricalDtype):
        used = values.cat.remove_unused_categories()
        return used.cat.codes.to_numpy(), used.cat.categories
    if values.dtype != object and not isinstance(values.dtype, pd.StringDtype):
        return pd.factorize(values)  # of one type, compared by its values
    there = values.notna().to_numpy()
    codes = np.full(len(values), -1)
    codes[there], distinct = _numbered(values.to_numpy(object)[there])
    return codes, distinct


def _numbered(cells: NDArray[np.object_]) -> tuple[Codes, Iterable[Any]]:
    kinds = {*map(type, cells)}
    if len(kinds) == 1 and kinds <= _ALIKE and (str not in kinds or _is_plain(cells)):
        return pd.factorize(cells)  # five times as fast, and of such cells the same
    known: dict[Any, int] = {}
    keys = ((type(cell), cell if type(cell) in _ALIKE else repr(cell)) for cell in cells)
    codes = np.fromiter((known.setdefault(key, len(known)) for key in keys), np.intp, len(cells))
    return codes, cells[np.unique(codes, return_index=True)[1]]


def _is_plain(texts: NDArray[np.object_]) -> bool:
    """Whether these texts differ for `pandas.factorize` too, which reads their UTF-8 up to the first NUL."""
    try:
        return b"\0" not in "".join(texts).encode()
    except UnicodeEncodeError:
        return False


def spoken(value: Any) -> str:
    """A cell as text, by which text and numbers are compared: 1.0 is ``1``, and True is ``true``."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = str(value)
    return text.lower() if text in ("True", "False", "TRUE", "FALSE") else text


def number(word: str) -> float | None:
    """Return the number that a cell writes in ASCII digits, None where it writes none or a code.

    Examples
    --------
    >>> [number(word) for word in ("1e3", "010", "0x1F", "1_000", "inf", "1e999")]
    [1000.0, None, None, None, None, None]
    """
    if not _NUMBER.fullmatch(word) or _CODE.fullmatch(word):
        return None
    value = float(word)
    return value if math.isfinite(value) else None


@dataclass(frozen=True)
class TextCells:
    """The distinct words of a column and how often each occurs, blanks around words removed.

    ``counts`` leaves out empty cells and the caller's words for a missing value. ``text`` has None there.
    """

    counts: dict[str, int]
    text: pd.Series

    @classmethod
    def of(cls, values: pd.Series, missing_words: Iterable[str] = ()) -> TextCells:
        """Read a column of text. ``missing_words`` stand for no value, as numbers in a column of numbers."""
        words = set(missing_words)
        made = cls._without(values, words)
        codes = {code for word in words if (code := number(word)) is not None}
        alike = {word for word, value in made.numbers.items() if value in codes} if codes else set()
        return cls._without(values, words | alike) if alike and made.is_numeric else made

    @classmethod
    def _without(cls, values: pd.Series, missing_words: set[str]) -> TextCells:
        absent = {"", *missing_words}
        codes, distinct = distinct_cells(values)
        words = [spoken(cell) if isinstance(cell, float) else str(cell).strip() for cell in distinct]
        kept = pd.Series([None if word in absent else word for word in words] + [None], dtype=object)
        text = pd.Series(kept.to_numpy()[codes], index=values.index, dtype=object)  # code -1: missing
        return cls({str(word): int(n) for word, n in text.value_counts().items()}, text)

    @cached_property
    def absent(self) -> dict[str, int]:
        """Words that often stand for a missing value, and sometimes for an answer."""
        return {word: n for word, n in self.counts.items() if word.lower() in _MAYBE_ABSENT}

    @cached_property
    def numbers(self) -> dict[str, float]:
        """Words that are numbers."""
        read = {word: number(word) for word in self.counts if word not in self.absent}
        return {word: value for word, value in read.items() if value is not None}

    @cached_property
    def others(self) -> dict[str, int]:
        """Words that are neither."""
        known = self.absent.keys() | self.numbers.keys()
        return {word: n for word, n in self.counts.items() if word not in known}

    @cached_property
    def n_numbers(self) -> int:
        """How many cells hold a number."""
        return sum(self.counts[word] for word in self.numbers)

    @cached_property
    def n_others(self) -> int:
        """How many cells hold something else."""
        return sum(self.others.values())

    @property
    def is_numeric(self) -> bool:
        """Whether this is a column of numbers, a few slips and limits such as ``<5`` beside them."""
        slips = sum(n for word, n in self.others.items() if not SHAPES["limits"].fullmatch(word))
        few = slips * 20 <= self.n_numbers and (slips <= 3 or slips * 200 <= self.n_numbers)
        return self.n_numbers > 0 and few and self.n_others <= self.n_numbers

    @property
    def written_whole(self) -> bool:
        """Whether every number is written without a decimal point, as identifiers are."""
        return all(word.lstrip("+-").isdigit() for word in self.numbers)

    def shape(self) -> str | None:
        """Return what the cells look like where nine in ten look alike: dates, percentages, …"""
        for name, pattern in SHAPES.items():
            alike = sum(pattern.fullmatch(word) is not None for word in self.others)
            # numbers with commas and limits stand among whole numbers
            given = len(self.others) + (0 if name in ("numbers with commas", "limits") else len(self.numbers))
            if alike and 10 * alike >= 9 * given:
                return name
        return None

    def rows(self, words: Iterable[str], most: int) -> list[tuple[int, str]]:
        """Return the first rows (from 1) that hold one of ``words``, each with its word."""
        wanted = set(words)
        found = [i for i, word in enumerate(self.text) if word in wanted]
        return [(i + 1, self.text.iloc[i]) for i in found[:most]]


def likely_codes(distinct: Floats, counts: NDArray[np.int64]) -> Floats:
    """Return the values that look like codes, of ascending values and how often each occurs.

    Examples
    --------
    >>> likely_codes(np.array([-1.0, *range(20, 90), 99.0, 999.0]), np.array([3, *[2] * 70, 12, 1])).tolist()
    [-1.0, 99.0, 999.0]
    """
    coded = np.isin(distinct, [*_NEGATIVE, *_POSITIVE])
    spiked = _ends_that_stand_apart(distinct, counts)
    apart, plain = stand_apart(distinct, counts, coded | spiked) | spiked, distinct[~(coded | spiked)]
    impossible = (distinct < 0) & bool(len(plain) >= 3 and plain[0] >= 0)
    return distinct[spiked | (coded & (apart | impossible))]


def _ends_that_stand_apart(distinct: Floats, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which values at either end are frequent, and far from the others: 0 or 300 of an age."""
    apart = np.zeros(len(distinct), dtype=bool)
    low, high = 0, len(distinct)
    while high - low > _FEWEST:
        for end, rest in ((low, slice(low + 1, high)), (high - 1, slice(low, high - 1))):
            values, times = distinct[rest], counts[rest]
            first, last = np.interp([0.01, 0.99], np.cumsum(times) / times.sum(), values)
            gap = np.abs(values - distinct[end]).min()
            nearby = times[:_NEARBY] if end == low else times[-_NEARBY:]
            often = counts[end] >= max(_OFTEN * counts[low:high].sum(), _FEW, nearby.mean() * _OFTENER)
            if often and gap >= _GAP * (last - first) and gap > _STEPS * np.median(np.diff(values)):
                apart[end] = True
        if not (apart[low] or apart[high - 1]):
            break
        low, high = low + int(apart[low]), high - int(apart[high - 1])
    return apart


def stand_apart(distinct: Floats, counts: NDArray[np.int64], coded: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which ascending values lie far from those that are not ``coded``, or are far more frequent, shape (n,).

    None is if fewer than three values are not coded.
    """
    apart = np.zeros(len(distinct), dtype=bool)
    plain = distinct[~coded]
    if len(plain) < 3:
        return apart
    low, high = plain[0], plain[-1]
    spread = high - low
    near = counts[~coded]
    above = (distinct - high) / spread
    below = (low - distinct) / spread
    for gap, usual in ((above, near[-_NEARBY:].max()), (below, near[:_NEARBY].max())):
        spike = (gap > _CLOSE) & (counts >= _SPIKE) & (counts >= _SPIKE * usual)
        apart |= (gap > _FAR) | ((gap > _APART) & (counts > usual)) | spike
    return apart


def codes_of_categories(distinct: Floats) -> Floats:
    """Return the category codes that stand apart: farther from the others than these are from each other.

    Examples
    --------
    >>> codes_of_categories(np.array([0.0, 1.0, 99.0])).tolist()
    [99.0]
    >>> codes_of_categories(np.array([-2.0, -1.0, 0.0, 1.0])).tolist()
    []
    """
    coded = np.isin(distinct, [*_NEGATIVE, *_POSITIVE])
    plain, codes = distinct[~coded], distinct[coded]
    if len(plain) < 2:
        return distinct[:0]
    for code in sorted(codes, key=lambda code: float(np.abs(plain - code).min())):
        if np.abs(plain - code).min() <= np.ptp(plain):
            plain = np.append(plain, code)
    return np.setdiff1d(codes, plain)


def escape(text: str) -> str:
    r"""Put an apostrophe before text that a spreadsheet takes for a formula, also after a semicolon or a tab.

    Examples
    --------
    >>> [escape(text) for text in ("=1+1", "@sum", "'=1+1", "-", "-1.5", "F", "'F")]
    ["'=1+1", "'@sum", "''=1+1", '-', '-1.5', 'F', "'F"]
    >>> [escape(text) for text in ("a;=1+1", "a;-1", "a\t@sum", "a; =1", 'a;"=1')]
    ["a;'=1+1", 'a;-1', "a\t'@sum", "a; '=1", 'a;"\'=1']
    """
    return _FORMULA.sub(lambda start: f"{start[0][:-1]}'{start[0][-1]}", text)


def unescape(text: str) -> str:
    """Take away the apostrophes that :func:`escape` put in."""
    return _FORMULA.sub(lambda start: start[0][:-1].removesuffix("'") + start[0][-1], text)
