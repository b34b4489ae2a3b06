"""Study replication: does a regression give the same results on the synthetic as on the real table?

The same regression (logistic, linear or Cox) is fitted to both tables with the same terms. The estimates are
compared (:mod:`~dpsynth.evaluation.replication.two_fits`). If the regression was pre-specified, its private
estimates stand beside them, matched by the terms' names. Every number here uses real records without noise:
it is confidential.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np

from dpsynth.checks import few
from dpsynth.evaluation.details import DeclaredEffect, Effect, EffectRow, Effects
from dpsynth.evaluation.records import Detail, Findings, Measure
from dpsynth.evaluation.replication.one_fit import Coefficient, Fit
from dpsynth.evaluation.replication.two_fits import (
    Contrast,
    Replication,
    contrast,
    mean,
    median,
    replicate,
    share,
)
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import Progress, Tables, silent
from dpsynth.studies.estimates import MEASURES, Estimates
from dpsynth.table.schema import Schema

GROUP = "Replication"

#: what the intervals of the synthetic table do not say
CAUTION = (
    "The synthetic intervals treat the synthetic records as an independent sample of real ones. They leave "
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


def replication(
    tables: Tables, settings: Settings, rng: np.random.Generator, progress: Progress = silent
) -> Findings:
    """Fit each regression to the synthetic and to the real records, and report the agreement.

    Measures ``effects_...`` are over the terms that both tables can estimate. In ``effects_overlap_mean``
    disjoint intervals count as 0. The rows of the detail keep the negative number. Names of the second study
    end in ``[2]``, and so on. If ``tables.declared`` holds estimates of the same formula, their measures
    begin with ``declared_``.
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
        told = _told(result, declared, tables.schema, "" if number == 0 else f"[{number + 1}]")
        findings = Findings(findings.measures + told.measures, findings.details + told.details)
    return findings


def _told(result: Replication, declared: Sequence[Estimates], schema: Schema, suffix: str) -> Findings:
    model = result.model
    ratio = model.kind != "linear"
    rows = [_row(row, ratio) for row in result.rows]
    notes = result.notes()
    over = f"over {result.compared} of {len(rows)} terms of the {model.kind} model of {model.outcome}"
    if not result.compared:
        told = [f"{name}: {side.problem}" for name, side in result.sides.items() if side.problem]
        over += f". {'. '.join(told) or 'No term can be estimated from both tables'}"
    measures = _measures(result.rows, "effects", _EFFECTS, over)
    study = None
    if declared:
        terms = [row.term for row in result.rows]
        # of several studies of one formula the one that shares most terms with the regression
        estimates = max(declared, key=lambda told: len(set(told.terms) & set(terms)))
        private = contrast(terms, result.real, as_fit(estimates, result.level), level=result.level)
        study = estimates.study
        if left := [term for term in estimates.terms if term not in terms]:
            notes += (
                f"Not compared, because the regression fitted here has no such terms: {few(left)} "
                f"(pre-specified in {study}, perhaps for other increments).",
            )
        compared = sum(row.same_sign is not None for row in private)
        over = f"over {compared} of {len(private)} terms of the pre-specified regression {study}"
        measures += _measures(private, "declared", _DECLARED, over)
        rows = [
            replace(row, declared=_declared(beside, ratio)) for row, beside in zip(rows, private, strict=True)
        ]
    data = Effects(
        model=model.kind,
        formula=model.formula(schema),
        outcome=model.outcome,
        event=str(schema.column(model.outcome).categories[-1]) if ratio else None,
        measure=MEASURES[model.kind],
        level=result.level,
        rows=rows,
        n_real=result.real.n,
        n_synthetic=result.synthetic.n,
        problems={name: side.problem for name, side in result.sides.items() if side.problem},
        separated=list(result.separated),
        note=" ".join((*notes, CAUTION)),
        study=study,
    )
    measures = tuple(replace(measure, name=measure.name + suffix) for measure in measures)
    return Findings(measures, (Detail("effects", f"effects{suffix}", True, data),))


def _measures(
    rows: Sequence[Contrast], prefix: str, words: Mapping[str, str], over: str
) -> tuple[Measure, ...]:
    """Shares and means over the terms that both sides estimate."""
    shares = ("same_sign", "same_decision", "covered", "holds_real")
    values = {name: share(rows, attrgetter(name)) for name in shares}
    values["overlap_mean"] = mean([None if row.overlap is None else max(row.overlap, 0.0) for row in rows])
    values["standardised_difference_median"] = median([row.standardised_difference for row in rows])
    return tuple(
        Measure(GROUP, f"{prefix}_{name}", values[name], True, f"{what}, {over}")
        for name, what in words.items()
    )


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


def _row(row: Contrast, ratio: bool) -> EffectRow:
    return EffectRow(row.term, _side(row.real, ratio), _side(row.synthetic, ratio), **_compared(row))


def _declared(row: Contrast, ratio: bool) -> DeclaredEffect | None:
    """The private estimate of a term, and its comparison, which is None if no real one is known."""
    effect = _side(row.synthetic, ratio)
    if effect is None:
        return None
    return DeclaredEffect(**vars(effect), **_compared(row), holds_real=row.holds_real)


def _compared(row: Contrast) -> dict[str, Any]:
    names = ("same_sign", "same_decision", "covered", "overlap", "standardised_difference")
    return {name: getattr(row, name) for name in names}


def _side(coefficient: Coefficient | None, ratio: bool) -> Effect | None:
    if coefficient is None:
        return None
    ends = {"estimate": coefficient.value, "lower": coefficient.lower, "upper": coefficient.upper}
    if ratio:
        # beyond exp(700) there is no float
        ends = {name: math.exp(min(max(value, -700.0), 700.0)) for name, value in ends.items()}
    return Effect(**ends, p_value=coefficient.p_value)
