"""Columns that may say who somebody is: names, addresses, dates of birth, numbers of papers."""

from __future__ import annotations

from collections.abc import Iterator

from dpsynth.table.questions.seen import SeenColumn, SeenTable, column_words
from dpsynth.table.remarks import Answer, Remark


def identifying(table: SeenTable) -> Iterator[Remark]:
    """Ask about columns whose name says that they may identify a person, and that a draft would take."""
    for seen in table.drafted():
        if not seen.kept and not seen.outcome and _identifies(seen):
            answers = (
                Answer("leave out", "it is not modelled", options={"drop": (seen.name,)}),
                Answer("keep", "it is modelled as other columns", options={"keep": (seen.name,)}),
            )
            text = "may say who somebody is, by its name. Leave it out, or give a coarser one in the table"
            yield Remark(seen.name, "question", text, f"{len(seen.counts):,} values", "identifying", answers)


def _identifies(seen: SeenColumn) -> bool:
    said, words = set(seen.tokens), column_words()
    birth = bool(seen.column and seen.column.is_date and said & {"birth", "born"})
    named = bool(said & {"name", "names"} and (said & words["whose"] or len(said) == 1))
    return birth or named or bool(said & words["identifying"] and not said & words["measured"])
