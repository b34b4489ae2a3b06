"""Rules that records must obey, written as text.

A rule such as ``dbp <= sbp`` or ``pregnant == 'yes' implies sex == 'F'`` is read by the small grammar below
and never run as code::

    rule        =  choice [ "implies" rule ]
    choice      =  part { "or" part }
    part        =  term { "and" term }
    term        =  "not" term | "(" rule ")" | comparison
    comparison  =  operand ("<" | "<=" | ">" | ">=" | "=" | "==" | "!=") operand
                |  column ["not"] "in" "(" value { "," value } ")"  |  column "is" ["not"] "missing"
    operand     =  column | value
    value       =  number | 'text' | "text" | word

Columns with blanks or other signs in their names stand between backquotes. A word on the right that names no
column is a category. Ordinal columns compare by rank, columns of categories only by equality. As in SQL, a
comparison with a missing value is neither true nor false; a record breaks a constraint only where it is false
(CHECK), and a condition selects a record only where it is true (WHERE).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.table.column import Column, Columns
from dpsynth.table.values import numeric_values

Bools = NDArray[np.bool_]
#: where a rule is true and where it is false; neither where a missing value leaves it open
Truth = tuple[Bools, Bools]
#: what conditional sampling takes: rules, or values of columns
Where = str | Sequence[str] | Mapping[str, Any]

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])
    |(?P<operator><=|>=|==|!=|<|>|=)|(?P<bracket>[(),])
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
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
}
_EQUALITY = ("=", "==", "!=")


@dataclass(frozen=True)
class Rule:
    """A rule read from text; make it with :func:`parse_rule`.

    Attributes
    ----------
    text : str
    truth : callable
        From a conformed frame to where the rule is true and where it is false.
    columns : frozenset of str
        The columns that it names.
    """

    text: str
    truth: Callable[[pd.DataFrame], Truth]
    columns: frozenset[str]

    def broken(self, frame: pd.DataFrame) -> Bools:
        """Return which records of a conformed frame break the rule, shape (n,): where it is false."""
        return self.truth(frame)[1]

    def selected(self, frame: pd.DataFrame) -> Bools:
        """Return which records of a conformed frame the rule selects, shape (n,): where it is true."""
        return self.truth(frame)[0]


def parse_rule(text: str, schema: Columns, what: str = "constraint") -> Rule:
    """Read a rule.

    Parameters
    ----------
    what : str
        What the rule is, for the error's first word.

    Raises
    ------
    InputError
        One sentence that gives the rule and what is wrong with it.

    Examples
    --------
    >>> from dpsynth.table.schema import Schema
    >>> schema = Schema(columns=(Column(name="sbp", kind="integer", lower=40, upper=260),
    ...                          Column(name="dbp", kind="integer", lower=20, upper=160)))
    >>> rule = parse_rule("dbp <= sbp and sbp < 250", schema)
    >>> rule.broken(pd.DataFrame({"sbp": [120, 80, 255], "dbp": [80, 90, 100]})).tolist()
    [False, True, True]
    """
    if not isinstance(text, str):
        raise InputError(f"a {what} must be text such as 'dbp <= sbp', got {text!r}")
    try:
        parser = _Parser(text, schema)
        return Rule(text, parser.rule_to_the_end(), frozenset(parser.named))
    except ValueError as problem:
        raise InputError(f"{what} {text!r}: {problem}") from None


def parse_where(where: Where | None, schema: Columns) -> tuple[Rule, ...]:
    """Read the conditions of conditional sampling.

    Parameters
    ----------
    where : str, sequence of str, or mapping
        Rules, which must all be true; or for each column a value, a range ``(low, high)`` with both ends
        (None: open), a list of values, or None for missing.
    schema : Schema

    Raises
    ------
    InputError
        One sentence that gives the condition and what is wrong with it.

    Examples
    --------
    >>> from dpsynth.table.schema import Schema
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=18, upper=110),
    ...                          Column(name="sex", kind="binary", categories=("F", "M"))))
    >>> [rule.text for rule in parse_where({"sex": "F", "age": (65, 80)}, schema)]
    ["sex == 'F'", 'age >= 65', 'age <= 80']
    """
    if where is None:
        return ()
    if isinstance(where, str):
        where = (where,)
    if not isinstance(where, Mapping):
        if not isinstance(where, Sequence):
            raise InputError(f"where must be a rule such as 'age >= 65', rules or a mapping, got {where!r}")
        return tuple(parse_rule(text, schema, "condition") for text in where)
    return tuple(rule for name, value in where.items() for rule in _conditions(name, value, schema))


def _conditions(name: str, value: Any, schema: Columns) -> Iterator[Rule]:
    if name not in schema.names:
        raise InputError(f"where: {name!r} is not a column (columns: {', '.join(schema.names)})")
    column = schema.column(name)
    left = _Operand(column, None)
    try:
        if value is None:
            yield Rule(f"{name} is missing", _missing(column), frozenset([name]))
        elif isinstance(value, tuple):
            if len(value) != 2:
                raise ValueError(f"a range has two ends, got {value!r}")
            for sign, end in zip((">=", "<="), value, strict=True):
                if end is not None:
                    right = _Operand(None, _plain(end))
                    yield Rule(f"{name} {sign} {right}", _comparison(left, sign, right), frozenset([name]))
        elif isinstance(value, list | set | frozenset):
            values = [_Operand(None, _plain(entry)) for entry in value]
            if not values:
                raise ValueError("a list of values is empty")
            listed = ", ".join(map(str, values))
            yield Rule(f"{name} in ({listed})", _among(left, values), frozenset([name]))
        else:
            right = _Operand(None, _plain(value))
            yield Rule(f"{name} == {right}", _comparison(left, "==", right), frozenset([name]))
    except ValueError as problem:
        raise InputError(f"where {name!r}: {problem}") from None


def _plain(value: Any) -> float | str:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str | int | float):
        return value
    raise ValueError(f"{value!r} is neither text nor a number")


@dataclass(frozen=True)
class _Operand:
    column: Column | None
    value: float | str | None
    word: bool = False

    def __str__(self) -> str:
        return repr(self.column.name if self.column is not None else self.value)


class _Parser:
    """Recursive descent over the grammar of the module; ValueError says what is wrong."""

    def __init__(self, text: str, schema: Columns) -> None:
        self.schema = schema
        self.tokens = list(_tokens(text))
        self.place = 0
        self.named: set[str] = set()
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
        if self._takes("word", "implies"):
            return _either(_negated(rule), self._rule())
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
        if kind == "operator":
            return _comparison(left, sign, self._operand(right=True))
        if (kind, sign) == ("word", "is"):
            wanted = self._takes("word", "not")
            if not self._takes("word", "missing") or left.column is None:
                raise ValueError("'is' stands between a column and 'missing' or 'not missing'")
            return _negated(_missing(left.column)) if wanted else _missing(left.column)
        denied = (kind, sign) == ("word", "not") and self._takes("word", "in")
        if denied or (kind, sign) == ("word", "in"):
            return _negated(_among(left, self._values())) if denied else _among(left, self._values())
        raise ValueError(f"a comparison such as <= is expected in place of {sign!r}")

    def _values(self) -> list[_Operand]:
        if not self._takes("bracket", "("):
            raise ValueError("'in' is followed by values between brackets, such as ('I', 'II')")
        values = [self._operand(right=True)]
        while self._takes("bracket", ","):
            values.append(self._operand(right=True))
        if not self._takes("bracket", ")"):
            raise ValueError("a bracket is not closed")
        return values

    def _operand(self, right: bool = False) -> _Operand:
        kind, text = self._next("a column, number or text")
        if kind == "number":
            return _Operand(None, float(text))
        if kind == "text":
            return _Operand(None, text)
        if kind == "quoted" or (kind == "word" and text not in ("and", "or", "not")):
            if text in self.schema.names:
                self.named.add(text)
                return _Operand(self.schema.column(text), None)
            if kind == "quoted" or not right:
                raise _unknown(text, self.schema.names)
            return _Operand(None, text, word=True)
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


def _unknown(name: str, columns: Sequence[str]) -> ValueError:
    return ValueError(f"{name!r} is not a column (columns: {', '.join(columns)})")


def _either(a: Callable[[pd.DataFrame], Truth], b: Callable[[pd.DataFrame], Truth]) -> Any:
    def truth(frame: pd.DataFrame) -> Truth:
        (a_true, a_false), (b_true, b_false) = a(frame), b(frame)
        return a_true | b_true, a_false & b_false

    return truth


def _negated(a: Callable[[pd.DataFrame], Truth]) -> Any:
    return lambda frame: a(frame)[::-1]


def _missing(column: Column) -> Callable[[pd.DataFrame], Truth]:
    def truth(frame: pd.DataFrame) -> Truth:
        absent = frame[column.name].isna().to_numpy(dtype=bool)
        return absent, ~absent

    return truth


def _among(left: _Operand, values: Sequence[_Operand]) -> Callable[[pd.DataFrame], Truth]:
    if left.column is None or any(value.column is not None for value in values):
        raise ValueError("'in' stands between a column and values")
    rule = _comparison(left, "==", values[0])
    for value in values[1:]:
        rule = _either(rule, _comparison(left, "==", value))
    return rule


def _comparison(left: _Operand, sign: str, right: _Operand) -> Callable[[pd.DataFrame], Truth]:
    columns = [operand.column for operand in (left, right) if operand.column is not None]
    lists = [column.categories for column in columns if not column.is_numeric]
    if right.word and not (lists and any(_means(category, right.value) for category in lists[0])):
        among = f" and no category of {left} ({_listed(lists[0])})" if lists else ""
        raise ValueError(f"{right} is not a column{among}")
    if not columns:
        raise ValueError(f"{left} {sign} {right} compares no column")
    if lists and (len(lists) < len(columns) or any(entry != lists[0] for entry in lists)):
        raise ValueError(f"{left} and {right} have different values and cannot be compared")
    if lists and sign not in _EQUALITY and not all(column.is_ordinal for column in columns):
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
        raise ValueError(f"{operand} is not a declared category ({_listed(categories)})")
    place = np.float64(places[0])
    return lambda frame: place


def _listed(categories: Sequence[Any]) -> str:
    return ", ".join(repr(category) for category in categories[:12])


def _means(category: Any, value: float | str | None) -> bool:
    if isinstance(value, str):
        return (
            str(category).lower() == value.lower() if isinstance(category, bool) else str(category) == value
        )
    return value is not None and not isinstance(category, str) and float(category) == value
