"""One estimate from several synthetic tables."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpsynth.errors import InputError
from dpsynth.studies.combining import combine

#: Printed by `syntheticPool` of the R package gFormulaMI 1.0.0 for 10 tables (its reference page): estimate,
#: within, between, total, df, lower, upper, p.
PUBLISHED = [
    (-0.02071539, 0.0008125695, 0.001763004, 0.001126735, 3.038045, -0.1267874, 0.08535658, 5.803156e-01),
    (2.96593502, 0.0016251389, 0.004203106, 0.002998278, 3.784951, 2.8104386, 3.12143146, 1.304839e-06),
]


def numbers(mean, variance, m=10):
    """m numbers of this mean and variance (divisor m - 1)."""
    z = np.arange(m) - (m - 1) / 2
    return mean + z * math.sqrt(variance) / z.std(ddof=1)


def moments(estimate, within, between, m):
    """The rule of Raghunathan, Reiter and Rubin (2003): variance and degrees of freedom."""
    total = (1 + 1 / m) * between - within
    return total, (m - 1) * (1 - within / ((1 + 1 / m) * between)) ** 2


def naive(q, u, level, rng, draws=400_000):
    """The posterior by plain simulation: interval, p value and median standard deviation."""
    m = len(q)
    b, ubar = float(np.var(q, ddof=1)), float(np.mean(u))
    tau = (m - 1) * b / rng.chisquare(m - 1, draws)
    tau = tau[tau >= ubar]
    spread = np.sqrt((1 + 1 / m) * tau - ubar)
    drawn = np.mean(q) + spread * rng.standard_normal(len(tau))
    ends = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return *ends, 2 * min(np.mean(drawn < 0), np.mean(drawn > 0)), np.median(spread), len(tau)


@pytest.mark.parametrize("row", PUBLISHED)
def test_published_values(row):
    """Catches Rubin's rule or the one for partial synthesis: published are the moments of our posterior."""
    estimate, within, between, total, df, lower, upper, _ = row
    assert moments(estimate, within, between, 10) == pytest.approx((total, df), rel=1e-5)
    told = combine(numbers(estimate, between), np.full(10, within))
    assert told.estimate[0] == pytest.approx(estimate)
    ours, published = told.upper[0] - told.lower[0], upper - lower
    # Rubin's total variance would be 2.4 to 2.6 times as large, which is 1.5 times as wide with 9 degrees
    assert 0.72 < ours / published < 1.0 and told.m == 10


def test_against_the_posterior_drawn():
    """Catches a variance without (1 + 1/m), a divisor m, a wrong tail, mixed up coefficients, no level."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        m, p = int(rng.integers(3, 30)), 4
        q = rng.normal(size=(m, p)) * [0.8, 1, 1.5, 5]
        u = rng.uniform(0.1, 1.0, (m, p))
        told = combine(q, u, level=0.8)
        for k in range(p):
            lower, upper, p_value, spread, kept = naive(q[:, k], u[:, k], 0.8, rng)
            if kept < 20_000:
                continue  # too few draws to compare with
            width = upper - lower
            assert told.lower[k] == pytest.approx(lower, abs=0.02 * width)
            assert told.upper[k] == pytest.approx(upper, abs=0.02 * width)
            assert told.p_value[k] == pytest.approx(p_value, abs=0.015)
            assert told.std_error[k] == pytest.approx(spread, rel=0.03)


def test_exact_tables_give_a_t_distribution():
    """Catches a quadrature that misses the tail: without variances of their own it is Student's t."""
    for m in [2, 3, 5, 20]:
        for level in [0.5, 0.95, 0.999]:
            told = combine(numbers(1.0, 4.0, m), np.zeros(m), level=level)
            half = stats.t(m - 1).ppf((1 + level) / 2) * math.sqrt((1 + 1 / m) * 4.0)
            assert told.upper[0] - 1.0 == pytest.approx(half, rel=1e-4)
            assert told.p_value[0] == pytest.approx(
                2 * stats.t(m - 1).sf(1 / math.sqrt((1 + 1 / m) * 4.0)), rel=1e-4
            )


