"""Results of an experiment, and their files: tables as a page, Markdown, CSV, JSON and plain text.

Replications and attackers all give a :class:`ResultsPage`. :func:`write_results` writes it. Results of
research are computed from real records without payment, so every file is confidential.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpsynth.errors import CONFIDENTIAL
from dpsynth.evaluation.estimates import Estimate
from dpsynth.files.storage import dump_json, make_folder, write_text
from dpsynth.files.text import inert, text_table
from dpsynth.report.blocks import (
    Block,
    Bullets,
    Cell,
    Facts,
    Heading,
    Plots,
    Section,
    Sentence,
    TableBlock,
    paragraph,
)
from dpsynth.report.page import Banner, render_sections, section_lines
from dpsynth.table.cells import escape

#: in place of a number that is not defined
NOT_KNOWN = "n/a"
_WARNING = "CONFIDENTIAL: do not share."


@dataclass(frozen=True)
class SheetCell:
    """A cell: its text, and its numbers by name, not rounded."""

    text: str
    numbers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Sheet:
    """A table. The first cell of each row names it."""

    name: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[SheetCell, ...], ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        name: str,
        title: str,
        header: Iterable[str],
        rows: Iterable[Iterable[str | SheetCell]],
        *notes: str,
    ) -> Sheet:
        """Make a sheet. A text alone is a cell without numbers."""
        cells = tuple(tuple(SheetCell(e) if isinstance(e, str) else e for e in row) for row in rows)
        return cls(name, title, tuple(header), cells, notes)

    def to_csv(self) -> str:
        """Return one line for each cell: its row, its column, its text, and its numbers, each in a column.

        Each line is marked as confidential. Texts that name columns and categories begin no formula.

        Examples
        --------
        >>> Sheet.of("a", "A", ("x", "=y"), [("@b", SheetCell("-1 (x)", {"value": -1.0}))]).to_csv()
        "row,column,text,value,release\\n'@b,'=y,-1 (x),-1.0,confidential\\n"
        """
        names = list(dict.fromkeys(name for row in self.rows for entry in row for name in entry.numbers))
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["row", "column", "text", *names, "release"])
        for row in self.rows:
            for column, entry in zip(self.header[1:], row[1:], strict=True):
                numbers = (str(entry.numbers[name]) if name in entry.numbers else "" for name in names)
                said = entry.text if entry.numbers else escape(entry.text)
                writer.writerow([escape(row[0].text), escape(column), said, *numbers, CONFIDENTIAL])
        return text.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """JSON-able record."""
        rows = [[{"text": entry.text, **entry.numbers} for entry in row] for row in self.rows]
        return {**vars(self), "header": list(self.header), "rows": rows, "notes": list(self.notes)}

    def blocks(self) -> list[Block]:
        """The table of a page and its notes."""
        rows = tuple(
            # Numbers stay on one line. With an interval they may break, or the table would be too wide.
            (
                Cell(row[0].text),
                *(Cell(e.text, number=bool(e.numbers) and "(" not in e.text) for e in row[1:]),
            )
            for row in self.rows
        )
        table = TableBlock(f"{self.title} (internal)", self.header, rows) if rows else Heading(self.title)
        return [table, Bullets(tuple(map(Sentence, self.notes)))] if self.notes else [table]


@dataclass(frozen=True)
class SheetGroup:
    """Sheets that answer one question, below the plots that show it."""

    anchor: str
    title: str
    sheets: tuple[Sheet, ...]
    plots: tuple[Plots, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ResultsPage:
    """All results of one experiment.

    Parameters
    ----------
    title : str
        Title of the page.
    said : tuple of str
        Paragraphs: a question, a conclusion.
    facts : tuple of (str, str)
        What was done, by name.
    reading : tuple of str
        How to read the numbers.
    problems : tuple of str
        What could not be done, and why. It may show records.
    groups : tuple of SheetGroup
        The tables.
    record : mapping
        The same and more as plain data.
    private : str
        What the page says beside "confidential, do not share".
    warnings : tuple of (str, str)
        Further warnings: first words and rest.
    mark : str
        Before each line of plain text, if it is not empty, so that no line is quoted without it.
    """

    title: str
    record: Mapping[str, Any]
    groups: tuple[SheetGroup, ...]
    said: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    reading: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    private: str = "Nearly everything here was computed from real records, and no guarantee covers it."
    warnings: tuple[tuple[str, str], ...] = ()
    mark: str = ""

    @property
    def sheets(self) -> list[Sheet]:
        """All tables, in order."""
        return [sheet for group in self.groups for sheet in group.sheets]

    def sections(self) -> list[Section]:
        """Sections of the page and of the Markdown."""
        done: list[Block] = [*map(paragraph, self.said)]
        done.append(Facts(tuple((name, Sentence(text)) for name, text in self.facts)))
        if self.reading:
            done += [Heading("How to read the numbers"), Bullets(tuple(map(Sentence, self.reading)))]
        found = [Section("done", "Procedure", tuple(done))]
        if self.problems:
            refused = Bullets(tuple(Sentence(text, internal=True) for text in self.problems))
            found.append(Section("refused", "Refused parts", (refused,)))
        for group in self.groups:
            tables = (block for sheet in group.sheets for block in sheet.blocks())
            found.append(Section(group.anchor, group.title, (*group.plots, *tables)))
        return found

    def to_html(self) -> str:
        """Return a page in the looks of a report, see :mod:`dpsynth.report.page`."""
        banners = [Banner("internal", _WARNING, self.private), *(Banner("void", *w) for w in self.warnings)]
        return render_sections(self.title, self.sections(), banners, mode="internal")

    def to_markdown(self) -> str:
        """Return the results for people without a browser."""
        lines = [f"# {inert(self.title)}", ""]
        for first, rest in ((_WARNING, self.private), *self.warnings):
            lines += [f"**{first}** {rest}", ""]
        return "\n".join([*lines, *(line for section in self.sections() for line in section_lines(section))])

    def to_text(self) -> str:
        """Return the results for a terminal, the conclusions last."""
        lines = [self.title, *(f"{name}: {text}" for name, text in self.facts)]
        for sheet in self.sheets:
            rows = [[entry.text for entry in row] for row in sheet.rows]
            lines += ["", sheet.title, *text_table(sheet.header, rows).splitlines(), *sheet.notes]
        lines += ["", *self.said, "These results are confidential."]
        return "\n".join(f"{self.mark} | {line}" if self.mark else line for line in lines)


def write_results(page: ResultsPage, folder: Path) -> tuple[str, ...]:
    """Write ``results.md``, ``results.html``, ``results.json`` and ``tables/NAME.csv``.

    Each file is written wholly or not at all. Tables that an earlier call wrote, and this one does not, are
    removed. Return the files' names.

    Notes
    -----
    Privacy: posts no event. Most files were computed from real records: confidential.
    """
    record = {**page.record, "internal": True, "sheets": [sheet.to_dict() for sheet in page.sheets]}
    files = {
        "results.md": page.to_markdown(),
        "results.html": page.to_html(),
        "results.json": dump_json(record) + "\n",
        **{f"tables/{sheet.name}.csv": sheet.to_csv() for sheet in page.sheets},
    }
    make_folder(folder)
    make_folder(folder / "tables")
    for old in (folder / "tables").glob("*.csv"):
        if f"tables/{old.name}" not in files:
            old.unlink()
    for name, text in files.items():
        write_text(folder / name, text)
    return tuple(files)


def lone_number(value: float | None, shown: Callable[[float], str]) -> SheetCell:
    """A number that stands alone.

    Examples
    --------
    >>> lone_number(0.723, "{:.2f}".format), lone_number(None, str).text
    (SheetCell(text='0.72', numbers={'value': 0.723}), 'n/a')
    """
    return SheetCell(NOT_KNOWN) if value is None else SheetCell(shown(value), {"value": value})


def counted(count: int, of: int) -> SheetCell:
    """How many of how many.

    Examples
    --------
    >>> counted(3, 5), counted(0, 0).text
    (SheetCell(text='3 of 5', numbers={'count': 3, 'of': 5}), 'n/a')
    """
    return SheetCell(f"{count} of {of}", {"count": count, "of": of}) if of else SheetCell(NOT_KNOWN)


def share_with_interval(estimate: Estimate) -> SheetCell:
    """A share with its interval, in per cent.

    Examples
    --------
    >>> share_with_interval(Estimate(0.75, 0.7, 0.8)).text
    '75.0 % (70.0 to 80.0)'
    """
    ends = {"value": estimate.value, "lower": estimate.lower, "upper": estimate.upper}
    value, lower, upper = (f"{100 * end:.1f}" for end in ends.values())
    return SheetCell(f"{value} % ({lower} to {upper})", ends)
