"""Practical membership privacy: exponential and Gaussian mechanisms, exact, bounded and estimated."""

import itertools
import math

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from dpsynth.errors import InputError
from dpsynth.privacy.gaussian_loss import GaussianLoss
from dpsynth.research.papers.lowy import (
    MOST_CELLS,
    MeanLoss,
    attack_accuracy,
    exponential_pmp,
    halves_of_parents,
    mechanism_pmp,
)
from dpsynth.research.papers.lowy_gaussian import (
    gaussian_dp_delta,
    gaussian_dp_sigma,
    gaussian_parent_delta,
    gaussian_parent_epsilon,
    gaussian_pmp_delta,
    gaussian_pmp_epsilon,
    gaussian_pmp_exact_delta,
    gaussian_pmp_sigma,
    private_root,
)

PARENT = np.array([0.0, 0.1, 0.3, 0.35, 0.6, 1.0])
OUTPUTS = np.linspace(0.0, 1.0, 5)
DISTANCE = MeanLoss(lambda records, outputs: np.abs(np.asarray(records)[:, None] - outputs))


def of_the_mean(records, outputs):
    return np.abs(records.mean() - outputs)


# --- the exponential mechanism ---------------------------------------------------------------------------


def naive_exponential(parent, loss, outputs, epsilon, sensitivity):
    """Proposition 9 as it is written: epsilon of each record, and DP restricted to halves of the parent."""
    size = len(parent) // 2
    with mpmath.workdps(30):
        tables = {}
        for half in itertools.combinations(range(len(parent)), size):
            losses = loss(parent[list(half)], outputs)
            weights = [mpmath.exp(-mpmath.mpf(epsilon) * mpmath.mpf(x) / (2 * sensitivity)) for x in losses]
            tables[frozenset(half)] = [weight / mpmath.fsum(weights) for weight in weights]
        records = []
        for x in range(len(parent)):
            ratios = []
            for w in range(len(outputs)):
                inside = mpmath.fsum(table[w] for half, table in tables.items() if x in half)
                outside = mpmath.fsum(table[w] for half, table in tables.items() if x not in half)
                ratios.append(abs(mpmath.log(inside / outside)))
            records.append(float(max(ratios)))
        gap = max(
            abs(mpmath.log(p / q))
            for left, right in itertools.combinations(tables, 2)
            if len(left & right) == size - 1
            for p, q in zip(tables[left], tables[right], strict=True)
        )
    return records, float(gap)


@pytest.mark.parametrize("epsilon", [0.3, 4.0, 40.0])
@pytest.mark.parametrize("loss", [of_the_mean, DISTANCE, lambda r, w: DISTANCE(r, w)], ids=["f", "mean", "g"])
def test_exponential_mechanism_against_enumeration(loss, epsilon):
    """A wrong pairing of adjacent halves, a wrong mask, or a quick path that differs from the definition."""
    result = exponential_pmp(PARENT, loss, OUTPUTS, epsilon, sensitivity=1 / 3)
    records, gap = naive_exponential(PARENT, loss, OUTPUTS, epsilon, 1 / 3)
    assert result.record_epsilons == pytest.approx(records, rel=1e-10)
    assert result.epsilon_pmp == max(result.record_epsilons)
    assert result.epsilon_parent == pytest.approx(gap, rel=1e-10)


def test_a_lexicographic_pairing_for_ten_records():
    """Adjacent halves paired wrongly in a way that six records do not show."""
    rng = np.random.default_rng(5)
    parent, table = rng.random(10), {}
    halves = list(itertools.combinations(range(10), 5))
    for half in halves:
        p = np.exp(-6 * DISTANCE(parent[list(half)], OUTPUTS))
        table[half] = np.log(p / p.sum())
    gap = max(
        np.abs(table[a] - table[b]).max()
        for a, b in itertools.combinations(halves, 2)
        if len(set(a) & set(b)) == 4
    )
    for loss in (DISTANCE, lambda records, outputs: DISTANCE(records, outputs)):
        result = exponential_pmp(parent, loss, OUTPUTS, 6 * 2 / 5, sensitivity=1 / 5)
        assert result.epsilon_parent == pytest.approx(gap, rel=1e-10)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=8), st.floats(0, 60), st.booleans())
