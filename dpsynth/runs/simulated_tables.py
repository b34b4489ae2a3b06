"""Simulated tables of a schema's shape: no record is read for them.

A schema states columns, bounds and categories. Everything else is drawn anew for each table:

- Numbers fill a part of their bounds, on the declared scale. Some have a long tail.
- Categories have unequal frequencies (Dirichlet distribution).
- Columns are correlated through three latent factors. Two columns have a correlation of about 0.2.
- The outcome follows one latent factor, and effects of single columns of which few are strong. The parts of
  both vary from table to table. A twentieth of the variance of the risk is an interaction. Another twentieth
  is a curved effect.
- The rarer of two outcomes has 10 to 50 % of the records.

How strongly the outcome depends on the other columns is given as the AUC of the true risk.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from dpsynth.table.column import Column
from dpsynth.table.schema import Schema
from dpsynth.table.values import cast, step_numbers, step_values

Floats = NDArray[np.float64]

#: latent factors, and the standard deviation of a column's loading on each
_FACTORS, _LOADING = 3, 0.38
#: parts of the variance of the risk: linear, one interaction, one curved effect
_LINEAR, _INTERACTION, _CURVED = 0.9, 0.05, 0.05
#: most values that are missing, and that are a special code
_MOST_MISSING, _SPECIAL = 0.3, 0.03
#: least and largest share of the rarer outcome
_PREVALENCE = (0.1, 0.5)
#: longest scale of the risk that is tried, in log odds a standard deviation
_STEEPEST = 50.0


def simulated_table(
    schema: Schema, n: int, n_test: int, auc: float, rng: np.random.Generator
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Draw a population for a schema, and ``n`` training and ``n_test`` test records of it.

    ``schema``: without constraints. Derived columns are left to be computed.
    ``auc``: of the true risk, in (0.5, 1). It has no effect without an outcome.

    Examples
    --------
    >>> columns = (Column(name="age", kind="integer", lower=18, upper=99),
    ...            Column(name="died", kind="binary", categories=("no", "yes")))
    >>> schema = Schema(columns=columns, outcome="died")
    >>> train, test = simulated_table(schema, 100, 50, 0.8, np.random.default_rng(0))
    >>> train.shape, test.shape, bool(train["age"].between(18, 99).all())
    ((100, 2), (50, 2), True)
    """
    own = [column for column in schema.columns if column.derived is None]
    size = n + n_test
    loadings = rng.normal(scale=_LOADING, size=(len(own), _FACTORS))
    loadings *= np.minimum(1.0, 0.9 / np.linalg.norm(loadings, axis=1))[:, None]
    alone = np.sqrt(1.0 - (loadings**2).sum(axis=1))
    latent = rng.standard_normal((size, _FACTORS)) @ loadings.T
    latent += alone * rng.standard_normal((size, len(own)))

    series, seen, weights = {}, [], []
    for column, values, loading in zip(own, latent.T, loadings[:, 0], strict=True):
        if column.name == schema.outcome:
            continue
        drawn, effect = _values(column, values, rng)
        series[column.name] = drawn
        seen.append(effect)
        weights.append(loading)
    if schema.outcome is not None:
        column = schema.column(schema.outcome)
        series[column.name] = _outcome(
            column, np.array(seen).reshape(len(seen), size), np.array(weights), auc, rng
        )
    frame = pd.DataFrame({column.name: series[column.name] for column in own})
    return frame.iloc[:n], frame.iloc[n:].reset_index(drop=True)


