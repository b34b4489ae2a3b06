"""Whatever frame is drafted can be fitted: where it cannot, the draft has asked about that column."""

from __future__ import annotations

import datetime
import re
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import dpsynth
from dpsynth.errors import DataError, OwnerWarning
from dpsynth.table.cells import plain_table
from dpsynth.table.inference import infer_schema

N = 12
NAMES = st.one_of(
    st.sampled_from(["age", "sex", "", " ", "id", "a b", "=1+1", "'x", "é", "true", "count", "date"]),
    st.sampled_from(
        [5, 1.5, True, None, np.nan, ("a", "b"), b"raw", pd.Timestamp("2020-01-31"), np.int64(7)]
    ),
    st.text(max_size=4),
)
PLAIN = (
    "F",
    "M",
    " F",
    "f ",
    "é",
    "1",
    "01",
    "1.0",
    "1e3",
    "-9",
    "999",
    "0",
    "inf",
    "true",
    "False",
    "yes",
    "no",
)
ODD = (
    "",
    " ",
    "NA",
    "nan",
    "None",
    "?",
    "-",
    ".",
    "<5",
    "5 %",
    "1,5",
    "=1+1",
    "'=1+1",
    "2020-01-31",
    "31/01/2020",
)
WORDS = st.sampled_from((*PLAIN, *ODD))
MOMENTS = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1))
DAYS = st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1))
FLOATS = st.one_of(
    st.floats(-1e6, 1e6, width=32),
    st.sampled_from([0.1, 6.0996, 6.1, -9.0, 999.0, 1e-30, 1e30, np.nan, np.inf, -np.inf, 2.0**60, -0.0]),
)
WHOLE = st.one_of(st.integers(-3, 3), st.integers(0, 120), st.integers(-(2**62), 2**62))
ANY = st.one_of(
    WORDS,
    WHOLE,
    FLOATS,
    st.booleans(),
    st.none(),
    st.sampled_from(
        [b"F", b"", b"1", pd.NaT, pd.NA, Decimal("1.50"), Decimal("NaN"), (1, 2), datetime.time(3, 4)]
    ),
    MOMENTS,
    DAYS,
)


def cells(one, dtype=object):
    """A column of few different cells, or of many."""
    few = st.lists(one, min_size=1, max_size=3).flatmap(
        lambda pool: st.lists(st.sampled_from(pool), min_size=N, max_size=N)
    )
    return st.one_of(few, st.lists(one, min_size=N, max_size=N)).map(
        lambda made: pd.Series(made, dtype=dtype)
    )


def or_missing(one):
    return st.one_of(one, one, one, st.none())


SMALL = st.integers(-100, 100)
COLUMNS = st.one_of(
    cells(WORDS),
    cells(or_missing(WORDS)),
    cells(or_missing(WORDS), "string"),
    cells(or_missing(WORDS), pd.ArrowDtype(pa.string())),
    cells(st.sampled_from([b"F", b"M", b"", b"1.5", b"\xc3\xa9"])),
    cells(FLOATS, "float64"),
    cells(FLOATS, "float32"),
    cells(or_missing(st.floats(-1e6, 1e6)), "Float64"),
    cells(or_missing(st.floats(-1e6, 1e6)), pd.ArrowDtype(pa.float64())),
    cells(WHOLE, "int64"),
    cells(st.integers(0, 255), "uint8"),
    cells(or_missing(WHOLE), "Int64"),
    cells(or_missing(WHOLE), pd.ArrowDtype(pa.int64())),
    cells(st.booleans(), "bool"),
    cells(or_missing(st.booleans())),
    cells(or_missing(st.booleans()), "boolean"),
    cells(or_missing(st.booleans()), pd.ArrowDtype(pa.bool_())),
    cells(or_missing(WORDS), "category"),
    cells(or_missing(st.one_of(SMALL, st.floats(-1, 1))), "category"),
    cells(or_missing(MOMENTS), "category"),
    cells(SMALL.map(float)).map(
        lambda values: pd.cut(values.astype(float), [-101.0, -3.0, 0.0, 50.0, 101.0])
    ),
    cells(SMALL).map(lambda values: values.astype(pd.CategoricalDtype(sorted({*values}), ordered=True))),
    cells(or_missing(MOMENTS), "datetime64[us]"),
    cells(MOMENTS).map(lambda values: pd.to_datetime(values).dt.tz_localize("Etc/GMT+5")),
    cells(or_missing(MOMENTS), pd.ArrowDtype(pa.timestamp("us"))),
    cells(or_missing(DAYS)),
    cells(or_missing(DAYS), pd.ArrowDtype(pa.date32())),
    cells(or_missing(MOMENTS)),
    cells(DAYS).map(lambda values: pd.to_datetime(values).dt.to_period("M")),
    cells(SMALL).map(lambda values: pd.to_timedelta(values.astype(int), unit="h")),
    cells(or_missing(st.decimals(-1000, 1000, places=2))),
    cells(or_missing(st.decimals(-1000, 1000, places=2)), pd.ArrowDtype(pa.decimal128(9, 2))),
    cells(SMALL.map(complex)),
    cells(st.none()),
    cells(st.just(np.nan), "float64"),
    cells(ANY),
)


