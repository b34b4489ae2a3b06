"""Categories that have an order: age bands, grades, frequencies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dpsynth.table.questions.seen import SeenTable
from dpsynth.table.remarks import Answer, Remark

#: 20-29, [20-30), <30, 80+, >=80, 65 and over
_BAND = re.compile(
    r"[\[(]?\s*(?P<at>\d+\.?\d*)\s*(?:-|–|to|,)\s*\d+\.?\d*\s*[\])]?"
    r"|(?P<below>(?:<=?|≤|under|below|up to)\s*(?P<to>\d+\.?\d*))"
    r"|(?:>=?|≥|over|above)\s*(?P<above>\d+\.?\d*)|(?P<open>\d+\.?\d*)\s*(?:\+|and (?:over|above|older|more))"
    r"(?:\s*(?:years?|yrs?|y))?",
    re.IGNORECASE,
)
#: scales by their words, in ascending order
_SCALES: tuple[tuple[str, ...], ...] = (
    ("none", "minimal", "mild", "moderate", "severe", "very severe"),
    ("very low", "low", "medium", "high", "very high"),
    ("low", "normal", "high"),
    ("low", "intermediate", "high"),
    ("never", "rarely", "sometimes", "often", "always"),
    ("small", "medium", "large"),
    ("poor", "fair", "good", "very good", "excellent"),
    ("underweight", "normal", "overweight", "obese"),
    ("under", "normal", "over", "obese"),
    ("i", "ii", "iii", "iv", "v"),
    ("stage i", "stage ii", "stage iii", "stage iv"),
    ("a", "b", "c", "d"),
)


def ordered_bands(table: SeenTable) -> Iterator[Remark]:
    """Ask whether categories have an order that their words say."""
    for seen in table.categorical.values():
        column = seen.column
        assert column is not None
        if (
            column.kind == "ordinal"
            or len(column.categories) < 3
            or not all(isinstance(c, str) for c in column.categories)
        ):
            continue
        if ordered := in_order([str(c) for c in column.categories]):
            yield Remark(
                seen.name,
                "question",
                "do these categories have an order?",
                " < ".join(ordered[:4]) + (" < …" if len(ordered) > 4 else ""),
                "ordered_bands",
                (
                    Answer("ordered", "in this order", {"kind": "ordinal", "categories": tuple(ordered)}),
                    Answer("unordered", "as drafted"),
                ),
            )


def in_order(words: Sequence[str]) -> list[str]:
    """The words in ascending order, if they are bands of numbers or one known scale, else none.

    Examples
    --------
    >>> in_order(["80+", "<30", "30-79"]), in_order(["high", "low", "normal"]), in_order(["b", "x", "y"])
    (['<30', '30-79', '80+'], ['low', 'normal', 'high'], [])
    """
    bands = {word: place for word in words if (place := _place(word)) is not None}
    if len(bands) == len(words):
        return sorted(words, key=lambda word: bands[word])
    folded = {word.strip().lower(): word for word in words}
    for scale in _SCALES:
        if folded.keys() <= {*scale}:
            return [folded[word] for word in scale if word in folded]
    return []


def _place(word: str) -> tuple[float, int] | None:
    found = _BAND.fullmatch(word.strip())
    if found is None:
        return None
    if found["below"]:
        return float(found["to"]), -1
    if found["above"] or found["open"]:
        return float(found["above"] or found["open"]), 1
    return float(found["at"]), 0
