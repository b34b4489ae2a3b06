"""CSV files: how one is written, and its cells as text."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import warnings
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd

from dpsynth.checks import given_twice
from dpsynth.errors import DataError, InputError, OwnerWarning, of_records
from dpsynth.table.cells import ABSENT, TextCells, number
from dpsynth.table.column import Column

# ------------------------------------------------------------------------------------------------
# The format of a CSV file, given or guessed: separator, decimal sign and encoding.
#
# The separator is guessed from the header, UTF-16 from the mark at the beginning. All else is UTF-8. Bytes
# that are not UTF-8 are cp1252, which spreadsheets wrote before, each run of them by itself: no cell decides
# how another is read.
#
# A decimal comma is guessed if a column holds numbers such as ``1,5`` and none such as ``1.5``. If commas
# separate cells, no column may hold ``1.5``, and each comma of that column must be in such a number. One
# record can change this guess, but not what is released. Read the other way, the cells that decided it do
# not fit the schema, and all others are read alike.

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_NAMES = {"tab": "\t", "\\t": "\t"}
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
#: characters of a line: what is longer is no table, such as zeros that a small compressed file stands for
LONGEST_LINE = 1 << 24
#: what spreadsheets write that do not write UTF-8
_OLD = "cp1252"
#: what bytes that are not UTF-8 are read as by the error handler `surrogateescape`
_ESCAPED = re.compile("[\udc80-\udcff]+")
_QUOTED = re.compile(r'"[^"]*"?')
_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][-+]?\d+)?")
_POINT = re.compile(r"[+-]?\d*\.\d+(?:[eE][-+]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+")


@dataclass(frozen=True)
class CsvFormat:
    """The format of a CSV file. Fields that are None are guessed.

    ``sep`` is one character between cells, or ``tab``. ``decimal`` is ``.`` or ``,``. ``encoding`` is such as
    ``utf-8`` or ``cp1252``. Raises InputError if one is not such a sign or not known.
    """

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sep", _NAMES.get(str(self.sep), self.sep))
        if self.sep is not None and (len(self.sep) != 1 or self.sep.isalnum() or self.sep in "\"'\n\r.+-"):
            raise InputError(f"sep must be tab or one sign such as a semicolon, got {self.sep!r}")
        if self.decimal not in (None, ".", ","):
            raise InputError(f"decimal must be '.' or ',', got {self.decimal!r}")
        try:
            "a".encode(self.encoding or "utf-8")
        except (LookupError, ValueError):  # such as of zlib, which is no text
            raise InputError(f"encoding {self.encoding!r} is not known: use utf-8 or cp1252") from None

    def guessed(self, given: CsvFormat, old: int | None) -> str | None:
        """Describe unusual guesses, or return None. Fields that ``given`` has were not guessed.

        ``old``: the first line of a mixed file with a cell of cp1252.
        """
        names = [name for name in ("sep", "decimal", "encoding") if getattr(given, name) is None]
        found = [name for name in names if getattr(self, name) != getattr(OURS, name)]
        told = {"sep": f"{sep_name(self.sep)}s between cells", "decimal": "decimal commas"}
        told["encoding"] = f"encoding {self.encoding}"
        if old is not None:
            found.append("encoding")
            told["encoding"] = f"cells that are not UTF-8 as cp1252, first in line {old}"
        if not found:
            return None
        said, options = ", ".join(told[name] for name in found), ", ".join(f"--{name}" for name in found)
        return f"{said} (guessed; to say otherwise: {options})"


#: what :func:`dpsynth.table.files.write_table` writes
OURS = CsvFormat(",", ".", "utf-8")


@dataclass(frozen=True)
class CsvFile:
    """A file and how it is written. ``mixed``: whether bytes that are not UTF-8 are of cp1252."""

    path: Path
    format: CsvFormat
    mixed: bool = False

    def __str__(self) -> str:
        return str(self.path)

    @classmethod
    def of(cls, path: Path, given: CsvFormat, names: Collection[str] = ()) -> CsvFile:
        """Guess separator and encoding where they are not given, from the file's first line.

        ``names`` are declared columns. The separator that shows most of them is taken.
        """
        encoding = given.encoding or _encoding(path)
        file = cls(path, replace(given, encoding=encoding), given.encoding is None and encoding == "utf-8")
        if given.sep is not None:
            return file
        with file.opened() as text:
            header = text.readline(LONGEST_LINE)
            sep = _separator(from_old(header) or header, names)
        return replace(file, format=replace(file.format, sep=sep))

    @contextmanager
    def opened(self) -> Iterator[IO[str]]:
        """Open the file as text, with bytes that are not UTF-8 for `from_old`, if it is mixed."""
        encoding, errors = str(self.format.encoding), "surrogateescape" if self.mixed else "strict"
        # a mark at the beginning is no part of the first name
        known = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
        with _opener(self.path)(self.path, "rt", encoding=known, errors=errors, newline="") as file:
            yield file


def from_old(line: str) -> str | None:
    """A line of a mixed file, with the characters of cp1252 in place of bytes that are not UTF-8.

    None if one of them is no character there.

    Examples
    --------
    >>> [from_old(line.decode(errors="surrogateescape")) for line in (b"\\xc3\\xa4 \\xe4", b"\\x81")]
    ['ä ä', None]
    """
    try:
        line.encode()  # in which such bytes fail, faster than they are searched for
        return line
    except UnicodeEncodeError:
        pass
    try:
        return _ESCAPED.sub(lambda run: run[0].encode(errors="surrogateescape").decode(_OLD), line)
    except UnicodeDecodeError:
        return None


def guess_decimal(columns: Iterable[list[str]], sep: str | None) -> str:
    """Return the decimal sign of a file whose columns of cells these are."""
    found = "."
    for cells in columns:
        words = {cell for cell in cells if "," in cell or "." in cell}
        commas = [word for word in words if _COMMA.fullmatch(word)]
        plain = not any(_POINT.fullmatch(word) for word in words)
        if sep == "," and not plain:
            return "."
        # such as "1,2,3", the answers to a question: quoted where commas separate cells
        listed = sep == "," and len(commas) < sum("," in word for word in words)
        if commas and plain and not listed and not all(map(_THOUSANDS.fullmatch, commas)):
            found = ","
    return found


def with_points(cells: list[str]) -> list[str]:
    """Replace decimal commas by points. Refuse numbers with points, which could separate thousands."""
    if any("." in cell and _POINT.fullmatch(cell) for cell in cells):
        raise ValueError("holds a number with a decimal point, and numbers here have decimal commas")
    return [cell.replace(",", ".") if "," in cell and _COMMA.fullmatch(cell) else cell for cell in cells]


def sep_name(sep: str | None) -> str:
    """Name of a separator."""
    return SEPARATORS.get(str(sep), repr(sep))


def _separator(header: str, names: Collection[str]) -> str:
    plain = _QUOTED.sub("", header)

    def fit(sep: str) -> tuple[int, int]:
        cells = {cell.strip().strip('"') for cell in header.split(sep)}
        return len(cells & {*names}), plain.count(sep)

    return max(SEPARATORS, key=fit)  # the first of equals: a comma


def _encoding(path: Path) -> str:
    with _opener(path)(path, "rb") as file:
        head = file.read(4)
    return next((encoding for mark, encoding in _MARKS if head.startswith(mark)), "utf-8")


def _opener(path: Path):  # type: ignore[no-untyped-def]  # of two signatures
    return gzip.open if path.suffix.lower() == ".gz" else open


# ------------------------------------------------------------------------------------------------
# The cells of a CSV file as text, with decimal points in columns of numbers.

_LINE_BREAK = re.compile(r"\r\n|\r|\n")


def text_frame(
    source: Path, columns: Iterable[Column] | None, given: CsvFormat
) -> tuple[pd.DataFrame, CsvFile]:
    """Read a CSV file's cells as text, and how it is written, see :func:`dpsynth.table.files.read_cells`."""
    known = {column.name: column for column in columns or ()}
    file = CsvFile.of(source, given, known.keys())
    names, rows, old = _csv_cells(file, known)
    absent_words = frozenset(("",)) if columns is None else ABSENT
    texts = [[row[position].strip() for row in rows] for position in range(len(names))]
    if given.decimal is None:
        read = [
            t for name, t in zip(names, texts, strict=True) if columns is None or _of_numbers(known.get(name))
        ]
        file = replace(file, format=replace(file.format, decimal=guess_decimal(read, file.format.sep)))
    cells = {}
    for name, text in zip(names, texts, strict=True):
        if file.format.decimal == ",":
            text = _numbers_with_points(source, name, text, known.get(name), columns is None)
        column = known.get(name)
        kept = {c for c in column.categories if isinstance(c, str)} if column is not None else set()
        absent = absent_words - kept
        cells[name] = np.array([None if cell in absent else cell for cell in text], dtype=object)
    if (said := file.format.guessed(given, old)) is not None:
        warnings.warn(f"{source}: read with {said}", OwnerWarning, stacklevel=4)
    return pd.DataFrame(cells, index=range(len(rows)), columns=names, dtype=object), file


