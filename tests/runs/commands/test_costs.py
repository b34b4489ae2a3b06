"""The records of ``dpsynth account`` and ``calibrate``, and their words."""

import pytest

from dpsynth.accounting import Ledger, gaussian_event
from dpsynth.accounting.calibration import TvTarget
from dpsynth.errors import InputError
from dpsynth.runs.commands import costs


@pytest.mark.parametrize("plan", ["z=1,z=2", "z=1,q=1e400"])
def test_a_plan_without_sense_is_refused(plan):
    """Would catch an overflow shown as a traceback, and a number that is silently ignored."""
    with pytest.raises(InputError):
        costs.of_plan(plan, 1e-5)


def test_a_ledger_whose_seed_is_known_says_so_wherever_its_numbers_stand():
    """Would catch finite numbers of a seeded ledger without the words NOT PRIVATE beside them."""
    ledger = Ledger()
    ledger.post("count", gaussian_event(5.0), sensitivity="1")
    ledger.seeded = True
    ledger.exclude("bounds read off the data")
    alone = costs.of_ledger(ledger, 1e-5)
    planned = costs.calibrated(TvTarget(0.2), 0.01, 100, 1e-5, earlier=ledger)
    for text in (
        costs.to_text(alone),
        costs.to_text(planned),
        costs.to_table([alone | {"plan": "ledger.json"}]),
    ):
        assert "NOT PRIVATE: noise in the ledger" in text and "bounds read off the data" in text
