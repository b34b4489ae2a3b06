"""One regression fitted to one table: the same terms for every table, and maximum likelihood.

The terms are those of :mod:`dpsynth.studies.model`. Records with a value missing among the columns of the
model take no part (complete cases). Terms that one table cannot estimate are left out in that table only,
with the reason. These are a column without any value, a constant column, a category that does not occur, and
a category with only one outcome. The last is quasi-complete separation (Albert and Anderson 1984, "On the
existence of maximum likelihood estimates in logistic regression models"). The category's estimate is
infinite. At infinity its records do not affect the other coefficients, which are fitted without them.

The likelihoods are those of statsmodels. Predictors are standardised first, which keeps Newton's method in
range for any units. The slopes are scaled back exactly. A fit without estimates gives the reason in one
sentence: separation, a singular design, no event, too few records, no convergence. Intervals are Wald's:
normal for logistic and Cox models, Student's t for linear ones. Ties among event times use Efron's method.
Without ties it equals Breslow's, which is quicker and used then.

Under separation of a logistic regression the likelihood grows without end and no maximum exists. Ridge
regression then gives estimates instead (le Cessie and van Houwelingen 1992, "Ridge estimators in logistic
regression", Applied Statistics 41). Its weak normal penalty on every slope has a standard deviation of 2.5
log odds per standard deviation of the term. A Cauchy of that scale is in Gelman, Jakulin, Pittau and Su
(2008), "A weakly informative default prior distribution for logistic and other regression models", Annals of
Applied Statistics 2. The intercept is free. Firth's penalised likelihood is not concave. For the 30 terms of
breast_cancer and its first 285 records, its fits ended in twelve different maxima from twelve starts.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.checks import Counted, few
from dpsynth.evaluation.tables import random_rows
from dpsynth.studies.model import MAX_TERMS, EffectsModel, Kind, Term, column_values, model_terms
from dpsynth.table.schema import Schema

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class DesignMatrix:
    """One table, ready to be fitted.

    ``names`` holds the term of each column of ``x``. It is empty for a contrast that adjusts but is not
    reported, because the reference category does not occur.
    """

    names: tuple[str, ...]
    x: Floats  # shape (n, p); without an intercept
    y: Floats  # shape (n,); 0 and 1, or the numbers of a linear model
    duration: Floats | None
    n_table: int  # records of the table
    n_incomplete: int  # those left out because a value is missing
    n_settled: int  # those left out because their category settles the outcome
    dropped: tuple[tuple[str, str], ...]  # terms that this table cannot estimate, and why
    problem: str = ""  # why nothing can be fitted, in one sentence; empty otherwise
    counted: Counted = Counted.RECORDS


def design(frame: pd.DataFrame, schema: Schema, model: EffectsModel) -> DesignMatrix:
    """Turn a conformed frame into the arrays of a regression that fits its schema."""
    frame = frame[model.included(frame, schema)]

    def of(name: str) -> Floats:
        return column_values(schema, name, frame, log=model.logs.get(name))

    y = of(model.outcome)
    duration = None if model.duration is None else of(model.duration)
    known = ~np.isnan(y) if duration is None else ~np.isnan(y) & ~np.isnan(duration)
    values: dict[str, Floats] = {}
    absent: dict[tuple[str, int | None], str] = {}
    for column in model.columns(schema):
        numbers = of(column.name)
        if np.isnan(numbers[known]).all():
            absent[column.name, None] = "no value is present"
        else:
            values[column.name] = numbers
    complete = known & ~np.any([np.isnan(numbers) for numbers in values.values()] or [~known], axis=0)
    kept = complete
    reasons: dict[tuple[str, int | None], str] = {}
    if model.kind != "linear":
        kept, reasons = _unsettled(values, y, complete, schema, model)

    plan, dropped = _plan(model_terms(schema, model), schema, values, kept, {**absent, **reasons})
    problem = ""
    if not complete.any():
        one, what = schema.counted.one, "all values of the model" if known.any() else "a known outcome"
        problem = f"no {one} has {what}"
        # each of the columns is then constant or absent, which says nothing more
        plan, dropped = [], []
    elif not kept.any():
        settling = few(dict.fromkeys(name for name, _ in reasons))
        problem = f"the outcome is perfectly separated: {settling} gives it for every {schema.counted.one}"
        plan, dropped = [], []
    elif len(plan) > MAX_TERMS:
        problem = f"the model has {len(plan):,} terms, and at most {MAX_TERMS} are fitted"
        plan = []
    x = np.empty((int(kept.sum()), len(plan)))
    for position, (_, term) in enumerate(plan):
        x[:, position] = term.values(values[term.column][kept])
    return DesignMatrix(
        names=tuple(name for name, _ in plan),
        x=x,
        y=y[kept],
        duration=None if duration is None else duration[kept],
        n_table=len(frame),
        n_incomplete=int(len(frame) - complete.sum()),
        n_settled=int(complete.sum() - kept.sum()),
        dropped=tuple(dropped),
        problem=problem,
        counted=schema.counted,
    )


def _plan(
    every: Sequence[Term],
    schema: Schema,
    values: Mapping[str, Floats],
    kept: Flags,
    reasons: Mapping[tuple[str, int | None], str],
) -> tuple[list[tuple[str, Term]], list[tuple[str, str]]]:
    """Choose the terms that are fitted, each with the name it is reported under, and those that are dropped.

    ``reasons`` to drop are by column and category. Those of a whole column have None for the category.
    """
    plan: list[tuple[str, Term]] = []
    dropped: list[tuple[str, str]] = []
    for term in every:
        if term.column not in values:
            dropped.append((term.name, reasons[term.column, None]))
            continue
        numbers = values[term.column][kept]
        reason = reasons.get((term.column, term.category))
        if term.category is None:
            reason = "constant" if _constant(numbers) else None
        elif reason is None and not (numbers == term.category).any():
            reason = "the category does not occur"
        elif reason is None and not (numbers == 0).any():
            # The column still adjusts the others; its contrasts against the reference are unknown.
            reference = schema.column(term.column).categories[0]
            settled = reasons.get((term.column, 0))
            reason = (
                f"of the reference {reference}: {settled}"
                if settled
                else f"no {schema.counted.one} has {reference}"
            )
            if term.category != numbers.min():
                plan.append(("", term))
        if reason is None:
            plan.append((term.name, term))
        else:
            dropped.append((term.name, reason))
    return plan, dropped


def _unsettled(
    values: dict[str, Floats], y: Floats, complete: Flags, schema: Schema, model: EffectsModel
) -> tuple[Flags, dict[tuple[str, int | None], str]]:
    """Leave out the records of categories with only one outcome, and return the reasons.

    A Cox coefficient is infinite only without any event: a category of events alone still has its times.
    """
    kept = complete.copy()
    reasons: dict[tuple[str, int | None], str] = {}
    shown = schema.column(model.outcome).categories
    again = True
    # Leaving records out can empty the other outcome of another category.
    while again:
        again = False
        for name, numbers in values.items():
            if not schema.column(name).is_categorical or len(np.unique(y[kept])) < 2:
                continue
            size = len(schema.column(name).categories)
            codes = numbers[kept].astype(np.int64)
            count = np.bincount(codes, minlength=size)
            events = np.bincount(codes, weights=y[kept], minlength=size)
            for code in np.flatnonzero(count):
                always = events[code] == count[code] and model.kind == "logistic"
                if count[code] == count.sum() or not (events[code] == 0 or always):
                    continue
                every = f"every one of its {count[code]:,}" if count[code] > 1 else "its only"
                outcome = shown[1 if always else 0]
                record = schema.counted if count[code] > 1 else schema.counted.one
                reasons[name, int(code)] = f"{every} {record} has {model.outcome} = {outcome}"
                kept &= numbers != code
                again = True
    return kept, reasons


def _constant(numbers: Floats) -> bool:
    return not len(numbers) or float(np.ptp(numbers)) <= 1e-12 * float(np.abs(numbers).max())


#: distinct event times that a Cox model is fitted to: statsmodels takes time in proportion to them
MAX_EVENT_TIMES = 5_000
#: regular problems take about ten; under separation a coefficient grows by about one a step for ever
_STEPS = 30
_HALVINGS = 30
#: smaller relative pivots of the standardised design are rounding
_RANK_TOLERANCE = 1e-9
#: a slope per standard deviation beyond this, in a fit that did not converge, is on its way to infinity
_FAR = 5.0
#: the linear program that finds a separation takes several seconds at this size
_SEPARATION_RECORDS = 100_000


@dataclass(frozen=True)
class Coefficient:
    """An estimate on the additive scale: log odds, log hazard, or the outcome's own unit."""

    value: float
    std_error: float
    lower: float
    upper: float
    p_value: float  # of the two-sided Wald test that it is 0


