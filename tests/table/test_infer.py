"""Drafts of schemas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_strategies import random_frame, schemas

from dpsynth.errors import DataError, PrivacyError
from dpsynth.table import Schema, infer, read_table, require_reviewed


def draft(values: object):
    return infer(pd.DataFrame({"x": values}))["x"]


@given(schemas(), st.integers(2, 15), st.integers(0, 99))
@settings(max_examples=35, deadline=None)
def test_draft_fits_its_table_and_marks_everything(schema: Schema, n: int, seed: int) -> None:
    """A field read off the records but not marked would be taken for public knowledge."""
    frame = schema.conform(random_frame(schema, n, seed)).frame
    frame = frame[[name for name in frame if frame[name].notna().any()]]
    if frame.shape[1] == 0:
        return
    drafted = infer(frame)
    for column in drafted.columns:
        fields = set(column.model_fields_set) - {"name", "unreviewed"}
        assert set(column.unreviewed) == fields
        assert "missing" in column.unreviewed
    assert drafted.n_public is None  # the number of rows is the records' secret too
    with pytest.raises(PrivacyError):
        require_reviewed(drafted)
    conformed = drafted.conform(frame)
    assert set(conformed.clipped.values()) <= {0}
    assert Schema.from_yaml(drafted.to_yaml()) == drafted


def test_kinds() -> None:
    """Each dtype must become the kind that a reader would have written."""
    assert (draft([1, 5, 9]).kind, draft([1, 5, 9]).upper) == ("integer", 9)
    assert (draft([1.0, 5.0, None]).kind, draft([1.0, 5.0, None, 9]).kind) == ("binary", "integer")
    assert draft([0, 1, 1]).categories == (0, 1)
    assert draft([True, False]).categories == (False, True)
    assert draft(pd.Series([True, None], dtype=object)).categories == (False, True)
    assert draft(["b", "a", "c"]).categories == ("a", "b", "c")
    assert draft([0.25, 0.5, 1.0]).decimals == 2
    assert draft([0.1, 0.2, 1 / 3]).resolution is None
    assert draft([0.5, 1.5, 100.0]).scale == "log"
    ordered = draft(pd.Categorical(["low", "high"], categories=["low", "mid", "high"], ordered=True))
    assert (ordered.kind, ordered.categories) == ("ordinal", ("low", "mid", "high"))
    assert draft([1, None, 3, 4]).missing
    assert not draft([1, 2, 3]).missing


def test_constant_column() -> None:
    """A constant has no width between its bounds: it must become its only category."""
    assert draft([3, 3]).categories == (3,)
    assert draft([2.5, 2.5]).categories == (2.5,)
    assert draft(["a", "a"]).categories == ("a",)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([None, None], "'x' has no values"),
        ([1.0, np.inf], "'x', row 2: an infinite value"),
        (pd.to_datetime(["2020-01-01", "2020-01-02"]), "holds dates"),
        ([f"patient {i}" for i in range(120)], "120 distinct values in 120 rows"),
        ([1, 2**60, 2**61], "beyond 2"),
    ],
)
def test_refusals(values: object, words: str) -> None:
    """Identifiers, dates and infinities must be refused with the column's name."""
    with pytest.raises(DataError, match=words.replace("(", r"\(")):
        draft(values)


@pytest.mark.parametrize("frame", [pd.DataFrame(), pd.DataFrame({"a": []}), pd.DataFrame(index=range(3))])
def test_empty_tables(frame: pd.DataFrame) -> None:
    """A draft of nothing would be an invalid schema."""
    with pytest.raises(DataError, match="cannot be drafted"):
        infer(frame)


def test_codes_keep_their_zeros_and_row_numbers_are_refused(tmp_path) -> None:
    """A code 010 that becomes the number 10 without a word, or the row's number synthesized as data."""
    lines = ["zip,x", *(f"0{1200 + i % 5},{i % 7}" for i in range(60))]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    drafted = infer(read_table(tmp_path / "a.csv"))
    assert drafted["zip"].categories == ("01200", "01201", "01202", "01203", "01204")
    assert drafted["x"].kind == "integer"
    with pytest.raises(DataError, match="'row' counts the rows from 1 to 300"):
        infer(pd.DataFrame({"row": np.arange(1, 301), "x": 0.5 + np.arange(300) % 9}))
