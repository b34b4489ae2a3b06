"""Reweighted models: their law by enumeration, their features by loops, their fit by what it is fitted to."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from stored import read_back

from dpsynth.marginals import gibbs
from dpsynth.marginals.binning import Binning, Bins
from dpsynth.marginals.features import PRODUCT_STEP, PairFeatures, bin_numbers, halves_of, tables_of
from dpsynth.marginals.gibbs import Reweighting
from dpsynth.marginals.network import BayesianNetwork
from dpsynth.marginals.reweighting import _Fit, reweighted, weights_of
from dpsynth.marginals.statistics import PairwiseStatistics
from dpsynth.table.column import Column
from dpsynth.table.grid import Grid

COLUMNS = (
    Column(name="grade", kind="ordinal", categories=(0, 1, 2)),
    Column(name="stage", kind="ordinal", categories=(1, 2, 3), missing=True),
    Column(name="group", kind="categorical", categories=("a", "b", "c"), missing=True),
    Column(name="lab", kind="integer", lower=0, upper=2, missing=True),
)
#: those with a half
ORDERED = ("stage", "lab")
GRIDS = tuple(Grid.from_column(column) for column in COLUMNS)
SIZES = [grid.size for grid in GRIDS]
STATES = np.array(list(itertools.product(*(range(size) for size in SIZES))))


def base_model(seed: int = 0) -> BayesianNetwork:
    """Four columns, three of which may be missing: a TAN of random tables."""
    rng = np.random.default_rng(seed)
    cells = tuple(rng.dirichlet(np.full(size, 4.0)) for size in SIZES)
    families = [((0,), 1), ((0, 1), 2), ((0, 2), 3)]
    factors = tuple(
        (parents, child, rng.gamma(2.0, size=[SIZES[j] for j in (*parents, child)]) + 0.1)
        for parents, child in families
    )
    binnings = tuple(Binning(np.arange(size), p) for size, p in zip(SIZES, cells, strict=True))
    return BayesianNetwork("tan", 0, binnings, cells, factors, (1, 2, 3), rng.dirichlet(np.full(4, 5.0)), 1.0)


def features(made: BayesianNetwork, outcome: int | None = 0) -> PairFeatures:
    bins = Bins(GRIDS, made.binnings, 1000.0)
    return PairFeatures.of(bins, made.sample(500, np.random.default_rng(1)), outcome)


def reweighting(
    made: BayesianNetwork, seed: int = 0, size: float = 0.25, outcome: int | None = 0
) -> Reweighting:
    rng, of = np.random.default_rng(seed), features(made, outcome)
    pairs = of.matrix(rng.normal(0, size, len(of.places[0])))
    columns = tuple(rng.normal(0, size, k).astype(np.float32) for k in SIZES)
    missing = rng.normal(0, size, 4).astype(np.float32)
    pairs = pairs.astype(np.float32)
    return Reweighting(of, pairs, columns, missing, pairs, 0.1)


def naive_vector(of: PairFeatures, state: np.ndarray) -> np.ndarray:
    """All products of numbers of two columns, half of them times the outcome, scaled down: by loops."""
    vector = np.array([product for _, product in naive_products(of, state)])
    return vector * min(1.0, of.cap / np.linalg.norm(vector))


def naive_products(of: PairFeatures, state: np.ndarray) -> Iterator[tuple[tuple[int, int], float]]:
    """Where each product stands in the matrices, and the product."""
    for i, j in itertools.combinations(range(len(SIZES)), 2):
        for a, x in enumerate(of.tables[i][state[i]]):
            for b, z in enumerate(of.tables[j][state[j]]):
                row, column = of.ends[i] + a, of.ends[j] + b
                yield (row, column), float(x) * float(z)
                if of.outcome is not None and of.outcome not in (i, j):
                    (y,) = of.tables[of.outcome][state[of.outcome]]
                    yield (row, of.size + column), 0.5 * float(y) * float(x) * float(z)
                    if COLUMNS[i].name in ORDERED and COLUMNS[j].name in ORDERED and a == b == 0:
                        u, v = float(of.halves[i][state[i]][0]), float(of.halves[j][state[j]][0])
                        yield (row, 2 * of.size + column), 0.5 * float(y) * u * v


def law(made: BayesianNetwork, by: Reweighting | None) -> np.ndarray:
    """Probability of every state, transcribed from the definition."""
    weights = []
    for state in STATES:
        p = made.binnings[made.root].probabilities[state[made.root]]
        for parents, child, table in made.factors:
            row = table[tuple(state[k] for k in parents)]
            p *= row[state[child]] / row.sum()
        log = 0.0
        if by is not None:
            places = [place for place, _ in naive_products(by.features, state)]
            log += naive_vector(by.features, state) @ np.array([by.pairs[place] for place in places])
            log += sum(column[b] for column, b in zip(by.columns, state, strict=True))
            log += by.missing[sum(state[j] == SIZES[j] - 1 for j in made.panel)] if made.panel else 0.0
        weights.append(p * np.exp(log))
    return np.array(weights) / np.sum(weights)


def counts(draws: np.ndarray) -> np.ndarray:
    flat = np.ravel_multi_index(tuple(draws.T), SIZES)
    return np.bincount(flat, minlength=len(STATES))


@pytest.mark.parametrize("outcome", [None, 0])
def test_features_are_products_scaled_to_the_cap(outcome: int | None) -> None:
    """A product left out, counted twice or within a column; a scale that is not the vector's own."""
    of = features(base_model(), outcome)
    assert len(of.places[0]) == len(naive_vector(of, STATES[0]))
    naive = np.array([naive_vector(of, state) for state in STATES])
    assert np.linalg.norm(naive, axis=1).max() == pytest.approx(of.cap) and of.cap > 0.5
    for state, vector in zip(STATES[::7], naive[::7], strict=True):
        total = of.total(state[None]) * PRODUCT_STEP
        np.testing.assert_allclose(
            np.sort(total), np.sort(vector), rtol=0.005, atol=1e-3
        )  # a factor is rounded down
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
    """Lengths by sums that cancel: one column is long, all others constant but for one in millions."""
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
    """Ranks that run the other way, a missing value among the ranks, deviations of other probabilities."""
    p = np.array([0.2, 0.3, 0.1, 0.4])
    ranks = bin_numbers(Binning(np.arange(4), p), ordered=True, apart=1)
    assert ranks.shape == (4, 2) and np.all(np.diff(ranks[:3, 0]) > 0) and abs(ranks[3, 0]) < 3e-4
    assert np.allclose(p @ ranks, 0, atol=3e-4) and np.allclose(p @ ranks**2, 1, atol=1e-3)
    halves = bin_numbers(Binning(np.arange(4), p), ordered=True, apart=1, halves=True)
    assert np.all(np.diff(halves[:3, 0]) > 0) and abs(halves[3, 0]) < 3e-4
    # below the median of the present: .2 and a third of the bin of .3; above it the rest of that and .1
    np.testing.assert_allclose(halves[:3, 0] / halves[2, 0], [-1.0, 1 / 3, 1.0], atol=3e-4)
    assert np.allclose(p @ halves, 0, atol=3e-4) and np.allclose(p @ halves**2, 1, atol=1e-3)
    two = Column(name="two", kind="ordinal", categories=(0, 1))
    columns = (*COLUMNS, two)
    p2 = [np.full(size, 1 / size) for size in (*SIZES, 2)]
    binnings = tuple(Binning(np.arange(len(q)), q) for q in p2)
    bins = Bins(tuple(Grid.from_column(column) for column in columns), binnings, 1000.0)
    have = [half.any() for half in halves_of(bins, tables_of(bins))]
    assert have == [True, True, False, True, False]  # of two bins the rank is the half
    rare = np.array([0.999, 0.001])
    (one,) = bin_numbers(Binning(np.arange(2), rare), ordered=False, apart=0).T
    assert one[1] - one[0] == pytest.approx(1 / 0.15, rel=1e-3)  # not 1 / sqrt(.001): bounded
    many = bin_numbers(Binning(np.arange(4), p), ordered=False, apart=0)
    assert np.allclose(p @ many, 0, atol=3e-4) and np.allclose(p @ many**2, 0.5, atol=1e-3)


