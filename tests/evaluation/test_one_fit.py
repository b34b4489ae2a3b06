"""The terms of a regression from a table, and its fits: against statsmodels, scikit-learn and by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize

from dpsynth.evaluation import regression as one_fit
from dpsynth.evaluation.regression import (
    PRIOR_STD,
    DesignMatrix,
    Fit,
    design,
    fit_regression,
    separated,
    slope_priors,
)
from dpsynth.studies.model import EffectsModel
from dpsynth.table.schema import Column, Schema


def made(x, y, duration=None) -> DesignMatrix:
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    names = tuple(f"x{k}" for k in range(x.shape[1]))
    return DesignMatrix(names, x, y, duration, len(y), 0, 0, ())


def drawn(n: int, kind: str, seed: int = 0, *, tied: bool = True) -> DesignMatrix:
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


def solved(data: DesignMatrix, kind: str, level: float = 0.95) -> Fit:
    return fit_regression(data, kind, level=level, rng=np.random.default_rng(0))


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


def partial_likelihood(data: DesignMatrix) -> Callable[[np.ndarray], float]:
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
    hidden = DesignMatrix(("x0", "", "x2"), data.x, data.y, None, 200, 0, 0, ())
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
def test_what_cannot_be_estimated_is_said(data: DesignMatrix, kind: str, problem: str) -> None:
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


@pytest.mark.parametrize("most", [12, 11])
def test_many_separated_records_have_no_estimate(most: int, monkeypatch) -> None:
    """Coefficients with errors of 10,000 that pass for a result where separation is no longer looked for."""
    monkeypatch.setattr(one_fit, "_SEPARATION_RECORDS", most)
    result = solved(made(LINE, LINE[:, 0] > 5), "logistic")
    said = "the outcome is separated" if most == 12 else "the coefficient of x0 grows without end"
    assert said in result.problem and not result.coefficients


def test_many_event_times(monkeypatch) -> None:
    """A Cox model that takes minutes, or a part of the records that is not said to be one."""
    data = drawn(400, "cox", 5, tied=False)
    whole = solved(data, "cox")
    monkeypatch.setattr(one_fit, "MAX_EVENT_TIMES", 60)
    result = solved(data, "cox")
    assert whole.remark == "" and result.n < whole.n == 400
    assert result.remark == f"the Cox model was fitted to a random {result.n:,} of 400 records"
    assert np.all(np.abs(columns(result)[:, 0] - columns(whole)[:, 0]) < 5 * columns(result)[:, 1])


def test_the_generator_is_left_alone_unless_records_are_drawn() -> None:
    """A fit that moves the randomness of whatever follows it."""
    rng = np.random.default_rng(1)
    before = rng.bit_generator.state
    fit_regression(drawn(100, "cox"), "cox", rng=rng)
    assert rng.bit_generator.state == before


def of_one_scale(x, y) -> DesignMatrix:
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    return DesignMatrix(tuple(f"x{k}" for k in range(x.shape[1])), x, y, None, len(y), 0, 0, ())


def separated_outcomes(n: int, seed: int, columns: int = 3) -> DesignMatrix:
    """Records that a combination of the columns tells without an error; scales far apart."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, columns)) * np.geomspace(0.01, 1000, columns) + 5
    return of_one_scale(x, (x - 5) @ (1 / np.geomspace(0.01, 1000, columns)) > 0.3)


def with_priors(data: DesignMatrix, priors: dict[str, float] | None = None, level: float = 0.95) -> Fit:
    return fit_regression(data, "logistic", rng=np.random.default_rng(0), priors=priors, level=level)


def standardised(data: DesignMatrix) -> np.ndarray:
    return (data.x - data.x.mean(axis=0)) / data.x.std(axis=0)


@pytest.mark.parametrize("seed", [0, 1])
def test_equals_ridge_regression_of_scikit_learn(seed: int) -> None:
    """A penalty of another strength, on the intercept, or on slopes of another scale."""
    from sklearn.linear_model import LogisticRegression

    data = separated_outcomes(60, seed)
    assert with_priors(data).separated
    found = with_priors(data, slope_priors(data))
    # the penalty of scikit-learn is |w|^2 / 2 against C times the likelihood, and leaves the intercept free
    direct = LogisticRegression(C=PRIOR_STD**2, tol=1e-10, max_iter=10_000).fit(standardised(data), data.y)
    values = [c.value for c in found.coefficients.values()]
    assert values == pytest.approx(direct.coef_[0] / data.x.std(axis=0), rel=1e-4)


