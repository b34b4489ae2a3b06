"""A declared study's private estimates against the same regression on the real records.

The comparison is that of the synthetic table's fit (:mod:`~dpsynth.evaluation.replication.two_fits`), so
that the two can be read side by side; terms are matched by name. One question is asked of the private
estimates alone, since their intervals claim to be honest: does each hold what the real records say?

Study replication: does a regression on the synthetic table say what it says on the real one?

The same regression (logistic, linear or Cox) is fitted to both tables with the same terms
(:mod:`~dpsynth.evaluation.replication.two_fits`), and the estimates are put side by side. Where the study was
declared before the fit, its private estimates stand beside them
(:mod:`~dpsynth.evaluation.replication.evaluator`). Half of every number here is read off real records
without payment: internal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NotRequired, TypedDict

import numpy as np

from dpsynth.checks import few
from dpsynth.evaluation.records import Detail, Findings, Measure
from dpsynth.evaluation.replication.likelihood import Coefficient, Fit
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
from dpsynth.evaluation.tables import Progress, Tables, silent, within
from dpsynth.studies.estimates import MEASURES, Estimates
from dpsynth.table.schema import Schema


@dataclass(frozen=True)
class Declared:
    """The private estimates of a study beside the fit to the real records.

    Attributes
    ----------
    estimates : Estimates
    rows : tuple of Contrast
        One for each term of the regression; ``synthetic`` is the private estimate, None where there is none.
    """

    estimates: Estimates
    rows: tuple[Contrast, ...]

    def note(self) -> str:
        """Return what was not compared, in one sentence; empty if nothing."""
        known = {row.term for row in self.rows}
        left = [term for term in self.estimates.terms if term not in known]
        if not left:
            return ""
        return (
            f"Not compared, because the regression fitted here has no such terms: {few(left)} "
            f"(declared in the study {self.estimates.study}, perhaps for other increments)."
        )

    def measures(self, group: str) -> tuple[Measure, ...]:
        """Return the shares and means over the terms that both sides tell; all internal."""
        rows = self.rows
        compared = sum(row.same_sign is not None for row in rows)
        over = f"over {compared} of {len(rows)} terms of the declared study {self.estimates.study}"
        overlaps = [None if row.overlap is None else max(row.overlap, 0.0) for row in rows]
        values = (
            ("same_sign", share(rows, lambda row: row.same_sign), "share of private estimates of real sign"),
            (
                "same_decision",
                share(rows, lambda row: row.same_decision),
                "share of terms that are significant in private and real estimates in one direction, or in "
                "neither",
            ),
            (
                "covered",
                share(rows, lambda row: row.covered),
                "share of private estimates inside the real interval",
            ),
            ("holds_real", share(rows, holds_real), "share of private intervals that hold the real estimate"),
            ("overlap_mean", mean(overlaps), "mean overlap of the intervals (Karr), 0 where disjoint"),
            (
                "standardised_difference_median",
                median([row.standardised_difference for row in rows]),
                "median |private - real| in real standard errors",
            ),
        )
        return tuple(
            Measure(group, f"declared_{name}", value, True, f"{what}, {over}") for name, value, what in values
        )


def compare(
    declared: Sequence[Estimates], formula: str, terms: Sequence[str], real: Fit, *, level: float
) -> Declared | None:
    """Put the private estimates of a regression beside its fit to the real records.

    Parameters
    ----------
    declared : sequence of Estimates
    formula : str
        Of the regression that was fitted; the estimates of this formula are taken, and of several those that
        share most terms with it.
    terms : sequence of str
        Of the regression, in order.
    real : Fit
        With intervals of ``level``.

    Returns
    -------
    Declared or None
        None where the regression was not declared.
    """
    same = [estimates for estimates in declared if estimates.formula == formula]
    if not same:
        return None
    estimates = max(same, key=lambda told: len(set(told.terms) & set(terms)))
    return Declared(estimates, contrast(terms, real, as_fit(estimates, level), level=level))


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


def holds_real(row: Contrast) -> bool | None:
    """Whether the private interval holds the real estimate; None unless both are told."""
    if row.real is None or row.synthetic is None:
        return None
    return row.synthetic.lower <= row.real.value <= row.synthetic.upper


GROUP = "Replication"

#: what the intervals of the synthetic table do not say
CAUTION = (
    "The synthetic intervals treat the synthetic records as an independent sample of real ones. They leave "
    "out the noise added for privacy and the error of the generator, and the rows of a table adjusted to "
    "released counts are not independent: these intervals are too short."
)


def replication(
    tables: Tables, settings: Settings, rng: np.random.Generator, progress: Progress = silent
) -> Findings:
    """Fit each study's regression to the synthetic and to the real records and report how it is replicated.

    Parameters
    ----------
    settings : Settings
        ``effects`` (by default one study of the outcome on all other columns), ``level``.
    rng : numpy.random.Generator
        Chooses the records that are used of a table of more than 100,000.

    Returns
    -------
    Findings
        ``effects_same_sign``, ``effects_same_decision`` and ``effects_covered`` (shares of the terms that
        both tables tell), ``effects_overlap_mean`` (Karr's overlap, in [0, 1]: disjoint intervals count as 0
        in the mean, while the rows of the detail keep the negative number), and
        ``effects_standardised_difference_median``; one detail of kind ``"effects"``. All internal. Names of
        the second study end in ``[2]``, and so on. Where ``tables.declared`` holds estimates of the same
        formula, the same measures of these begin with ``declared_``, and ``declared_holds_real`` is the share
        of their intervals that hold the real estimate.

    Raises
    ------
    InputError
        If a model does not fit the schema.
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
                progress=within(progress, number / len(studies), (number + 1) / len(studies)),
            )
        # the first study keeps its plain names
        declared = compare(
            tables.declared,
            study.formula(tables.schema),
            [row.term for row in result.rows],
            result.real,
            level=result.level,
        )
        told = _told(result, declared, tables.schema, "" if number == 0 else f"[{number + 1}]")
        findings = Findings(findings.measures + told.measures, findings.details + told.details)
    return findings


