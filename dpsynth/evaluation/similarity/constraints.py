"""Rules that records must obey, written as text.

A rule such as ``dbp <= sbp`` or ``not (pregnant == 'yes') or sex == 'F'`` is read by the small grammar below
and never run as code::

    rule        =  part { "or" part }
    part        =  term { "and" term }
    term        =  "not" term | "(" rule ")" | comparison
    comparison  =  operand ("<" | "<=" | ">" | ">=" | "==" | "!=") operand
    operand     =  column | `column` | number | 'text' | "text"

Columns with blanks or other signs in their names stand between backquotes. Ordinal columns compare by rank,
columns of categories only by ``==`` and ``!=``. A comparison with a missing value is neither true nor false,
and a record breaks a rule only where the rule is false.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.evaluation.features import numeric_values
from dpsynth.evaluation.records import Measure
from dpsynth.table.schema import Column, Schema

GROUP = "Constraints"

Bools = NDArray[np.bool_]
#: where a rule is true and where it is false; neither where a missing value leaves it open
Truth = tuple[Bools, Bools]

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])
    |(?P<operator><=|>=|==|!=|<|>)|(?P<bracket>[()])
    |`(?P<quoted>[^`]+)`|'(?P<text1>[^']*)'|"(?P<text2>[^"]*)"
    |(?P<word>[^\W\d][\w.]*))""",
    re.VERBOSE,
)
#: bounds the depth of nested brackets
_LONGEST = 150

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True)
class Rule:
    """A rule read from text; make it with :func:`parse_rule`.

    Attributes
    ----------
    text : str
    truth : callable
        From a conformed frame to where the rule is true and where it is false.
    """

    text: str
    truth: Callable[[pd.DataFrame], Truth]

    def broken(self, frame: pd.DataFrame) -> Bools:
        """Return which records of a conformed frame break the rule, shape (n,)."""
        return self.truth(frame)[1]


def parse_rule(text: str, schema: Schema) -> Rule:
    """Read a rule.

    Raises
    ------
    InputError
        One sentence that gives the rule and what is wrong with it.

    Examples
    --------
    >>> schema = Schema(columns=(Column(name="sbp", kind="integer", lower=40, upper=260),
    ...                          Column(name="dbp", kind="integer", lower=20, upper=160)))
    >>> rule = parse_rule("dbp <= sbp and sbp < 250", schema)
    >>> rule.broken(pd.DataFrame({"sbp": [120, 80, 255], "dbp": [80, 90, 100]})).tolist()
    [False, True, True]
    """
    if not isinstance(text, str):
        raise InputError(f"a constraint must be text such as 'dbp <= sbp', got {text!r}")
    try:
        return Rule(text, _Parser(text, schema).rule_to_the_end())
    except ValueError as problem:
        raise InputError(f"constraint {text!r}: {problem}") from None


def violations(rules: Sequence[Rule], synthetic: pd.DataFrame, train: pd.DataFrame) -> Iterator[Measure]:
    """Yield the share of synthetic and of training records that break each rule.

    Parameters
    ----------
    rules : sequence of Rule
    synthetic, train : pandas.DataFrame of shape (m, columns), (n, columns)
        Conformed, at least one record each.
    """
    for rule in rules:
        for table, frame in (("synthetic", synthetic), ("train", train)):
            broken = rule.broken(frame)
            what = f"share of {table} records that break it, {int(broken.sum()):,} of {len(frame):,}"
            name = f"constraint_violations_{table}[{rule.text}]"
            yield Measure(GROUP, name, float(broken.mean()), table != "synthetic", what)


@dataclass(frozen=True)
class _Operand:
    column: Column | None
    value: float | str | None

    def __str__(self) -> str:
        return repr(self.column.name if self.column is not None else self.value)


