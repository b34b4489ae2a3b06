import time

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpsynth.errors import InputError
from dpsynth.privacy import sampling
from dpsynth.privacy.sampling import Digits, Gaps, poisson_batches


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


@pytest.mark.parametrize("prob", [0.1, 0.5, 0.85])
def test_every_set_of_records_has_its_probability(prob):
    """Catches any law but that of independent records: all 32 sets of five records are counted."""
    n, steps = 5, 40_000
    mask = membership(poisson_batches(np.random.default_rng(3), n, prob, steps, 8), n)
    observed = np.bincount(mask @ (1 << np.arange(n)), minlength=1 << n)
    sizes = np.array([bits.bit_count() for bits in range(1 << n)])
    expected = steps * prob**sizes * (1 - prob) ** (n - sizes)
    keep = expected > 5
    assert ((observed - expected)[keep] ** 2 / expected[keep]).sum() < stats.chi2(keep.sum()).isf(1e-4)


@pytest.mark.parametrize(
    ("prob", "trials", "digits"),
    [(1.0, 9, 1), (0.3, 10, 1), (1 / 3, 10**6, 1), (2e-4, 10**9, 2), (1e-9, 10**13, 3), (1e-200, 10**6, 2)],
)
def test_gaps_have_the_exact_distribution(prob, trials, digits):
    """Catches ends that are floats and gaps that are left out, by powers of 2,000 bits."""
    found = Gaps.of(prob, trials).digits
    assert len(found) == digits
    with mpmath.workprec(2000):
        fail, least = 1 - mpmath.mpf(prob), mpmath.mpf(2) ** -230
        for place, digit in enumerate(found):
            base, last = fail ** (4096**place), place == len(found) - 1
            whole = 1 if last else 1 - base**4096
            assert last or len(digit.ends) == 4095
            some = range(0, len(digit.ends), 1 + len(digit.ends) // 40)
            for k in {*some, len(digit.ends) - 1} if digit.ends else ():
                assert abs(mpmath.mpf(digit.ends[k]) / 2**256 - (1 - base ** (k + 1)) / whole) < least
        most = len(found[-1].ends)
        assert most * 4096 ** (digits - 1) >= trials or base ** (most + 1) < mpmath.mpf(2) ** -255


def test_digits_make_a_geometric_number(monkeypatch):
    """Catches digits at the wrong place: to the base of 4, most gaps have several."""
    monkeypatch.setattr(sampling, "_MOST", 8)
    monkeypatch.setattr(sampling, "_BASE_BITS", 2)
    Gaps.of.cache_clear()
    law = Gaps.of(0.05, 10**6)
    gaps = law.draw(np.random.default_rng(2), 40_000)
    Gaps.of.cache_clear()
    assert len(law.digits) == 6
    observed, expected = np.bincount(gaps, minlength=200)[:100], 40_000 * 0.05 * 0.95 ** np.arange(100)
    assert stats.chi2(100).sf(((observed - expected) ** 2 / expected).sum()) > 1e-4
    assert gaps.max() > 64


class Bits:
    """A source of given bits, first words and then bytes."""

    def __init__(self, word, more):
        self.word, self.more = word, more

    def integers(self, low, high, count, dtype):
        return np.full(count, self.word, dtype)

    def bytes(self, count):
        return self.more.to_bytes(count, "big")


@pytest.mark.parametrize(("more", "number"), [(4, 0), (5, 1), (6, 1)])
def test_more_bits_decide(more, number):
    """Catches a number whose first 64 bits alone decide, where they are those of an end."""
    word = 0xABCDABCDABCDABCD
    longer = (word & 0xFFFF) << 48 | word >> 16
    assert Digits.of([(longer << 192) + 5]).draw(Bits(word, more), 3).tolist() == [number] * 3


@pytest.mark.parametrize(("word", "number"), [(1 << 62, 0), ((1 << 63) + (1 << 16), 1)])
def test_a_cell_with_an_end_does_not_decide(word, number):
    """Catches a number by its first 16 bits alone, where an end is amid those that begin with them."""
    assert Digits.of([1 << 239]).draw(Bits(word, 0), 1).tolist() == [number]


def test_batches_across_blocks_of_gaps(monkeypatch):
    """Catches a seam between blocks: with blocks of one gap the batches are those of one block."""
    whole = poisson_batches(np.random.default_rng(0), 50, 1.0, 3, 8)
    for block in (1, 149, 150, 151):
        monkeypatch.setattr(sampling, "_BLOCK", block)
        np.testing.assert_array_equal(poisson_batches(np.random.default_rng(0), 50, 1.0, 3, 8), whole)
        mask = membership(poisson_batches(np.random.default_rng(1), 3, 0.4, 20_000, 3), 3)
        assert np.abs(mask.mean(axis=0) - 0.4).max() < 4.5 * np.sqrt(0.24 / 20_000)
        assert abs((mask[:, 0] & mask[:, 1]).mean() - 0.16) < 4.5 * np.sqrt(0.16 * 0.84 / 20_000)


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
