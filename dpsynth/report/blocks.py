"""Blocks of a page, as plain frozen records: paragraphs, tables and figures, and tables of measures.

The builders of the sections make these from numbers. The template turns them into HTML. Everything that came
from real records is marked, and the template shows the mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from dpsynth.evaluation.results import Evaluation, Measure
from dpsynth.report.plots import Plot
from dpsynth.report.verdicts import Severity, Verdict
from dpsynth.report.words import shown, shown_interval, shown_with_interval


@dataclass(frozen=True)
class Sentence:
    """One sentence in plain words, and whether a number in it was computed from real records."""

    text: str
    internal: bool = False


@dataclass(frozen=True)
class Paragraph:
    """Sentences that belong together."""

    kind: ClassVar[str] = "paragraph"
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    kind: ClassVar[str] = "heading"
    text: str


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    kind: ClassVar[str] = "bullets"
    items: tuple[Sentence, ...]


@dataclass(frozen=True)
class Item:
    """A line that unfolds: its title is always seen, its sentences are seen on demand and on paper.

    ``kind`` is its colour: ``good``, ``caution`` or ``bad``. ``label`` says the same in words.
    """

    kind: str
    label: str
    title: str
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True)
class Items:
    """Lines that unfold, under a heading if it is not empty."""

    kind: ClassVar[str] = "items"
    items: tuple[Item, ...]
    heading: str = ""


@dataclass(frozen=True)
class Lists:
    """Lists of lines that unfold, side by side where there is room."""

    kind: ClassVar[str] = "columns"
    lists: tuple[Items, ...]


@dataclass(frozen=True)
class Facts:
    """Names and their values, such as the lines of a model card."""

    kind: ClassVar[str] = "facts"
    items: tuple[tuple[str, Sentence], ...]


@dataclass(frozen=True)
class Code:
    """Text that is shown as it is, such as a configuration."""

    kind: ClassVar[str] = "code"
    label: str
    text: str


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    A ``number`` is set flush right. ``internal`` gives it the badge. ``quiet`` text is for programs rather
    than readers, such as the name of a measure.
    """

    text: str
    number: bool = False
    internal: bool = False
    quiet: bool = False


@dataclass(frozen=True)
class TableBlock:
    """A table.

    ``caption`` is unique on the page, since it also names the region that scrolls. The first cell of each row
    names it. A ``folded`` table is shown only on demand. ``internal`` marks all of its numbers at once.
    ``phone``: on one, a wide table scrolls, a ``narrow`` one fits, and rows of ``cards`` stand one below the
    other, each number with the name of its column.
    """

    kind: ClassVar[str] = "grid"
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    folded: bool = False
    phone: Literal["scroll", "narrow", "cards"] = "scroll"
    internal: bool = False


@dataclass(frozen=True)
class Plots:
    """Figures side by side, as many in a row as there is room for.

    If ``folded`` is not empty, they are shown only on demand, under these words. Of ``small`` ones, four have
    room beside each other.
    """

    kind: ClassVar[str] = "plots"
    plots: tuple[Plot, ...]
    folded: str = ""
    small: bool = False


Block = Paragraph | Heading | Bullets | Facts | Code | TableBlock | Plots | Items | Lists


@dataclass(frozen=True)
class Section:
    """A part of the page with a line in its table of contents, or a folded one.

    ``more`` are the anchors of folded parts that say more. Those that the page lacks are left out.
    """

    anchor: str
    title: str
    blocks: tuple[Block, ...] = field(default=())
    more: tuple[str, ...] = ()


def divided(section: Section | None) -> tuple[Section | None, Section | None]:
    """Return the visible and the folded part of a section, both None for None.

    At once are its findings and its first table, which unfolds. Findings are the first list, else the first
    paragraph with a confidential sentence, else the first paragraph.
    """
    if section is None:
        return None, None
    said = [block for block in section.blocks if isinstance(block, Paragraph)]
    lists: list[Block] = [block for block in section.blocks if isinstance(block, Bullets)]
    marked: list[Block] = [block for block in said if any(sentence.internal for sentence in block.sentences)]
    grids = [block for block in section.blocks if isinstance(block, TableBlock)]
    first = (*(lists or marked or said)[:1], *grids[:1])
    at_once = tuple(
        replace(block, folded=True) if isinstance(block, TableBlock) else block for block in first
    )
    rest = tuple(block for block in section.blocks if block not in first)
    more = f"{section.anchor}-full"
    full = Section(more, f"{section.title} in full", rest)
    return replace(section, blocks=at_once, more=(more,)), full


def paragraph(*sentences: str | Sentence) -> Paragraph:
    """Return a paragraph of sentences that are not internal unless they say so."""
    return Paragraph(tuple(s if isinstance(s, Sentence) else Sentence(s) for s in sentences))


def number_cell(text: str, internal: bool = False) -> Cell:
    """Return a cell that holds a number."""
    return Cell(text, number=True, internal=internal)


#: the last cell of a row of confidential numbers
MARK = Cell("", internal=True)


def table(
    caption: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str | Cell]],
    *,
    status: Cell | None = MARK,
    folded: bool | None = None,
) -> TableBlock:
    """Return a table whose rows are a name and numbers. Whatever is no number is a cell.

    ``status`` ends each row, in a column of that name. A table of more than 15 rows is folded by default.
    """
    ends = () if status is None else (status,)
    cells = tuple(
        (Cell(str(name)), *(cell if isinstance(cell, Cell) else number_cell(cell) for cell in row), *ends)
        for name, *row in rows
    )
    return TableBlock(
        caption,
        (*header, *(["status"] if ends else [])),
        cells,
        len(cells) > 15 if folded is None else folded,
    )


