"""Columns that rise no faster than the time allows, and that belong to the other columns."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from visits import CAREERS, STAYS, careers, histories_of, patients_of, stays

from dpsynth import Column, PatientSchema
from dpsynth.errors import SchemaError
from dpsynth.patients.courses import row_tables, small_categories
from dpsynth.patients.courses.increasing import slowed
from dpsynth.patients.histories import Histories, patient_table
from dpsynth.patients.rates import Rate
from dpsynth.privacy import Ledger
from dpsynth.privacy.records import FrameRecords
from dpsynth.synthesis.parts.rows import VisitsRelease
from dpsynth.synthesis.rows import Trajectories, draw_rows

DAYS, NUMBERS = 365.25, {"I": 0, "II": 1, "III": 2, "IV": 3, "V": 4}


def exact(frame: pd.DataFrame, schema: PatientSchema = CAREERS) -> Trajectories:
    """Tables of rows without noise."""
    release = VisitsRelease(noise_multiplier=None, schema=schema)
    records = FrameRecords(histories_of(frame, schema))
    sums = Ledger().run(release, records, np.random.default_rng(0))
    names = [column.name for column in small_categories(schema.courses)]
    return Trajectories.of(schema, sums, 0.0, dict(zip(names[1:], names, strict=False)), {})


def drawn(
    frame: pd.DataFrame, schema: PatientSchema = CAREERS, levels: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Rows from tables without noise, of persons with the table's own levels or others."""
    levels = patient_table(frame, schema) if levels is None else levels
    return draw_rows(exact(frame, schema), levels, np.random.default_rng(1))


def too_steep(rows: pd.DataFrame, most: float, step: float) -> int:
    """Pairs of a person's rows between which a value falls, or rises more than the time allows."""
    found = 0
    for _, own in rows.dropna().groupby("id"):
        day, value = own["day"].tolist(), own["value"].tolist()
        for late in range(len(own)):
            for early in range(late):
                years = (day[late] - day[early]) / DAYS
                allowed = math.ceil(most * years / step - 1e-6) * step
                found += not -1e-9 <= value[late] - value[early] <= allowed + 1e-9
    return found


def both(rows: pd.DataFrame) -> tuple[int, int]:
    """The same of the experience, at most a year a year, and of the grade, at most two a year."""
    experience = rows.assign(value=rows["experience"].astype(float))
    grade = rows.assign(value=rows["grade"].map(NUMBERS).astype(float))
    own = ["id", "day", "value"]
    return too_steep(experience[own], 1.0, 0.1), too_steep(grade[own], 2.0, 1.0)


def test_no_synthetic_value_rises_faster_than_the_time() -> None:
    """A year of experience gained in a month, and a step that is rounded up."""
    frame = careers(400, seed=1)
    assert both(frame) == (0, 0)
    rows = drawn(frame)
    assert len(rows) > 800 and both(rows) == (0, 0)
    assert patient_table(rows, CAREERS)["experience pace"].mean() > 0.5


@given(patients_of(CAREERS), st.integers(0, 99))
@settings(deadline=None, max_examples=25)
def test_no_synthetic_value_rises_faster_than_the_time_whatever_the_levels(
    person: pd.DataFrame, seed: int
) -> None:
    """Levels that no person has: all of the time at once, a mean at a bound, rows at one time."""
    levels = CAREERS.levels.conform(
        pd.concat([patient_table(person, CAREERS), patient_table(careers(8, seed), CAREERS)])
    ).frame
    rng = np.random.default_rng(seed)
    mixed = pd.DataFrame({name: rng.permutation(levels[name].to_numpy()) for name in levels})
    rows = drawn(careers(20, seed), levels=CAREERS.levels.conform(mixed).frame)
    assert both(rows) == (0, 0)


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 30)), min_size=1, max_size=7),
    st.sampled_from([0.5, 1.0, 3.0]),
    st.sampled_from([None, 1.0, 0.5]),
)
@example([(0, 0), (1, 1), (2, 2)], 0.5, 1.0)
@settings(deadline=None)
def test_a_value_counts_as_the_most_that_time_allows(
    rows: list[tuple[int, int]], rate: float, step: float | None
) -> None:
    """A limit by the row before alone, one that is not rounded up, and a value lowered without need."""
    times = np.sort(np.array([[time for time, _ in rows]], dtype=float))
    values = np.sort(np.array([[value for _, value in rows]], dtype=float))
    expected: list[float] = []
    for time, value in zip(times[0], values[0], strict=True):
        for earlier, before in zip(times[0], expected, strict=False):
            most = rate * (time - earlier)
            value = min(value, before + (most if step is None else math.ceil(most / step) * step))
        expected.append(value)
    found = slowed(values, times, rate, step)
    np.testing.assert_allclose(found[0], expected)
    assert (np.diff(found[0]) >= 0).all()


def test_levels_are_those_of_plain_pandas() -> None:
    """A pace that another person has, a mean with values that are too high, and a time in other units."""
    frame = careers(60, seed=3).dropna()
    frame.loc[frame.index[5], "experience"] = 40.0
    levels = patient_table(frame.sample(frac=1, random_state=0), CAREERS)
    names = frame["id"].drop_duplicates().sample(frac=1, random_state=0)
    again = patient_table(frame[frame["id"].isin(names)], CAREERS)
    assert len(levels) == len(again)
    for (_, own), (_, found) in zip(frame.groupby("id"), again.iterrows(), strict=True):
        day, value = own["day"].tolist(), own["experience"].cummax().tolist()
        for k in range(1, len(value)):
            limits = [value[j] + math.ceil((day[k] - day[j]) / DAYS / 0.1 - 1e-6) * 0.1 for j in range(k)]
            value[k] = min(value[k], *limits)
        assert found["experience mean"] == pytest.approx(np.mean(value))
        years = (day[-1] - day[0]) / DAYS
        if years:
            pace = min((value[-1] - value[0]) / years, 1.0)
            assert found["experience pace"] == pytest.approx(pace, abs=0.0101)
        else:
            assert pd.isna(found["experience pace"])


