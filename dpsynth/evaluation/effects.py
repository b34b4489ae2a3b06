"""Study replication: does a regression give the same results on the synthetic as on the real table?

The same regression (logistic, linear or Cox) is fitted to both tables with the same terms
(:mod:`~dpsynth.evaluation.regression`). If it was pre-specified, its private estimates stand
beside them, matched by the terms' names. Comparisons are on the additive scale (log odds, log hazard, or the
outcome's unit), where the intervals are symmetric. Every number here uses real records without noise: it is
confidential.

A regression uses the records that have every value of its columns. A laboratory panel may be missing in half
of the records. A regression on all columns then has few records left, or none. The default regression
therefore leaves out the columns that remove most records. A requested regression is fitted as it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.checks import Counted, few
from dpsynth.evaluation.regression import (
    PRIOR_STD,
    Coefficient,
    DesignMatrix,
    Fit,
    design,
    fit_regression,
    slope_priors,
)
from dpsynth.evaluation.results import Evaluation, Findings, Measure, Row, frame_rows
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import Progress, Tables, random_rows, silent
from dpsynth.studies.model import EffectsModel, model_terms
from dpsynth.studies.study import MEASURES, Estimates
from dpsynth.table.schema import Schema

GROUP = "Replication"

#: what the intervals of the synthetic table do not say
CAUTION = (
    "The synthetic intervals treat the synthetic {records} as an independent sample of real ones. They leave "
    "out the noise added for privacy and the error of the generator. The rows of a table adjusted to noisy "
    "counts are not independent. So these intervals are too short."
)

_OVERLAP = "mean overlap of the intervals (Karr), 0 where disjoint"
#: what the measures of the synthetic table's fit are, and those of private estimates
_EFFECTS = {
    "same_sign": "share of estimates with the same sign",
    "same_decision": "share of terms significant on both sides in one direction, or on neither",
    "covered": "share of synthetic estimates inside the real interval",
    "overlap_mean": _OVERLAP,
    "standardised_difference_median": "median |synthetic - real| in real standard errors",
}
_DECLARED = {
    "same_sign": "share of private estimates of real sign",
    "same_decision": (
        "share of terms significant in private and real estimates in one direction, or in neither"
    ),
    "covered": "share of private estimates inside the real interval",
    "holds_real": "share of private intervals that cover the real estimate",
    "overlap_mean": _OVERLAP,
    "standardised_difference_median": "median |private - real| in real standard errors",
}


def interval_overlap(first: tuple[float, float], second: tuple[float, float]) -> float | None:
    """Karr's overlap of two confidence intervals: the part they share, relative to each, averaged.

    ``J = (u - l) / 2 * (1 / (u1 - l1) + 1 / (u2 - l2))`` with ``l = max(l1, l2)`` and ``u = min(u1, u2)``. It
    is None if an interval has no length. For disjoint intervals ``u < l`` and J is negative, as in the R
    package synthpop. Karr, Kohnen, Oganian, Reiter and Sanil (2006), "A framework for evaluating the utility
    of data altered to protect confidentiality", The American Statistician 60(3).

    Examples
    --------
    >>> interval_overlap((0.0, 2.0), (1.0, 5.0)), interval_overlap((0.0, 1.0), (3.0, 4.0))
    (0.375, -2.0)
    """
    lengths = (first[1] - first[0], second[1] - second[0])
    if not min(lengths) > 0:
        return None
    shared = min(first[1], second[1]) - max(first[0], second[0])
    return 0.5 * (shared / lengths[0] + shared / lengths[1])


def compare_effects(real: Coefficient | None, other: Coefficient | None, level: float) -> dict[str, Any]:
    """Compare an estimate with the real one, both with intervals of this level. Empty unless both are known.

    ``same_decision`` says whether both p-values lead to the same report: above 0, below 0, or no effect
    shown. A p-value below ``1 - level`` is a decision for an effect. ``covered`` says whether the estimate
    lies in the real interval. ``standardised_difference`` is in real standard errors.
    """
    if real is None or other is None:
        return {}
    return {
        "same_sign": bool(np.sign(real.value) == np.sign(other.value)),
        "same_decision": _decision(real, level) == _decision(other, level),
        "covered": real.lower <= other.value <= real.upper,
        "overlap": interval_overlap((real.lower, real.upper), (other.lower, other.upper)),
        "standardised_difference": abs(other.value - real.value) / real.std_error,
    }


def _decision(coefficient: Coefficient, level: float) -> float:
    return float(np.sign(coefficient.value)) if coefficient.p_value < 1 - level else 0.0


def mean(values: Iterable[float | None]) -> float | None:
    """Mean of those that are defined, None without any."""
    defined = [value for value in values if value is not None]
    return float(np.mean(defined)) if defined else None


def median(values: Iterable[float | None]) -> float | None:
    """Median of those that are defined, None without any."""
    defined = [value for value in values if value is not None]
    return float(np.median(defined)) if defined else None


#: share of the records, of each table, that the usual study has left at least
COMPLETE = 0.5


def enough_complete(
    model: EffectsModel, schema: Schema, frames: Mapping[str, pd.DataFrame]
) -> tuple[EffectsModel, str]:
    """Leave out predictors, the most costly first, until half of the records of each table are complete.

    Return the model, with at least one predictor, and a sentence naming those left out, or empty.
    """
    names = [column.name for column in model.columns(schema)]
    always = [name for name in (model.outcome, model.duration) if name is not None]
    missing: dict[str, NDArray[np.bool_]] = {}
    known: dict[str, NDArray[np.bool_]] = {}
    for table, frame in frames.items():
        known[table] = frame[always].notna().all(axis=1).to_numpy()
        missing[table] = frame[names].isna().to_numpy()

    def complete(kept: list[int]) -> tuple[float, NDArray[np.float64]]:
        """Smallest share of records, of those with a known outcome, that have all these predictors.

        And the smallest share that have all but one, for each one.
        """
        shares = [np.ones(1 + len(kept))]
        for table in frames:
            absent = missing[table][known[table]][:, kept]
            if len(absent):
                count = absent.sum(axis=1)
                gained = absent[count == 1].sum(axis=0)
                shares.append((np.append(0, gained) + (count == 0).sum()) / len(absent))
        least = np.min(shares, axis=0)
        return float(least[0]), least[1:]

    kept, left_out = list(range(len(names))), []
    while (now := complete(kept))[0] < COMPLETE and len(kept) > 1:
        worst = kept[int(now[1].argmax())]
        if now[1].max() == now[0]:
            # no single column helps, as where two are missing in the same records: take the emptiest
            worst = max(kept, key=lambda k: max(float(missing[t][:, k].mean()) for t in frames))
        kept.remove(worst)
        left_out.append(worst)
    if not left_out:
        return model, ""
    told = []
    for k in left_out:
        table = max(frames, key=lambda t: float(missing[t][:, k].mean()))
        told.append(
            f"{names[k]} (missing in {missing[table][:, k].mean():.1%} of the {table} {schema.counted})"
        )
    predictors = tuple(names[k] for k in kept)
    sentence = (
        f"Left out of the usual study, because it needs every value of a {schema.counted.one}: {few(told)}."
    )
    units = {name: step for name, step in model.units.items() if name in predictors}
    logs = {name: log for name, log in model.logs.items() if name in (*predictors, model.outcome)}
    return replace(model, predictors=predictors, units=units, logs=logs), sentence


#: of an estimate beside the real one, None where one of both is not known
COMPARISONS = ("same_sign", "same_decision", "covered", "holds_real", "overlap", "standardised_difference")


def effect_row(
    term: str, side: str, found: Coefficient | None, compared: Row | None = None, *, ratio: bool = False
) -> Row:
    """A row of the frame ``"effects"``: the estimate of a term on one side, None if there is none.

    ``side`` is ``real``, ``synthetic``, or ``declared`` for private estimates of a pre-specified regression.
    ``compared`` has its :data:`COMPARISONS` with the real one. ``ratio``: the coefficient is a logarithm.
    """
    ends: dict[str, float | None] = dict.fromkeys(("estimate", "lower", "upper", "p_value"))
    if found is not None:
        ends = {"estimate": found.value, "lower": found.lower, "upper": found.upper}
        if ratio:
            # beyond exp(700) there is no float
            ends = {
                name: math.exp(min(max(value, -700.0), 700.0))
                for name, value in ends.items()
                if value is not None
            }
        ends["p_value"] = found.p_value
    return {"term": term, "side": side, **ends, **dict.fromkeys(COMPARISONS), **(compared or {})}


@dataclass(frozen=True)
class Replication:
    """One regression on two tables: a row for each term and table, also for terms that cannot be estimated.

    ``separated`` holds the tables whose outcomes separate. If there are any, both fits are ridge regressions.
    """

    rows: tuple[Row, ...]  # see effect_row
    real: Fit
    synthetic: Fit
    real_design: DesignMatrix
    synthetic_design: DesignMatrix
    sampled: tuple[str, ...]  # the tables, "real" or "synthetic", of which only a random part was used
    level: float  # of the intervals
    model: EffectsModel  # what was fitted: of the usual study, predictors may have been left out
    remark: str = ""  # what was left out, in one sentence; empty if nothing was
    separated: tuple[str, ...] = ()

    @property
    def sides(self) -> dict[str, Fit]:
        """The two fits by table."""
        return {"real": self.real, "synthetic": self.synthetic}

    @property
    def compared(self) -> int:
        """Number of terms that both tables estimate."""
        return sum(row["same_sign"] is not None for row in self.rows)

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the terms."""
        return tuple(dict.fromkeys(row["term"] for row in self.rows))

    def notes(self, counted: Counted = Counted.RECORDS) -> tuple[str, ...]:
        """Return everything unusual about the two fits, a sentence each, the gravest first."""
        found: list[str] = [self.remark] if self.remark else []
        if self.separated:
            found.append(
                f"A combination of the terms gives {self.model.outcome} without an error for some or all "
                f"of the {' and of the '.join(self.separated)} {counted}, so that odds ratios without end "
                "fit best. Both tables were fitted with a normal prior on every slope instead (ridge "
                f"regression, standard deviation {PRIOR_STD:g} log odds a real standard deviation of the "
                "term), which draws estimates towards no effect."
            )
        sides = (("real", self.real, self.real_design), ("synthetic", self.synthetic, self.synthetic_design))
        for name, fitted, _ in sides:
            if fitted.problem:
                found.append(f"No estimate from the {name} {counted}: {fitted.problem}.")
        for name, _, data in sides:
            if data.dropped:
                found.append(f"Left out in the {name} {counted}: {_listed(data.dropped)}.")
            if data.n_settled:
                found.append(
                    f"{data.n_settled:,} of {data.n_table:,} {name} {counted}, whose category settles the "
                    "outcome, say nothing about the other terms and were left out."
                )
        for name, fitted, data in sides:
            if data.n_incomplete:
                found.append(
                    f"{data.n_incomplete:,} of {data.n_table:,} {name} {counted} "
                    f"({data.n_incomplete / data.n_table:.1%}) lack a value and were left out."
                )
            if name in self.sampled:
                found.append(f"A random {data.n_table:,} of the {name} {counted} were used.")
            if fitted.remark:
                found.append(f"In the {name} {counted} {fitted.remark}.")
        return tuple(found)


