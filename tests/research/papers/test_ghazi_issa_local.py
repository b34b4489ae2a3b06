import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.privacy.conversions import largest_tv
from dpsynth.research.papers.ghazi_issa import erasure_probability
from dpsynth.research.papers.ghazi_issa_local import (
    DIVERGENCES,
    binary_mechanism_with_erasure,
    channel_epsilon,
    channel_tv,
    checked_channel,
    chi2_bound,
    erase,
    kl_bound,
    kl_contraction,
    largest_f_divergence,
    randomised_response,
    randomised_response_tv,
    utility_factor,
)

F = {
    "kl": lambda t: t * math.log(t) if t > 0 else 0.0,
    "chi2": lambda t: (t - 1) ** 2,
    "tv": lambda t: abs(t - 1) / 2,
    "hellinger2": lambda t: (math.sqrt(t) - 1) ** 2,
}


def divergence(name, p, q):
    """The definition, where every output of p is one of q."""
    return sum(y * F[name](x / y) for x, y in zip(p, q, strict=True) if y > 0)


def total_variation(p, q):
    return float(np.abs(np.asarray(p) - np.asarray(q)).sum()) / 2


def random_channel(rng, inputs, outputs, size):
    """A channel whose columns vary by about e^size, often with an output that tells nothing."""
    base = rng.dirichlet(np.ones(outputs))
    rows = base * np.exp(size * rng.choice([-0.5, 0.0, 0.5], size=(inputs, outputs)))
    return erase(rows / rows.sum(axis=1, keepdims=True), rng.choice([0.0, 0.3, 0.9]))


def dominating(epsilon, tv):
    return binary_mechanism_with_erasure([1.0, 0.0], [0.0, 1.0], epsilon, tv)


channels = st.builds(
    random_channel,
    st.integers(0, 2**32 - 1).map(np.random.default_rng),
    st.integers(2, 4),
    st.integers(2, 5),
    st.floats(0.01, 5.0),
)


@settings(max_examples=200, deadline=None)
@given(channel=channels, seed=st.integers(0, 2**32 - 1))
def test_no_channel_exceeds_the_bounds(channel, seed):
    """A bound of Theorem 4, 5 or 6 that a channel breaks."""
    rng = np.random.default_rng(seed)
    epsilon, tv = channel_epsilon(channel), channel_tv(channel)
    if epsilon < 1e-3:
        return
    p, q = rng.dirichlet(np.full(len(channel), 0.5), size=2)
    mix = rng.choice([0.0, 0.9, 0.999])
    shared = rng.dirichlet(np.full(len(channel), 0.2))
    p, q = (1 - mix) * p + mix * shared, (1 - mix) * q + mix * shared
    p, q = (law + 1e-12 for law in (p, q))
    p, q = p / p.sum(), q / q.sum()
    reports = p @ channel, q @ channel
    slack = 1 + 1e-9
    for name in DIVERGENCES:
        largest = largest_f_divergence(name, epsilon, tv)
        assert divergence(name, channel[0], channel[-1]) <= largest * slack + 1e-14
        # joint convexity: the linear bound of every f
        assert divergence(name, *reports) <= total_variation(p, q) * largest * slack + 1e-14
    assert divergence("kl", *reports) <= kl_contraction(epsilon, tv) * divergence("kl", p, q) * slack + 1e-14
    assert divergence("kl", *reports) <= kl_bound(epsilon, tv, total_variation(p, q)) * slack + 1e-14
    assert divergence("chi2", *reports) <= chi2_bound(epsilon, tv, total_variation(p, q)) * slack + 1e-14


@pytest.mark.parametrize(("epsilon", "share"), [(0.1, 1.0), (1.0, 0.5), (4.0, 0.01)])
def test_binary_mechanism_with_erasure(epsilon, share):
    """A channel that breaks its parameters, or whose reports are closer than tv * TV(P, Q)."""
    tv = share * largest_tv(epsilon)
    p, q = [0.5, 0.2, 0.2, 0.1], [0.1, 0.2, 0.4, 0.3]
    channel = binary_mechanism_with_erasure(p, q, epsilon, tv)
    checked_channel(channel)
    assert channel.shape == (4, 3)
    assert channel_epsilon(channel) == pytest.approx(epsilon, rel=1e-9)
    assert channel_tv(channel) == pytest.approx(tv, rel=1e-9)
    assert total_variation(p @ channel, q @ channel) == pytest.approx(tv * total_variation(p, q), rel=1e-9)


@pytest.mark.parametrize("name", sorted(DIVERGENCES))
@pytest.mark.parametrize(("epsilon", "share"), [(0.05, 1.0), (1.0, 0.4), (6.0, 0.9)])
def test_theorem_4_is_reached(name, epsilon, share):
    """A wrong closed form for a named f: the formula for any f and the worst mechanism give the same."""
    tv = share * largest_tv(epsilon)
    largest = largest_f_divergence(name, epsilon, tv)
    assert largest_f_divergence(F[name], epsilon, tv) == pytest.approx(largest, rel=1e-9)
    assert divergence(name, *dominating(epsilon, tv)) == pytest.approx(largest, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "share"), [(0.3, 1.0), (1.0, 0.4), (3.0, 0.7)])
