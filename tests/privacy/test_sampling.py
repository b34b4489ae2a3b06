import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpsynth.errors import InputError
from dpsynth.privacy import sampling
from dpsynth.privacy.sampling import poisson_batches


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


def test_blocks_are_drawn_afresh(monkeypatch):
    """Catches steps whose sample is that of a step in another block: random numbers are drawn by blocks."""
    monkeypatch.setattr(sampling, "_MASK_BLOCK", 400)
    mask = membership(poisson_batches(np.random.default_rng(3), 100, 0.5, 30, 64), 100)
    assert len(np.unique(mask, axis=0)) == 30
    assert (mask[:, None] != mask).sum(axis=2)[np.triu_indices(30, 1)].min() > 20  # 50 on average


@pytest.mark.parametrize("units", [0.25, 1.0, 1.75])
def test_probabilities_finer_than_16_bits(units):
    """Catches a probability rounded to its first 16 bits: only the second draw decides here."""
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
