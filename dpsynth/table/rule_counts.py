"""Count the rows of a table that obey each rule and formula: those declared, and those that names suggest.

All of this is confidential: it reads the records without noise. It is for the owner, who decides by it which
declared rule is wrong. A rule that nobody declared must hold by definition or nature to be declared.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth.errors import SchemaError
from dpsynth.table.derived import agreement, deviations
from dpsynth.table.expressions import Expression
from dpsynth.table.schema import Schema
from dpsynth.table.suggestions import Suggestion
from dpsynth.table.values import numbers_of


@dataclass(frozen=True)
class RuleCount:
    """How many rows obey a rule or formula, break it, or leave it open by a missing value. Confidential.

    ``column`` is the one that a formula computes, None for a rule. ``off_by`` is the median distance of rows
    that break a formula from its value, in ``unit``. It is None for a rule, and if no row breaks the formula.
    """

    text: str
    declared: bool
    obey: int
    broken: int
    open: int
    column: str | None = None
    off_by: float | None = None
    unit: str | None = None

    def __str__(self) -> str:
        rows = f"{self.obey:,} row{' obeys' if self.obey == 1 else 's obey'}"
        said = f"{rows}, {self.broken:,} {'does' if self.broken == 1 else 'do'} not"
        if self.off_by is not None:
            said += f" (median distance {self.off_by:.3g}{f' {self.unit}' if self.unit else ''})"
        said += f", {self.open:,} lack a value" if self.open else ""
        return f"{'' if self.declared else 'not declared: '}{self.text}: {said} (confidential)"


def count_rules(
    schema: Schema, frame: pd.DataFrame, rules: Sequence[Expression], suggestions: Iterable[Suggestion] = ()
) -> tuple[RuleCount, ...]:
    """Count the rows of a conformed frame that obey each rule, formula and suggestion, in this order.

    ``rules`` may be the declared ones or more. A suggestion is left out if a rule already names its columns
    together. So is a suggested formula if the declared limits exclude it, such as one in other units. The
    frame has derived columns as its owner gave them.

    Examples
    --------
    >>> from dpsynth.table.column import Column
    >>> from dpsynth.table.suggestions import suggested
    >>> schema = Schema(columns=(Column(name="sbp", kind="integer", lower=40, upper=260),
    ...                          Column(name="dbp", kind="integer", lower=20, upper=160, missing=True)))
    >>> frame = schema.conform(pd.DataFrame({"sbp": [120, 80, 140], "dbp": [70, 90, None]})).frame
    >>> print(*count_rules(schema, frame, schema.rules, suggested(schema)))
    not declared: dbp <= sbp: 1 row obeys, 1 does not, 1 lack a value (confidential)
    """
    found = [*_of_rules(rules, frame, declared=True), *_of_formulas(schema, frame, declared=True)]
    for one in suggestions:
        if any(set(rule.columns) >= {*one.columns} for rule in rules):
            continue
        plain = schema.select(one.columns)
        for text in one.texts:
            with contextlib.suppress(SchemaError):
                adopted = one.adopted(plain, text)
                counts = [*_of_rules(adopted.rules, frame, declared=False)]
                counts += _of_formulas(adopted, frame, declared=False)
                found += [count for count in counts if count.text == one.shown(text)]
    return tuple(found)


def _of_rules(rules: Iterable[Expression], frame: pd.DataFrame, *, declared: bool) -> Iterator[RuleCount]:
    for rule in rules:
        true, false = rule.truth(numbers_of(frame))
        yield RuleCount(rule.text, declared, *_sums(true, false))


def _of_formulas(schema: Schema, frame: pd.DataFrame, *, declared: bool) -> Iterator[RuleCount]:
    for column, formula in schema.formulas:
        agree, differ = agreement(frame, column, formula)
        off = np.abs(deviations(frame, column, formula)[differ])
        text = f"{column.name} = {formula.text}"
        unit = {"date": "days", "datetime": "seconds"}.get(column.kind, column.unit)
        distance = float(np.median(off)) if len(off) else None
        yield RuleCount(text, declared, *_sums(agree, differ), column.name, distance, unit)


def _sums(obey: np.ndarray, broken: np.ndarray) -> tuple[int, int, int]:
    return int(obey.sum()), int(broken.sum()), int((~obey & ~broken).sum())
