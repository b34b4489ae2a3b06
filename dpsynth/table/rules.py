"""Read rules that records must obey, written as text.

A rule such as ``dbp <= sbp`` or ``pregnant == 'yes' implies sex == 'F'`` is read by recursive descent and
never run as code::

    rule        =  choice [ "implies" rule ]
    choice      =  part { "or" part }
    part        =  term { "and" term }
    term        =  "not" term | "(" rule ")" | comparison
    comparison  =  sum ("<" | "<=" | ">" | ">=" | "=" | "==" | "!=") sum
                |  column ["not"] "in" "(" value { "," value } ")"  |  column "is" ["not"] "missing"
    sum         =  ["-"] operand { ("+" | "-") operand }
    operand     =  column | value
    value       =  ["+" | "-"] number | 'text' | "text" | word

A bare word is a column, text in quotes a category. Columns with blanks or other signs in their names stand
between backquotes. A bare word on the right that names no column is a category. One that is both is refused.
Ordinal columns compare by rank, columns of categories only by equality. Sums are of numbers. A date in quotes
is compared with a column of dates. Differences of dates are days.

As in SQL, a comparison with a missing value is neither true nor false. A record breaks a constraint only
where it is false (CHECK), and a condition selects a record only where it is true (WHERE). So a rule is read
as a function of the columns' numbers that gives where it is true and where it is false.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.checks import few
from dpsynth.errors import InputError
from dpsynth.table.column import Column, Columns
from dpsynth.table.dates import moment_days
from dpsynth.table.values import Numbers, amounts_of, numbers_of, quantities

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
#: where a rule is true and where it is false; neither where a missing value leaves it open
Truth = tuple[Bools, Bools]
Reading = Callable[[Numbers], Truth]

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
# Of the terms' absolute sum: 0.2 + 0.1 is 0.3 where a file says so.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Operand:
    """A column, a number, or text that is a category: ``bare`` without quotes, ``minus`` if subtracted.

    A date has both text and its number of days.
    """

    written: str
    column: Column | None = None
    number: float | None = None
    bare: bool = False
    minus: bool = False
    date: bool = False

    def __str__(self) -> str:
        return repr(self.written) if self.number is None else self.written

    @property
    def is_date(self) -> bool:
        """Whether it stands for dates."""
        return self.date or (self.column is not None and self.column.is_date)

    def means(self, category: Any) -> bool:
        """Whether a value is this category. A code such as 02116 is compared as it is written."""
        if self.number is not None and not isinstance(category, str):
            return float(category) == self.number
        said = str(category)
        return said.lower() == self.written.lower() if isinstance(category, bool) else said == self.written


#: one operand, or several that are added up
Sum = Sequence[Operand]


def either(a: Reading, b: Reading) -> Reading:
    """True where one of two rules is, false where both are."""

    def truth(numbers: Numbers) -> Truth:
        (a_true, a_false), (b_true, b_false) = a(numbers), b(numbers)
        return a_true | b_true, a_false & b_false

    return truth


def negated(a: Reading) -> Reading:
    """True where a rule is false."""

    def truth(numbers: Numbers) -> Truth:
        true, false = a(numbers)
        return false, true

    return truth


def both(a: Reading, b: Reading) -> Reading:
    """True where two rules are, false where one is."""
    return negated(either(negated(a), negated(b)))


def missing(left: Sum) -> Reading:
    """True where a column has no value, ValueError if it is no column."""
    column = left[0].column
    if len(left) > 1 or column is None:
        raise ValueError("'is' stands between a column and 'missing' or 'not missing'")

    def truth(numbers: Numbers) -> Truth:
        absent = np.isnan(numbers(column))
        return absent, ~absent

    return truth


def among(left: Sum, values: Sequence[Operand]) -> Reading:
    """True where a column has one of the values."""
    if len(left) > 1 or left[0].column is None or any(value.column is not None for value in values):
        raise ValueError("'in' stands between a column and values")
    rule = compared(left, "==", [values[0]])
    for value in values[1:]:
        rule = either(rule, compared(left, "==", [value]))
    return rule


def compared(left: Sum, sign: str, right: Sum) -> Reading:
    """Read a comparison, or raise ValueError if it cannot be made or a word is ambiguous."""
    columns = [operand.column for side in (left, right) for operand in side if operand.column is not None]
    lists = [column.categories for column in columns if not column.is_numeric]
    single = len(left) == len(right) == 1
    for word in (operand for operand in right if operand.bare and operand.column is None):
        if not (single and lists and any(word.means(category) for category in lists[0])):
            beside = f" and no category of {left[0]} ({few(map(repr, lists[0]))})" if single and lists else ""
            raise ValueError(f"{word} is not a column{beside}")
    if not columns:
        raise ValueError(f"{_shown(left)} {sign} {_shown(right)} compares no column")
    if any(column.is_date for column in columns):
        return _sums_compared(*_with_dates(left, sign, right))
    if not single or left[0].minus or right[0].minus:
        return _sums_compared(left, sign, right)
    _check_clear(left[0], sign, right[0])
    if lists and (len(lists) < len(columns) or any(entry != lists[0] for entry in lists)):
        raise ValueError(f"{left[0]} and {right[0]} have different values and cannot be compared")
    if lists and sign not in _EQUALITY and not all(column.is_ordinal for column in columns):
        raise ValueError(f"{left[0]} {sign} {right[0]}: categories without order compare only by == and !=")
    # a special code is no quantity: it can be asked for, but is not more or less than anything
    special = sign in _EQUALITY
    sides = [_side(side[0], lists[0] if lists else None, special) for side in (left, right)]

    def truth(numbers: Numbers) -> Truth:
        a, b = (side(numbers) for side in sides)
        return _where_known(_COMPARE[sign](a, b), a + b)

    return truth


def _with_dates(left: Sum, sign: str, right: Sum) -> tuple[Sum, str, Sum]:
    """The same comparison with text read as dates, if dates are compared with dates and days with days."""
    sides = [[_dated(operand) for operand in side] for side in (left, right)]
    of_left, of_right = (
        sum((-1 if operand.minus else 1) for operand in side if operand.is_date) for side in sides
    )
    if of_left != of_right:
        raise ValueError(
            f"{_shown(left)} {sign} {_shown(right)} compares a date with a number. A date stands in quotes, "
            "such as '2010-01-31'"
        )
    return sides[0], sign, sides[1]


def _dated(operand: Operand) -> Operand:
    if operand.column is not None or operand.number is not None:
        return operand
    try:
        return replace(operand, number=moment_days(operand.written), date=True)
    except ValueError as problem:
        raise ValueError(f"{operand} is compared with dates and {problem}") from None


def _sums_compared(left: Sum, sign: str, right: Sum) -> Reading:
    terms = [(operand, operand.minus) for operand in left]
    terms += [(operand, not operand.minus) for operand in right]
    for operand, _ in terms:
        column = operand.column
        text = (
            operand.number is None
            if column is None
            else not (column.is_numeric or not isinstance(column.categories[0], str))
        )
        if text:
            raise ValueError(
                f"{operand} is no number and cannot stand beside a sum. A category with other signs stands "
                f"in quotes, such as '{_shown(right)}'"
            )

    def truth(numbers: Numbers) -> Truth:
        total = size = np.zeros(1)
        for operand, minus in terms:
            values = (
                np.float64(operand.number)
                if operand.column is None
                else amounts_of(operand.column, numbers(operand.column))
            )
            total, size = total - values if minus else total + values, size + np.abs(values)
        total[np.abs(total) <= _ROUNDING * size] = 0.0
        return _where_known(_COMPARE[sign](total, 0.0), total)

    return truth


def _where_known(holds: Bools, values: Floats) -> Truth:
    known = ~np.isnan(values)
    return holds & known, ~holds & known


def _side(operand: Operand, categories: tuple[Any, ...] | None, special: bool) -> Callable[[Numbers], Any]:
    """Give an operand's numbers (with codes if ``special``) or places among categories, NaN if missing."""
    column = operand.column
    if column is not None and column.is_numeric and special:
        return lambda numbers: numbers(column)
    if column is not None:
        return lambda numbers: quantities(column, numbers(column))
    if categories is None:
        if operand.number is None:
            raise ValueError(f"the text {operand} cannot be compared with a numeric column")
        return lambda _: np.float64(operand.number)
    places = [i for i, category in enumerate(categories) if operand.means(category)]
    if not places:
        raise ValueError(f"{operand} is not a declared category ({few(map(repr, categories))})")
    return lambda _: np.float64(places[0])