def replicate(
    synthetic: pd.DataFrame,
    real: pd.DataFrame,
    schema: Schema,
    model: EffectsModel,
    *,
    level: float = 0.95,
    rng: np.random.Generator,
    limit: int = 100_000,
) -> Replication:
    """Fit one regression to two conformed frames and compare the coefficients.

    Intervals take the predictors as fixed and the outcomes of the records as independent. ``rng`` chooses
    the records that are used of a table with more than ``limit``.
    """
    frames = {"real": real, "synthetic": synthetic}
    used = {name: frame.iloc[random_rows(len(frame), limit, rng)] for name, frame in frames.items()}
    model, remark = enough_complete(model, schema, used) if model.sparing else (model, "")
    fits: list[Fit] = []
    designs: list[DesignMatrix] = []
    for frame in used.values():
        designs.append(design(frame, schema, model))
        fits.append(fit_regression(designs[-1], model.kind, level=level, rng=rng))
    separated = tuple(name for name, fitted in zip(used, fits, strict=True) if fitted.separated)
    if separated:
        # the same regression for both, or a difference between estimators would pass for one between tables
        priors = slope_priors(designs[0]) if designs[0].names else {}
        fits = [fit_regression(data, model.kind, level=level, rng=rng, priors=priors) for data in designs]
    names = [term.name for term in model_terms(schema, model)]
    rows = effect_rows(names, fits[0], fits[1], level, ratio=model.kind != "linear")
    return Replication(
        rows=tuple(rows),
        real=fits[0],
        synthetic=fits[1],
        real_design=designs[0],
        synthetic_design=designs[1],
        sampled=tuple(name for name, frame in frames.items() if len(frame) > limit),
        level=float(level),
        model=model,
        remark=remark,
        separated=separated,
    )


