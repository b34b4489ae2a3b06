"""A life table's counts, and the survival curve that a declared study makes of them."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from statsmodels.duration.survfunc import SurvfuncRight

from dpsynth.errors import PrivacyError
from dpsynth.files.codec import from_plain, to_plain
from dpsynth.privacy import Ledger
from dpsynth.privacy.records import FrameRecords
from dpsynth.studies.fitted_study import StudyReleases
from dpsynth.studies.statistics import INTERVALS, LifeTable, LifeTableRelease
from dpsynth.studies.study import Estimates, Study
from dpsynth.table.coded import CodedTable
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="continuous", lower=18, upper=99, missing=True),
        Column(name="days", kind="integer", lower=0, upper=400, missing=True, unit="days"),
        Column(name="died", kind="binary", categories=("no", "yes"), missing=True),
    ),
    outcome="died",
    n_public=2000,
)
STUDY = Study(model="cox: (days, died) ~ age", intervals=(90.0, 180.0))


def cohort(n: int, seed: int = 0, gaps: bool = True) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.uniform(18, 99, n)
    event = np.ceil(rng.exponential(400 * np.exp(-0.02 * (age - 60))))
    left = np.minimum(rng.integers(1, 800, n), 400)
    days, died = np.minimum(event, left), np.where(event <= left, "yes", "no").astype(object)
    if gaps:
        days[rng.random(n) < 0.05], died[rng.random(n) < 0.05] = np.nan, None
    return SCHEMA.conform(pd.DataFrame({"age": age, "days": days, "died": died})).frame


def intervals(boundaries, study: Study = STUDY) -> LifeTable:
    return LifeTable(SCHEMA, study.effects(SCHEMA), np.array(boundaries, dtype=float))


def test_counts_are_those_of_a_loop():
    """A record in the interval before its own, in two cells, or lost; and missing values that are counted."""
    frame, ends = cohort(500), [5.0, 40.0, 90.0, 200.0, 400.0]
    counted = np.zeros(16)
    for days, died in zip(frame["days"], frame["died"], strict=True):
        if pd.isna(days) or pd.isna(died):
            counted[15] += 1
            continue
        j = next(j for j, end in enumerate(ends) if days <= end)
        counted[3 * j + (0 if died == "yes" else 2 if days == ends[j] else 1)] += 1
    found = intervals(ends).counts(CodedTable(frame))[0]
    np.testing.assert_array_equal(found, counted)
    assert found.sum() == 500 and found[15] > 20 and found[14] > 20
    again = pickle.loads(pickle.dumps(intervals(ends))).counts(CodedTable(frame))[0]
    np.testing.assert_array_equal(again, found)


def test_the_ends_of_intervals_and_of_time():
    """An end that belongs to the interval after it, as no Kaplan-Meier estimate has it; a time beyond all."""
    frame = pd.DataFrame(
        {"days": [0, 10, 10, 11, 20, 30, 30], "died": ["yes", "yes", "no"] + ["yes"] * 3 + ["no"]}
    )
    found = intervals([10, 20]).counts(CodedTable(frame))[0]
    assert found.tolist() == [2, 0, 1, 2, 0, 2, 0]
    assert intervals([10, 20]).counts(CodedTable(frame.iloc[:0]))[0].tolist() == [0] * 7


def test_intervals_hold_as_many_draws_each_and_the_declared_ends():
    """Declared boundaries that are forgotten, or intervals at equal lengths, half of them empty."""
    draws = cohort(4000, seed=3)
    table = LifeTable.of(SCHEMA, STUDY.effects(SCHEMA), draws, STUDY.intervals)
    ends = table.boundaries
    assert {90.0, 180.0} <= set(ends) and ends[-1] == 400.0 and (np.diff(ends) > 0).all()
    assert INTERVALS / 2 < len(ends) <= INTERVALS + 2
    known = draws["days"].dropna().to_numpy(dtype=float)
    shares = np.histogram(known, np.r_[-1.0, ends[:-1] + 0.5])[0] / len(known)
    assert shares.max() < 2 / INTERVALS
    nothing = draws.assign(days=pd.array([pd.NA] * len(draws), dtype=draws["days"].dtype))
    assert LifeTable.of(SCHEMA, STUDY.effects(SCHEMA), nothing).boundaries.tolist() == [400.0]


def test_a_subgroups_life_table_counts_its_records():
    """A survival curve of all records, or one whose cells no longer add up to a public number of records."""
    frame, ends = cohort(500), [5.0, 40.0, 90.0, 200.0, 400.0]
    old = Study(model="cox: (days, died) ~ age where age >= 65")
    own = frame[(frame["age"] >= 65).fillna(False)]
    found = intervals(ends, old).counts(CodedTable(frame))[0]
    alone = intervals(ends).counts(CodedTable(own))[0]
    np.testing.assert_array_equal(found[:-1], alone[:-1])
    assert found.sum() == 500 and 100 < alone.sum() < 400
    drawn = LifeTable.of(SCHEMA, old.effects(SCHEMA), frame).boundaries
    np.testing.assert_array_equal(drawn, LifeTable.of(SCHEMA, STUDY.effects(SCHEMA), own).boundaries)


def test_a_life_table_needs_intervals():
    """Intervals of the private records' own, made when none are given."""
    release = LifeTableRelease(study="a", noise_multiplier=1.0)
    with pytest.raises(PrivacyError, match=r"given? them with at"):
        Ledger().run(release, FrameRecords(cohort(10)), np.random.default_rng(0))


