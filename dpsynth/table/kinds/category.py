"""Categories: two, several without order, or several in ascending order."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.checks import few
from dpsynth.table.cells import distinct_cells, escape, spoken, unescape
from dpsynth.table.kinds.kind import BadCells, Fields, Floats, Kind, Level

#: dtype of text columns: pandas 3 has its own, earlier versions use ``object``
TEXT_DTYPE = pd.Series(["text"]).dtype

# no control characters, line separators or halves of surrogate pairs; no blanks at either end
_PLAIN_TEXT = re.compile(r"(?!\s)[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+(?<!\s)\Z")


class Nominal(Kind):
    """Categories without order, all of one type: text, numbers or true/false."""

    level: ClassVar[Level] = "nominal"
    refused = (
        dict.fromkeys(("derived", "read_as"), ". A formula gives numbers")
        | dict.fromkeys(("cycles", "format"), "")
        | {"special": ". Name the codes as categories"}
        | dict.fromkeys(("lower", "upper", "step", "decimals", "cells", "scale"), "")
    )

    def check(self, column: Fields) -> None:
        if not column.categories:
            raise ValueError(f"categories are required for kind {self.name!r}")
        self._check_count(len(column.categories))
        kinds = {
            bool if isinstance(c, bool) else float if isinstance(c, int | float) else str
            for c in column.categories
        }
        if len(kinds) > 1:
            raise ValueError("categories must be all text, all numbers or all true/false")
        given, known = set(column.categories), set[Any]()
        for category in column.categories:
            if category in known:
                raise ValueError(f"the category {category!r} is given twice")
            known.add(category)
            # an empty cell in a file is a missing value, and readers disagree about blanks around text and
            # about control characters
            if isinstance(category, str) and not _PLAIN_TEXT.match(category):
                raise ValueError(
                    f"a category must be one line of text without blanks around it, got {category!r}"
                )
            # one cell of a CSV file of ours would stand for both
            if isinstance(category, str) and (written := escape(category)) != category and written in given:
                raise ValueError(f"the categories {category!r} and {written!r} differ by an apostrophe")

    def _check_count(self, count: int) -> None:
        """Raise ValueError for a number of categories that the kind cannot have."""

    def read(self, column: Fields, cells: pd.Series, present: NDArray[np.bool_]) -> NDArray[Any]:
        codes, uniques = distinct_cells(cells)
        matched = self._matched(column, codes, uniques)
        unknown = (codes >= 0) & pd.isna(matched)
        if unknown.any():
            why = f"is not one of the declared categories {few(map(repr, column.categories))}"
            raise BadCells(column, unknown, uniques[codes[int(np.argmax(unknown))]], why)
        return matched

    def numbers(self, column: Fields, cells: pd.Series) -> Floats:
        return self.code(column, pd.Series(self._matched(column, *distinct_cells(cells)), dtype=object))

    def _matched(
        self, column: Fields, codes: NDArray[np.integer[Any]], uniques: list[Any]
    ) -> NDArray[np.object_]:
        """The category that each cell holds, None where it holds none."""
        words = {*column.categories} if isinstance(column.categories[0], str) else set()
        # Most words are a category as they stand, and there may be 300,000 of them.
        match = CategoryMatcher.of(column)
        known = (value if isinstance(value, str) and value in words else match(value) for value in uniques)
        return np.array([*known, None], dtype=object)[codes]

    def code(self, column: Fields, values: pd.Series) -> Floats:
        codes = category_codes(column, values)
        return np.where(codes < 0, np.nan, codes.astype(np.float64))

    def series(self, column: Fields, values: Any, index: pd.Index | None = None) -> pd.Series:
        cells = np.asarray(values, dtype=object)
        return pd.Series(cells, index=index, name=column.name, dtype=object).astype(self.dtype(column))

    def number(self, column: Fields, codes: Floats) -> NDArray[np.int64]:
        return positions(codes)

    def declared(self, column: Fields, numbers: NDArray[np.int64]) -> NDArray[np.object_]:
        return categories_at(column, numbers)

    def count(self, column: Fields) -> int:
        return len(column.categories)

    def dtype(self, column: Fields) -> Any:
        if all(type(c) is int for c in column.categories):
            return "Int64" if column.missing else "int64"
        if all(isinstance(c, bool) for c in column.categories):
            return "boolean" if column.missing else "bool"
        return TEXT_DTYPE if isinstance(column.categories[0], str) else "float64"

    def amounts(self, column: Fields, codes: Floats) -> Floats:
        return np.array([*category_numbers(column), np.nan])[positions(codes)]

    def allowed(self, column: Fields) -> str:
        mark = " < " if self.level == "ordinal" else ", "
        return few(map(str, column.categories), separator=mark)

    def written_as_numbers(self, column: Fields) -> bool:
        return not isinstance(column.categories[0], str | bool)

    def data_type(self, column: Fields) -> str:
        if all(type(category) is int for category in column.categories):
            return "Integer"
        if all(isinstance(category, bool) for category in column.categories):
            return "Boolean"
        return "Text" if isinstance(column.categories[0], str) else "Float"


class Binary(Nominal):
    """Two categories, of which the second is the event of an outcome."""

    refused = Nominal.refused | {"tree": ". A tree groups categories of kind 'categorical'"}

    def _check_count(self, count: int) -> None:
        if count != 2:
            raise ValueError(f"a binary column has 2 categories, got {count}")


class Ordinal(Nominal):
    """Categories in ascending order."""

    level = "ordinal"
    refused = Binary.refused


def category_codes(column: Fields, values: pd.Series[Any]) -> NDArray[np.int64]:
    """Position of each canonical value among the declared categories, shape (n,), -1 where missing."""
    declared = pd.Index(list(column.categories), dtype=object)
    return declared.get_indexer(pd.Index(values.to_numpy(dtype=object), dtype=object)).astype(np.int64)


def positions(codes: Floats) -> NDArray[np.int64]:
    """Positions among categories as whole numbers, -1 where missing, of any shape."""
    return np.nan_to_num(codes, nan=-1.0).astype(np.int64)


def categories_at(column: Fields, codes: NDArray[Any]) -> NDArray[np.object_]:
    """The categories at positions, None where missing.

    Examples
    --------
    >>> from dpsynth.table.column import Column
    >>> grade = Column(name="grade", kind="ordinal", categories=("low", "high"), missing=True)
    >>> categories_at(grade, np.array([1.0, np.nan])).tolist()
    ['high', None]
    """
    return np.array([*column.categories, None], dtype=object)[positions(codes)]


def category_numbers(column: Fields) -> list[float]:
    """Number of each category: the category itself, or its position if they are text."""
    categories = column.categories
    return [float(i if isinstance(category, str) else category) for i, category in enumerate(categories)]


@dataclass(frozen=True)
class CategoryMatcher:
    """Gives the declared category that a cell holds, or None.

    Readers without a schema turn codes into other types: ``1`` into ``"1"``, or into ``1.0`` beside a missing
    value. So text and number are compared as they are written.
    """

    equal: dict[Any, Any]
    spoken: dict[str, Any]

    @classmethod
    def of(cls, column: Fields) -> CategoryMatcher:
        """Match the categories of a column."""
        equal = {category: category for category in column.categories}
        return cls(equal, {spoken(category): category for category in reversed(column.categories)})

    def __call__(self, value: Any) -> Any:
        """Return the category that a cell holds, None where it holds none."""
        value = value.strip() if isinstance(value, str) else value
        first = next(iter(self.equal))
        with contextlib.suppress(TypeError):  # a list in a cell
            if value in self.equal and isinstance(value, bool) == isinstance(first, bool):
                return self.equal[value]
        if isinstance(value, str | Decimal) and not isinstance(first, str | bool):
            with contextlib.suppress(ValueError):
                value = float(value)
        word = spoken(value)
        if word in self.spoken:
            return self.spoken[word]
        if isinstance(value, str) and unescape(value) != value:
            return self(unescape(value))  # our own CSV files keep spreadsheets from running formulas
        flag = _FLAGS.get(word.lower())
        if flag is not None and self.equal.keys() == {False, True}:  # 0 and 1 equal these
            return self.equal[flag]
        return None


_FLAGS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
