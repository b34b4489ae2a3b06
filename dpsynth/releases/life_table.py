"""How many records of a survival study ended in each interval of time, and how.

A record lies in exactly one cell. Each interval of time has three: ended by the event, last seen within the
interval, and last seen at its very end. One more cell holds records outside the study's subgroup, or with
unknown time or event. The L2 sensitivity is 1 under add/remove one record. `dpsynth.studies.life_table` makes
a survival curve of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.releases.gaussian import Array, Ints
from dpsynth.releases.records import Records
from dpsynth.releases.score import StudyRelease
from dpsynth.studies.life_table import ENDS
from dpsynth.studies.model import EffectsModel
from dpsynth.studies.terms import column_values
from dpsynth.table.schema import Schema

Floats = NDArray[np.float64]

#: intervals of time, about; the declared ones come on top
INTERVALS = 20


@dataclass(frozen=True, eq=False)
class LifeTable:
    """Columns and intervals of time to count, public or made of noisy statistics.

    ``model``: with the columns of the times and the event, the last of its two categories.
    ``boundaries``, shape (J,): ends of the intervals, each with its end. The last is the duration's upper
        bound.
    """

    schema: Schema
    model: EffectsModel
    boundaries: Floats

    @classmethod
    def of(
        cls,
        schema: Schema,
        model: EffectsModel,
        draws: pd.DataFrame,
        intervals: Sequence[float] | None = None,
    ) -> LifeTable:
        """Intervals with about equally many of the samples' times, which include the declared ends."""
        duration = str(model.duration)
        times = column_values(schema, duration, draws[model.included(draws, schema)])
        known = times[np.isfinite(times)]
        parts = np.arange(1, INTERVALS) / INTERVALS
        # values of the draws, so that an interval of whole days ends on a day
        quantiles = np.quantile(known, parts, method="inverted_cdf") if len(known) else np.empty(0)
        last = float(schema.column(duration).upper or 1.0)
        ends = np.unique([*quantiles, *(intervals or ())])
        return cls(schema, model, np.r_[ends[(ends > 0) & (ends < last)], last])

    def counts(self, frame: pd.DataFrame) -> list[Ints]:
        """Records of a frame in each cell, shape (3 J + 1,)."""
        times = column_values(self.schema, str(self.model.duration), frame)
        events = column_values(self.schema, self.model.outcome, frame)
        size = len(self.boundaries)
        beyond = times > self.boundaries[-1]
        interval = np.minimum(np.searchsorted(self.boundaries, times), size - 1)
        at_end = np.where(beyond | (times == self.boundaries[interval]), 2, 1)
        cell = ENDS * interval + np.where((events > 0) & ~beyond, 0, at_end)
        known = ~np.isnan(times) & ~np.isnan(events) & self.model.included(frame, self.schema)
        cell = np.where(known, cell, ENDS * size)
        return [np.bincount(cell, minlength=ENDS * size + 1)]


@dataclass(frozen=True, kw_only=True)
class LifeTableRelease(StudyRelease[LifeTable]):
    """Counts of a survival study's records by interval and end, shape (3 J + 1,)."""

    kind = "life table"
    sensitivity = "1 (a record lies in one cell)"
    step = 1.0

    def query(self, records: Records) -> list[Ints]:
        """The exact counts."""
        return records.sums(self.given.counts, self.given.model.inputs(self.given.schema))

    def finish(self, noisy: Sequence[Array]) -> Array:
        """The noisy counts."""
        return noisy[0]
