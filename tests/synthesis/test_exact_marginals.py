from functools import cache

import numpy as np
import pandas as pd
import pytest
from chains import chain_of
from hypothesis import given, settings
from hypothesis import strategies as st
from releases import release_marginals
from scipy import stats

from dpsynth.errors import ConfigError
from dpsynth.synthesis.sampling import calibrated_records, exact_labels, matched_draws
from dpsynth.table.encoder import Encoder
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="lab", kind="continuous", lower=0, upper=10, cells=40, missing=True),
        Column(name="count", kind="integer", lower=0, upper=300, cells=30),
        Column(name="stage", kind="ordinal", categories=(1, 2, 3), missing=True),
        Column(name="site", kind="categorical", categories=("a", "b", "c", "d"), missing=True),
        Column(name="died", kind="binary", categories=(0, 1)),
    ),
    outcome="died",
    n_public=3000,
)


def table(n, rng):
    z = rng.normal(size=n)
    site = rng.choice(list("abcd"), n, p=[0.5, 0.3, 0.19, 0.01])
    return SCHEMA.conform(
        pd.DataFrame(
            {
                "lab": np.where(rng.random(n) < 0.2, np.nan, np.clip(5 + z + rng.normal(size=n), 0, 10)),
                "count": np.clip(np.rint(100 + 60 * z), 0, 300),
                "stage": np.where(rng.random(n) < 0.1, None, np.digitize(z, [-0.5, 0.8]) + 1),
                "site": np.where(rng.random(n) < 0.1, None, site),
                "died": (rng.random(n) < 1 / (1 + np.exp(1 - z))).astype(int),
            }
        )
    ).frame


@cache
def fitted(std=5.0):
    rng = np.random.default_rng(0)
    frame = table(3000, rng)
    released = release_marginals(frame, SCHEMA, noise_multiplier=std, n=3000, rng=rng)
    chain = chain_of(frame, SCHEMA, released, rng, noise=std)
    return chain, Encoder(SCHEMA, released)


def cells_of(frame, encoder):
    return np.stack([grid.encode(frame[grid.column.name]) for grid in encoder.grids], axis=1)


@pytest.mark.parametrize("with_chain", [True, False])
def test_marginals_are_the_released_ones(with_chain):
    """A marginal that is missed by more than rounding, missing values included, or an undeclared value."""
    chain, encoder = fitted()
    n = 4000
    drawn = matched_draws(chain if with_chain else None, encoder, n, np.random.default_rng(1))
    frame = encoder.decode(*drawn)
    pd.testing.assert_frame_equal(SCHEMA.conform(frame).frame, frame)
    for j, grid in enumerate(encoder.grids):
        found = np.bincount(grid.encode(frame[grid.column.name]), minlength=grid.size)
        p = encoder.marginals.probabilities[j]
        assert np.abs(np.cumsum(found) / n - np.cumsum(p)).max() < 4 / n + 3e-4
        if encoder.group[j] is not None:
            exact = found if encoder.coordinate[j] is None else [found[:-1].sum(), found[-1]]
            assert np.abs(np.array(exact) - n * encoder.released(j)).max() < 1


def test_the_law_is_that_of_calibrated_points():
    """Records whose dependence differs from that of encoded, calibrated and decoded draws of the prior.

    Every pair of columns, by a chi-square test of two samples of counts over coarse bins; draws agree with
    marginals more closely than independent ones, so p-values are large rather than uniform.
    """
    chain, encoder = fitted()
    rng = np.random.default_rng(2)
    n, repeats = 3000, 6  # twice as many show what re-weighting points loses
    direct, detour = [], []
    for _ in range(repeats):
        direct.append(cells_of(encoder.decode(*matched_draws(chain, encoder, n, rng)), encoder))
        states, scores = chain.scored(n, rng)
        cells = chain.cells_of(states, rng)
        places = rng.random(cells.shape)
        for j, grid in enumerate(encoder.grids):
            if grid.ordered:  # of equal states, larger scores have larger values
                order = np.lexsort((scores[:, j], states[:, j]))
                within = np.lexsort((places[:, j], cells[:, j]))
                cells[order, j], places[order, j] = cells[within, j], places[within, j]
        points = encoder.points_of_cells(cells, places, rng)
        detour.append(cells_of(encoder.decode(*calibrated_records(points, encoder, rng)), encoder))
    coarse = [
        np.stack([b.labels[cells[:, j]] for j, b in enumerate(chain.network.binnings)], axis=1)
        for cells in (np.concatenate(direct), np.concatenate(detour))
    ]
    for a in range(5):
        for b in range(a):
            sizes = chain.network.binnings[a].size, chain.network.binnings[b].size
            pair = [
                np.bincount(np.ravel_multi_index((t[:, a], t[:, b]), sizes), minlength=sizes[0] * sizes[1])
                for t in coarse
            ]
            counts = np.array(pair)[:, np.sum(pair, axis=0) >= 10]
            assert stats.chi2_contingency(counts).pvalue > 1e-4


def test_without_a_prior_columns_are_independent():
    """Ties ordered by row in every column alike: independent columns would then move together."""
    _, encoder = fitted()
    codes, _ = matched_draws(None, encoder, 20_000, np.random.default_rng(3))
    correlation = np.corrcoef(codes)
    assert np.abs(correlation[~np.eye(5, dtype=bool)]).max() < 5 / np.sqrt(20_000)


def test_values_that_share_a_cell_are_all_drawn():
    """Places that are lost: of the ten counts in a cell only one would be drawn."""
    chain, encoder = fitted()
    frame = encoder.decode(*matched_draws(chain, encoder, 20_000, np.random.default_rng(4)))
    assert frame["count"].nunique() > 200 and frame["lab"].nunique() > 10_000


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 12), st.integers(1, 5), st.integers(0, 2**31))
def test_exact_labels_change_as_few_as_possible(n, size, seed):
    """A count that is off by one or more, a label out of range, or a record changed without need."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(size, 0.3))
    drawn = rng.integers(0, size, n)
    label = exact_labels(drawn, p, rng)
    counts = np.bincount(label, minlength=size)
    assert len(counts) == size and np.abs(counts - n * p).max() < 1
    needed = np.maximum(counts - np.bincount(drawn, minlength=size), 0).sum()
    assert (label != drawn).sum() == needed


def test_no_records_and_no_marginals():
    """A crash on an empty sample, or draws that pretend to follow marginals that nobody released."""
    chain, encoder = fitted()
    assert len(encoder.decode(*matched_draws(chain, encoder, 0, np.random.default_rng(0)))) == 0
    with pytest.raises(ConfigError, match="no marginals"):
        matched_draws(None, Encoder(SCHEMA, None), 5, np.random.default_rng(0))