@dataclass(frozen=True)
class Fit:
    """Estimates of one table for each term, without terms that the design dropped.

    ``separated`` says whether the problem is that no maximum of the likelihood of a logistic model was found.
    """

    coefficients: dict[str, Coefficient] = field(default_factory=dict)
    n: int = 0  # records that the model was fitted to
    problem: str = ""  # why there are no coefficients, in one sentence; empty otherwise
    remark: str = ""  # what was done to fit them, if anything unusual
    separated: bool = False


def fit_regression(
    data: DesignMatrix,
    kind: Kind,
    *,
    level: float = 0.95,
    rng: np.random.Generator,
    priors: Mapping[str, float] | None = None,
) -> Fit:
    """Fit one regression to one table.

    Intervals take the predictors as fixed and the outcomes of the records as independent. ``rng`` chooses
    the records of a Cox model with more than ``MAX_EVENT_TIMES`` distinct event times. ``priors`` are the
    standard deviations of normal penalties, by term, on the slopes of a logistic model. Errors and intervals
    then use the curvature at the maximum, the penalty's included.
    """
    remark = ""
    if kind == "cox" and not data.problem:
        data, remark = _fewer_event_times(data, rng)
    n = len(data.y)
    problem = data.problem or _unfit(data, kind)
    if problem:
        return Fit(n=n, problem=problem, remark=remark)
    centre, scale = data.x.mean(axis=0), data.x.std(axis=0)
    if not scale.all():  # possible only where a part of the records was drawn
        constant = data.names[int(np.argmin(scale))] or "a category"
        return Fit(
            n=n, problem=f"the term {constant} is constant among the {data.counted} used", remark=remark
        )
    z = (data.x - centre) / scale
    problem = _singular(z, data.names)
    if problem:
        return Fit(n=n, problem=problem, remark=remark)
    precision = None if priors is None else precisions(data.names, scale, priors)
    solved = _linear(z, data.y) if kind == "linear" else _likelihood(z, data, kind, precision)
    if isinstance(solved, str):
        return Fit(n=n, problem=solved, remark=remark, separated=kind == "logistic")
    from scipy import stats

    values, errors = solved[0] / scale, solved[1] / scale
    if not (np.isfinite(values).all() and np.isfinite(errors).all() and (errors > 0).all()):
        problem = f"the {data.counted} hold too little about the terms to give standard errors"
        return Fit(n=n, problem=problem, remark=remark)
    reference = stats.t(n - z.shape[1] - 1) if kind == "linear" else stats.norm
    half = float(reference.ppf(0.5 + level / 2)) * errors
    p_values = 2.0 * reference.sf(np.abs(values / errors))
    coefficients = {
        name: Coefficient(*map(float, (value, error, value - width, value + width, p)))
        for name, value, error, width, p in zip(data.names, values, errors, half, p_values, strict=True)
        if name  # contrasts without a reference adjust the others only
    }
    return Fit(coefficients, n, remark=remark)


