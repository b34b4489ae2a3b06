"""Distances of mixed types against their definitions, record by record."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import InputError
from dpsynth.evaluation.features import distance_features
from dpsynth.evaluation.neighbours.search import METRICS, gower_points, hamming_points, metric_named
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=20, upper=60, missing=True),
        Column(name="crea", kind="continuous", lower=0.5, upper=4.5, decimals=1),
        Column(name="raw", kind="continuous", lower=-1.0, upper=1.0, missing=True),
        Column(name="stage", kind="ordinal", categories=("I", "II", "III"), missing=True),
        Column(name="race", kind="categorical", categories=("a", "b", "c"), missing=True),
        Column(name="died", kind="binary", categories=(False, True)),
    )
)
RANKS = {"I": 0.0, "II": 0.5, "III": 1.0}

records = st.lists(
    st.tuples(
        st.none() | st.integers(20, 60),
        st.sampled_from([0.5, 0.6, 0.62, 2.0, 4.5]),
        st.none() | st.sampled_from([-1.0, 0.0, 0.25, 1.0]),
        st.none() | st.sampled_from(["I", "II", "III"]),
        st.none() | st.sampled_from(["a", "b", "c"]),
        st.booleans(),
    ),
    min_size=2,
    max_size=7,
)


def frame_of(rows: list[tuple[object, ...]]) -> pd.DataFrame:
    return SCHEMA.conform(pd.DataFrame(rows, columns=list(SCHEMA.names), dtype=object)).frame


def one_column(a: object, b: object, scaled: bool, width: float = 1.0) -> float:
    if a is None or b is None:
        return 0.0 if a is b else 1.0
    return abs(a - b) / width if scaled else float(a != b)  # type: ignore[operator]


def naive_gower(a: tuple, b: tuple) -> float:
    ranks = [None if row[3] is None else RANKS[row[3]] for row in (a, b)]
    parts = [
        one_column(a[0], b[0], True, 40.0),
        one_column(a[1], b[1], True, 4.0),
        one_column(a[2], b[2], True, 2.0),
        one_column(*ranks, True),
        one_column(a[4], b[4], False),
        one_column(a[5], b[5], False),
    ]
    return sum(parts) / 6


def naive_hamming(a: tuple, b: tuple) -> float:
    first, second = ((*row[:1], round(row[1], 1), *row[2:]) for row in (a, b))
    return sum(x != y for x, y in zip(first, second, strict=True)) / 6


@settings(max_examples=40, deadline=None)
@given(records)
def test_gower_and_hamming_are_their_definitions(rows: list[tuple[object, ...]]) -> None:
    """Would catch a wrong scale, a missing value taken for a number, or rounding off the public grid."""
    frame = frame_of(rows)
    for name, naive in (("gower", naive_gower), ("hamming", naive_hamming)):
        points = METRICS[name].encode(frame, SCHEMA)
        expected = [[naive(a, b) for b in rows] for a in rows]
        np.testing.assert_allclose(METRICS[name].tile(points, points), expected, atol=1e-12)


def test_hamming_shares_are_exact() -> None:
    """Would catch shares that differ in their last digit between pairs with equally many differences."""
    rng = np.random.default_rng(0)
    points = rng.integers(0, 3, (60, 11)).astype(float)
    whole = (points[:, None] != points).sum(axis=2)
    np.testing.assert_array_equal(metric_named("hamming").tile(points, points), whole / 11)


def test_euclidean_is_the_squared_distance_of_the_encoding() -> None:
    """Would catch another encoding than the one that the accuracy was defined with."""
    frame = frame_of([(20, 0.5, 0.0, "I", "a", True), (None, 4.5, None, "III", None, False)])
    points = METRICS["euclidean"].encode(frame, SCHEMA)
    np.testing.assert_array_equal(points, distance_features(frame, SCHEMA).points)
    assert METRICS["euclidean"].tile(points, points)[0, 1] == pytest.approx(
        ((points[0] - points[1]) ** 2).sum()
    )


def test_all_missing_records_coincide() -> None:
    """Would catch NaN in an encoding, which would make every distance NaN."""
    schema = Schema(columns=(Column(name="x", kind="continuous", lower=0, upper=1, missing=True),))
    frame = schema.conform(pd.DataFrame({"x": [np.nan, np.nan, 0.0]})).frame
    for encode in (gower_points, hamming_points):
        points = encode(frame, schema)
        assert np.isfinite(points).all()
        assert (points[0] == points[1]).all() and not (points[0] == points[2]).all()


def test_unknown_metric_is_named() -> None:
    """Would catch a KeyError instead of a sentence that lists what there is."""
    with pytest.raises(InputError, match="metric must be one of euclidean, gower, hamming, got 'cosine'"):
        metric_named("cosine")