def _told(result: Replication, declared: Declared | None, schema: Schema, suffix: str) -> Findings:
    model = result.model
    ratio = model.kind != "linear"
    rows = [_row(row, ratio) for row in result.rows]
    notes, measures = result.notes(), _measures(result)
    data: dict[str, object] = {}
    if declared is not None:
        data["study"] = declared.estimates.study
        notes += tuple(filter(None, [declared.note()]))
        measures += declared.measures(GROUP)
        for row, private in zip(rows, declared.rows, strict=True):
            row["declared"] = _declared(private, ratio)
    data |= {
        "model": model.kind,
        "formula": model.formula(schema),
        "outcome": model.outcome,
        "event": str(schema.column(model.outcome).categories[-1]) if ratio else None,
        "measure": MEASURES[model.kind],
        "level": result.level,
        "rows": rows,
        "n_real": result.real.n,
        "n_synthetic": result.synthetic.n,
        "problems": {name: side.problem for name, side in result.sides.items() if side.problem},
        "separated": list(result.separated),
        "note": " ".join((*notes, CAUTION)),
    }
    measures = tuple(replace(measure, name=measure.name + suffix) for measure in measures)
    return Findings(measures, (Detail("effects", f"effects{suffix}", True, data),))


def _measures(result: Replication) -> tuple[Measure, ...]:
    rows, model = result.rows, result.model
    over = f"over {result.compared} of {len(rows)} terms of the {model.kind} model of {model.outcome}"
    if not result.compared:
        told = [f"{name}: {side.problem}" for name, side in result.sides.items() if side.problem]
        over += f"; {'; '.join(told) or 'no term can be told from both tables'}"
    overlaps = [None if row.overlap is None else max(row.overlap, 0.0) for row in rows]
    values = (
        (
            "effects_same_sign",
            share(rows, lambda row: row.same_sign),
            "share of estimates with the same sign",
        ),
        (
            "effects_same_decision",
            share(rows, lambda row: row.same_decision),
            "share of terms that are significant on both sides in one direction, or on neither",
        ),
        (
            "effects_covered",
            share(rows, lambda row: row.covered),
            "share of synthetic estimates inside the real interval",
        ),
        ("effects_overlap_mean", mean(overlaps), "mean overlap of the intervals (Karr), 0 where disjoint"),
        (
            "effects_standardised_difference_median",
            median([row.standardised_difference for row in rows]),
            "median |synthetic - real| in real standard errors",
        ),
    )
    return tuple(Measure(GROUP, name, value, True, f"{what}, {over}") for name, value, what in values)


class _Row(TypedDict):
    term: str
    real: dict[str, float] | None
    synthetic: dict[str, float] | None
    same_sign: bool | None
    same_decision: bool | None
    covered: bool | None
    overlap: float | None
    standardised_difference: float | None
    declared: NotRequired[dict[str, float | bool | None] | None]


def _declared(row: Contrast, ratio: bool) -> dict[str, float | bool | None] | None:
    """The private estimate of a term, and how it compares; the latter None where no real one is known."""
    effect = _side(row.synthetic, ratio)
    if effect is None:
        return None
    return {
        **effect,
        "same_sign": row.same_sign,
        "same_decision": row.same_decision,
        "covered": row.covered,
        "holds_real": holds_real(row),
        "overlap": row.overlap,
        "standardised_difference": row.standardised_difference,
    }


def _row(row: Contrast, ratio: bool) -> _Row:
    return {
        "term": row.term,
        "real": _side(row.real, ratio),
        "synthetic": _side(row.synthetic, ratio),
        "same_sign": row.same_sign,
        "same_decision": row.same_decision,
        "covered": row.covered,
        "overlap": row.overlap,
        "standardised_difference": row.standardised_difference,
    }


def _side(coefficient: Coefficient | None, ratio: bool) -> dict[str, float] | None:
    if coefficient is None:
        return None
    ends = {"estimate": coefficient.value, "lower": coefficient.lower, "upper": coefficient.upper}
    if ratio:
        # beyond exp(700) there is no float
        ends = {name: math.exp(min(max(value, -700.0), 700.0)) for name, value in ends.items()}
    return {**ends, "p_value": coefficient.p_value}
