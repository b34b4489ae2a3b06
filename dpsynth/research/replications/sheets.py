"""A table of a study: texts for people, and the numbers behind them for programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dpsynth.errors import CONFIDENTIAL
from dpsynth.files.text import inert
from dpsynth.research.replications.results import OverSeeds, Results
from dpsynth.research.replications.trial import Measured
from dpsynth.studies.study import effect_texts, interval_texts
from dpsynth.table.cells import escape

#: in place of a number that is not defined
NOT_KNOWN = "n/a"


@dataclass(frozen=True)
class SheetCell:
    """A cell: its text, and its numbers by name, not rounded."""

    text: str
    numbers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Sheet:
    """A table."""

    name: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[SheetCell, ...], ...]
    notes: tuple[str, ...] = ()

    def to_markdown(self) -> str:
        """Return a heading, the table and its notes.

        Examples
        --------
        >>> row = (SheetCell("b|c"), SheetCell("1.0", {"value": 1.0}))
        >>> print(Sheet("a", "A", ("x", "y"), (row,)).to_markdown())
        ### A
        <BLANKLINE>
        | x | y |
        | --- | --- |
        | b\\|c | 1.0 |
        <BLANKLINE>
        """
        lines = [f"### {inert(self.title)}", ""]
        if self.rows:
            lines += [_line(self.header), _line(["---"] * len(self.header))]
            lines += [_line([entry.text for entry in row]) for row in self.rows]
            lines.append("")
        lines += [f"- {inert(note)}" for note in self.notes]
        return "\n".join([*lines, ""] if self.notes else lines)

    def to_csv(self) -> str:
        """Return one line for each cell: its row, its column, its text, and its numbers, each in a column.

        Each line is marked as confidential. Texts that name columns and categories begin no formula.

        Examples
        --------
        >>> Sheet("a", "A", ("x", "=y"), ((SheetCell("@b"), SheetCell("-1 (x)", {"value": -1.0})),)).to_csv()
        "row,column,text,value,release\\n'@b,'=y,-1 (x),-1.0,confidential\\n"
        """
        names = list(dict.fromkeys(name for row in self.rows for entry in row for name in entry.numbers))
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["row", "column", "text", *names, "release"])
        for row in self.rows:
            for column, entry in zip(self.header[1:], row[1:], strict=True):
                numbers = (repr(entry.numbers[name]) if name in entry.numbers else "" for name in names)
                said = entry.text if entry.numbers else escape(entry.text)
                writer.writerow([escape(row[0].text), escape(column), said, *numbers, CONFIDENTIAL])
        return text.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """JSON-able record."""
        rows = [[{"text": entry.text, **entry.numbers} for entry in row] for row in self.rows]
        return {
            "name": self.name,
            "title": self.title,
            "header": list(self.header),
            "rows": rows,
            "notes": list(self.notes),
        }


def _line(texts: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(map(inert, texts)) + " |"


def lone_number(value: float | None, shown: Callable[[float], str]) -> SheetCell:
    """A number that stands alone.

    Examples
    --------
    >>> lone_number(0.723, three_decimals), lone_number(None, three_decimals).text
    (SheetCell(text='0.723', numbers={'value': 0.723}), 'n/a')
    """
    return SheetCell(NOT_KNOWN) if value is None else SheetCell(shown(value), {"value": value})


def over_seeds(found: OverSeeds | None, shown: Callable[[float], str], seeds: int) -> SheetCell:
    """A number over seeds, in parentheses the lowest and the highest.

    It says of how many ``seeds`` it is, unless it is of all.

    Examples
    --------
    >>> over_seeds(OverSeeds.of([0.7, 0.9, 0.8]), three_decimals, 3).text
    '0.800 (0.700 to 0.900)'
    >>> over_seeds(OverSeeds.of([0.7, None]), three_decimals, 2).text
    '0.700 [1 of 2 seeds]'
    """
    if found is None:
        return SheetCell(NOT_KNOWN)
    return _over_seeds(found, (shown(found.median), shown(found.lowest), shown(found.highest)), seeds)


def measured_over_seeds(
    results: Results, chosen: Sequence[Measured], names: Sequence[str]
) -> tuple[SheetCell, ...]:
    """Measures of the tables that were kept, over seeds."""
    return tuple(
        over_seeds(results.over_seeds(chosen, name), three_decimals, results.seeds) for name in names
    )


def effects_over_seeds(found: OverSeeds | None, seeds: int) -> SheetCell:
    """An estimate over seeds, with the decimals that its spread deserves."""
    if found is None:
        return SheetCell(NOT_KNOWN)
    return _over_seeds(found, interval_texts(found.median, found.lowest, found.highest), seeds)


def _over_seeds(found: OverSeeds, texts: tuple[str, str, str], seeds: int) -> SheetCell:
    middle, lowest, highest = texts
    text = f"{middle} ({lowest} to {highest})" if found.seeds > 1 else middle
    if found.seeds < seeds:
        text += f" [{found.seeds} of {seeds} seeds]"
    numbers = {"median": found.median, "lowest": found.lowest, "highest": found.highest}
    return SheetCell(text, {**numbers, "seeds": found.seeds})


def effect(told: Any, rest: str = "") -> SheetCell:
    """An estimate with its interval, and a remark."""
    if told is None:
        return SheetCell(NOT_KNOWN)
    numbers = {"estimate": told.estimate, "lower": told.lower, "upper": told.upper}
    estimate, lower, upper = effect_texts(numbers)
    return SheetCell(f"{estimate} ({lower} to {upper}){rest}", numbers)


def counted(count: int, of: int) -> SheetCell:
    """How many of how many.

    Examples
    --------
    >>> counted(3, 5), counted(0, 0).text
    (SheetCell(text='3 of 5', numbers={'count': 3, 'of': 5}), 'n/a')
    """
    return SheetCell(f"{count} of {of}", {"count": count, "of": of}) if of else SheetCell(NOT_KNOWN)


def three_decimals(value: float) -> str:
    """Three decimals, as measures are printed, and never a negative zero."""
    return f"{value:z.3f}"


def two_decimals(value: float) -> str:
    """Two decimals, as Pedersen (2022) prints percentages."""
    return f"{value:z.2f}"


def rates_over_seeds(found: OverSeeds | None, seeds: int) -> SheetCell:
    """A share over seeds, in per cent.

    Examples
    --------
    >>> rates_over_seeds(OverSeeds.of([0.0625]), 1)
    SheetCell(text='6.25', numbers={'median': 6.25, 'lowest': 6.25, 'highest': 6.25, 'seeds': 1})
    """
    if found is not None:
        found = OverSeeds(100 * found.median, 100 * found.lowest, 100 * found.highest, found.seeds)
    return over_seeds(found, two_decimals, seeds)