def effect_rows(
    terms: Iterable[str], real: Fit, synthetic: Fit, level: float, *, ratio: bool = False
) -> list[Row]:
    """The real and the synthetic row of each term."""
    rows = []
    for term in terms:
        first, second = (fitted.coefficients.get(term) for fitted in (real, synthetic))
        compared = compare_effects(first, second, level)
        rows.append(effect_row(term, "real", first, ratio=ratio))
        rows.append(effect_row(term, "synthetic", second, compared, ratio=ratio))
    return rows


def _listed(dropped: tuple[tuple[str, str], ...]) -> str:
    """Terms by reason. A reason that concerns many is given once."""
    by_reason: dict[str, list[str]] = {}
    for name, why in dropped:
        by_reason.setdefault(why, []).append(name)
    return few((f"{few(names, 6)} ({why})" for why, names in by_reason.items()), 6, "; ")


def replication(
    tables: Tables, settings: Settings, rng: np.random.Generator, progress: Progress = silent
) -> Findings:
    """Fit each regression to the synthetic and to the real records, and report the agreement.

    Measures ``effects_...`` are over the terms that both tables can estimate. In ``effects_overlap_mean``
    disjoint intervals count as 0. The frame ``"effects"`` keeps the negative number. Names of the second
    study end in ``[2]``, and so on. If ``tables.declared`` holds estimates of the same formula, their
    measures begin with ``declared_``.
    """
    studies = settings.studies(tables.schema)
    findings = Findings()
    for number, study in enumerate(studies):
        with np.errstate(all="ignore"):  # of numbers near the ends of their range; the fit says what failed
            result = replicate(
                tables.synthetic,
                tables.train,
                tables.schema,
                study,
                level=settings.level,
                rng=rng,
            )
        progress((number + 1) / len(studies))
        formula = study.formula(tables.schema)
        declared = [estimates for estimates in tables.declared if estimates.formula == formula]
        # the first study keeps its plain names
        findings.join(_told(result, declared, tables.schema, "" if number == 0 else f"[{number + 1}]"))
    return findings


