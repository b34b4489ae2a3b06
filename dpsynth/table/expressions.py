"""The language of rules, conditions and formulas: texts over the columns of a table.

``dbp <= sbp``, ``pregnant = yes implies sex = F`` and ``weight / height ** 2`` are read by one grammar. From
what binds least to what binds most, it has

- ``a implies b``, ``a or b``, ``a and b``, ``not a``
- ``a < b``  ``<=``  ``>``  ``>=``  ``=``  ``==``  ``!=``, ``column [not] in (value, ...)``,
  ``column is [not] missing``
- ``a + b``  ``a - b``, ``a * b``  ``a / b``, ``-a``  ``+a``, ``a ** b``
- ``abs exp floor log max min sqrt (a)``, ``(a)``, columns, numbers, ``'text'``, ``"text"``, words

A bare word is a column. On the right of a comparison and in a list it may be a category. One that is both is
refused. Text in quotes is a category or a date. Columns with blanks or other signs in their names stand
between backquotes. Python's own parser reads the signs, with placeholders for names and values. So what
binds more is as in Python, all but these parts is refused, and nothing is run as code.

Every text has a value, and a condition is also true, false or neither.

Truth is that of SQL. A comparison with a missing value is neither true nor false. A record breaks a
constraint only where it is false (CHECK), and a condition selects a record only where it is true (WHERE).
Ordinal columns compare by rank, columns of categories only by equality. A special code equals itself, and is
not more or less than anything.

Values are float64. A condition is 1 where it is true and 0 where it is false. Dates are days: a date less a
date is a number of days, and a date moved by a number is a date. Categories that are numbers or true/false
are those numbers. Special codes are missing. A value is missing where one of its parts is, or where it is not
finite.

Interval arithmetic on the columns' ranges bounds the value beforehand. So a division by zero or a wrong unit
is found when a schema is read.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.checks import few
from dpsynth.errors import InputError
from dpsynth.table.column import Column
from dpsynth.table.kinds.date import moment_days
from dpsynth.table.kinds.number import without_special
from dpsynth.table.kinds.time_of_day import seconds_of
from dpsynth.table.values import Numbers, numbers_of

# ------------------------------------------------------------------------------------------------
# The spelling of rules, conditions and formulas: a text becomes a tree of Python's own parser.
#
# Names and values are replaced by placeholders, and the few words that Python lacks by signs that bind alike
# (`dpsynth.table.expressions` has the grammar). Nothing is run as code.

#: Brackets within one another.
_DEEPEST = 100
_TOKEN = re.compile(
    r"""\s*(?:(?P<number>(?:\d+(?:_\d+)*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])
    |(?P<sign>\*\*|[<>=!]=|[-+*/<>=(),])|`(?P<quoted>[^`]+)`|'(?P<text>[^']*)'|"(?P<text2>[^"]*)"
    |(?P<word>\w[\w.]*))""",
    re.VERBOSE,
)
#: names of functions
FUNCTIONS = ("abs", "exp", "floor", "log", "max", "min", "sqrt")
#: Signs and words between two parts, in Python's spelling. What binds less than `or` and joins to the right
#: is Python's conditional expression.
_BETWEEN = {"=": "==", "implies": "if _ else"} | {
    sign: sign for sign in ("**", "<=", ">=", "==", "!=", "<", ">", "+", "-", "*", "/", "and", "or")
}


@dataclass(frozen=True)
class Leaf:
    """A column, a number, or text that is a category or a date.

    ``written`` stands in the text, ``said`` has no quotes. ``bare``: a word without quotes.
    """

    written: str
    said: str
    column: Column | None = None
    number: float | None = None
    bare: bool = False

    def __str__(self) -> str:
        return repr(self.said) if self.number is None else self.said

    def means(self, category: Any) -> bool:
        """Whether a value is this category. A code such as 02116 is compared as it is written."""
        if self.number is not None and not isinstance(category, str):
            return float(category) == self.number
        said = str(category)
        return said.lower() == self.said.lower() if isinstance(category, bool) else said == self.said


#: A sign, or a leaf. Words such as `and` are bare leaves, or text.
Piece = str | Leaf


def pieces_of(text: str, known: Mapping[str, Column]) -> Iterator[Piece]:
    """The words, signs and values of a text over ``known`` columns, in its order."""
    place, end = 0, len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            raise ValueError(f"{text[place:].strip()[:20]!r} cannot be read")
        kind, said, written = match.lastgroup, match[match.lastgroup], match[0].strip()
        place = match.end()
        if kind == "sign":
            yield said
        elif kind == "number" and not ("_" in said and said in known):
            yield Leaf(written, said, number=float(said))
        elif kind == "quoted" and said not in known:
            raise ValueError(f"{said!r} is not a column (columns: {few(tuple(known))})")
        else:
            named = None if kind in ("text", "text2") else known.get(said)
            yield Leaf(written, said, column=named, bare=kind in ("word", "number"))


class Spelling:
    """A text in Python's spelling: ``python``, with the places in the text where its words begin and end.

    ``leaves`` are what its names stand for.
    """

    def __init__(self, text: str, pieces: Sequence[Piece]) -> None:
        self.text, self.python = text, ""
        self.leaves: dict[str, Leaf] = {}
        self.begins: dict[int, int] = {}
        self.ends: dict[int, int] = {}
        self._waiting, self._end, self._depth, self._listed = deque(pieces), 0, 0, False
        operand = True  # whether a column, number or text comes next, or a sign before it
        while self._waiting:
            piece, begin = self._next()
            python, operand = self._before(piece, begin) if operand else self._after(piece, begin)
            if self._depth > _DEEPEST:
                raise ValueError(f"at most {_DEEPEST} brackets within one another are read")
            self.begins[len(self.python)] = begin
            self.python += python
            self.ends[len(self.python)] = self._end
            self.python += " "
        if operand:
            raise ValueError("it ends where a column, number or text is expected")
        if self._depth:
            raise ValueError("a bracket is not closed")

    def tree(self) -> ast.expr:
        """The tree of Python's parser."""
        try:
            return ast.parse(self.python, mode="eval").body
        except SyntaxError as problem:
            before = max((k for k in self.begins if k < (problem.offset or 1)), default=0)
            at = self.text[self.begins[before] :][:20]
        except (RecursionError, MemoryError):
            at = self.text[:20]
        raise ValueError(f"it cannot be read at {at!r}. Put each condition between brackets") from None

    def shown(self, node: ast.expr) -> str:
        """A part of the tree as it stands in the text."""
        return self.text[self.begins[node.col_offset] : self.ends[node.end_col_offset or 0]]

    def _next(self) -> tuple[Piece, int]:
        piece = self._waiting.popleft()
        written = piece if isinstance(piece, str) else piece.written
        begin = self.text.index(written, self._end)
        self._end = begin + len(written)
        return piece, begin

    def _takes(self, word: str) -> bool:
        found = bool(self._waiting) and _word(self._waiting[0]) == word
        if found:
            self._next()
        return found

    def _before(self, piece: Piece, begin: int) -> tuple[str, bool]:
        word = _word(piece)
        called = word in FUNCTIONS and self._waiting and self._waiting[0] == "("
        if word in ("+", "-") or (not self._listed and (word in ("(", "not") or called)):
            self._depth += word == "("
            return word, True
        joins = word in ("and", "or") and not self._listed
        if isinstance(piece, str) or (joins and piece.column is None):
            written = self.text[begin : self._end]
            raise ValueError(f"a column, number or text is expected in place of {written!r}")
        name = f"_{len(self.leaves)}"
        self.leaves[name] = replace(piece, column=None) if self._listed and piece.bare else piece
        return name, False

    def _after(self, piece: Piece, begin: int) -> tuple[str, bool]:
        word = _word(piece)
        if word == ")" and self._depth:
            self._depth, self._listed = self._depth - 1, False
            return word, False
        if word == "," and self._depth:
            return word, True
        if not self._listed and word in _BETWEEN:
            return _BETWEEN[word], True
        if not self._listed and word == "is":
            python = "is not None" if self._takes("not") else "is None"
            if not self._takes("missing"):
                raise ValueError("'is' stands between a column and 'missing' or 'not missing'")
            return python, False
        if not self._listed and (word == "in" or (word == "not" and self._takes("in"))):
            if not self._takes("("):
                raise ValueError("'in' is followed by values between brackets, such as ('I', 'II')")
            self._depth, self._listed = self._depth + 1, True
            return "in (" if word == "in" else "not in (", True
        before = self.text[:begin].split()[-1]
        if word == "(":
            raise ValueError(f"{before!r} is no function. There are {', '.join(FUNCTIONS)}")
        raise ValueError(f"{self.text[begin : self._end]!r} is not expected here, after {before!r}")


def _word(piece: Piece) -> str:
    return piece if isinstance(piece, str) else piece.said if piece.bare else ""


Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Range = tuple[float, float]
#: Where a condition is true and where it is false; neither where a missing value leaves it open.
Truth = tuple[Bools, Bools]
Reading = Callable[[Numbers], Truth]

#: Words and signs without brackets and commas.
_LONGEST = 150
#: Of the terms' absolute sum: 0.2 + 0.1 is 0.3 where a file says so.
_ROUNDING = 1e-12
_COMPARE: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_APPLY: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide, ast.Pow: np.power,
    ast.UAdd: np.positive, ast.USub: np.negative,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs, "exp": np.exp, "floor": np.floor, "log": np.log, "max": np.maximum, "min": np.minimum,
    "sqrt": np.sqrt,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Expression:
    """A text over columns and its readings. Make it with :func:`parse` or :func:`parse_rule`.

    Parameters
    ----------
    text : str
    columns : tuple of str
        The columns that it names, each once, as first named.
    truth : callable
        Says where it is true and where it is false, from the columns'
        :func:`~dpsynth.table.values.coded_values`. A number is true where it is not 0.
    value : callable
        Its value, shape (n,), from the same, NaN where there is none.
    interval : callable
        Its lowest and highest value, from the columns' lowest and highest. ValueError if it may have none.
    condition : bool
        Whether it is true or false, and no number.
    dates : int
        1 if its value is a date, 0 if it is a number, anything else if it adds or takes away dates.
    """

    text: str
    columns: tuple[str, ...]
    truth: Reading
    value: Callable[[Numbers], Floats]
    interval: Callable[[Mapping[str, Range]], Range]
    condition: bool = False
    dates: int = 0

    def broken(self, frame: pd.DataFrame) -> Bools:
        """Return which records of a conformed frame break the rule, shape (n,): where it is false."""
        return self.truth(numbers_of(frame))[1]

    def selected(self, frame: pd.DataFrame) -> Bools:
        """Return which records of a conformed frame the condition selects, shape (n,): where it is true."""
        return self.truth(numbers_of(frame))[0]


def parse(text: str, columns: Iterable[Column]) -> Expression:
    """Read a text over these columns. A ValueError says in one clause what is wrong, and where.

    Examples
    --------
    >>> size = {"kind": "continuous", "lower": 1, "upper": 250}
    >>> bmi = parse("weight / height ** 2", (Column(name="weight", **size), Column(name="height", **size)))
    >>> frame = pd.DataFrame({"weight": [81.0, 60.0], "height": [1.8, 2.0]})
    >>> bmi.value(numbers_of(frame)).round(1).tolist()
    [25.0, 15.0]
    >>> bmi.interval({"weight": (30, 250), "height": (1.0, 2.0)})
    (7.5, 250.0)
    """
    known = {column.name: column for column in columns}
    pieces = list(pieces_of(text, known))
    size = sum(piece not in ("(", ")", ",") for piece in pieces)
    if size > _LONGEST:
        raise ValueError(f"it has {size} words and signs. At most {_LONGEST} are read")
    try:
        return read_pieces(text, pieces, known)
    except ValueError as problem:
        hint = _unquoted(text, known)
        raise ValueError(f"{problem}. {hint}") if hint else problem from None


def _unquoted(text: str, known: Mapping[str, Column]) -> str:
    """What to quote, if a category or a column of several words stands in the text without quotes."""
    words = {str(category): f"'{category}'" for column in known.values() for category in column.categories}
    for said, quoted in (words | {name: f"`{name}`" for name in known}).items():
        if " " in said and re.search(rf"(?<![\w'\"`]){re.escape(said)}(?![\w'\"`])", text):
            return f"Quote it: write {quoted}"
    return ""


def parse_rule(text: str, columns: Iterable[Column], what: str = "constraint") -> Expression:
    """Read a condition. The sentence of an InputError begins with ``what`` it is.

    Examples
    --------
    >>> pressures = [Column(name=name, kind="integer", lower=20, upper=260) for name in ("sbp", "dbp")]
    >>> rule = parse_rule("dbp <= sbp and sbp < 250", pressures)
    >>> rule.broken(pd.DataFrame({"sbp": [120, 80, 255], "dbp": [80, 90, 100]})).tolist()
    [False, True, True]
    """
    if not isinstance(text, str):
        raise InputError(f"a {what} must be text such as 'dbp <= sbp', got {text!r}")
    try:
        rule = parse(text, columns)
        if not rule.condition:
            raise ValueError(_no_condition(text))
    except ValueError as problem:
        raise InputError(f"{what} {text!r}: {problem}") from None
    return rule


def read_pieces(text: str, pieces: Sequence[Piece], known: Mapping[str, Column]) -> Expression:
    """Read the pieces of a text, in its order, as :func:`parse` does."""
    spelling = Spelling(text, pieces)
    columns = [leaf.column.name for leaf in spelling.leaves.values() if leaf.column is not None]
    found = _Reader(spelling, known).expression(spelling.tree())
    if not columns:
        raise ValueError("it names no column")
    return replace(found, text=text, columns=tuple(dict.fromkeys(columns)))


class _Reader:
    """The readings of a tree's parts."""

    def __init__(self, spelling: Spelling, known: Mapping[str, Column]) -> None:
        self.leaves, self.shown, self.known = spelling.leaves, spelling.shown, known

    def expression(self, node: ast.expr) -> Expression:
        leaf = self._leaf(node)
        if leaf is not None:
            return self._of_leaf(leaf)
        if isinstance(node, ast.BinOp) or (isinstance(node, ast.UnaryOp) and type(node.op) in _APPLY):
            parts = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.operand]
            return _applied(self.shown(node), _APPLY[type(node.op)], [*map(self.expression, parts)])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            function, name = _FUNCTIONS[node.func.id], node.func.id
            if len(node.args) > 1 and function not in (np.maximum, np.minimum):
                raise ValueError(f"{name} takes one number between brackets")
            return _applied(self.shown(node), function, [*map(self.expression, node.args)])
        return condition(self.shown(node), self._truth(node))

    def _truth(self, node: ast.expr) -> Reading:
        match node:
            case ast.BoolOp(op=ast.Or(), values=parts):
                return either([self._truth(part) for part in parts])
            case ast.BoolOp(values=parts):
                return negated(either([negated(self._truth(part)) for part in parts]))
            case ast.UnaryOp(op=ast.Not(), operand=part):
                return negated(self._truth(part))
            case ast.IfExp(body=given, orelse=implied):
                return either([negated(self._truth(given)), self._truth(implied)])
            case ast.Compare(left=left, ops=[sign], comparators=[right]):
                if isinstance(sign, ast.Is | ast.IsNot):
                    reading = self._missing(left)
                elif isinstance(sign, ast.In | ast.NotIn):
                    reading = self._among(left, right.elts if isinstance(right, ast.Tuple) else [right])
                else:
                    reading = self._compared(node, left, sign, right)
                return negated(reading) if isinstance(sign, ast.IsNot | ast.NotIn) else reading
            case ast.Compare():
                raise ValueError(f"{self.shown(node)!r} holds two comparisons. Join them with 'and'")
            case ast.Tuple():
                raise ValueError("a comma stands between the values of a list or the numbers of max and min")
        raise ValueError(_no_condition(self.shown(node)))

    def _leaf(self, node: ast.expr) -> Leaf | None:
        """The leaf of a node, with its sign if it is a number, or None."""
        if isinstance(node, ast.Name):
            return self.leaves[node.id]
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Name):
            leaf, minus = self.leaves[node.operand.id], isinstance(node.op, ast.USub)
            if leaf.number is not None and type(node.op) in _APPLY:
                said = f"{'-' if minus else '+'}{leaf.said}"
                return Leaf(said, said, number=-leaf.number if minus else leaf.number)
            return leaf if isinstance(node.op, ast.UAdd) else None
        return None

    def _missing(self, left: ast.expr) -> Reading:
        leaf = self._leaf(left)
        if leaf is None or leaf.column is None:
            raise ValueError("'is' stands between a column and 'missing' or 'not missing'")
        column = leaf.column

        def truth(numbers: Numbers) -> Truth:
            absent = np.isnan(numbers(column))
            return absent, ~absent

        return truth

    def _among(self, left: ast.expr, values: Sequence[ast.expr]) -> Reading:
        leaf, leaves = self._leaf(left), [self._leaf(value) for value in values]
        if leaf is None or leaf.column is None or any(one is None or one.column for one in leaves):
            raise ValueError("'in' stands between a column and values")
        return either([self._compared(value, left, ast.Eq(), value) for value in values])

    def _compared(self, node: ast.expr, left: ast.expr, sign: ast.cmpop, right: ast.expr) -> Reading:
        """Read a comparison, or raise ValueError if it cannot be made or a word is ambiguous."""
        inside = [part for side in (left, right) for part in ast.walk(side)]
        named = [self.leaves.get(part.id) for part in inside if isinstance(part, ast.Name)]
        columns = [leaf.column for leaf in named if leaf is not None and leaf.column is not None]
        lists = [column.categories for column in columns if not column.is_numeric]
        one, other = self._leaf(left), self._leaf(right)
        if one is not None and one.bare and one.column is None:
            raise ValueError(self._no_column(one))
        if other is not None and other.bare and other.column is None:
            categories = one.column.categories if one is not None and one.column is not None else ()
            if not any(other.means(category) for category in categories):
                beside = f" and no category of {one} ({few(map(repr, categories))})" if categories else ""
                raise ValueError(f"{other} is not a column{beside}")
        shown = self.shown(node)
        if not columns:
            raise ValueError(f"{shown} compares no column")
        if one is None or other is None or any(column.written_apart for column in columns):
            return self._sums_compared(shown, left, sign, right)
        _check_clear(shown, one, other)
        if lists and (len(lists) < len(columns) or any(entry != lists[0] for entry in lists)):
            raise ValueError(f"{one} and {other} have different values and cannot be compared")
        equal = isinstance(sign, ast.Eq | ast.NotEq)
        if lists and not equal and not all(column.is_ordinal for column in columns):
            raise ValueError(f"{shown}: categories without order compare only by == and !=")
        # a special code is no quantity: it can be asked for, but is not more or less than anything
        a, b = (_side(leaf, lists[0] if lists else None, equal) for leaf in (one, other))
        compare = _COMPARE[type(sign)]

        def truth(numbers: Numbers) -> Truth:
            x, y = a(numbers), b(numbers)
            return _where_known(compare(x, y), x + y)

        return truth

    def _sums_compared(self, shown: str, left: ast.expr, sign: ast.cmpop, right: ast.expr) -> Reading:
        for text, sums in ((left, right), (right, left)):
            leaf = self._leaf(text)
            if leaf is not None and leaf.column is not None and _holds_text(leaf.column):
                raise ValueError(
                    f"{_no_number(leaf.column)}. A category with other signs stands in quotes, such as "
                    f"'{self.shown(sums)}'"
                )
        terms = [*self._terms(left, False), *self._terms(right, True)]
        if sum(-term.dates if minus else term.dates for term, minus in terms):
            raise ValueError(
                f"{shown} compares a date with a number. A date stands in quotes, such as '2010-01-31'"
            )
        compare = _COMPARE[type(sign)]

        def truth(numbers: Numbers) -> Truth:
            total = size = np.zeros(1)
            for term, minus in terms:
                values = term.value(numbers)
                total, size = total - values if minus else total + values, size + np.abs(values)
            total[np.abs(total) <= _ROUNDING * size] = 0.0
            return _where_known(compare(total, 0.0), total)

        return truth

    def _terms(self, node: ast.expr, minus: bool) -> Iterator[tuple[Expression, bool]]:
        """The numbers that a sum adds, and whether it takes them away."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            yield from self._terms(node.left, minus)
            yield from self._terms(node.right, minus != isinstance(node.op, ast.Sub))
        elif isinstance(node, ast.UnaryOp) and type(node.op) in _APPLY and self._leaf(node) is None:
            yield from self._terms(node.operand, minus != isinstance(node.op, ast.USub))
        else:
            yield self.expression(node), minus

    def _of_leaf(self, leaf: Leaf) -> Expression:
        if leaf.column is not None:
            column = leaf.column
            if _holds_text(column):
                raise ValueError(_no_number(column))
            return _number(
                leaf.written,
                lambda numbers: column.amounts(numbers(column)),
                lambda ranges: ranges[column.name],
                int(column.is_date),
            )
        if leaf.bare:
            raise ValueError(self._no_column(leaf))
        # Differences of times are minutes.
        amount = leaf.number if leaf.number is not None else seconds_of(leaf.said) / 60.0
        day = math.isnan(amount)
        if day:
            try:
                amount = moment_days(leaf.said)
            except ValueError:
                raise ValueError(
                    f"{leaf} is no number, and no date such as '2010-01-31' or time such as '13:05'"
                ) from None
        if not math.isfinite(amount):
            raise ValueError("a number in it is too large")
        return _number(leaf.written, lambda _: np.asarray(amount), lambda _: (amount, amount), int(day))

    def _no_column(self, leaf: Leaf) -> str:
        return f"{leaf} is not a column (columns: {few(self.known)})"


def _check_clear(shown: str, one: Leaf, other: Leaf) -> None:
    """Refuse a bare word on the right that is a column, and also a category of the column on the left."""
    if one.column is None or other.column is None or not other.bare:
        return
    said = other.said
    if any(Leaf(said, said).means(category) for category in one.column.categories):
        before = shown.removesuffix(said)
        raise ValueError(
            f"{said!r} is a column and also a category of {one}: write \"{before}'{said}'\" "
            f'for the category, or "{before}`{said}`" for the column'
        )


def either(readings: Sequence[Reading]) -> Reading:
    """True where one of the conditions is, false where all are."""

    def truth(numbers: Numbers) -> Truth:
        true, false = readings[0](numbers)
        for reading in readings[1:]:
            also, never = reading(numbers)
            true, false = true | also, false & never
        return true, false

    return truth


def negated(reading: Reading) -> Reading:
    """True where a condition is false."""

    def truth(numbers: Numbers) -> Truth:
        true, false = reading(numbers)
        return false, true

    return truth


def condition(text: str, truth: Reading, columns: tuple[str, ...] = ()) -> Expression:
    """A condition that is true and false where ``truth`` says."""

    def value(numbers: Numbers) -> Floats:
        true, false = truth(lambda column: without_special(column, numbers(column)))
        return np.where(true, 1.0, np.where(false, 0.0, np.nan))

    return Expression(text, columns, truth, value, lambda _: (0.0, 1.0), condition=True)


def _number(
    text: str,
    value: Callable[[Numbers], Floats],
    interval: Callable[[Mapping[str, Range]], Range],
    dates: int,
) -> Expression:
    def truth(numbers: Numbers) -> Truth:
        found = value(numbers)
        return _where_known(found != 0, found)

    return Expression(text, (), truth, value, interval, dates=dates)


def _applied(shown: str, function: Callable[..., Any], parts: Sequence[Expression]) -> Expression:
    """The function of one or two numbers, or max and min of any number, applied one after the other."""

    def apply(numbers: Sequence[Any]) -> Any:
        return reduce(function, numbers) if function in (np.maximum, np.minimum) else function(*numbers)

    def value(numbers: Numbers) -> Floats:
        done = [part.value(numbers) for part in parts]
        with np.errstate(all="ignore"):
            result = apply(done)
        # In floating point nan ** 0 is 1 and 1 / (1 / 0) is 0; here a part without value has none after it.
        known = np.isfinite(result)
        for part in done:
            known = known & ~np.isnan(part)
        return np.where(known, result, np.nan)

    def interval(ranges: Mapping[str, Range]) -> Range:
        sides = [part.interval(ranges) for part in parts]
        (low, high), inner = sides[0], parts[0].text
        if function is np.divide and sides[1][0] <= 0 <= sides[1][1]:
            raise ValueError(f"it divides by {parts[1].text}, which the declared bounds allow to be 0")
        if function is np.log and low <= 0:
            raise ValueError(f"it takes the logarithm of {inner}, which can be {low:g}")
        if function is np.sqrt and low < 0:
            raise ValueError(f"it takes the square root of {inner}, which can be {low:g}")
        # Every function here rises or falls in each of its numbers, but for these two, which turn at 0.
        ends: list[tuple[float, ...]] = [*product(*sides)] if len(sides) < 3 else [*zip(*sides, strict=True)]
        if function is np.abs and low < 0 < high:
            ends.append((0.0,))
        if function is np.power:
            ends += _inner_powers(sides[0], sides[1], inner)
        with np.errstate(all="ignore"):
            found = [float(apply([np.float64(x) for x in end])) for end in ends]
        if not all(map(math.isfinite, found)):
            raise ValueError(f"{shown} can be too large to compute")
        return min(found), max(found)

    dates = [part.dates for part in parts]
    if function in (np.add, np.subtract, np.positive, np.negative):
        return _number(shown, value, interval, int(apply(dates)))
    if any(dates) and (function not in (np.maximum, np.minimum) or len({*dates}) > 1):
        raise ValueError(f"{shown} uses a date as a number. Subtract one date from another")
    return _number(shown, value, interval, dates[0])


def _inner_powers(base: Range, exponent: Range, shown: str) -> list[Range]:
    """Places inside the ranges where a power may be smallest or largest. Refuse powers without value."""
    (low, high), (least, most) = base, exponent
    whole = least == most and least == round(least)
    if low < 0 and not whole:
        raise ValueError(f"it takes a power of {shown}, which can be {low:g}, with an exponent not whole")
    if low <= 0 <= high and least < 0:
        raise ValueError(f"it divides by a power of {shown}, which the declared bounds allow to be 0")
    return [(0.0, least), (0.0, most)] if low < 0 < high else []


def _side(leaf: Leaf, categories: tuple[Any, ...] | None, special: bool) -> Callable[[Numbers], Any]:
    """Give a leaf's numbers (with codes if ``special``) or places among categories, NaN if missing."""
    column = leaf.column
    if column is not None and column.is_numeric and special:
        return lambda numbers: numbers(column)
    if column is not None:
        return lambda numbers: without_special(column, numbers(column))
    if categories is None:
        if leaf.number is None:
            raise ValueError(f"the text {leaf} cannot be compared with a numeric column")
        number = np.float64(leaf.number)
        return lambda _: number
    places = [i for i, category in enumerate(categories) if leaf.means(category)]
    if not places:
        raise ValueError(f"{leaf} is not a declared category ({few(map(repr, categories))})")
    place = np.float64(places[0])
    return lambda _: place


def _where_known(holds: Bools, values: Floats) -> Truth:
    known = ~np.isnan(values)
    return holds & known, ~holds & known


def _holds_text(column: Column) -> bool:
    return not column.is_numeric and isinstance(column.categories[0], str)


def _no_number(column: Column) -> str:
    category = column.categories[0]
    return f"{column.name!r} holds text, not numbers. Compare it, as in ({column.name} == {category!r})"


def _no_condition(shown: str) -> str:
    return f"{shown!r} is no condition. A comparison such as <= is expected"
