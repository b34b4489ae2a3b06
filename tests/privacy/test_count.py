"""The private number of records, where it is not public."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsynth.privacy import Ledger
from dpsynth.privacy.records import FrameRecords
from dpsynth.privacy.release import CountRelease

ROWS = 100
RELEASE = CountRelease(noise_multiplier=82.7)


def test_the_number_is_whole_and_at_least_one():
    """A number cut to the next lower one, which is low by one half on average, or none at all."""
    finish = RELEASE.finish
    assert [finish([np.array(x)]) for x in (-3.2, 0.2, 1.6, 7.4)] == [1.0, 1.0, 2.0, 7.0]
    records = FrameRecords(pd.DataFrame({"a": range(ROWS)}))
    assert Ledger().run(RELEASE, records, np.random.default_rng(1)).is_integer()
