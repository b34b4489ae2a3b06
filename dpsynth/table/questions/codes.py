"""Codes that are written as numbers: of diagnoses, procedures, items, hospitals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from dpsynth.checks import few
from dpsynth.table.cells import number
from dpsynth.table.questions.seen import SeenColumn, SeenTable, column_words
from dpsynth.table.remarks import Answer, Remark

#: 038.9 and 250.00: a code of three digits, with some behind a point
_DIAGNOSIS = re.compile(r"\d{3}(?:\.\d{1,2})?")
_LED = re.compile(r"0\d+\.\d*")
#: I50.0, C07AB02, 250.01: a letter or digits, digits, and more behind a point
_TREE = re.compile(r"[A-Z]\d{2}[A-Z0-9.\-]{0,7}|[VE]?\d{1,3}(?:\.\d{1,2})?")
_MANY = 30
#: cells that each of scattered codes must have on average, how much of their range they may fill, and digits
_REPEATS, _FILLED, _FEWEST = 4.0, 0.05, 20


def code_numbers(table: SeenTable) -> Iterator[Remark]:
    """Ask whether numbers are codes: their name says so, they are written so, or they are scattered."""
    for seen in table.columns:
        if not seen.outcome and (why := _why(seen)):
            yield Remark(
                seen.name,
                "question",
                "are these numbers codes, each of which stands for something, or are they quantities?",
                why,
                "code_numbers",
                _answers(seen),
            )


def _why(seen: SeenColumn) -> str:
    """What speaks for codes, "" if nothing does."""
    words, numeric = (
        seen.counts,
        seen.column is None or (seen.column.is_numeric and not seen.column.written_apart),
    )
    if not numeric or len(words) < 3 or 2 * len(words) > seen.rows:
        return ""
    if not all(number(word) is not None or _LED.fullmatch(word) for word in words):
        return ""
    if all(map(_DIAGNOSIS.fullmatch, words)):
        if led := next(filter(_LED.fullmatch, words), None):
            return f"{led} has a zero in front"
        padded = [word for word in words if "." in word and word.endswith("0")]
        if padded and len({len(word) for word in words}) > 1:
            return f"{padded[0]} beside {min(words, key=len)}"
    if not all(word.lstrip("+-").isdigit() for word in words):
        return ""
    shown = f"{len(words):,} different ones, such as {', '.join(list(words)[:3])}"
    last, said, known = {*seen.tokens[-1:]}, {*seen.tokens}, column_words()
    if said & known["counted"]:
        return ""
    named = last & (known["codes"] | known["identifiers"]) or any(
        w.endswith(("code", "itemid")) for w in said
    )
    return shown if named or (seen.column is not None and _scattered(seen)) else ""


def _scattered(seen: SeenColumn) -> bool:
    """Whether whole numbers fill little of their range, though each of them occurs often."""
    distinct = np.sort(np.array([float(word) for word in seen.counts]))
    if len(distinct) < _FEWEST or seen.rows < _REPEATS * len(distinct):
        return False
    steps = np.diff(distinct)
    step = np.gcd.reduce(steps.astype(np.int64))
    middle = distinct[len(distinct) // 10 : -max(len(distinct) // 10, 1)]  # without a tail of quantities
    return bool(len(middle) / ((middle[-1] - middle[0]) / step + 1) < _FILLED)


def code_tree(table: SeenTable) -> Iterator[Remark]:
    """Ask whether the beginning of long codes is a group, as of a diagnosis: a tree, or enough by itself."""
    for seen in table.categorical.values():
        words = list(seen.counts)
        alike = sum(n for word, n in seen.counts.items() if _TREE.fullmatch(word))
        if len(words) <= _MANY or seen.kept or seen.outcome or alike < 0.99 * seen.rows:
            continue
        found = {
            cut: {word: group for word in words if (group := begin(word))} for cut, begin in _cuts(words)
        }
        useful = {
            cut: groups for cut, groups in found.items() if 2 <= len({*groups.values()}) <= len(words) // 2
        }
        if useful:
            likely = sorted(useful, key=lambda cut: abs(len({*useful[cut].values()}) - _MANY))[:4]
            answers = [*_trees(useful), *(_grouped(cut, useful[cut], seen) for cut in likely)]
            yield Remark(
                seen.name,
                "question",
                "long codes, and noise hides the rare ones. Is their beginning a group, as of a diagnosis?",
                f"{len(words):,} codes, such as {words[0]}",
                "code_tree",
                (*answers, Answer("all", "each code by itself, as drafted")),
            )


def _cuts(words: list[str]) -> Iterator[tuple[str, Callable[[str], str]]]:
    """Ways to cut codes: behind some characters, where all have as many, or at a point."""
    if any("." in word for word in words):
        yield "before the point", lambda word: word.split(".")[0]
    for k in (
        range(1, min(map(len, words)) + 1) if len({len(word.split(".")[0]) for word in words}) == 1 else ()
    ):
        yield f"first {k}", lambda word, k=k: word[:k].rstrip(".-")  # type: ignore[misc]


def _trees(useful: Mapping[str, Mapping[str, str]]) -> Iterator[Answer]:
    """A tree of the beginnings of so many characters that tell more groups apart than shorter ones do."""
    sizes = {int(cut.split()[1]): len({*useful[cut].values()}) for cut in useful if cut.startswith("first")}
    prefixes = [k for k, size in sizes.items() if size > sizes.get(k - 1, 0)]
    if prefixes:
        meaning = f"each code by itself, and rare ones by their first {few(prefixes)} characters"
        yield Answer("tree", meaning, {"tree": {"prefixes": prefixes}})


def _grouped(cut: str, groups: Mapping[str, str], seen: SeenColumn) -> Answer:
    """Categories of the groups, as which longer codes are read."""
    kept = tuple(sorted({*groups.values()}))
    kind = "categorical" if len(kept) > 2 else "binary"
    aliases = {word: group for word, group in groups.items() if group != word}
    fields = {"kind": kind, "categories": kept, "aliases": aliases}
    return Answer(cut, f"{len(kept)} groups of codes", fields)


def _answers(seen: SeenColumn) -> tuple[Answer, ...]:
    words = sorted(seen.counts)
    missing = bool(seen.values.isna().any() or (seen.cells is not None and seen.cells.absent))
    fields = {"kind": "categorical", "categories": tuple(words), "missing": missing}
    codes = Answer("codes", "categories, as they are written", fields)
    if seen.column is None:
        return codes, Answer("leave out", "an identifier, as drafted")
    numbers = Answer("numbers", "quantities, as drafted")
    return codes, numbers, Answer("leave out", "an identifier", options={"drop": (seen.name,)})