def test_dp_implies_pmp(values, epsilon, quick):
    """Proposition 5: epsilon_PMP <= epsilon_X <= epsilon; catches any ratio that is too large."""
    parent = np.array(values[: len(values) // 2 * 2])
    loss = DISTANCE if quick else of_the_mean
    result = exponential_pmp(parent, loss, OUTPUTS, epsilon, sensitivity=2 / len(parent))
    slack = 1e-9 * (1 + epsilon)
    assert result.epsilon_pmp <= result.epsilon_parent + slack
    assert result.epsilon_parent <= epsilon + slack


@settings(max_examples=20, deadline=None)
@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 30))
def test_two_records_are_dp_restricted_to_the_parent(first, second, epsilon):
    """Corollary 4: with n = 1 the two notions are the same."""
    result = exponential_pmp(np.array([first, second]), DISTANCE, OUTPUTS, epsilon, sensitivity=1.0)
    assert result.epsilon_pmp == pytest.approx(result.epsilon_parent, abs=1e-9)
    assert result.record_epsilons[0] == pytest.approx(result.record_epsilons[1], abs=1e-9)


def test_a_table_and_an_array_agree():
    """Rows of a data frame taken by label instead of by position."""
    frame = pd.DataFrame({"age": PARENT, "sex": list("abcabc")}, index=[9, 3, 5, 1, 0, 7])
    for loss in (
        lambda records, outputs: np.abs(records["age"].mean() - outputs),
        MeanLoss(lambda records, outputs: np.abs(records["age"].to_numpy()[:, None] - outputs)),
    ):
        array_loss = DISTANCE if isinstance(loss, MeanLoss) else of_the_mean
        expected = exponential_pmp(PARENT, array_loss, OUTPUTS, 3.0, sensitivity=1 / 3)
        assert exponential_pmp(frame, loss, OUTPUTS, 3.0, sensitivity=1 / 3) == expected


def test_extreme_epsilons_stay_finite_and_ordered():
    """Weights that underflow, so that a ratio becomes infinite or NaN or loses its order."""
    epsilons = [0.0, 1e-12, 1.0, 1e3, 1e5, 1e8]
    results = [exponential_pmp(PARENT, DISTANCE, OUTPUTS, e, sensitivity=1 / 3) for e in epsilons]
    sizes = [result.epsilon_pmp for result in results]
    assert sizes[0] == 0.0 and sizes == sorted(sizes) and math.isfinite(sizes[-1])
    # for large epsilon the best half of each side decides, so that log ratios grow in proportion
    assert sizes[-1] / sizes[-2] == pytest.approx(1e3, rel=1e-3)
    with pytest.raises(InputError, match="overflows at epsilon 1e"):
        exponential_pmp(PARENT, DISTANCE, OUTPUTS * 1e10, 1e300, sensitivity=1 / 3)


# --- random halves ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_random_halves_agree_within_their_bars(epsilon):
    """A bar that is too short, or does not shrink as 1 / sqrt(halves); an estimate that is biased down."""
    parent = np.random.default_rng(1).random(12)
    exact = exponential_pmp(parent, DISTANCE, OUTPUTS, epsilon, sensitivity=1 / 6)
    bars = []
    for halves in (400, 6400):
        results = [
            exponential_pmp(
                parent,
                DISTANCE,
                OUTPUTS,
                epsilon,
                sensitivity=1 / 6,
                halves=halves,
                rng=np.random.default_rng(seed),
            )
            for seed in range(30)
        ]
        errors = np.array([result.epsilon_pmp - exact.epsilon_pmp for result in results])
        bar = np.array([result.standard_error for result in results])
        assert np.all(np.abs(errors) <= 3.2 * bar)
        assert np.abs(errors).mean() > 0.2 * bar.mean()  # the bar is not simply very long
        assert all(result.epsilon_parent <= exact.epsilon_parent + 1e-9 for result in results)
        assert not any(result.exact for result in results) and all(r.halves == halves for r in results)
        bars.append(bar.mean())
    assert 3.0 < bars[0] / bars[1] < 5.5


