"""The format of a CSV file, given by the schema's key ``csv`` or guessed: separator, decimal sign, encoding.

The separator is guessed from the header, UTF-16 from the mark at the beginning. All else is UTF-8. Bytes that
are not UTF-8 are cp1252, which spreadsheets wrote before, each run of them by itself: no cell decides how
another is read.

A decimal comma is guessed if a column holds numbers such as ``1,5`` and none such as ``1.5``. If commas
separate cells, no column may hold ``1.5``, and each comma of that column must be in such a number. One record
can change this guess, but not what is released. Read the other way, the cells that decided it do not fit the
schema, and all others are read alike.
"""

from __future__ import annotations

import codecs
import gzip
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from dpsynth.errors import InputError

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
        said, keys = ", ".join(told[name] for name in found), dict.fromkeys(found, "…")
        return f"{said} (guessed; to say otherwise, {in_schema(**keys)})"


def in_schema(**keys: str) -> str:
    """Say how the format is set.

    Examples
    --------
    >>> in_schema(sep="';'", encoding="cp1252")
    "write csv: {sep: ';', encoding: cp1252} in the schema (a draft: --csv)"
    """
    written = ", ".join(f"{name}: {value}" for name, value in keys.items())
    return f"write csv: {{{written}}} in the schema (a draft: --csv)"


#: what :func:`dpsynth.table.io.write_table` writes
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

        ``names`` are declared columns. The separator that shows most of them is taken. A header that shows
        two or more of them between commas, and none as ``given`` says, is of a file that
        :func:`dpsynth.table.files.write_table` wrote.
        """
        encoding = given.encoding or _encoding(path)
        file = cls(path, replace(given, encoding=encoding), given.encoding is None and encoding == "utf-8")
        if given.sep is not None and (given.sep == OURS.sep or not names):
            return file
        with file.opened() as text:
            header = text.readline(LONGEST_LINE)
            header = from_old(header) or header
        if given.sep is None:
            return replace(file, format=replace(file.format, sep=_separator(header, names)))
        written_here = len(_shown(header, ",", names)) > 1 and not _shown(header, given.sep, names)
        return cls(path, OURS) if written_here else file

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
        return len(_shown(header, sep, names)), plain.count(sep)

    return max(SEPARATORS, key=fit)  # the first of equals: a comma


def _shown(header: str, sep: str, names: Collection[str]) -> set[str]:
    """Those of the names that are cells of the header."""
    return {cell.strip().strip('"') for cell in header.split(sep)} & {*names}


def _encoding(path: Path) -> str:
    with _opener(path)(path, "rb") as file:
        head = file.read(4)
    return next((encoding for mark, encoding in _MARKS if head.startswith(mark)), "utf-8")


def _opener(path: Path):  # type: ignore[no-untyped-def]  # of two signatures
    return gzip.open if path.suffix.lower() == ".gz" else open
