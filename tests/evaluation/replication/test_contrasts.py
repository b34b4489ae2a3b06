"""Two fits side by side, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.evaluation.replication.likelihood import Coefficient, Fit
from dpsynth.evaluation.replication.two_fits import contrast, interval_overlap, mean, median, share


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((0.0, 1.0), (0.0, 1.0), 1.0),
        ((0.0, 2.0), (1.0, 3.0), 0.5),
        ((0.0, 4.0), (1.0, 2.0), 0.625),  # (1/4 + 1/1) / 2
        ((0.0, 1.0), (1.0, 2.0), 0.0),
        ((0.0, 1.0), (2.0, 6.0), -0.625),  # (-1/1 - 1/4) / 2
        ((0.0, 0.0), (0.0, 1.0), None),
    ],
)
def test_overlap_by_hand(first, second, expected) -> None:
    """A union in place of the average of two shares, or disjoint intervals cut at 0."""
    assert interval_overlap(first, second) == expected
    assert interval_overlap(second, first) == expected


ENDS = st.tuples(st.floats(-100, 100), st.floats(0.01, 50)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@settings(max_examples=50, deadline=None)
@given(ENDS, ENDS, st.floats(-3, 3), st.floats(0.1, 10))
def test_overlap_is_at_most_one_and_of_no_unit(first, second, shift, factor) -> None:
    """An overlap that depends on the scale of the outcome, or above 1."""
    overlap = interval_overlap(first, second)
    moved = [tuple(factor * end + shift for end in ends) for ends in (first, second)]
    assert overlap <= 1.0 + 1e-12
    assert interval_overlap(*moved) == pytest.approx(overlap, rel=1e-6, abs=1e-6)


def estimate(value: float, error: float, p_value: float) -> Coefficient:
    return Coefficient(value, error, value - 2 * error, value + 2 * error, p_value)


@pytest.mark.parametrize(
    ("real", "synthetic", "sign", "decision", "covered", "difference"),
    [
        ((1.0, 0.25, 0.001), (1.5, 0.25, 0.001), True, True, True, 2.0),
        ((1.0, 0.25, 0.001), (1.75, 0.25, 0.001), True, True, False, 3.0),
        ((1.0, 0.25, 0.001), (0.5, 0.5, 0.3), True, False, True, 2.0),
        ((0.5, 0.5, 0.3), (-0.5, 0.5, 0.3), False, True, True, 2.0),
        # significant on both sides, but a reader would report the opposite
        ((1.0, 0.25, 0.001), (-1.0, 0.25, 0.001), False, False, False, 8.0),
    ],
)
def test_one_term_by_hand(real, synthetic, sign, decision, covered, difference) -> None:
    """The two tables exchanged, or a difference measured in the wrong standard error."""
    row = contrast(["x"], Fit({"x": estimate(*real)}), Fit({"x": estimate(*synthetic)}))[0]
    assert (row.same_sign, row.same_decision, row.covered) == (sign, decision, covered)
    assert row.standardised_difference == difference


def test_level_decides() -> None:
    """A decision at 5 % whatever the level."""
    fits = [Fit({"x": estimate(1.0, 0.5, p)}) for p in (0.03, 0.08)]
    assert contrast(["x"], *fits)[0].same_decision is False
    assert contrast(["x"], *fits, level=0.9)[0].same_decision is True
    assert contrast(["x"], *fits, level=0.99)[0].same_decision is True


def test_a_term_of_one_table_is_compared_with_nothing() -> None:
    """A comparison with an absent estimate, or a row that is lost."""
    rows = contrast(["x", "y"], Fit({"x": estimate(1, 1, 0.3)}), Fit({"y": estimate(1, 1, 0.3)}))
    assert [(row.term, row.real is None, row.synthetic is None) for row in rows] == [
        ("x", False, True),
        ("y", True, False),
    ]
    assert all(row.same_sign is row.overlap is row.covered is row.same_decision is None for row in rows)


def test_summaries_leave_out_what_is_not_defined() -> None:
    """A term without an estimate that counts as a failure, or a mean over nothing that is NaN."""
    rows = contrast(["x", "y"], Fit({"x": estimate(1, 1, 0.3)}), Fit({"x": estimate(2, 1, 0.3)}))
    assert share(rows, lambda row: row.same_sign) == 1.0
    assert share(rows[1:], lambda row: row.same_sign) is None
    assert (mean([0.5, None, 1.0]), median([1.0, None, 9.0, 2.0])) == (0.75, 2.0)
    assert mean([None]) is median([]) is None
