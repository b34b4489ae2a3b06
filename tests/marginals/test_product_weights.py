"""What products are fitted to: means of whole vectors, believed as far as they are more than noise."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from dpsynth.marginals.binning import Binning, Bins
from dpsynth.marginals.chain_fit import products_goal, weights_of
from dpsynth.marginals.features import PRODUCT_STEP, PairFeatures
from dpsynth.marginals.statistics import PairwiseStatistics
from dpsynth.table.column import Column
from dpsynth.table.grid import Grid

COLUMNS = (
    Column(name="grade", kind="ordinal", categories=(0, 1, 2)),
    Column(name="stage", kind="ordinal", categories=(1, 2, 3), missing=True),
    Column(name="group", kind="categorical", categories=("a", "b", "c"), missing=True),
    Column(name="lab", kind="integer", lower=0, upper=2, missing=True),
)
GRIDS = tuple(Grid.from_column(column) for column in COLUMNS)
STATES = np.array(list(itertools.product(*(range(grid.size) for grid in GRIDS))))
#: Shares of the states of independent columns.
SHARES = [np.random.default_rng(j).dirichlet(np.full(grid.size, 4.0)) for j, grid in enumerate(GRIDS)]
LAW = np.prod([p[column] for p, column in zip(SHARES, STATES.T, strict=True)], axis=0)
DRAWS = 40_000


def drawn() -> np.ndarray:
    return STATES[np.random.default_rng(0).choice(len(STATES), DRAWS, p=LAW)]


def released(law: np.ndarray, noise_std: float = 0.05) -> PairwiseStatistics:
    """Statistics of 300 records of a law, with noise."""
    binnings = tuple(Binning(np.arange(len(p)), p) for p in SHARES)
    of = PairFeatures.of(Bins(GRIDS, binnings, 1000.0), drawn()[:500], 0)
    vectors = np.array([of.total(state[None]) * PRODUCT_STEP for state in STATES])
    noise = noise_std * np.random.default_rng(0).standard_normal(vectors.shape[1])
    return PairwiseStatistics(of, of.matrix(law @ vectors + noise), noise_std, 300.0)


def weights(of: PairwiseStatistics) -> np.ndarray:
    return weights_of(of, *of.features.mean_and_variance(drawn()), DRAWS)


@pytest.mark.parametrize("kind", range(3))
def test_each_kind_of_product_has_a_weight_of_its_own(kind) -> None:
    """Catches one weight for all: what two columns lack would make noise of products with the outcome
    believed.
    """
    own = released(LAW)
    mean, _ = own.features.mean_and_variance(drawn())
    kinds = np.where(own.features.products, own.features.kinds, -1)
    of_each = weights(replace(own, mean=mean + 0.5 * (kinds == kind)))
    assert np.all(of_each[kinds == kind] < 10)
    np.testing.assert_allclose(of_each[(kinds != kind) & (kinds >= 0)], 300)


def test_one_product_may_stand_out_of_its_kind() -> None:
    """Catches one interaction among many pairs without any that is believed no more than these; noise that
    is.
    """
    own = released(LAW)
    of, (mean, variance) = own.features, own.features.mean_and_variance(drawn())
    rows, columns = of.places
    times = np.flatnonzero(of.kinds[rows, columns] == 2)
    place = times[np.argmin(variance[rows[times], columns[times]])]
    gap = np.zeros(len(rows))
    gap[place] = 0.5
    moved = replace(own, mean=mean + of.matrix(gap))
    of_each = weights(moved)
    place = rows[place], columns[place]
    assert of_each[place] == pytest.approx(variance[place] / 0.25) and of_each[place] < 30
    assert np.all(of_each[of.products & (np.abs(moved.mean - mean) < 0.1)] == 300)
    noise = np.random.default_rng(0).normal(size=len(rows)) * 0.05
    assert np.all(weights(replace(own, mean=mean + of.matrix(noise)))[of.products] > 30)


def test_a_column_that_does_not_vary_tells_nothing() -> None:
    """Catches a weight of 0, by which rounding is believed, where products have no variance."""
    own = released(LAW)
    mean, variance = own.features.mean_and_variance(drawn())
    kinds = np.where(own.features.products, own.features.kinds, -1)
    still = np.where(kinds == 0, variance, 1e-17)
    assert np.all(weights_of(own, mean, still, DRAWS)[kinds > 0] == 300)


def test_goals_are_those_of_whole_vectors() -> None:
    """Catches means of vectors that were scaled down taken for those of whole ones, and their noise too."""
    own, draws = released(LAW, 0.0), drawn()
    of = own.features
    values = np.array(
        [np.concatenate([t[s] for t, s in zip(of.tables, state, strict=True)]) for state in STATES]
    )
    scale, size = of.scale(STATES), of.size
    shares = (
        np.bincount(np.ravel_multi_index(draws.T, [g.size for g in GRIDS]), minlength=len(STATES)) / DRAWS
    )
    tilted = shares * np.exp(0.15 * values[:, [0]] * values[:, [1]])[:, 0]
    tilted /= tilted.sum()
    products = np.einsum("si,sj->sij", values, values)
    mask = of.products[:, :size]

    def means(law: np.ndarray, scaled: bool) -> np.ndarray:
        return np.where(mask, np.einsum("s,sij->ij", law * (scale if scaled else 1.0), products), 0.0)

    def goal(law: np.ndarray, noise_std: float) -> tuple[np.ndarray, np.ndarray]:
        mean = np.zeros(of.products.shape)
        mean[:, :size] = means(law, True)
        found = products_goal(replace(own, mean=mean, noise_std=noise_std), draws)
        return found[0][:, :size], found[1][:, :size]

    np.testing.assert_allclose(goal(shares, 0.0)[0], means(shares, False), atol=1e-3)
    gap = means(tilted, False) - means(shares, False)
    shortened = means(tilted, True) - means(shares, True)
    found = goal(tilted, 0.0)[0] - means(shares, False)
    assert found[0, 1] == pytest.approx(gap[0, 1], rel=0.1) and shortened[0, 1] < 0.8 * gap[0, 1]
    square = np.einsum("s,sij->ij", shares, products**2)
    by = np.einsum("s,sij->ij", shares * scale, products**2)[mask] / square[mask]
    assert by.min() < 0.8
    few, many = (goal(shares, noise)[1][mask] for noise in (50.0, 100.0))  # noise is all: n counts
    np.testing.assert_allclose(many - few, 300 * (100.0**2 - 50.0**2) / by**2, rtol=0.01)
