import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from dpsynth.attacks.closed_forms import staircase_tv
from dpsynth.privacy.conversions import largest_tv
from dpsynth.research.papers.ghazi_issa import (
    compose,
    erasure_probability,
    gaussian_limit,
    kairouz,
    noisy_sgd,
    subsampled,
)
from dpsynth.research.papers.trade_off import fnr

GRID = np.linspace(0.0, 1.0, 101)


def printed_sum(epsilon, delta, tv, k):
    """Theorem 2 as printed: the double sum over n0 and n1, to 50 digits."""
    with mpmath.workdps(50):
        e, d = mpmath.e ** mpmath.mpf(epsilon), mpmath.mpf(delta)
        a = 1 - (mpmath.mpf(tv) - d) / (1 - d) * (e + 1) / (e - 1)
        totals = []
        for j in range(k + 1):
            inner = mpmath.mpf(0)
            for n0 in range(k + 1):
                for n1 in range(k - n0 + 1):
                    if n0 - n1 > j:
                        ways = mpmath.binomial(k, n0) * mpmath.binomial(k - n0, n1)
                        both = ways * a ** (k - n0 - n1) * ((1 - a) / (1 + e)) ** (n0 + n1)
                        inner += both * (e**n0 - e ** (j + n1))
            totals.append(1 - (1 - d) ** k * (1 - inner))
        return totals


@settings(max_examples=12, deadline=None)
@given(
    epsilon=st.floats(1e-3, 6.0),
    delta=st.sampled_from([0.0, 1e-9, 1e-3, 0.3]),
    share=st.floats(1e-6, 0.999),
    k=st.integers(1, 12),
)
def test_equals_the_printed_double_sum(epsilon, delta, share, k):
    """A law of the difference that is not the theorem's, or a delta whose tail is rounding noise."""
    tv = delta + share * (largest_tv(epsilon, delta) - delta)
    expected = printed_sum(epsilon, delta, tv, k)
    for pair, value in zip(compose(epsilon, delta, tv, k), expected, strict=True):
        assert pair.delta == pytest.approx(float(value), rel=2e-10 if share < 1 - 1e-3 else 1e-8, abs=1e-40)


def test_equals_the_printed_double_sum_for_many_uses():
    """A tail lost to cancellation: delta falls from 0.3 to 1e-23 and every digit is compared."""
    pairs = compose(0.25, 0.0, 0.0625, 40)
    expected = printed_sum(0.25, 0.0, 0.0625, 40)
    assert pairs[39].delta < 1e-22
    assert [p.delta for p in pairs[:40]] == pytest.approx([float(v) for v in expected[:40]], rel=1e-12)


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 20)])
@pytest.mark.parametrize("erased", [Fraction(0), Fraction(2, 7)])
def test_brute_force_over_all_outputs(k, delta, erased):
    """A composition that is not that of the worst mechanism (equations 43 and 44), in exact fractions."""
    odds = Fraction(3, 2)  # e^epsilon
    right, wrong = (1 - erased) * odds / (1 + odds), (1 - erased) / (1 + odds)
    # outputs: gives hypothesis 0 away, right, erased, wrong, gives hypothesis 1 away
    p = [delta, *((1 - delta) * v for v in (right, erased, wrong)), Fraction(0)]
    q = p[::-1]
    tv = sum(abs(x - y) for x, y in zip(p, q, strict=True)) / 2
    pairs = compose(math.log(odds), float(delta), float(tv), k)
    for j, pair in enumerate(pairs):
        total = Fraction(0)
        for outputs in itertools.product(range(5), repeat=k):
            total += max(0, math.prod(p[o] for o in outputs) - odds**j * math.prod(q[o] for o in outputs))
        assert pair.delta == pytest.approx(float(total), rel=1e-13, abs=1e-300)


