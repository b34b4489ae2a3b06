"""What a page is made of: paragraphs, tables and figures, as plain frozen records.

The builders of the sections make these from numbers, the template turns them into HTML; neither knows the
other. Everything that came from real records says so, and the template shows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from dpsynth.report.drawing.svg import Plot


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

    A ``number`` is set flush right; ``internal`` gives it the badge; ``quiet`` marks what is for programs
    rather than readers, such as the name of a measure.
    """

    text: str
    number: bool = False
    internal: bool = False
    quiet: bool = False


@dataclass(frozen=True)
class Grid:
    """A table.

    ``caption`` is unique on the page, since it also names the region that scrolls. The first cell of each row
    names it; a ``folded`` table is shown only on demand.
    """

    kind: ClassVar[str] = "grid"
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    folded: bool = False


@dataclass(frozen=True)
class Plots:
    """Figures side by side, as many in a row as there is room for.

    If ``folded`` is not empty, they are shown only on demand, under these words.
    """

    kind: ClassVar[str] = "plots"
    plots: tuple[Plot, ...]
    folded: str = ""


Block = Paragraph | Heading | Bullets | Facts | Code | Grid | Plots


@dataclass(frozen=True)
class Section:
    """A part of the page with a line in its table of contents."""

    anchor: str
    title: str
    blocks: tuple[Block, ...] = field(default=())


def paragraph(*sentences: str | Sentence) -> Paragraph:
    """Return a paragraph of sentences that are not internal unless they say so."""
    return Paragraph(tuple(s if isinstance(s, Sentence) else Sentence(s) for s in sentences))


def number(text: str, internal: bool = False) -> Cell:
    """Return a cell that holds a number."""
    return Cell(text, number=True, internal=internal)