def test_tables_that_differ_less_than_their_records_explain():
    """Catches a NaN from a root of a negative number, an interval that is too short, or a jump on the way."""
    tried = [combine(numbers(1.0, b, 5), np.full(5, 0.04)) for b in (0.0, 1e-300, 1e-30, 1e-9, 1e-3, 0.01)]
    widths = [float(told.upper[0] - told.lower[0]) for told in tried]
    assert np.isfinite(widths).all() and np.all(np.diff(widths) > -1e-9)
    assert widths[2] == pytest.approx(widths[0], rel=1e-3)
    assert all(told.std_error[0] >= math.sqrt(0.04 / 5) for told in tried)


def test_order_and_units_do_not_matter():
    """Catches a rule that depends on the tables' order, or on the unit of a coefficient."""
    rng = np.random.default_rng(0)
    q, u = rng.normal(size=(7, 2)), rng.uniform(0.01, 0.5, (7, 2))
    told, turned = combine(q, u), combine(q[::-1], u[::-1])
    scaled = combine(1000 * q + 5000, 1e6 * u)
    for name in ("std_error", "lower"):
        np.testing.assert_allclose(getattr(told, name), getattr(turned, name))
    np.testing.assert_allclose(scaled.lower, 1000 * told.lower + 5000)


def test_shapes_that_are_taken():
    """Catches covariances read off the diagonal wrongly, and terms that lose their names or their order."""
    rng = np.random.default_rng(1)
    root = rng.normal(size=(5, 2, 2))
    covariances = root @ root.transpose(0, 2, 1)
    q = rng.normal(size=(5, 2)) * 9
    diagonals = np.stack([np.diag(c) for c in covariances])
    plain = combine(q, diagonals)
    assert plain.terms == ("1", "2")
    names = ["age", "sex"]
    frame = pd.DataFrame(q, columns=names)
    series = [row for _, row in frame.iterrows()]
    tables = [pd.DataFrame(c, names, names) for c in covariances]
    turned = [table.loc[names[::-1], names[::-1]] for table in tables]
    squares = pd.DataFrame(diagonals, columns=names)[names[::-1]]
    for estimates, variances in [
        (q, covariances),
        (frame, diagonals),
        (frame, squares),
        (series, tables),
        (series, turned),
        ([series[0][::-1][::-1], *(row[::-1] for row in series[1:])], covariances),
        (q.tolist(), covariances.tolist()),
    ]:
        told = combine(estimates, variances)
        np.testing.assert_allclose(told.to_frame()["lower"], plain.lower)
        assert told.terms == (("age", "sex") if not isinstance(estimates, np.ndarray | list) else told.terms)
    assert combine(series, tables).terms == ("age", "sex")
    one = combine(pd.Series(q[:, 0]), pd.Series(diagonals[:, 0], index=range(10, 15)))
    assert one.lower[0] == plain.lower[0] and one.estimate.shape == (1,)


def test_no_variance_at_all():
    """Catches 0 / 0 where all tables say exactly the same."""
    told = combine([[2.0, 0.0]] * 3, np.zeros((3, 2)))
    assert told.std_error.tolist() == [0.0, 0.0] and told.p_value.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("between", [0.8, 0.833333, 0.83334, 0.84, 0.9])
def test_no_astronomic_interval_where_the_variance_is_hardly_positive(between):
    """Catches degrees of freedom near 0: the moments of 2003 are 0 at a variance between of 5/6."""
    told = combine(numbers(0.0, between, 5), np.ones(5))
    assert 1.5 < told.upper[0] < 4.0


