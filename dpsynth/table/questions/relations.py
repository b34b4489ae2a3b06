"""Columns that other columns decide: the same measurement twice, sums, sets, and codes with their group."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from dpsynth.table.cells import number, spoken
from dpsynth.table.questions.seen import Floats, SeenColumn, SeenTable
from dpsynth.table.remarks import Answer, Remark

#: rows that must agree, and their share
_FEWEST, _AGREE = 30, 0.99
#: columns between which sums are looked for
_MOST = 60
#: factors and constants between units
_FACTORS = (
    1.0,
    -1.0,
    1.8,
    1 / 1.8,
    2.54,
    1 / 2.54,
    0.45359237,
    2.20462,
    1000.0,
    0.001,
    100.0,
    0.01,
    12.0,
    1 / 12,
    7.0,
    1 / 7,
    365.25,
    1 / 365.25,
)


def same_measure(table: SeenTable) -> Iterator[Remark]:
    """Ask about numbers that are those of another column in another unit, or a constant less them."""
    names = [name for name in table.numeric if _plain(name) is not None][:_MOST]
    taken: set[str] = set()
    for first, second in combinations(names, 2):
        if second in taken:
            continue
        x, y = table.numeric[first], table.numeric[second]
        formula = _linear(first, x, y)
        if formula is not None:
            taken.add(second)
            yield _computed(table, second, formula, "same_measure", "is it computed from the other column?")


def _linear(name: str, x: Floats, y: Floats) -> str | None:
    """The formula by which y follows from x, with a usual factor, in nearly all rows."""
    there = ~(np.isnan(x) | np.isnan(y))
    if there.sum() < _FEWEST or len(np.unique(x[there])) < 10:
        return None
    a, b = x[there], y[there]
    with np.errstate(all="ignore"):
        r = np.corrcoef(a, b)[0, 1]
    if not abs(r) > 0.995:
        return None
    slope = float(np.std(b) / np.std(a) * np.sign(r))
    factor = min(_FACTORS, key=lambda f: abs(f / slope - 1))
    if abs(factor / slope - 1) > 0.02:
        return None
    off = b - factor * a
    constant = float(np.round(np.median(off), 6))
    constant = float(np.rint(constant)) if abs(constant - np.rint(constant)) <= _half_step(b) else constant
    near = np.abs(off - constant) <= max(_half_step(b), abs(factor) * _half_step(a)) * 2.001
    if near.mean() < _AGREE:
        return None
    shown = _plain(name)
    term = shown if factor == 1.0 else f"-{shown}" if factor == -1.0 else f"{shown} * {factor:.8g}"
    if factor == -1.0 and constant:
        return f"{constant:g} - {shown}"
    return f"{term} {'+' if constant > 0 else '-'} {abs(constant):g}" if constant else term


def _half_step(values: Floats) -> float:
    for decimals in range(7):
        if np.allclose(values, np.round(values, decimals), atol=1e-9):
            return 0.5 * 10.0**-decimals
    return 0.0


def sum_of_parts(table: SeenTable) -> Iterator[Remark]:
    """Ask about columns of numbers that are the sum of two or three others."""
    numeric = {name: values for name, values in table.numeric.items() if _plain(name) is not None}
    for name, whole in list(numeric.items())[:_MOST]:
        parts = [
            other
            for other, values in numeric.items()
            if other != name
            and _share(values <= whole + 1e-9, values, whole) >= _AGREE
            and np.nanmax(values) > 0
        ][:15]
        found = next(
            (
                chosen
                for k in (2, 3)
                for chosen in combinations(parts, k)
                if _adds(whole, [numeric[p] for p in chosen])
            ),
            None,
        )
        if found:
            formula = " + ".join(str(_plain(part)) for part in found)
            yield _computed(table, name, formula, "sum_of_parts", "is it the sum of these?")


def _share(holds: np.ndarray, *columns: Floats) -> float:
    there = ~np.any([np.isnan(column) for column in columns], axis=0)
    return float(holds[there].mean()) if there.sum() >= _FEWEST else 0.0


def _adds(whole: Floats, parts: Sequence[Floats]) -> bool:
    if any(len(np.unique(part[~np.isnan(part)])) < 3 for part in parts):
        return False
    step = _half_step(whole[~np.isnan(whole)])
    return _share(np.abs(whole - np.sum(parts, axis=0)) <= step * 0.999 + 1e-9, whole, *parts) >= _AGREE


def _computed(table: SeenTable, name: str, formula: str, question: str, text: str) -> Remark:
    seen = next(seen for seen in table.columns if seen.name == name)
    inputs = [other for other in table.columns if other.column and str(_plain(other.name)) in formula]
    missing = bool(seen.column and seen.column.missing) or any(
        one.column.missing for one in inputs if one.column
    )
    answers = (
        Answer(
            "computed",
            "declared as derived, by this formula",
            {"derived": formula, "missing": missing, "special": None},
        ),
        Answer("not computed", "as drafted"),
    )
    return Remark(name, "question", text, f"{name} = {formula}", question, answers, formula)


def _plain(name: str) -> str | None:
    """The name as formulas write it, None where they cannot."""
    if name.isascii() and name.isidentifier() and name not in ("and", "or", "not"):
        return name
    return None if "`" in name or not name.isprintable() else f"`{name}`"


def one_of_a_set(table: SeenTable) -> Iterator[Remark]:
    """Ask whether exactly one, or at most one, of yes/no columns with one beginning of their names is yes."""
    sets: dict[str, list[SeenColumn]] = defaultdict(list)
    for name, seen in table.categorical.items():
        prefix = re.match(r"(.+?)[_. -]", name)
        if prefix and seen.column and seen.column.categories == (0, 1) and not seen.outcome:
            sets[prefix[1]].append(seen)
    for members in sets.values():
        if len(members) < 3:
            continue
        ones = np.sum([seen.values.map(spoken).eq("1").to_numpy() for seen in members], axis=0)
        exactly, most = float((ones == 1).mean()), float((ones <= 1).mean())
        if most < 0.98 or ones.mean() < 0.05:
            continue
        total = " + ".join(str(_plain(seen.name)) for seen in members)
        answers = [
            Answer("exactly one", "one is yes in each row", rules=(f"{total} = 1",)),
            Answer("at most one", "one is yes, or none", rules=(f"{total} <= 1",)),
            Answer("several", "as drafted"),
        ]
        if exactly < 0.98:
            answers[:2] = answers[1::-1]
        shown = f"{exactly:.1%} of rows have exactly one yes among {', '.join(seen.name for seen in members)}"
        yield Remark(
            members[0].name,
            "question",
            "do these yes/no columns say one thing, of which there is one in each row?",
            shown,
            "one_of_a_set",
            tuple(answers),
            total,
        )


def decided_by(table: SeenTable) -> Iterator[Remark]:
    """Ask about categories that another column decides: a region by its hospital, a class by its number."""
    columns = [*table.categorical.values()]
    codes = {seen.name: seen.codes[table.some] for seen in columns}
    for seen in columns:
        n = len(seen.counts)
        if n < 2 or max(seen.counts.values(), default=0) > 0.98 * seen.rows:
            continue
        by = next(
            (
                other.name
                for other in columns
                if other.name != seen.name and _decides(codes[other.name], codes[seen.name])
            ),
            None,
        )
        by = by or next(
            (name for name, values in table.numeric.items() if _cuts(values, codes[seen.name])), None
        )
        if by is not None:
            yield Remark(
                seen.name,
                "question",
                "does the other column decide it, in each row? Then samples will break it: leave out the one "
                "that says less",
                f"by {by}",
                "decided_by",
                (
                    Answer(
                        "decided", "it is left out: the other column says it", options={"drop": (seen.name,)}
                    ),
                    Answer("not decided", "as drafted"),
                ),
                by,
            )


def _decides(by: np.ndarray, of: np.ndarray) -> bool:
    """Whether each code of one column has one code of the other, and several have each of those."""
    there = (by >= 0) & (of >= 0)
    a, b = by[there], of[there]
    n_a, n_b, rows = len(np.unique(a)), len(np.unique(b)), len(a)
    if not 2 <= n_b < n_a or rows < 5 * n_a:
        return False
    pairs, counts = np.unique(np.stack([a, b]), axis=1, return_counts=True)
    best = np.zeros(int(a.max()) + 1, np.int64)
    np.maximum.at(best, pairs[0], counts)
    wrong, usual = rows - best.sum(), np.bincount(b).max()
    return bool(wrong <= 0.005 * rows and wrong <= 0.05 * (rows - usual))


def _cuts(values: Floats, of: np.ndarray) -> bool:
    """Whether ranges of a number, which do not overlap, have one category each."""
    there = ~np.isnan(values) & (of >= 0)
    a, b = values[there], of[there]
    if len(a) < _FEWEST or len(np.unique(a)) < 3 * len(np.unique(b)) or len(np.unique(b)) < 2:
        return False
    order = np.argsort(a, kind="stable")
    changes = np.flatnonzero(np.diff(b[order])) + 1
    return len(changes) == len(np.unique(b)) - 1 and bool((a[order][changes] > a[order][changes - 1]).all())


def named_items(table: SeenTable) -> Iterator[Remark]:
    """Ask whether a column of numbers holds several measurements, of which another one has the names."""
    named = [
        seen
        for seen in table.categorical.values()
        if 2 <= len(seen.counts) <= _MOST and not any(number(word) is not None for word in seen.counts)
    ]
    text = (
        "does it hold several measurements, whose names stand in the other column? Then draft the folder of "
        "this file, not the file: each measurement becomes a column"
    )
    for name, values in table.numeric.items():
        by = next((seen.name for seen in named if _scales(values, seen.codes[table.some])), None)
        if by is not None:
            yield Remark(name, "question", text, f"named by {by}", "items")


def _scales(values: Floats, of: np.ndarray) -> bool:
    """Whether numbers of different codes lie so far apart that they are different quantities."""
    groups = [values[(of == code) & ~np.isnan(values)] for code in range(int(of.max(initial=-1)) + 1)]
    groups = [group for group in groups if len(group) >= 10]
    if len(groups) < 2:
        return False
    middles = np.sort([np.median(group) for group in groups])
    most = max(float(np.subtract(*np.quantile(group, (0.9, 0.1)))) for group in groups)
    apart = middles[-1] - middles[0]
    return bool(apart > 5 * most or (0 < 10 * middles[0] < middles[-1] and apart > 2 * most))
