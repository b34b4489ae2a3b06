"""What one row of the table is: a guarantee is about one row, and says what that means."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from dpsynth import DPWGANGP, Column, Schema
from dpsynth.accounting.events import gaussian_event
from dpsynth.accounting.guarantee import Guarantee
from dpsynth.accounting.ledger import Ledger
from dpsynth.errors import DataError, SchemaError

PATIENT = "one patient: the first encounter"


def ledger_about(row: str | None) -> Ledger:
    ledger = Ledger()
    ledger.about(row)
    ledger.begin_stage(1e-6)
    ledger.post("count", gaussian_event(5.0), sensitivity="1")
    return ledger


def test_a_fit_says_what_a_row_is() -> None:
    """A guarantee that leaves out whether a row is a patient or a stay, after saving and loading as well."""
    schema = Schema(
        columns=(Column(name="died", kind="binary", categories=(0, 1)),), n_public=50, unit=PATIENT
    )
    frame = pd.DataFrame({"died": np.arange(50) % 2})
    ledger = DPWGANGP(epsilon=1.0, training_steps=0).fit(frame, schema=schema).ledger_
    again = Ledger.from_dict(json.loads(json.dumps(ledger.to_dict())))
    for told in (ledger, again):
        assert told.unit == told.guarantee().unit == told.summary()["unit"] == f"one row = {PATIENT}"
        assert f"adding or removing one record (one row = {PATIENT}): no test" in str(told.guarantee())
    assert Guarantee.from_dict(ledger.guarantee().to_dict()) == ledger.guarantee()


def test_without_a_unit_nothing_is_claimed() -> None:
    """A sentence that promises something about patients although nobody said what a row is."""
    ledger = ledger_about(None)
    assert ledger.unit == "one row" and "(one row" not in str(ledger.guarantee())


@pytest.mark.parametrize("other", [None, "one stay in intensive care"])
def test_ledgers_about_other_rows_claim_only_a_row(other: str | None) -> None:
    """A release about stays counted as one about patients: the sum would promise what nobody has shown."""
    ours, theirs = ledger_about(PATIENT), ledger_about(other)
    assert not ours.holds(theirs)
    ours.join(theirs)
    assert ours.unit == "one row"
    later = ledger_about(PATIENT)
    later.about(other)
    assert later.unit == "one row"
    later.about(PATIENT)  # what was lost does not come back
    assert later.unit == "one row"


def test_ledgers_about_the_same_rows_keep_the_unit() -> None:
    """A unit that gets lost when a run goes on from its own earlier ledger."""
    fresh = Ledger()
    fresh.join(ledger_about(PATIENT))
    fresh.about(PATIENT)
    fresh.join(ledger_about(PATIENT))
    fresh.join(Ledger())
    assert fresh.unit == f"one row = {PATIENT}" and len(fresh.entries) == 2


def test_another_unit_than_a_row_is_refused() -> None:
    """A file that promises something about groups, which this package does not account for."""
    record = ledger_about(PATIENT).to_dict() | {"unit": "all rows of one patient"}
    with pytest.raises(DataError, match="accounts for 'one row'"):
        Ledger.from_dict(record)


@pytest.mark.parametrize("unit", ["", " one patient", "one\npatient"])
def test_a_unit_is_one_line(unit: str) -> None:
    """A unit that would break the guarantee's sentence in two."""
    with pytest.raises(SchemaError, match="unit must be one line of text"):
        Schema(columns=(Column(name="died", kind="binary", categories=(0, 1)),), unit=unit)
