import time
from fractions import Fraction
from itertools import accumulate
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpsynth.errors import InputError
from dpsynth.privacy import sampling
from dpsynth.privacy.sampling import BinomialSizes, poisson_batches


def membership(batches, n):
    mask = np.zeros((len(batches), n), bool)
    rows, columns = np.nonzero(batches >= 0)
    mask[rows, batches[rows, columns]] = True
    return mask


@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 40),
    st.sampled_from([0.0, 1e-3, 0.3, 0.999, 1.0]),
    st.integers(0, 9),
    st.integers(1, 30),
)
@settings(max_examples=60, deadline=None)
def test_shape_of_the_result(seed, n, prob, steps, capacity):
    """Catches duplicates, indices out of range, padding in the middle, and batches that are cut."""
    rng = np.random.default_rng(seed)
    batches = poisson_batches(rng, n, prob, steps, capacity)
    assert batches.dtype == np.int32 and batches.shape[0] == steps and batches.shape[1] >= capacity
    for row in batches:
        taken = row[row >= 0]
        assert (row[: taken.size] == taken).all() and (row[taken.size :] == -1).all()
        assert (np.diff(taken) > 0).all() and (taken < n).all()
        if prob in (0.0, 1.0):
            assert taken.size == n * prob


def test_grows_instead_of_cutting():
    """Catches a silent truncation, which would void the sampler's event."""
    batches = poisson_batches(np.random.default_rng(0), 1000, 0.5, 4, 80)
    assert batches.shape[1] % 10 == 0 and batches.shape[1] < 700
    assert ((batches >= 0).sum(axis=1) > 400).all()


@pytest.mark.parametrize("prob", [0.002, 0.05, 0.256, 0.5, 0.97])
def test_sizes_are_binomial(prob):
    """Catches a batch of fixed size, or a wrong probability, by chi-square over size classes."""
    n, steps = 300, 4000
    sizes = (poisson_batches(np.random.default_rng(7), n, prob, steps, 400) >= 0).sum(axis=1)
    law = stats.binom(n, prob)
    edges = np.unique(law.ppf(np.linspace(0, 1, 9)[1:-1]))
    observed = np.bincount(np.searchsorted(edges, sizes), minlength=edges.size + 1)
    expected = steps * np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]]))
    keep = expected > 0
    assert observed[~keep].sum() == 0
    assert stats.chisquare(observed[keep], expected[keep]).pvalue > 1e-4


def test_records_and_pairs_are_independent():
    """Catches unequal chances, records that come together, and steps that depend on each other."""
    n, prob, steps = 25, 0.2, 20000
    mask = membership(poisson_batches(np.random.default_rng(11), n, prob, steps, 32), n).astype(float)
    z = (mask.sum(axis=0) - steps * prob) / np.sqrt(steps * prob * (1 - prob))
    assert stats.chi2(n).sf((z**2).sum()) > 1e-4
    joint = mask.T @ mask
    pairs = joint[np.triu_indices(n, 1)]
    q = prob**2
    assert np.abs((pairs - steps * q) / np.sqrt(steps * q * (1 - q))).max() < 4.5
    lagged = (mask[1:] * mask[:-1]).sum(axis=0)
    assert np.abs((lagged - steps * q) / np.sqrt(steps * q * (1 - q))).max() < 4.5


@pytest.mark.parametrize(("n", "prob"), [(1, 0.3), (7, 0.5), (60, 0.9), (120, 1 / 3), (200, 2e-4)])
def test_sizes_have_the_exact_distribution(n, prob):
    """Catches ends that are floats, a ratio upside down and sizes that are left out, by exact fractions."""
    found, q = BinomialSizes.of(n, prob), Fraction(prob)
    weights = [comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(n + 1)]
    below = list(accumulate(weights))
    assert below[found.smallest - 1] < Fraction(1, 2**230) if found.smallest else True
    for k, end in enumerate(found.ends, found.smallest):
        assert abs(Fraction(end, 2**256) - below[k]) < Fraction(1, 2**230)
    assert sum(weights[found.smallest + len(found.ends) + 1 :]) < Fraction(1, 2**230)


def test_sizes_of_ten_million_records():
    """Catches weights that lose their bits far from the most likely size."""
    found = BinomialSizes.of(10**7, 2048e-7)
    sizes = np.arange(found.smallest, found.smallest + len(found.ends))
    ends = np.array([end / 2**256 for end in found.ends])
    np.testing.assert_allclose(ends, stats.binom(10**7, 2048e-7).cdf(sizes), rtol=1e-7, atol=1e-12)


def test_more_bits_decide(monkeypatch):
    """Catches a size that its first bits alone decide: with 8 of them, most numbers are at an end."""
    monkeypatch.setattr(sampling, "_FIRST", 8)
    BinomialSizes.of.cache_clear()
    sizes = BinomialSizes.of(300, 0.5).draw(np.random.default_rng(2), 20_000)
    BinomialSizes.of.cache_clear()
    observed = np.bincount(sizes, minlength=301)
    expected = 20_000 * stats.binom(300, 0.5).pmf(np.arange(301))
    keep = expected > 20
    assert ((observed - expected)[keep] ** 2 / expected[keep]).sum() < stats.chi2(keep.sum()).isf(1e-4)


def test_work_is_that_of_a_batch():
    """Catches a sampler that reads all records: a hundred batches of ten million of them take no seconds."""
    start = time.process_time()
    poisson_batches(np.random.default_rng(0), 10**7, 2048e-7, 100, 2048)
    assert time.process_time() - start < 2.0  # 0.01 s; masks of all records took 7


@pytest.mark.parametrize("units", [0.25, 1.0, 1.75])
def test_probabilities_finer_than_16_bits(units):
    """Catches a probability that is rounded."""
    n, steps = 200_000, 60
    prob = units / 65536
    total = int((poisson_batches(np.random.default_rng(5), n, prob, steps, 64) >= 0).sum())
    assert abs(total - n * steps * prob) < 4.5 * np.sqrt(n * steps * prob)


def test_refuses_arguments_out_of_range():
    """Catches a sampler that runs with a probability nobody accounted for."""
    for change, words in [
        ({"n_records": -1}, "n_records"),
        ({"n_records": 2**31}, "n_records"),
        ({"sampling_prob": 1.5}, "sampling_prob"),
        ({"sampling_prob": float("nan")}, "sampling_prob"),
        ({"steps": -1}, "steps"),
        ({"capacity": 0}, "capacity"),
    ]:
        arguments = {"n_records": 5, "sampling_prob": 0.5, "steps": 2, "capacity": 4} | change
        with pytest.raises(InputError, match=words):
            poisson_batches(np.random.default_rng(0), **arguments)
