"""YAML by the rules of 1.2."""

from __future__ import annotations

import math
import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.errors import ConfigError
from dpsynth.files.text import dump_yaml, load_yaml

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


def test_scalars() -> None:
    """YAML 1.1 reads a third of these as something else."""
    for text, value in [
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
    ]:
        read = load_yaml(text)
        assert read == value
        assert type(read) is type(value)


def test_errors_are_one_sentence() -> None:
    """Broken or dangerous YAML must give the caller's error with its origin, on one line."""
    for text in ["a: [", "a: 1\na: 2", "? [1]\n: 2", "!!python/object:os.system {}", "\x01", "a: *b"]:
        with pytest.raises(ConfigError, match=r"^here.*not valid YAML") as caught:
            load_yaml(text, origin="here", error=ConfigError)
        assert "\n" not in str(caught.value)


BOMB = "a0: &a0 [x]\n" + "".join(f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 9)}]\n" for i in range(9))


def test_a_hostile_text_is_one_sentence() -> None:
    """A text of nine lines that stands for 400 million words, a crash, or an object of the computer."""
    for text, said in [
        (BOMB, "aliases"),
        ("columns: &a [1, *a]", "aliases"),
        ("a: &a {b: *a}", "aliases"),
        ("a: " + "[" * 200_000 + "]" * 200_000, "nest"),
        ("a: " + "[" * 101 + "]" * 101, "nested too deeply"),
        ("- " * 200_000, "nested too deeply"),
        ("a: !!python/object/apply:os.system [ls]", "tag"),
        ("a: !!timestamp 9999-99-99", "tag"),
        ("a: !!int x", "invalid literal"),
        ("a: !!bool x", "'x'"),
        ("a: " + "9" * 5000, "4300 digits"),
        ("a: 1\na: 2", "the key 'a' is given twice"),
        ("a: \0", "control characters"),
    ]:
        with pytest.raises(
            ConfigError, match=f"^c.yaml(, line 1|, line 2)?: not valid YAML: .*{said}"
        ) as found:
            load_yaml(text, origin="c.yaml", error=ConfigError)
        assert len(str(found.value)) < 300


def test_many_keys_are_read_in_one_pass() -> None:
    """Each key compared with all before it: this took minutes."""
    assert len(load_yaml("".join(f"k{i}: 1\n" for i in range(20_000)))) == 20_000
