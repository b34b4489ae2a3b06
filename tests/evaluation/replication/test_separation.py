"""What is fitted where outcomes separate: against scikit-learn, scipy and the definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

from dpsynth.evaluation.replication.design_matrix import Design
from dpsynth.evaluation.replication.likelihood import PRIOR_STD, Fit, fit, slope_priors


def made(x, y) -> Design:
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    return Design(tuple(f"x{k}" for k in range(x.shape[1])), x, y, None, len(y), 0, 0, ())


def drawn(n: int, seed: int, columns: int = 3) -> Design:
    """Records that a combination of the columns tells without an error; scales far apart."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, columns)) * np.geomspace(0.01, 1000, columns) + 5
    return made(x, (x - 5) @ (1 / np.geomspace(0.01, 1000, columns)) > 0.3)


def solved(data: Design, priors: dict[str, float] | None = None, level: float = 0.95) -> Fit:
    return fit(data, "logistic", rng=np.random.default_rng(0), priors=priors, level=level)


def standardised(data: Design) -> np.ndarray:
    return (data.x - data.x.mean(axis=0)) / data.x.std(axis=0)


@pytest.mark.parametrize("seed", [0, 1])
def test_equals_ridge_regression_of_scikit_learn(seed: int) -> None:
    """A penalty of another strength, on the intercept, or on slopes of another scale."""
    from sklearn.linear_model import LogisticRegression

    data = drawn(60, seed)
    assert solved(data).separated
    found = solved(data, slope_priors(data))
    # the penalty of scikit-learn is |w|^2 / 2 against C times the likelihood, and leaves the intercept free
    direct = LogisticRegression(C=PRIOR_STD**2, tol=1e-10, max_iter=10_000).fit(standardised(data), data.y)
    values = [c.value for c in found.coefficients.values()]
    assert values == pytest.approx(direct.coef_[0] / data.x.std(axis=0), rel=1e-4)


def test_errors_are_those_of_the_curvature() -> None:
    """Standard errors without the prior's curvature, which under separation are boundless."""
    data = drawn(50, 3)
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
    found = solved(data, slope_priors(data), level=0.8).coefficients.values()
    scale = data.x.std(axis=0)
    assert [c.value for c in found] == pytest.approx(best[1:] / scale, rel=1e-3)
    assert [c.std_error for c in found] == pytest.approx(errors / scale, rel=1e-2)
    assert [(c.upper - c.lower) / c.std_error for c in found] == pytest.approx([2 * 1.2815516] * 3)


def test_an_empty_cell() -> None:
    """A 2 x 2 table with an empty cell: the estimate must be where the penalised likelihood is highest."""
    data = made(np.repeat([[0.0], [1.0]], 10, axis=0), [1] * 4 + [0] * 6 + [1] * 10)
    assert solved(data).separated
    (found,) = solved(data, slope_priors(data)).coefficients.values()
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
    data = made(x, rng.random(20_000) < 1 / (1 + np.exp(-x @ [1.0, -0.5])))
    plain, ridge = (
        [c.value for c in f.coefficients.values()] for f in (solved(data), solved(data, slope_priors(data)))
    )
    assert ridge == pytest.approx(plain, rel=2e-4) and ridge != plain


def test_thirty_terms_that_separate_have_one_estimate() -> None:
    """An estimate that depends on the order of the records or columns, as of a likelihood of many maxima."""
    data = drawn(120, 5, columns=30)
    first = solved(data, slope_priors(data))
    order = np.random.default_rng(0).permutation(120)
    turned = made(data.x[order][:, ::-1], data.y[order])
    second = solved(turned, slope_priors(turned))
    assert not first.problem and len(first.coefficients) == 30
    assert [c.value for c in first.coefficients.values()] == pytest.approx(
        [c.value for c in second.coefficients.values()][::-1], rel=1e-5, abs=1e-9
    )