def test_what_is_refused():
    """Catches faults that would come out as NaN or as a plausible interval."""
    for estimates, variances, more, message in [
        ([1.0], [1.0], {}, "estimates are of 1 table, and combining takes at least 2"),
        ([], [], {}, "of 0 table"),
        ([1.0, 2.0], [1.0], {}, r"variances must have the shape \(2, 1\) or \(2, 1, 1\).* not \(1, 1\)"),
        (np.ones((2, 3)), np.ones((2, 3, 2)), {}, r"not \(2, 3, 2\)"),
        (np.ones((2, 3, 1)), np.ones((2, 3)), {}, "estimates must have shape"),
        (np.ones((2, 0)), np.ones((2, 0)), {}, "estimates must have shape"),
        ([1.0, np.nan, 2.0], [1.0] * 3, {}, "table 2 has an estimate that is not a number.*did not converge"),
        ([[1.0, np.inf], [0, 0], [1, np.nan]], np.ones((3, 2)), {}, r"tables 1, 3 have .*term 2: inf"),
        ([1.0, 2.0, 3.0], [1.0, 1.0, -1.0], {}, "table 3 has a variance that is negative or not finite"),
        ([1.0, 2.0], [np.nan, 1.0], {}, "table 1 has a variance"),
        ([[1.0, 2.0], [1.0]], [1.0, 1.0], {}, "estimates must be numbers, the same number of them"),
        (["a", "b"], [1.0, 1.0], {}, "estimates must be numbers"),
        (None, [1.0], {}, "estimates are of 0 table"),
        ([1.0, 2.0], [1.0, 1.0], {"level": 1.0}, "level"),
        (
            [pd.Series([1.0, 2.0], index=["age", "age"])] * 2,
            np.ones((2, 2)),
            {},
            "estimates name the term age twice",
        ),
        (
            [pd.Series({"a": 1.0, "b": 2.0})] * 2,
            [pd.DataFrame(np.eye(2), ["a", "a"], ["a", "b"])] * 2,
            {},
            "variances of table 1 are of the terms a, a, but must be of a, b",
        ),
        (
            [pd.Series({"a": 1.0}), pd.Series({"b": 1.0})],
            [1.0, 1.0],
            {},
            "estimates of table 2 are of the terms b, but must be of a",
        ),
        (
            [pd.Series({"a": 1.0})] * 2,
            [pd.DataFrame({"a": [1.0]}, index=["b"])] * 2,
            {},
            "variances of table 1 are of the terms b",
        ),
    ]:
        with pytest.raises(InputError, match=message):
            combine(estimates, variances, **more)


def coverage(m, n_synthetic, repetitions, rng, rule=combine):
    """How often the interval holds the mean of a population, from tables of the posterior predictive law."""
    n = 200
    mean, sd = rng.normal(size=repetitions), rng.uniform(0.5, 2.0, repetitions)
    real = mean[:, None] + sd[:, None] * rng.standard_normal((repetitions, n))
    # the posterior of a normal law under the usual prior 1 / sigma^2
    sigma = np.sqrt((n - 1) * real.var(axis=1, ddof=1)[:, None] / rng.chisquare(n - 1, (repetitions, m)))
    centre = real.mean(axis=1)[:, None] + sigma / math.sqrt(n) * rng.standard_normal((repetitions, m))
    # mean and variance of a synthetic table are sufficient, and drawn from their laws
    q = centre + sigma / math.sqrt(n_synthetic) * rng.standard_normal((repetitions, m))
    u = sigma**2 * rng.chisquare(n_synthetic - 1, (repetitions, m)) / (n_synthetic - 1) / n_synthetic
    told = rule(q.T, u.T)
    return float(np.mean((told.lower <= mean) & (mean <= told.upper)))


def test_intervals_hold_the_truth():
    """Catches a rule that is not valid: too short by the tables' own sampling, or too long by it."""
    rng = np.random.default_rng(0)
    # four standard errors of a share
    assert coverage(100, 200, 500, rng) == pytest.approx(0.95, abs=0.039)
    assert coverage(20, 1000, 500, rng) == pytest.approx(0.95, abs=0.039)
    # where few tables tell little beside their own variance, the prior is on the safe side
    assert 0.98 <= coverage(5, 200, 250, rng) <= 1.0
