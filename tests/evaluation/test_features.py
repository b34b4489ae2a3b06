"""Frames to arrays: nothing lost, nothing read off the data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.evaluation.tables import ClassifierEncoding, distance_features, unit_values
from dpsynth.table.kinds.category import category_codes
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=20, upper=60, missing=True),
        Column(name="crea", kind="continuous", lower=0.5, upper=4.5),
        Column(name="stage", kind="ordinal", categories=("I", "II", "III"), missing=True),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="race", kind="categorical", categories=("a", "b", "c"), missing=True),
        Column(name="died", kind="binary", categories=(False, True)),
    ),
    outcome="died",
)

rows = st.lists(
    st.tuples(
        st.none() | st.integers(20, 60),
        st.floats(0.5, 4.5),
        st.none() | st.sampled_from(["I", "II", "III"]),
        st.sampled_from(["F", "M"]),
        st.none() | st.sampled_from(["a", "b", "c"]),
        st.booleans(),
    ),
    min_size=1,
    max_size=12,
)


#: of the coordinates, by hand
NAMES = (
    "age", "age present", "age missing", "crea", "stage", "stage present", "stage missing", "sex=F", "sex=M",
    "race=a", "race=b", "race=c", "race missing", "died=False", "died=True",
)  # fmt: skip


def frame_of(records: list[tuple[object, ...]]) -> pd.DataFrame:
    raw = pd.DataFrame(records, columns=list(SCHEMA.names), dtype=object)
    return SCHEMA.conform(raw).frame


@settings(max_examples=60, deadline=None)
@given(rows)
def test_distance_features_can_be_read_back(records: list[tuple[object, ...]]) -> None:
    """Would catch swapped coordinates, a lost missing value or bounds taken from the data."""
    encoded = distance_features(frame_of(records), SCHEMA)
    assert encoded.shape[1] == len(NAMES) and np.isfinite(encoded).all()
    at = dict(zip(NAMES, encoded.T, strict=True))
    for row, (age, crea, stage, sex, race, died) in enumerate(records):
        assert (at["age missing"][row] > 0) == (age is None)
        assert at["age present"][row] + at["age missing"][row] == pytest.approx(np.sqrt(0.5))
        assert 20 + 40 * at["age"][row] == pytest.approx(40 if age is None else age)
        assert 0.5 + 4 * at["crea"][row] == pytest.approx(crea)
        assert 2 * at["stage"][row] == pytest.approx({"I": 0, "II": 1, "III": 2, None: 1}[stage])
        for label, value in (("sex", sex), ("race", race), ("died", died)):
            hot = [name for name in NAMES if name.startswith(label) and at[name][row] > 0]
            assert hot == [f"{label} missing" if value is None else f"{label}={value}"]


def test_two_categories_lie_at_distance_one() -> None:
    """Would catch a one-hot that outweighs a numeric column (distance sqrt(2) instead of 1)."""
    encoded = distance_features(
        frame_of([(30, 1.0, "I", "F", "a", True), (30, 1.0, "I", "M", "a", True)]), SCHEMA
    )
    assert np.linalg.norm(encoded[0] - encoded[1]) == pytest.approx(1.0)


def test_codes_for_every_type_of_category() -> None:
    """Would catch 1, True and "1" mistaken for each other, or a missing value given a category."""
    for categories, dtype in [
        ((0, 1), "Int64"),
        ((False, True), "boolean"),
        (("0", "1"), object),
        ((0.5, 1.5), float),
    ]:
        column = Column(name="x", kind="binary", categories=categories, missing=True)
        series = pd.Series([categories[1], None, categories[0]], dtype=dtype)
        assert category_codes(column, series).tolist() == [1, -1, 0]


def test_unit_values_of_one_category_and_all_missing() -> None:
    """Would catch a division by zero on a one-category ordinal, and NaN handling on an empty column."""
    single = Column(name="x", kind="ordinal", categories=("only",))
    assert unit_values(single, pd.Series(["only", "only"])).tolist() == [0.0, 0.0]
    number = Column(name="x", kind="integer", lower=0, upper=9, missing=True)
    assert np.isnan(unit_values(number, pd.Series([None, None], dtype="Int64"))).all()


def test_medians_come_from_the_training_frame_only() -> None:
    """Would catch imputation that reads the real test records."""
    train = frame_of(
        [(20, 1.0, "I", "F", "a", True), (30, 1.0, "III", "F", "a", False), (60, 2.0, None, "M", None, True)]
    )
    test = frame_of([(None, 4.5, None, "F", "b", False), (60, 4.5, "III", "F", "b", False)])
    encoding = ClassifierEncoding.fit(train, SCHEMA, "died")
    np.testing.assert_allclose(encoding.medians, [0.25, 0.125, 0.5])
    imputed, raw = encoding.transform(test, impute=True), encoding.transform(test, impute=False)
    assert np.isfinite(imputed).all()
    assert imputed[0, 0] == 0.25 and imputed[0, 1] == 1.0 and imputed[1, 1] == 0.0
    assert np.isnan(raw[0, 0]) and raw[1, 0] == 1.0
    # age, crea, stage, sex (2), race (3 and missing), with two indicators when imputed; never the outcome
    assert raw.shape[1] == 9 and imputed.shape[1] == 11


def test_column_without_any_value_is_constant() -> None:
    """Would catch NaN medians reaching logistic regression, or a column of NaN the histogram binning."""
    frame = frame_of([(None, 1.0, None, "F", None, True), (None, 2.0, None, "M", None, False)])
    encoding = ClassifierEncoding.fit(frame, SCHEMA, "died")
    known = frame_of([(20, 1.0, "I", "F", "a", True)])
    for impute in (True, False):
        assert np.isfinite(encoding.transform(frame, impute=impute)).all()
        assert encoding.transform(known, impute=impute)[0, 0] == 0.5
