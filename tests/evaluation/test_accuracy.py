"""Nearest-neighbour adversarial accuracy against its definition, golden values and its expectation."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpsynth.errors import InputError
from dpsynth.evaluation import neighbours as search
from dpsynth.evaluation.neighbours import (
    METRICS,
    adversarial_accuracy,
    contributions,
    enough_counted,
    none_kept,
)


def squared(a: np.ndarray, b: np.ndarray) -> float:
    return float(((a - b) ** 2).sum())


def naive_side(
    own: np.ndarray, other: np.ndarray, distance: Callable[[np.ndarray, np.ndarray], float] = squared
) -> list[float]:
    """Definition (4.5) for one side, every left-out record or subset enumerated; exact on integer points."""
    values = []
    for i, point in enumerate(own):
        rest = [distance(point, p) for j, p in enumerate(own) if j != i]
        cross = [distance(point, p) for p in other]
        kept = min(len(rest), len(cross))
        outcomes = []
        for own_kept in combinations(rest, kept):
            for other_kept in combinations(cross, kept):
                a, b = min(own_kept), min(other_kept)
                outcomes.append(0.5 * (b > a) + 0.5 * (b >= a))
        values.append(float(np.mean(outcomes)))
    return values


def over_all_distances(own: np.ndarray, other: np.ndarray, metric: str, tolerance: float) -> np.ndarray:
    """The closed form from the full matrices of distances, as it was first implemented."""
    tile = METRICS[metric].tile
    near, far = tile(own, own), tile(own, other)
    np.fill_diagonal(near, np.inf)
    n, m = len(own) - 1, len(other)
    limits, counted = (near, far) if m >= n else (far, near)
    limit = limits.min(axis=1, keepdims=True)
    closer = (counted < limit * (1 - tolerance)).sum(axis=1)
    tied = (counted <= limit / (1 - tolerance)).sum(axis=1)
    if m >= n:
        return 0.5 * (none_kept(m, tied, n) + none_kept(m, closer, n))
    return 1 - 0.5 * (none_kept(n, closer, m) + none_kept(n, tied, m))


def old_definition(t: np.ndarray, s: np.ndarray) -> float:
    """Yale et al.'s (2.11): nothing left out of the other table."""
    values = []
    for own, other in ((t, s), (s, t)):
        for i, point in enumerate(own):
            nearest = min(squared(point, p) for j, p in enumerate(own) if j != i)
            values.append(float(min(squared(point, p) for p in other) > nearest))
    return float(np.mean(values))


def bits(*rows: str) -> np.ndarray:
    return np.array([[int(c) for c in row] for row in rows], dtype=float)


small_grid = st.tuples(st.integers(2, 6), st.integers(2, 6), st.integers(1, 3)).flatmap(
    lambda shape: st.tuples(
        hnp.arrays(np.int64, (shape[0], shape[2]), elements=st.integers(0, 3)),
        hnp.arrays(np.int64, (shape[1], shape[2]), elements=st.integers(0, 3)),
    )
)


def test_golden_binary_rows() -> None:
    """Would catch a wrong weight for any kind of tie (first golden value)."""
    real = bits("1110", "0000", "0111", "1111", "1111", "0110")
    synthetic = bits("0110", "1110", "0101", "0000", "0000", "0111")
    result = adversarial_accuracy(real, synthetic)
    assert result.aa_real == pytest.approx(0.375, abs=1e-12)
    assert result.aa_synthetic == pytest.approx(1 / 3, abs=1e-12)
    assert result.aa == pytest.approx((0.375 + 1 / 3) / 2, abs=1e-12)
    assert (result.n_real, result.n_synthetic) == (6, 6)


def test_golden_line_where_the_old_definition_differs() -> None:
    """Would catch leaving nothing out, the bias that the thesis repairs (second golden value)."""
    real, synthetic = np.array([[0.0], [1.0], [2.5], [4.0]]), np.array([[0.2], [1.3], [2.0], [7.0]])
    result = adversarial_accuracy(real, synthetic)
    assert result.aa_real == pytest.approx(0.3125, abs=1e-12)
    assert result.aa_synthetic == pytest.approx(0.125, abs=1e-12)
    assert old_definition(real, synthetic) == pytest.approx(0.125)


