"""One column of a table: its kind and the public facts that the mechanism may rely on.

Bounds, steps, categories and the number of histogram cells decide how much one record can move a released
histogram and where its cells lie. They must be known without looking at the records: from clinical sense, a
data dictionary or the study design. Fields read from the records instead are named in ``unreviewed`` until
somebody has reviewed them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import (
    BaseModel,
    ConfigDict,
    PlainSerializer,
    PlainValidator,
    StrictBool,
    StrictStr,
    ValidationError,
    WithJsonSchema,
    field_serializer,
    model_validator,
)

from dpsynth.errors import SchemaError
from dpsynth.files.codec import record
from dpsynth.files.text import one_sentence
from dpsynth.table.cells import spoken
from dpsynth.table.kinds import KINDS
from dpsynth.table.kinds.kind import Kind, listing
from dpsynth.table.trees import Tree, with_tree

Scale = Literal["linear", "log"]
Cycle = Literal["weekday", "month", "hour"]


def _category(value: Any) -> bool | int | float | str:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError(f"a category must be text, a finite number or true/false, got {value!r}")


Category = Annotated[bool | int | float | str, PlainValidator(_category)]


def _pairs(given: Any) -> tuple[tuple[str, Any], ...]:
    if isinstance(given, Mapping):
        given = given.items()
    pairs = (
        [tuple(pair) for pair in given]
        if isinstance(given, Iterable) and not isinstance(given, str)
        else [()]
    )
    if not all(len(pair) == 2 and isinstance(pair[0], str) and pair[0].strip() for pair in pairs):
        raise ValueError(
            f"aliases must be a mapping from text to the value that it stands for, got {given!r}"
        )
    return tuple((word.strip(), _category(value)) for word, value in pairs)


#: Other spellings of values. Schemas write a mapping, and a column keeps pairs, which have a hash.
Aliases = Annotated[
    tuple[tuple[str, Any], ...],
    PlainValidator(_pairs),
    PlainSerializer(dict),
    WithJsonSchema({"type": "object"}),
]


def _known(kind: Any) -> str:
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"kind must be {listing(KINDS)}, got {kind!r}")
    return kind


#: The name of one of `KINDS`.
KindName = Annotated[str, PlainValidator(_known), WithJsonSchema({"enum": [*KINDS], "type": "string"})]


@record
class Column(BaseModel):
    """A frozen description of one column.

    Parameters
    ----------
    name : str
        As in the table's header.
    kind : {"continuous", "integer", "date", "datetime", "time", "ordinal", "categorical", "binary"}
        The first five are numeric. Ordinal categories have an order.
    lower, upper : float
        Public bounds, in the column's unit. Required for numeric columns, refused for others. Values outside
        are clipped. Those of dates are given as dates or ISO text. They are kept as days since 1970-01-01,
        those of a datetime as seconds. Those of a time of day are text such as ``13:05``, kept as seconds.
    step : float, optional
        Released values lie on ``lower + k * step``. Integers have step 1 by default, dates 1 day, datetimes
        and times 60 seconds. ``upper - lower`` must be a whole number of steps.
    decimals : int, optional
        The same as ``step = 10**-decimals``. Give one or the other.
    scale : {"linear", "log"}
        Spacing of the public histogram cells. ``"log"`` (skewed laboratory values) needs ``lower > 0``, or
        ``lower = 0`` and a step. Zeros then have a cell of their own, and the scale begins at the first step.
    cells : int, optional
        Public number of histogram cells of a numeric column.
    format : str, optional
        How a table writes the dates of a column, as in ``"%d/%m/%Y"``. ISO text is read as well. Or how it
        writes numbers, by an example such as ``"1.234,5"`` or ``"$1,234.50"``
        (`dpsynth.table.kinds.number_format`).
    cycles : tuple of {"weekday", "month", "hour"}
        Noisy counts of a column of dates, besides its histogram. Samples have the same shares.
    categories : tuple of str, int, bool or float
        Every value that can occur, all of one type: two for binary columns, ascending for ordinal ones. Those
        of the tree's file if none are given.
    tree : Tree, optional
        Groups of categories, such as block and chapter of a diagnosis (:mod:`dpsynth.table.trees`). Rare
        categories are counted in the groups.
    unit, description : str, optional
        For readers.
    missing : bool
        Whether a value may be absent.
    special : tuple of float
        Codes of a numeric column that are no numbers, such as -1 or 999, outside its bounds. Each has a count
        of its own and is left out of means and regressions.
    missing_codes : tuple of int, float or str
        Values that stand for a missing one, such as -9 or 999. They are numbers, however written, in a
        numeric column, dates in a column of dates, and text elsewhere. Needs ``missing``.
    aliases : mapping of str to str, int or float
        Other spellings of a value in a table, such as ``{"MALE": "male"}``, or ``{"<0.50": 0.5}`` for results
        below what can be measured. Each is read as the value.
    derived : str, optional
        The formula of a numeric column that is computed from others (:mod:`dpsynth.table.derived`) and so is
        neither counted nor modelled.
    read_as : str, optional
        The formula that computes a numeric column from others where a table lacks it. The others may be
        derived, such as a discharge date that is ``admitted + stay`` while ``stay`` is read as
        ``discharged - admitted``.
    unreviewed : tuple of str
        Fields that were read from the data and that nobody has reviewed yet.
    reviewed : bool
        Whether the table's owner confirms that the list of categories or codes (``special``,
        ``missing_codes``) is public, such as one from a data dictionary. An empty ``unreviewed`` confirms no
        list.

    Raises
    ------
    SchemaError
        If the fields do not fit each other. One sentence names the column and the field.

    Examples
    --------
    >>> Column(name="creatinine", kind="continuous", lower=0.1, upper=20, decimals=1, scale="log").resolution
    0.1
    >>> Column(name="sex", kind="binary", categories=("F", "M")).is_categorical
    True
    >>> Column(name="age", kind="integer", lower=90, upper=18)
    Traceback (most recent call last):
    dpsynth.errors.SchemaError: column 'age': lower must be less than upper, got 90 and 18
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: StrictStr
    kind: KindName
    lower: float | None = None
    upper: float | None = None
    step: float | None = None
    decimals: int | None = None
    scale: Scale = "linear"
    cells: int | None = None
    format: StrictStr | None = None
    cycles: tuple[Cycle, ...] = ()
    categories: tuple[Category, ...] = ()
    tree: Tree | None = None
    unit: str | None = None
    description: str | None = None
    missing: StrictBool = False
    special: tuple[float, ...] = ()
    missing_codes: tuple[Category, ...] = ()
    aliases: Aliases = ()
    derived: StrictStr | None = None
    read_as: StrictStr | None = None
    unreviewed: tuple[str, ...] = ()
    reviewed: StrictBool = False

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as problem:
            raise SchemaError(
                f"column {fields.get('name', '?')!r}: {one_sentence(problem, tuple(type(self).model_fields))}"
            ) from None

    @model_validator(mode="before")
    @classmethod
    def _as_kept(cls, data: Any) -> Any:
        data, kind = with_tree(data), data.get("kind")
        return KINDS[kind].normal(data) if isinstance(kind, str) and kind in KINDS else data

    @field_serializer("lower", "upper", when_used="json")
    def _dates_as_text(self, bound: float | None) -> float | str | None:
        return self.shown(bound) if bound is not None and self.written_apart else bound

    @field_serializer("special", when_used="json")
    def _special_dates_as_text(self, special: tuple[float, ...]) -> list[float | str]:
        return [self.shown(code) for code in special] if self.written_apart else [*special]

    @model_validator(mode="after")
    def _fields_fit(self) -> Column:
        if not self.name.strip():
            raise ValueError("name must not be empty")
        self._check_missing_codes()
        self._check_aliases()
        unknown = [field for field in self.unreviewed if field not in type(self).model_fields]
        if unknown:
            raise ValueError(f"unreviewed names {unknown[0]!r}, which is not a field of a column")
        if self.reviewed and (self.unreviewed or not self.listed):
            why = "unreviewed still names fields" if self.unreviewed else "the column has none"
            raise ValueError(f"reviewed confirms a list of categories or codes, but {why}")
        for field, hint in self._kind.refused.items():
            if getattr(self, field) != type(self).model_fields[field].default:
                verb = "are" if field in ("categories", "cycles") else "is"
                raise ValueError(f"{field} {verb} not allowed for kind {self.kind!r}{hint}")
        if self.derived is not None and self.read_as is not None:
            raise ValueError("derived and read_as cannot stand in one column")
        if self.unit in KINDS and KINDS[self.unit].written_apart:
            raise ValueError(f"unit must not be {self.unit!r}, which is a kind of columns")
        self._kind.check(self)
        return self

    def _check_missing_codes(self) -> None:
        if self.missing_codes and not self.missing:
            raise ValueError("missing_codes needs missing: true")
        for code in self.missing_codes:
            self._kind.check_missing_code(code)
            field = "special" if self.is_numeric else "categories"
            if str(code) in map(str, self.categories) or code in self.special:
                raise ValueError(f"missing_codes and {field} both hold {code!r}. Leave it out of one")

    def _check_aliases(self) -> None:
        known = {spoken(value) for value in (*self.categories, *self.missing_codes)}
        for word, value in self.aliases:
            if word in known:
                raise ValueError(f"aliases holds {word!r}, which is a value of the column itself")
            if not self.is_numeric and value not in self.categories:
                raise ValueError(f"aliases reads {word!r} as {value!r}, which is none of the categories")
            if self.is_numeric and not (type(value) in (int, float) and self._holds(value)):
                raise ValueError(
                    f"aliases reads {word!r} as {value!r}, which must be a number within the bounds"
                )

    def _holds(self, value: float) -> bool:
        low, high = self.bounds
        return low <= value <= high or value in self.special

    @property
    def _kind(self) -> Kind:
        return KINDS[self.kind]

    @property
    def is_numeric(self) -> bool:
        """Whether values are numbers between bounds, or moments of the calendar."""
        return self._kind.level == "numeric"

    @property
    def is_ordinal(self) -> bool:
        """Whether values are categories in ascending order."""
        return self._kind.level == "ordinal"

    @property
    def is_categorical(self) -> bool:
        """Whether values are categories without order."""
        return self._kind.level == "nominal"

    @property
    def is_date(self) -> bool:
        """Whether values are dates, with or without a time of day."""
        return self._kind.seconds is not None

    @property
    def seconds(self) -> int:
        """Seconds in the unit of a column of dates."""
        assert self._kind.seconds is not None
        return self._kind.seconds

    @property
    def rhythm(self) -> tuple[float, int] | None:
        """Length of a place, and number of places, of the cycle that values are habitual in, or None."""
        return self._kind.rhythm

    @property
    def written_apart(self) -> bool:
        """Whether people write its numbers in a form of their own, such as a date."""
        return self._kind.written_apart

    @property
    def written_as_numbers(self) -> bool:
        """Whether files write its values as numbers, perhaps with a decimal comma."""
        return self._kind.written_as_numbers(self)

    def mark_reviewed(self, *, named: bool) -> Column:
        """The column without unreviewed fields, its list of categories or codes confirmed if it is named."""
        confirmed = self.reviewed or (named and bool(self.listed))
        return self.model_copy(update={"unreviewed": (), "reviewed": confirmed})

    @property
    def listed(self) -> tuple[Category, ...]:
        """What is listed one by one: categories, codes, codes of a missing value, and other spellings."""
        return (*self.categories, *self.special, *self.missing_codes, *(word for word, _ in self.aliases))

    @property
    def unconfirmed(self) -> bool:
        """Whether nobody confirmed its list of values. False and true, or 0 and 1, need no word."""
        return bool(set(self.listed) - {0, 1}) and not self.reviewed

    @property
    def undecided(self) -> bool:
        """Whether it may hold values of records, because nobody said that they are public."""
        return bool(self.unreviewed) or self.unconfirmed

    @property
    def bounds(self) -> tuple[float, float]:
        """Lower and upper bound of a numeric column."""
        assert self.lower is not None and self.upper is not None
        return self.lower, self.upper

    @property
    def resolution(self) -> float | None:
        """The step between released values, None for real numbers and for categories."""
        if self.step is not None:
            return self.step
        if self.decimals is not None:
            # 1 / 10**d is correctly rounded, 10.0**-d is not for every d
            return 1.0 / 10**self.decimals
        return self._kind.default_step

    @property
    def has_usual_step(self) -> bool:
        """Whether its step is that of all columns of its kind, or it has none."""
        return self.resolution in (None, self._kind.default_step)

    @property
    def shown_unit(self) -> str | None:
        """The unit for readers. Dates have their kind here, since their numbers are shown as dates."""
        return self.kind if self.written_apart else self.unit

    @property
    def number_unit(self) -> str | None:
        """The unit of its numbers, as its bounds and its step are kept."""
        return self._kind.number_unit or self.unit

    @property
    def difference_unit(self) -> str | None:
        """The unit in which people read differences of values: days, of dates."""
        return self._kind.difference_unit or self.unit

    @property
    def natural_limits(self) -> frozenset[float]:
        """Limits that need not come from data where values reach them."""
        return self._kind.natural_limits

    @property
    def calendar_unit(self) -> float:
        """Size of the unit of a column of dates in days, 1 for all other columns."""
        return self.unit_size if self.is_date else 1.0

    @property
    def unit_size(self) -> float:
        """Size of the unit of codes, in `difference_unit`."""
        return self._kind.unit_size

    def shown(self, number: float, figures: int = 6) -> str:
        """Write a number of the column for people: a date in ISO form, others in so many figures.

        Examples
        --------
        >>> Column(name="born", kind="date", lower="1900-01-01", upper="2020-12-31").shown(0)
        '1970-01-01'
        """
        return self._kind.shown(number, figures)

    @property
    def allowed(self) -> str:
        """Bounds with their step, or categories, in a few words for people.

        Examples
        --------
        >>> Column(name="creatinine", kind="continuous", lower=0.1, upper=20, decimals=1, scale="log").allowed
        '0.1 to 20 in steps of 0.1, log scale'
        >>> Column(name="sex", kind="binary", categories=("F", "M")).allowed
        'F, M'
        """
        return self._kind.allowed(self)

    @property
    def incomplete(self) -> bool:
        """Whether a record may have no number or category: a missing value, or a special code."""
        return self.missing or bool(self.special)

    @property
    def has_zero_cell(self) -> bool:
        """Whether zeros have a histogram cell of their own below a logarithmic scale."""
        return self.scale == "log" and self.lower == 0

    @property
    def n_values(self) -> int | None:
        """Number of values a released cell can hold, without a missing one, or None for real numbers."""
        return self._kind.count(self)

    @property
    def tree_levels(self) -> tuple[NDArray[np.int64], ...]:
        """The group of each category in each level of its tree, the finest first. Empty without a tree."""
        return () if self.tree is None else self.tree.levels(self.categories)

    @property
    def dtype(self) -> Any:
        """The pandas dtype of the column in a conformed or synthetic frame.

        - ``float64`` (NaN missing): continuous columns and decimal categories.
        - ``int64``, or ``Int64`` if values may be missing: integers and whole-number categories.
        - ``datetime64[ms]`` (NaT missing): dates, with or without a time of day.
        - ``bool``, or ``boolean`` if values may be missing: true/false categories.
        - pandas' text dtype: the rest.
        """
        return self._kind.dtype(self)

    @property
    def data_type(self) -> str:
        """The type of the values in schema.org's words, such as ``Float``."""
        return self._kind.data_type(self)

    def read(self, cells: pd.Series, present: NDArray[np.bool_]) -> NDArray[Any]:
        """Values of a table's cells, as `series` takes them, or `BadCells`. ``present``: those not empty."""
        return self._kind.read(self, cells, present)

    def cell_numbers(self, cells: pd.Series) -> NDArray[np.float64]:
        """Codes of a table's cells, NaN where they hold no value of the column, shape (n,)."""
        return self._kind.numbers(self, cells)

    def without_codes(self, cells: pd.Series) -> pd.Series:
        """A table's cells without codes of a missing value that words do not show."""
        return self._kind.without_codes(self, cells)

    def code(self, values: pd.Series) -> NDArray[np.float64]:
        """Codes of canonical values, NaN where missing, shape (n,).

        Numbers in the unit of the bounds, with special codes, or positions among the categories.
        """
        return self._kind.code(self, values)

    def series(self, values: Any, index: pd.Index | None = None) -> pd.Series:
        """A column of the canonical dtype from codes of numbers, or from categories."""
        return self._kind.series(self, values, index)

    def numbered(self, codes: NDArray[np.float64]) -> NDArray[Any]:
        """Number of each code among the declared values, from 0. Real numbers within the bounds stay."""
        return self._kind.number(self, codes)

    def declared(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """The declared values of these numbers, as `series` takes them: the inverse of `numbered`."""
        return self._kind.declared(self, numbers)

    def amounts(self, codes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Codes in `difference_unit`, NaN for special ones. Categories of numbers are these."""
        return self._kind.amounts(self, codes)
