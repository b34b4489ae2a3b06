"""Linear mixed model with a random intercept for each patient, by restricted maximum likelihood.

A number y in row j of patient i is ``x_i b + u_i + e_ij``, with variances ``s_u^2`` and ``s_e^2``. Predictors
x are constant within a patient. So the likelihood depends on each patient's mean, number of values and sum of
squares alone. It is profiled over the ratio of the two variances, which leaves a search in one dimension.

References
----------
Laird, Ware (1982), "Random-effects models for longitudinal data", Biometrics 38.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth.evaluation.details import Effect, EffectRow, Effects
from dpsynth.evaluation.replication.evaluator import CAUTION, compared
from dpsynth.evaluation.replication.one_fit import Coefficient, Fit
from dpsynth.evaluation.tables import Tables
from dpsynth.studies.model import EffectsModel
from dpsynth.studies.terms import MAX_TERMS, Term, model_terms, term_values
from dpsynth.table.histories import Floats, Standardised

#: logarithm of the ratio of variances: from no difference between patients to none within them
_RATIOS = (-18.0, 18.0)


@dataclass(frozen=True)
class MixedFit:
    """Effects of p terms, and both standard deviations.

    ``fixed`` starts with the intercept, shape (1 + p,). ``covariance`` is theirs.
    """

    fixed: Floats
    covariance: Floats
    between: float
    within: float


def fit_mixed(values: Floats, predictors: Floats) -> MixedFit:
    """Fit the model to N patients.

    Parameters
    ----------
    values : ndarray of shape (N, rows)
        NaN where there is no value. Each patient has one.
    predictors : ndarray of shape (N, p)
        Constant within a patient, without an intercept.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the design is singular, or no patient has two different values.
    """
    from scipy.optimize import minimize_scalar

    own = Standardised.of(values)
    n, mean, within = own.count.astype(np.float64), own.mean, float((own.count * own.sd**2).sum())
    design = np.column_stack([np.ones(len(mean)), predictors])
    largest = np.abs(design).max(axis=0, initial=0.0)
    scale = np.where(largest > 0, largest, 1.0)
    design = design / scale
    freedom = n.sum() - design.shape[1]
    if within <= 0 or freedom <= 0 or np.linalg.matrix_rank(design) < design.shape[1]:
        raise np.linalg.LinAlgError("the model cannot be estimated")

    def solved(log_ratio: float) -> tuple[Floats, Floats, float, float]:
        ratio = np.exp(log_ratio)
        weights = n / (1.0 + n * ratio)
        inverse = np.linalg.inv((design * weights[:, None]).T @ design)
        fixed = inverse @ ((design * weights[:, None]).T @ mean)
        variance = (within + (weights * (mean - design @ fixed) ** 2).sum()) / freedom
        spread = np.log1p(n * ratio).sum() - np.linalg.slogdet(inverse)[1]
        return fixed, inverse, float(variance), float(freedom * np.log(variance) + spread)

    found = minimize_scalar(
        lambda at: solved(at)[3], bounds=_RATIOS, method="bounded", options={"xatol": 1e-6}
    )
    fixed, inverse, variance, _ = solved(float(found.x))
    between = float(np.sqrt(variance * np.exp(found.x)))
    return MixedFit(fixed / scale, variance * inverse / np.outer(scale, scale), between, variance**0.5)


@dataclass(frozen=True)
class Mixed:
    """One mixed model on one table: coefficients by term, and standard deviations. NaN if there is no fit."""

    fit: Fit
    between: float = np.nan
    within: float = np.nan


def mixed(tables: Tables, table: str, name: str, terms: Sequence[Term], level: float) -> Mixed:
    """Fit the model of a number to patients with a value and all predictors.

    Terms that do not vary are left out.
    """
    from scipy import stats

    frame = {"synthetic": tables.synthetic, "train": tables.train}[table]
    values = tables.histories[table].numbers[name]
    predictors = term_values(tables.schema, terms, frame)
    kept = ~np.isnan(values).all(axis=1) & ~np.isnan(predictors).any(axis=1)
    varied = np.ptp(predictors[kept], axis=0) > 0 if kept.any() else np.zeros(len(terms), bool)
    names = [term.name for term, varies in zip(terms, varied, strict=True) if varies]
    try:
        found = fit_mixed(values[kept], predictors[kept][:, varied])
    except np.linalg.LinAlgError:
        return Mixed(Fit(n=int(kept.sum()), problem="too few patients have several values, or terms repeat"))
    errors = np.sqrt(np.diag(found.covariance))
    half = float(stats.norm.ppf(0.5 + level / 2))
    coefficients = {
        term: Coefficient(b, e, b - half * e, b + half * e, 2.0 * float(stats.norm.sf(abs(b) / e)))
        for term, b, e in zip(names, found.fixed[1:].tolist(), errors[1:].tolist(), strict=True)
    }
    return Mixed(Fit(coefficients, int(kept.sum())), found.between, found.within)


def mixed_models(tables: Tables, name: str, level: float) -> tuple[Mixed, Mixed, Effects | None]:
    """The model of one number on both tables, real first, and a comparison of its effects if it has some."""
    assert tables.patients is not None
    predictors = tuple(map(str, tables.histories["train"].patients))
    # The outcome's name only has to differ from those of the predictors.
    model = EffectsModel("linear", f"{name} mean", predictors)
    terms = model_terms(tables.schema, model) if predictors else ()
    terms = terms if len(terms) <= MAX_TERMS else ()
    real, made = (mixed(tables, table, name, terms, level) for table in ("train", "synthetic"))
    if not terms:
        return real, made, None
    rows = []
    for term in terms:
        first, second = (side.fit.coefficients.get(term.name) for side in (real, made))
        rows.append(EffectRow(term.name, _effect(first), _effect(second), **compared(first, second, level)))
    effects = Effects(
        model="mixed",
        formula=f"mixed: {name} ~ {' + '.join(predictors)} + (1 | {tables.patients.unit})",
        outcome=name,
        event=None,
        measure="difference",
        level=level,
        rows=rows,
        n_real=real.fit.n,
        n_synthetic=made.fit.n,
        problems={
            side: fitted.fit.problem
            for side, fitted in (("real", real), ("synthetic", made))
            if fitted.fit.problem
        },
        separated=[],
        note=(
            "All rows of a patient are used. The model has a random intercept for each patient "
            f"(restricted maximum likelihood). {CAUTION}"
        ),
    )
    return real, made, effects


def _effect(found: Coefficient | None) -> Effect | None:
    return None if found is None else Effect(found.value, found.lower, found.upper, found.p_value)