def _told(result: Replication, declared: Sequence[Estimates], schema: Schema, suffix: str) -> Findings:
    model, terms = result.model, result.terms
    rows = [*result.rows]
    notes = result.notes(schema.counted)
    over = f"over {result.compared} of {len(terms)} terms of the {model.kind} model of {model.outcome}"
    if not result.compared:
        told = [f"{name}: {side.problem}" for name, side in result.sides.items() if side.problem]
        over += f". {'. '.join(told) or 'No term can be estimated from both tables'}"
    measures = _measures([row for row in rows if row["side"] == "synthetic"], "effects", _EFFECTS, over)
    study = None
    if declared:
        # of several studies of one formula the one that shares most terms with the regression
        estimates = max(declared, key=lambda told: len(set(told.terms) & set(terms)))
        study = estimates.study
        if left := [term for term in estimates.terms if term not in terms]:
            notes += (
                f"Not compared, because the regression fitted here has no such terms: {few(left)} "
                f"(pre-specified in {study}, perhaps for other increments).",
            )
        private = as_fit(estimates, result.level)
        beside = [_declared(term, result, private) for term in terms]
        rows += beside
        alike = sum(row["same_sign"] is not None for row in beside)
        over = f"over {alike} of {len(terms)} terms of the pre-specified regression {study}"
        measures += _measures(beside, "declared", _DECLARED, over)
    found = Findings([replace(measure, name=measure.name + suffix) for measure in measures])
    event = None if model.kind == "linear" else str(schema.column(model.outcome).categories[-1])
    add_regression(
        found,
        f"effects{suffix}",
        rows,
        result.sides,
        study=study,
        model=model.kind,
        formula=model.formula(schema),
        outcome=model.outcome,
        event=event,
        measure=MEASURES[model.kind],
        level=result.level,
        separated=result.separated,
        note=" ".join((*notes, schema.counted.fill(CAUTION))),
    )
    return found