def _check_clear(left: Operand, sign: str, right: Operand) -> None:
    """Refuse a bare word on the right that is a column, and also a category of the column on the left."""
    column, name = left.column, right.written
    if column is None or right.column is None or not right.bare:
        return
    if any(Operand(name).means(category) for category in column.categories):
        raise ValueError(
            f"{name!r} is a column and also a category of {left}: write \"{column.name} {sign} '{name}'\" "
            f'for the category, or "{column.name} {sign} `{name}`" for the column'
        )


def _shown(side: Sum) -> str:
    signs = ("-" if operand.minus else "+" if i else "" for i, operand in enumerate(side))
    return "".join(sign + operand.written for sign, operand in zip(signs, side, strict=True))


_TOKEN = re.compile(
    r"""\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])
    |(?P<operator><=|>=|==|!=|<|>|=)|(?P<bracket>[(),])|(?P<sign>[-+])
    |`(?P<quoted>[^`]+)`|'(?P<text1>[^']*)'|"(?P<text2>[^"]*)"
    |(?P<word>\w[\w.]*))""",
    re.VERBOSE,
)
#: bounds the depth of nested brackets
_LONGEST = 150


class _Parser:
    def __init__(self, text: str, schema: Columns) -> None:
        self.schema = schema
        self.tokens = list(_tokens(text))
        self.place = 0
        self.named: set[str] = set()
        if len(self.tokens) > _LONGEST:
            raise ValueError(f"it has {len(self.tokens)} words and signs. At most {_LONGEST} are read")

    def rule_to_the_end(self) -> Reading:
        rule = self._rule()
        if self.place < len(self.tokens):
            raise ValueError(f"{self.tokens[self.place][1]!r} is not expected here")
        return rule

    def _rule(self) -> Reading:
        rule = self._part()
        while self._takes("word", "or"):
            rule = either(rule, self._part())
        if self._takes("word", "implies"):
            return either(negated(rule), self._rule())
        return rule

    def _part(self) -> Reading:
        part = self._term()
        while self._takes("word", "and"):
            part = both(part, self._term())
        return part

    def _term(self) -> Reading:
        if self._takes("word", "not"):
            return negated(self._term())
        if self._takes("bracket", "("):
            rule = self._rule()
            self._close()
            return rule
        left = self._sum()
        kind, sign = self._next("a comparison")
        if kind == "operator":
            return compared(left, sign, self._sum(right=True))
        if (kind, sign) == ("word", "is"):
            present = self._takes("word", "not")
            if not self._takes("word", "missing"):
                raise ValueError("'is' stands between a column and 'missing' or 'not missing'")
            return negated(missing(left)) if present else missing(left)
        denied = (kind, sign) == ("word", "not") and self._takes("word", "in")
        if denied or (kind, sign) == ("word", "in"):
            rule = among(left, self._values())
            return negated(rule) if denied else rule
        raise ValueError(f"a comparison such as <= is expected in place of {sign!r}")

    def _close(self) -> None:
        if not self._takes("bracket", ")"):
            raise ValueError("a bracket is not closed")

    def _values(self) -> list[Operand]:
        if not self._takes("bracket", "("):
            raise ValueError("'in' is followed by values between brackets, such as ('I', 'II')")
        values = [self._value()]
        while self._takes("bracket", ","):
            values.append(self._value())
        self._close()
        return values

    def _value(self) -> Operand:
        if self.place < len(self.tokens):
            kind, text = self.tokens[self.place]
            if kind == "word":  # no column can stand here
                self.place += 1
                return Operand(text, bare=True)
        return self._signed(right=True)

    def _sum(self, right: bool = False) -> list[Operand]:
        operands = [self._signed(right)]
        while (minus := self._takes("sign", "-")) or self._takes("sign", "+"):
            operands.append(replace(self._operand(right), minus=minus))
        return operands

    def _signed(self, right: bool) -> Operand:
        minus = self._takes("sign", "-")
        plus = not minus and self._takes("sign", "+")
        operand = self._operand(right)
        if operand.number is None or not (minus or plus):
            return replace(operand, minus=minus)
        written = f"{'-' if minus else '+'}{operand.written}"
        return Operand(written, number=-operand.number if minus else operand.number)

    def _operand(self, right: bool) -> Operand:
        kind, text = self._next("a column, number or text")
        if kind == "number":
            return Operand(text, number=float(text))
        if kind == "text":
            return Operand(text)
        if kind == "quoted" or (kind == "word" and text not in ("and", "or", "not")):
            if text in self.schema.names:
                self.named.add(text)
                return Operand(text, column=self.schema.column(text), bare=kind == "word")
            if kind == "quoted" or not right:
                raise ValueError(f"{text!r} is not a column (columns: {few(self.schema.names)})")
            return Operand(text, bare=True)
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


@dataclass(frozen=True)
class Rule:
    """A rule read from text. ``truth`` gives where it is true and false, by the columns' numbers."""

    text: str
    truth: Reading
    columns: frozenset[str]

    def broken(self, frame: pd.DataFrame) -> Bools:
        """Return which records of a conformed frame break the rule, shape (n,): where it is false."""
        return self.truth(numbers_of(frame))[1]

    def selected(self, frame: pd.DataFrame) -> Bools:
        """Return which records of a conformed frame the rule selects, shape (n,): where it is true."""
        return self.truth(numbers_of(frame))[0]


def parse_rule(text: str, schema: Columns, what: str = "constraint") -> Rule:
    """Read a rule. An error's sentence begins with ``what`` it is.

    Examples
    --------
    >>> from dpsynth.table.schema import Column, Schema
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
        truth = parser.rule_to_the_end()
    except ValueError as problem:
        raise InputError(f"{what} {text!r}: {problem}") from None
    return Rule(text, truth, frozenset(parser.named))
