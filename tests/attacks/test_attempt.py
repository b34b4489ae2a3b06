"""The record of what an attack reached."""

from __future__ import annotations

import math

import pytest

from dpsynth import attacks, audits
from dpsynth.attacks.attempt import Attempt
from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import Estimate

FOUND = Estimate(0.3, 0.29, 0.31)


def test_a_lower_end_above_the_bound_contradicts_it():
    """Catches a broken proof that is shown as a near miss."""
    assert Attempt("a", "tv", FOUND, proved=0.28).contradicts
    assert not Attempt("a", "tv", FOUND, proved=0.295).contradicts
    assert not Attempt("a", "tv", FOUND).contradicts


def test_round_trip():
    """Catches a field that is lost on disk."""
    attempt = Attempt("a", "accuracy", FOUND, 0.9, Estimate(0.5, 0.4, 0.6), "x", "y", 0.9, False)
    assert Attempt.from_dict(attempt.to_dict()) == attempt
    assert Attempt("a", "epsilon", FOUND, math.inf).to_dict()["proved"] is None


@pytest.mark.parametrize("change", [{"internal": "no"}, {"found": None}, {"measure": "luck"}])
def test_what_is_no_attempt_is_refused(change):
    """Catches a damaged file whose numbers would pass for released ones."""
    with pytest.raises(InputError):
        Attempt.from_dict({**Attempt("a", "tv", FOUND).to_dict(), **change})


def test_one_table_contradicts_no_average():
    """Catches an unlucky table that is called a broken proof."""
    table = Attempt("a", "tv", FOUND, proved=0.28, one_table=True)
    assert table.passes and not table.contradicts and Attempt.from_dict(table.to_dict()) == table


@pytest.mark.parametrize("room", [attacks, audits])
def test_public_names_are_there(room):
    """A name that a guide imports and that its room does not find."""
    assert all(getattr(room, name).__name__ == name for name in room.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = room.nonsense
