"""Study replication: does a regression on the synthetic table say what it says on the real one?

The same regression (logistic, linear or Cox) is fitted to both tables with the same terms, and the estimates
are put side by side. See :mod:`~dpsynth.evaluation.replication.effects_design` for the terms,
:mod:`~dpsynth.evaluation.replication.effects_fit` for the fits and
:mod:`~dpsynth.evaluation.replication.effects_compare` for the comparison. Half of every number here is read
off real records without payment: internal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import check_level
from dpsynth.evaluation.records import Detail, Findings, Measure
from dpsynth.evaluation.replication.effects_compare import Contrast, contrast, mean, median, share
from dpsynth.evaluation.replication.effects_complete import enough_complete
from dpsynth.evaluation.replication.effects_design import Design, design, terms
from dpsynth.evaluation.replication.effects_fit import Coefficient, Fit, fit
from dpsynth.evaluation.replication.effects_model import MEASURES, EffectsModel
from dpsynth.evaluation.replication.effects_separation import PRIOR_STD, slope_priors
from dpsynth.evaluation.subsample import random_rows
from dpsynth.table.schema import Schema

__all__ = ["CAUTION", "EffectsModel", "Replication", "effects", "replicate"]

_GROUP = "Study replication"

#: what the intervals of the synthetic table do not say
CAUTION = (
    "The synthetic intervals treat the synthetic records as an independent sample of real ones. They leave "
    "out the noise added for privacy and the error of the generator, and the rows of a table adjusted to "
    "released counts are not independent: these intervals are too short."
)


@dataclass(frozen=True)
class Replication:
    """One regression on two tables.

    Attributes
    ----------
    rows : tuple of Contrast
        One for each term of the model, those that no table can tell included.
    real, synthetic : Fit
    real_design, synthetic_design : Design
    sampled : tuple of str
        The tables, ``"real"`` or ``"synthetic"``, of which only a random part was used.
    level : float
        Of the intervals.
    model : EffectsModel
        What was fitted: of the usual study, predictors may have been left out.
    remark : str
        What was left out, in one sentence; empty if nothing was.
    separated : tuple of str
        The tables whose outcomes separate; if there are any, both fits are ridge regressions.
    """

    rows: tuple[Contrast, ...]
    real: Fit
    synthetic: Fit
    real_design: Design
    synthetic_design: Design
    sampled: tuple[str, ...]
    level: float
    model: EffectsModel
    remark: str = ""
    separated: tuple[str, ...] = ()

    @property
    def sides(self) -> dict[str, Fit]:
        """The two fits by table."""
        return {"real": self.real, "synthetic": self.synthetic}

    @property
    def compared(self) -> int:
        """How many terms both tables tell."""
        return sum(row.same_sign is not None for row in self.rows)

    def notes(self) -> tuple[str, ...]:
        """Return everything unusual about the two fits, a sentence each, the gravest first."""
        found: list[str] = [self.remark] if self.remark else []
        if self.separated:
            found.append(
                f"A combination of the terms tells {self.model.outcome} without an error for some or all "
                f"of the {' and of the '.join(self.separated)} records, so that odds ratios without end "
                "fit best. Both tables were fitted with a normal prior on every slope instead (ridge "
                f"regression, standard deviation {PRIOR_STD:g} log odds a real standard deviation of the "
                "term), which draws estimates towards no effect."
            )
        sides = (("real", self.real, self.real_design), ("synthetic", self.synthetic, self.synthetic_design))
        for name, fitted, _ in sides:
            if fitted.problem:
                found.append(f"No estimate from the {name} records: {fitted.problem}.")
        for name, _, data in sides:
            if data.dropped:
                found.append(f"Left out in the {name} records: {_listed(data.dropped)}.")
            if data.n_settled:
                found.append(
                    f"{data.n_settled:,} of {data.n_table:,} {name} records, whose category settles the "
                    "outcome, say nothing about the other terms and were left out."
                )
        for name, fitted, data in sides:
            if data.n_incomplete:
                found.append(
                    f"{data.n_incomplete:,} of {data.n_table:,} {name} records "
                    f"({data.n_incomplete / data.n_table:.1%}) lack a value and were left out."
                )
            if name in self.sampled:
                found.append(f"A random {data.n_table:,} of the {name} records were used.")
            if fitted.remark:
                found.append(f"In the {name} records {fitted.remark}.")
        return tuple(found)


def replicate(
    synthetic: pd.DataFrame,
    real: pd.DataFrame,
    schema: Schema,
    model: EffectsModel,
    *,
    level: float | None = None,
    rng: np.random.Generator,
    limit: int = 100_000,
    progress: Callable[[float], None] | None = None,
) -> Replication:
    """Fit one regression to two conformed frames and compare the coefficients.

    Parameters are those of :func:`effects`.

    Examples
    --------
    >>> from dpsynth.table.schema import Column
    >>> schema = Schema(columns=(Column(name="dose", kind="integer", lower=0, upper=9),
    ...                          Column(name="sbp", kind="integer", lower=50, upper=250)))
    >>> frame = pd.DataFrame({"dose": [0, 1, 2, 3], "sbp": [120, 125, 131, 135]})
    >>> model = EffectsModel("linear", "sbp")
    >>> result = replicate(frame, frame, schema, model, rng=np.random.default_rng(0))
    >>> round(result.rows[0].real.value, 3), result.rows[0].overlap
    (5.1, 1.0)
    """
    model.check(schema)
    level = model.level if level is None else level
    check_level(level)
    if limit < 2:
        raise InputError(f"limit must be at least 2, got {limit!r}")
    frames = {"real": real, "synthetic": synthetic}
    used = {name: frame.iloc[random_rows(len(frame), limit, rng)] for name, frame in frames.items()}
    model, remark = enough_complete(model, schema, used) if model.sparing else (model, "")
    fits: list[Fit] = []
    designs: list[Design] = []
    for frame in used.values():
        designs.append(design(frame, schema, model))
        fits.append(fit(designs[-1], model.kind, level=level, rng=rng))
        if progress is not None:
            progress(len(fits) / 2)
    separated = tuple(name for name, fitted in zip(used, fits, strict=True) if fitted.separated)
    if separated:
        # the same regression for both, or a difference between estimators would pass for one between tables
        priors = slope_priors(designs[0]) if designs[0].names else {}
        fits = [fit(data, model.kind, level=level, rng=rng, priors=priors) for data in designs]
    names = [term.name for term in terms(schema, model)]
    return Replication(
        rows=contrast(names, fits[0], fits[1], level=level),
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


def effects(
    synthetic: pd.DataFrame,
    real: pd.DataFrame,
    schema: Schema,
    model: EffectsModel,
    *,
    level: float | None = None,
    rng: np.random.Generator,
    limit: int = 100_000,
    progress: Callable[[float], None] | None = None,
) -> Findings:
    """Fit one regression to the synthetic and to the real records and report how well it is replicated.

    Parameters
    ----------
    synthetic, real : pandas.DataFrame of shape (m, columns), (n, columns)
        Conformed to ``schema``.
    schema : Schema
    model : EffectsModel
    level : float, optional
        Of the intervals; the model's own by default. They hold the predictors fixed and take the outcomes of
        the records as independent draws; nothing is resampled. See :data:`CAUTION` for the synthetic side.
    rng : numpy.random.Generator
        Chooses the records that are used of a table with more than ``limit``.
    limit : int
        Largest number of records of each table; at least 2.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    Findings
        ``effects_same_sign``, ``effects_same_decision`` and ``effects_covered`` (shares of the terms that
        both tables tell), ``effects_overlap_mean`` (Karr's overlap, in [0, 1]: disjoint intervals count as 0
        in the mean, while the rows of the detail keep the negative number), and
        ``effects_standardised_difference_median``; one detail of kind ``"effects"``. All internal.

    Raises
    ------
    InputError
        If the model does not fit the schema, or ``level`` or ``limit`` is out of range.

    Examples
    --------
    >>> from dpsynth.table.schema import Column
    >>> schema = Schema(columns=(Column(name="dose", kind="integer", lower=0, upper=9),
    ...                          Column(name="sbp", kind="integer", lower=50, upper=250)))
    >>> frame = pd.DataFrame({"dose": [0, 1, 2, 3], "sbp": [120, 125, 131, 135]})
    >>> found = effects(frame, frame, schema, EffectsModel("linear", "sbp"), rng=np.random.default_rng(0))
    >>> [(measure.name, measure.value) for measure in found.measures][:2]
    [('effects_same_sign', 1.0), ('effects_same_decision', 1.0)]
    """
    result = replicate(synthetic, real, schema, model, level=level, rng=rng, limit=limit, progress=progress)
    model = result.model
    ratio = model.kind != "linear"
    data = {
        "model": model.kind,
        "formula": model.formula(schema),
        "outcome": model.outcome,
        "event": str(schema.column(model.outcome).categories[-1]) if ratio else None,
        "measure": MEASURES[model.kind],
        "level": result.level,
        "rows": [_row(row, ratio) for row in result.rows],
        "n_real": result.real.n,
        "n_synthetic": result.synthetic.n,
        "problems": {name: side.problem for name, side in result.sides.items() if side.problem},
        "separated": list(result.separated),
        "note": " ".join((*result.notes(), CAUTION)),
    }
    return Findings(_measures(result, model), (Detail("effects", "effects", True, data),))


def _measures(result: Replication, model: EffectsModel) -> tuple[Measure, ...]:
    rows = result.rows
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
    return tuple(Measure(_GROUP, name, value, True, f"{what}, {over}") for name, value, what in values)


def _row(row: Contrast, ratio: bool) -> dict[str, Any]:
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


def _listed(dropped: tuple[tuple[str, str], ...], most: int = 6) -> str:
    """Terms by reason; a reason that concerns many is given once."""
    by_reason: dict[str, list[str]] = {}
    for name, why in dropped:
        by_reason.setdefault(why, []).append(name)
    parts = []
    for why, names in list(by_reason.items())[:most]:
        more = f" and {len(names) - most} more" if len(names) > most else ""
        parts.append(f"{', '.join(names[:most])}{more} ({why})")
    rest = sum(len(names) for names in list(by_reason.values())[most:])
    return "; ".join(parts) + (f"; and {rest} more" if rest else "")
