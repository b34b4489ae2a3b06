"""The spelling of rules, conditions and formulas: a text becomes a tree of Python's own parser.

Names and values are replaced by placeholders, and the few words that Python lacks by signs that bind alike
(`dpsynth.table.expressions` has the grammar). Nothing is run as code.
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpsynth.checks import few
from dpsynth.table.column import Column

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
