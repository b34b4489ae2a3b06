"""One regression fitted to a real and to a synthetic table: both fits side by side, and what is unusual.

See :mod:`~dpsynth.studies.terms` for the terms,
:mod:`~dpsynth.evaluation.replication.likelihood` for the fits and
:mod:`~dpsynth.evaluation.replication.contrasts` for the comparison.

Which predictors the usual study keeps where many values are missing.

A regression uses the records that have every value of its columns. With a laboratory panel that is missing
in half of the records, a regression on all columns has few records left, or none; so the usual study, which
nobody chose, leaves out the columns that cost it most. A study that somebody asked for is fitted as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.checks import few, whole
from dpsynth.evaluation.progress import Progress, silent
from dpsynth.evaluation.replication.contrasts import Contrast, contrast
from dpsynth.evaluation.replication.design_matrix import Design, design
from dpsynth.evaluation.replication.likelihood import PRIOR_STD, Fit, fit, slope_priors
from dpsynth.evaluation.subsample import random_rows
from dpsynth.studies.model import EffectsModel
from dpsynth.studies.terms import model_terms
from dpsynth.table.schema import Schema

#: share of the records, of each table, that the usual study has left at least
COMPLETE = 0.5


def enough_complete(
    model: EffectsModel, schema: Schema, frames: Mapping[str, pd.DataFrame]
) -> tuple[EffectsModel, str]:
    """Leave out predictors, the most costly first, until half of the records of each table are complete.

    Parameters
    ----------
    frames : mapping of str to pandas.DataFrame
        Tables by name, conformed to ``schema``, to which the model will be fitted.

    Returns
    -------
    EffectsModel, str
        The model, with at least one predictor, and one sentence on what was left out; empty if nothing was.
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
    level: float = 0.95,
    rng: np.random.Generator,
    limit: int = 100_000,
    progress: Progress = silent,
) -> Replication:
    """Fit one regression to two conformed frames and compare the coefficients.

    Parameters
    ----------
    synthetic, real : pandas.DataFrame of shape (m, columns), (n, columns)
        Conformed to ``schema``.
    level : float
        Of the intervals. They hold the predictors fixed and take the outcomes of
        the records as independent draws; nothing is resampled.
    rng : numpy.random.Generator
        Chooses the records that are used of a table with more than ``limit``.
    limit : int
        Largest number of records of each table; at least 2.

    Raises
    ------
    InputError
        If the model does not fit the schema, or ``limit`` is out of range.
    """
    model.check(schema)
    whole("limit", limit, 2)
    frames = {"real": real, "synthetic": synthetic}
    used = {name: frame.iloc[random_rows(len(frame), limit, rng)] for name, frame in frames.items()}
    model, remark = enough_complete(model, schema, used) if model.sparing else (model, "")
    fits: list[Fit] = []
    designs: list[Design] = []
    for frame in used.values():
        designs.append(design(frame, schema, model))
        fits.append(fit(designs[-1], model.kind, level=level, rng=rng))
        progress(len(fits) / 2)
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


def _listed(dropped: tuple[tuple[str, str], ...], most: int = 6) -> str:
    """Terms by reason; a reason that concerns many is given once."""
    by_reason: dict[str, list[str]] = {}
    for name, why in dropped:
        by_reason.setdefault(why, []).append(name)
    return few((f"{few(names, most)} ({why})" for why, names in by_reason.items()), most, "; ")