def test_increasing_columns_belong_to_the_others() -> None:
    """Experience of others, steps of the wage that do not know it, and both rising taken for a link."""
    frame = careers(3000, seed=4)

    def found(rows: pd.DataFrame) -> tuple[float, float]:
        rows = rows.astype({"experience": float, "wage": float}).dropna()
        steps = rows.sort_values(["id", "day"]).groupby("id")[["day", "experience", "wage"]].diff().dropna()
        left = steps[["experience", "wage"]].sub(
            steps["day"].to_numpy()[:, None]
            * (steps[["experience", "wage"]].sum() / steps["day"].sum()).to_numpy()
        )
        return rows["experience"].corr(rows["wage"]), left.corr().iloc[0, 1]

    (real, real_steps), (made, made_steps) = found(frame), found(drawn(frame))
    assert made == pytest.approx(real, abs=0.05)
    assert made_steps > 0.6 * real_steps > 0.3
    noise = np.random.default_rng(5).normal(0, 0.3, len(frame))
    by_time = frame.assign(wage=(10 + 0.8 * frame["day"] / DAYS + noise).round(2))
    linked, apart = (exact(rows).named["pairs", ""] for rows in (frame, by_time))
    assert linked[0, 2] > 0.2 and abs(apart[0, 2]) < 0.05  # experience and wage


@pytest.mark.parametrize(
    ("schema", "table"), [(CAREERS, careers), (STAYS, stays)], ids=["with rates", "without"]
)
def test_what_is_counted_of_a_patient_reads_no_other(schema: PatientSchema, table) -> None:
    """A pace, a mean step or a course that another patient has."""

    def counted(frame: pd.DataFrame) -> list[dict[tuple[int, int], int]]:
        own = Histories.from_frame(histories_of(frame, schema), schema)
        found = []
        for each in row_tables(schema.courses):
            patient, cell, count = each.entries(own)
            found.append({(int(p), int(c)): int(n) for p, c, n in zip(patient, cell, count, strict=True)})
        return found

    frame = table(30, seed=6)
    whole, names = counted(frame), frame["id"].unique()
    for place in (0, 11, 29):
        alone = counted(frame[frame["id"] == names[place]])
        for of_all, own in zip(whole, alone, strict=True):
            assert {cell: n for (p, cell), n in of_all.items() if p == place} == {
                cell: n for (_, cell), n in own.items()
            }


def test_a_rate_is_read_from_files_and_refused_where_wrong() -> None:
    """A rate that does not come back, without a time or a unit, or of a column that may fall."""
    text = """
unit: id
rows: {most: 3, order: day}
columns:
- {name: day, kind: integer, lower: 0, upper: 900, unit: days}
- {name: years, kind: integer, lower: 0, upper: 40, over_time: increasing, rate: {most: 1, per: year}}
"""
    schema = PatientSchema.from_yaml(text)
    assert schema.rates == (Rate(column="years", most=1, per="year"),)
    assert PatientSchema.from_yaml(schema.to_yaml()) == schema
    wrong = {
        "column 'years': rate per 'stay' must be per second": ("per: year", "per: stay"),
        "column 'years': a rate needs the unit of 'day'": ("unit: days", "unit: visits"),
        "column 'years': a rate needs the time of rows": ("order: day", "order: stay"),
        "column 'years': one rate can be given, and over_time must be increasing": (
            "over_time: increasing, ",
            "",
        ),
        "column 'years': rate must be a mapping such as {most: 1, per: year}": (
            "{most: 1, per: year}",
            "1",
        ),
        "column 'years': rate: most": ("most: 1,", "most: 0,"),
    }
    for said, (old, new) in wrong.items():
        with pytest.raises(SchemaError, match=said.replace("{", r"\{")):
            PatientSchema.from_yaml(text.replace(old, new))


def test_dates_and_years_are_times_of_a_rate() -> None:
    """A rate per year that is taken for one per day of a date, or per unit of a column of years."""
    rate = Rate(column="x", most=2, per="year")
    year = Column(name="year", kind="integer", lower=1970, upper=1990)
    assert rate.in_clock(year) == 2.0
    months = Column(name="time", kind="integer", lower=0, upper=99, unit="months")
    assert rate.in_clock(months) == pytest.approx(2 / 12)
    seen = Column(name="seen", kind="date", lower="2000-01-01", upper="2010-01-01")
    x = Column(name="x", kind="integer", lower=0, upper=99)
    fields = {"unit": "id", "order": "seen", "most": 3, "increasing": ("x",), "rates": (rate,)}
    schema = PatientSchema(columns=(seen, x), **fields)
    frame = pd.DataFrame({"id": [1, 1], "seen": ["2001-01-01", "2005-01-01"], "x": [0, 2]})
    assert patient_table(frame, schema)["x pace"].tolist() == [0.24]  # of 8, in steps of .02
    many = pd.concat([frame.assign(id=k) for k in range(50)])
    days = pd.to_datetime(drawn(many, schema)["seen"]).groupby(np.repeat(np.arange(50), 2)).diff()
    assert (days.dropna().dt.days > 1400).all() and len(days) == 100