def test_errors_are_those_of_the_curvature() -> None:
    """Standard errors without the prior's curvature, which under separation are boundless."""
    data = separated_outcomes(50, 3)
    z = np.column_stack([np.ones(50), standardised(data)])

    def loss(b: np.ndarray) -> float:
        eta = z @ b
        return float(np.logaddexp(0, eta).sum() - data.y @ eta + 0.5 * (b[1:] ** 2).sum() / PRIOR_STD**2)

    best = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-7}).x
    step = 1e-4
    curvature = np.array(
        [
            approx_fprime(best, lambda b, k=k: approx_fprime(b, loss, step)[k], step)  # type: ignore[misc]
            for k in range(4)
        ]
    )
    errors = np.sqrt(np.diag(np.linalg.inv(curvature)))[1:]
    found = with_priors(data, slope_priors(data), level=0.8).coefficients.values()
    scale = data.x.std(axis=0)
    assert [c.value for c in found] == pytest.approx(best[1:] / scale, rel=1e-3)
    assert [c.std_error for c in found] == pytest.approx(errors / scale, rel=1e-2)
    assert [(c.upper - c.lower) / c.std_error for c in found] == pytest.approx([2 * 1.2815516] * 3)


def test_an_empty_cell() -> None:
    """A 2 x 2 table with an empty cell: the estimate must be where the penalised likelihood is highest."""
    data = of_one_scale(np.repeat([[0.0], [1.0]], 10, axis=0), [1] * 4 + [0] * 6 + [1] * 10)
    assert with_priors(data).separated
    (found,) = with_priors(data, slope_priors(data)).coefficients.values()
    # the predictor's standard deviation is 1/2, so that the prior of its slope has one of 5
    grid = np.linspace(0, 12, 1201)
    heights = []
    for slope in grid:
        side = np.linspace(-8, 8, 1601)
        low, high = side, side + slope
        likelihood = 4 * low + 10 * high - 10 * np.logaddexp(0, low) - 10 * np.logaddexp(0, high)
        heights.append(likelihood.max() - slope**2 / (2 * 5**2))
    assert found.value == pytest.approx(grid[int(np.argmax(heights))], abs=0.02)