def _numbers_with_points(
    source: Path, name: str, text: list[str], column: Column | None, drafting: bool
) -> list[str]:
    """Replace decimal commas by points in a column of numbers. ``1,2`` may be a category elsewhere."""
    if column is None and not drafting:
        return text
    numeric = _of_numbers(column)
    try:
        if numeric:
            return with_points(text)
        if drafting and any("," in cell for cell in text):
            points = with_points(text)
            return points if TextCells.of(pd.Series(points, dtype=object)).is_numeric else text
    except ValueError as problem:
        if numeric:
            raise of_records(
                f"{source}: column {name!r} {problem}. Write all numbers alike, or say --decimal ."
            ) from None
    return text


def _of_numbers(column: Column | None) -> bool:
    if column is None or column.is_date:
        return False
    return column.is_numeric or not isinstance(column.categories[0], str | bool)


def _csv_cells(file: CsvFile, known: Collection[str]) -> tuple[list[str], list[list[str]], int | None]:
    """The names, the rows and the number of the first line with a cell of cp1252, see `CsvFile.mixed`."""
    # The csv module rather than pandas, which takes a row that is too long as an index and fills up one that
    # is too short.
    old: list[int] = []
    with file.opened() as text:
        reader = csv.reader(_lines(text, file, old), delimiter=str(file.format.sep), strict=True)
        ended = 0  # the last line of the record before
        try:
            header = next(reader, [])
            if not header:
                raise DataError(f"{file}: the file has no header line")
            names = [name.strip() for name in header]
            _check_header(file, names, known)
            rows = []
            ended = reader.line_num
            for row in reader:
                if len(row) == len(names):
                    if reader.line_num > ended + 1:
                        _refuse_swallowed(file, row, names, ended + 1)
                    rows.append(row)
                elif row:  # a blank line is no record
                    raise of_records(
                        f"{file}, line {reader.line_num}: {len(row)} cells where the header has {len(names)}"
                        f". Put a cell that holds a {sep_name(file.format.sep)} in double quotes, or name "
                        "another separator with --sep"
                    )
                ended = reader.line_num
        except csv.Error as problem:
            why = f"not CSV: {problem}"
            if "field limit" in str(problem):
                why = f"a cell of more than {csv.field_size_limit():,} characters. Is a double quote absent?"
            if reader.line_num > ended + 1:
                why += f". The record begins in line {ended + 1}: is a double quote there not closed?"
            raise of_records(f"{file}, line {reader.line_num}: {why}") from None
    return names, rows, old[0] if old else None


