"""Frozen records come back from their files as they were, and nothing else comes from a file."""

from __future__ import annotations

import json
import pickle
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, Protocol

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray
from pydantic import BeforeValidator
from stored import read_back

from dpsynth.errors import DataError
from dpsynth.files import codec
from dpsynth.files import storage as atomic
from dpsynth.files.codec import OptionGroup, arrays_digest, listed
from dpsynth.files.storage import RESTORE


class Shape(Protocol):
    """What has sides."""


@codec.record
@dataclass(frozen=True)
class Round(Shape):
    """No sides."""


@codec.record
@dataclass(frozen=True)
class Angular(Shape):
    """Some sides."""

    sides: int

    def __post_init__(self) -> None:
        if self.sides < 3:
            raise ValueError(f"{self.sides} sides are too few. Draw more")


@codec.record
class Setting(OptionGroup):
    """A pydantic model."""

    share: float
    words: Annotated[tuple[str, ...], BeforeValidator(listed)] = ()


@codec.record
class Ruler:
    """A class of its own constructor."""

    def __init__(self, marks: NDArray[np.float64], unit: str = "mm") -> None:
        self.marks, self.unit = marks, unit
        self.width = marks.size


@codec.record
@dataclass(frozen=True)
class Drawing:
    """A record with each kind of field."""

    count: int
    size: float
    filled: bool
    name: str
    place: tuple[int, float]
    kind: Literal["ink", "chalk"]
    shapes: tuple[Shape, ...]
    setting: Setting
    ruler: Ruler
    pixels: NDArray[np.float32]
    mask: NDArray[np.bool_] | None
    shades: Mapping[str, NDArray[np.int64]]
    notes: Sequence[str] | None
    steps: list[dict[str, float | int]]
    margin: float | str | None
    nearest: float | None = None
    unused: tuple[tuple[tuple[int, ...], NDArray[np.float64]], ...] = ()
    area: float = field(init=False, default=0.0)


@dataclass(frozen=True)
class Stranger:
    """A class that no file may make."""

    number: int = 1


WHOLE = st.integers(-(2**70), 2**70)
REAL = st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)


def array(dtype: Any) -> st.SearchStrategy[np.ndarray]:
    return arrays(dtype, array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))


DRAWINGS = st.builds(
    Drawing,
    count=WHOLE,
    size=REAL,
    filled=st.booleans(),
    name=TEXT,
    place=st.tuples(WHOLE, REAL),
    kind=st.sampled_from(["ink", "chalk"]),
    shapes=st.lists(st.just(Round()) | st.builds(Angular, st.integers(3)), max_size=3).map(tuple),
    setting=st.builds(Setting, share=REAL, words=st.lists(TEXT, max_size=2).map(tuple)),
    ruler=st.builds(Ruler, array(np.float64), TEXT),
    pixels=array(np.float32),
    mask=st.none() | array(np.bool_),
    shades=st.dictionaries(TEXT, array(np.int64), max_size=2),
    notes=st.none() | st.lists(TEXT, max_size=2).map(tuple),
    steps=st.lists(st.dictionaries(TEXT, WHOLE | REAL, max_size=2), max_size=2),
    margin=REAL | TEXT | st.none(),
    nearest=st.none() | REAL,
    unused=st.lists(st.tuples(st.lists(WHOLE, max_size=2).map(tuple), array(np.float64)), max_size=2).map(
        tuple
    ),
)


def drawing(**changed: Any) -> Drawing:
    """One of them."""
    ruler = Ruler(np.array([0.0, 2.5]))
    made = Drawing(
        3, 0.5, True, "a", (1, 2.0), "ink", (Round(), Angular(4)), Setting(share=0.5), ruler,
        np.ones((2, 2), np.float32), None, {"dark": np.arange(3)}, None, [{"step": 1, "loss": 0.5}], "wide",
    )  # fmt: skip
    return replace(made, **changed)


