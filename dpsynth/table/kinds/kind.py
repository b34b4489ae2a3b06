"""What a kind of column decides: how its cells are read, coded, kept in a frame and shown.

A kind is one object without state, which a column asks about itself. Whoever asks about a column's values
therefore has no need to know its kind: they ask for its level of measurement (numbers, categories in order,
categories without one) or for one of the properties below.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dpsynth.table.cells import TextCells
    from dpsynth.table.remarks import Remarks

Floats = NDArray[np.float64]
Level = Literal["numeric", "ordinal", "nominal"]


class Fields(Protocol):
    """What a kind reads of a column: the fields of `dpsynth.table.column.Column`, and what they imply."""

    @property
    def name(self) -> str: ...
    @property
    def lower(self) -> float | None: ...
    @property
    def upper(self) -> float | None: ...
    @property
    def bounds(self) -> tuple[float, float]: ...
    @property
    def step(self) -> float | None: ...
    @property
    def decimals(self) -> int | None: ...
    @property
    def resolution(self) -> float | None: ...
    @property
    def n_values(self) -> int | None: ...
    @property
    def scale(self) -> str: ...
    @property
    def has_zero_cell(self) -> bool: ...
    @property
    def cells(self) -> int | None: ...
    @property
    def format(self) -> str | None: ...
    @property
    def cycles(self) -> Sequence[str]: ...
    @property
    def categories(self) -> Sequence[Any]: ...
    @property
    def missing(self) -> bool: ...
    @property
    def missing_codes(self) -> Sequence[Any]: ...
    @property
    def special(self) -> Sequence[float]: ...
    @property
    def derived(self) -> str | None: ...


class Kind(ABC):
    """A kind of column. Methods take the column, of which they read `Fields`.

    *Codes* are float64: numbers in the unit of the column's bounds, with its special codes, or positions
    among its categories. NaN stands where there is no value.

    Attributes
    ----------
    name : str
        As schemas write it.
    level : {"numeric", "ordinal", "nominal"}
        Numbers between public bounds, categories in ascending order, or categories without one.
    refused : mapping
        Fields that such a column may not have, and what an error adds about each.
    default_step : float or None
        Step of a column that does not give one. None: real numbers.
    written_apart : bool
        Whether people write its numbers in a form of their own, such as a date.
    number_unit : str or None
        Unit of its numbers, where the kind says it.
    difference_unit, unit_size : str or None, and float
        Unit in which people read differences, and the size of the unit of codes in it.
    rhythm : (float, int) or None
        Length and number of places of the cycle that its values are habitual in, such as hours of the day.
    natural_limits : frozenset of float
        Limits that need not come from data where values reach them.
    seconds : int or None
        Seconds in the unit of its numbers, if these are moments of the calendar.
    """

    level: ClassVar[Level]
    refused: ClassVar[Mapping[str, str]] = {}
    default_step: float | None = None
    written_apart: bool = False
    number_unit: str | None = None
    difference_unit: str | None = None
    unit_size: float = 1.0
    rhythm: tuple[float, int] | None = None
    natural_limits: frozenset[float] = frozenset((0.0,))
    seconds: int | None = None

    def __init__(self, name: str) -> None:
        self.name = name

    def normal(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Fields of a column as it keeps them, from those that were given. ValueError names a wrong one."""
        return fields

    @abstractmethod
    def check(self, column: Fields) -> None:
        """Raise ValueError where fields of a column do not fit each other."""

    def check_missing_code(self, code: Any) -> None:  # noqa: B027 - most kinds take any
        """Raise ValueError for a code of a missing value that no such column can hold."""

    @abstractmethod
    def read(self, column: Fields, cells: pd.Series, present: NDArray[np.bool_]) -> NDArray[Any]:
        """Values of a table's cells, as `series` takes them, shape (n,).

        ``present`` says which cells hold something. Raises `BadCells` where that is no value of the column.
        """

    @abstractmethod
    def numbers(self, column: Fields, cells: pd.Series) -> Floats:
        """Codes of a table's cells, NaN where they hold no value of the column, shape (n,)."""

    def without_codes(self, column: Fields, cells: pd.Series) -> pd.Series:
        """Cells without those codes of a missing value that words do not show, None in their place."""
        return cells

    @abstractmethod
    def code(self, column: Fields, values: pd.Series) -> Floats:
        """Codes of canonical values, shape (n,)."""

    @abstractmethod
    def series(self, column: Fields, values: Any, index: pd.Index | None = None) -> pd.Series:
        """A column of the canonical dtype from values that fit it: codes of numbers, or categories."""

    @abstractmethod
    def number(self, column: Fields, codes: Floats) -> NDArray[Any]:
        """Number of each code among the declared values, from 0. Real numbers within the bounds stay."""

    @abstractmethod
    def declared(self, column: Fields, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """The declared values of these numbers, as `series` takes them: the inverse of `number`."""

    @abstractmethod
    def count(self, column: Fields) -> int | None:
        """How many values are declared, or None for real numbers."""

    @abstractmethod
    def dtype(self, column: Fields) -> Any:
        """The canonical dtype."""

    @abstractmethod
    def amounts(self, column: Fields, codes: Floats) -> Floats:
        """Codes in the unit of differences, NaN for special codes: categories of numbers are these."""

    def difference(self, number: float) -> float:
        """A difference of codes in the unit of differences."""
        return number * self.unit_size

    def shown(self, number: float, figures: int = 6) -> str:
        """Write a number for people."""
        return f"{number:.{figures}g}"

    def rounded(self, number: float) -> str:
        """Write a number that was computed, such as a mean, in the kind's own form."""
        return self.shown(number)

    @abstractmethod
    def allowed(self, column: Fields) -> str:
        """Every value that is allowed, in a few words."""

    @abstractmethod
    def written_as_numbers(self, column: Fields) -> bool:
        """Whether files write the values as numbers, perhaps with a decimal comma."""

    @abstractmethod
    def data_type(self, column: Fields) -> str:
        """Type of the values in schema.org's words, such as ``Float``."""

    def drafted(self, said: Remarks, cells: TextCells) -> dict[str, Any] | None:
        """Fields of a drafted column, if its text is of this kind. ``said`` gets questions to the owner."""
        return None


class BadCells(Exception):
    """Cells of a column that the schema does not allow: those that are ``bad``, the first being ``value``."""

    def __init__(self, column: Fields, bad: NDArray[np.bool_], value: Any, why: str) -> None:
        super().__init__(why)
        self.column, self.bad, self.value, self.why = column, bad, value, why


def refuse_cells(column: Fields, bad: NDArray[np.bool_], cells: pd.Series, why: str) -> None:
    """Raise `BadCells` if any cell is bad."""
    if bad.any():
        raise BadCells(column, bad, cells.iloc[int(np.argmax(bad))], why)


def listing(names: Iterable[str]) -> str:
    """Names in quotes, the last after "or"."""
    *first, last = map(repr, names)
    return f"{', '.join(first)} or {last}"
