import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from releases import fit_base_model, read, release_marginals
from scipy.optimize import minimize
from stored import read_back

from dpsynth.marginals.binning import Binning, Bins
from dpsynth.marginals.factors import with_mean
from dpsynth.marginals.features import PairFeatures
from dpsynth.marginals.network import BayesianNetwork
from dpsynth.marginals.reweighting import reweighted
from dpsynth.marginals.statistics import MarginalsRelease, PairwiseStatisticsRelease, panel_of
from dpsynth.privacy import Ledger
from dpsynth.privacy.records import FrameRecords
from dpsynth.table.grid import Grid
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
    base_model = fit_base_model(
        shuffled, SCHEMA, released, kind="tan", noise_multiplier=1.0, selection_epsilon=0.5, rng=rng
    )
    panel = panel_of(released.grids)

    def spread(base_model):
        cells = base_model.sample_cells(4000, rng)
        return np.std(sum(cells[:, j] == released.grids[j].present for j in panel))

    real = frame.isna().sum(axis=1).std()
    without = BayesianNetwork(
        base_model.kind, base_model.root, base_model.binnings, base_model.cells, base_model.factors
    )
    assert spread(without) < 0.6 * real  # the fault
    assert spread(base_model) == pytest.approx(real, rel=0.05)
    cells = base_model.sample_cells(20_000, rng)
    for j in panel:
        share = np.mean(cells[:, j] == released.grids[j].present)
        assert share == pytest.approx(released.probabilities[j][-1], abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("pairwise_statistics", [False, True])
def test_a_rare_panel_is_missing_as_a_whole(pairwise_statistics):
    """Records that lack five of six, as two in a hundred do, of which tables or a reweighting leave none."""
    rng = np.random.default_rng(5)
    frame = table(4000, rng)
    missing = [*(lab.name for lab in LABS), "site"]
    there = frame.dropna(subset=missing)
    frame = there.iloc[rng.integers(len(there), size=4000)].reset_index(drop=True)
    frame.loc[:79, missing[:5]] = np.nan
    released = release_marginals(frame, SCHEMA, noise_multiplier=1.0, n=4000, rng=rng)
    shuffled = pd.DataFrame({name: rng.permutation(frame[name].array) for name in frame})
    base_model = fit_base_model(
        shuffled, SCHEMA, released, kind="tan", noise_multiplier=1.0, selection_epsilon=0.5, rng=rng
    )
    if pairwise_statistics:
        bins = Bins(released.grids, base_model.binnings, 4000)
        features = PairFeatures.of(bins, base_model.sample(4000, rng), outcome=base_model.root)
        release = PairwiseStatisticsRelease(noise_multiplier=5.0).at((bins, features))
        base_model = reweighted(base_model, Ledger().run(release, FrameRecords(frame), rng), rng)
    draws = base_model.sample(20_000, rng)
    number = np.bincount(base_model.missing(draws), minlength=7) / len(draws)
    np.testing.assert_allclose(number, base_model.counted.law, atol=0.003)
    assert number[5] == pytest.approx(0.02, abs=0.005)
    if (
        base_model.reweighting is not None
    ):  # those who lack more than the tables can tell stay as they were drawn
        before, still = draws.copy(), base_model.counted.loose[base_model.missing(draws)]
        base_model.heat_bath().sweep(draws, base_model.reweighting, rng, times=2)
        same = (draws == before).all(axis=1)
        assert 300 < still.sum() < 500 and same[still].all() and same[~still].mean() < 0.1
        draws = before
    # the sum of columns is known better than the mean of a noisy law
    last = np.array([binning.size - 1 for binning in base_model.binnings])
    shares = (draws == last)[:, base_model.panel].mean(axis=0)
    np.testing.assert_allclose(shares, [released.probabilities[j][-1] for j in base_model.panel], atol=0.003)


def test_missing_values_are_not_taken_for_rare_categories(monkeypatch):
    """Rare categories share a bin after that of missing values: who takes the last for it counts those."""
    rng = np.random.default_rng(6)
    words = tuple("abcdefgh")
    columns = tuple(
        Column(name=f"x{i}", kind="categorical", categories=words, missing=True) for i in range(3)
    )
    schema = Schema(columns=(*columns, DIED), outcome="died", n_public=4000)
    made = {
        c.name: rng.choice([*"ab", *"cdefgh", None], 4000, p=[0.4, 0.26, *[0.04] * 6, 0.1]) for c in columns
    }
    made["x0"] = made["x1"] = np.where(pd.isna(made["x2"]), None, made["x0"])
    frame = schema.conform(pd.DataFrame({**made, "died": rng.integers(0, 2, 4000)})).frame
    released = release_marginals(frame, schema, noise_multiplier=None, n=4000, rng=rng)
    monkeypatch.setattr("dpsynth.marginals.binning.default_bins", lambda n, noise_std, classes: 2)
    base_model = fit_base_model(
        frame, schema, released, kind="tan", noise_multiplier=None, selection_epsilon=None, rng=rng
    )
    assert any(binning.labels[-1] < binning.size - 1 for binning in base_model.binnings)
    bins = base_model.sample(4000, rng)
    cells = base_model.cells_of(bins, rng)
    absent = sum(cells[:, j] == released.grids[j].present for j in base_model.panel)
    np.testing.assert_array_equal(base_model.missing(bins), absent)
    np.testing.assert_array_equal(base_model.heat_bath().missing(bins), absent)
    number = frame[["x0", "x1", "x2"]].isna().sum(axis=1)
    np.testing.assert_allclose(np.bincount(absent, minlength=4), np.bincount(number, minlength=4), atol=2)


def independent_columns() -> BayesianNetwork:
    """Three columns of two values, and three that may be missing, whose law has another mean than they."""
    rng, sizes = np.random.default_rng(0), [2] * 3 + [5] * 3
    cells = tuple(rng.dirichlet(np.full(size, 20.0)) for size in sizes)
    binnings = tuple(Binning(np.arange(size), p) for size, p in zip(sizes, cells, strict=True))
    factors = tuple(((0,), j, np.outer(cells[0], cells[j])) for j in range(1, len(sizes)))
    law = np.array([0.5, 0.2, 0.2, 0.1])
    return BayesianNetwork("tree", 0, binnings, cells, factors, (3, 4, 5), law, 1.0)


def test_a_noisy_law_moves_no_share_of_a_column():
    """The mean of a noisy law in the place of what the columns' shares say."""
    made = independent_columns()
    assert abs(sum(made.binnings[j].probabilities[-1] for j in made.panel) - 0.9) > 0.2
    drawn = made.sample(60_000, np.random.default_rng(5))
    for j, binning in enumerate(made.binnings):
        share = np.bincount(drawn[:, j], minlength=binning.size) / len(drawn)
        np.testing.assert_allclose(share, binning.probabilities, atol=0.02)
    number = made.missing(drawn)
    np.testing.assert_allclose(np.bincount(number, minlength=4) / len(drawn), made.counted.law, atol=0.02)


def test_the_law_is_saved_with_the_model():
    rng = np.random.default_rng(3)
    frame = table(500, rng)
    released = release_marginals(frame, SCHEMA, noise_multiplier=None, n=500, rng=rng)
    base_model = fit_base_model(
        frame, SCHEMA, released, kind="tree", noise_multiplier=None, selection_epsilon=None, rng=rng
    )
    again = read_back(released)
    np.testing.assert_array_equal(again.missing_law, released.missing_law)
    twin = read_back(base_model)
    first, second = (p.sample(200, np.random.default_rng(0)) for p in (base_model, twin))
    np.testing.assert_array_equal(first, second)


def test_without_a_panel_nothing_more_is_released():
    """A histogram bought for nothing."""
    release = MarginalsRelease(schema=Schema(columns=(*LABS[:2], DIED)), n=40, noise_multiplier=1.0)
    assert release.panel == () and release.sensitivity_squared == 3
    assert panel_of([Grid.from_column(DIED)] * 4) == ()


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 9), st.integers(0, 2**32 - 1))
def test_a_law_is_moved_to_a_mean(size, seed):
    """A law that is no law, that has another mean, or that quadratic programming finds nearer."""
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.full(size, 0.7)) * (rng.random(size) < 0.8)
    law[0] += 1e-3
    law /= law.sum()
    numbers = np.flatnonzero(law)
    mean = float(rng.dirichlet(np.ones(len(numbers))) @ numbers)
    moved = with_mean(law, mean)
    assert moved.sum() == pytest.approx(1.0) and moved @ np.arange(size) == pytest.approx(mean)
    assert moved.min() >= 0.0 and not moved[law == 0].any()
    ones = np.stack([np.ones(len(numbers)), numbers])
    nearest = minimize(
        lambda q: ((q - law[numbers]) ** 2).sum(),
        np.full(len(numbers), 1 / len(numbers)),
        jac=lambda q: 2 * (q - law[numbers]),
        bounds=[(0, 1)] * len(numbers),
        constraints=[{"type": "eq", "fun": lambda q: ones @ q - [1, mean], "jac": lambda q: ones}],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    ).x
    if np.allclose(ones @ nearest, [1, mean], atol=1e-8):
        assert ((moved - law) ** 2).sum() <= ((nearest - law[numbers]) ** 2).sum() + 1e-7


def test_a_mean_outside_of_a_cut_law_is_reached():
    """Missing values in a table whose columns have none, or too few of them: cells that were cut to zero
    keep the law from a mean that is known better."""
    for mean in [0.0, 0.01, 1.5, 2.9, 3.0, 3.5]:
        for law in [(0, 0, 1, 0), (0.5, 0.5, 0, 0), (0.97, 0.01, 0, 0.02), (0, 0.4, 0.6, 0)]:
            moved = with_mean(np.array(law, dtype=float), mean)
            assert moved.sum() == pytest.approx(1) and moved.min() >= 0
            assert moved @ np.arange(4) == pytest.approx(min(mean, 3), abs=1e-9)