def test_the_bar_of_two_means_by_resampling():
    """A delta method with a wrong count or a squared where a plain error belongs."""
    rng = np.random.default_rng(3)
    parent = rng.random(12)
    table = {"rng": rng, "halves": 2000}
    draws = [
        exponential_pmp(parent, DISTANCE, np.array([0.0, 1.0]), 2.0, sensitivity=1 / 6, **table)
        for _ in range(200)
    ]
    seen = np.std([draw.epsilon_pmp for draw in draws])
    assert np.mean([draw.standard_error for draw in draws]) == pytest.approx(seen, rel=0.35)


def test_random_halves_are_uniform_and_their_neighbours_adjacent():
    """Halves of a wrong size, records that are favoured, or a swap that changes none or two."""
    design = halves_of_parents(np.arange(6), 12_000, np.random.default_rng(0))
    assert np.all(design.mask.sum(axis=1) == 3) and np.all(design.swapped.sum(axis=1) == 3)
    assert np.all((design.mask != design.swapped).sum(axis=1) == 2)
    codes, counts = np.unique(design.mask @ 2 ** np.arange(6), return_counts=True)
    assert len(codes) == 20
    assert ((counts - 600) ** 2 / 600).sum() < 50  # chi square with 19 degrees: 50 has probability 1e-4


# --- any mechanism ---------------------------------------------------------------------------------------


def test_a_mechanism_without_noise_can_be_private_in_practice():
    """Proposition 5's second half, by hand: three of 0..5, is their sum odd?

    With an even record in, 6 of 10 halves have an odd sum; with it out, 4 of 10. So epsilon_PMP is log 1.5,
    while two adjacent halves are told apart for certain.
    """
    result = mechanism_pmp(np.arange(6), lambda records: np.eye(2)[records.sum() % 2])
    assert result.record_epsilons == pytest.approx([math.log(1.5)] * 6)
    assert result.epsilon_parent == math.inf
    assert result.attack_accuracy == pytest.approx(0.6)


def test_publishing_a_record_is_not_private():
    """An output that is impossible without a record, lost as a zero."""
    result = mechanism_pmp(np.arange(4), lambda records: np.bincount(records, minlength=4) / 2)
    assert result.epsilon_pmp == math.inf and result.attack_accuracy == 1.0


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_post_processing_cannot_raise_it(seed, merged_into):
    """Lemma 14: merging outputs; catches a maximum over something else than outputs."""
    table = np.random.default_rng(seed).dirichlet(np.ones(6), size=64)

    def fine(records):
        return table[(2**records).sum()]

    def coarse(records):
        return np.bincount(merged_into, weights=fine(records), minlength=3)

    before, after = mechanism_pmp(np.arange(6), fine), mechanism_pmp(np.arange(6), coarse)
    assert after.epsilon_pmp <= before.epsilon_pmp + 1e-9
    assert after.epsilon_parent <= before.epsilon_parent + 1e-9


def test_attack_accuracy():
    """Lemma 6, its ends and its extremes."""
    assert attack_accuracy(0.0) == 0.5 and attack_accuracy(0.0, 1.0) == 1.0
    assert attack_accuracy(math.inf) == 1.0 and attack_accuracy(1e300, 0.5) == 1.0
    assert attack_accuracy(1.0, 0.1) == pytest.approx((math.e + 0.1) / (1 + math.e))


# --- the Gaussian mechanism ------------------------------------------------------------------------------


