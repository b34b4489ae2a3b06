"""Decisions and questions of a draft, for the table's owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

#: values or rows that a remark names
LISTED = 5


class LeftOut(Exception):
    """Why a column is not in the draft."""

    def __init__(self, text: str, detail: str = "") -> None:
        super().__init__(f"{text} ({detail})" if detail else text)
        self.text, self.detail = text, detail


@dataclass(frozen=True)
class Answer:
    """An answer to a question of a draft.

    ``word`` is what an owner writes, and ``meaning`` says what it stands for. With ``fields`` the column is
    declared by them. ``options`` are those of :func:`dpsynth.infer_schema` by which the table is drafted
    again. ``rules`` are declared as constraints. An answer without any of these leaves the draft as it is.
    """

    word: str
    meaning: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rules: tuple[str, ...] = ()


@dataclass(frozen=True)
class Remark:
    """A decision or question of a draft. ``column`` is None for the whole table.

    ``text`` is the same for all columns with the same remark, ``detail`` a count or an example. Confidential:
    both may quote records.

    ``question`` is the identifier of a question, the same in all tables, "" for other remarks. ``answers``
    are those that a draft can use, the likely one first. ``about`` is what the question is about where the
    column alone does not say it, such as the code 999. An answer to another one does not count. ``sets`` is
    the field of the schema that an owner fills in by own words.
    """

    column: str | None
    kind: Literal["left out", "question", "note"]
    text: str
    detail: str = ""
    question: str = ""
    answers: tuple[Answer, ...] = ()
    about: str = ""
    sets: str = ""

    def __str__(self) -> str:
        return said_of(self.kind, self.text, [self])

    @property
    def choices(self) -> str:
        """The words of the answers."""
        words = [answer.word for answer in self.answers]
        return f"answers: {words[0]} (likely), {', '.join(words[1:])}" if words else ""


def said_of(kind: str, text: str, remarks: Sequence[Remark]) -> str:
    """One line for remarks with the same text."""
    columns = [
        f"{remark.column or '(no name)'}{f' ({remark.detail})' if remark.detail else ''}"
        for remark in remarks
        if remark.column is not None
    ]
    whole = ", ".join(remark.detail for remark in remarks if remark.column is None and remark.detail)
    return ": ".join(filter(None, [kind, ", ".join(columns), text, whole]))


@dataclass
class Remarks:
    """The remarks about one column."""

    column: str
    remarks: list[Remark] = field(default_factory=list)

    def left_out(self, why: LeftOut) -> None:
        """Say why the column is not in the draft, in place of all earlier remarks."""
        self.remarks = [Remark(self.column, "left out", why.text, why.detail)]

    def question(
        self, question: str, text: str, detail: str = "", answers: Sequence[Answer] = (), about: str = ""
    ) -> None:
        """Ask a question that only the owner can answer."""
        self.remarks.append(Remark(self.column, "question", text, detail, question, tuple(answers), about))

    def note(self, text: str, detail: str = "") -> None:
        """Report a decision."""
        self.remarks.append(Remark(self.column, "note", text, detail))

    def slips(self, count: int, rows: Sequence[tuple[int, Any]], what: str) -> None:
        """Ask about ``count`` cells that are no ``what``, some of them in these rows."""
        listed = ", ".join(f"row {row} {value!r}" for row, value in rows)
        more = f", … {count:,} cells in all" if count > len(rows) else ""
        self.question(
            "slips",
            f"not every cell is a {what}. Correct or empty these in the table, or name a word for no value "
            f"in missing_words or --missing-word. A fit stops at a cell that is no {what}",
            listed + more,
        )


def n_cells(n: int) -> str:
    """So many cells, in words."""
    return f"{n:,} cell{'s' if n > 1 else ''}"