def run(frame: pd.DataFrame, noise: float | None, ledger: Ledger | None = None) -> Estimates:
    planned = StudyReleases.plan("died", noise_multiplier=noise, survival=True)
    records, rng, draws = FrameRecords(frame), np.random.default_rng(1), cohort(4000, seed=9)
    ledger = Ledger() if ledger is None else ledger
    return planned.run(ledger, records, STUDY, SCHEMA, draws, len(frame), rng).estimates


def test_a_study_without_noise_has_the_kaplan_meier_curve():
    """Another column's curve, times of the draws, or a curve of those alone who lack no predictor."""
    frame = cohort(2000)
    frame["age"] = frame["age"].mask(frame["days"] < 60)
    known = frame.dropna(subset=["days", "died"])
    exact = SurvfuncRight(known["days"].to_numpy(dtype=float), (known["died"] == "yes").to_numpy(dtype=float))
    curve = run(frame, None).survival
    at = np.searchsorted(exact.surv_times, curve.times, side="right") - 1
    np.testing.assert_allclose(curve.survival, exact.surv_prob[at], atol=0.004)
    half = 1.96 * exact.surv_prob_se[at]
    np.testing.assert_allclose((curve.upper - curve.lower) / 2, half, rtol=0.25)


def test_a_noisy_study_posts_its_life_table_and_comes_back():
    """A fourth reading that the ledger does not know, or a curve that a file loses."""
    ledger = Ledger()
    told = run(cohort(2000), 5.0, ledger)
    assert [entry.name for entry in ledger.entries][-1] == "life table of study died"
    assert len(ledger.entries) == 4
    again = from_plain(Estimates, to_plain(told))
    assert to_plain(again) == to_plain(told) and str(again) == str(told)
    assert str(told).count("Survival at ") == 3 and " days: 0." in str(told)


def test_another_plan_is_refused_before_anything_is_read():
    """A survival study whose life table nobody paid for, or one that is paid for and not read."""
    ledger, frame = Ledger(), cohort(50)
    logistic = Study(model="logistic: died ~ age")
    for study, survival in ((STUDY, False), (logistic, True)):
        planned = StudyReleases.plan("died", noise_multiplier=1.0, survival=survival)
        with pytest.raises(PrivacyError, match="life table"):
            planned.run(ledger, FrameRecords(frame), study, SCHEMA, frame, 50, np.random.default_rng(0))
    assert not ledger.entries
