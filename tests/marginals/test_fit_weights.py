"""Votes for groups of draws, and draws weighed by them: against brute force and known laws."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors
from stored import read_back

from dpsynth.marginals import network
from dpsynth.marginals.binning import Binning, Bins
from dpsynth.marginals.factors import systematic_sample
from dpsynth.marginals.features import FourierFeatures, values_of
from dpsynth.marginals.gibbs import Reweighting
from dpsynth.marginals.network import BayesianNetwork
from dpsynth.marginals.reweighting import group_weights, weighted
from dpsynth.marginals.statistics import Groups, NeighbourHistogram, group_count
from dpsynth.privacy.noise import STEP
from dpsynth.table.column import Column
from dpsynth.table.grid import Grid

COLUMNS = (
    *(Column(name=f"b{j}", kind="binary", categories=(0, 1)) for j in range(3)),
    *(Column(name=f"lab{j}", kind="integer", lower=0, upper=3, missing=True) for j in range(3)),
)
GRIDS = tuple(Grid.from_column(column) for column in COLUMNS)
SIZES = [grid.size for grid in GRIDS]
N = 20_000
RNG = np.random.default_rng


@pytest.fixture(autouse=True)
def _few_frequencies(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth of the random Fourier features, which take a twentieth of the time."""
    monkeypatch.setattr("dpsynth.marginals.features.FREQUENCIES", 100)


def base_model() -> BayesianNetwork:
    """Independent columns, three of which may be missing."""
    rng = RNG(0)
    cells = tuple(rng.dirichlet(np.full(size, 20.0)) for size in SIZES)
    binnings = tuple(Binning(np.arange(size), p) for size, p in zip(SIZES, cells, strict=True))
    factors = tuple(((0,), j, np.outer(cells[0], cells[j])) for j in range(1, len(SIZES)))
    law = np.array([0.5, 0.2, 0.2, 0.1])
    return BayesianNetwork("tree", 0, binnings, cells, factors, (3, 4, 5), law, 1.0)


def groups(made: BayesianNetwork, size: int = 200) -> Groups:
    rng = RNG(1)
    return Groups.of(Bins(GRIDS, made.binnings, N), made.sample(4000, rng), size, rng)


def parity(draws: np.ndarray) -> float:
    """1 where the first three columns always have an even sum."""
    return float(np.mean(1.0 - 2.0 * (draws[:, :3].sum(axis=1) % 2)))


def real(made: BayesianNetwork, n: int = N, seed: int = 7) -> np.ndarray:
    """Records of the base model, nine of ten of which have an even sum of the first three columns."""
    rng = RNG(seed)
    draws = made.sample(2 * n, rng)
    odd = draws[:, :3].sum(axis=1) % 2 == 1
    kept = rng.random(len(draws)) < np.where(odd, 0.1, 0.9)
    return draws[kept][:n]


def neighbour_histogram(made: BayesianNetwork, records: np.ndarray, noise_std: float) -> NeighbourHistogram:
    of = groups(made)
    noise = RNG(2).normal(0, noise_std, of.size)
    return NeighbourHistogram(of, of.counts(records) + noise, noise_std, float(len(records)))


def test_a_record_is_of_the_group_whose_centre_is_nearest() -> None:
    """A distance without a centre's length, or blocks of records that are mixed up."""
    made = base_model()
    of, draws = groups(made), made.sample(9000, RNG(3))
    values = values_of(of.tables, draws)
    distance, _ = NearestNeighbors(n_neighbors=1).fit(of.centres).kneighbors(values)
    own = np.linalg.norm(values - of.centres[of.labels(draws)], axis=1)
    np.testing.assert_allclose(own, distance[:, 0], atol=1e-4)
    near = np.linalg.norm(values - of.centres[of.nearest(draws)], axis=1)
    np.testing.assert_allclose(near, distance[:, 0], atol=1e-4)
    np.testing.assert_array_equal(of.counts(draws), np.bincount(of.labels(draws), minlength=of.size))


def test_a_record_s_group_is_its_own_affair() -> None:
    """Votes of many that move with one record more, since products of matrices round by a row's place.

    Centres are permutations of one another, equally near to records whose values are all the same.
    """
    table = np.array([[-0.23], [4.31]], dtype=np.float32)
    one = RNG(0).normal(size=24).astype(np.float32)
    centres = np.array([RNG(seed).permutation(one) for seed in range(60)])
    of = Groups((table,) * 24, np.unique(centres, axis=0))
    for value in (0, 1):
        alone = of.labels(np.full((1, 24), value))[0]
        for n in (2, 3, 5, 8, 11, 17, 600):
            records = RNG(n).integers(0, 2, (n, 24))
            records[::2] = value
            assert set(of.labels(records)[::2]) == {alone}


