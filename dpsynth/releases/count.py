"""The number of records, where it is not public."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth.releases.gaussian import Array, GaussianRelease, Ints
from dpsynth.releases.records import Records


@dataclass(frozen=True, kw_only=True)
class CountRelease(GaussianRelease[float]):
    """The number of records, whole and at least 1, with sensitivity 1 under add/remove.

    ``detail``: what of the budget it takes, for the ledger.

    Examples
    --------
    >>> import pandas as pd
    >>> from dpsynth.accounting import Ledger
    >>> from dpsynth.releases.records import FrameRecords
    >>> records = FrameRecords(pd.DataFrame({"a": [1, 2, 3]}))
    >>> Ledger().run(CountRelease(noise_multiplier=None), records, np.random.default_rng(0))
    3.0
    """

    detail: str = ""
    name = "number of records"
    l2_sensitivity = 1.0
    sensitivity = "1"

    def query(self, records: Records) -> Sequence[Ints]:
        """The exact number, shape ()."""
        return [np.array(records.size(), dtype=np.int64)]

    def finish(self, noisy: Sequence[Array]) -> float:
        """A number of records that can be: whole and at least 1."""
        return max(1.0, float(np.rint(noisy[0])))