def content(value: object) -> object:
    """What tells two records apart, to the bit and the type."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, Mapping):
        return {key: content(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value), [content(part) for part in value]
    if isinstance(value, Drawing | Ruler | Round | Angular):
        return type(value), content(vars(value))
    return type(value), repr(value)


@given(DRAWINGS)
@settings(max_examples=100, deadline=None)
def test_records_come_back_as_they_were(made: Drawing) -> None:
    """A number that is rounded, another type or dtype, an empty array or tuple that is lost."""
    assert content(read_back(made)) == content(made)


def test_a_file_comes_back(tmp_path):
    """Catches what only the file changes, and a file that differs from one writing to the next."""
    for name in ("one", "two"):
        codec.write(tmp_path, name, drawing())
    assert content(codec.read(tmp_path, "one", Drawing)) == content(drawing())
    for end in ("json", "npz"):
        assert (tmp_path / f"one.{end}").read_bytes() == (tmp_path / f"two.{end}").read_bytes()


def test_numbers_of_numpy_are_numbers():
    """Catches a fit that cannot be saved, since a share is NumPy's."""
    made = drawing(count=np.int64(3), size=np.float32(0.5), filled=np.True_, nearest=2)
    assert content(read_back(made)) == content(drawing(nearest=2.0))


def test_what_could_not_be_read_is_not_written():
    """Catches a model that is lost, because its file says something else than its class."""
    for change, words in [
        ({"count": 1.5}, "count must be int, not 1.5"),
        ({"kind": "oil"}, "kind must be one of"),
        ({"place": (1, 2.0, 3.0)}, "place must be 2 entries"),
        ({"shapes": (Stranger(),)}, "Stranger is no class of records"),
        ({"notes": "abc"}, "notes must be a list"),
        ({"shades": {1: np.arange(3)}}, "shades must be a mapping with text as keys"),
        ({"count": None}, "count must be int"),
    ]:
        with pytest.raises((ValueError, TypeError), match=words):
            codec.apart(drawing(**change))


def test_infinite_numbers_are_not_written(tmp_path):
    """Catches JSON that other readers refuse."""
    with pytest.raises(ValueError, match="JSON"):
        codec.write(tmp_path, "s", drawing(size=float("inf")))


def made_up(folder, change):
    """A file that somebody wrote who wants harm: all checksums hold."""
    codec.write(folder, "s", drawing())
    record = json.loads((folder / "s.json").read_text())
    del record["sha256"]
    with np.load(folder / "s.npz") as stored:
        kept = dict(stored)
    change(record, kept)
    np.savez(folder / "s.npz", **kept)
    record["arrays_sha256"] = arrays_digest(kept)
    (folder / "s.json").write_text(json.dumps(atomic.sealed(record)))


def _set(*path: Any) -> Any:
    *way, name, value = path

    def change(record: Any, kept: Any) -> None:
        for part in way:
            record = record[part]
        record[name] = value

    return change


def _array(name: str, value: Any) -> Any:
    def change(record: Any, kept: Any) -> None:
        kept[name] = np.asarray(value)
        record["pixels"] = f"{kept['pixels'].dtype} {kept['pixels'].shape}"

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_set("extra", 1), "it must have the fields"),
        (lambda record, kept: record.pop("count"), "it must have the fields"),
        (_set("count", 1.0), "count must be int, not 1.0"),
        (_set("count", True), "count must be int, not True"),
        (_set("count", None), "count must be int, not None"),
        (_set("size", 1), "size must be a finite float, not 1"),
        (_set("size", 1e999), "Infinity"),
        (_set("filled", 1), "filled must be bool"),
        (_set("name", ["a"]), "name must be str"),
        (_set("kind", "oil"), "kind must be one of"),
        (_set("kind", []), "kind must be one of"),
        (_set("place", [1]), "place must be 2 entries"),
        (_set("place", {"0": 1}), "place must be a list"),
        (_set("setting", {"share": 0.5, "other": 1}), "other is not a known key"),
        (_set("setting", {"share": "0.5"}), "share .*number"),
        (_set("setting", "a"), "setting must be a mapping"),
        (_set("steps", [{"a": "b"}]), "steps/0/a must be a finite float"),
        (_set("shapes", 1, "sides", 2), "2 sides are too few"),
        (_set("shapes", 0, "class", "Stranger"), "shapes/0 is a 'Stranger', not a Shape"),
        (_set("shapes", 0, "class", "Ruler"), "shapes/0 is a 'Ruler', not a Shape"),
        (_set("shapes", 0, "class", "os.system"), "not a Shape"),
        (_set("shapes", 0, "class", ["Round"]), "not a Shape"),
        (_set("shapes", 0, {}), "Shape is no class of records"),
        (_set("class", "Stranger"), "it is a 'Stranger', not a Drawing"),
        (_set("pixels", "float32 (4,)"), "pixels must be float32 .2, 2., as its array is"),
        (_set("mask", "bool (2,)"), "the array mask is absent"),
        (lambda record, kept: kept.pop("pixels"), "the array pixels is absent"),
        (_array("more", 1.0), "the array more belongs to nothing"),
        (_array("pixels", np.ones((2, 2))), "pixels must be of float32"),
        (_array("pixels", np.ones((2, 2), ">f4")), "pixels must be of float32|as its array is"),
    ],
)  # fmt: skip
def test_a_file_that_somebody_made_up_is_one_sentence(tmp_path, change, words):
    """Catches a traceback, and a field that is something else than its class says."""
    made_up(tmp_path, change)
    with pytest.raises(DataError, match=words) as problem:
        codec.read(tmp_path, "s", Drawing)
    assert str(problem.value).removesuffix(RESTORE).count(". ") == 1 and "\n" not in str(problem.value)


