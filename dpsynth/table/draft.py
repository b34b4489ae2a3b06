"""A drafted schema and what its owner must decide, as YAML with the questions beside the columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from dpsynth.files.atomic import write_text
from dpsynth.table.schema import Schema

_HEAD = (
    "PRIVATE draft: bounds and categories are values of records. In every column write bounds and categories "
    "that you know without this table (what is possible, not what occurs), answer the questions, and delete "
    "the line 'unreviewed'. Columns under 'ignored' are not read; which they are was read off the data too."
)


class LeftOut(Exception):
    """Why a column is not in the draft."""

    def __init__(self, text: str, detail: str = "") -> None:
        super().__init__(f"{text} ({detail})" if detail else text)
        self.text, self.detail = text, detail


@dataclass(frozen=True)
class Remark:
    """What a draft decided or could not decide, in one sentence.

    Attributes
    ----------
    column : str or None
        None for the whole table.
    kind : {"left out", "question", "note"}
    text : str
        The same for every column of which the same is said.
    detail : str
        What differs: a count, an example. Internal, as the text: both may quote records.
    """

    column: str | None
    kind: Literal["left out", "question", "note"]
    text: str
    detail: str = ""

    def __str__(self) -> str:
        return _said(self.kind, self.text, [self])


def _said(kind: str, text: str, remarks: Sequence[Remark]) -> str:
    columns = [
        f"{remark.column or '(no name)'}{f' ({remark.detail})' if remark.detail else ''}"
        for remark in remarks
        if remark.column is not None
    ]
    return ": ".join([kind, *([", ".join(columns)] if columns else []), text])


@dataclass
class Remarks:
    """What is said about one column."""

    column: str
    remarks: list[Remark] = field(default_factory=list)

    def left_out(self, why: LeftOut) -> None:
        """Say why the column is not in the draft; what was said before has lost its object."""
        self.remarks = [Remark(self.column, "left out", why.text, why.detail)]

    def question(self, text: str, detail: str = "") -> None:
        """Ask what only the owner knows."""
        self.remarks.append(Remark(self.column, "question", text, detail))

    def note(self, text: str, detail: str = "") -> None:
        """Say what was decided."""
        self.remarks.append(Remark(self.column, "note", text, detail))


@dataclass(frozen=True)
class Draft:
    """A schema that was read off a table.

    Attributes
    ----------
    schema : Schema
        Every field is unreviewed.
    remarks : tuple of Remark
        In the order of the columns; those about the table first.
    """

    schema: Schema
    remarks: tuple[Remark, ...]

    def lines(self) -> list[str]:
        """Return the remarks as lines for a terminal, what is said of several columns said once."""
        groups: dict[tuple[str, str], list[Remark]] = {}
        for remark in self.remarks:
            groups.setdefault((remark.kind, remark.text), []).append(remark)
        return [_said(kind, text, remarks) for (kind, text), remarks in groups.items()]

    def to_yaml(self, path: str | Path | None = None) -> str:
        """Return the schema as YAML, remarks as comments, and write it to ``path`` for its owner alone."""
        declared = set(self.schema.names)
        about = [remark for remark in self.remarks if remark.column not in declared]
        lines = _comment(_HEAD)
        for remark in about:
            lines += _comment(str(remark), "- ")
        position = 0
        for line in self.schema.to_yaml().splitlines():
            if line.startswith("- name:"):
                name = self.schema.names[position]
                position += 1
                for remark in self.remarks:
                    if remark.column == name:
                        detail = f" ({remark.detail})" if remark.detail else ""
                        lines += _comment(f"{remark.kind}: {remark.text}{detail}")
            lines.append(line)
        text = "\n".join(lines) + "\n"
        if path is not None:
            write_text(path, text, private=True)
        return text


def _comment(text: str, mark: str = "") -> list[str]:
    plain = text.encode("unicode_escape").decode("ascii") if not text.isprintable() else text
    return textwrap.wrap(plain, 108, initial_indent=f"# {mark}", subsequent_indent="#   " if mark else "# ")
