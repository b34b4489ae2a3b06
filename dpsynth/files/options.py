"""Options declared once: what a field may be stands in its annotation, and a fault is one sentence.

The same records serve the estimator, the configuration and the report. Pydantic checks them, strictly: a
delta in quotes or a seed of ``true`` is a slip of the pen.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import wraps
from typing import Any, Self, TypeVar, dataclass_transform

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.dataclasses import dataclass
from pydantic_core import PydanticCustomError

from dpsynth.errors import InputError
from dpsynth.files.yaml_text import one_sentence

Record = TypeVar("Record")
_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


def plain(value: object) -> object:
    """A value as files hold it. NumPy's numbers are numbers, other objects with a number's methods are not.

    Pydantic's strict numbers take whatever has ``__float__``, an array that holds ``True`` for example.
    """
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | Decimal | Fraction):
        return repr(value)  # which no number and no truth value accepts
    return value


def listed(given: object) -> object:
    """A list, which files hold, as the tuple that a frozen record keeps."""
    if given is not None and not isinstance(given, list | tuple):
        raise PydanticCustomError("list_type", "Input should be a list")
    return given if given is None else tuple(given)


class Section(BaseModel):
    """A frozen group of options, as one key of a configuration holds them."""

    model_config = ConfigDict(frozen=True, **_STRICT)

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, given: Any) -> Any:
        return {name: plain(v) for name, v in given.items()} if isinstance(given, dict) else given

    @classmethod
    def of(cls, **given: object) -> Self:
        """The record of these options. Raise InputError with one sentence if one is wrong."""
        try:
            return cls.model_validate(given)
        except ValidationError as problem:
            raise InputError(one_sentence(problem, tuple(cls.model_fields))) from None


@dataclass_transform(frozen_default=True, field_specifiers=(Field,))
def options_record(record: type[Record]) -> type[Record]:
    """Make a class a frozen dataclass whose fields are checked by their annotations.

    Its constructor raises InputError with one sentence.

    Examples
    --------
    >>> @options_record
    ... class Share:
    ...     of: float = Field(default=0.5, gt=0, lt=1)
    >>> Share(of=2.0)
    Traceback (most recent call last):
    dpsynth.errors.InputError: of must be less than 1, got 2.0
    """
    checked: Any = dataclass(frozen=True, config=_STRICT)(record)
    construct: Callable[..., None] = checked.__init__

    @wraps(construct)
    def __init__(self: Any, *values: Any, **named: Any) -> None:
        try:
            construct(self, *map(plain, values), **{name: plain(v) for name, v in named.items()})
        except ValidationError as problem:
            raise InputError(one_sentence(problem, tuple(checked.__dataclass_fields__))) from None

    checked.__init__ = __init__
    return checked
