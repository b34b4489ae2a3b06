"""The private number of records: what the last digits of a released double say about the exact number."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from dpsynth.accounting import Ledger
from dpsynth.releases.count import CountRelease
from dpsynth.releases.records import FrameRecords

ROWS = 100
RELEASE = CountRelease(noise_multiplier=82.7)


def as_before(noisy) -> float:
    return max(1.0, float(noisy[0]))


def possible(finish, rows: int, released: float) -> bool:
    """Whether any double as the normal draw leads from so many rows to the number that was released."""
    std = RELEASE.noise_std
    draw = low = high = (released - rows) / std
    candidates = [draw]
    for _ in range(8):  # quotient and product round once each: what leads there is at most some doubles away
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
        candidates += [low, high]
    return any(finish([np.array(rows + std * z)]) == released for z in candidates)


def ruled_out(finish, runs: int = 400) -> int:
    """Runs whose released number shows that the table does not have one row more, or one row less."""
    records, rng, count = FrameRecords(pd.DataFrame({"a": range(ROWS)})), np.random.default_rng(0), 0
    for _ in range(runs):
        with records.opened():
            released = finish(RELEASE.measure(records, rng))
        assert possible(finish, ROWS, released)
        count += not all(possible(finish, rows, released) for rows in (ROWS - 1, ROWS + 1))
    return count


def test_no_released_number_rules_out_a_neighbour():
    """A double released as it is: some show by their last digits that a neighbouring table is impossible."""
    assert ruled_out(as_before) > 20  # the search finds what it looks for
    assert ruled_out(RELEASE.finish) == 0


def test_the_number_is_whole_and_at_least_one():
    """A number cut to the next lower one, which is low by one half on average, or none at all."""
    finish = RELEASE.finish
    assert [finish([np.array(x)]) for x in (-3.2, 0.2, 1.6, 7.4)] == [1.0, 1.0, 2.0, 7.0]
    records = FrameRecords(pd.DataFrame({"a": range(ROWS)}))
    assert Ledger().run(RELEASE, records, np.random.default_rng(1)).is_integer()
