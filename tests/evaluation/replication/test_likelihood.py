"""The fits: against statsmodels, scikit-learn and a naive partial likelihood, and where there is none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from dpsynth.evaluation.replication import likelihood
from dpsynth.evaluation.replication.design_matrix import Design
from dpsynth.evaluation.replication.likelihood import Fit, fit, separated


def made(x, y, duration=None) -> Design:
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    names = tuple(f"x{k}" for k in range(x.shape[1]))
    return Design(names, x, y, duration, len(y), 0, 0, ())


def drawn(n: int, kind: str, seed: int = 0, *, tied: bool = True) -> Design:
    rng = np.random.default_rng(seed)
    # one column far from 0, one a hundred times as wide, one of two values
    x = np.column_stack([rng.normal(60, 9, n), rng.normal(0, 100, n), rng.random(n) < 0.3])
    score = 0.05 * (x[:, 0] - 60) - 0.006 * x[:, 1] + 0.7 * x[:, 2]
    if kind == "logistic":
        return made(x, rng.random(n) < 1 / (1 + np.exp(-score)))
    if kind == "linear":
        return made(x, 120 + score + rng.normal(size=n))
    death, end = rng.exponential(1000 * np.exp(-score)), rng.exponential(1500, n)
    days = np.minimum(death, end)
    return made(x, death <= end, np.ceil(days / 50) * 50 if tied else days)


def solved(data: Design, kind: str, level: float = 0.95) -> Fit:
    return fit(data, kind, level=level, rng=np.random.default_rng(0))


def columns(result: Fit) -> np.ndarray:
    return np.array(
        [[c.value, c.std_error, c.lower, c.upper, c.p_value] for c in result.coefficients.values()]
    )


@pytest.mark.parametrize("kind", ["logistic", "linear"])
@pytest.mark.parametrize("level", [0.95, 0.8])
def test_equals_a_formula_of_statsmodels(kind: str, level: float) -> None:
    """Slopes of the standardised predictors, normal intervals of a linear model, or a wrong level."""
    import pandas as pd
    import statsmodels.formula.api as smf

    data = drawn(400, kind)
    frame = pd.DataFrame(data.x, columns=["x0", "x1", "x2"]).assign(y=data.y)
    model = smf.logit if kind == "logistic" else smf.ols
    direct = model("y ~ x0 + x1 + x2", frame).fit(**({"disp": 0} if kind == "logistic" else {}))
    expected = np.column_stack([direct.params, direct.bse, direct.conf_int(1 - level), direct.pvalues])[1:]
    assert columns(solved(data, kind, level)) == pytest.approx(expected, rel=1e-6)


def test_equals_scikit_learn_without_penalty() -> None:
    """An error that statsmodels called twice would share."""
    from sklearn.linear_model import LogisticRegression

    data = drawn(500, "logistic", 1)
    scale = data.x.std(axis=0)
    direct = LogisticRegression(C=np.inf, tol=1e-10, max_iter=5000).fit(data.x / scale, data.y)
    assert columns(solved(data, "logistic"))[:, 0] == pytest.approx(direct.coef_[0] / scale, rel=1e-4)


@pytest.mark.parametrize("tied", [True, False])
def test_equals_phreg_directly(tied: bool) -> None:
    """Breslow's method in the presence of ties, or a status and a duration exchanged."""
    from scipy import stats
    from statsmodels.duration.hazard_regression import PHReg

    data = drawn(300, "cox", 2, tied=tied)
    direct = PHReg(data.duration, data.x, status=data.y, ties="efron").fit()
    half = stats.norm.ppf(0.975) * direct.bse
    expected = np.column_stack(
        [direct.params, direct.bse, direct.params - half, direct.params + half, direct.pvalues]
    )
    assert columns(solved(data, "cox")) == pytest.approx(expected, rel=1e-5)


def partial_likelihood(data: Design) -> Callable[[np.ndarray], float]:
    """Cox 1972, term by term, of standardised predictors; to be minimised."""
    z = (data.x - data.x.mean(axis=0)) / data.x.std(axis=0)

    def loss(slopes: np.ndarray) -> float:
        total = 0.0
        for i in np.flatnonzero(data.y):
            at_risk = data.duration >= data.duration[i]
            total += z[i] @ slopes - np.log(np.exp(z[at_risk] @ slopes).sum())
        return -total

    return loss


def test_equals_a_naive_partial_likelihood() -> None:
    """Risk sets that leave out the records still under observation."""
    data = drawn(60, "cox", 3, tied=False)
    naive = minimize(partial_likelihood(data), np.zeros(3), method="BFGS", options={"gtol": 1e-6}).x
    assert columns(solved(data, "cox"))[:, 0] == pytest.approx(naive / data.x.std(axis=0), rel=1e-4)


@pytest.mark.parametrize("kind", ["logistic", "linear", "cox"])
@settings(max_examples=10, deadline=None)
@given(
    factor=st.floats(-1e6, 1e6).filter(lambda value: abs(value) > 1e-6),
    shift=st.floats(-1e3, 1e3),
    seed=st.integers(0, 50),
)
def test_units_do_not_matter(kind: str, factor: float, shift: float, seed: int) -> None:
    """A fit that depends on the unit or the origin of a predictor: slopes must scale, p-values stay."""
    data = drawn(120, kind, seed)
    x = data.x.copy()
    x[:, 1] = factor * (x[:, 1] + shift)
    before, after = columns(solved(data, kind)), columns(solved(made(x, data.y, data.duration), kind))
    assert after[[0, 2]] == pytest.approx(before[[0, 2]], rel=1e-4, abs=1e-7)
    assert after[1, :2] * [factor, abs(factor)] == pytest.approx(before[1, :2], rel=1e-4, abs=1e-9)
    assert after[1, 4] == pytest.approx(before[1, 4], rel=1e-3, abs=1e-9)


