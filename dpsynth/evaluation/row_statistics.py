"""Numbers that rows of patients determine: lags, spread, shares of rows, correlations within a row.

Each function takes a table with its resamples. It returns one number a resample, the table's own first, and
the number of patients that it rests on. A value is NaN where the numbers do not vary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpsynth.evaluation.effects import effect_rows
from dpsynth.evaluation.estimates import Estimate
from dpsynth.evaluation.regression import Coefficient, Fit
from dpsynth.evaluation.results import Row
from dpsynth.evaluation.tables import Tables
from dpsynth.patients.histories import Histories
from dpsynth.patients.series import Floats, Standardised, packed
from dpsynth.studies.model import MAX_TERMS, EffectsModel, Term, model_terms, term_values

# ------------------------------------------------------------------------------------------------
# Patients drawn with replacement: intervals of numbers that rows of one patient determine together.
#
# Rows of a patient are not independent. So whole patients are drawn, never rows (cluster bootstrap: Davison
# and Hinkley 1997, "Bootstrap methods and their application", section 3.8). Each number is a function of
# sums over patients. A resample changes only how often a patient counts in the sums.

#: resamples behind an interval
RESAMPLES = 200


@dataclass(frozen=True)
class Resampled:
    """Histories of N patients, and how often each counts: shape (1 + resamples, N).

    The first row of ``weights`` holds ones. So the first of any 1 + resamples numbers is that of the table.
    """

    histories: Histories
    weights: Floats

    @classmethod
    def of(cls, histories: Histories, rng: np.random.Generator, resamples: int = RESAMPLES) -> Resampled:
        """Draw the resamples."""
        n = len(histories.rows)
        drawn = (np.bincount(rng.integers(n, size=n), minlength=n) for _ in range(resamples))
        return cls(histories, np.vstack([np.ones(n), *drawn]).astype(np.float64))

    def sums(self, *values: Floats) -> Floats:
        """Sums over patients of k numbers each, shape (k, 1 + resamples)."""
        return np.asarray((self.weights @ np.stack(values, axis=1)).T)


@dataclass(frozen=True)
class CellCounts:
    """Events of patients in numbered cells of two tables, such as gaps by length.

    ``cell`` and ``patient`` have one entry an event, for each of the two tables.
    """

    cell: tuple[NDArray[np.int64], NDArray[np.int64]]
    patient: tuple[NDArray[np.int64], NDArray[np.int64]]
    size: int

    @classmethod
    def of(cls, first: Floats, second: Floats) -> tuple[CellCounts, Floats]:
        """The cells of all different values of two tables (N, k), without NaN, and these values in order."""
        patients, _ = zip(*(np.nonzero(~np.isnan(values)) for values in (first, second)), strict=True)
        flat = [values[~np.isnan(values)] for values in (first, second)]
        levels, cell = np.unique(np.concatenate(flat), return_inverse=True)
        cells = (cell[: len(flat[0])], cell[len(flat[0]) :])
        return cls(cells, patients, len(levels)), levels

    def distances(
        self, real: Resampled, synthetic: Resampled, distance: Callable[[Floats, Floats], float]
    ) -> Floats:
        """A distance of the shares of events over the cells, in each resample that both tables have.

        NaN where a table has no event.
        """
        if not all(map(len, self.cell)):
            return np.full(len(real.weights), np.nan)
        found = []
        for pair in zip(real.weights, synthetic.weights, strict=False):
            counts = (
                np.bincount(cell, weights=weights[patient], minlength=self.size)
                for cell, patient, weights in zip(self.cell, self.patient, pair, strict=True)
            )
            found.append(distance(*(count / max(count.sum(), 1e-300) for count in counts)))
        return np.array(found)


def total_variation(first: Floats, second: Floats) -> float:
    """Total variation distance of two vectors of shares."""
    return 0.5 * float(np.abs(first - second).sum())


def kolmogorov_smirnov(first: Floats, second: Floats) -> float:
    """Largest difference of the cumulated shares of values in ascending order."""
    return float(np.abs(np.cumsum(first - second)).max())


def interval(values: Floats, level: float) -> Estimate:
    """The first number with the quantiles of the others, which are resamples."""
    tail = (1.0 - level) / 2
    if np.isnan(values[1:]).all():
        return Estimate(float(values[0]), np.nan, np.nan)
    lower, upper = np.nanquantile(values[1:], (tail, 1.0 - tail))
    return Estimate(float(values[0]), float(lower), float(upper))


def distance_interval(values: Floats, level: float) -> Estimate:
    """The same for a distance in [0, 1], by reflected quantiles.

    Chance makes a distance larger in a sample, and in a resample once more. Reflection takes that back.
    """
    plain = interval(values, level)
    lower, upper = (float(np.clip(2 * plain.value - end, 0.0, 1.0)) for end in (plain.upper, plain.lower))
    return Estimate(plain.value, lower, max(upper, plain.value))


# ------------------------------------------------------------------------------------------------
# Time from a patient's first row to a terminal event, by the estimator of Kaplan and Meier.
#
# Patients without the event are last seen in their last row.
#
# References ---------- Kaplan, Meier (1958), "Nonparametric estimation from incomplete observations", JASA
# 53.


def follow_up(histories: Histories, order: str, event: str) -> tuple[Floats, NDArray[np.bool_]]:
    """The time from each patient's first row to the last, and whether the event stands there."""
    times = histories.numbers[order]
    ended = (histories.numbers[event] == 1).any(axis=1)
    return np.nanmax(times, axis=1, initial=-np.inf) - times[:, 0], ended


