"""Distances of mixed types against their definitions, record by record."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from dpsynth.errors import InputError
from dpsynth.evaluation import neighbours as search
from dpsynth.evaluation.neighbours import (
    METRICS,
    gower_points,
    hamming_points,
    in_threads,
    metric_named,
    nearest,
    over_tiles,
)
from dpsynth.evaluation.tables import distance_features
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
    return sum(x != y for x, y in zip(a, b, strict=True)) / 6


@settings(max_examples=40, deadline=None)
@given(records)
def test_gower_and_hamming_are_their_definitions(rows: list[tuple[object, ...]]) -> None:
    """Would catch a wrong scale, a missing value taken for a number, or rounding off the public grid."""
    frame = frame_of(rows)
    rows = [(*row[:1], round(row[1], 1), *row[2:]) for row in rows]
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
    np.testing.assert_array_equal(points, distance_features(frame, SCHEMA))
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


EUCLIDEAN = metric_named("euclidean")


def drawn(kind: str, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Points that are hard for products: ties, small differences far from 0, clusters, extreme scales."""
    centres = 100 * rng.normal(size=(4, d))
    return {
        "normal": lambda: rng.normal(size=(n, d)),
        "whole": lambda: rng.integers(0, 3, (n, d)).astype(float),
        "scaled": lambda: (rng.integers(0, 30, (n, d)) + 17) / 55,
        "one-hot": lambda: rng.integers(0, 2, (n, d)) / np.sqrt(2),
        "near one": lambda: 1 + 1e-6 * rng.normal(size=(n, d)),
        "clusters": lambda: centres[rng.integers(0, 4, n)] + 1e-4 * rng.normal(size=(n, d)),
        "outlier": lambda: np.vstack([rng.normal(size=(n - 1, d)), np.full((1, d), 1e9)]),
        "tiny": lambda: 1e-30 * rng.normal(size=(n, d)),
        "large": lambda: 1e30 * rng.normal(size=(n, d)),
        "huge": lambda: 1e150 * rng.normal(size=(n, d)),
        "constant": lambda: np.full((n, d), 1 / 3),
    }[kind]()


KINDS = [
    "normal",
    "whole",
    "scaled",
    "one-hot",
    "near one",
    "clusters",
    "outlier",
    "tiny",
    "large",
    "huge",
    "constant",
]