def naive_averaged_bound(values, sigma, epsilon):
    """Proposition 12: halves with x, each with every neighbour in which another record takes its place."""
    size, worst = len(values) // 2, 0.0
    for x in range(len(values)):
        total, count = 0.0, 0
        for half in itertools.combinations(range(len(values)), size):
            if x not in half:
                continue
            for other in set(range(len(values))) - set(half):
                swapped = [*(i for i in half if i != x), other]
                distance = np.linalg.norm(values[list(half)].mean(axis=0) - values[swapped].mean(axis=0))
                count += 1
                if distance > 1e-12:
                    shift, middle = epsilon * sigma / distance, distance / (2 * sigma)
                    total += norm.cdf(middle - shift) - math.exp(epsilon) * norm.cdf(-middle - shift)
        worst = max(worst, total / count)
    return worst


@pytest.mark.parametrize("dimension", [1, 3])
@pytest.mark.parametrize("epsilon", [0.0, 0.7, 3.0])
def test_averaged_bound_against_enumeration(dimension, epsilon):
    """The claim that the average over adjacent halves is one over the other records, in any dimension."""
    values = np.random.default_rng(dimension).normal(size=(6, dimension))
    values[4] = values[1]  # equal records: a distance of 0
    assert gaussian_pmp_delta(values, 0.3, epsilon) == pytest.approx(
        naive_averaged_bound(values, 0.3, epsilon), rel=1e-9
    )


@pytest.mark.parametrize(("sigma", "epsilon"), [(0.4, 0.25), (0.05, 0.0), (0.02, 1.0)])
def test_exact_delta_by_quadrature(sigma, epsilon):
    """Missed zeros, a wrong end of the axis, or a side that is left out (midpoint rule)."""
    values = np.array([0.0, 0.2, 0.25, 1.0])
    halves = list(itertools.combinations(range(4), 2))
    means = {half: values[list(half)].mean() for half in halves}
    edges = np.linspace(-10 * sigma, 1 + 10 * sigma, 200_001)  # so fine that the kinks do not matter
    middles = (edges[1:] + edges[:-1]) / 2
    worst = 0.0
    for x in range(4):
        inside = np.array([mean for half, mean in means.items() if x in half])
        outside = np.array([mean for half, mean in means.items() if x not in half])
        for left, right in ((inside, outside), (outside, inside)):

            def excess(t, left=left, right=right):
                p = norm.pdf(t, left[:, None], sigma).mean(axis=0)
                return p - math.exp(epsilon) * norm.pdf(t, right[:, None], sigma).mean(axis=0)

            worst = max(worst, float(np.maximum(excess(middles), 0.0).sum() * (edges[1] - edges[0])))
    assert gaussian_pmp_exact_delta(values, sigma, epsilon) == pytest.approx(worst, abs=1e-8)