def test_where_records_are_many_the_prior_says_nothing() -> None:
    """A fallback that changes what a large table says."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(20_000, 2))
    data = of_one_scale(x, rng.random(20_000) < 1 / (1 + np.exp(-x @ [1.0, -0.5])))
    plain, ridge = (
        [c.value for c in f.coefficients.values()]
        for f in (with_priors(data), with_priors(data, slope_priors(data)))
    )
    assert ridge == pytest.approx(plain, rel=2e-4) and ridge != plain


def test_thirty_terms_that_separate_have_one_estimate() -> None:
    """An estimate that depends on the order of the records or columns, as of a likelihood of many maxima."""
    data = separated_outcomes(120, 5, columns=30)
    first = with_priors(data, slope_priors(data))
    order = np.random.default_rng(0).permutation(120)
    turned = of_one_scale(data.x[order][:, ::-1], data.y[order])
    second = with_priors(turned, slope_priors(turned))
    assert not first.problem and len(first.coefficients) == 30
    assert [c.value for c in first.coefficients.values()] == pytest.approx(
        [c.value for c in second.coefficients.values()][::-1], rel=1e-5, abs=1e-9
    )


SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=0, upper=100, unit="years", missing=True),
        Column(name="race", kind="categorical", categories=("a", "b", "c"), missing=True),
        Column(name="stage", kind="ordinal", categories=("I", "II", "III")),
        Column(name="died", kind="binary", categories=("no", "yes"), missing=True),
    )
)
MODEL = EffectsModel("logistic", "died", units={"age": 10})


def table(age, race, stage, died) -> pd.DataFrame:
    return SCHEMA.conform(pd.DataFrame({"age": age, "race": race, "stage": stage, "died": died})).frame


def test_codes_and_complete_cases() -> None:
    """A rank that starts at 1, an increment that multiplies, or a record with a gap that stays."""
    found = design(
        table(
            [10, 20, 30, 40, None, 60, 70, 80, 90],
            ["a", "b", "c", "a", "b", None, "b", "c", "c"],
            ["I", "II", "III", "I", "I", "I", "III", "I", "I"],
            ["no", "yes", "no", "yes", "no", "no", "no", "yes", None],
        ),
        SCHEMA,
        MODEL,
    )
    assert found.x.tolist() == [
        [1, 0, 0, 0],
        [2, 1, 0, 1],
        [3, 0, 1, 2],
        [4, 0, 0, 0],
        [7, 1, 0, 2],
        [8, 0, 1, 0],
    ]
    assert found.y.tolist() == [0, 1, 0, 1, 0, 1]
    assert (found.n_table, found.n_incomplete, found.n_settled, found.dropped) == (9, 3, 0, ())


def test_what_a_table_cannot_tell_is_named() -> None:
    """A constant column, an absent category or an empty column that is dropped in silence, or not at all."""
    rows = 6
    found = design(
        table([None] * rows, ["a", "b"] * 3, ["I"] * rows, ["no", "no", "yes", "yes", "no", "yes"]),
        SCHEMA,
        MODEL,
    )
    assert found.names == ("race: b vs a",)
    assert dict(found.dropped) == {
        "age (per 10 years)": "no value is present",
        "race: c vs a": "the category does not occur",
        "stage (per rank)": "constant",
    }


def test_without_the_reference_the_column_still_adjusts() -> None:
    """Contrasts against another category that pass for contrasts against the reference."""
    died = ["no", "yes", "yes", "no"]
    found = design(table([10, 20, 30, 50], ["b", "c", "b", "c"], ["I", "II", "I", "I"], died), SCHEMA, MODEL)
    assert found.names == ("age (per 10 years)", "", "stage (per rank)")
    assert found.x[:, 1].tolist() == [0, 1, 0, 1]
    assert dict(found.dropped) == {"race: b vs a": "no record has a", "race: c vs a": "no record has a"}


def test_a_category_that_settles_the_outcome() -> None:
    """An infinite coefficient that takes all others with it, or records that are lost without a word."""
    frame = table(
        [10, 20, 30, 40, 50, 60],
        ["a", "a", "b", "b", "c", "c"],
        ["I", "II"] * 3,
        ["no", "yes", "yes", "no", "yes", "yes"],
    )
    found = design(frame, SCHEMA, MODEL)
    assert found.names == ("age (per 10 years)", "race: b vs a", "stage (per rank)")
    assert dict(found.dropped) == {"race: c vs a": "every one of its 2 records has died = yes"}
    assert (len(found.y), found.n_settled) == (4, 2)
    # a linear model has no such thing
    assert design(frame, SCHEMA, EffectsModel("linear", "age")).n_settled == 0


def test_a_cox_coefficient_is_infinite_without_events_only() -> None:
    """Records of a category in which everybody died: their times are informative."""
    schema = Schema(columns=(*SCHEMA.columns, Column(name="days", kind="integer", lower=0, upper=99)))
    frame = table([1, 2, 3, 4, 5, 6], ["a", "a", "b", "b", "c", "c"], ["I", "II"] * 3, ["no", "yes"] * 3)
    frame["days"] = [5, 6, 7, 8, 9, 10]
    frame.loc[2:3, "died"] = "no"
    frame.loc[4:5, "died"] = "yes"
    found = design(frame, schema, EffectsModel("cox", "died", ["race"], "days"))
    assert found.names == ("race: c vs a",) and found.n_settled == 2
    assert found.duration is not None and found.duration.tolist() == [5, 6, 9, 10]


def test_a_settled_reference() -> None:
    """A reference category without events, whose contrasts are infinite all the same."""
    found = design(
        table(
            [10, 20, 30, 40, 50], list("aabbc"), ["I", "II", "I", "II", "I"], ["no", "no", "yes", "no", "yes"]
        ),
        SCHEMA,
        EffectsModel("logistic", "died", ["age", "race"]),
    )
    assert dict(found.dropped) == {
        "race: b vs a": "of the reference a: every one of its 2 records has died = no",
        "race: c vs a": "its only record has died = yes",
    }
    assert found.names == ("age (years)",) and len(found.y) == 2


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        (table([1, None], ["a", "b"], ["I", "I"], [None, None]), "no record has a known outcome"),
        (table([1, None], [None, "b"], ["I", "I"], ["no", "yes"]), "no record has all values of the model"),
        (
            table([1, 2, 3, 4], ["a", "b", "a", "b"], ["I"] * 4, ["no", "yes", "no", "yes"]),
            "the outcome is perfectly separated: race gives it for every record",
        ),
    ],
)
def test_tables_without_a_design(frame, problem) -> None:
    """A table that leaves no record, whose reason is not said."""
    assert design(frame, SCHEMA, MODEL).problem == problem


def test_too_many_terms(monkeypatch) -> None:
    """A column of a thousand categories that takes all memory."""
    monkeypatch.setattr(one_fit, "MAX_TERMS", 2)
    found = design(
        table([1, 2, 3, 4], ["a", "b", "a", "b"], ["I", "II", "I", "I"], ["no", "yes", "yes", "no"]),
        SCHEMA,
        MODEL,
    )
    assert found.problem == "the model has 3 terms, and at most 2 are fitted"
    assert found.x.shape == (4, 0)


def test_other_columns_do_not_count() -> None:
    """A gap in a column that is no predictor must not cost a record."""
    frame = table([None, 2, 3, 4], ["a", "b", "a", "b"], ["I", "II", "I", "I"], ["no", "yes", "yes", "no"])
    found = design(frame, SCHEMA, EffectsModel("logistic", "died", ["race"]))
    assert found.n_incomplete == 0 and np.array_equal(found.x[:, 0], [0, 1, 0, 1])


def test_logarithms_of_predictors_and_outcome() -> None:
    """A design whose logarithms are not those of the terms, or a column that is flat as a logarithm only."""
    schema = Schema(
        columns=(
            Column(name="crp", kind="continuous", lower=1, upper=500, step=1),
            Column(name="urea", kind="continuous", lower=1, upper=300),
            Column(name="dose", kind="integer", lower=1, upper=9),
        )
    )
    raw = pd.DataFrame({"crp": [1, 2, 8], "urea": [1, 10, 100], "dose": [0, 1, 1]})
    frame = schema.conform(raw).frame
    model = EffectsModel.parse("log(urea) ~ log(crp) + log(dose)", schema)
    found = design(frame, schema, model)
    np.testing.assert_allclose(found.x, [[0], [1], [3]])
    np.testing.assert_allclose(found.y, np.log([1, 10, 100]))
    assert found.dropped == (("dose (per doubling)", "constant"),)