@pytest.mark.parametrize("kind", KINDS)
def test_lists_and_reach_hold_on_hard_points(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch an error bound that is too small: a point outside a list nearer than ``reach`` claims."""
    monkeypatch.setattr(search, "_ROWS", 32)
    rng = np.random.default_rng(1)
    for d in (1, 7):
        points = drawn(kind, 150, d, rng)
        full = cdist(points, points, "sqeuclidean")
        np.fill_diagonal(full, np.inf)
        found = nearest(points, points, EUCLIDEAN, 6, itself=np.arange(150))
        # Bit for bit what cdist says of the pairs, and in order.
        np.testing.assert_array_equal(np.take_along_axis(full, found.index.astype(int), 1), found.distance)
        assert (np.diff(found.distance, axis=1) >= 0).all()
        np.put_along_axis(full, found.index.astype(int), np.inf, axis=1)
        assert (full.min(axis=1) >= found.reach).all()


@pytest.mark.parametrize("kind", ["normal", "near one", "whole"])
def test_nothing_is_missed_that_can_be_told(kind: str) -> None:
    """Would catch a list that is not of the nearest, or a reach that settles nothing."""
    points = drawn(kind, 400, 5, np.random.default_rng(2))
    full = cdist(points, points, "sqeuclidean")
    np.fill_diagonal(full, np.inf)
    found = nearest(points, points, EUCLIDEAN, 5, itself=np.arange(400))
    np.testing.assert_array_equal(found.distance, np.sort(full, axis=1)[:, :5])
    assert (found.reach >= 0.99 * found.distance[:, -1]).all()


@pytest.mark.parametrize("far", [1e6, 1e20, 1e145])
def test_points_far_from_the_set(far: float) -> None:
    """Would catch overflow, or products that go on where their numbers no longer fit."""
    others = np.random.default_rng(4).normal(size=(50, 3))
    points = np.vstack([others[:5] + far, others[:5]])
    full = cdist(points, others, "sqeuclidean")
    found = nearest(points, others, EUCLIDEAN, 4)
    np.testing.assert_array_equal(np.take_along_axis(full, found.index.astype(int), 1), found.distance)
    np.put_along_axis(full, found.index.astype(int), np.inf, axis=1)
    assert (full.min(axis=1) >= found.reach).all()


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(list(METRICS)),
    st.integers(1, 40),
    st.integers(1, 30),
    st.integers(1, 3),
    st.integers(1, 8),
    st.integers(1, 13),
    st.integers(0, 2**32 - 1),
)
def test_lists_are_the_smallest_of_each_row(
    name: str, m: int, n: int, d: int, k: int, block: int, seed: int
) -> None:
    """Would catch a lost tile, a column counted twice, or k larger than the set, for every metric."""
    rng = np.random.default_rng(seed)
    others, points = (rng.integers(0, 3, (rows, d)).astype(float) for rows in (m, n))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_ROWS", block)
        patch.setattr(search, "_TILE", block * m)
        found = nearest(points, others, METRICS[name], k)
    expected = np.sort(METRICS[name].tile(points, others), axis=1)
    np.testing.assert_array_equal(found.distance, expected[:, :k])
    assert all(len(set(row)) == min(k, m) for row in found.index.tolist())
    if k >= m:
        assert np.isinf(found.reach).all()
    else:
        assert (found.reach <= expected[:, k]).all() and (found.reach >= expected[:, k - 1] - 1e-12).all()


def test_points_leave_themselves_out() -> None:
    """Would catch a point as its own nearest, or a copy of it left out in its place."""
    points = np.array([[0.0], [0.0], [5.0]])
    found = nearest(points[[2, 0]], points, EUCLIDEAN, 2, itself=np.array([2, 0]))
    assert found.index.tolist() == [[0, 1], [1, 2]] or found.index.tolist() == [[1, 0], [1, 2]]
    assert found.distance.tolist() == [[25.0, 25.0], [0.0, 25.0]]


@pytest.mark.parametrize("name", list(METRICS))
def test_a_point_among_many_copies_leaves_one_place(name: str) -> None:
    """Would catch a list one short, or itself in it, where more records coincide than are listed."""
    points = np.ones((12, 2))
    found = nearest(points, points, METRICS[name], 3, itself=np.arange(12))
    assert found.index.shape == (12, 3) and not (found.index == np.arange(12)[:, None]).any()
    assert (found.distance == 0.0).all() and (found.reach == 0.0).all()


def test_tiles_hold_every_distance_but_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch a lost row or a self-distance at the edge of a tile."""
    monkeypatch.setattr(search, "_TILE", 30)
    points = np.random.default_rng(5).normal(size=(10, 2))
    full = cdist(points, points, "sqeuclidean")
    parts = over_tiles(lambda rows, tile: (rows, tile), points, points, EUCLIDEAN)
    assert [rows.stop for rows, _ in parts] == [3, 6, 9, 10]
    np.testing.assert_array_equal(np.concatenate([tile for _, tile in parts]), full)
    np.fill_diagonal(full, np.inf)
    own = np.array([7, 2, 5, 1])
    parts = over_tiles(lambda _, tile: tile, points[own], points, EUCLIDEAN, own)
    np.testing.assert_array_equal(np.concatenate(parts), full[own])


def test_threads_keep_their_order() -> None:
    """Would catch results of threads in the order in which they end."""
    assert list(in_threads(lambda x: x * x, range(20))) == [x * x for x in range(20)]