#: a measure of one column, such as ``tvd[age]``
OF_COLUMN = re.compile(r"(?P<name>[^\[]+)\[(?P<column>.*)\]", re.DOTALL)
#: the sections, and the words with which a group of theirs may begin
HOMES = {
    "utility": ("utility",),
    "replication": ("replication",),
    "similarity": ("similarity", "association", "constraint", "discriminat", "rare"),
    "columns": ("tails", "single"),
    "closeness": ("nearest", "disclosure"),
    "records": ("records",),
    "patients": ("patients",),
}
# What is shown of a long table without unfolding.
_MAIN = re.compile(
    r".*_mean|discriminator_auc.*|(correlation|association)_error|copies_(train|expected|excess)"
    r"|dcr_closer_to_train|membership_.*"
)
# Rows that are shown without unfolding.
_MOST_MEASURES, _MOST_COLUMNS = 15, 12


def home(group: str) -> str | None:
    """Return the section of a group of measures, or None if it is unknown."""
    words = group.casefold()
    return next((name for name, starts in HOMES.items() if words.startswith(starts)), None)


def section_measures(evaluation: Evaluation, name: str) -> list[Measure]:
    """Return the measures of one section, in order."""
    return [measure for measure in evaluation.measures if home(measure.group) == name]


def measure_grid(caption: str, measures: Iterable[Measure], *, folded: bool = False) -> TableBlock:
    """Return a table of measures: what it is, value, interval where one has any, and name in the files."""
    measures = list(measures)
    intervals = any(shown_interval(measure) for measure in measures)
    rows = tuple(
        (
            Cell(measure.detail or measure.name.replace("_", " ")),
            number_cell(shown(measure.value), measure.internal),
            *((number_cell(shown_interval(measure)),) if intervals else ()),
            Cell(measure.name, quiet=True),
        )
        for measure in measures
    )
    header = ("what it is", "value", *(("interval",) if intervals else ()), "name")
    return TableBlock(caption, header, rows, folded)


def measure_tables(measures: Sequence[Measure]) -> list[Block]:
    """Return one table a group, without measures of single columns. A long one has the main rows first.

    Measures without a value come last and folded, each with its reason.
    """
    blocks: list[Block] = []
    for group in dict.fromkeys(m.group for m in measures):
        every = [m for m in measures if m.group == group and OF_COLUMN.fullmatch(m.name) is None]
        plain = [m for m in every if m.value is not None]
        main = [m for m in plain if _MAIN.fullmatch(m.name)]
        if len(plain) > _MOST_MEASURES and main:
            rest = [m for m in plain if m not in main]
            blocks.append(measure_grid(f"{group}: main measures", main))
            blocks.append(measure_grid(f"{group}: further measures", rest, folded=True))
        elif plain:
            blocks.append(measure_grid(f"{group}: measures", plain, folded=len(plain) > 2 * _MOST_MEASURES))
        if lacking := [m for m in every if m.value is None]:
            rows = tuple((Cell(m.detail, internal=m.internal), Cell(m.name, quiet=True)) for m in lacking)
            blocks.append(
                TableBlock(f"{group}: not computed", ("what, and why not", "name"), rows, folded=True)
            )
    return blocks


def column_tables(measures: Sequence[Measure], name: str) -> list[Block]:
    """Return one table with a line for each column or category. Empty if no measure is of one."""
    table: dict[str, dict[str, Measure]] = {}
    for measure in measures:
        match = OF_COLUMN.fullmatch(measure.name)
        if match is not None:
            table.setdefault(match["column"], {})[match["name"]] = measure
    if not table:
        return []
    names = tuple(dict.fromkeys(base for row in table.values() for base in row))
    everything = [measure for row in table.values() for measure in row.values()]
    # one badge a line where all of it is internal, else one beside each number that is
    whole = all(measure.internal for measure in everything)
    rows = tuple(
        (
            Cell(column),
            *(_measured(row.get(base), badge=not whole) for base in names),
            *((Cell("", internal=True),) if whole else ()),
        )
        for column, row in table.items()
    )
    header = ("column or category", *names, *(("status",) if whole else ()))
    grid = TableBlock(f"{name}, column by column", header, rows, folded=len(rows) > _MOST_COLUMNS)
    legend = []
    for base in names:
        said = {row[base].detail for row in table.values() if base in row}
        internal = any(row[base].internal for row in table.values() if base in row)
        if len(said) == 1 and (text := said.pop()):
            legend.append(Sentence(f"{base}: {text.rstrip('.')}.", internal))
    return [*([Bullets(tuple(legend))] if legend else []), grid]


def _measured(measure: Measure | None, *, badge: bool) -> Cell:
    if measure is None:
        return Cell("")
    return number_cell(shown_with_interval(measure), internal=badge and measure.internal)


#: how each severity is marked in a list, and in a bar
LABELS: dict[Severity, str] = {
    "bad": "✕ Bad:",
    "caution": "! Caution:",
    "open": "? No verdict:",
    "good": "✓ Good:",
}


def items(verdicts: Iterable[Verdict]) -> tuple[Item, ...]:
    """Return verdicts as lines that unfold: the headline first, then the sentence and what it rests on."""
    return tuple(
        Item(
            verdict.severity,
            LABELS[verdict.severity],
            verdict.headline,
            (
                Sentence(verdict.sentence, verdict.internal),
                Sentence(f"Rule {verdict.code}, from {', '.join(verdict.rests_on)}."),
            )
            if verdict.rests_on
            else (Sentence(verdict.sentence, verdict.internal),),
        )
        for verdict in verdicts
    )