@pytest.mark.parametrize("epsilon", [5.0, 6.0, 6.5, 7.0, 7.5, 8.0])
def test_small_exact_deltas_keep_their_digits(epsilon):
    """Subtraction of two tails that are close to 1 (mpmath, two records: Balle and Wang's closed form)."""
    with mpmath.workdps(50):
        upper, lower = mpmath.ncdf(mpmath.mpf("0.5") - epsilon), mpmath.ncdf(mpmath.mpf("-0.5") - epsilon)
        expected = float(upper - mpmath.exp(epsilon) * lower)
    assert gaussian_pmp_exact_delta([0.0, 1.0], 1.0, epsilon) == pytest.approx(expected, rel=1e-6, abs=0)
    assert gaussian_pmp_delta([0.0, 1.0], 1.0, epsilon) == pytest.approx(expected, rel=1e-10, abs=0)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(-1, 1), min_size=2, max_size=8),
    st.floats(0.02, 20),
    st.floats(0, 5),
)
def test_the_deltas_are_ordered(values, sigma, epsilon):
    """exact <= averaged <= parent <= DP; catches a bound that is none."""
    values = values[: len(values) // 2 * 2]
    exact = gaussian_pmp_exact_delta(values, sigma, epsilon)
    averaged = gaussian_pmp_delta(values, sigma, epsilon)
    parent = gaussian_parent_delta(values, sigma, epsilon)
    assert 0.0 <= exact <= averaged + 1e-8
    assert averaged <= parent + 1e-12
    assert parent <= gaussian_dp_delta(2.0, len(values) // 2, sigma, epsilon) + 1e-12


def test_with_two_records_all_are_the_same():
    """Corollary 4 for the Gaussian mechanism, and both ends of the exact integral."""
    for sigma, epsilon in ((0.1, 0.0), (0.3, 1.0), (2.0, 0.2)):
        expected = gaussian_dp_delta(0.7, 1, sigma, epsilon)
        for function in (gaussian_pmp_delta, gaussian_pmp_exact_delta, gaussian_parent_delta):
            assert function([0.1, 0.8], sigma, epsilon) == pytest.approx(expected, rel=1e-9)


def test_gaussian_extremes_are_finite_and_ordered():
    """Overflow, squares that vanish, a distance of 0, or NaN at the ends of the ranges."""
    epsilons = [0.0, 1e-9, 1.0, 1e3, 1e6, 1e300]
    for sigma in (1e-300, 1e-3, 1.0, 1e300):
        deltas = [gaussian_pmp_delta(PARENT, sigma, epsilon) for epsilon in epsilons]
        assert deltas == sorted(deltas, reverse=True) and 0.0 <= deltas[-1] <= deltas[0] <= 1.0
    assert gaussian_pmp_delta(PARENT, 1e-300, 1.0) == pytest.approx(1.0)
    assert gaussian_pmp_delta(np.zeros(6), 1.0, 0.0) == 0.0
    # the scale of the values is no matter, even where their squares are not numbers
    for scale in (1e-200, 1e200):
        assert gaussian_pmp_delta(PARENT * scale, 0.4 * scale, 0.5) == pytest.approx(0.0938760, abs=6e-7)
    tiny = [0.0, 3e-187]
    for function in (gaussian_pmp_delta, gaussian_parent_delta, gaussian_pmp_exact_delta):
        assert function(tiny, 1.0, 1.0) == 0.0
    # of a distance that is taken as 1e-100; next to 0 delta is 4e-101, so a smaller epsilon would be untrue
    assert 1e-100 < gaussian_parent_epsilon(tiny, 1.0, 1e-300) < 1e-98
    assert gaussian_parent_epsilon([0.0, 1e160], 1.0, 1e-5) == math.inf
    assert gaussian_pmp_exact_delta(PARENT, 1e12, 0.0) < 1e-11
    assert gaussian_pmp_exact_delta(PARENT, 0.4, 700.0) == 0.0
    assert gaussian_pmp_exact_delta(np.zeros(6), 1.0, 0.0) == 0.0
    assert gaussian_pmp_exact_delta(np.array([0.0, 1e6]), 1.0, 1.0) == pytest.approx(1.0)


def test_a_large_parent_set_is_cut_into_blocks():
    """A block that is left out (the one record that differs stands in the last of them)."""
    values = np.zeros(2000)
    values[-1] = 2000.0
    expected = gaussian_dp_delta(2000.0, 1000, 1.0, 0.5)
    assert gaussian_pmp_delta(values, 1.0, 0.5) == pytest.approx(expected, rel=1e-9)


# --- inverses and calibration ----------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.2, 1e-2, 1e-5, 1e-12, 1e-100])
def test_epsilon_is_the_inverse_of_delta_on_the_private_side(delta):
    """A root that is a hair too small, or far too large."""
    values = np.random.default_rng(0).normal(size=(20, 3))
    epsilon = gaussian_pmp_epsilon(values, 0.2, delta)
    assert gaussian_pmp_delta(values, 0.2, epsilon) <= delta
    assert gaussian_pmp_delta(values, 0.2, epsilon * (1 - 1e-6)) > delta
    assert epsilon <= gaussian_parent_epsilon(values, 0.2, delta)


def test_epsilon_at_the_ends():
    """A search without an end."""
    assert gaussian_pmp_epsilon(PARENT, 0.4, 0.5) == 0.0 and gaussian_pmp_epsilon(PARENT, 0.4, 1.0) == 0.0
    assert gaussian_pmp_epsilon(PARENT, 0.4, 0.0) == math.inf
    assert gaussian_pmp_epsilon(np.ones(4), 0.4, 0.0) == 0.0
    # two records: all distances are the largest one, so that the search has no room above the root
    assert gaussian_pmp_epsilon([0.0, 1.0], 1.0, 1e-5) == pytest.approx(GaussianLoss(1.0).epsilon(1e-5))
    assert math.isfinite(gaussian_pmp_epsilon(PARENT, 1e-6, 1e-5))


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1.0, 0.01), (0.0, 0.05), (0.1, 1e-8), (20.0, 1e-5), (3.0, 0.9)]
)
def test_smallest_sigma(epsilon, delta):
    """Calibration that ends on the wrong side or away from the root."""
    sigma = gaussian_pmp_sigma(PARENT, epsilon, delta)
    assert gaussian_pmp_delta(PARENT, sigma, epsilon) <= delta
    assert gaussian_pmp_delta(PARENT, sigma * (1 - 1e-3), epsilon) > delta