def kaplan_meier(
    place: NDArray[np.int64], ended: NDArray[np.bool_], weights: Floats, size: int
) -> tuple[Floats, Floats]:
    """Share without the event after each of so many times in order, and the patients at risk.

    ``place`` is each patient's time among them.
    """
    seen = np.bincount(place, weights=weights, minlength=size)
    at_risk = np.cumsum(seen[::-1])[::-1]
    events = np.bincount(place[ended], weights=weights[ended], minlength=size)
    return np.cumprod(1.0 - events / np.where(at_risk > 0, at_risk, 1.0)), at_risk


def survival_distance(real: Resampled, synthetic: Resampled, order: str, event: str, fewest: int) -> Floats:
    """Largest difference of both curves while so many patients are at risk in both tables.

    One number a resample. NaN where a table has fewer patients.
    """
    (first, one), (second, other) = (follow_up(side.histories, order, event) for side in (real, synthetic))
    levels, place = np.unique(np.concatenate([first, second]), return_inverse=True)
    places = (place[: len(first)], place[len(first) :])
    found = []
    known = np.zeros(len(levels), bool)
    for number, pair in enumerate(zip(real.weights, synthetic.weights, strict=True)):
        curves = [
            kaplan_meier(at, ended, weights, len(levels))
            for at, ended, weights in zip(places, (one, other), pair, strict=True)
        ]
        if number == 0:
            known = (curves[0][1] >= fewest) & (curves[1][1] >= fewest)
        apart = np.abs(curves[0][0] - curves[1][0])[known]
        found.append(float(apart.max()) if len(apart) else np.nan)
    return np.array(found)


# ------------------------------------------------------------------------------------------------
# Linear mixed model with a random intercept for each patient, by restricted maximum likelihood.
#
# A number y in row j of patient i is ``x_i b + u_i + e_ij``, with variances ``s_u^2`` and ``s_e^2``.
# Predictors x are constant within a patient. So the likelihood depends on each patient's mean, number of
# values and sum of squares alone. It is profiled over the ratio of the two variances, which leaves a search
# in one dimension.
#
# References ---------- Laird, Ware (1982), "Random-effects models for longitudinal data", Biometrics 38.

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