def test_contrasts_without_a_reference_are_not_reported() -> None:
    """A coefficient against another baseline under no name."""
    data = drawn(200, "linear")
    hidden = Design(("x0", "", "x2"), data.x, data.y, None, 200, 0, 0, ())
    assert set(solved(hidden, "linear").coefficients) == {"x0", "x2"}
    assert columns(solved(hidden, "linear")) == pytest.approx(columns(solved(data, "linear"))[[0, 2]])


def test_long_tails() -> None:
    """Plain Newton steps, which overshoot on these predictors (two assays of one thing) and end in NaN."""
    rng = np.random.default_rng(0)
    thing = np.exp(1.2 * rng.normal(size=400))
    assays = [thing * np.exp(0.2 * rng.normal(size=400)) for _ in range(2)]
    x = np.column_stack([*assays, rng.normal(size=400)])
    death, end = rng.exponential(1000 * np.exp(-x[:, 2] - 0.3 * x[:, 0])), rng.uniform(0, 300, 400)
    data = made(x, death < end, np.minimum(death, end))
    result = columns(solved(data, "cox"))
    assert np.all(np.abs(result[:, 0] - [0.3, 0.0, 1.0]) < 3 * result[:, 1])
    naive = minimize(partial_likelihood(data), np.zeros(3), method="BFGS", options={"gtol": 1e-6}).x
    assert result[:, 0] == pytest.approx(naive / x.std(axis=0), rel=1e-3, abs=1e-4)


LINE = np.arange(12.0)[:, None]
NOISE = np.random.default_rng(7).normal(size=(12, 1))


@pytest.mark.parametrize(
    ("data", "kind", "problem"),
    [
        (made(LINE, LINE[:, 0] > 5), "logistic", "the outcome is separated"),
        (made(np.hstack([LINE == 3, NOISE]), [0, 1] * 3 + [0, 0, 1, 1, 0, 1]), "logistic", "is separated"),
        (made(LINE, np.zeros(12)), "logistic", "the same in every record used"),
        (made(LINE, np.ones(12)), "logistic", "the same in every record used"),
        (made(LINE, np.ones(12)), "linear", "the same in every record used"),
        (made(LINE, 2 * LINE[:, 0] - 1), "linear", "exact linear function"),
        (made(np.hstack([LINE, 5 - 3 * LINE]), NOISE[:, 0]), "linear", "singular: x"),
        (made(np.hstack([LINE, 5 - 3 * LINE]), NOISE[:, 0] > 0), "logistic", "computed from the other terms"),
        (made(np.empty((12, 0)), NOISE[:, 0]), "linear", "no term is left"),
        (made(LINE[:2], [0, 1]), "logistic", "2 complete records are too few for 1 term"),
        (made(LINE[:1], [0.5]), "linear", "the same in every record"),
        (made(LINE, np.zeros(12), LINE[:, 0]), "cox", "no event is observed"),
        (made(LINE, np.ones(12), LINE[:, 0]), "cox", "the coefficient of x0 grows without end"),
        (
            made(np.hstack([LINE, NOISE]), np.arange(12) == 4, LINE[:, 0]),
            "cox",
            "1 event is too few for 2 terms",
        ),
    ],
)
def test_what_cannot_be_estimated_is_said(data: Design, kind: str, problem: str) -> None:
    """A traceback, a warning, or an estimate of 25 with an error of 10,000 that passes for a result."""
    result = solved(data, kind)
    assert problem in result.problem and not result.coefficients


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 25))
def test_an_estimate_is_given_exactly_where_there_is_one(seed: int, n: int) -> None:
    """A separated table with numbers, or an overlapping one without: the two sides must agree."""
    rng = np.random.default_rng(seed)
    data = made(rng.integers(0, 4, (n, 1)), rng.random(n) < 0.4)
    result = solved(data, "logistic")
    if 0 < data.y.sum() < n and np.ptp(data.x) > 0:
        low, high = data.x[data.y == 0, 0], data.x[data.y > 0, 0]
        # in one dimension: the ranges of the two outcomes touch in a point at most
        apart = low.max() <= high.min() or high.max() <= low.min()
        assert separated(np.column_stack([np.ones(n), data.x]), data.y) == apart
        assert bool(result.coefficients) == (not apart)


def test_many_event_times(monkeypatch) -> None:
    """A Cox model that takes minutes, or a part of the records that is not said to be one."""
    data = drawn(400, "cox", 5, tied=False)
    whole = solved(data, "cox")
    monkeypatch.setattr(likelihood, "MAX_EVENT_TIMES", 60)
    result = solved(data, "cox")
    assert whole.remark == "" and result.n < whole.n == 400
    assert result.remark == f"the Cox model was fitted to a random {result.n:,} of 400 records"
    assert np.all(np.abs(columns(result)[:, 0] - columns(whole)[:, 0]) < 5 * columns(result)[:, 1])


def test_the_generator_is_left_alone_unless_records_are_drawn() -> None:
    """A fit that moves the randomness of whatever follows it."""
    rng = np.random.default_rng(1)
    before = rng.bit_generator.state
    fit(drawn(100, "cox"), "cox", rng=rng)
    assert rng.bit_generator.state == before