@pytest.mark.parametrize(
    ("own", "others", "expected"),
    [
        (1.0, (0.5, 0.6, 9.0), 0.0),
        (1.0, (0.5, 1.0, 9.0), 1 / 6),
        (1.0, (0.5, 2.0, 9.0), 1 / 3),
        (1.0, (1.0, 1.0, 9.0), 1 / 2),
        (1.0, (1.0, 2.0, 9.0), 4 / 6),
        (1.0, (2.0, 3.0, 9.0), 1.0),
    ],
)
def test_closed_form_per_point(own: float, others: tuple[float, ...], expected: float) -> None:
    """Would catch an error in any one of the six cases of the closed form, n = 3."""
    real = np.array([[0.0], [own], [-50.0]])
    result = adversarial_accuracy(real, np.array(others)[:, None])
    assert result.per_real[0] == pytest.approx(expected, abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(small_grid)
def test_equals_the_enumerated_definition(tables: tuple[np.ndarray, np.ndarray]) -> None:
    """Would catch a wrong count, tie or subset formula on tables full of ties, of equal and unequal sizes."""
    real, synthetic = tables
    result = adversarial_accuracy(real, synthetic)
    np.testing.assert_allclose(result.per_real, naive_side(real, synthetic), atol=1e-12)
    np.testing.assert_allclose(result.per_synthetic, naive_side(synthetic, real), atol=1e-12)
    assert result.aa_real == pytest.approx(result.per_real.mean())
    assert result.aa == pytest.approx((result.aa_real + result.aa_synthetic) / 2)


@pytest.mark.parametrize("metric", list(METRICS))
@settings(max_examples=25, deadline=None)
@given(tables=small_grid)
def test_every_metric_equals_the_enumerated_definition(
    metric: str, tables: tuple[np.ndarray, np.ndarray]
) -> None:
    """Would catch a metric whose ties are broken by rounding, or that the search treats differently."""
    whole = {
        "euclidean": squared,
        "gower": lambda a, b: float(np.abs(a - b).sum()),
        "hamming": lambda a, b: float((a != b).sum()),
    }[metric]
    result = adversarial_accuracy(*tables, metric=metric)
    np.testing.assert_allclose(result.per_real, naive_side(*tables, whole), atol=1e-12)
    np.testing.assert_allclose(result.per_synthetic, naive_side(*tables[::-1], whole), atol=1e-12)


@pytest.mark.parametrize(("n", "m", "d"), [(300, 300, 3), (220, 460, 6), (460, 220, 1), (301, 300, 12)])
@pytest.mark.parametrize("tolerance", [1e-9, 0.0])
def test_products_change_no_contribution(n: int, m: int, d: int, tolerance: float) -> None:
    """Would catch a pair decided by rounded products: ties, offsets, copies, clusters, unequal sizes."""
    rng = np.random.default_rng(n + m + d)
    x, centres = rng.normal(size=(n, d)), 100 * rng.normal(size=(5, d))
    whole = [rng.integers(0, 4, (rows, d)) for rows in (n, m)]
    cases = {
        "normal": [x, rng.normal(size=(m, d)) + 0.1],
        "whole": whole,
        "scaled": [(part + 17) / 55 for part in whole],
        "near one": [1 + 1e-6 * rng.normal(size=(rows, d)) for rows in (n, m)],
        "near one, tied": [1 + 1e-6 * part for part in whole],
        "one-hot": [(part > 1) / np.sqrt(2) for part in whole],
        "copies": [x, x[rng.integers(0, n, m)]],
        "clusters": [centres[part[:, 0]] + 1e-4 * rng.normal(size=part.shape) for part in whole],
        "far apart": [x, rng.normal(size=(m, d)) + 1e6],
        "constant": [np.full((rows, d), 1 / 3) for rows in (n, m)],
    }
    for name, (real, synthetic) in cases.items():
        result = adversarial_accuracy(real, synthetic, tie_tolerance=tolerance)
        for found, pair in ((result.per_real, (real, synthetic)), (result.per_synthetic, (synthetic, real))):
            points = [np.asarray(part, dtype=float) for part in pair]
            expected = over_all_distances(*points, "euclidean", tolerance)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12, err_msg=name)


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 400), st.integers(2, 400))
def test_counts_beyond_enough_change_nothing(n: int, m: int) -> None:
    """Would catch a cap on counts that is too low for unequal sizes."""
    enough = enough_counted(n, m)
    total = m if m >= n - 1 else n - 1
    assert enough <= total
    beyond = np.arange(enough, total + 1)
    values = contributions(beyond, beyond, n, m)
    np.testing.assert_allclose(values, values[-1], rtol=0, atol=1e-14)
    first = contributions(np.array([0]), np.array([0]), n, m)[0]
    assert values[0] == pytest.approx(1 - first, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(small_grid, st.integers(1, 7))
def test_tiles_change_nothing(tables: tuple[np.ndarray, np.ndarray], block_size: int) -> None:
    """Would catch a lost row, a self-distance or a double count at the edge of a tile."""
    whole = adversarial_accuracy(*tables)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_ROWS", block_size)
        patch.setattr(search, "_TILE", block_size)
        tiled = adversarial_accuracy(*tables)
    np.testing.assert_array_equal(whole.per_real, tiled.per_real)
    np.testing.assert_array_equal(whole.per_synthetic, tiled.per_synthetic)


@settings(max_examples=30, deadline=None)
@given(small_grid)
def test_roles_are_symmetric(tables: tuple[np.ndarray, np.ndarray]) -> None:
    """Would catch a side computed with the other side's sizes."""
    real, synthetic = tables
    forward, backward = adversarial_accuracy(real, synthetic), adversarial_accuracy(synthetic, real)
    assert forward.aa_real == backward.aa_synthetic
    assert forward.aa_synthetic == backward.aa_real


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "n", "m"),
    [
        *(("normal", *sizes) for sizes in [(2, 2), (5, 5), (8, 3), (3, 8), (9, 8), (6, 20)]),
        *(("binary", *sizes) for sizes in [(5, 5), (8, 3), (3, 8)]),
    ],
)
def test_expectation_is_one_half(law: str, n: int, m: int) -> None:
    """Would catch a bias of a few hundredths: same distribution, each side alone, within 4.5 errors."""
    rng = np.random.default_rng(n * 100 + m)
    draw = (
        (lambda k: rng.normal(size=(k, 2)))
        if law == "normal"
        else (lambda k: rng.integers(0, 2, (k, 4)).astype(float))
    )
    results = [adversarial_accuracy(draw(n), draw(m)) for _ in range(400)]
    for side in ("aa_real", "aa_synthetic"):
        values = np.array([getattr(r, side) for r in results])
        error = values.std(ddof=1) / np.sqrt(len(values))
        assert abs(values.mean() - 0.5) < 4.5 * error
        assert error < 0.025


