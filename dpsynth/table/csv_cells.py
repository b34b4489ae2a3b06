"""The cells of a CSV file as text, with decimal points in columns of numbers."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd

from dpsynth.checks import given_twice
from dpsynth.errors import DataError, OwnerWarning, of_records
from dpsynth.table.cells import ABSENT, TextCells
from dpsynth.table.column import Column
from dpsynth.table.csv_format import (
    LONGEST_LINE,
    SEPARATORS,
    CsvFile,
    CsvFormat,
    guess_decimal,
    sep_name,
    with_points,
)


def text_frame(
    source: Path, columns: Iterable[Column] | None, given: CsvFormat
) -> tuple[pd.DataFrame, CsvFile]:
    """Read a CSV file's cells as text, and how it is written, see :func:`dpsynth.table.io.read_cells`."""
    known = {column.name: column for column in columns or ()}
    file = CsvFile.of(source, given, known.keys())
    names, rows = _csv_cells(file, known)
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
    if (said := file.format.guessed(given)) is not None:
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


def _csv_cells(file: CsvFile, known: Collection[str]) -> tuple[list[str], list[list[str]]]:
    # The csv module rather than pandas, which takes a row that is too long as an index and fills up one that
    # is too short.
    with file.opened() as text:
        reader = csv.reader(_lines(text, file), delimiter=str(file.format.sep), strict=True)
        try:
            header = next(reader, [])
            if not header:
                raise DataError(f"{file}: the file has no header line")
            names = [name.strip() for name in header]
            _check_header(file, names, known)
            rows = []
            for row in reader:
                if len(row) == len(names):
                    rows.append(row)
                elif row:  # a blank line is no record
                    raise of_records(
                        f"{file}, line {reader.line_num}: {len(row)} cells where the header has {len(names)}"
                        f". Put a cell that holds a {sep_name(file.format.sep)} in double quotes, or name "
                        "another separator with --sep"
                    )
        except csv.Error as problem:
            why = f"not CSV: {problem}"
            if "field limit" in str(problem):
                why = f"a cell of more than {csv.field_size_limit():,} characters. Is a double quote absent?"
            raise of_records(f"{file}, line {reader.line_num}: {why}") from None
    return names, rows


def _check_header(file: CsvFile, names: list[str], known: Collection[str]) -> None:
    other = next((sign for sign in SEPARATORS if sign in names[0]), None)
    if len(names) == 1 and other is not None and names[0] not in known:
        raise DataError(f"{file}: the cells seem to be separated by a {sep_name(other)}. Say so with --sep")
    if (twice := given_twice(names)) is not None:
        raise DataError(
            f"{file}: the header names {twice!r} more than once. Give each column a name of its own"
        )


def _lines(text: IO[str], file: CsvFile) -> Iterator[str]:
    for number, line in enumerate(iter(lambda: text.readline(LONGEST_LINE), ""), start=1):
        if len(line) == LONGEST_LINE:
            raise of_records(
                f"{file}, line {number}: longer than {LONGEST_LINE:,} characters. It is no CSV file"
            )
        if "\0" in line:
            raise of_records(
                f"{file}, line {number}: a NUL byte: the file is damaged or not UTF-8 text. Save it as "
                "UTF-8, or say --encoding"
            )
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