def _fewer_event_times(data: DesignMatrix, rng: np.random.Generator) -> tuple[DesignMatrix, str]:
    assert data.duration is not None  # a Cox model has one
    distinct = len(np.unique(data.duration[data.y > 0]))
    if distinct <= MAX_EVENT_TIMES:
        return data, ""
    size = int(len(data.y) * MAX_EVENT_TIMES / distinct)
    part = random_rows(len(data.y), size, rng)
    remark = f"the Cox model was fitted to a random {size:,} of {len(data.y):,} {data.counted}"
    return replace(data, x=data.x[part], y=data.y[part], duration=data.duration[part]), remark


def _unfit(data: DesignMatrix, kind: Kind) -> str:
    """Say why the counts alone rule a fit out."""
    n, p = data.x.shape
    events = int((data.y > 0).sum())
    if kind == "cox" and not events:
        return "no event is observed"
    if kind == "logistic" and events in (0, n):
        return f"the outcome is the same in every {data.counted.one} used"
    if kind == "linear" and np.ptp(data.y) == 0:
        return f"the outcome is the same in every {data.counted.one} used"
    if not p:
        return "no term is left to estimate"
    if n < p + 2:
        some = f"{data.counted} are" if n > 1 else f"{data.counted.one} is"
        return f"{n:,} complete {some} too few for {p:,} term{'s' * (p > 1)}"
    if kind == "cox" and events < p:
        return f"{events:,} event{'s are' if events > 1 else ' is'} too few for {p:,} term{'s' * (p > 1)}"
    return ""