def _values(column: Column, latent: Floats, rng: np.random.Generator) -> tuple[pd.Series, Floats]:
    """The column's values, and the number by which each acts on the outcome: mean 0, variance about 1."""
    missing = rng.uniform(0.0, _MOST_MISSING) if column.missing else 0.0
    absent = rng.random(len(latent)) < missing
    if not column.is_numeric:
        size = len(column.categories)
        codes = _cut(latent, rng.dirichlet(np.ones(size)))
        codes = codes if column.is_ordinal else rng.permutation(size)[codes]
        effects = rng.standard_normal(len(column.categories))
        effect = latent if column.is_ordinal else _standardised(effects[codes])
        cells = np.array([*column.categories, None], dtype=object)
        return cast(column, cells[np.where(absent, -1, codes)]), np.where(absent, 0.0, effect)
    tail = rng.uniform(0.0, 0.5)
    shaped = latent if tail < 0.25 else np.expm1(tail * latent) / tail
    place = rng.uniform(0.2, 0.6) + rng.uniform(0.06, 0.16) * shaped
    numbers = _on_scale(column, place)
    special = rng.random(len(latent)) < _SPECIAL * bool(column.special)
    if column.special:
        numbers = np.where(special, rng.choice(column.special, len(latent)), numbers)
    effect = np.where(absent | special, 0.0, latent)
    return cast(column, np.where(absent, np.nan, numbers)), effect


def _on_scale(column: Column, place: Floats) -> Floats:
    """Numbers at these places between the bounds, from 0 to 1 on the declared scale."""
    lower, upper = column.bounds
    inside = place.clip(0.0, 1.0)
    if column.scale == "log":
        first = lower if lower > 0 else float(column.resolution or 1.0)
        numbers = np.exp(np.log(first) + inside * (np.log(upper) - np.log(first)))
    else:
        numbers = lower + inside * (upper - lower)
    if column.resolution is None:
        return np.asarray(numbers.clip(lower, upper))
    return step_values(column, step_numbers(column, numbers))


def _cut(latent: Floats, shares: Floats) -> NDArray[np.int64]:
    """The part of its distribution in which each value lies. Parts have these shares."""
    ends = np.quantile(latent, np.cumsum(shares)[:-1].clip(0.0, 1.0))
    return np.searchsorted(ends, latent, side="right").astype(np.int64)


def _outcome(
    column: Column, seen: Floats, loadings: Floats, auc: float, rng: np.random.Generator
) -> pd.Series:
    """Outcomes whose true risk has this AUC. ``seen`` holds a row of effects a predictor.

    ``loadings``: of each predictor on the factor that the outcome follows.
    """
    size = seen.shape[1]
    risk = np.zeros(size)
    if len(seen):
        part = rng.random()
        risk = np.sqrt(part) * _standardised(loadings @ seen)
        risk += np.sqrt(1.0 - part) * _standardised(rng.laplace(size=len(seen)) @ seen)
        risk = np.sqrt(_LINEAR) * _standardised(risk)
        first, second, third = rng.integers(len(seen), size=3)
        risk += np.sqrt(_INTERACTION) * _standardised(seen[first] * seen[second])
        risk += np.sqrt(_CURVED) * _standardised(seen[third] ** 2)
        risk = _standardised(risk)
    classes = len(column.categories)
    if classes == 2:
        rare = rng.uniform(*_PREVALENCE)
        shares = rng.permutation([rare, 1.0 - rare])
    else:
        shares = rng.dirichlet(np.full(classes, 3.0))
    steep = _steepness(risk, shares[-1], auc)
    codes = _cut(steep * risk + rng.logistic(size=size), shares)
    cells = np.array(column.categories, dtype=object)
    return cast(column, cells[codes])


def _steepness(risk: Floats, share: float, auc: float) -> float:
    """Log odds a unit of risk that give an outcome of this share this AUC, by halving the interval."""
    low, high = 0.0, _STEEPEST
    risk = np.sort(risk[:4000])
    for _ in range(30):
        steep = (low + high) / 2
        low, high = (steep, high) if _auc_of_risk(steep * risk, share) < auc else (low, steep)
    return (low + high) / 2


def _auc_of_risk(logit: Floats, share: float) -> float:
    """AUC of a true risk, in expectation over the outcomes. ``logit`` ascends."""
    low, high = -logit[-1] - 20.0, -logit[0] + 20.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if expit(logit + middle).mean() < share else (low, middle)
    positive = expit(logit + low)
    negative = 1.0 - positive
    below = np.cumsum(negative) - negative / 2
    return float((positive * below).sum() / (positive.sum() * negative.sum()))


def _standardised(values: Floats) -> Floats:
    spread = values.std()
    return np.asarray((values - values.mean()) / spread if spread > 0 else np.zeros_like(values))