@st.composite
def frames(draw):
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique_by=str))
    columns = [draw(COLUMNS) for _ in names]
    frame = pd.concat(columns, axis=1)
    frame.columns = pd.Index(names, dtype=object, tupleize_cols=False)
    return frame


def one(values, name="x", dtype=object):
    return pd.DataFrame({name: pd.Series(values, dtype=dtype)})


#: frames that were drafted and then refused or misread by a fit
FOUND = (
    one(["", "F", "M"] * 4),
    one([1, 2, 3.5] * 4, 5),
    one([1, 2, 3.5] * 4, 1.5),
    one(["a", "b"] * 6, pd.Timestamp("2020-01-31")),
    one([b"F", b"M", b""] * 4),
    one([Decimal("906.40"), None] * 6),
    one([1e30, "no", None] * 4),
    one([0, False, -0.0, "x"] * 3),
    one(["2020-01-31", "2021-05-01", "."] * 4),
)


def found(test):
    """Try the frames that were found as well."""
    for frame in FOUND:
        test = example(frame=frame)(test)
    return test


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=[*HealthCheck])
@given(frame=frames())
@found
def test_what_is_drafted_is_fitted_or_asked_about(frame):
    """Catches cells and names that a draft and a fit read in two ways."""
    before = frame.copy()
    try:
        draft = infer_schema(frame)
    except DataError:
        return  # a clear sentence before anything is asked
    pd.testing.assert_frame_equal(frame, before)
    try:
        made = draft.schema.conform(frame).frame
    except DataError as problem:
        told = re.findall(r"olumn ('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")", str(problem))
        asked = {repr(remark.column) for remark in draft.questions}
        assert told and {*told} <= asked, (problem, draft.questions)
        return
    assert list(made.columns) == list(draft.schema.names)
    # what a draft takes for a value stays one
    plain = plain_table(frame)
    for column in draft.schema.columns:
        if not column.missing:
            assert plain[column.name].notna().all()
    assert draft.schema.conform(made).frame.equals(made)


@pytest.mark.slow
@pytest.mark.parametrize("frame", FOUND, ids=range(len(FOUND)))
def test_a_fit_takes_what_conforms(frame):
    """Catches a reader on the way to the noisy counts that takes cells or names in its own way."""
    schema = infer_schema(frame).schema
    model = dpsynth.DPMarginals(epsilon=1.0, delta=1e-3, accept_unreviewed=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OwnerWarning)  # noise of twelve rows
        made = model.fit(pd.concat([frame] * 3, ignore_index=True), schema=schema).sample(20)
    assert schema.conform(made).frame.equals(made)


def test_bytes_that_are_no_text_are_named():
    """Catches a cell b'\\xe6' that becomes a category of its own, or a decoding error without a column."""
    with pytest.raises(DataError, match=r"column 'sex' holds bytes that are not UTF-8.*encoding"):
        infer_schema(one([b"M\xe6nd", b"F"] * 6, "sex"))
    schema = dpsynth.Schema(columns=(dpsynth.Column(name="sex", kind="binary", categories=("F", "M")),))
    assert schema.conform(one([b"F", "M"], "sex")).frame["sex"].tolist() == ["F", "M"]
    with pytest.raises(DataError, match="'sex', row 2: the value is missing"):
        schema.conform(one(["F", " "], "sex"))
