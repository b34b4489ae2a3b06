"""Answers to the questions of a draft, in a file that its owner fills in.

The file has an entry for each question, with what the draft found and the answers it can use. The table's
owner writes one of them behind ``answer``. The next draft of this table, or of a newer one, takes it.

An answer counts for the question, column and finding it was given for: 998 is asked about although 999 was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpsynth.checks import few
from dpsynth.errors import InputError, SchemaError
from dpsynth.files.storage import write_text
from dpsynth.files.text import dump_yaml, load_yaml
from dpsynth.table.column import Column
from dpsynth.table.kinds import KINDS
from dpsynth.table.remarks import Answer, Remark

_HEAD = (
    "# PRIVATE: the questions of a draft quote records. Write one of the choices behind each answer.\n"
    "# Then run dpsynth schema infer again with this file.\n"
)
_KEYS = {"question", "column", "about", "found", "choices", "answer"}


@dataclass
class Answers:
    """What an owner has answered, and what a draft has asked so far.

    ``given`` has a mapping for each answer, with ``question``, ``answer``, and ``column`` and ``about`` where
    the question has them.
    """

    given: tuple[Mapping[str, Any], ...] = ()
    asked: dict[tuple[str, str | None, str], Remark] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Iterable[Mapping[str, Any]] | Answers | None) -> Answers:
        """Answers as an argument gives them. InputError says which entry is none."""
        if isinstance(given, Answers):
            return given
        entries = tuple(given or ())
        for i, entry in enumerate(entries):
            if not isinstance(entry, Mapping) or "question" not in entry:
                raise InputError(
                    f"answers must be mappings with a question and an answer, got {entry!r} as number {i + 1}"
                )
            if unknown := {*entry} - _KEYS:
                fields = few(sorted(_KEYS))
                raise InputError(
                    f"answers, number {i + 1}: unknown field {min(unknown)!r}. Known are {fields}"
                )
        return cls(entries)

    @classmethod
    def read(cls, path: Path) -> Answers:
        """Read a file, or begin one that is not there. InputError names the file."""
        if not path.exists():
            return cls()
        held = load_yaml(path.read_text(encoding="utf-8"), origin=str(path), error=InputError)
        if not isinstance(held, list | None):
            raise InputError(f"{path}: a file of answers is a list of questions, each with its answer")
        try:
            return cls.of(held)
        except InputError as problem:
            raise InputError(f"{path}: {problem}") from None

    @property
    def unit(self) -> str | None:
        """The column of persons with several rows, if an answer names one."""
        named = (entry for entry in self.given if entry["question"] == "person")
        return next((entry.get("column") for entry in named if entry.get("answer") == "persons"), None)

    @property
    def open(self) -> int:
        """How many questions that can be answered in a file have no answer yet."""
        asked = [remark for remark in self.asked.values() if remark.answers or remark.sets]
        return sum(self.to_question(remark) is None for remark in asked)

    def to_question(self, remark: Remark) -> str | None:
        """The word that was given as the answer to a question, None if there is none."""
        key = (remark.question, remark.column, remark.about)
        self.asked[key] = remark
        for entry in self.given:
            said = entry.get("column"), str(entry.get("about") or remark.about)
            if entry["question"] == remark.question and said == key[1:] and entry.get("answer") is not None:
                return str(entry["answer"])
        return None

    def chosen(self, remark: Remark) -> Answer | None:
        """The answer that was given to a question, None if none was.

        Raises InputError for a word that is no answer to it.
        """
        word = self.to_question(remark)
        if word is None or not remark.answers:
            return None
        for answer in remark.answers:
            if answer.word == word:
                return answer
        about = f" of {remark.column!r}" if remark.column else ""
        words = few([repr(answer.word) for answer in remark.answers])
        raise InputError(
            f"answers: the question {remark.question!r}{about} is answered by one of {words}, got {word!r}"
        )

    def unused(self) -> list[str]:
        """Say which answers belong to no question that was asked."""
        asked = {key[:2] for key in self.asked}
        found = []
        for entry in self.given:
            key = entry["question"], entry.get("column")
            if entry.get("answer") is not None and key not in asked and key != ("person", self.unit):
                of = f" of {key[1]}" if key[1] else ""
                found.append(
                    f"the answer {entry['answer']!r} to {key[0]}{of} is not used: it is not asked here"
                )
        return found

    def to_yaml(self, path: Path | None = None) -> str:
        """All questions asked, with the answers given, as YAML. Written to ``path`` for its owner alone."""
        entries = []
        for (question, column, about), remark in self.asked.items():
            choices: dict[str, str] | str = {answer.word: answer.meaning for answer in remark.answers}
            entry = {
                "question": question,
                "column": column,
                "about": about or None,
                "found": f"{remark.text} ({remark.detail})" if remark.detail else remark.text,
                "choices": choices or ("your own words" if remark.sets else None),
                "answer": self.to_question(remark),
            }
            if remark.answers or remark.sets:
                entries.append(
                    {key: value for key, value in entry.items() if value is not None or key == "answer"}
                )
        known = {(entry["question"], entry.get("column"), str(entry.get("about") or "")) for entry in entries}
        kept = [
            dict(entry)
            for entry in self.given
            if (entry["question"], entry.get("column"), str(entry.get("about") or "")) not in known
        ]
        text = _HEAD + dump_yaml(entries + kept)
        if path is not None:
            write_text(path, text)
        return text


def changed(name: str, column: Column | None, fields: Mapping[str, Any]) -> Column:
    """A drafted column as an answer declares it, every field unreviewed.

    Fields of a column of another level of measurement do not stay. None takes a field away.
    """
    made: dict[str, Any] = {}
    if column is not None:
        made = {field: getattr(column, field) for field in column.unreviewed}
        if column.written_apart:
            made |= dict(zip(("lower", "upper"), map(column.shown, column.bounds), strict=True))
        kind = fields.get("kind", column.kind)
        if KINDS[kind].level != KINDS[column.kind].level or KINDS[kind].written_apart != column.written_apart:
            made = {"missing": column.missing}
    made = {field: value for field, value in {**made, **fields}.items() if value is not None}
    try:
        return Column(name=name, **made, unreviewed=tuple(made))
    except SchemaError as problem:
        raise InputError(f"answers: {problem}") from None
