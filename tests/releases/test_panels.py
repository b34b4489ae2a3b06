import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from releases import fit_prior, read, release_marginals

from dpsynth.releases.marginals import MarginalsRelease
from dpsynth.releases.panels import choose, panel_of, rake
from dpsynth.releases.prior import Prior
from dpsynth.table.grid import Grid
from dpsynth.table.marginals import Marginals
from dpsynth.table.schema import Column, Schema

LABS = tuple(
    Column(name=f"lab{i}", kind="continuous", lower=0, upper=10, decimals=1, missing=True) for i in range(5)
)
SITE = Column(name="site", kind="categorical", categories=("a", "b", "c"), missing=True)
DIED = Column(name="died", kind="binary", categories=(0, 1))
SCHEMA = Schema(columns=(*LABS, SITE, DIED), outcome="died", n_public=4000)


def table(n, rng):
    """Half of the records lack the whole panel, the others hardly a value."""
    panel = rng.random(n) < 0.5
    made = {c.name: np.where(panel | (rng.random(n) < 0.02), np.nan, rng.uniform(2, 8, n)) for c in LABS}
    made["site"] = np.where(rng.random(n) < 0.01, None, rng.choice(["a", "b", "c"], n))
    made["died"] = rng.integers(0, 2, n)
    return SCHEMA.conform(pd.DataFrame(made)).frame


def test_one_record_lies_in_one_cell_more():
    """A histogram of missing values that nobody pays for; by brute force over all neighbours."""
    frame = table(60, np.random.default_rng(0))
    release = MarginalsRelease(schema=SCHEMA, n=4000, noise_multiplier=2.0)
    full = np.concatenate(read(release, frame))
    moved = [
        np.linalg.norm(full - np.concatenate(read(release, frame.drop(index=row)))) for row in frame.index
    ]
    assert release.sensitivity_squared == len(SCHEMA) + 1
    assert max(moved) == pytest.approx(np.sqrt(len(SCHEMA) + 1))
    naive = np.bincount(frame[[*(lab.name for lab in LABS), "site"]].isna().sum(axis=1), minlength=7)
    assert read(release, frame)[-1].tolist() == naive.tolist()


def test_panels_are_missing_together_in_sampled_records():
    """Records that lack about the same number of values each, however real ones hang together."""
    rng = np.random.default_rng(2)
    frame = table(4000, rng)
    released = release_marginals(frame, SCHEMA, noise_multiplier=1.0, n=4000, rng=rng)
    shuffled = pd.DataFrame({name: rng.permutation(frame[name].array) for name in frame})
    prior = fit_prior(
        shuffled, SCHEMA, released, kind="tan", noise_multiplier=1.0, selection_epsilon=0.5, rng=rng
    )
    panel = panel_of(released.grids)

    def spread(prior):
        cells = prior.sample_cells(4000, rng)
        return np.std(sum(cells[:, j] == released.grids[j].present for j in panel))

    real = frame.isna().sum(axis=1).std()
    without = Prior(prior.kind, prior.root, prior.binnings, prior.cells, prior.factors)
    assert spread(without) < 0.6 * real  # the fault
    assert spread(prior) == pytest.approx(real, rel=0.05)
    cells = prior.sample_cells(20_000, rng)
    for j in panel:
        share = np.mean(cells[:, j] == released.grids[j].present)
        assert share == pytest.approx(released.probabilities[j][-1], abs=0.03)


def test_the_law_is_saved_with_the_model():
    rng = np.random.default_rng(3)
    frame = table(500, rng)
    released = release_marginals(frame, SCHEMA, noise_multiplier=None, n=500, rng=rng)
    prior = fit_prior(
        frame, SCHEMA, released, kind="tree", noise_multiplier=None, selection_epsilon=None, rng=rng
    )
    again = Marginals.from_state(SCHEMA, *released.to_state())
    np.testing.assert_array_equal(again.missing_law, released.missing_law)
    twin = Prior.from_state(SCHEMA, *prior.to_state())
    first, second = (p.sample(200, np.random.default_rng(0)) for p in (prior, twin))
    np.testing.assert_array_equal(first, second)


def test_without_a_panel_nothing_more_is_released():
    """A histogram bought for nothing."""
    release = MarginalsRelease(schema=Schema(columns=(*LABS[:2], DIED)), n=40, noise_multiplier=1.0)
    assert release.panel == () and release.sensitivity_squared == 3
    assert panel_of([Grid.from_column(DIED)] * 4) == ()


@settings(max_examples=50, deadline=None)
@given(st.integers(3, 6), st.integers(1, 200), st.integers(0, 2**32 - 1))
def test_raked_records_have_the_law(k, m, seed):
    """Weights that are negative or not numbers, or miss the law where every number of values occurs."""
    rng = np.random.default_rng(seed)
    missing = rng.random((m, k)) < rng.random(k)
    levels = np.tril(np.ones((k + 1, k), dtype=bool), -1)
    missing = np.vstack([missing, levels])
    law = rng.dirichlet(np.ones(k + 1))
    weights = rake(missing, law, rng.random(k))
    assert np.isfinite(weights).all() and (weights >= 0).all()
    got = np.bincount(missing.sum(axis=1), weights=weights, minlength=k + 1) / weights.sum()
    np.testing.assert_allclose(got, law, atol=1e-6)
    column = rng.integers(0, 3, len(missing))
    rows = choose(weights, 37, rng, [column])
    share = np.bincount(column, weights=weights, minlength=3) / weights.sum()
    assert np.abs(np.bincount(column[rows], minlength=3) - 37 * share).max() <= 1 + 1e-9  # the draw is even
    assert rows.shape == (37,) and (weights[rows] > 0).all()
