"""Questions that a draft asks about columns, each in a file of its own and listed here.

A question is a function of the table as a draft has seen it. It yields a remark for each column, or set of
columns, that it is about, with the answers that a draft can use, the likely one first. A question reads
private records, so its remarks are confidential.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from dpsynth.table.questions import bands, codes, identifiers, relations, spellings, words
from dpsynth.table.questions.seen import SeenTable
from dpsynth.table.remarks import Remark

#: Each question, in the order in which an owner is asked.
QUESTIONS: tuple[Callable[[SeenTable], Iterator[Remark]], ...] = (
    identifiers.identifying,
    codes.code_numbers,
    codes.code_tree,
    words.missing_word,
    words.thousands,
    words.written_otherwise,
    bands.ordered_bands,
    spellings.spelling,
    relations.named_items,
    relations.one_of_a_set,
    relations.same_measure,
    relations.sum_of_parts,
    relations.decided_by,
)

#: Questions that need not be asked of a column of which another one is: they are asked after its answer.
_LATER: Mapping[str, frozenset[str]] = {
    "person": frozenset(("code_numbers",)),
    "missing_word": frozenset(("mixed_cells", "many_categories", "slips")),
    "below_detection": frozenset(("mixed_cells", "many_categories", "slips")),
    "code_tree": frozenset(("many_categories",)),
    "code_numbers": frozenset(("code_or_count", "placeholder", "far_value")),
    "decided_by": frozenset(("many_categories", "ordered_bands")),
}


def in_turn(remarks: Iterable[Remark]) -> list[Remark]:
    """The remarks without questions that must wait for the answer to another one of the same column."""
    remarks = list(remarks)
    asked_of: dict[str | None, set[str]] = {}
    for remark in remarks:
        asked_of.setdefault(remark.column, set()).add(remark.question)
    return [
        remark
        for remark in remarks
        if not remark.question
        or remark.question == "identifying"
        or (
            "identifying" not in asked_of[remark.column]
            and not any(remark.question in _LATER.get(other, ()) for other in asked_of[remark.column])
        )
    ]


def asked(table: SeenTable) -> list[Remark]:
    """What all questions ask about a table."""
    return [remark for question in QUESTIONS for remark in question(table)]
