"""One regression fitted to a real and to a synthetic table: both fits, and notes on unusual ones.

All comparisons are on the additive scale (log odds, log hazard, or the outcome's unit), where the intervals
are symmetric. See :mod:`~dpsynth.studies.terms` for the terms and
:mod:`~dpsynth.evaluation.replication.one_fit` for the fits.

A regression uses the records that have every value of its columns. A laboratory panel may be missing in half
of the records. A regression on all columns then has few records left, or none. The default regression
therefore leaves out the columns that remove most records. A requested regression is fitted as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.checks import few
from dpsynth.evaluation.replication.one_fit import (
    PRIOR_STD,
    Coefficient,
    Design,
    Fit,
    design,
    fit,
    slope_priors,
)
from dpsynth.evaluation.tables import random_rows
from dpsynth.studies.model import EffectsModel
from dpsynth.studies.terms import model_terms
from dpsynth.table.schema import Schema


@dataclass(frozen=True)
class Contrast:
    """One term in two tables. Every comparison is None unless both tables estimate it.

    ``same_decision`` says whether both p-values lead to the same report: above 0, below 0, or no effect
    shown. ``overlap`` is :func:`interval_overlap`, negative for disjoint intervals.
    """

    term: str
    real: Coefficient | None
    synthetic: Coefficient | None
    same_sign: bool | None = None  # whether both estimates lie on the same side of 0
    same_decision: bool | None = None
    overlap: float | None = None
    covered: bool | None = None  # whether the synthetic estimate lies in the real interval
    holds_real: bool | None = None  # whether the synthetic interval holds the real estimate
    standardised_difference: float | None = None  # |synthetic - real| / real standard error, at least 0


def contrast(names: Sequence[str], real: Fit, synthetic: Fit, *, level: float = 0.95) -> tuple[Contrast, ...]:
    """Put two fits, with intervals of the same level, side by side: one contrast for each named term.

    A p-value below ``1 - level`` is a decision for an effect.
    """
    return tuple(
        _contrast(name, real.coefficients.get(name), synthetic.coefficients.get(name), level)
        for name in names
    )


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


def share(rows: Sequence[Contrast], of: Callable[[Contrast], bool | None]) -> float | None:
    """Share of the rows for which something holds among those where it is defined, None without any."""
    return mean([None if value is None else float(value) for value in map(of, rows)])


def mean(values: Sequence[float | None]) -> float | None:
    """Mean of those that are defined, None without any."""
    defined = [value for value in values if value is not None]
    return float(np.mean(defined)) if defined else None


def median(values: Sequence[float | None]) -> float | None:
    """Median of those that are defined, None without any."""
    defined = [value for value in values if value is not None]
    return float(np.median(defined)) if defined else None


def _contrast(name: str, real: Coefficient | None, synthetic: Coefficient | None, level: float) -> Contrast:
    if real is None or synthetic is None:
        return Contrast(name, real, synthetic)
    return Contrast(
        term=name,
        real=real,
        synthetic=synthetic,
        same_sign=_sign(real.value) == _sign(synthetic.value),
        same_decision=_decision(real, level) == _decision(synthetic, level),
        overlap=interval_overlap((real.lower, real.upper), (synthetic.lower, synthetic.upper)),
        covered=real.lower <= synthetic.value <= real.upper,
        holds_real=synthetic.lower <= real.value <= synthetic.upper,
        standardised_difference=abs(synthetic.value - real.value) / real.std_error,
    )


def _sign(value: float) -> int:
    return 0 if value == 0 else int(math.copysign(1, value))


def _decision(coefficient: Coefficient, level: float) -> int:
    return _sign(coefficient.value) if coefficient.p_value < 1 - level else 0


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

    def complete(kept: list[int]) -> float:
        """Smallest share of records, of those with a known outcome, that have all these predictors."""
        shares = [
            float((~missing[table][known[table]][:, kept].any(axis=1)).mean())
            for table in frames
            if known[table].any()
        ]
        return min(shares, default=1.0)

    kept, left_out = list(range(len(names))), []
    while complete(kept) < COMPLETE and len(kept) > 1:
        worst = max(kept, key=lambda k: complete([other for other in kept if other != k]))
        if complete([other for other in kept if other != worst]) == complete(kept):
            # no single column helps, as where two are missing in the same records: take the emptiest
            worst = max(kept, key=lambda k: max(float(missing[t][:, k].mean()) for t in frames))
        kept.remove(worst)
        left_out.append(worst)
    if not left_out:
        return model, ""
    told = []
    for k in left_out:
        table = max(frames, key=lambda t: float(missing[t][:, k].mean()))
        told.append(f"{names[k]} (missing in {missing[table][:, k].mean():.1%} of the {table} records)")
    predictors = tuple(names[k] for k in kept)
    sentence = f"Left out of the usual study, because it needs every value of a record: {few(told)}."
    units = {name: step for name, step in model.units.items() if name in predictors}
    logs = [name for name in model.logs if name in (*predictors, model.outcome)]
    return replace(model, predictors=predictors, units=units, logs=logs), sentence


@dataclass(frozen=True)
class Replication:
    """One regression on two tables: one contrast for each term, also for terms that cannot be estimated.

    ``separated`` holds the tables whose outcomes separate. If there are any, both fits are ridge regressions.
    """

    rows: tuple[Contrast, ...]
    real: Fit
    synthetic: Fit
    real_design: Design
    synthetic_design: Design
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
        return sum(row.same_sign is not None for row in self.rows)

    def notes(self) -> tuple[str, ...]:
        """Return everything unusual about the two fits, a sentence each, the gravest first."""
        found: list[str] = [self.remark] if self.remark else []
        if self.separated:
            found.append(
                f"A combination of the terms gives {self.model.outcome} without an error for some or all "
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
    designs: list[Design] = []
    for frame in used.values():
        designs.append(design(frame, schema, model))
        fits.append(fit(designs[-1], model.kind, level=level, rng=rng))
    separated = tuple(name for name, fitted in zip(used, fits, strict=True) if fitted.separated)
    if separated:
        # the same regression for both, or a difference between estimators would pass for one between tables
        priors = slope_priors(designs[0]) if designs[0].names else {}
        fits = [fit(data, model.kind, level=level, rng=rng, priors=priors) for data in designs]
    names = [term.name for term in model_terms(schema, model)]
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


def _listed(dropped: tuple[tuple[str, str], ...]) -> str:
    """Terms by reason. A reason that concerns many is given once."""
    by_reason: dict[str, list[str]] = {}
    for name, why in dropped:
        by_reason.setdefault(why, []).append(name)
    return few((f"{few(names, 6)} ({why})" for why, names in by_reason.items()), 6, "; ")