def test_groups_lie_where_draws_do() -> None:
    """Centres without draws, for whose noise is paid: most of them, where values are rare."""
    rng, rare = RNG(0), 0.05
    law = tuple(np.array([1 - rare, rare]) for _ in range(20))
    grid = Grid.from_column(COLUMNS[0])
    bins = Bins((grid,) * 20, tuple(Binning(np.arange(2), p) for p in law), N)
    of = Groups.of(bins, (rng.random((20_000, 20)) < rare).astype(np.int64), 400, rng)
    counts = of.counts((rng.random((20_000, 20)) < rare).astype(np.int64))
    assert of.size > 300 and np.mean(counts > 0) > 0.85


def test_there_are_no_more_groups_than_different_draws() -> None:
    """A crash, or empty groups, where few records are possible."""
    made = base_model()
    draws = np.zeros((500, len(SIZES)), dtype=np.int64)
    draws[:250, 0] = 1
    of = Groups.of(Bins(GRIDS, made.binnings, N), draws, 40, RNG(0))
    assert of.size == 2 and sorted(of.counts(draws)) == [250, 250]


@given(n=st.floats(1, 1e9), noise=st.floats(0, 1e4))
def test_a_group_of_average_size_stands_clear_of_noise(n, noise) -> None:
    """Groups so small that their counts are noise, or none at all."""
    size = group_count(n, noise)
    assert 1 <= size <= 1000 and (size == 1 or n / size >= 8 * noise)


@settings(max_examples=50)
@given(st.data())
def test_weights_are_at_most_sixteen_and_one_on_average(data) -> None:
    """A weight that thinning cannot give, or weights that add records or take them away."""
    size = data.draw(st.integers(2, 30))
    counts = np.array(data.draw(st.lists(st.floats(-50, 5000), min_size=size, max_size=size)))
    shares = np.array(data.draw(st.lists(st.floats(0, 1), min_size=size, max_size=size)))
    drawn = (shares + 1e-3) / (shares + 1e-3).sum()
    neighbour_histogram = NeighbourHistogram(
        Groups((), np.zeros((size, 0), np.float32)), counts, 5.0, max(counts.sum(), 1.0)
    )
    weights = group_weights(neighbour_histogram, drawn, 60_000)
    assert weights.min() >= 0 and weights.max() <= 16
    if 0 < weights.max() < 16:
        assert weights @ drawn == pytest.approx(1, abs=1e-6)


def test_votes_that_tell_nothing_weigh_nothing() -> None:
    """Noise that is taken for structure: the base model's own records, medians over 9 draws of the noise."""
    made = base_model()
    of = groups(made, 60)
    drawn = of.counts(made.sample(60_000, RNG(4))) / 60_000
    moved, raw = [], []
    for seed in range(5):
        rng = RNG(seed)
        counts = of.counts(made.sample(2000, rng)) + rng.normal(0, 4, of.size)
        weights = group_weights(NeighbourHistogram(of, counts, 4.0, 2000.0), drawn, 60_000)
        moved.append(np.sqrt(drawn @ (weights - 1) ** 2))
        raw.append(np.sqrt(drawn @ (counts / (2000 * drawn) - 1) ** 2))
    assert np.median(raw) > 0.15 and np.median(moved) < 0.05


@cache
def weighted_by_parity() -> BayesianNetwork:
    """The base model weighted by votes of records most of which have an even sum."""
    made = base_model()
    return weighted(made, neighbour_histogram(made, real(made), 4.0), RNG(0))


def test_draws_have_what_only_votes_tell() -> None:
    """Votes that are bought and not used, or used the wrong way round: no table of two columns has parity."""
    made = base_model()
    records, by = real(made), weighted_by_parity()
    drawn = by.sample(N, RNG(1))
    assert parity(records) > 0.75 and abs(parity(made.sample(N, RNG(1)))) < 0.05
    assert parity(drawn) > 0.6 * parity(records)
    of = by.weighting.groups
    shares, wanted, before = (of.counts(rows) / N for rows in (drawn, records, made.sample(N, RNG(1))))
    assert np.abs(shares - wanted).sum() < 0.4 * np.abs(before - wanted).sum()