class _Parser:
    """Recursive descent over the grammar of the module; ValueError says what is wrong."""

    def __init__(self, text: str, schema: Schema) -> None:
        self.schema = schema
        self.tokens = list(_tokens(text))
        self.place = 0
        if len(self.tokens) > _LONGEST:
            raise ValueError(f"it has {len(self.tokens)} words and signs; at most {_LONGEST} are read")

    def rule_to_the_end(self) -> Callable[[pd.DataFrame], Truth]:
        rule = self._rule()
        if self.place < len(self.tokens):
            raise ValueError(f"{self.tokens[self.place][1]!r} is not expected here")
        return rule

    def _rule(self) -> Callable[[pd.DataFrame], Truth]:
        rule = self._part()
        while self._takes("word", "or"):
            rule = _either(rule, self._part())
        return rule

    def _part(self) -> Callable[[pd.DataFrame], Truth]:
        part = self._term()
        while self._takes("word", "and"):
            # not (not a or not b), in three-valued logic as well
            part = _negated(_either(_negated(part), _negated(self._term())))
        return part

    def _term(self) -> Callable[[pd.DataFrame], Truth]:
        if self._takes("word", "not"):
            return _negated(self._term())
        if self._takes("bracket", "("):
            rule = self._rule()
            if not self._takes("bracket", ")"):
                raise ValueError("a bracket is not closed")
            return rule
        left = self._operand()
        kind, sign = self._next("a comparison")
        if kind != "operator":
            raise ValueError(f"a comparison such as <= is expected in place of {sign!r}")
        return _comparison(left, sign, self._operand())

    def _operand(self) -> _Operand:
        kind, text = self._next("a column, number or text")
        if kind == "number":
            return _Operand(None, float(text))
        if kind == "text":
            return _Operand(None, text)
        if kind == "quoted" or (kind == "word" and text not in ("and", "or", "not")):
            if text not in self.schema.names:
                raise ValueError(f"{text!r} is not a column (columns: {', '.join(self.schema.names)})")
            return _Operand(self.schema.column(text), None)
        raise ValueError(f"a column, number or text is expected in place of {text!r}")

    def _next(self, wanted: str) -> tuple[str, str]:
        if self.place >= len(self.tokens):
            raise ValueError(f"it ends where {wanted} is expected")
        self.place += 1
        return self.tokens[self.place - 1]

    def _takes(self, kind: str, text: str) -> bool:
        found = self.place < len(self.tokens) and self.tokens[self.place] == (kind, text)
        self.place += found
        return found


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    place, end = 0, len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            raise ValueError(f"{text[place:].strip()[:20]!r} cannot be read")
        kind = "text" if match.lastgroup.startswith("text") else match.lastgroup
        yield kind, match[match.lastgroup]
        place = match.end()


def _either(a: Callable[[pd.DataFrame], Truth], b: Callable[[pd.DataFrame], Truth]) -> Any:
    def truth(frame: pd.DataFrame) -> Truth:
        (a_true, a_false), (b_true, b_false) = a(frame), b(frame)
        return a_true | b_true, a_false & b_false

    return truth


def _negated(a: Callable[[pd.DataFrame], Truth]) -> Any:
    return lambda frame: a(frame)[::-1]


def _comparison(left: _Operand, sign: str, right: _Operand) -> Callable[[pd.DataFrame], Truth]:
    columns = [operand.column for operand in (left, right) if operand.column is not None]
    if not columns:
        raise ValueError(f"{left} {sign} {right} compares no column")
    lists = [column.categories for column in columns if not column.is_numeric]
    if lists and (len(lists) < len(columns) or any(entry != lists[0] for entry in lists)):
        raise ValueError(f"{left} and {right} have different values and cannot be compared")
    if lists and sign not in ("==", "!=") and not all(column.is_ordinal for column in columns):
        raise ValueError(f"{left} {sign} {right}: categories without order compare only by == and !=")
    sides = [_side(operand, lists[0] if lists else None) for operand in (left, right)]

    def truth(frame: pd.DataFrame) -> Truth:
        a, b = (side(frame) for side in sides)
        known = ~(np.isnan(a) | np.isnan(b))
        holds = _COMPARE[sign](a, b)
        return holds & known, ~holds & known

    return truth


def _side(operand: _Operand, categories: tuple[Any, ...] | None) -> Callable[[pd.DataFrame], Any]:
    """Return how an operand becomes numbers: values, or places among the categories; NaN where missing."""
    column = operand.column
    if column is not None:
        return lambda frame: numeric_values(column, frame[column.name])
    if categories is None:
        if isinstance(operand.value, str):
            raise ValueError(f"the text {operand} cannot be compared with a numeric column")
        number = np.float64(operand.value if operand.value is not None else np.nan)
        return lambda frame: number
    places = [i for i, category in enumerate(categories) if _means(category, operand.value)]
    if not places:
        listed = ", ".join(repr(category) for category in categories[:12])
        raise ValueError(f"{operand} is not a declared category ({listed})")
    place = np.float64(places[0])
    return lambda frame: place


def _means(category: Any, value: float | str | None) -> bool:
    if isinstance(value, str):
        return (
            str(category).lower() == value.lower() if isinstance(category, bool) else str(category) == value
        )
    return not isinstance(category, str) and float(category) == value
