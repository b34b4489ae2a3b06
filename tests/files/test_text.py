"""YAML by the rules of 1.2."""

from __future__ import annotations

import math
import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.errors import ConfigError
from dpsynth.files.yaml_text import dump_yaml, load_yaml, read_text

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10)
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(trees)
def test_round_trip(tree: object) -> None:
    """Text that is written plain but read as a number, or a number read as text."""
    again = load_yaml(dump_yaml(tree))
    assert again == tree
    assert repr(again) == repr(tree)  # 1 and 1.0 and True are equal, and not the same


@given(
    st.text(max_size=10)
    | st.sampled_from(["no", "y", "N", "On", "01", "08", "1_0", "0o7", "12:30", "2019-03-01"])
)
def test_text_is_text_for_every_reader(text: str) -> None:
    """A category ``no`` or ``01`` that another program reads as false or 1 and writes back so."""
    written = dump_yaml({"categories": [text]})
    assert yaml.safe_load(written) == {"categories": [text]}
    if re.fullmatch(r"[yYnN]|[-+]?\d+|0[ox]\d+", text):  # YAML 1.1 as its page has it, and 1.2
        assert f"'{text}'" in written


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", 1e-5),
        ("1.5E+3", 1500.0),
        ("2.", 2.0),
        (".5", 0.5),
        ("-3", -3),
        ("0", 0),
        ("-.inf", -math.inf),
        ("true", True),
        ("~", None),
        ("", None),
        ("no", "no"),
        ("Yes", "Yes"),
        ("010", "010"),
        ("038.9", "038.9"),
        ("12:30:45", "12:30:45"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        ("2020-01-01", "2020-01-01"),
        ("1e", "1e"),
        ("'1'", "1"),
    ],
)
def test_scalars(text: str, value: object) -> None:
    """YAML 1.1 reads a third of these as something else."""
    read = load_yaml(text)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    "text", ["a: [", "a: 1\na: 2", "? [1]\n: 2", "!!python/object:os.system {}", "\x01", "a: *b"]
)
def test_errors_are_one_sentence(text: str) -> None:
    """Broken or dangerous YAML must give the caller's error with its origin, on one line."""
    with pytest.raises(ConfigError, match=r"^here.*not valid YAML") as caught:
        load_yaml(text, origin="here", error=ConfigError)
    assert "\n" not in str(caught.value)


def test_read_text(tmp_path) -> None:
    """A folder, or bytes that are no UTF-8, must give the caller's error."""
    with pytest.raises(ConfigError, match="cannot be read"):
        read_text(tmp_path, error=ConfigError)
    (tmp_path / "x").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_text(tmp_path / "x", error=ConfigError)
