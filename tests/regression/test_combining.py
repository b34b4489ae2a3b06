"""One estimate from several synthetic tables."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpsynth
from dpsynth.errors import InputError
from dpsynth.regression.combining import combine

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


def naive(q, u, level=0.95, ratio=1.0):
    """The rule of Raghunathan, Reiter and Rubin (2003) for one coefficient, written out term by term."""
    m = len(q)
    qbar = sum(q) / m
    b = sum((x - qbar) ** 2 for x in q) / (m - 1)
    ubar = sum(u) / m
    total = (1 + 1 / m) * b - ubar
    if total > 0:
        nu = (m - 1) * (1 - ubar / ((1 + 1 / m) * b)) ** 2
        quantile = stats.t(nu).ppf((1 + level) / 2)
        p = 2 * (1 - stats.t(nu).cdf(abs(qbar) / math.sqrt(total)))
    else:
        total, nu = ratio * ubar, math.inf
        quantile = stats.norm.ppf((1 + level) / 2)
        p = 2 * (1 - stats.norm.cdf(abs(qbar) / math.sqrt(total)))
    half = quantile * math.sqrt(total)
    return qbar, math.sqrt(total), nu, qbar - half, qbar + half, p


def values(told, k=0):
    return [float(getattr(told, name)[k]) for name in NAMES]


NAMES = ("estimate", "std_error", "df", "lower", "upper", "p_value")


@pytest.mark.parametrize("row", PUBLISHED)
def test_published_values(row):
    """Catches Rubin's rule or the one for partial synthesis, and degrees of freedom without the square."""
    estimate, within, between, total, df, lower, upper, p = row
    told = combine(numbers(estimate, between), np.full(10, within))
    expected = [estimate, math.sqrt(total), df, lower, upper, p]
    np.testing.assert_allclose(values(told), expected, rtol=1e-5)
    assert told.m == 10 and not told.adjusted[0]


@pytest.mark.parametrize("seed", range(6))
def test_against_the_formulas_written_out(seed):
    """Catches a variance without (1 + 1/m), a divisor m, coefficients that are mixed up, a level unused."""
    rng = np.random.default_rng(seed)
    m, p = int(rng.integers(2, 30)), 4
    q = rng.normal(size=(m, p)) * [0.1, 1, 1, 5]
    u = rng.uniform(0.1, 1.0, (m, p))
    told = combine(q, u, level=0.8, n_real=500, n_synthetic=750)
    for k in range(p):
        np.testing.assert_allclose(values(told, k), naive(q[:, k], u[:, k], 0.8, 1.5), rtol=1e-8)
    assert told.adjusted[0] and not told.adjusted[3]


def test_a_negative_variance_is_replaced_and_said():
    """Catches a NaN from a root of a negative number, or an adjustment that nobody is told of."""
    told = combine([1.0, 1.01, 0.99], [0.04, 0.04, 0.04])
    assert told.adjusted.tolist() == [True] and np.isinf(told.df[0])
    assert told.std_error[0] == pytest.approx(0.2)
    assert told.upper[0] - told.lower[0] == pytest.approx(2 * 1.959964 * 0.2)
    assert "1 *" in str(told) and "draw more" in str(told)
    assert combine([1.0, 1.01], [0.04] * 2, n_real=100, n_synthetic=400).std_error[0] == pytest.approx(0.4)
    assert "*" not in str(combine([1.0, 2.0, 3.0], [0.04] * 3))


def test_order_and_units_do_not_matter():
    """Catches a rule that depends on the tables' order, or on the unit of a coefficient."""
    rng = np.random.default_rng(0)
    q, u = rng.normal(size=(7, 2)), rng.uniform(0.01, 0.5, (7, 2))
    told, turned = combine(q, u), combine(q[::-1], u[::-1])
    scaled = combine(1000 * q + 5000, 1e6 * u)
    for name in ("std_error", "df"):
        np.testing.assert_allclose(getattr(told, name), getattr(turned, name))
    np.testing.assert_allclose(scaled.lower, 1000 * told.lower + 5000)
    np.testing.assert_allclose(scaled.df, told.df)


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


def test_as_a_frame_and_printed():
    """Catches a record whose table shows other numbers than it holds."""
    frame = pd.DataFrame({"age": [0.9, 1.0, 1.3], "sex": [0.2, 0.2, 0.2]})
    told = combine(frame, 0.01 + 0 * frame, level=0.9)
    table = told.to_frame()
    assert table.index.tolist() == ["age", "sex"] and table["adjusted"].tolist() == [False, True]
    for name in NAMES:
        np.testing.assert_array_equal(table[name], getattr(told, name))
    lines = str(told).splitlines()
    assert lines[0].split() == ["term", "estimate", "std", "error", "90", "%", "interval", "p"]
    assert lines[1].split()[:3] == ["age", "1.07", f"{told.std_error[0]:.3g}"]
    assert lines[2].startswith("sex *") and lines[3] == "From 3 synthetic tables."
    with pytest.raises(AttributeError):
        told.m = 4


def test_no_variance_at_all():
    """Catches 0 / 0 where all tables say exactly the same."""
    told = combine([[2.0, 0.0]] * 3, np.zeros((3, 2)))
    assert told.std_error.tolist() == [0.0, 0.0] and told.p_value.tolist() == [0.0, 1.0]


def test_a_difference_that_is_hardly_more_than_chance_is_no_short_interval():
    """Catches degrees of freedom that are rounded or cut upwards where the variance between barely shows."""
    told = combine(numbers(0.0, 1.0, 5), np.full(5, 1.2 * (1 - 1e-2)))
    assert 0 < told.df[0] < 1e-3 and told.upper[0] > 1e3


@pytest.mark.parametrize(
    ("estimates", "variances", "more", "message"),
    [
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
        ([1.0, 2.0], [1.0, 1.0], {"n_real": 10}, "belong together"),
        ([1.0, 2.0], [1.0, 1.0], {"n_real": 0, "n_synthetic": 1}, "n_real"),
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
    ],
)
def test_what_is_refused(estimates, variances, more, message):
    """Catches faults that would come out as NaN or as a plausible interval."""
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
    told = rule(q.T, u.T, n_real=n, n_synthetic=n_synthetic)
    return float(np.mean((told.lower <= mean) & (mean <= told.upper)))


def test_intervals_hold_the_truth():
    """Catches a rule that is not valid: too short by the tables' own sampling, or too long by it."""
    rng = np.random.default_rng(0)
    assert coverage(100, 200, 8000, rng) == pytest.approx(0.95, abs=0.01)
    assert coverage(20, 1000, 8000, rng) == pytest.approx(0.95, abs=0.015)
    # with few tables the t distribution errs on the safe side
    assert 0.95 <= coverage(5, 2000, 8000, rng) <= 0.995


def test_the_tables_of_one_model_do_not_combine():
    """Catches a docstring that promises what no rule can do: samples of one model do not show its noise."""
    rng = np.random.default_rng(1)
    model = 3 * rng.normal(size=2000) / math.sqrt(200)
    q = model[:, None] + rng.normal(size=(2000, 20)) / math.sqrt(200)
    told = combine(q.T, np.full((20, 2000), 1 / 200))
    assert np.mean((told.lower <= 0) & (told.upper >= 0)) < 0.75


def test_public():
    """Catches a name that is not where users look for it."""
    assert dpsynth.combine is combine
