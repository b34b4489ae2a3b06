"""Which predictors the usual study keeps where many values are missing.

A regression uses the records that have every value of its columns. With a laboratory panel that is missing
in half of the records, a regression on all columns has few records left, or none; so the usual study, which
nobody chose, leaves out the columns that cost it most. A study that somebody asked for is fitted as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.checks import few
from dpsynth.studies.model import EffectsModel
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
