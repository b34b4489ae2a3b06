import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.marginals.binning import Binning, equal_mass, make_binning
from dpsynth.table.column import Column
from dpsynth.table.grid import Grid


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.integers(1, 20))
def test_labels_are_contiguous(mass, n_bins):
    """Skipped, descending or too many bins."""
    labels = equal_mass(mass, n_bins)
    assert labels[0] == 0 and set(np.diff(labels)) <= {0, 1} and labels[-1] < n_bins


def test_mass_is_close_to_even_without_heavy_cells():
    """A rule that drifts: every bin within one cell of an even share."""
    rng = np.random.default_rng(0)
    mass = rng.dirichlet(np.ones(300))
    bins = np.bincount(equal_mass(mass, 10), weights=mass)
    assert len(bins) == 10 and np.abs(bins - 0.1).max() < 2 * mass.max()


def test_heavy_cell_stands_alone_and_others_keep_their_bins():
    """A spike (a coma score of 0) that swallows its neighbours or leaves them one bin."""
    mass = np.array([0.6, *np.full(16, 0.025)])
    labels = equal_mass(mass, 5)
    assert (labels == 0).sum() == 1 and labels[-1] == 4


def test_no_mass_at_all():
    """Division by zero where noise emptied a column."""
    assert equal_mass(np.zeros(4), 2).tolist() == [0, 0, 1, 1]


def test_kinds_of_columns():
    """Missing values mixed with present ones, or an outcome whose rare class is merged away."""
    numeric = Grid.from_column(Column(name="x", kind="integer", lower=0, upper=9, missing=True))
    binning = make_binning(numeric, np.full(11, 1 / 11), 2)
    assert binning.labels.tolist() == [0] * 5 + [1] * 5 + [2]
    labels = Grid.from_column(Column(name="g", kind="categorical", categories=("a", "b", "c", "d")))
    p = np.array([0.01, 0.5, 0.01, 0.48])
    assert make_binning(labels, p, 8).labels.tolist() == [2, 0, 2, 1]
    assert make_binning(labels, p, 8).probabilities == pytest.approx([0.5, 0.48, 0.02])
    assert make_binning(labels, p, 8, keep=True).labels.tolist() == [0, 1, 2, 3]


def test_all_categories_rare():
    """An empty bin, or none, where every category is below the threshold."""
    grid = Grid.from_column(Column(name="g", kind="categorical", categories=tuple(range(100))))
    binning = make_binning(grid, np.full(100, 0.01), 3)
    assert binning.size == 1 and binning.probabilities.tolist() == pytest.approx([1.0])
    assert Binning.from_labels([0, 1], [0.25, 0.75]).size == 2