@pytest.mark.parametrize("outcome", [None, 0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_sweeps_draw_the_tilted_law(seed: int, outcome: int | None) -> None:
    """A conditional that forgets a table, the scale, the energy of other columns or the missing values."""
    made = base_model(seed)
    by = reweighting(made, seed, outcome=outcome)
    draws = made.sample(15_000, np.random.default_rng(seed))
    made.heat_bath().sweep(draws, by, np.random.default_rng(seed + 1), 60)
    expected = law(made, by) * len(draws)
    keep = expected > 5
    found = counts(draws)
    chi2 = ((found - expected)[keep] ** 2 / expected[keep]).sum()
    assert keep.sum() > 40 and stats.chi2(keep.sum() - 1).sf(chi2) > 1e-4
    bare = law(made, None) * len(draws)  # the test would see a law that is not tilted
    assert stats.chi2(keep.sum() - 1).sf(((found - bare)[keep] ** 2 / bare[keep]).sum()) < 1e-9


@pytest.mark.parametrize("outcome", [None, 0])
def test_every_conditional_is_that_of_the_law(outcome: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A term of the energy or of the length that is off, or not kept up to date from draw to draw."""
    made = base_model(1)
    by, seen = reweighting(made, 1, outcome=outcome), []
    logs, drawn = np.log(law(made, by)).reshape(SIZES), gibbs.draw_logits

    def spy(logits: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        seen.append((logits.copy(), sweeper.columns.T.copy()))
        return drawn(logits, rng)

    monkeypatch.setattr(gibbs, "draw_logits", spy)
    rng = np.random.default_rng(2)
    sweeper = gibbs._Sweeper(made.heat_bath(), gibbs._Energies(by), STATES.copy(), rng)
    for group in ([0, 1, 2, 3], [3], [2, 0], rng.permutation(4).tolist(), rng.permutation(4).tolist()):
        sweeper.draw(group)
        for j, (logits, before) in zip(group, seen, strict=True):
            others = [np.where(np.arange(4) == j, b, before) for b in range(SIZES[j])]
            expected = np.stack([logs[tuple(states.T)] for states in others])
            gap = logits - expected
            np.testing.assert_allclose(gap - gap.mean(axis=0), 0, atol=1e-3)
        seen.clear()


def test_every_column_is_drawn_once_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns beyond those whose products are made together that are left out, or the first ones again."""
    made, seen, draw = base_model(), [], gibbs._Sweeper._draw

    def spy(self, j, slopes) -> None:
        seen.append(j)
        draw(self, j, slopes)

    monkeypatch.setattr(gibbs, "_TOGETHER", 3)
    monkeypatch.setattr(gibbs._Sweeper, "_draw", spy)
    energies = gibbs._Energies(reweighting(made))
    gibbs._Sweeper(made.heat_bath(), energies, STATES.copy(), np.random.default_rng(0)).run(2)
    assert sorted(seen[:4]) == sorted(seen[4:]) == [0, 1, 2, 3]


@pytest.mark.parametrize("rows", [0, 1, 8, 9, 30])
def test_products_of_few_and_of_many_rows(rows: int) -> None:
    """Catches a row that is left out or another one's, where rows are multiplied one by one."""
    rng = np.random.default_rng(rows)
    matrix, values = rng.normal(size=(rows, 7)), rng.normal(size=(7, 50))
    found = gibbs._times(matrix.astype(np.float32), values.astype(np.float32))
    np.testing.assert_allclose(found, np.einsum("ij,jk->ik", matrix, values), atol=1e-5)


@pytest.mark.parametrize("bins", [2, 255, 256, 257, 700])
def test_every_bin_of_many_is_drawn_as_often_as_it_should(bins: int) -> None:
    """Catches a count of bins in bytes that overflows, a last or a first bin that is left out."""
    rng = np.random.default_rng(bins)
    p = rng.dirichlet(np.ones(bins))
    logits = np.repeat(np.log(p).astype(np.float32)[:, None] + 50, 40_000, axis=1)
    drawn = np.bincount(gibbs.draw_logits(logits, rng), minlength=bins)
    apart = np.abs(np.cumsum(drawn / drawn.sum() - p)).max()
    assert len(drawn) == bins and apart < 1.95 / np.sqrt(drawn.sum())  # Kolmogorov, one in a thousand


def test_a_sweep_is_the_same_for_a_seed() -> None:
    """Threads whose order changes what is drawn."""
    made, by = base_model(), reweighting(base_model())
    runs = []
    for _ in range(2):
        draws = made.sample(9000, np.random.default_rng(3))
        made.heat_bath().sweep(draws, by, np.random.default_rng(4), 2)
        runs.append(draws)
    np.testing.assert_array_equal(*runs)


@pytest.mark.parametrize("n", [0, 1, 3, 8193])
def test_every_record_is_swept_once(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches blocks that leave out a record, or that no records cannot be split into."""
    seen = []
    start = gibbs._Sweeper.__init__

    def spy(self, bath, energies, draws, rng) -> None:
        start(self, bath, energies, draws, rng)
        seen.append(len(draws))

    monkeypatch.setattr(gibbs._Sweeper, "__init__", spy)
    made = base_model()
    draws = made._with_panel(n, np.random.default_rng(3))
    still = made.counted.loose[made.missing(draws)]
    made.heat_bath().sweep(draws, reweighting(made), np.random.default_rng(4))
    assert sum(seen) == n - still.sum() and draws.shape == (n, len(SIZES))


def moments_of(
    made: BayesianNetwork, weights: np.ndarray, n: float, noise_std: float = 0.0, seed: int = 0
) -> PairwiseStatistics:
    of = features(made)
    vectors = np.array([of.total(state[None]) * PRODUCT_STEP for state in STATES])
    noise = noise_std * np.random.default_rng(seed).standard_normal(vectors.shape[1])
    return PairwiseStatistics(of, of.matrix(weights @ vectors + noise), noise_std, n)


def agreeing(made: BayesianNetwork, truth: np.ndarray) -> BayesianNetwork:
    """The base model with the marginals and the law of missing values that a law has."""
    binnings = tuple(
        Binning(np.arange(k), np.bincount(STATES[:, j], weights=truth)) for j, k in enumerate(SIZES)
    )
    return replace(made, binnings=binnings, missing_law=np.bincount(number_missing(made), weights=truth))


def number_missing(made: BayesianNetwork) -> np.ndarray:
    return np.sum([STATES[:, j] == SIZES[j] - 1 for j in made.panel], axis=0)


def test_a_fit_meets_exact_moments() -> None:
    """A gradient of the wrong sign or scale, a reweighting that is not applied to draws, marginals that are
    lost.
    """
    truth = law(base_model(), reweighting(base_model(), 5, size=0.2))
    made = agreeing(base_model(), truth)
    released = moments_of(made, truth, 1e4)
    fitted = reweighted(made, released, np.random.default_rng(0))
    assert fitted.reweighting is not None
    reached = law(made, fitted.reweighting)
    before = np.abs(moments_of(made, law(made, None), 1e4).mean - released.mean).max()
    after = np.abs(moments_of(made, reached, 1e4).mean - released.mean).max()
    assert before > 0.1 and after < 0.03
    for j, binning in enumerate(made.binnings):
        have = np.bincount(STATES[:, j], weights=reached)
        np.testing.assert_allclose(have, binning.probabilities, atol=0.02)
    have = np.bincount(number_missing(made), weights=reached)
    np.testing.assert_allclose(have, made.missing_law, atol=0.02)
    draws = counts(fitted.sample(40_000, np.random.default_rng(1))) / 40_000
    assert np.abs(draws - reached).sum() < 0.1


@pytest.mark.slow
def test_noise_tilts_nothing() -> None:
    """A fit that follows noise: the released means are the base model's own but for noise."""
    bare = replace(base_model(), missing_law=None, panel=())
    own = law(bare, None)
    bare = replace(agreeing(replace(bare, panel=(1,)), own), missing_law=None, panel=())
    of = moments_of(bare, own, 300.0).features
    mean, variance = of.mean_and_variance(bare.sample(40_000, np.random.default_rng(0)))
    noisy = [moments_of(bare, own, 300.0, noise_std=0.1, seed=seed) for seed in range(3, 8)]
    weights = [weights_of(released, mean, variance, 40_000)[0] for released in noisy]
    other = moments_of(bare, law(bare, reweighting(bare, 5, size=0.4)), 300.0, 0.1)
    assert weights_of(other, mean, variance, 40_000)[1].min() < 40 < np.median(weights)
    assert np.max(weights) <= 300
    # a kind has seven products here, of which chance alone makes some look like more than noise
    kept = []
    for released in noisy[:3]:
        fitted = reweighted(bare, released, np.random.default_rng(0))
        moved = (
            moments_of(bare, law(bare, fitted.reweighting), 300.0).mean - moments_of(bare, own, 300.0).mean
        )
        kept.append(np.abs(moved).sum() / np.abs(released.mean - mean).sum())
    assert np.median(kept) < 0.25


@pytest.mark.parametrize("kind", range(3))
def test_each_kind_of_product_has_a_weight_of_its_own(kind) -> None:
    """One weight for all: what two columns lack would make noise of products with the outcome believed."""
    rng = np.random.default_rng(0)
    bare = replace(base_model(), missing_law=None, panel=())
    own = moments_of(bare, law(bare, None), 300.0, noise_std=0.05)
    mean, variance = own.features.mean_and_variance(bare.sample(40_000, np.random.default_rng(0)))
    moved = replace(own, mean=mean + 0.5 * (own.features.products & (own.features.kinds == kind)))
    weights, of_each = weights_of(moved, mean, variance, 40_000)
    assert weights[kind] < 10 and np.all(np.delete(weights, kind) == 300)
    for j in range(3):
        assert np.all(of_each[own.features.products & (own.features.kinds == j)] <= weights[j])
    fit = _Fit(bare, moved, of_each, bare.sample(10, np.random.default_rng(0)), rng)
    assert fit.weights is of_each
    np.testing.assert_allclose(fit.reweighting().mean, moved.mean, rtol=1e-6)


def test_one_product_may_stand_out_of_its_kind() -> None:
    """One interaction among many pairs without any that is believed no more than these; noise that is."""
    bare = replace(base_model(), missing_law=None, panel=())
    own = moments_of(bare, law(bare, None), 300.0, noise_std=0.05)
    mean, variance = own.features.mean_and_variance(bare.sample(40_000, np.random.default_rng(0)))
    rows, columns = own.features.places
    (place, *_) = np.flatnonzero(own.features.kinds[rows, columns] == 2)
    gap = np.zeros(len(rows))
    gap[place] = 0.5
    moved = replace(own, mean=mean + own.features.matrix(gap))
    weights, of_each = weights_of(moved, mean, variance, 40_000)
    place = rows[place], columns[place]
    assert weights.tolist() == [300, 300, 300]
    assert of_each[place] == pytest.approx(variance[place] / 0.25) and of_each[place] < 30
    others = own.features.products & (np.abs(moved.mean - mean) < 0.1)
    assert np.all(of_each[others] == 300)
    noise = np.random.default_rng(0).normal(size=len(rows)) * 0.05
    assert np.all(
        weights_of(replace(own, mean=mean + own.features.matrix(noise)), mean, variance, 40_000)[1] > 30
    )


def test_a_column_that_does_not_vary_tells_nothing() -> None:
    """A weight of 0, by which rounding is believed, where products have no variance."""
    made = replace(base_model(), missing_law=None, panel=())
    own = moments_of(made, law(made, None), 300.0, noise_std=0.05)
    mean, variance = own.features.mean_and_variance(made.sample(40_000, np.random.default_rng(0)))
    still = np.where(own.features.kinds == 0, variance, 1e-17)
    assert weights_of(own, mean, still, 40_000)[0][1:].tolist() == [300, 300]
    alone = replace(own.features, outcome=None)
    size = alone.size
    of_pairs = replace(own, features=alone, mean=own.mean[:, :size], noise_std=0.0)
    assert weights_of(of_pairs, mean[:, :size], variance[:, :size], 40_000)[0][1:].tolist() == [300, 300]


def test_a_tilt_is_kept_with_its_prior() -> None:
    """A saved model that draws from the tables alone, or from another tilt."""
    made = replace(base_model(), reweighting=reweighting(base_model()))
    again = read_back(made)
    np.testing.assert_array_equal(
        made.sample(500, np.random.default_rng(2)), again.sample(500, np.random.default_rng(2))
    )
    assert again.reweighting is not None and again.reweighting.noise_std == 0.1
    np.testing.assert_array_equal(again.reweighting.mean, made.reweighting.mean)
    assert not np.array_equal(
        made.sample(500, np.random.default_rng(2)), base_model().sample(500, np.random.default_rng(2))
    )
