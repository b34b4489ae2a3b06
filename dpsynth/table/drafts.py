"""A draft of a schema, with the questions that only the table's owner can answer."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from dpsynth.errors import InputError
from dpsynth.files.storage import write_text
from dpsynth.files.text import html_lines, load_yaml
from dpsynth.table.remarks import Remark, said_of
from dpsynth.table.schema import TableSchema
from dpsynth.table.suggestions import suggested

_HEAD = (
    "PRIVATE draft: bounds and categories are values of records. In every column write bounds and categories "
    "that you know without this table (what is possible, not what occurs), answer the questions, and delete "
    "the line 'unreviewed'. Write 'reviewed: true' for each list of categories or codes that is public. "
    "Columns under 'ignored' are not read; which they are was read off the data too."
)


_MARKED = "Each formula or rule behind a # is a question: delete the # if it holds, and the line if not."
#: How a question about a formula begins, which stands as a line of the column.
COMPUTED = "is it computed from others, as the names suggest? Then declare the formula as derived"

Described = TypeVar("Described", bound=TableSchema, covariant=True)
AnySchema = TypeVar("AnySchema", bound=TableSchema)


@dataclass(frozen=True)
class Draft(Generic[Described]):
    """A schema read from a table, every field unreviewed. Remarks about persons come first, the
    question about the privacy unit last.

    Printed, or shown in a notebook, it is the schema with its remarks. Both quote records.
    """

    schema: Described
    remarks: tuple[Remark, ...]

    @property
    def questions(self) -> tuple[Remark, ...]:
        """The questions that only the table's owner can answer."""
        return tuple(remark for remark in self.remarks if remark.kind == "question")

    def lines(self) -> list[str]:
        """Return the remarks as lines for a terminal, each once for all its columns."""
        return lines_of(self.remarks)

    def counts(self) -> str:
        """Say how many columns were drafted and left out, and what to do next."""
        return (
            f"{len(self.schema.names)} columns drafted, {len(self.schema.ignored)} left out. The draft is "
            "private: bounds and categories were read off the data. Answer the questions. Put public values "
            "in their place, and delete each 'unreviewed'."
        )

    def __str__(self) -> str:
        return "\n".join([str(self.schema), *(f"- {line}" for line in self.lines()), self.counts()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        remarks = f"<ul>{html_lines(self.lines(), 'li')}</ul>"
        return self.schema._repr_html_() + remarks + html_lines([self.counts()])

    def to_yaml(self, path: str | Path | None = None) -> str:
        """Return the schema as YAML, remarks as comments, and write it to ``path`` for its owner alone."""
        declared = set(self.schema.names)
        about = [remark for remark in self.remarks if remark.column not in declared]
        asked = suggested(self.schema)
        lines = _comment(f"{_HEAD} {_MARKED}" if asked else _HEAD)
        said = (str(remark if remark.column else replace(remark, detail="")) for remark in about)
        for text in dict.fromkeys(said):
            lines += _comment(text, "- ")
        position = 0
        for line in self.schema.to_yaml().splitlines():
            if not line.startswith("- name:"):
                lines.append(line)
                continue
            name = self.schema.names[position]
            position += 1
            for remark in self.remarks:
                if remark.column == name:
                    below = remark.text.startswith(COMPUTED)  # its formulas stand there
                    detail = f" ({remark.detail})" if remark.detail and not below else ""
                    choices = f". {remark.choices}" if remark.choices and not below else ""
                    lines += _comment(f"{remark.kind}: {remark.text}{detail}{choices}")
            lines.append(line)
            for one in asked:
                if one.column == name:
                    lines += [f"  #derived: {_scalar(formula)}" for formula in one.texts]
                    lines += ["  #missing: true"] * one.needs_missing(self.schema)
        rules: list[str] = [_scalar(rule) for one in asked if one.column is None for rule in one.texts]
        marked = [f"#- {rule}" for rule in rules]
        if marked and self.schema.constraints:  # a second key would take the place of the first
            start = next(i for i, line in enumerate(lines) if line.startswith("constraints:"))
            after = (i for i in range(start + 1, len(lines)) if not lines[i].startswith(("-", " ")))
            stated = [f"- {_scalar(str(rule))}" for rule in self.schema.constraints]
            lines[start : next(after, len(lines))] = ["constraints:", *stated, *marked]
        elif marked:
            lines += ["#constraints:", *marked]
        text = "\n".join(lines) + "\n"
        if path is not None:
            write_text(path, text)
        return text


def lines_of(remarks: Iterable[Remark]) -> list[str]:
    """One line for remarks with the same text, in the order of the first."""
    groups: dict[tuple[str, str], list[Remark]] = {}
    for remark in remarks:
        groups.setdefault((remark.kind, remark.text), []).append(remark)
    return [said_of(kind, text, same) for (kind, text), same in groups.items()]


def check_described(schema: object) -> None:
    """Raise InputError if an argument ``schema`` is no schema, and say what to do with a draft."""
    if isinstance(schema, Draft):
        raise InputError(
            "schema must be a Schema, got a Draft, whose fields were read off the records. Write it to a "
            "file (draft.to_yaml(path)), review it there, and read it (Schema.from_yaml(path)). Or give "
            "draft.schema with accept_unreviewed=True if only the owner of the records sees the results"
        )
    if not isinstance(schema, TableSchema):
        raise InputError(f"schema must be a Schema (Schema.from_yaml reads one), got {type(schema).__name__}")


def _comment(text: str, mark: str = "") -> list[str]:
    plain = text.encode("unicode_escape").decode("ascii") if not text.isprintable() else text
    return textwrap.wrap(plain, 108, initial_indent=f"# {mark}", subsequent_indent="#   " if mark else "# ")


def _scalar(text: str) -> str:
    """The text as YAML, in quotes where YAML needs them."""
    try:
        plain = load_yaml(f"- {text}", origin="", error=ValueError) == [text]
    except ValueError:
        plain = False
    return text if plain else "'" + text.replace("'", "''") + "'"
