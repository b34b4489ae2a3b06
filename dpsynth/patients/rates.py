"""How much an increasing column rises at most in a unit of time, such as a year of experience in a year."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictStr, ValidationError

from dpsynth.errors import SchemaError
from dpsynth.files.text import one_sentence
from dpsynth.table.column import Column

#: Units of time in days, by every word for one.
_DAYS = {
    word: days
    for days, words in (
        (1 / 86_400, ("second", "s", "sec")),
        (1 / 1_440, ("minute", "min")),
        (1 / 24, ("hour", "h")),
        (1.0, ("day", "d")),
        (7.0, ("week",)),
        (365.25 / 12, ("month",)),
        (365.25, ("year", "yr", "y", "a")),
    )
    for word in words
}


def days_of(word: str | None) -> float | None:
    """Days of a unit of time, such as year or years, None for another word.

    Examples
    --------
    >>> days_of("weeks"), days_of("visit")
    (7.0, None)
    """
    word = (word or "").strip().lower()
    return _DAYS.get(word, _DAYS.get(word.removesuffix("s")))


class Rate(BaseModel):
    """The most that a column rises in a unit of time.

    Between two rows this is rounded up to the column's step.

    Parameters
    ----------
    column : str
        An increasing column.
    most : float
        In the column's unit. Of an ordinal column, categories.
    per : str
        Second, minute, hour, day, week, month or year. A month has 30.4375 days.

    Raises
    ------
    SchemaError
        One sentence that names the column.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    column: StrictStr
    most: float = Field(gt=0, allow_inf_nan=False)
    per: StrictStr

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as problem:
            said = one_sentence(problem, tuple(type(self).model_fields))
            raise SchemaError(f"column {fields.get('column')!r}: rate: {said}") from None

    @classmethod
    def of(cls, column: str, entry: Any) -> Rate:
        """Read what stands behind ``rate`` in a file."""
        if not isinstance(entry, Mapping) or {*entry} != {"most", "per"}:
            raise SchemaError(f"column {column!r}: rate must be a mapping such as {{most: 1, per: year}}")
        return cls(column=column, **entry)

    def entry(self) -> dict[str, Any]:
        """What `of` reads."""
        return {"most": self.most, "per": self.per}

    def in_clock(self, clock: Column) -> float:
        """The most in a unit of the time of rows. Raises ValueError where a unit is not known."""
        days = days_of(self.per)
        if days is None:
            raise ValueError(
                f"column {self.column!r}: rate per {self.per!r} must be per second, minute, hour, day, week, "
                "month or year"
            )
        own = days_of(clock.unit or clock.name)
        if own is None:
            raise ValueError(
                f"column {self.column!r}: a rate needs the unit of {clock.name!r}. Write unit: days there, "
                "or another unit of time"
            )
        return self.most * own / days
