"""Persons with several rows, whatever their column is called."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd

from dpsynth.table import identity
from dpsynth.table.questions.seen import SeenColumn, SeenTable
from dpsynth.table.remarks import Answer, Remark

#: the beginning of a name that says whose row it is
_WHOSE = re.compile(
    r"(?:patient|subject|person|participant|case|stay|pat|pt)(?:.*(?:id|nr|no|num|number|key))?$", re.I
)
#: persons, and rows of one of them in the middle, from and to which a column may hold persons
_FEWEST, _MOST_ROWS = 50, 15
#: share of persons with several rows whose value must not change, for a column to be the person's own
_SAME = 0.99


def person(table: SeenTable) -> Iterator[Remark]:
    """Ask whether a column that repeats holds persons: its name says so, or others are constant within it."""
    named = []
    for seen in table.columns:
        if not identity.is_person(seen.name):
            continue
        for found in identity.repeated_persons(seen.frame()):
            named.append(seen.name)
            yield _asked(seen.name, f"{found.rows:,} rows of {found.distinct:,} different values")
    candidates = [] if named else [seen for seen in table.columns if _repeats(seen)]
    same = {seen.name: _constant(seen, table) for seen in candidates}
    same = {name: constant for name, constant in same.items() if constant or _WHOSE.match(name)}
    if same:
        name = max(same, key=lambda each: len(same[each]))
        constant = ", ".join(same[name][:3]) or "nothing"
        yield _asked(name, f"it repeats, and within one of its values {constant} does not change")


def _asked(name: str, why: str) -> Remark:
    return Remark(
        name,
        "question",
        "are these persons who have several rows? Then only one row of a person is protected, not the "
        "person. Describe several rows (--unit, dpsynth.patients.infer_patient_schema), or make one row a "
        "person first",
        why,
        "person",
        (
            Answer("persons", "a person has several rows, and is protected", options={"unit": (name,)}),
            Answer("no persons", "one row is protected, as drafted"),
        ),
    )


def _repeats(seen: SeenColumn) -> bool:
    """Whether a column has as many values, and as few rows of each, as persons have."""
    if seen.column is not None and (seen.column.written_apart or seen.column.kind == "continuous"):
        return False
    sizes = np.array(list(seen.counts.values()))
    return (
        len(sizes) >= _FEWEST and 2 <= float(np.median(sizes)) <= _MOST_ROWS and seen.rows == len(seen.values)
    )


def _constant(seen: SeenColumn, table: SeenTable) -> list[str]:
    """Columns that do not change within a value of this one, if others do, "" if all or none do."""
    constant, several = [], np.bincount(seen.codes[seen.codes >= 0]) > 1
    changing = 0
    for other in table.columns:
        if (
            other.name == seen.name
            or not len(other.counts) > 1
            or 10 * len(other.counts) > 9 * len(seen.counts)
        ):
            changing += other.name != seen.name and len(other.counts) > 1
            continue
        # Most of its cells hold one value: it stays the same by chance.
        if max(other.counts.values()) > 0.9 * other.rows:
            continue
        within = pd.Series(other.codes).groupby(seen.codes).nunique().to_numpy()
        if (within[several[: len(within)]] <= 1).mean() >= _SAME:
            constant.append(other.name)
        else:
            changing += 1
    return constant if changing else []