def test_theorem_5_is_reached(epsilon, share):
    """A contraction coefficient that is too large to be the largest: inputs near uniform reach it."""
    tv = share * largest_tv(epsilon)
    rows = dominating(epsilon, tv)
    p, q = np.array([0.501, 0.499]), np.array([0.499, 0.501])
    ratio = divergence("kl", p @ rows, q @ rows) / divergence("kl", p, q)
    assert ratio == pytest.approx(kl_contraction(epsilon, tv), rel=1e-4)
    if share == 1.0:  # equation (34)
        assert kl_contraction(epsilon, tv) == pytest.approx(math.tanh(epsilon / 2) ** 2)


@pytest.mark.parametrize("k", [2, 3, 20])
def test_randomised_response(k):
    """A channel or a TV of another mechanism, or a contraction that is not equation (36), which is tight."""
    epsilon, e = 1.3, math.exp(1.3)
    channel = randomised_response(k, epsilon)
    checked_channel(channel)
    assert channel_epsilon(channel) == pytest.approx(epsilon)
    assert channel_tv(channel) == pytest.approx(randomised_response_tv(k, epsilon))
    bound = kl_contraction(epsilon, randomised_response_tv(k, epsilon))
    assert bound == pytest.approx((e - 1) ** 2 / ((e + k - 1) * (e + 1)))
    p, q = np.zeros(k), np.zeros(k)
    p[:2], q[:2] = [0.501, 0.499], [0.499, 0.501]
    ratio = divergence("kl", p @ channel, q @ channel) / divergence("kl", p[:2], q[:2])
    assert ratio == pytest.approx(bound, rel=1e-4)


@pytest.mark.parametrize(("epsilon", "erased"), [(0.1, 0.0), (1.0, 0.5), (3.0, 0.0)])
def test_square_bounds_are_reached_in_the_limit(epsilon, erased):
    """A constant that could be smaller, and the tempting one for chi2, which this example breaks."""
    channel = erase(randomised_response(3, epsilon), erased)
    epsilon, tv = channel_epsilon(channel), channel_tv(channel)
    t = 1e-4
    p, q = np.array([t, 0, 1 - t]), np.array([0, t, 1 - t])
    seen = channel[:, channel.max(axis=0) > 0]
    reports = p @ seen, q @ seen
    # KL without the cancellation of its first order: x log(x / y) - x + y
    shift = reports[0] / reports[1] - 1
    kl = math.fsum(reports[1] * ((1 + shift) * np.log1p(shift) - shift))
    assert kl == pytest.approx(kl_bound(epsilon, tv, t), rel=1e-3)
    chi2 = divergence("chi2", *reports)
    assert chi2 == pytest.approx(chi2_bound(epsilon, tv, t), rel=2e-3)
    assert chi2 > 1.02 * 2 * math.sinh(epsilon) * tv * t**2


def test_linear_bounds_are_reached():
    """A square bound used where inputs are far apart and the linear one is far smaller."""
    epsilon, tv = 3.0, 0.5
    rows = dominating(epsilon, tv)
    assert divergence("kl", *rows) == pytest.approx(kl_bound(epsilon, tv, 1.0))
    assert divergence("chi2", *rows) == pytest.approx(chi2_bound(epsilon, tv, 1.0))


@settings(max_examples=30, deadline=None)
@given(channel=channels, probability=st.floats(0.0, 1.0))
def test_erasure_keeps_a_share_of_every_divergence(channel, probability):
    """An erasure that depends on the input, or a utility that is not multiplied by 1 - probability."""
    erased = erase(channel, probability)
    checked_channel(erased)
    assert channel_tv(erased) == pytest.approx((1 - probability) * channel_tv(channel), abs=1e-12)
    assert channel_epsilon(erased) <= channel_epsilon(channel) + 1e-9
    for name in DIVERGENCES:
        kept, whole = divergence(name, *erased[:2]), divergence(name, *channel[:2])
        assert kept == pytest.approx((1 - probability) * whole, abs=1e-12)


def test_conversion_of_theorem_7():
    """An erasure that leaves too large a TV, or a factor that is not what is kept."""
    epsilon, tv = 1.0, 0.2
    channel = randomised_response(2, epsilon)
    erased = erase(channel, erasure_probability(epsilon, 0.0, tv))
    assert channel_tv(erased) == pytest.approx(tv)
    kept = divergence("kl", *erased) / divergence("kl", *channel)
    assert utility_factor(epsilon, tv) == pytest.approx(kept)
    assert utility_factor(epsilon, largest_tv(epsilon)) == 1.0


def test_channel_without_local_privacy():
    """An output that one input never gives, or one that no input gives."""
    assert channel_epsilon([[1.0, 0.0], [0.5, 0.5]]) == math.inf
    assert channel_epsilon([[1.0, 0.0], [1.0, 0.0]]) == 0.0
    assert channel_tv([[1.0, 0.0], [0.0, 1.0]]) == 1.0
