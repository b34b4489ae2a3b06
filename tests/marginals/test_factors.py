"""From noisy tables to factors: two-way tables of the outcome, and what three-way ones say beyond them."""

import itertools

import numpy as np
import pytest

from dpsynth.marginals.binning import Binning, Bins
from dpsynth.marginals.coupling import _cells, score_ends
from dpsynth.marginals.factors import _clean, fit_factors
from dpsynth.marginals.statistics import OUTCOME_SHARE, TablesRelease
from dpsynth.table.column import Column
from dpsynth.table.grid import Grid

SIZES, N = (2, 4, 5, 3), 4000
FAMILIES = ((0, 1), (0, 1, 2), (0, 2, 3))
PAIRS = ((0, 1), (0, 2), (0, 3))
#: of a column without order
CODES = Grid.from_column(Column(name="code", kind="categorical", categories=tuple("abcde")))


def bins_of(law: np.ndarray) -> Bins:
    binnings = tuple(
        Binning(np.arange(size), law.sum(axis=tuple(a for a in range(law.ndim) if a != j)))
        for j, size in enumerate(SIZES)
    )
    return Bins((CODES,) * len(SIZES), binnings, N)


def margin(law: np.ndarray, family: tuple[int, ...]) -> np.ndarray:
    return law.sum(axis=tuple(a for a in range(law.ndim) if a not in family))


def noisy(law: np.ndarray, std: float, rng: np.random.Generator, families=(*PAIRS, *FAMILIES[1:])):
    """Counts with the noise of one release: more in a table of the outcome and one column."""
    counts = {}
    for family in families:
        scale = std if len(family) > 2 else std / np.sqrt(OUTCOME_SHARE)
        counts[family] = N * margin(law, family) + scale * rng.standard_normal(margin(law, family).shape)
    return counts


def without_interaction(rng: np.random.Generator) -> np.ndarray:
    """A law in which columns go together, but alike in both classes: products of functions of pairs."""
    law = np.ones(SIZES)
    for a, b in itertools.combinations(range(4), 2):
        pair = np.exp(0.5 * rng.standard_normal((SIZES[a], SIZES[b])))
        law *= pair.reshape([SIZES[j] if j in (a, b) else 1 for j in range(4)])
    return law / law.sum()


def opposite_classes(rng: np.random.Generator) -> np.ndarray:
    """A law in which two columns go together in one class and against each other in the other."""
    law = without_interaction(rng)
    sign = np.outer(np.linspace(-1, 1, SIZES[1]), np.linspace(-1, 1, SIZES[2]))
    law = law * np.exp(2 * np.multiply.outer(np.array([1, -1]), sign))[..., None]
    return law / law.sum()


def errors(law, std, seed):
    """L1 distance of each factor from the truth."""
    rng = np.random.default_rng(seed)
    factors = fit_factors(FAMILIES, noisy(law, std, rng), bins_of(law), std)
    return [np.abs(table / N - margin(law, (*parents, child))).sum() for parents, child, table in factors]


def test_what_three_columns_say_beyond_two_is_believed_as_far_as_it_exceeds_noise():
    """Noise of every cell that is taken for an interaction, or one that is lost although it is there."""
    std, rng = 15.0, np.random.default_rng(0)
    shrunk, plain = [], []
    for seed in range(20):
        law, family = without_interaction(rng), FAMILIES[1]
        counts = noisy(law, std, np.random.default_rng(seed))
        plain.append(np.abs(_clean(counts[family], family, bins_of(law)) / N - margin(law, family)).sum())
        shrunk.append(errors(law, std, seed)[1])
    assert np.median(shrunk) < 0.76 * np.median(plain)
    rng = np.random.default_rng(1)
    there = [errors(opposite_classes(rng), std, seed)[1] for seed in range(20)]
    assert np.median(there) < 0.3
    # the two-way tables alone know nothing of it
    law = opposite_classes(np.random.default_rng(1))
    alone = margin(law, (0, 1))[:, :, None] * margin(law, (0, 2))[:, None] / margin(law, (0,))[:, None, None]
    assert np.abs(alone - margin(law, (0, 1, 2))).sum() > 0.5


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_what_sampling_alone_makes_is_not_believed(share):
    """Without noise, the chance of which records there are, taken for an interaction."""
    law = np.multiply.outer(np.multiply.outer([1 - share, share], np.full(4, 0.25)), np.full((5, 3), 1 / 15))
    kept = []
    for seed in range(30):
        drawn = np.random.default_rng(seed).multinomial(N, law.ravel()).reshape(SIZES) / N
        factors = fit_factors(FAMILIES, noisy(drawn, 0.0, np.random.default_rng(0)), bins_of(drawn), 0.0)
        left, there = (table - without(table) for table in (factors[1][2], N * margin(drawn, (0, 1, 2))))
        kept.append(np.abs(left).sum() / np.abs(there).sum())
    # the sum of squares is as often above what is expected as below
    assert np.median(kept) < 0.2 and np.mean(np.array(kept) < 0.01) < 0.8


