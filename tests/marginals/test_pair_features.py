"""Products of pairs of columns, by loops: their length bounds what a record adds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from dpsynth.marginals.binning import Binning, Bins
from dpsynth.marginals.features import PRODUCT_STEP, PairFeatures, bin_numbers
from dpsynth.table.column import Column
from dpsynth.table.grid import Grid

COLUMNS = (
    Column(name="grade", kind="ordinal", categories=(0, 1, 2)),
    Column(name="stage", kind="ordinal", categories=(1, 2, 3), missing=True),
    Column(name="group", kind="categorical", categories=("a", "b", "c"), missing=True),
    Column(name="lab", kind="integer", lower=0, upper=2, missing=True),
)
SIZES = [Grid.from_column(column).size for column in COLUMNS]
STATES = np.array(list(itertools.product(*(range(size) for size in SIZES))))


def bins_of(columns: tuple[Column, ...], shares: list[np.ndarray]) -> Bins:
    binnings = tuple(Binning(np.arange(len(p)), p) for p in shares)
    return Bins(tuple(Grid.from_column(column) for column in columns), binnings, 1000.0)


def features(outcome: int | None) -> PairFeatures:
    rng = np.random.default_rng(0)
    bins = bins_of(COLUMNS, [rng.dirichlet(np.full(size, 4.0)) for size in SIZES])
    return PairFeatures.of(bins, STATES[rng.integers(len(STATES), size=500)], outcome)


def naive_vector(of: PairFeatures, state: np.ndarray) -> np.ndarray:
    """All products of numbers of two columns, half of them times the outcome, scaled down: by loops."""
    vector = np.array(list(naive_products(of, state)))
    return vector * min(1.0, of.cap / np.linalg.norm(vector))


def naive_products(of: PairFeatures, state: np.ndarray) -> Iterator[float]:
    for i, j in itertools.combinations(range(len(SIZES)), 2):
        for x in of.tables[i][state[i]]:
            for z in of.tables[j][state[j]]:
                yield float(x) * float(z)
                if of.outcome is not None and of.outcome not in (i, j):
                    (y,) = of.tables[of.outcome][state[of.outcome]]
                    yield 0.5 * float(y) * float(x) * float(z)


@pytest.mark.parametrize("outcome", [None, 0])
def test_features_are_products_scaled_to_the_cap(outcome: int | None) -> None:
    """Catches a product left out, counted twice or within a column; a scale that is not the vector's own."""
    of = features(outcome)
    assert len(of.places[0]) == len(naive_vector(of, STATES[0]))
    naive = np.array([naive_vector(of, state) for state in STATES])
    assert np.linalg.norm(naive, axis=1).max() == pytest.approx(of.cap) and of.cap > 0.5
    for state, vector in zip(STATES[::7], naive[::7], strict=True):
        total = of.total(state[None]) * PRODUCT_STEP
        # a factor is rounded down
        np.testing.assert_allclose(np.sort(total), np.sort(vector), rtol=0.005, atol=1e-3)
        assert np.linalg.norm(total) <= np.linalg.norm(vector)
        mean, variance = of.mean_and_variance(state[None])
        np.testing.assert_allclose(mean, of.matrix(total), atol=1e-3)
        assert np.abs(variance).max() < 1e-5
    mean, variance = of.mean_and_variance(STATES)
    np.testing.assert_allclose(mean[of.places], of.total(STATES) * PRODUCT_STEP / len(STATES), atol=2e-4)
    each = np.array([of.total(state[None]) * PRODUCT_STEP for state in STATES])
    np.testing.assert_allclose(variance[of.places], each.var(axis=0), atol=1e-3)


@pytest.mark.parametrize("rare", [1e-3, 1e-4, 3e-5, 1e-9])
def test_no_record_is_longer_than_the_cap_where_columns_are_constant(rare: float) -> None:
    """Catches lengths by sums that cancel: one column is long, others constant but for one in millions."""
    wide = np.array([0.7, 0.1, 0.1, 0.05, 0.05])
    tables = [bin_numbers(Binning(np.arange(5), wide), ordered=False, apart=0)]
    for share in (rare, rare / 3):
        tables.append(bin_numbers(Binning(np.arange(2), np.array([1 - share, share])), False, False))
    records = np.array(list(itertools.product(range(5), (0, 1), (0, 1))))
    whole = PairFeatures(tuple(tables), np.inf).total
    own = max(float(np.linalg.norm(whole(record[None]) * PRODUCT_STEP)) for record in records)
    for cap in (1e-3, 0.01, 1.0, own * (1 - 1e-9)):  # the last is as long as the cap in single precision
        of = PairFeatures(tuple(tables), cap)
        lengths = [np.linalg.norm(of.total(record[None]) * PRODUCT_STEP) for record in records]
        assert max(lengths) <= cap


def test_numbers_are_standardised() -> None:
    """Catches ranks that run the other way, a missing value among the ranks, deviations of other shares."""
    p = np.array([0.2, 0.3, 0.1, 0.4])
    ranks = bin_numbers(Binning(np.arange(4), p), ordered=True, apart=1)
    assert ranks.shape == (4, 2) and np.all(np.diff(ranks[:3, 0]) > 0) and abs(ranks[3, 0]) < 3e-4
    assert np.allclose(p @ ranks, 0, atol=3e-4) and np.allclose(p @ ranks**2, 1, atol=1e-3)
    rare = np.array([0.999, 0.001])
    (one,) = bin_numbers(Binning(np.arange(2), rare), ordered=False, apart=0).T
    assert one[1] - one[0] == pytest.approx(1 / 0.15, rel=1e-3)  # not 1 / sqrt(.001): bounded
    many = bin_numbers(Binning(np.arange(4), p), ordered=False, apart=0)
    assert np.allclose(p @ many, 0, atol=3e-4) and np.allclose(p @ many**2, 0.5, atol=1e-3)
