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
Ordinal columns compare by rank, columns of categories only by equality. Sums are of numbers.

As in SQL, a comparison with a missing value is neither true nor false. A record breaks a constraint only
where it is false (CHECK), and a condition selects a record only where it is true (WHERE).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pandas as pd

from dpsynth.checks import few
from dpsynth.errors import InputError
from dpsynth.table.truth import (
    Bools,
    Operand,
    Reading,
    Truth,
    among,
    both,
    compared,
    either,
    missing,
    negated,
)

if TYPE_CHECKING:
    from dpsynth.table.schema import Schema

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])
    |(?P<operator><=|>=|==|!=|<|>|=)|(?P<bracket>[(),])|(?P<sign>[-+])
    |`(?P<quoted>[^`]+)`|'(?P<text1>[^']*)'|"(?P<text2>[^"]*)"
    |(?P<word>\w[\w.]*))""",
    re.VERBOSE,
)
#: bounds the depth of nested brackets
_LONGEST = 150


def read_rule(text: str, schema: Schema) -> tuple[Reading, frozenset[str]]:
    """Read a rule and the columns that it names, or raise ValueError saying what is wrong."""
    parser = _Parser(text, schema)
    return parser.rule_to_the_end(), frozenset(parser.named)


class _Parser:
    def __init__(self, text: str, schema: Schema) -> None:
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
    """A rule read from text. ``truth`` gives where it is true and false in a conformed frame."""

    text: str
    truth: Callable[[pd.DataFrame], Truth]
    columns: frozenset[str]

    def broken(self, frame: pd.DataFrame) -> Bools:
        """Return which records of a conformed frame break the rule, shape (n,): where it is false."""
        return self.truth(frame)[1]

    def selected(self, frame: pd.DataFrame) -> Bools:
        """Return which records of a conformed frame the rule selects, shape (n,): where it is true."""
        return self.truth(frame)[0]


def parse_rule(text: str, schema: Schema, what: str = "constraint") -> Rule:
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
        truth, named = read_rule(text, schema)
    except ValueError as problem:
        raise InputError(f"{what} {text!r}: {problem}") from None
    return Rule(text, truth, named)