def mixed_models(tables: Tables, name: str, level: float) -> tuple[Mixed, Mixed, list[Row]]:
    """The model of one number on both tables, real first, and the rows of its effects on both."""
    # The outcome's name only has to differ from those of the predictors.
    predictors = patient_columns(tables)
    model = EffectsModel("linear", f"{name} mean", predictors)
    terms = model_terms(tables.schema, model) if predictors else ()
    terms = terms if len(terms) <= MAX_TERMS else ()
    real, made = (mixed(tables, table, name, terms, level) for table in ("train", "synthetic"))
    return real, made, effect_rows((term.name for term in terms), real.fit, made.fit, level)


def patient_columns(tables: Tables) -> tuple[str, ...]:
    """The columns that have one value a patient: the predictors of a mixed model."""
    return tuple(map(str, tables.histories["train"].patients))


class RowStatistic(NamedTuple):
    """A number of a table and of its resamples, shape (1 + resamples,), and how many patients it rests on."""

    numbers: Floats
    patients: int


def mean_rows(table: Resampled) -> RowStatistic:
    """Mean number of rows a patient."""
    rows = table.histories.rows
    return _ratio(table, rows.astype(np.float64), np.ones(len(rows)))


def measured_share(table: Resampled, name: str) -> RowStatistic:
    """Share of rows with a value."""
    measured = (~np.isnan(table.histories.numbers[name])).sum(axis=1)
    return _ratio(table, measured.astype(np.float64), table.histories.rows.astype(np.float64))


def falling_share(table: Resampled, name: str) -> RowStatistic:
    """Share of steps from one value to the next that fall."""
    steps = np.diff(packed(table.histories.numbers[name])[0], axis=1)
    known = (~np.isnan(steps)).sum(axis=1)
    return _ratio(table, (steps < 0).sum(axis=1).astype(np.float64), known.astype(np.float64))


def short_gaps(table: Resampled, order: str, longest: float) -> RowStatistic:
    """Share of gaps up to a length."""
    gaps = gaps_of(table.histories.numbers[order])
    short = (gaps <= longest).sum(axis=1)
    return _ratio(table, short.astype(np.float64), (~np.isnan(gaps)).sum(axis=1).astype(np.float64))


def gap_quantiles(table: Resampled, order: str, probabilities: Sequence[float]) -> list[RowStatistic]:
    """The smallest gaps up to which so many lie."""
    gaps = gaps_of(table.histories.numbers[order])
    patient, place = np.nonzero(~np.isnan(gaps))
    lengths = gaps[patient, place]
    if not len(lengths):
        return [RowStatistic(np.full(len(table.weights), np.nan), 0) for _ in probabilities]
    by_length = np.argsort(lengths, kind="stable")
    patient, lengths = patient[by_length], lengths[by_length]
    found = []
    for weights in table.weights:
        cumulated = np.cumsum(weights[patient])
        wanted = np.array(probabilities) * cumulated[-1]
        # Sums of shares lose a digit where a gap ends them exactly.
        place = np.searchsorted(cumulated, wanted * (1.0 - 1e-12))
        found.append(lengths[np.minimum(place, len(lengths) - 1)])
    patients = len(np.unique(patient))
    return [RowStatistic(numbers, patients) for numbers in np.array(found).T]


def changed_share(table: Resampled, name: str) -> RowStatistic:
    """Share of patients with more than one category, of those with at least two values."""
    values = table.histories.numbers[name]
    several = (~np.isnan(values)).sum(axis=1) > 1
    filled = np.where(several[:, None], values, 0.0)
    changed = several & (np.nanmax(filled, axis=1) > np.nanmin(filled, axis=1))
    return _ratio(table, changed.astype(np.float64), several.astype(np.float64))


def lag_correlation(table: Resampled, name: str, lag: int) -> RowStatistic:
    """Correlation of a number with the patient's value ``lag`` values later."""
    (values,) = packed(table.histories.numbers[name])
    return _correlation(table, values[:, :-lag], values[:, lag:])


def row_correlation(table: Resampled, first: str, second: str) -> RowStatistic:
    """Correlation, within a row, of the distances of two numbers from the patient's own means."""
    return _correlation(
        table, *(deviations_from_mean(table.histories.numbers[name]) for name in (first, second))
    )


