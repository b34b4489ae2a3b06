"""Trade-off curves and what is read off them, against closed forms, quadrature and plain inequalities."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import laplace, norm

from dpsynth.errors import InputError
from dpsynth.privacy import Profile
from dpsynth.privacy.events import (
    epsilon_delta_event,
    gaussian_event,
    laplace_event,
    non_private_event,
    training_event,
)
from dpsynth.privacy.loss import from_deltas

RATES = np.array([0.0, 1e-6, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.9, 1.0])
RUN = Profile([training_event(1.1, 256 / 60000, 3525)])


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(z=st.floats(0.2, 50.0))
def test_gaussian_curve_from_its_deltas(z):
    """A curve from (epsilon, delta) pairs that is above the true one, or far below it."""
    profile = Profile([gaussian_event(z)])
    grid = np.linspace(0.0, min(600.0, profile.epsilon(1e-14)), 4000)
    curve = from_deltas(grid, np.array([profile.delta(e) for e in grid]))
    exact = norm.cdf(norm.isf(RATES) - 1 / z)
    assert np.all(curve(RATES) <= exact + 1e-9)
    assert curve(RATES) == pytest.approx(exact, abs=2e-5)
    assert profile.fnr(RATES) == pytest.approx(exact, abs=1e-12)
    assert curve.mu(1e-6) == pytest.approx(1 / z, rel=0.02)


def test_the_curve_of_a_sampled_step_is_the_lower_hull_of_both_directions():
    """Directions exchanged, or a curve above one of them, or lower than the chords between them."""
    z, q = 0.6, 0.3
    profile = Profile([training_event(z, q, 1)])
    # tests that claim presence above a threshold, and absence below it
    threshold = np.linspace(-6.0, 7.0, 20_001)
    absent = norm.cdf(threshold, 0, z)
    present = (1 - q) * absent + q * norm.cdf(threshold, 1, z)
    rates = np.linspace(0.0, 1.0, 2001)
    lowest = np.minimum(
        np.interp(rates, (1 - absent)[::-1], present[::-1]), np.interp(rates, present, 1 - absent)
    )
    hull = np.asarray(profile.fnr(rates))
    assert np.all(hull <= lowest + 1e-6)
    # the largest convex function below the lowest of the two, by brute force over chords
    for i in range(100, 2000, 380):
        below, above = np.arange(0, i), np.arange(i + 1, 2001)
        weight = (rates[above][None] - rates[i]) / (rates[above][None] - rates[below][:, None])
        chords = weight * lowest[below][:, None] + (1 - weight) * lowest[above][None]
        assert hull[i] == pytest.approx(min(lowest[i], chords.min()), abs=2e-5)


def test_laplace_by_its_closed_form():
    """Corners of a curve with straight pieces cut or overshot (Dong, Roth and Su 2019, Proposition A.6)."""
    profile = Profile([laplace_event(1.0)])

    def exact(fpr):
        if fpr < math.exp(-1) / 2:
            return 1 - math.e * fpr
        return math.exp(-1) / (4 * fpr) if fpr <= 0.5 else math.exp(-1) * (1 - fpr)

    for fpr in (0.01, 0.1, 0.25, 0.4, 0.6, 0.95):
        assert profile.fnr(fpr) == pytest.approx(exact(fpr), abs=1e-4)
        assert profile.fnr(fpr) <= exact(fpr) + 1e-9


def test_positive_predictive_value():
    """Prevalence of members and non-members exchanged, or a division by zero at rate 0."""
    profile = Profile([gaussian_event(1.0)])
    tpr = float(profile.tpr(0.05))
    assert profile.ppv(0.05, 0.1) == pytest.approx(0.1 * tpr / (0.1 * tpr + 0.9 * 0.05))
    assert Profile([epsilon_delta_event(1.0, 0.1)]).ppv(0.0, 0.3) == 1.0
    assert Profile([]).ppv(0.0, 0.3) == pytest.approx(0.3)
    assert Profile([]).ppv(0.2, 0.3) == pytest.approx(0.3)
    assert profile.ppv(0.5, 0.0) == 0.0


def test_exceedance_of_gaussians_and_of_one_sampled_step():
    """delta reported as the probability that the belief bound is exceeded, which it is not."""
    z = 1.3
    profile = Profile([gaussian_event(z, count=2)])
    mu = math.sqrt(2) / z
    epsilon = profile.epsilon(1e-3)
    exact = mpmath.quad(
        lambda x: mpmath.npdf(x, mu, 1), [epsilon / mu + mu / 2, epsilon / mu + mu / 2 + 5, 50]
    )
    assert profile.exceedance(epsilon) == pytest.approx(float(exact), rel=1e-9)
    assert profile.exceedance(epsilon) > 3 * profile.delta(epsilon)
    z, q = 0.7, 0.2
    sampled = Profile([training_event(z, q, 1)])
    epsilon = 0.8
    x = z**2 * math.log((math.exp(epsilon) - 1 + q) / q) + 0.5  # loss of presence is epsilon here
    assert sampled.exceedance(epsilon) == pytest.approx(
        (1 - q) * norm.sf(x, 0, z) + q * norm.sf(x, 1, z), rel=2e-3
    )


def test_exceedance_by_simulation():
    """A tail that is only right for one step: 4,000 runs of a hundred steps, in both directions."""
    z, q, steps = 0.9, 0.1, 100
    rng = np.random.default_rng(7)

    def losses(noise):
        return np.log1p(q * np.expm1((2 * noise - 1) / (2 * z**2))).sum(axis=1)

    noise = z * rng.standard_normal((4000, steps))
    absent = -losses(noise)
    present = losses(noise + (rng.random(noise.shape) < q))
    profile = Profile([training_event(z, q, steps)])
    for epsilon in (0.5, 1.5, 3.0):
        seen = max((present > epsilon).mean(), (absent > epsilon).mean())
        assert profile.exceedance(epsilon) == pytest.approx(seen, abs=4 * math.sqrt(0.25 / 4000))


@pytest.mark.parametrize("probability", [1e-6, 1e-3, 0.1])
def test_loss_quantile_inverts_exceedance(probability):
    """A level that is exceeded more often than said."""
    for profile in (RUN, Profile([gaussian_event(0.7)]), Profile([laplace_event(0.5)])):
        level = profile.loss_quantile(probability)
        assert profile.exceedance(level) <= probability
        if 0.0 < level < 1.99:
            assert profile.exceedance(level * 0.999 - 1e-3) > probability
    assert Profile([epsilon_delta_event(1.0, 1e-4)]).loss_quantile(1e-5) == math.inf
    assert Profile([epsilon_delta_event(1.0, 1e-4)]).loss_quantile(1e-3) == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("probability", [1e-6, 1e-3, 0.1, 0.7])
def test_largest_loss_quantile_inverts_the_bound_of_all_records(probability):
    """Catches a level that is passed more often than said, or the one of a record at the bound alone."""
    for profile in (RUN, Profile([gaussian_event(0.7)]), Profile.promised(1.0, 5e-7, 0.3)):
        level = profile.largest_loss_quantile(probability)
        assert profile.largest_exceedance(level) <= probability
        assert profile.largest_exceedance(level * (1 - 1e-6)) > probability
        assert profile.largest_loss_quantile(0.0) == math.inf and profile.largest_loss_quantile(1.0) == 0.0


def passed(p, q, epsilon):
    """Largest P of outcomes whose odds P / Q exceed e^epsilon: one by one, and an upper end taken as one."""
    ends = np.cumsum(p[::-1])[::-1], np.cumsum(q[::-1])[::-1]
    merged = ends[0][ends[0] > math.exp(epsilon) * ends[1]]
    return max(p[p > math.exp(epsilon) * q].sum(), merged.max(initial=0.0))


@pytest.mark.parametrize(("multiplier", "delta"), [(1.6, 1e-5), (0.8, 1e-3), (10.0, 1e-4)])
def test_no_record_passes_the_bound_and_one_attains_it(multiplier, delta):
    """Catches the probability for a record at the bound told as a bound for all records.

    By brute force over outcomes: shifts from 0 to 1, mixtures of records, presence and absence. An observer
    who only sees that a number lies in the upper end attains the bound.
    """
    profile, rng = Profile([gaussian_event(multiplier)]), np.random.default_rng()
    level, bound = profile.epsilon(delta), profile.belief_exceedance(delta)
    edges = np.linspace(-9.0, 10.0 + 1 / multiplier, 40_001)

    def outcomes(means, weights):
        tails = sum(w * norm.sf(edges - mean / multiplier) for mean, w in zip(means, weights, strict=True))
        return -np.diff(tails)

    found = []
    for shift in np.linspace(0.0, 1.0, 11):
        found.append(passed(outcomes([shift], [1.0]), outcomes([0.0], [1.0]), level))
    at_the_bound = found[-1]
    for _ in range(20):
        others, shifts, weights = rng.normal(size=3), rng.uniform(-1.0, 1.0, 3), rng.dirichlet(np.ones(3))
        pair = outcomes(others + shifts, weights), outcomes(others, weights)
        found += [passed(*pair, level), passed(*pair[::-1], level)]
    assert max(found) == at_the_bound <= bound * (1 + 1e-9)
    assert bound == pytest.approx(at_the_bound, rel=5e-3)
    assert bound > 1.5 * profile.exceedance(level)


def test_no_record_that_stops_in_time_passes_the_bound():
    """Catches a bound that fails for adaptive steps: the record moves no step once the belief is passed.

    The probability is computed backwards over the steps, with log-odds at the centres of narrow cells.
    """
    multiplier, steps, width = 1.6, 16, 0.01
    profile = Profile([gaussian_event(multiplier * math.sqrt(steps), count=steps)])
    level, move = profile.epsilon(1e-5), 1 / (multiplier * math.sqrt(steps))
    edges = level - width * np.arange(500, -1, -1)
    odds = edges[:-1] + width / 2
    reached = norm.sf((edges[None, :] - odds[:, None] - move**2 / 2) / move)
    passes = np.zeros(500)
    for _ in range(steps):
        passes = reached[:, -1] - np.diff(reached) @ passes
    start = np.interp(0.0, odds, passes)
    assert 1.2 * profile.exceedance(level) < start < profile.belief_exceedance(1e-5)


@pytest.mark.parametrize("epsilon", [0.2, 0.7, 1.0])
def test_bound_of_discrete_mechanisms_is_that_of_merged_outcomes(epsilon):
    """Catches a bound that only holds for normal noise: two Laplace numbers, of which few are merged."""
    profile = Profile([laplace_event(1.0, count=2)])
    edges = np.arange(-12.0, 13.0, 0.05)
    one = [np.diff(laplace.cdf(edges, shift)) for shift in (1.0, 0.0)]
    p, q = (np.outer(law, law).ravel() for law in one)
    order = np.argsort(p / q)
    found = passed(p[order], q[order], epsilon)
    assert found <= profile.largest_exceedance(epsilon)
    assert profile.largest_exceedance(epsilon) == pytest.approx(found, rel=0.02)


def test_belief_bound():
    """Odds of the prior ignored; a bound of 1/2 for no release."""
    profile = Profile([epsilon_delta_event(math.log(9), 0.0)])
    assert profile.belief(0.0) == pytest.approx(0.9, rel=1e-9)
    assert profile.belief(0.0, 0.1) == pytest.approx(0.5, rel=1e-9)
    assert Profile([]).belief(0.0, 0.3) == pytest.approx(0.3)
    assert Profile([non_private_event()]).belief(1e-5) == 1.0


def test_nothing_private_and_nothing_released():
    """A curve that crashes, or a NaN, at both ends of privacy."""
    nothing, everything = Profile([]), Profile([non_private_event()])
    assert np.allclose(nothing.fnr(RATES), 1 - RATES) and nothing.mu() == 0.0
    assert np.all(np.asarray(everything.fnr(RATES)) == 0.0) and everything.mu() == math.inf
    assert everything.exceedance(5.0) == 1.0 and nothing.exceedance(0.0) == 0.0
    assert nothing.advantage(0.3) == pytest.approx(0.0, abs=1e-12)
    almost = Profile([gaussian_event(1e-3)])
    assert almost.fnr(0.01) < 1e-12 and almost.mu() == pytest.approx(1000.0)


def test_bad_queries_are_named():
    """A NaN or a rate beyond 1 that comes back as a figure."""
    profile = Profile([gaussian_event(1.0)])
    for call, words in (
        (lambda: profile.fnr(1.5), "fpr"),
        (lambda: profile.fnr(np.array([0.1, math.nan])), "fpr"),
        (lambda: profile.advantage(-0.1), "fpr"),
        (lambda: profile.ppv(0.1, 1.2), "prior"),
        (lambda: profile.ppv(math.nan, 0.2), "fpr"),
        (lambda: profile.mu(0.5), "smallest_fpr"),
        (lambda: profile.belief(1e-5, -1.0), "prior"),
        (lambda: profile.exceedance(-1.0), "epsilon"),
        (lambda: profile.loss_quantile(2.0), "probability"),
        (lambda: profile.largest_exceedance(-1.0), "epsilon"),
        (lambda: profile.largest_loss_quantile(math.nan), "probability"),
    ):
        with pytest.raises(InputError, match=words):
            call()


def test_epsilons_closer_than_the_numbers_next_to_one():
    """Would catch 0 / 0 where a loss is so small that e^epsilon is 1 at two grid points."""
    curve = from_deltas(np.array([0.0, 1e-18, 0.1]), np.array([0.3, 0.29, 0.25]))
    assert curve(0.0) == pytest.approx(0.75) and curve(0.35) == pytest.approx(0.75 - math.exp(0.1) * 0.35)


@pytest.mark.slow
@given(
    deltas=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6),
    epsilons=st.lists(st.sampled_from(np.arange(40) / 8), min_size=6, max_size=6, unique=True),
)
@settings(deadline=None, max_examples=200)
def test_a_curve_is_nowhere_above_the_envelope_of_its_lines(deltas, epsilons):
    """Would catch a bound at a later epsilon that is left out where the bound at 0 says less.

    The envelope is of the lines fnr = 1 - delta - e^epsilon fpr and their reflections, from pairs which all
    hold; the curve may lie below it, never above.
    """
    deltas, epsilons = np.sort(deltas)[::-1], np.sort(epsilons[: len(deltas)])
    rates = np.linspace(0.0, 1.0, 41)
    lines = [1 - d - np.exp(e) * rates for d, e in zip(deltas, epsilons, strict=True)]
    reflected = [(1 - d - rates) / np.exp(e) for d, e in zip(deltas, epsilons, strict=True)]
    hull = from_deltas(epsilons, deltas)
    # convexity between the pairs allows more than the lines alone; compare with all pairs the hull implies
    y = np.linspace(np.exp(epsilons[0]), np.exp(epsilons[-1]), 2001)
    implied = _hull_by_brute_force(np.exp(epsilons), deltas, y)
    finer = np.max([1 - d - v * rates for d, v in zip(implied, y, strict=True)], axis=0)
    mirrored = np.max([(1 - d - rates) / v for d, v in zip(implied, y, strict=True)], axis=0)
    envelope = np.max([*lines, *reflected, finer, mirrored, np.zeros_like(rates)], axis=0)
    assert np.all(hull(rates) <= envelope + 1e-6)


def _hull_by_brute_force(x, y, at):
    """Lowest chord over each point: the lower convex hull of (x, y), from all pairs of points."""
    best = np.full(at.shape, np.inf)
    for i in range(len(x)):
        for j in range(i, len(x)):
            inside = (at >= x[i] - 1e-12) & (at <= x[j] + 1e-12)
            share = (at - x[i]) / (x[j] - x[i]) if j > i else np.zeros_like(at)
            best = np.where(inside, np.minimum(best, (1 - share) * y[i] + share * y[j]), best)
    return best