def without(table: np.ndarray) -> np.ndarray:
    """The table of the same two-way margins in which three columns say nothing beyond two, by many rounds."""
    made = np.ones_like(table)
    for _ in range(300):
        for axis in range(3):
            made *= table.sum(axis=axis, keepdims=True) / made.sum(axis=axis, keepdims=True)
    return made


def test_two_way_tables_of_the_outcome_are_of_all_that_was_read():
    """A table of its own that is not used, or is not weighed by its precision."""
    std, law = 20.0, without_interaction(np.random.default_rng(2))
    gaps = []
    for seed in range(200):
        counts = noisy(law, std, np.random.default_rng(seed))
        factors = fit_factors(FAMILIES, counts, bins_of(law), std)
        both = factors[1][2].sum(axis=1)  # the root and column 2
        gaps.append(both[0, 0] - N * margin(law, (0, 2))[0, 0])
    # its own table has precision 1/3, its sums in two three-way tables 1/4 and 1/3; the released one-way
    # marginals take away the noise that two cells of a column have alike, and that all of a row have
    variance = std**2 / (1 / 3 + 1 / 4 + 1 / 3) * (1 - 1 / 2) * (1 - 1 / 5)
    assert np.var(gaps) == pytest.approx(variance, rel=0.35)
    assert abs(np.mean(gaps)) < 4 * np.sqrt(variance / 200)


def test_three_way_tables_keep_the_two_way_tables_of_the_outcome():
    """Factors that contradict each other: the child of one is the parent of the next."""
    law = opposite_classes(np.random.default_rng(3))
    factors = fit_factors(FAMILIES, noisy(law, 10.0, np.random.default_rng(0)), bins_of(law), 10.0)
    np.testing.assert_allclose(factors[1][2].sum(axis=1), factors[2][2].sum(axis=2), rtol=1e-3)
    np.testing.assert_allclose(factors[0][2], factors[1][2].sum(axis=2), rtol=1e-3)


@pytest.mark.parametrize("whole", [1.0, 1.0 + 4e-16, 1.0 - 4e-16])
def test_a_column_whose_values_share_one_bin_has_no_interaction(whole):
    """A share of 0 / 0, which made the table NaN: a sum of probabilities is more than 1 by rounding."""
    law = np.full((2, 4, 1, 3), 1 / 24)
    bins = Bins((CODES,) * 4, tuple(Binning(np.arange(k), np.full(k, whole / k)) for k in law.shape), N)
    for _, _, table in fit_factors(FAMILIES, noisy(law, 5.0, np.random.default_rng(0)), bins, 5.0):
        assert np.isfinite(table).all() and table.min() >= 0


def test_as_many_tables_as_there_are_columns():
    """Tables of small schemas: of two columns there is one, however the root is a parent."""
    for columns, three_way, weights in (
        (4, False, (1, 1, 1, 1)),
        (1, True, (1,)),
        (0, True, ()),
        (2, True, (1 / 3, 1 / 3, 1)),
        (4, True, (1 / 3,) * 4 + (1, 1, 1)),
    ):
        plan = TablesRelease.plan(columns, three_way=three_way, noise_multiplier=2.0)
        assert np.square(plan.weights) == pytest.approx(weights)
        assert plan.noise_std == pytest.approx(2 * np.sqrt(sum(weights)))


@pytest.mark.parametrize("apart", [0.0, 0.1])
def test_noise_leaves_no_records_far_from_a_tight_pair(apart):
    """Noise that is cut at zero and stays all over a table, 2 to 3 %, or records there that are real."""
    size, n, std, rng = 20, 8000, 4.0, np.random.default_rng(0)
    grid = Grid.from_column(Column(name="x", kind="integer", lower=0, upper=size - 1))
    even, ends = np.full(size, 1 / size), score_ends(np.full(size, 1 / size))
    bins = Bins((grid, grid), (Binning(np.arange(size), even),) * 2, n)
    tight = _cells(ends, ends, 0.99).clip(0.0)
    few = tight < 1e-6
    law = (1 - apart) * tight / tight.sum() + apart / size**2
    found = []
    for _ in range(20):
        counts = rng.multinomial(n, law.ravel()).reshape(law.shape) + std * rng.standard_normal(law.shape)
        ((*_, table),) = fit_factors([(0, 1)], {(0, 1): counts}, bins, std)
        found.append(table[few].sum() / n)
    if apart:
        assert abs(np.median(found) - law[few].sum()) < 0.025
    else:
        assert np.median(found) < 5e-4 and np.mean(found) < 2e-3
