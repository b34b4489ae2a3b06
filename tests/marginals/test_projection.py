import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import ConfigError
from dpsynth.marginals.density import fit_margins
from dpsynth.table.simplex import norm_sub


def naive_norm_sub(counts, total):
    """Find the shift of norm-sub's definition by bisection."""
    low, high = counts.min() - total - 1, counts.max()
    for _ in range(200):
        middle = (low + high) / 2
        if np.maximum(counts - middle, 0).sum() > total:
            low = middle
        else:
            high = middle
    return np.maximum(counts - high, 0)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-100, 100), min_size=1, max_size=12), st.floats(0, 300))
def test_norm_sub_against_bisection(counts, total):
    """A projection that is not the nearest point, negative, or of another sum."""
    counts = np.array(counts)
    result = norm_sub(counts, total)
    assert np.all(result >= 0)
    assert result.sum() == pytest.approx(total, abs=1e-8)
    assert np.allclose(result, naive_norm_sub(counts, total), atol=1e-7)


def test_norm_sub_rows_and_edges():
    """A batch that mixes rows; a zero total; a negative or empty argument that passes."""
    rows = np.array([[1.0, 2.0, -4.0], [9.0, -9.0, 0.0]])
    assert np.array_equal(norm_sub(rows, [3.0, 1.0]), np.stack([norm_sub(rows[0], 3), norm_sub(rows[1], 1)]))
    assert norm_sub([3.0, -1.0], 0.0).tolist() == [0.0, 0.0]
    with pytest.raises(ConfigError, match="total is -1"):
        norm_sub([1.0], -1.0)
    with pytest.raises(ConfigError, match="no cells"):
        norm_sub([], 1.0)


def naive_ipf(table, rows, columns, passes):
    t = table.copy()
    for _ in range(passes):
        for i in range(t.shape[0]):
            t[i] *= rows[i] / t[i].sum()
        for j in range(t.shape[1]):
            t[:, j] *= columns[j] / t[:, j].sum()
    return t


def test_fit_margins_against_loops():
    """A scaling along the wrong axis."""
    rng = np.random.default_rng(0)
    table = rng.random((3, 4)) + 0.1
    rows, columns = np.array([3.0, 2.0, 5.0]), np.array([1.0, 4.0, 3.0, 2.0])
    fitted = fit_margins(table, [((0,), rows), ((1,), columns)], iterations=200, tolerance=0)
    assert np.allclose(fitted, naive_ipf(table, rows, columns, 200))
    assert np.allclose(fitted.sum(1), rows) and np.allclose(fitted.sum(0), columns)


def test_fit_margins_of_three_ways_keeps_odds_ratios():
    """A fit that changes the interaction it should keep, or misses two-way margins."""
    rng = np.random.default_rng(1)
    table, truth = rng.random((2, 3, 4)) + 0.1, rng.random((2, 3, 4))
    fitted = fit_margins(
        table, [((0, 1), truth.sum(2)), ((0, 2), truth.sum(1))], iterations=500, tolerance=1e-13
    )
    assert np.allclose(fitted.sum(2), truth.sum(2)) and np.allclose(fitted.sum(1), truth.sum(1))

    def odds(t):
        return t[0, 0, 0] * t[0, 1, 1] / (t[0, 0, 1] * t[0, 1, 0])

    assert odds(fitted) == pytest.approx(odds(table), rel=1e-6)


def test_fit_margins_with_an_impossible_cell():
    """A zero margin that divides by zero."""
    fitted = fit_margins(np.ones((2, 2)), [((0,), [0.0, 2.0]), ((1,), [1.0, 1.0])])
    assert np.allclose(fitted, [[0, 0], [1, 1]])