def add_regression(
    found: Findings,
    name: str,
    rows: Sequence[Row],
    fits: Mapping[str, Fit],
    *,
    separated: Sequence[str] = (),
    **facts: object,
) -> None:
    """Append a regression to the frames ``"regressions"``, one row, and ``"effects"``, its ``rows``.

    ``fits`` are those of the ``real`` and of the ``synthetic`` records. ``problem_real`` says why one failed,
    and ``separated_real`` whether its outcomes are separated. ``facts`` are the columns of its row:
    ``study``, the name of a pre-specified one or None, ``model``, ``formula``, ``outcome``, ``event``,
    ``measure``, ``level`` of the intervals, and a ``note``.
    """
    row: dict[str, object] = {"regression": name, **facts}
    for side, fitted in fits.items():
        row[f"n_{side}"] = fitted.n
        row[f"problem_{side}"] = fitted.problem or ""
        row[f"separated_{side}"] = side in separated
    found.frame("regressions", [row], confidential=True)
    found.frame("effects", [{"regression": name, **effect} for effect in rows], confidential=True)


def regressions_of(evaluation: Evaluation) -> list[Any]:
    """The rows of the frame ``"regressions"``, each with its ``terms``.

    These are rows of ``"effects"`` by term and side. A side without an estimate is None.
    """
    effects = {
        part["regression"].iloc[0]: frame_rows(part) for part in evaluation.groups("effects", "regression")
    }
    found = []
    for each in (row for frame in evaluation.groups("regressions") for row in frame_rows(frame)):
        each.terms = {}
        for row in effects.get(each.regression, ()):
            sides = each.terms.setdefault(row.term, dict.fromkeys(("real", "synthetic", "declared")))
            sides[row.side] = None if row.estimate is None else row
        found.append(each)
    return found


def _measures(sides: Sequence[Row], prefix: str, words: Mapping[str, str], over: str) -> tuple[Measure, ...]:
    """Shares and means over the terms that are compared."""
    shares = ("same_sign", "same_decision", "covered", "holds_real")
    values = {name: mean(side[name] for side in sides) for name in shares if name in words}
    values["overlap_mean"] = mean(None if s["overlap"] is None else max(s["overlap"], 0.0) for s in sides)
    values["standardised_difference_median"] = median(side["standardised_difference"] for side in sides)
    return tuple(
        Measure(GROUP, f"{prefix}_{name}", values[name], True, f"{what}, {over}")
        for name, what in words.items()
    )


def _declared(term: str, result: Replication, private: Fit) -> Row:
    """The private estimate of a term beside the real one."""
    real, own = result.real.coefficients.get(term), private.coefficients.get(term)
    compared = compare_effects(real, own, result.level)
    if real is not None and own is not None:
        compared["holds_real"] = own.lower <= real.value <= own.upper
    return effect_row(term, "declared", own, compared, ratio=result.model.kind != "linear")


def as_fit(estimates: Estimates, level: float) -> Fit:
    """Private estimates as a fit, on the additive scale, with normal intervals of ``level``."""
    from scipy import stats

    half = float(stats.norm.ppf(0.5 + level / 2))
    coefficients = {
        term: Coefficient(
            value,
            error,
            value - half * error,
            value + half * error,
            2.0 * float(stats.norm.sf(abs(value) / error)),
        )
        for term, value, error in zip(
            estimates.terms, estimates.coefficients.tolist(), estimates.std_errors.tolist(), strict=True
        )
    }
    return Fit(coefficients)
