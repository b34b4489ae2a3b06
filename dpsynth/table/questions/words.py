"""Cells that are written in a form that no column of a schema has, or that hold more than one value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpsynth.errors import SchemaError
from dpsynth.table.cells import number
from dpsynth.table.column import Column
from dpsynth.table.draft import number_fields
from dpsynth.table.kinds.number_format import NumberFormat
from dpsynth.table.questions.seen import SeenColumn, SeenTable
from dpsynth.table.remarks import Answer, LeftOut, Remark, Remarks

#: a word beside numbers that may stand for no value: one with digits may be a code, as V45 is
_WORD = re.compile(r"[^\d]{1,12}")
#: share of cells that are numbers
_NUMBERS = 0.4
_LIMIT = re.compile(r"(?:[<>≤≥~]=?)\s*([+-]?\d+\.?\d*)")
_MARKED = re.compile(
    r"(?:(?:CHF|EUR|USD|GBP|SEK|NOK|DKK|INR|JPY|Rs\.?|kr\.?)\s?|[^\w\s.,'’-]{0,2}\s?)[-−]?"
    r"\d[\d.,'’ \u00a0\u202f]*\s?(?:%|[^\W\d_]{1,5}(?:/[^\W\d_]{1,3})?|[^\w\s])?"
)
_TWO = re.compile(r"\d{1,3}(?:\.\d+)?\s*[/x]\s*\d{1,3}(?:\.\d+)?")
_SEPARATOR = re.compile(r"\s*[;|]\s*|,\s*(?=[A-Za-z])")
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:\.\d{3})+")
#: how many times the smallest of such amounts the largest is, where none is below a thousand
_WIDE = 2.0
#: share of cells that must look alike, plain numbers beside them or not, and of those that do without
_MOST, _MARKS = 0.9, 0.1


def missing_word(table: SeenTable) -> Iterator[Remark]:
    """Ask whether a few words among numbers stand for no value, or for one below what can be measured."""
    for seen in table.drafted():
        cells = seen.cells
        if cells is None or seen.outcome or not cells.numbers or not cells.others:
            continue
        total = cells.n_numbers + cells.n_others
        limits = {word: match[1] for word in cells.others if (match := _LIMIT.fullmatch(word))}
        if cells.n_numbers < _NUMBERS * total or len(cells.numbers) < 10:
            continue
        if limits and len(limits) == len(cells.others):
            yield _limits(seen, limits)
        elif len(cells.others) <= 3 < cells.n_others and all(map(_WORD.fullmatch, cells.others)):
            words = tuple(cells.others)
            yield Remark(
                seen.name,
                "question",
                "does this word among numbers stand for no value? Then the column holds numbers",
                ", ".join(f"{word!r} in {n:,} of {total:,} cells" for word, n in cells.others.items()),
                "missing_word",
                (
                    Answer(
                        "missing", "it stands for no value, in all columns", options={"missing_words": words}
                    ),
                    Answer("category", "as drafted"),
                ),
                ", ".join(sorted(words)),
            )


def _limits(seen: SeenColumn, limits: dict[str, str]) -> Remark:
    assert seen.cells is not None
    ends = {float(text) for text in limits.values()}
    answers = [Answer("missing", "they stand for no value", options={"missing_words": tuple(limits)})]
    if seen.column is not None and seen.column.is_numeric:
        aliases = {word: float(text) for word, text in limits.items()}
        bounds = {"lower": min(*ends, *seen.column.bounds[:1]), "upper": max(*ends, *seen.column.bounds[1:])}
        answers.insert(0, Answer("limit", "read as the limit itself", {**bounds, "aliases": aliases}))
    return Remark(
        seen.name,
        "question",
        "cells beyond what can be measured: are they read as the limit?",
        ", ".join(f"{word!r} in {seen.cells.others[word]:,} cells" for word in list(limits)[:4]),
        "below_detection",
        tuple(answers),
        ", ".join(sorted(limits)),
    )


def written_otherwise(table: SeenTable) -> Iterator[Remark]:
    """Ask about cells with signs around a number, two numbers or several values."""
    for seen in table.columns:
        words = seen.counts
        if seen.outcome or len(words) < 3 or (seen.column is not None and not seen.column.is_categorical):
            continue
        if seen.column is not None and not all(isinstance(c, str) for c in seen.column.categories):
            continue
        if _alike(seen, _TWO.fullmatch):
            text = (
                "two numbers in a cell, such as a blood pressure. Give each a column of its own in the table"
            )
            example = f"such as {next(filter(_TWO.fullmatch, words))!r}"
            yield Remark(seen.name, "question", text, example, "two_numbers")
        elif _alike(seen, _marked):
            yield from _numbers_with_marks(seen)
        else:
            yield from _several(seen)


def _marked(word: str) -> bool:
    return bool(_MARKED.fullmatch(word)) and number(word) is None and not word.isdigit()


def _alike(seen: SeenColumn, alike: Callable[[str], object]) -> bool:
    """Whether nine in ten cells are so, or plain numbers beside one in ten that are."""
    marked = sum(n for word, n in seen.counts.items() if alike(word))
    plain = sum(n for word, n in seen.counts.items() if number(word) is not None)
    return marked >= _MARKS * seen.rows and marked + plain >= _MOST * seen.rows


def _numbers_with_marks(seen: SeenColumn) -> Iterator[Remark]:
    example = next(filter(_marked, seen.counts))
    text = "numbers with a unit, a currency or marks between thousands. "
    answers: tuple[Answer, ...] = ()
    if (fields := _fields_of(seen)) is not None:
        answers = (
            Answer("numbers", f"as numbers in the format {fields['format']}", fields),
            Answer("words", "as drafted"),
        )
    text += "Are they read as numbers?" if answers else "Write plain numbers in the table"
    yield Remark(seen.name, "question", text, f"such as {example!r}", "number_marks", answers)


def _fields_of(seen: SeenColumn) -> dict[str, Any] | None:
    """Fields of the column as numbers in the format that its cells have, None where it is not clear."""
    example = NumberFormat.likely(seen.counts)
    if example is None:
        return None
    read = NumberFormat.of(example).number
    found = {word: value for word in seen.counts if (value := read(word)) is not None}
    numbers = np.repeat([*found.values()], [seen.counts[word] for word in found])
    try:
        fields = number_fields(Remarks(seen.name), numbers, False, True, None)
        missing = bool(seen.values.isna().any()) or len(found) < len(seen.counts)
        made = {**fields, "format": example, "missing": missing}
        Column(name=seen.name, **made)
    except (LeftOut, SchemaError):
        return None
    # As drafted, its points were decimal points.
    return {**dict.fromkeys(("decimals", "scale", "special")), **made}


def _several(seen: SeenColumn) -> Iterator[Remark]:
    """Ask about cells that list values: there are fewer of these than of lists."""
    split = {word: _SEPARATOR.split(word) for word in seen.counts}
    lists = sum(n for word, n in seen.counts.items() if len(split[word]) > 1)
    values = {part for parts in split.values() for part in parts}
    if lists >= 0.1 * seen.rows and 2 * len(values) < len(split) and all(len(part) < 40 for part in values):
        example = next(word for word in seen.counts if len(split[word]) > 1)
        text = (
            "several values in a cell. Make a yes/no column of each frequent value in the table, and declare "
            "them as a group"
        )
        yield Remark(seen.name, "question", text, f"such as {example!r}", "several_values")


def thousands(table: SeenTable) -> Iterator[Remark]:
    """Ask whether points stand between thousands: all have three digits behind them."""
    for seen in table.drafted():
        words = [word for word in seen.counts if "." in word]
        others = [word for word in seen.counts if "." not in word]
        if (
            len(words) < 5
            or not all(map(_GROUPED.fullmatch, words))
            or any(word.startswith("0") for word in words)
        ):
            continue
        # Amounts below a thousand stand without a point. Of measured numbers some would end in a zero.
        numbers = [float(word) for word in words]
        wide = not others and max(map(abs, numbers)) >= _WIDE * min(map(abs, numbers))
        if wide or (others and all(len(word.lstrip("+-")) <= 3 for word in others)):
            answers: tuple[Answer, ...] = ()
            if (fields := _fields_of(seen)) is not None:
                answers = (
                    Answer("thousands", "between thousands", fields),
                    Answer("decimal", "decimal points, as drafted"),
                )
            yield Remark(
                seen.name,
                "question",
                "points between thousands, or decimal points?",
                f"{words[0]} beside {(others or words[1:])[0]}",
                "thousands",
                answers,
            )