def _refuse_swallowed(file: CsvFile, row: list[str], names: list[str], line: int) -> None:
    """Refuse a record with a quote that opens in it and closes in another one, with the records between.

    ``line``: the record's first.
    """
    for k, cell in enumerate(row):
        lines = _LINE_BREAK.split(cell)
        if len(lines) > 1 and len(row) > 1 and (found := _swallowed(row, k, lines, str(file.format.sep))):
            raise of_records(
                f"{file}, line {line}: a double quote opens in column {names[k]!r} and closes in line "
                f"{line + len(lines) - 1}, but line {line + found} looks like a record of its own. Take "
                "the quote out, or write it twice in a quoted cell. Join the lines if they are one text"
            )
        line += len(lines) - 1


def _swallowed(row: list[str], k: int, lines: list[str], sep: str) -> int:
    """Number of a line of a row's cell that looks like a record, 0 if the cell may be a note of many lines.

    If the quotes are strays, each line is a record, the first and the last with the cells outside the quotes.
    One looks like a record if it has as many cells, and no words with a blank in front: these are parts of a
    sentence. Either two lines or more and all of them are so, or one whose cells are mostly of the row's own
    kinds.
    """
    records = [line.split(sep) for line in lines]
    records[0], records[-1] = row[:k] + records[0], records[-1] + row[k + 1 :]
    sized = [
        len(cells) == len(row)
        and all(_in_prose(own) or not _in_prose(one) for one, own in zip(cells, row, strict=True))
        for cells in records
    ]
    like = [fits and _alike(cells, row, k) for cells, fits in zip(records, sized, strict=True)]
    last = len(lines) - 1
    between = [i for i in range(1, last) if lines[i].strip()]
    if len(between) > 1 and all(sized[i] for i in (0, *between, last)):
        return between[0]
    if not between and like[0] and like[last]:
        return last
    return next((i for i in between if like[i]), 0)