def test_ten_thousand_uses():
    """Lost scaling, lost digits, or a square of memory, at the largest k in use."""
    epsilon, tv, k = 5.0, 0.98 * largest_tv(5.0), 10_000
    deltas = [pair.delta for pair in compose(epsilon, 0.0, tv, k)]
    p = 0.98 / (1 + math.exp(-epsilon))
    gain = -math.expm1(-epsilon)
    # all right but one erased, or all right; e^-270, where a transform would have left noise
    last = k * math.log(p) + math.log(gain)
    second = (k - 1) * math.log(p) + math.log(k * 0.02 * gain + p * -math.expm1(-2 * epsilon))
    assert math.log(deltas[k - 1]) == pytest.approx(last, abs=1e-10)
    assert math.log(deltas[k - 2]) == pytest.approx(second, abs=1e-10)
    assert deltas[0] == pytest.approx(1.0, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(
    epsilon=st.floats(1e-6, 50.0),
    delta=st.sampled_from([0.0, 1e-12, 1e-5, 0.2]),
    share=st.floats(0.0, 1.0),
    k=st.integers(1, 300),
)
def test_properties_of_a_composition(epsilon, delta, share, k):
    """A delta that rises with epsilon, shrinks with tv or k, or leaves what one use and no sharing allow."""
    top = largest_tv(epsilon, delta)
    tv = min(top, delta + share * (top - delta))
    deltas = np.array(compose(epsilon, delta, tv, k))[:, 1]
    assert np.all(np.diff(deltas) <= 1e-16) and deltas[-1] >= 0
    assert tv * (1 - 1e-9) <= deltas[0] <= -math.expm1(k * math.log1p(-min(tv, 1 - 1e-16))) + 1e-12
    assert deltas[-1] == pytest.approx(-math.expm1(k * math.log1p(-delta)), abs=1e-15)
    more = np.array(compose(epsilon, delta, tv, k + 1))[: k + 1, 1]
    assert np.all(more >= deltas - 1e-13)
    worst = np.array(compose(epsilon, delta, top, k))[:, 1]
    assert np.all(worst >= deltas - 1e-13)


@pytest.mark.parametrize(("k", "delta"), [(1, 0.0), (9, 1e-3), (10, 0.0), (60, 1e-3)])
def test_the_pairs_that_parity_leaves_out_add_nothing(k, delta):
    """Pairs of another parity than k, or of another tv than the largest."""
    every = compose(0.3, delta, largest_tv(0.3, delta), k)
    assert fnr(kairouz(0.3, delta, k), GRID) == pytest.approx(fnr(every, GRID), abs=1e-13)


@pytest.mark.parametrize("k", [7, 10])
def test_kairouz_equals_its_printed_sum(k):
    """An index of equation (6) that is off by one."""
    e = math.exp(0.4)
    pairs = kairouz(0.4, 0.01, k)
    for i, pair in enumerate(reversed(pairs)):
        inner = sum(math.comb(k, m) * (e ** (k - m) - e ** (k - 2 * i + m)) for m in range(i)) / (1 + e) ** k
        assert pair.epsilon == pytest.approx((k - 2 * i) * 0.4)
        assert pair.delta == pytest.approx(1 - 0.99**k * (1 - inner), rel=1e-12)


@pytest.mark.parametrize("q", [0.01, 0.3, 1.0])
def test_subsampling_is_tight(q):
    """A wrong amplified epsilon, delta or tv: equations (48) and (49) reach all three at once."""
    epsilon, delta, tv = 1.2, 0.01, 0.35
    respond = 1 - erasure_probability(epsilon, delta, tv)
    right = respond / (1 + math.exp(-epsilon))
    p = np.array([delta, *((1 - delta) * np.array([right, 1 - respond, respond - right])), 0.0])
    absent = p[::-1]
    sampled = q * p + (1 - q) * absent
    part = subsampled(epsilon, delta, tv, q)
    assert part.tv == pytest.approx(np.abs(sampled - absent).sum() / 2)
    assert part.delta == pytest.approx(np.maximum(0, sampled - math.exp(part.epsilon) * absent).sum())
    assert part.delta < np.maximum(0, sampled - math.exp(0.999 * part.epsilon) * absent).sum()


@settings(max_examples=30, deadline=None)
@given(
    epsilon=st.floats(0.0, 1000.0),
    delta=st.floats(0.0, 0.9),
    share=st.floats(0.0, 1.0),
    q=st.floats(0.0, 1.0),
)
def test_a_sampled_mechanism_can_be_composed(epsilon, delta, share, q):
    """Parameters that leave their own range after sampling, or overflow."""
    top = largest_tv(epsilon, delta)
    part = subsampled(epsilon, delta, min(top, delta + share * (top - delta)), q)
    assert 0 <= part.epsilon <= epsilon
    assert len(compose(*part, 3)) == 4


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_gaussian_limit_is_approached(share):
    """A limit with the wrong mu: the distance to the exact composition must fall towards 0."""
    gaps = []
    for k in (25, 400, 6400):
        epsilon = 1.5 / math.sqrt(k)
        tv = share * largest_tv(epsilon)
        mu = gaussian_limit(np.full(k, epsilon), tv)
        limit = ndtr(ndtri(1 - GRID[1:-1]) - mu)
        gaps.append(float(np.max(np.abs(fnr(compose(epsilon, 0.0, tv, k), GRID[1:-1]) - limit))))
    assert mu == pytest.approx(1.5 * math.sqrt(share), rel=1e-3)
    assert gaps[0] > 2 * gaps[1] > 4 * gaps[2]
    assert gaps[2] < 5e-4


def test_gaussian_limit_of_a_list():
    """A sum that ignores the mechanisms' own parameters."""
    assert gaussian_limit([0.1, 0.2], [0.02, 0.05]) == pytest.approx(math.sqrt(2 * (0.002 + 0.01)))
    assert gaussian_limit(0.0, 0.0) == 0.0


def test_fnr_is_the_envelope_of_the_lines():
    """A line that is left out, in either order of the tables, or a block that is not filled."""
    pairs = [(0.0, 0.4), (1.0, 0.1), (3.0, 0.001)]
    rates = np.linspace(0, 1, 7).reshape(7, 1)
    expected = [
        max(0.0, *(max(1 - d - math.exp(e) * x, math.exp(-e) * (1 - d - x)) for e, d in pairs))
        for x in rates.ravel()
    ]
    assert fnr(pairs, rates).shape == (7, 1)
    assert fnr(pairs, rates).ravel() == pytest.approx(expected, abs=1e-15)
    many = np.linspace(0, 1, 50_000)
    by_parts = np.concatenate([fnr(pairs, part) for part in np.split(many, 50)])
    assert np.array_equal(fnr(pairs * 20, many), by_parts)
    assert fnr([(1e6, 0.25)], [0.0, 1e-300, 1.0]).tolist() == [0.75, 0.0, 0.0]


@settings(max_examples=20, deadline=None)
@given(epsilon=st.floats(0.01, 3.0), share=st.floats(0.05, 1.0), k=st.integers(1, 40))
def test_fnr_of_a_composition_is_a_trade_off_curve(epsilon, share, k):
    """A curve that rises, bends the wrong way, exceeds guessing, or is not its own inverse."""
    pairs = compose(epsilon, 0.0, share * largest_tv(epsilon), k)
    curve = fnr(pairs, GRID)
    assert np.all(np.diff(curve) <= 1e-15) and np.all(np.diff(curve, 2) >= -1e-14)
    assert np.all(curve <= 1 - GRID + 1e-15) and curve[0] == 1.0
    seen = (curve > 1e-9) & (curve < 1)
    assert fnr(pairs, curve[seen]) == pytest.approx(GRID[seen], abs=1e-9)
    # the smallest sum of the two errors is 1 - TV
    assert np.min(curve + GRID) >= 1 - pairs[0].delta - 1e-12


@pytest.mark.parametrize(("mu", "steps"), [(0.1, 100), (0.5, 10), (2.0, 3)])
def test_noisy_sgd_bounds_the_exact_gaussian(mu, steps):
    """A curve above the true one (no protection), or one so low that it says nothing."""
    exact = ndtr(ndtri(1 - GRID[1:-1]) - mu * math.sqrt(steps))
    bound = fnr(noisy_sgd(mu, steps), GRID[1:-1])
    assert np.all(bound <= exact + 1e-12)
    assert np.max(bound) > 0.4 * np.max(exact)
    one = fnr(noisy_sgd(mu, steps, epsilons=[mu]), GRID[1:-1])
    assert np.all(one <= exact + 1e-12)


def test_noisy_sgd_of_one_step():
    """A total variation, delta or epsilon of a step that is not the Gaussian's, or not sampled."""
    mu, q, epsilon = 0.8, 0.1, 1.5
    tv = 2 * ndtr(mu / 2) - 1
    delta = ndtr(-epsilon / mu + mu / 2) - math.exp(epsilon) * ndtr(-epsilon / mu - mu / 2)
    pairs = noisy_sgd(mu, 1, q, epsilons=[epsilon])
    assert pairs[0] == pytest.approx((0.0, q * tv), rel=1e-12)
    assert pairs[1] == pytest.approx((math.log1p(q * math.expm1(epsilon)), q * delta), rel=1e-12)


def staircase_density(x, epsilon, gamma):
    """Density of staircase noise at ``x`` (equation 16): symmetric, falling by ``e^-epsilon`` a step.

    The drops are at ``gamma, 1 + gamma, 2 + gamma, ...`` in units of the sensitivity, with ``gamma`` in [0,
    1].
    """
    distance = np.abs(np.asarray(x, dtype=float))
    step = np.floor(distance)
    drops = step + (distance - step >= gamma)
    u = math.exp(-epsilon)
    if gamma == 0.0:  # the first drop is at 0: one drop less of a height that is e^epsilon times as large
        height, drops = -math.expm1(-epsilon) / 2, drops - 1
    else:
        height = -math.expm1(-epsilon) / (2 * (gamma + u * (1 - gamma)))
    return height * np.exp(-epsilon * drops)


@pytest.mark.parametrize("gamma", [0.0, 0.2, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_staircase_by_integration(epsilon, gamma):
    """A density that does not sum to 1, a TV that is not that of its shift, or other odds than e^epsilon."""
    steps = np.arange(math.ceil(40 / epsilon))
    stairs = np.concatenate([steps, steps + gamma])
    edges = np.unique(np.round(np.concatenate([stairs, -stairs, 1 + stairs, 1 - stairs, [0.5]]), 9))
    middles, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    here = staircase_density(middles, epsilon, gamma)  # constant between two edges: the sums are integrals
    shifted = staircase_density(middles - 1, epsilon, gamma)
    assert np.sum(here * widths) == pytest.approx(1.0, abs=1e-8)
    assert np.sum(np.abs(here - shifted) * widths) / 2 == pytest.approx(
        staircase_tv(epsilon, gamma), abs=1e-8
    )
    loss = np.log(here / shifted) / epsilon
    assert np.abs(loss - np.round(loss)).max() < 1e-9 and np.abs(loss).max() < 1.5
    erased = erasure_probability(epsilon, 0.0, staircase_tv(epsilon, gamma))
    assert np.sum((here * widths)[np.round(loss) == 0]) == pytest.approx(erased, abs=1e-8)