@pytest.mark.parametrize("swept", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (3, 4))])
def test_marginals_and_missing_values_stay_as_released(swept: int) -> None:
    """Weights that move one-way shares, or the number of missing values, also where sweeps keep these.

    ``swept``: how many numbers of missing values sweeps keep, of 4.
    """
    made = base_model()
    if swept:
        made = replace(made, reweighting=Reweighting.of_columns(made.binnings, made.panel))
    if swept == 3:  # the tables have three missing values far less often
        made = replace(made, missing_law=np.array([0.45, 0.2, 0.1, 0.25]))
    # records that the marginals do not describe: the nearest-neighbour histogram pull against them
    records = np.vstack([real(made), np.zeros((N // 2, len(SIZES)), dtype=np.int64)])
    by = weighted(made, neighbour_histogram(made, records, 4.0), RNG(0))
    # factors of columns are not left to the choice among samples where sweeps can draw with them
    assert by.weighting.swept.sum() == swept
    if swept:
        candidates = replace(by, weighting=None).sample(20_000, RNG(4))
        weights = by.weighting.of(candidates, by.missing(candidates))
        assert weights.mean() == pytest.approx(1.0, abs=0.02)
    drawn = by.sample(60_000, RNG(5))
    assert parity(drawn) > 0.3
    for j, binning in enumerate(made.binnings):
        share = np.bincount(drawn[:, j], minlength=binning.size) / len(drawn)
        np.testing.assert_allclose(share, binning.probabilities, atol=0.02)
    number = by.missing(drawn)
    np.testing.assert_allclose(np.bincount(number, minlength=4) / len(drawn), made.counted.law, atol=0.02)


@pytest.mark.parametrize("size", [1, 10, 300, 25_000])
def test_no_draw_is_chosen_twice(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of a draw, which neighbours see: what counts for more than is made for one."""
    by = weighted_by_parity()
    assert 1.5 < by.weighting.most <= 16
    by = replace(by, weighting=replace(by.weighting, most=1.2))  # so that many draws count for more
    chosen = []

    def remember(*args: object) -> np.ndarray:
        chosen.append(systematic_sample(*args))
        return chosen[-1]

    monkeypatch.setattr(network, "systematic_sample", remember)
    bare = replace(by, missing_law=None, panel=())  # so that nothing else chooses
    assert len(bare.sample(size, RNG(0))) == size
    assert sum(map(len, chosen)) == size and all(len(np.unique(rows)) == len(rows) for rows in chosen)


def test_a_public_number_of_records_may_be_off() -> None:
    """A number that is a tenth off, which is allowed, and is taken for structure in every group."""
    made = base_model()
    of = groups(made, 60)
    drawn = of.counts(made.sample(60_000, RNG(4))) / 60_000
    counts = of.counts(made.sample(4400, RNG(1))) + RNG(2).normal(0, 4, of.size)
    weights = group_weights(NeighbourHistogram(of, counts, 4.0, 4000.0), drawn, 60_000)
    assert np.sqrt(drawn @ (weights - 1) ** 2) < 0.04


def test_votes_move_no_share_of_a_column() -> None:
    """Weights that are not raked: records that a released marginal does not describe pull at its column."""
    made = base_model()
    rng = RNG(3)
    draws = made.sample(4 * N, rng)
    records = draws[rng.random(len(draws)) < np.where(draws[:, 0] == 1, 0.9, 0.1)]
    by = weighted(made, neighbour_histogram(made, records, 4.0), RNG(0))
    share = np.mean(by.sample(N, RNG(1))[:, 0])
    assert np.mean(records[:, 0]) > 0.85
    assert share == pytest.approx(made.binnings[0].probabilities[1], abs=0.01)


def plane() -> BayesianNetwork:
    """Two independent, even columns of twelve bins."""
    even = np.full(12, 1 / 12)
    binnings = (Binning(np.arange(12), even),) * 2
    return BayesianNetwork(
        "tree", 0, binnings, (even, even), (((0,), 1, np.full((12, 12), 1.0)),), noise_std=1.0
    )


def on_a_disc(draws: np.ndarray) -> np.ndarray:
    """Which records lie in one of two discs, upper left and lower right."""
    x, y = draws[:, 0] - 5.5, draws[:, 1] - 5.5
    return np.minimum(np.hypot(x - 3, y - 3), np.hypot(x + 3, y + 3)) < 3


@cache
def weighted_by_discs(fourier: bool) -> BayesianNetwork:
    """The base model of the plane, weighted by votes of records in two discs, by few groups."""
    made = plane()
    column = Column(name="lab", kind="integer", lower=0, upper=11)
    bins = Bins((Grid.from_column(column),) * 2, made.binnings, N)
    of = Groups.of(bins, made.sample(4000, RNG(0)), 6, RNG(1))
    records = made.sample(4 * N, RNG(2))
    records = records[on_a_disc(records)]
    counts = of.counts(records) + RNG(3).normal(0, 5, of.size)
    features = FourierFeatures.of(of.tables, RNG(4))
    total = features.total(records) * STEP + RNG(5).normal(0, 5, features.size)
    told = (features, total) if fourier else (None, None)
    return weighted(made, NeighbourHistogram(of, counts, 5.0, float(len(records)), *told), RNG(0))


def test_draws_follow_what_groups_are_too_coarse_for() -> None:
    """Waves that are bought and not used, or used the wrong way round."""
    made = plane()
    shares = []
    for fourier in (False, True):
        by = weighted_by_discs(fourier)
        assert (by.weighting.fourier is not None) is fourier
        shares.append(on_a_disc(by.sample(N, RNG(1))).mean())
    assert on_a_disc(made.sample(N, RNG(1))).mean() < 0.5
    assert 0.75 < shares[0] < shares[1] - 0.07


def test_few_draws_are_made_for_the_sake_of_marginals_alone() -> None:
    """Ten draws for each one that is kept, because the base model draws a rare value too seldom."""
    even, rare = np.array([0.5, 0.5]), np.array([0.97, 0.03])
    binnings = (Binning(np.arange(2), even), Binning(np.arange(2), rare))
    table = np.outer(even, [0.998, 0.002])  # what is released of the second column says .03
    made = BayesianNetwork("tree", 0, binnings, (even, rare), (((0,), 1, table),), noise_std=1.0)
    bins = Bins((Grid.from_column(COLUMNS[0]),) * 2, made.binnings, N)
    of = Groups.of(bins, made.sample(4000, RNG(0)), 4, RNG(1))
    draws = made.sample(N, RNG(2))
    records = draws[RNG(3).random(N) < np.where(draws[:, 0] == 1, 0.6, 0.4)]
    by = weighted(made, NeighbourHistogram(of, of.counts(records), 1.0, float(len(records))), RNG(0))
    assert 1.05 < by.weighting.most <= 4


@pytest.mark.parametrize("share", [0.9, 1.1])
def test_waves_of_the_prior_s_own_records_tell_nothing(share: float) -> None:
    """Noise in the number of records, or one that is a tenth off, taken for structure.

    Rare values, whose random Fourier features' means are far from 0: a sum that is divided by a wrong number
    is far off.
    """
    rng = RNG(0)
    law = np.array([0.97, 0.03])
    factors = tuple(((0,), j, np.outer(law, law)) for j in range(1, 8))
    made = BayesianNetwork("tree", 0, (Binning(np.arange(2), law),) * 8, (law,) * 8, factors, noise_std=1.0)
    bins = Bins((Grid.from_column(COLUMNS[0]),) * 8, made.binnings, N)
    of = Groups.of(bins, made.sample(4000, rng), 60, rng)
    records, features = made.sample(4000, rng), FourierFeatures.of(of.tables, rng)
    counts = of.counts(records) + rng.normal(0, 12, of.size)
    fourier = features.total(records) * STEP + rng.normal(0, 12, features.size)
    by = weighted(made, NeighbourHistogram(of, counts, 12.0, 4000.0 / share, features, fourier), rng)
    assert by.weighting.fourier is None


def test_waves_are_kept_on_disk_and_may_be_absent() -> None:
    """A frequency that is lost."""
    made = plane()
    for fourier in (False, True):
        by = weighted_by_discs(fourier)
        again, draws = read_back(by.weighting), made.sample(3000, RNG(0))
        assert (again.fourier is not None) is fourier
        number = made.missing(draws)
        np.testing.assert_array_equal(again.of(draws, number), by.weighting.of(draws, number))


def test_a_weighting_is_kept_on_disk() -> None:
    """A weight, a factor or a centre that is lost."""
    made, by = base_model(), weighted_by_parity()
    again = read_back(by.weighting)
    draws = made.sample(3000, RNG(0))
    number = made.missing(draws)
    np.testing.assert_array_equal(again.of(draws, number), by.weighting.of(draws, number))
    assert (again.most, again.noise_std) == (by.weighting.most, 4.0)