def _singular(z: Floats, names: tuple[str, ...]) -> str:
    """Say which terms are linear combinations of others, after a QR decomposition with pivoting."""
    from scipy.linalg import qr

    r, pivots = qr(z, mode="r", pivoting=True, check_finite=False)
    diagonal = np.abs(np.diag(r))
    aliased = [names[k] or "a category" for k in pivots[diagonal <= _RANK_TOLERANCE * diagonal[0]]]
    if not aliased:
        return ""
    return f"the design is singular: {few(aliased, 3)} can be computed from the other terms"


def _linear(z: Floats, y: Floats) -> tuple[Floats, Floats] | str:
    import statsmodels.api as sm

    result = sm.OLS(y, _with_intercept(z)).fit()
    if result.ssr <= 1e-20 * float(((y - y.mean()) ** 2).sum()):
        return "the outcome is an exact linear function of the terms, which leaves no standard error"
    return np.asarray(result.params)[1:], np.asarray(result.bse)[1:]


def _likelihood(
    z: Floats, data: DesignMatrix, kind: Kind, precision: Floats | None
) -> tuple[Floats, Floats] | str:
    """Slopes and standard errors of a logistic or Cox model, or why there are none."""
    first = 1 if kind == "logistic" else 0  # where the slopes begin, after the intercept
    start = np.zeros(first + z.shape[1])
    if first:
        start[0] = np.log(data.y.mean() / (1.0 - data.y.mean()))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # overflow and singularity are found out by their results
        model = _logistic(z, data.y) if first else _cox(z, data)
        model = model if precision is None else _Ridge(model, precision)
        found, errors = _newton(model, start)
    if errors is None:
        return _no_maximum(z, data, found[first:], kind)
    return found[first:], errors[first:]


def _newton(model: Any, start: Floats) -> tuple[Floats, Floats | None]:
    """Maximise a likelihood of statsmodels. Return the last point, and standard errors if it is a maximum.

    The method is Newton's with halved steps, as in Cox regression of other packages. The plain steps of
    statsmodels overshoot if a predictor has a long tail, and end in NaN.
    """
    point, height = start, float(model.loglike(start))
    for _ in range(_STEPS):
        information = -np.asarray(model.hessian(point))
        try:
            step = np.linalg.solve(information, np.asarray(model.score(point)))
            if np.abs(step).max() < 1e-7:
                return point, np.sqrt(np.diag(np.linalg.inv(information)))
        except np.linalg.LinAlgError:
            return point, None
        for _ in range(_HALVINGS):
            reached = float(model.loglike(point + step))
            # near the maximum the gain drowns in rounding
            if reached >= height - 1e-9 * abs(height):
                break
            step = step / 2.0
        else:
            return point, None
        point, height = point + step, reached
    return point, None


