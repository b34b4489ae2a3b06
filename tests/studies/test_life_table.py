"""Survival curves of noisy life tables: against Kaplan and Meier, and how honest their bands are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.duration.survfunc import SurvfuncRight

from dpsynth.files.codec import to_plain
from dpsynth.studies.estimation import SurvivalCurve, survival_curve


def times_of(n: int, rng: np.random.Generator, rate: float = 1.0):
    """Times until 2 of exponential events and losses, and whether the event ended them."""
    event, lost = rng.exponential(1 / rate, n), np.minimum(rng.exponential(2.0, n), 2.0)
    return np.minimum(event, lost), event <= lost


def table_of(times, events, ends) -> np.ndarray:
    """Counts by interval and end, and a last cell of the unknown."""
    interval = np.searchsorted(ends, times)
    cell = 3 * interval + np.where(events, 0, np.where(times == ends[interval], 2, 1))
    return np.bincount(cell, minlength=3 * len(ends) + 1).astype(float)


def ends_of(rate: float, size: int = 20) -> np.ndarray:
    times, _ = times_of(100_000, np.random.default_rng(99), rate)
    return np.unique(np.r_[np.quantile(times, np.arange(1, size) / size), 2.0])


def curve_of(counts, ends, noise=0.0, seed=0, **given) -> SurvivalCurve:
    return survival_curve(counts, ends, noise, np.random.default_rng(seed), **given)


@pytest.mark.parametrize(("rate", "tolerance"), [(0.1, 0.002), (1.0, 0.003), (4.0, 0.008)])
def test_without_noise_it_is_kaplan_meier_at_the_ends(rate, tolerance):
    """Losses that are at risk to the end, or not at all; the tolerance is what grouping costs.

    Most in the last interval, which is long where events are early.
    """
    times, events = times_of(3000, np.random.default_rng(0), rate)
    ends = ends_of(rate)
    exact = SurvfuncRight(times, events.astype(float))
    at = np.searchsorted(exact.surv_times, ends, side="right") - 1
    found = curve_of(table_of(times, events, ends), ends)
    np.testing.assert_allclose(found.survival, exact.surv_prob[at], atol=tolerance)
    middle = slice(3, -3)
    half = 1.96 * exact.surv_prob_se[at][middle]
    np.testing.assert_allclose((found.upper - found.lower)[middle] / 2, half, rtol=0.15)


def test_who_is_last_seen_at_the_end_was_at_risk_all_the_interval():
    """The end of follow-up for everybody as a loss in the middle: hazards of the last interval doubled."""
    found = curve_of([10, 0, 90, 0], [1.0])
    assert found.survival.tolist() == pytest.approx([0.9])
    assert curve_of([10, 90, 0, 0], [1.0]).survival.tolist() == pytest.approx([1 - 10 / 55])


@settings(max_examples=60, deadline=None)
@given(
    counts=st.lists(st.floats(-300, 300), min_size=1, max_size=8).map(lambda c: c * 3 + [c[0]]),
    noise=st.floats(0, 50),
    total=st.none() | st.floats(0, 1000),
)
def test_a_curve_never_increases_and_lies_in_its_bands(counts, noise, total):
    """A survival above 1, one that rises, NaN of an empty table, or an estimate outside of its band."""
    found = curve_of(counts, np.arange(1.0, (len(counts) - 1) // 3 + 1), noise, total=total)
    for curve in (found.survival, found.lower, found.upper):
        assert np.isfinite(curve).all() and (np.diff(curve) <= 0).all()
        assert ((curve >= 0) & (curve <= 1)).all()
    assert (found.lower <= found.survival).all() and (found.survival <= found.upper).all()


def test_no_event_all_events_and_no_record():
    """A band of no width where no event was seen yet, a division by nobody, a lower end made up."""
    none = curve_of([0, 10, 0, 0, 0, 90, 0], [1.0, 2.0])
    assert none.survival.tolist() == [1.0, 1.0] == none.upper.tolist()
    assert 0.95 < none.lower[0] < 0.99
    every = curve_of([100, 0, 0, 0, 0, 0, 0], [1.0, 2.0])
    assert every.survival.tolist() == [0.0, 0.0] and every.upper[0] < 0.05
    for noise in (0.0, 3.0):
        empty = curve_of([0] * 7, [1.0, 2.0], noise)
        assert empty.survival.tolist() == [1.0, 1.0] == empty.upper.tolist()
        assert empty.lower.tolist() == [0.0, 0.0]
    unknown = curve_of([0] * 6 + [50], [1.0, 2.0], total=50.0)
    assert unknown.lower.tolist() == [0.0, 0.0] and unknown.upper.tolist() == [1.0, 1.0]


def test_bands_widen_with_the_noise():
    """Bands of the sampling alone."""
    ends = ends_of(1.0)
    counts = table_of(*times_of(1500, np.random.default_rng(0)), ends)
    widths = [
        np.ptp([c.lower[5:15], c.upper[5:15]], axis=0)
        for c in (curve_of(counts, ends, s) for s in (0, 8, 20))
    ]
    assert (widths[1] > 1.2 * widths[0]).all() and (widths[2] > 1.5 * widths[1]).all()


def test_a_known_total_takes_noise_away():
    """A public number of records that is not used, or used for the estimate and not for its bands."""
    ends, rng, wide, far = ends_of(1.0), np.random.default_rng(0), [], []
    for seed in range(40):
        counts = table_of(*times_of(1500, rng), ends) + 20 * rng.standard_normal(3 * len(ends) + 1)
        both = [curve_of(counts, ends, 20.0, seed, total=total) for total in (None, 1500.0)]
        wide.append([np.mean(c.upper - c.lower) for c in both])
        far.append([np.mean((c.survival - np.exp(-ends)) ** 2) for c in both])
    assert np.mean(wide, axis=0)[1] < 0.97 * np.mean(wide, axis=0)[0]
    assert np.mean(far, axis=0)[1] < np.mean(far, axis=0)[0]


def test_a_tail_of_few_does_not_lift_the_band_before_it():
    """An upper end that stays high for years because of the few who are at risk in the last ones."""
    early = [60.0, 0.0, 0.0] * 8
    plain = curve_of([*early, 0, 0, 1150, 0], np.arange(1.0, 10.0), 20.0)
    longer = curve_of([*early, 0, 900, 0, *[0.0] * 12, 0, 0, 250, 0], np.arange(1.0, 15.0), 20.0)
    np.testing.assert_allclose(longer.upper[:8], plain.upper[:8], atol=0.03)


def test_a_total_that_is_not_theirs_is_left_out():
    """A public number that is a tenth off, which would add events to every interval."""
    ends = ends_of(1.0)
    counts = table_of(*times_of(1500, np.random.default_rng(0)), ends)
    for noise in (0.0, 1.0):
        bare, wrong = curve_of(counts, ends, noise), curve_of(counts, ends, noise, total=1650.0)
        assert to_plain(wrong) == to_plain(bare)
        assert to_plain(curve_of(counts, ends, 50.0, total=1650.0)) != to_plain(curve_of(counts, ends, 50.0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "noise", "known"), [(1.0, 0.0, True), (1.0, 15.0, False), (1.0, 45.0, True), (0.1, 15.0, False)]
)
def test_bands_are_honest(rate, noise, known):
    """Bands without the noise, or of half of it: coverage of the truth in 200 tables of 1,500 records."""
    ends, rng, inside = ends_of(rate), np.random.default_rng(3), []
    for seed in range(200):
        counts = table_of(*times_of(1500, rng, rate), ends)
        counts += noise * rng.standard_normal(len(counts))
        found = curve_of(counts, ends, noise, seed, total=1500.0 if known else None)
        truth = np.exp(-rate * ends)
        inside.append((found.lower <= truth) & (truth <= found.upper))
    assert np.mean(inside, axis=0).min() > 0.88 and 0.93 < np.mean(inside) < 0.995