def _alike(cells: list[str], row: list[str], k: int) -> bool:
    """Whether most cells beside column ``k`` have blanks and digits where the row's have."""
    pairs = zip(cells[:k] + cells[k + 1 :], row[:k] + row[k + 1 :], strict=True)
    kinds = [_kind(one) == _kind(own) for one, own in pairs if not ABSENT & {one.strip(), own.strip()}]
    return 2 * kinds.count(False) < max(len(kinds), 1)


def _in_prose(cell: str) -> bool:
    return cell[:1] == " " and number(cell.strip()) is None


def _kind(cell: str) -> tuple[bool, bool, bool]:
    digits = any(map(str.isdigit, cell))
    return cell[:1] == " ", digits, digits and " " in cell.strip()


def _check_header(file: CsvFile, names: list[str], known: Collection[str]) -> None:
    other = next((sign for sign in SEPARATORS if sign in names[0]), None)
    if len(names) == 1 and other is not None and names[0] not in known:
        raise DataError(f"{file}: the cells seem to be separated by a {sep_name(other)}. Say so with --sep")
    if (twice := given_twice(names)) is not None:
        raise DataError(
            f"{file}: the header names {twice!r} more than once. Give each column a name of its own"
        )


def _lines(text: IO[str], file: CsvFile, old: list[int]) -> Iterator[str]:
    """The lines of a file. ``old`` gets the numbers of those with a cell of cp1252."""
    for place, line in enumerate(iter(lambda: text.readline(LONGEST_LINE), ""), start=1):
        if len(line) == LONGEST_LINE:
            raise of_records(
                f"{file}, line {place}: longer than {LONGEST_LINE:,} characters. It is no CSV file"
            )
        if "\0" in line:
            raise of_records(
                f"{file}, line {place}: a NUL byte: the file is damaged or not UTF-8 text. Save it as "
                "UTF-8, or say --encoding"
            )
        if file.mixed and (read := from_old(line)) != line:
            if read is None:
                raise of_records(
                    f"{file}, line {place}: a byte that is neither UTF-8 nor cp1252. Say --encoding, or "
                    "save it as UTF-8 (spreadsheets call that CSV UTF-8)"
                )
            old.append(place)
            line = read
        yield line


def csv_line(path: str | Path | CsvFile, row: int) -> int | None:
    """Return the line on which data row ``row`` (from 0) of a CSV file ends, or None for other files.

    The file is read again. Quoted cells may hold line breaks, and blank lines are skipped.
    """
    if Path(str(path)).suffix.lower() != ".csv":
        return None  # Parquet has no lines, and those of a compressed file help nobody
    source = path if isinstance(path, CsvFile) else CsvFile.of(Path(path), CsvFormat())
    with source.opened() as file:
        reader = csv.reader(file, delimiter=str(source.format.sep))
        records = (reader.line_num for cells in reader if cells)
        return next((line for i, line in enumerate(records) if i == row + 1), None)
