"""One codec for frozen records with arrays: how a class is stored follows from its constructor's type hints.

A record becomes JSON with a key for each argument. Its arrays stand in an ``npz`` file, each under its place
in the record (``model/base_model/cells/0``). The JSON has their dtypes and shapes. For records that people
read, :func:`to_plain` writes arrays as lists.

A file is hostile input. Only classes marked with :func:`record`, or given a form of their own by
:func:`record_as`, are made from it. A name in a file chooses among these, where the hint is a base class:
nothing is imported or unpickled. Keys, lengths, types and dtypes must be those of the hints, and each class's
constructor checks what else must hold.

A change of a stored class's fields raises `FORMAT`.
"""

from __future__ import annotations

import collections.abc
import hashlib
import json
import math
import types
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache, wraps
from pathlib import Path
from typing import (
    Any,
    Literal,
    Self,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.dataclasses import dataclass
from pydantic_core import PydanticCustomError

from dpsynth.errors import DataError, InputError
from dpsynth.files.storage import check_format, damaged, parse_json, replaced, sealed, unsealed, write_text
from dpsynth.files.text import one_sentence

# ------------------------------------------------------------------------------------------------
# A JSON file and arrays of numbers beside it in an ``npz`` file, which prove each other by checksums.

Arrays = dict[str, np.ndarray]


def write_with_arrays(
    folder: Path, name: str, record: Mapping[str, Any], arrays: Arrays, *, shared: bool = False
) -> None:
    """Write ``name.json`` and ``name.npz`` into a folder. The record has a ``format`` and gets checksums."""
    whole = sealed({**record, "arrays_sha256": arrays_digest(arrays)})
    text = json.dumps(whole, indent=1, allow_nan=False, ensure_ascii=False)
    write_text(folder / f"{name}.json", text + "\n", shared=shared)
    with replaced(folder / f"{name}.npz", shared=shared) as temporary:
        np.savez(temporary, **arrays)


def read_with_arrays(folder: str | Path, name: str, known: int) -> tuple[dict[str, Any], Arrays]:
    """Read what :func:`write_with_arrays` wrote, without format and checksums.

    Raises DataError if a file is absent, changed or damaged, or if its format is not the ``known`` one.
    """
    folder = Path(folder)
    path = reading = folder / f"{name}.json"
    try:
        record = parse_json(path.read_text(encoding="utf-8"))
        reading = folder / f"{name}.npz"
        arrays = read_arrays(reading)
    except NotADirectoryError:
        raise DataError(f"{folder} is a file. Name the folder of a {name}") from None
    except FileNotFoundError as problem:
        raise DataError(f"{folder} holds no {name}: {Path(str(problem.filename)).name} is absent") from None
    except Exception as problem:  # a damaged file shows itself as one of many exceptions
        raise damaged(folder, name, f"{reading.name}: {problem or type(problem).__name__}") from None
    if not isinstance(record, dict) or "format" not in record:
        raise damaged(folder, name, f"{path.name} does not hold a record")
    whole = unsealed(record, f"{folder} holds a damaged {name}: {path.name}")
    check_format(folder, name, whole.pop("format"), known)
    if "sha256" not in record:
        raise damaged(folder, name, f"{path.name} has no checksum")
    if whole.pop("arrays_sha256", None) != arrays_digest(arrays):
        raise damaged(folder, name, f"{reading.name} is not the one that {path.name} was written with")
    return whole, arrays


def arrays_digest(arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of arrays by name."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode() + array.tobytes())
    return digest.hexdigest()


def read_arrays(path: Path) -> Arrays:
    """The arrays of a file of `numpy.savez`, none of which takes more memory than its part of the file.

    `numpy.load` allocates what an array's header says, and unpacks whatever a compressed one holds. Raises
    ValueError, OSError or `zipfile.BadZipFile` for another file.
    """
    arrays: Arrays = {}
    with path.open("rb") as opened, zipfile.ZipFile(opened) as stored:
        members = stored.infolist()
        packed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
        if packed or sum(member.file_size for member in members) > path.stat().st_size:
            raise ValueError("its arrays are larger than the file")
        for member in members:
            name = member.filename.removesuffix(".npy")
            with stored.open(member) as file:
                if np.lib.format.read_magic(file) != (1, 0):
                    raise ValueError(f"the array {name} is of an unknown version")
                shape, _, dtype = np.lib.format.read_array_header_1_0(file)
                size = math.prod(shape) * dtype.itemsize
                if dtype.kind not in "biuf" or min(shape, default=0) < 0:
                    raise ValueError(f"the array {name} does not hold numbers")
                if size != member.file_size - file.tell() or name in arrays:
                    raise ValueError(f"the array {name} does not have its size")
                file.seek(0)
                arrays[name] = np.lib.format.read_array(file, allow_pickle=False)
    return arrays


#: of models and checkpoints. Up to 4 each class wrote itself
FORMAT = 12

Class = TypeVar("Class", bound=type)
Record = TypeVar("Record")

_CLASSES: dict[str, type] = {}
_FORMS: dict[type, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {}
#: what is written for a hint of plain values. Files hold the hint's own type
_PLAIN: dict[Any, tuple[type, ...]] = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (float, int, np.floating, np.integer),
    str: (str,),
}
_LISTS = (list, tuple, collections.abc.Sequence)
_MAPPINGS = (dict, collections.abc.Mapping)


def record(made: Class) -> Class:
    """Allow a dataclass, a pydantic model, or a class with hinted attributes of its arguments' names."""
    if _CLASSES.get(made.__name__, made).__module__ != made.__module__:
        raise TypeError(f"two classes of records are called {made.__name__}")
    _CLASSES[made.__name__] = made  # of a class that a notebook makes anew, the last counts
    return made


def record_as(made: type[Record], write: Callable[[Record], Any], read: Callable[[Any], Record]) -> None:
    """Allow a class in a form of its own: what JSON holds, and its inverse."""
    _FORMS[record(made)] = write, read


def to_plain(value: object) -> Any:
    """A record as JSON holds it, with arrays as lists."""
    return _written(value, type(value), "", None)


def from_plain(kind: type[Record], plain: Any) -> Record:
    """Inverse of :func:`to_plain`. A ValueError says what is not as it should be."""
    found: Record = _made(plain, kind, "", None)
    return found


def apart(value: object) -> tuple[Any, Arrays]:
    """A record as JSON, and its arrays by their places."""
    arrays: Arrays = {}
    return _written(value, type(value), "", arrays), arrays


def rejoined(kind: type[Record], plain: Any, arrays: Mapping[str, np.ndarray]) -> Record:
    """Inverse of :func:`apart`. A ValueError says what is not as it should be."""
    left = dict(arrays)
    found: Record = _made(plain, kind, "", left)
    if left:
        raise ValueError(f"the array {next(iter(left))} belongs to nothing")
    return found


def numbers(value: object, place: str = "") -> Iterator[tuple[str, Any]]:
    """Arrays and floats of a record, by their places. Pydantic models and classes with a form have none."""
    kind: Any = type(value)
    if isinstance(value, np.ndarray | float):
        yield place, value
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield from numbers(part, _at(place, name))
    elif isinstance(value, list | tuple):
        for k, part in enumerate(value):
            yield from numbers(part, _at(place, k))
    elif _CLASSES.get(kind.__name__) is kind and kind not in _FORMS and not isinstance(value, BaseModel):
        for name in _hints(kind):
            yield from numbers(getattr(value, name), _at(place, name))


def write(folder: Path, name: str, value: object, *, shared: bool = False) -> None:
    """Write a record as ``name.json`` and ``name.npz`` into a folder, with format and checksums."""
    plain, arrays = apart(value)
    write_with_arrays(folder, name, {"format": FORMAT, **plain}, arrays, shared=shared)


def read(folder: str | Path, name: str, kind: type[Record]) -> Record:
    """Read what :func:`write` wrote.

    Raises DataError, in one sentence, if a file is absent, changed, damaged or of another format, or if it
    holds no record of this ``kind``.
    """
    plain, arrays = read_with_arrays(folder, name, FORMAT)
    try:
        return rejoined(kind, plain, arrays)
    except Exception as problem:  # what somebody made up shows itself as one of many exceptions
        said = str(problem).split(". ")[0] or type(problem).__name__
        raise damaged(folder, name, f"{name}.json: {said}") from None


def _at(place: str, part: object) -> str:
    return f"{place}/{part}" if place else str(part)


@cache
def _hints(made: type) -> dict[str, Any]:
    """Arguments of a class's constructor, which are attributes as well, with their type hints."""
    if is_dataclass(made):
        hints = get_type_hints(made)
        return {field.name: hints[field.name] for field in fields(made) if field.init}
    constructor: Any = made.__dict__["__init__"]
    return {name: hint for name, hint in get_type_hints(constructor).items() if name != "return"}


def _known(made: type) -> type:
    if _CLASSES.get(made.__name__) is not made:
        raise TypeError(f"{made.__module__}.{made.__name__} is no class of records")
    return made


def _member(hint: Any, value: object) -> Any:
    """The member of a union for a value that is not None, or the hint itself without a record's parameters.

    A file names the class of a record that is not of the first member.
    """
    origin = get_origin(hint)
    if origin not in (Union, types.UnionType):
        return origin if isinstance(origin, type) and _CLASSES.get(origin.__name__) is origin else hint
    members = [member for member in get_args(hint) if member is not types.NoneType]
    if type(value) in _PLAIN and type(value) in members:
        return type(value)
    takes = (member for member in members if isinstance(value, _PLAIN.get(member, ())))
    named = value.get("class") if isinstance(value, dict) else None
    made = _CLASSES.get(named) if isinstance(named, str) else None
    return next(takes, next((each for each in members if made and each in made.__mro__), members[0]))


def _each(value: Any, hint: Any, place: str, converted: Callable[[Any, Any, str], Any]) -> Any:
    """A list, a tuple (as a list) or a mapping with each part converted by its hint."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in _MAPPINGS:
        named = isinstance(value, Mapping) and all(isinstance(key, str) for key in value)
        _must(value, named, place, "a mapping with text as keys")
        return {key: converted(part, inner[1], _at(place, key)) for key, part in value.items()}
    _must(value, isinstance(value, list | tuple), place, "a list")
    hints = inner if origin is tuple and inner[-1:] != (...,) else inner[:1] * len(value)
    _must(value, len(hints) == len(value), place, f"{len(hints)} entries")
    return [
        converted(part, own, _at(place, k)) for k, (part, own) in enumerate(zip(value, hints, strict=True))
    ]


def _must(value: Any, holds: bool, place: str, what: str) -> Any:
    if not holds:
        raise ValueError(f"{place or 'it'} must be {what}, not {value!r:.80}")
    return value


def _dtype(hint: Any) -> np.dtype[Any]:
    return np.dtype(get_args(get_args(hint)[1])[0])


def _written(value: Any, hint: Any, place: str, arrays: Arrays | None) -> Any:
    if value is None and types.NoneType in get_args(hint):
        return None
    hint = _member(hint, value)
    origin = get_origin(hint)
    if origin is Literal:
        return _must(value, value in get_args(hint), place, f"one of {get_args(hint)}")
    if origin is np.ndarray:
        array = np.asarray(value).astype(_dtype(hint), casting="same_kind", copy=False)
        if arrays is None:
            return array.tolist()
        arrays[_must(place, place not in arrays, place, "one array")] = array
        return _dtype_and_shape(array)
    if origin in _LISTS + _MAPPINGS:
        return _each(value, hint, place, lambda part, own, at: _written(part, own, at, arrays))
    if hint in _PLAIN:
        return hint(_must(value, isinstance(value, _PLAIN[hint]), place, hint.__name__))
    kind: Any = _known(type(value))
    named = {} if kind is hint else {"class": kind.__name__}
    if kind in _FORMS:
        return named | _FORMS[kind][0](value)
    if isinstance(value, BaseModel):
        return named | value.model_dump(mode="json")
    hints = _hints(kind).items()
    return named | {name: _written(getattr(value, name), of, _at(place, name), arrays) for name, of in hints}


def _made(value: Any, hint: Any, place: str, arrays: Arrays | None) -> Any:
    """Inverse of `_written`."""
    if value is None and types.NoneType in get_args(hint):
        return None
    hint = _member(hint, value)
    origin = get_origin(hint)
    if origin is Literal:
        return _must(value, value in get_args(hint), place, f"one of {get_args(hint)}")
    if origin is np.ndarray:
        return _array(value, _dtype(hint), place, arrays)
    if origin in _LISTS + _MAPPINGS:
        found = _each(value, hint, place, lambda part, own, at: _made(part, own, at, arrays))
        return tuple(found) if origin in _LISTS[1:] else found
    if hint in _PLAIN:
        finite = type(value) is hint and (hint is not float or math.isfinite(value))
        return _must(value, finite, place, f"a finite {hint.__name__}" if hint is float else hint.__name__)
    _must(value, isinstance(value, dict), place, "a mapping")
    kind, given = _class(value.get("class"), hint, place), {k: v for k, v in value.items() if k != "class"}
    if kind in _FORMS:
        return _FORMS[kind][1](given)
    if issubclass(kind, BaseModel):
        return _model(kind, json.dumps(given))
    hints = _hints(kind)
    if given.keys() != hints.keys():
        raise ValueError(f"{place or 'it'} must have the fields {sorted(hints)}, not {sorted(given)}")
    return kind(**{name: _made(given[name], of, _at(place, name), arrays) for name, of in hints.items()})


def _class(name: object, hint: Any, place: str) -> Any:
    """The class of a record: the hint's own, or a marked subclass that the file names."""
    if name is None:
        return _known(hint)
    kind = _CLASSES.get(name) if isinstance(name, str) else None
    if kind is None or hint not in kind.__mro__:
        raise ValueError(f"{place or 'it'} is a {name!r:.80}, not a {hint.__name__}")
    return kind


@lru_cache(maxsize=512)
def _model(kind: type[BaseModel], text: str) -> BaseModel:
    """A frozen pydantic model. Several records hold one schema, which takes long to check."""
    try:
        return kind.model_validate_json(text)
    except ValidationError as problem:
        raise ValueError(one_sentence(problem, tuple(kind.model_fields))) from None


def _dtype_and_shape(array: np.ndarray) -> str:
    return f"{array.dtype} {array.shape}"


def _array(value: Any, dtype: np.dtype[Any], place: str, arrays: Arrays | None) -> np.ndarray:
    """An array of the hint's dtype, from a list or from the stored arrays, of which it is taken."""
    if arrays is None:
        array = np.asarray(_must(value, isinstance(value, list), place, "a list of numbers"))
        _must(value, array.dtype.kind in "biuf", place, "a list of numbers")
        return array.astype(dtype)
    if place not in arrays:
        raise ValueError(f"the array {place} is absent")
    array = arrays.pop(place)
    _must(value, _dtype_and_shape(array) == value, place, f"{_dtype_and_shape(array)}, as its array is")
    return _must(array, array.dtype == dtype, place, f"of {dtype}")


# ------------------------------------------------------------------------------------------------
# Options declared once: what a field may be stands in its annotation, and a fault is one sentence.
#
# The same records serve the estimator, the configuration and the report. Pydantic checks them, strictly: a
# delta in quotes or a seed of ``true`` is a slip of the pen.

OptionsClass = TypeVar("OptionsClass")
_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


def plain_value(value: object) -> object:
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


class OptionGroup(BaseModel):
    """A frozen group of options, as one key of a configuration holds them."""

    model_config = ConfigDict(frozen=True, **_STRICT)

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, given: Any) -> Any:
        return {name: plain_value(v) for name, v in given.items()} if isinstance(given, dict) else given

    @classmethod
    def of(cls, **given: object) -> Self:
        """The record of these options. Raise InputError with one sentence if one is wrong."""
        try:
            return cls.model_validate(given)
        except ValidationError as problem:
            raise InputError(one_sentence(problem, tuple(cls.model_fields))) from None


@dataclass_transform(frozen_default=True, field_specifiers=(Field,))
def options_record(record: type[OptionsClass]) -> type[OptionsClass]:
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
            construct(self, *map(plain_value, values), **{name: plain_value(v) for name, v in named.items()})
        except ValidationError as problem:
            raise InputError(one_sentence(problem, tuple(checked.__dataclass_fields__))) from None

    checked.__init__ = __init__
    return checked