def test_old_definition_is_biased() -> None:
    """Would catch a test sample too small to see the bias that the new definition removes (0.44, 0.25)."""
    rng = np.random.default_rng(1)
    normal = [old_definition(rng.normal(size=(5, 2)), rng.normal(size=(5, 2))) for _ in range(600)]
    binary = [old_definition(rng.integers(0, 2, (8, 4)), rng.integers(0, 2, (8, 4))) for _ in range(300)]
    assert np.mean(normal) == pytest.approx(0.44, abs=0.03)
    assert np.mean(binary) == pytest.approx(0.25, abs=0.03)


def test_identical_tables() -> None:
    """Would catch copies that are not seen as closer: a released copy of the data scores far below 1/2."""
    points = np.random.default_rng(2).normal(size=(50, 3))
    result = adversarial_accuracy(points, points)
    # Each copy is the nearest of the other table; only leaving it out (1/n) can make another record nearer,
    # and then the second nearest ties with the record's own nearest neighbour: 1/(2n).
    assert result.aa == pytest.approx(1 / 100, abs=1e-12)


def test_separated_tables_score_one() -> None:
    """Would catch a reversed comparison."""
    rng = np.random.default_rng(3)
    assert adversarial_accuracy(rng.normal(size=(7, 2)), rng.normal(size=(9, 2)) + 100).aa == 1.0


def test_constant_tables_score_one_half() -> None:
    """Would catch ties at distance zero that are not split."""
    assert adversarial_accuracy(np.ones((4, 2)), np.ones((6, 2))).aa == 0.5


