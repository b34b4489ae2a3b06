"""Study replication: does a regression on the synthetic table say what it says on the real one?

The same regression (logistic, linear or Cox) is fitted to both tables with the same terms
(:mod:`~dpsynth.evaluation.replication.two_fits`), and the estimates are put side by side. Where the study was
declared before the fit, its private estimates stand beside them
(:mod:`~dpsynth.evaluation.replication.private_estimates`). Half of every number here is read off real records
without payment: internal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpsynth.evaluation.details import DeclaredEffect, Effect, EffectRow, Effects
from dpsynth.evaluation.progress import Progress, silent, within
from dpsynth.evaluation.records import Detail, Findings, Measure
from dpsynth.evaluation.replication.contrasts import Contrast, mean, median, share
from dpsynth.evaluation.replication.likelihood import Coefficient
from dpsynth.evaluation.replication.private_estimates import Declared, compare, holds_real
from dpsynth.evaluation.replication.two_fits import Replication, replicate
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import Tables
from dpsynth.studies.estimates import MEASURES
from dpsynth.table.schema import Schema

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
    notes, measures = result.notes(), _measures(result)
    private: Sequence[Contrast | None] = [None] * len(result.rows)
    if declared is not None:
        notes += tuple(filter(None, [declared.note()]))
        measures += declared.measures(GROUP)
        private = declared.rows
    data = Effects(
        model=model.kind,
        formula=model.formula(schema),
        outcome=model.outcome,
        event=str(schema.column(model.outcome).categories[-1]) if ratio else None,
        measure=MEASURES[model.kind],
        level=result.level,
        rows=[_row(*pair, ratio) for pair in zip(result.rows, private, strict=True)],
        n_real=result.real.n,
        n_synthetic=result.synthetic.n,
        problems={name: side.problem for name, side in result.sides.items() if side.problem},
        separated=list(result.separated),
        note=" ".join((*notes, CAUTION)),
        study=None if declared is None else declared.estimates.study,
    )
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


def _declared(row: Contrast, ratio: bool) -> DeclaredEffect | None:
    """The private estimate of a term, and how it compares; the latter None where no real one is known."""
    effect = _side(row.synthetic, ratio)
    if effect is None:
        return None
    return DeclaredEffect(**vars(effect), **_compared(row), holds_real=holds_real(row))


def _row(row: Contrast, declared: Contrast | None, ratio: bool) -> EffectRow:
    private = None if declared is None else _declared(declared, ratio)
    sides = (_side(row.real, ratio), _side(row.synthetic, ratio))
    return EffectRow(row.term, *sides, **_compared(row), declared=private)


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