def test_smallest_sigma_with_equal_records():
    """A limit at sigma 0 that overlooks equal records: here two of three others differ, so delta is 2/3."""
    values = [0.0, 0.0, 1.0, 1.0]
    assert gaussian_pmp_delta(values, 1e-9, 1.0) == pytest.approx(2 / 3)
    sigma = gaussian_pmp_sigma(values, 1.0, 0.66)
    assert gaussian_pmp_delta(values, sigma, 1.0) <= 0.66 < gaussian_pmp_delta(values, 0.999 * sigma, 1.0)
    with pytest.raises(InputError, match="no smallest sigma"):
        gaussian_pmp_sigma(values, 1.0, 0.67)


def test_smallest_sigma_of_dp():
    """Another sensitivity than range / n."""
    sigma = gaussian_dp_sigma(2.0, 5, 1.0, 1e-5)
    assert gaussian_dp_delta(2.0, 5, sigma, 1.0) <= 1e-5 < gaussian_dp_delta(2.0, 5, sigma * (1 - 1e-6), 1.0)
    assert GaussianLoss(0.4 / sigma).epsilon(1e-5) == pytest.approx(1.0, rel=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.1, 10), st.floats(0.1, 0.9), st.sampled_from([1e-3, 1e-6, 1e-12]))
def test_the_root_is_on_the_private_side(scale, level, rtol):
    """A walk to the private side that does not end there, from either side."""
    falling = private_root(lambda x: level - x / (x + scale), 1e3 * scale, 1e-3 * scale, rtol)
    rising = private_root(lambda x: x / (x + scale) - level, 1e-3 * scale, 1e3 * scale, rtol)
    exact = scale * level / (1 - level)
    assert falling / (falling + scale) >= level and rising / (rising + scale) <= level
    assert falling == pytest.approx(exact, rel=2 * rtol + 1e-13)
    assert rising == pytest.approx(exact, rel=2 * rtol + 1e-13)


# --- refusals --------------------------------------------------------------------------------------------


def test_a_table_too_large_to_keep_is_refused_at_once():
    """Memory that runs out instead of a sentence."""
    wide = np.linspace(0.0, 1.0, MOST_CELLS // 900)
    with pytest.raises(InputError, match="numbers that are kept"):
        exponential_pmp(np.linspace(0, 1, 12), of_the_mean, wide, 1.0, sensitivity=1 / 6)
