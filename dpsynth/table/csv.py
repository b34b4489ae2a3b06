"""The cells of a CSV file as text, with decimal points in columns of numbers."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd

from dpsynth.checks import given_twice
from dpsynth.errors import DataError, OwnerWarning, of_records
from dpsynth.table.cells import ABSENT, TextCells, number
from dpsynth.table.column import Column
from dpsynth.table.csv_format import (
    LONGEST_LINE,
    SEPARATORS,
    CsvFile,
    CsvFormat,
    from_old,
    guess_decimal,
    in_schema,
    sep_name,
    with_points,
)

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
                f"{source}: column {name!r} {problem}. Write all numbers alike, or {in_schema(decimal='.')}"
            ) from None
    return text


def _of_numbers(column: Column | None) -> bool:
    return column is not None and column.written_as_numbers


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
                        f". Put a cell that holds a {sep_name(file.format.sep)} in double quotes. If "
                        f"another sign separates cells, {in_schema(sep='…')}"
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
        sep = "tab" if other == "\t" else repr(other)
        raise DataError(
            f"{file}: the cells seem to be separated by a {sep_name(other)}. If so, {in_schema(sep=sep)}"
        )
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
                f"UTF-8, or {in_schema(encoding='…')}"
            )
        if file.mixed and (read := from_old(line)) != line:
            if read is None:
                raise of_records(
                    f"{file}, line {place}: a byte that is neither UTF-8 nor cp1252. Save it as UTF-8 "
                    f"(spreadsheets call that CSV UTF-8), or {in_schema(encoding='…')}"
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