def _logistic(z: Floats, y: Floats) -> Any:
    from statsmodels.discrete.discrete_model import Logit

    return Logit(y, _with_intercept(z), check_rank=False)


def _cox(z: Floats, data: DesignMatrix) -> Any:
    from statsmodels.duration.hazard_regression import PHReg

    events = np.asarray(data.duration)[data.y > 0]
    ties = "efron" if len(np.unique(events)) < len(events) else "breslow"
    return PHReg(data.duration, z, status=data.y, ties=ties)


def _no_maximum(z: Floats, data: DesignMatrix, slopes: Floats, kind: Kind) -> str:
    """Say what kept the likelihood from having a maximum."""
    tractable = kind == "logistic" and len(z) <= _SEPARATION_RECORDS
    if tractable and separated(_with_intercept(z), data.y):
        return (
            "the outcome is separated: a combination of the terms gives it without an error for some or "
            f"all {data.counted}, and coefficients are infinite"
        )
    if np.abs(slopes).max() > _FAR:
        name = data.names[int(np.argmax(np.abs(slopes)))] or "a category"
        return f"the likelihood has no maximum: the coefficient of {name} grows without end"
    return f"the fit did not converge in {_STEPS} steps"


def _with_intercept(z: Floats) -> Floats:
    return np.column_stack([np.ones(len(z)), z])


#: standard deviation of the penalty of a slope, in log odds a standard deviation of its term
PRIOR_STD = 2.5


def separated(x: Floats, y: Floats) -> bool:
    """Whether some direction of the predictors gives the outcome of some records and is wrong for none.

    A linear program (Konis 2007, "Linear programming algorithms for detecting separated data in binary
    logistic regression models") maximises ``sum_i s_i x_i w`` over ``s_i x_i w >= 0`` and ``|w_j| <= 1``.
    ``s_i`` is 1 or -1 by the outcome. The logistic likelihood has a maximum if and only if the optimum is 0.
    ``x``, of shape (n, p), holds the intercept. ``y`` is 0 and 1.
    """
    from scipy.optimize import linprog

    signed = np.where(y > 0, 1.0, -1.0)[:, None] * x
    found = linprog(-signed.sum(axis=0), A_ub=-signed, b_ub=np.zeros(len(x)), bounds=(-1, 1), method="highs")
    return bool(found.success and -found.fun > 1e-6)


def slope_priors(data: DesignMatrix) -> dict[str, float]:
    """Return the standard deviation of the penalty of each slope, in log odds a unit of the term."""
    scales = data.x.std(axis=0)
    return {
        name: PRIOR_STD / float(scale)
        for name, scale in zip(data.names, scales, strict=True)
        if name and scale
    }


def precisions(names: tuple[str, ...], scale: Floats, priors: Mapping[str, float]) -> Floats:
    """Precision of the penalty of each slope of *standardised* terms, by default of the scale 2.5."""
    known = (priors.get(name, PRIOR_STD / s) * s for name, s in zip(names, scale, strict=True))
    return np.array([1.0 / std**2 for std in known])


@dataclass(frozen=True)
class _Ridge:
    """A likelihood of statsmodels times normal penalties of the slopes. The first coefficient is free."""

    model: Any
    precision: Floats

    def loglike(self, point: Floats) -> float:
        return float(self.model.loglike(point)) - 0.5 * float(self.precision @ point[1:] ** 2)

    def score(self, point: Floats) -> Floats:
        return np.asarray(self.model.score(point)) - np.append(0.0, self.precision * point[1:])

    def hessian(self, point: Floats) -> Floats:
        return np.asarray(self.model.hessian(point)) - np.diag(np.append(0.0, self.precision))