def between_sd(table: Resampled, name: str) -> RowStatistic:
    """Standard deviation of patients' means."""
    own = Standardised.of(table.histories.numbers[name])
    has = own.count > 0
    centre = own.mean[has].mean() if has.any() else 0.0
    mean = np.where(has, own.mean - centre, 0.0)
    n, total, squares = table.sums(has.astype(np.float64), mean, mean * mean)
    with np.errstate(all="ignore"):
        return RowStatistic(np.sqrt(np.maximum(squares / n - (total / n) ** 2, 0.0)), int(has.sum()))


def within_sd(table: Resampled, name: str) -> RowStatistic:
    """Standard deviation around patients' means, with one degree of freedom less for each patient."""
    own = Standardised.of(table.histories.numbers[name])
    count, has = (part.astype(np.float64) for part in (own.count, own.count > 0))
    squares, freedom = table.sums(count * own.sd**2, count - has)
    with np.errstate(all="ignore"):
        return RowStatistic(np.sqrt(squares / freedom), int((own.count > 1).sum()))


def deviations_from_mean(values: Floats) -> Floats:
    """Distance of each value from its history's mean, NaN where there is only one value."""
    own = Standardised.of(values)
    return np.where((own.count > 1)[:, None], values - own.mean[:, None], np.nan)


def gaps_of(times: Floats) -> Floats:
    """Times between consecutive rows, shape (N, most - 1), NaN behind the last row."""
    return np.diff(times, axis=1)


def transitions(values: Floats, categories: int) -> Floats:
    """Each category and the next one as one number, ``from * categories + to``, NaN behind the last."""
    (codes,) = packed(values)
    return codes[:, :-1] * categories + codes[:, 1:]


def transition_distance(origin: NDArray[np.int64], first: Floats, second: Floats) -> float:
    """Mean total variation distance of the next category given the last, by the shares of the first table.

    ``origin`` is the category before, of each cell. If the second table lacks a category, its distance is 1.
    """
    rows = [np.bincount(origin, weights=share) for share in (first, second)]
    given = [
        share / np.where(row > 0, row, 1.0)[origin] for share, row in zip((first, second), rows, strict=True)
    ]
    apart = 0.5 * np.bincount(origin, weights=np.abs(given[0] - given[1]))
    return float((rows[0] * np.where(rows[1] > 0, apart, 1.0)).sum())


def _ratio(table: Resampled, above: Floats, below: Floats) -> RowStatistic:
    total, of = table.sums(above, below)
    with np.errstate(all="ignore"):
        return RowStatistic(total / np.where(of > 0, of, np.nan), int((below > 0).sum()))


def _correlation(table: Resampled, first: Floats, second: Floats) -> RowStatistic:
    """Pearson's correlation of all pairs without NaN, from sums by patient."""
    both = ~np.isnan(first) & ~np.isnan(second)
    if not both.any():
        return RowStatistic(np.full(len(table.weights), np.nan), 0)
    a, b = (_standardised(values, both) for values in (first, second))
    parts = (both.astype(np.float64), a, b, a * a, b * b, a * b)
    n, x, y, xx, yy, xy = table.sums(*(part.sum(axis=1) for part in parts))
    with np.errstate(all="ignore"):
        spread = np.maximum(xx / n - (x / n) ** 2, 0.0) * np.maximum(yy / n - (y / n) ** 2, 0.0)
        found = (xy / n - x * y / n**2) / np.sqrt(np.where(spread > 1e-12, spread, np.nan))
    return RowStatistic(found, int(both.any(axis=1).sum()))


def _standardised(values: Floats, known: NDArray[np.bool_]) -> Floats:
    """Mean 0 and standard deviation 1: sums of squares lose digits far from 0. Equal values become zeros."""
    mean, sd = values[known].mean(), values[known].std()
    scale = sd if sd > 1e-9 * max(abs(mean), 1e-300) else np.inf
    return np.where(known, (values - mean) / scale, 0.0)