@pytest.mark.parametrize(
    ("number", "by"), [(codec.FORMAT - 1, "another"), (codec.FORMAT + 1, "a newer"), ("5", "another")]
)
def test_another_format_is_said(tmp_path, number, by):
    """Catches a model of another version that passes for a damaged one."""
    made_up(tmp_path, _set("format", number))
    with pytest.raises(DataError, match=f"was written by {by} dpsynth"):
        codec.read(tmp_path, "s", Drawing)


class Harm:
    """What a pickle would run."""

    def __reduce__(self) -> Any:
        raise AssertionError


def test_nothing_is_unpickled_or_unpacked(tmp_path):
    """Catches code run by a file, and memory that a small file claims."""
    codec.write(tmp_path, "s", drawing())
    path = tmp_path / "s.npz"
    whole = path.read_bytes()

    def refused(words: str) -> None:
        with pytest.raises(DataError, match=f"damaged s: s.npz: .*{words}"):
            codec.read(tmp_path, "s", Drawing)
        path.write_bytes(whole)

    np.savez(path, evil=np.array([{"a": 1}], dtype=object))
    refused("does not hold numbers")
    np.savez(path, text=np.array(["a"]))
    refused("does not hold numbers")
    np.savez_compressed(path, zeros=np.zeros(10**6))
    refused("larger than the file")
    path.write_bytes(pickle.dumps({"a": 1}))
    refused("zip")
    for shape in ("(99999999999,)", "(-1,)", "(2, 99999999999)"):
        head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}".ljust(117) + "\n"
        with zipfile.ZipFile(path, "w") as stored:
            stored.writestr("a.npy", b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
        refused("the array a does not")
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as stored:
        stored.writestr("pixels.npy", stored.read("pixels.npy"))
    refused("does not have its size")


@pytest.mark.parametrize("name", ["s.json", "s.npz"])
def test_no_changed_bit_is_read_as_other_numbers(tmp_path, name):
    """Catches a damaged file whose other numbers pass for those that were written, or an unnamed file."""
    made = Ruler(np.arange(3.0), "cm")
    codec.write(tmp_path, "s", made)
    whole, refused = (tmp_path / name).read_bytes(), 0
    for place in range(len(whole)):
        for bit in (1, 16):
            changed = bytes([whole[place] ^ bit])
            (tmp_path / name).write_bytes(whole[:place] + changed + whole[place + 1 :])
            try:
                found = codec.read(tmp_path, "s", Ruler)
            except DataError as problem:
                assert name in str(problem) and RESTORE in str(problem)
                refused += 1
            else:  # white space, dates in the archive
                assert content(found) == content(made)
    assert refused > len(whole) / 2


def test_two_classes_of_one_name_are_refused():
    """Catches a name in a file that means one class today and another tomorrow."""
    with pytest.raises(TypeError, match="two classes"):
        codec.record(type("Drawing", (), {"__module__": "elsewhere"}))
