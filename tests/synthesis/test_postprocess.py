import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from releases import release_marginals
from scipy import stats

from dpsynth.errors import DataError
from dpsynth.synthesis import sampling as postprocess
from dpsynth.synthesis.sampling import (
    ascending,
    calibrated_records,
    exact_categories,
    exact_counts,
)
from dpsynth.table.encoder import Encoder
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="lab", kind="continuous", lower=0, upper=10, cells=50, missing=True),
        Column(name="stage", kind="ordinal", categories=(1, 2, 3)),
        Column(name="group", kind="categorical", categories=("a", "b", "c")),
    )
)


def encoder(n=2000):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "lab": np.where(rng.random(n) < 0.3, np.nan, rng.beta(2, 5, n) * 10),
            "stage": rng.choice([1, 2, 3], n, p=[0.6, 0.3, 0.1]),
            "group": rng.choice(["a", "b", "c"], n, p=[0.7, 0.25, 0.05]),
        }
    )
    frame = SCHEMA.conform(frame).frame
    released = release_marginals(frame, SCHEMA, noise_multiplier=2.0, n=n, rng=rng)
    return Encoder(SCHEMA, released)


def encoded(enc, codes, places):
    """The points of calibrated records."""
    return enc.points_of_cells(np.stack(codes, axis=1), np.stack(places, axis=1), np.random.default_rng(0))


def test_decoded_marginals_are_the_released_ones():
    """A calibration that misses a marginal by more than rounding, missing values included."""
    enc = encoder()
    rng = np.random.default_rng(1)
    n = 4000
    decoded = enc.decode(*calibrated_records(rng.random((n, enc.layout.dim)) ** 3, enc, rng))
    for j, grid in enumerate(enc.grids):
        found = np.bincount(grid.encode(decoded[grid.column.name]), minlength=grid.size) / n
        assert np.abs(np.cumsum(found) - np.cumsum(enc.marginals.probabilities[j])).max() < 4 / n + 3e-4


def test_order_and_lean_are_kept():
    """A calibration that shuffles: ranks among present records and leaning categories must survive."""
    enc = encoder()
    rng = np.random.default_rng(2)
    n = 3000
    points = rng.random((n, enc.layout.dim))
    start, _ = enc.layout.groups[-1]
    points[:, start:] = np.exp(2 * rng.normal(size=(n, 3)))
    codes, places = calibrated_records(points, enc, rng)
    result = encoded(enc, codes, places)
    present = codes[0] < enc.grids[0].present
    assert np.all(np.diff(result[present][np.argsort(points[present, 0]), 0]) >= 0)
    share = points[:, start:] / points[:, start:].sum(1, keepdims=True)
    lean = [share[result[:, start + k] == 1, k].mean() / share[:, k].mean() for k in range(3)]
    assert min(lean) > 1.3


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 12), st.integers(1, 5), st.integers(0, 2**31))
def test_exact_categories_have_exact_counts(n, size, seed):
    """A count that is off by one or more, a label out of range, or a crash on few records."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(size, 0.3))
    weights = rng.random((n, size)) if seed % 2 else np.eye(size)[rng.integers(0, size, n)]
    counts = np.bincount(exact_categories(weights, p, rng), minlength=size)
    assert len(counts) == size and counts.sum() == n
    assert np.all(np.abs(counts - n * p) < 1 + 1e-6)


@pytest.mark.parametrize("most", [8000, 400])
def test_leans_are_reweighted_alike_by_a_part_of_the_rows(most, monkeypatch):
    """Factors that are fitted on the first rows where there are many, which lean otherwise than the last.

    The odds of 9 and of 3/7 are multiplied by the t for which both categories are as frequent: t^2 = 7/27.
    """
    monkeypatch.setattr(postprocess, "_FIT_ROWS", most)
    lean = np.repeat([0.9, 0.3], 4000)
    label = exact_categories(np.column_stack([lean, 1 - lean]), np.full(2, 0.5), np.random.default_rng(4))
    odds = 9 * np.sqrt(7 / 27)
    assert np.bincount(label).tolist() == [4000, 4000]
    assert (label[:4000] == 0).mean() == pytest.approx(odds / (1 + odds), abs=0.02)


def test_hard_categories_move_as_little_as_possible():
    """Relabelling that draws all records anew where a few would do."""
    rng = np.random.default_rng(3)
    hard = np.eye(2)[np.repeat([0, 1], [700, 300])]
    label = exact_categories(hard, np.array([0.65, 0.35]), rng)
    assert np.bincount(label).tolist() == [650, 350]
    assert (label != hard.argmax(1)).sum() == 50


def test_exact_counts_are_unbiased():
    """Rounding that favours a category: the mean over many draws must be n p."""
    rng = np.random.default_rng(4)
    p = np.array([0.07, 0.0, 0.33, 0.6])
    draws = np.array([exact_counts(5, p, rng) for _ in range(8000)])
    assert np.all(draws.sum(1) == 5) and np.all(np.abs(draws - 5 * p) < 1 + 1e-6)
    assert draws.mean(0) == pytest.approx(5 * p, abs=0.03)
    assert np.all(draws[:, 1] == 0)


def test_ranks():
    """Tied or unsorted ranks; a naive double argsort is the reference."""
    rng = np.random.default_rng(5)
    values = rng.normal(size=200)
    assert np.array_equal(ascending(values, rng), np.argsort(values))
    tied = ascending(np.zeros(50), rng)
    assert sorted(tied) == list(range(50)) and not np.array_equal(tied, np.arange(50))
    some = rng.integers(0, 6, 300).astype(np.float32)
    orders = np.array([ascending(some, rng) for _ in range(400)])
    assert np.all(np.diff(some[orders], axis=1) >= 0)
    # Among those that are tied every record comes first as often as any other.
    first = np.bincount(orders[:, 0], minlength=300)[some == some.min()]
    assert stats.chisquare(first).pvalue > 1e-4


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_records(n):
    """A crash or an invalid point where ranks mean nothing."""
    enc = encoder()
    rng = np.random.default_rng(6)
    result = encoded(enc, *calibrated_records(rng.random((n, enc.layout.dim)), enc, rng))
    assert result.shape == (n, enc.layout.dim) and np.all((result >= 0) & (result < 1.0 + 1e-7))
    for start, stop in enc.layout.groups:
        assert np.all(result[:, start:stop].sum(1) == 1)


def test_one_record_draws_from_the_marginals():
    """One record always at the median or the commonest category."""
    enc = encoder()
    rng = np.random.default_rng(7)
    point = np.full((1, enc.layout.dim), 0.5)
    draws = np.concatenate([encoded(enc, *calibrated_records(point, enc, rng)) for _ in range(1500)])
    start, stop = enc.layout.groups[-1]
    assert draws[:, start:stop].mean(0) == pytest.approx(enc.group_probabilities()[-1], abs=0.05)
    assert np.histogram(draws[:, 1], 4, (0, 1))[0].min() > 300


def test_bad_points():
    """Points of another layout, or not a number."""
    enc = encoder()
    rng = np.random.default_rng(9)
    with pytest.raises(DataError, match="shape"):
        calibrated_records(np.zeros((3, 1)), enc, rng)
    with pytest.raises(DataError, match="not a finite"):
        calibrated_records(np.full((3, enc.layout.dim), np.inf), enc, rng)