@pytest.mark.parametrize("values", [6, 30])
@pytest.mark.parametrize("scale", [1 / 55, 0.1, 1 / 3, 1e-6])
def test_scaled_integers_keep_their_ties(values: int, scale: float) -> None:
    """Would catch ties lost to rounding: integers divided by their range must score as the integers do."""
    rng = np.random.default_rng(4)
    real, synthetic = rng.integers(0, values, (60, 2)), rng.integers(0, values, (55, 2))
    exact = adversarial_accuracy(real, synthetic, tie_tolerance=0.0)
    scaled = adversarial_accuracy((real + 17) * scale, (synthetic + 17) * scale)
    np.testing.assert_array_equal(exact.per_real, scaled.per_real)
    np.testing.assert_array_equal(exact.per_synthetic, scaled.per_synthetic)


def test_rounding_breaks_ties_without_the_tolerance() -> None:
    """Would catch the test above passing with no tolerance at all."""
    rng = np.random.default_rng(4)
    real, synthetic = rng.integers(0, 30, (60, 2)), rng.integers(0, 30, (55, 2))
    exact = adversarial_accuracy(real, synthetic, tie_tolerance=0.0)
    broken = adversarial_accuracy((real + 17) / 55, (synthetic + 17) / 55, tie_tolerance=0.0)
    assert np.count_nonzero(exact.per_real != broken.per_real) > 0


def test_expanded_squares_would_break_ties() -> None:
    """Would catch distances computed as x^2 + y^2 - 2xy: far from the origin they lose the points."""
    rng = np.random.default_rng(5)
    real, synthetic = rng.integers(0, 3, (40, 3)), rng.integers(0, 3, (40, 3))
    near, far = (adversarial_accuracy(real + k, synthetic + k) for k in (0, 2**30))
    np.testing.assert_array_equal(near.per_real, far.per_real)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 300), st.data())
def test_none_kept_equals_exact_integers(total: int, data: st.DataObject) -> None:
    """Would catch log-gamma at its poles or with the wrong arguments."""
    marked, kept = data.draw(st.integers(0, total)), data.draw(st.integers(0, total))
    exact = comb(total - marked, kept) / comb(total, kept)
    assert none_kept(total, np.array([marked]), kept)[0] == pytest.approx(exact, rel=1e-9, abs=1e-300)


def test_none_kept_for_a_million_records() -> None:
    """Would catch overflow: with N = 10^6 and half kept, one marked item is avoided with probability 1/2."""
    values = none_kept(10**6, np.array([0, 1, 2, 10**6]), 5 * 10**5)
    np.testing.assert_allclose(values, [1.0, 0.5, 0.25, 0.0], atol=1e-6)


@pytest.mark.parametrize(
    ("real", "synthetic", "message"),
    [
        ([[1.0]], [[1.0], [2.0]], "real must have at least 2 records, got 1"),
        ([[1.0], [2.0]], np.empty((0, 1)), "synthetic must have at least 2 records, got 0"),
        ([[1.0], [2.0]], [[1.0, 2.0], [2.0, 1.0]], "same number of columns, got 1 and 2"),
        ([[1.0], [np.nan]], [[1.0], [2.0]], "real must be finite, got nan in row 1, column 0"),
        ([[1.0], [2.0]], [[1.0], [np.inf]], "synthetic must be finite, got inf in row 1, column 0"),
        ([1.0, 2.0], [[1.0], [2.0]], "real must have shape"),
        (np.empty((3, 0)), np.empty((3, 0)), "at least 1 column"),
        ([["a"], ["b"]], [[1.0], [2.0]], "real must be an array of numbers"),
    ],
)
def test_bad_arrays_are_refused(real: object, synthetic: object, message: str) -> None:
    """Would catch NaN distances that silently count as never nearest, or a traceback from deep inside."""
    with pytest.raises(InputError, match=message):
        adversarial_accuracy(real, synthetic)


@pytest.mark.parametrize("argument", [{"tie_tolerance": -1e-3}, {"tie_tolerance": 1.0}])
def test_bad_settings_are_refused(argument: dict[str, float]) -> None:
    """Would catch a negative tolerance, or one that ties everything."""
    with pytest.raises(InputError, match=next(iter(argument))):
        adversarial_accuracy([[1.0], [2.0]], [[1.0], [2.0]], **argument)
