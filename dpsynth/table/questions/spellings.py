"""Categories that are one and the same, spelled in several ways."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from dpsynth.table.questions.seen import SeenTable
from dpsynth.table.remarks import Answer, Remark

#: letters of words that may differ by one, and how rare the slip must be beside the other
_LETTERS, _RARER = 6, 0.6
#: words compared with each other
_MOST = 200


def spelling(table: SeenTable) -> Iterator[Remark]:
    """Ask about categories that differ in capital letters, blanks and signs, or by a letter or two."""
    for seen in table.categorical.values():
        column = seen.column
        assert column is not None
        if not all(isinstance(c, str) for c in column.categories) or len(column.categories) > _MOST:
            continue
        same = spelled_alike({str(c): seen.counts.get(str(c), 0) for c in column.categories})
        if same:
            shown = ", ".join(f"{slip!r} for {word!r}" for slip, word in list(same.items())[:4])
            kept = tuple(c for c in column.categories if c not in same)
            kind = "binary" if len(kept) == 2 else column.kind
            fields = {"kind": kind, "categories": kept, "aliases": dict(same)}
            yield Remark(
                seen.name,
                "question",
                "are these the same category, spelled in several ways?",
                shown,
                "spelling",
                (Answer("same", "read as one category", fields), Answer("different", "as drafted")),
                ", ".join(sorted(same)),
            )


def spelled_alike(counts: Mapping[str, int]) -> dict[str, str]:
    """Spellings of a category, each with the most frequent spelling of the same one.

    Examples
    --------
    >>> spelled_alike({"male": 90, "Male": 5, "diabetes": 40, "diabetis": 2, "stage 1": 9, "stage 2": 8})
    {'Male': 'male', 'diabetis': 'diabetes'}
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for word in counts:
        groups[re.sub(r"[\s._/-]", "", word).casefold() or word].append(word)
    same: dict[str, str] = {}
    usual: dict[str, str] = {}
    for key, words in groups.items():
        best = max(words, key=lambda word: counts[word])
        usual[key] = best
        same |= {word: best for word in words if word != best}
    keys = sorted(usual, key=lambda key: -sum(counts[word] for word in groups[key]))
    for i, key in enumerate(keys):
        for other in keys[:i]:
            if (
                usual[other] not in same
                and _slip(key, other)
                and counts[usual[key]] <= _RARER * counts[usual[other]]
            ):
                same |= {word: usual[other] for word in groups[key]}
                break
    return same


def _slip(word: str, other: str) -> bool:
    """Whether two words differ by one letter that is wrong, missing or in the place of the next one."""
    if min(len(word), len(other)) < _LETTERS or any(sign.isdigit() for sign in word + other):
        return False
    short, long = sorted((word, other), key=len)
    start = next(
        (i for i, pair in enumerate(zip(short, long, strict=False)) if pair[0] != pair[1]), len(short)
    )
    # A letter in front or behind may be a word of its own: atypical, stages.
    if start in (0, len(short)) or len(long) - len(short) > 1:
        return False
    if len(long) > len(short):
        return short[start:] == long[start + 1 :]
    rest = short[start + 1 :] == long[start + 1 :]
    return rest or (
        short[start : start + 2] == long[start : start + 2][::-1] and short[start + 2 :] == long[start + 2 :]
    )
