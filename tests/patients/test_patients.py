"""Histories and levels of patients with several rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from visits import (
    DIAGNOSES,
    KEPT,
    STAYS,
    VISITS,
    WARDS,
    diagnoses,
    histories_of,
    patients_of,
    read_by_pandas,
    stays,
    visits,
    wards,
)

from dpsynth.errors import DataError, SchemaError
from dpsynth.patients.histories import Histories, patient_table, rows_of, unused_rows
from dpsynth.patients.schema import MOST_ROWS, PatientSchema
from dpsynth.patients.series import PRESENCE_CLASSES
from dpsynth.table.schema import Column

DAY = Column(name="day", kind="integer", lower=0, upper=365)
DIED = Column(name="died", kind="binary", categories=("no", "yes"))
LAB = Column(name="lab", kind="integer", lower=0, upper=99, missing=True)


def kept(frame, schema):
    """The rows that are used, patient by patient, in plain pandas."""
    parts = [part.sort_values("day", kind="stable") for _, part in frame.groupby("id")]
    cut = pd.DataFrame.tail if schema.keep == "last" else pd.DataFrame.head
    return [cut(part, schema.most) for part in parts]


@pytest.mark.parametrize("keep", ["first", "last"])
def test_levels_are_those_of_each_patients_own_rows(keep):
    """Catches rows of another patient, rows beyond the cap, a wrong divisor, time out of order."""
    schema, frame = VISITS.model_copy(update={"keep": keep}), visits(80, seed=1)
    found = patient_table(frame, schema)
    for k, rows in enumerate(kept(frame, schema)):
        level = found.iloc[k]
        lab, day = rows["lab"].to_numpy(), rows["day"].to_numpy(float)
        has = ~np.isnan(lab)
        assert (level["rows"], level["day first"], level["sex"]) == (len(rows), day[0], rows["sex"].iloc[0])
        assert pd.isna(level["day span"]) if len(rows) == 1 else level["day span"] == day[-1] - day[0]
        share = has.mean()
        one = has.sum() == 1 < len(rows)
        classes = [share == 0, one, share <= 0.2, share <= 0.5, share < 1, True]
        assert level["lab measured"] == PRESENCE_CLASSES[classes.index(True)]
        assert pd.isna(level["lab mean"]) if not has.any() else level["lab mean"] == lab[has].mean()
        assert pd.isna(level["lab sd"]) == (has.sum() < 2)
        if has.sum() >= 2:
            assert level["lab sd"] == pytest.approx(lab[has].std(), abs=0.03)  # a step is .0495
        if has.sum() >= 3 and lab[has].std() and day[has].std():
            assert level["lab trend"] == pytest.approx(np.corrcoef(lab[has], day[has])[0, 1])
            scores = (lab[has] - lab[has].mean()) / lab[has].std()
            assert level["lab roughness"] == pytest.approx(min(np.abs(np.diff(scores)).mean(), 2.2))
        counts = rows["grade"].value_counts()
        if len(counts):
            assert counts[level["grade mode"]] == counts.max()


def test_a_copy_with_other_fields_has_levels_of_its_own():
    """Catches levels, rows or variables of the schema that was copied: each is made once for a schema."""
    assert (VISITS.levels["rows"].upper, VISITS.timed) == (6, True) and "lab" in VISITS.rows.names
    few = VISITS.model_copy(update={"most": 3, "per_patient": ("sex", "lab")})
    assert few.levels["rows"].upper == 3 and "lab" not in few.rows.names
    assert "lab mean" not in few.levels.names and "lab mean" in VISITS.levels.names
    assert few != VISITS and few.model_copy(update={"most": 6, "per_patient": ("sex",)}) == VISITS


def test_a_value_per_patient_is_one_of_their_own_rows():
    """Catches a missing value that another patient fills in, and a first row that hides a value."""
    frame = wards(60, seed=1)
    frame.loc[np.random.default_rng(2).random(len(frame)) < 0.3, "smoker"] = None
    found = patient_table(frame, WARDS)["smoker"]
    own = {name: rows["smoker"].dropna().tolist() for name, rows in frame.groupby("id")}
    assert [None if pd.isna(word) else word for word in found] == [
        next(iter(own[name]), None) for name in frame["id"].unique()
    ]
    assert 15 < found.isna().sum() < 50


@pytest.mark.parametrize(
    ("schema", "frame"),
    [
        pytest.param(VISITS, visits(30, seed=2), id="first"),
        pytest.param(VISITS.model_copy(update={"keep": "last"}), visits(30, seed=2), id="last"),
        pytest.param(STAYS, stays(30, seed=2), id="terminal"),
        pytest.param(DIAGNOSES, diagnoses(30, seed=2), id="once"),
        pytest.param(KEPT, diagnoses(30, seed=2), id="chronic"),
    ],
)
def test_what_is_kept_of_a_patient_reads_no_other(schema, frame):
    """Catches a cap, or an end, that depends on the rows of others."""
    whole = patient_table(frame, schema)
    assert len(whole) == 30
    for name in (0, 7, 29):
        alone = patient_table(frame[frame["id"] == name], schema)
        pd.testing.assert_frame_equal(alone, whole.iloc[[name]].reset_index(drop=True))


def records_of(frame: pd.DataFrame, schema: PatientSchema) -> Counter:
    """What releases read of each patient, digit by digit."""
    records = histories_of(read_by_pandas(frame), schema)
    return Counter(map(repr, records.to_numpy(dtype=object).tolist()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "frame"),
    [
        pytest.param(VISITS, visits(6, seed=2), id="first"),
        pytest.param(VISITS.model_copy(update={"keep": "random"}), visits(6, seed=2), id="random"),
        pytest.param(STAYS.model_copy(update={"keep": "last"}), stays(6, seed=2), id="terminal"),
        pytest.param(WARDS, wards(6, seed=2), id="words"),
        pytest.param(DIAGNOSES, diagnoses(6, seed=2), id="once"),
        pytest.param(KEPT, diagnoses(6, seed=2), id="chronic"),
    ],
)
@given(st.data())
@settings(deadline=None, max_examples=10)
def test_one_patient_more_is_one_record_more_and_changes_no_other(schema, frame, data):
    """Catches rows, values or an order that depend on another patient, and a patient who counts twice."""
    rows = data.draw(patients_of(schema))
    place = data.draw(st.lists(st.integers(0, len(frame)), min_size=len(rows), max_size=len(rows)))
    both = pd.concat([frame.astype(object), rows], ignore_index=True)
    both = both.iloc[np.argsort([*range(len(frame)), *place], kind="stable")]
    before, after = records_of(frame, schema), records_of(both, schema)
    assert before <= after and (after - before).total() <= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "frame"),
    [
        pytest.param(VISITS, visits(30, seed=2), id="first"),
        pytest.param(STAYS.model_copy(update={"keep": "last"}), stays(30, seed=2), id="terminal"),
        pytest.param(WARDS, wards(30, seed=2), id="words"),
    ],
)
def test_what_is_read_of_a_patient_depends_on_no_number_of_patients(schema, frame):
    """Catches values or rows that change from so many patients, or rows, on: here 30,000 patients."""
    times = 1000
    many = pd.concat([frame] * times, ignore_index=True)
    many["id"] += 30 * np.repeat(np.arange(times), len(frame))
    once = histories_of(frame, schema)
    expected = pd.concat([once] * times, ignore_index=True)
    pd.testing.assert_frame_equal(histories_of(many, schema), expected)


def test_levels_of_courses_are_those_of_plain_pandas():
    """Catches rows after a death, a first value that is missing, and a rise of another patient."""
    frame = stays(60, seed=1)
    died = frame["id"].isin([3, 4]) & (frame.groupby("id").cumcount() == 0)
    frame.loc[died, "died"] = "yes"
    found = patient_table(frame.sample(frac=1, random_state=0), STAYS)
    order = {name: k for k, name in enumerate(("I", "II", "III", "IV"))}
    expected = []
    for name, rows in frame.groupby("id"):
        rows = rows.iloc[:1] if name in (3, 4) else rows
        stage, dose = rows["stage"].map(order), rows["dose"].dropna()
        many = len(rows) > 1
        expected.append(
            {
                "end": rows["end"].iloc[0],
                "first_age": rows["first_age"].iloc[0],
                "day first": rows["day"].iloc[0],
                "rows": len(rows),
                "died": "yes" if (rows["died"] == "yes").any() else "no",
                "stage first": rows["stage"].iloc[0],
                "stage rise": stage.max() - stage.iloc[0] if many else np.nan,
                "dose first": dose.iloc[0] if len(dose) else np.nan,
                "dose rise": dose.max() - dose.iloc[0] if len(dose) > 1 else np.nan,
            }
        )
    by = ["end", "first_age"]
    expected = pd.DataFrame(expected).sort_values(by, ignore_index=True)
    found = found[list(expected)].sort_values(by, ignore_index=True)
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)


@pytest.mark.slow
@given(frame=patients_of(STAYS), other=patients_of(VISITS.model_copy(update={"columns": VISITS.columns[:4]})))
@settings(deadline=None, max_examples=30)
def test_rows_that_are_not_used_are_counted(frame, other):
    """Catches rows that are lost without a word, a row that counts for two reasons, and a last death."""
    found = unused_rows(frame, STAYS)
    in_order = frame.assign(day=frame["day"].clip(0, 4000)).sort_values("day", kind="stable")
    died = in_order["died"].eq("yes").to_numpy()
    after = len(frame) - 1 - died.argmax() if died.any() else 0
    expected = {"after a terminal row": after, "of patients with more than 8": max(len(frame) - after - 8, 0)}
    assert found == {reason: count for reason, count in expected.items() if count}
    schema = VISITS.model_copy(update={"columns": VISITS.columns[:4]})
    empty = int(other[["lab", "grade"]].isna().all(axis=1).sum())
    expected = {"without any value": empty, "of patients with more than 6": max(len(other) - empty - 6, 0)}
    assert unused_rows(other, schema) == {reason: count for reason, count in expected.items() if count}
    used = Histories.of(other, schema, np.random.default_rng(0)).rows.sum()
    assert len(other) - sum(expected.values()) == used


def test_random_rows_are_chosen_patient_by_patient():
    """Catches fewer rows than there are, rows of one rank for all patients, or a choice that is no choice."""
    schema = VISITS.model_copy(update={"keep": "random"})
    frame = pd.DataFrame({"id": np.repeat(np.arange(400), 9), "day": np.tile(np.arange(9), 400)})
    frame = frame.assign(sex="F", lab=1, grade="a", weight=70.0)
    histories = Histories.of(frame, schema, np.random.default_rng(0))
    assert (histories.rows == schema.most).all()
    times = histories.numbers["day"]
    assert (np.diff(times, axis=1) > 0).all()
    chosen = np.bincount(times.astype(int).ravel(), minlength=9) / 400
    assert np.abs(chosen - 6 / 9).max() < 0.1


def test_a_frame_of_records_gives_the_histories_back():
    """Catches columns of rows that change places, or rows that are lost."""
    histories = Histories.of(visits(40), VISITS, np.random.default_rng(0))
    again = Histories.from_frame(histories.to_frame(VISITS), VISITS)
    np.testing.assert_array_equal(histories.rows, again.rows)
    for name, numbers in histories.numbers.items():
        np.testing.assert_array_equal(numbers, again.numbers[name])


@pytest.mark.parametrize("kind", ["date", "datetime"])
def test_rows_of_a_frame_of_records_are_those_of_the_table(kind):
    """Catches rows, words or times that differ from the table that a regression of rows is declared for."""
    taken = Column(name="taken", kind=kind, lower="2019-12-01", upper="2021-12-31")
    columns = tuple(taken if column.name == "day" else column for column in VISITS.columns)
    schema = VISITS.model_copy(update={"columns": columns, "order": "taken"})
    frame = visits(30, most=6)
    step = pd.Timedelta("1D") if kind == "date" else pd.Timedelta("95min")
    frame["taken"] = pd.Timestamp("2020-02-01") + frame.pop("day") * step
    rows, patient = rows_of(Histories.of(frame, schema, np.random.default_rng(0)).to_frame(schema), schema)
    expected = frame.sort_values(["id", "taken"], kind="stable", ignore_index=True)
    assert patient.tolist() == expected["id"].tolist()
    for name in ("taken", "lab", "grade", "weight"):
        assert rows[name].isna().tolist() == expected[name].isna().tolist()
        assert (rows[name].dropna() == expected[name].dropna()).all(), name


def test_a_schema_survives_its_file(tmp_path):
    """Catches a field that is lost on the way to YAML and back."""
    from dpsynth.files.text import dump_yaml

    changes = {"keep": "last", "n_public": 500, "name": "visits", "outcome": "died"}
    schema = STAYS.model_copy(update=changes)
    path = tmp_path / "visits.yaml"
    path.write_text(dump_yaml(schema.to_dict()))
    assert PatientSchema.from_yaml(path) == schema


def test_a_wrong_schema_is_refused():
    """Catches a schema that would fail later, after budget is spent."""
    for fields, message in [
        ({"unit": "day"}, "the unit 'day' identifies patients"),
        ({"order": "id"}, "cannot be the order"),
        ({"order": "lab"}, "order 'lab' must be a column of dates or numbers"),
        ({"per_patient": ("day",)}, "order 'day' must be a column of dates or numbers that changes"),
        ({"most": 1}, "most"),
        ({"most": MOST_ROWS + 1}, "most"),
        ({"increasing": ("day",)}, "'day': only columns that change"),
        ({"terminal": ("lab",)}, "'lab': only binary"),
        ({"order": "stay", "columns": (DIED,), "terminal": ("died",)}, "columns must name one that changes"),
        (
            {"columns": (DAY, LAB, DIED.model_copy(update={"name": "lab@0"})), "per_patient": ("lab@0",)},
            "'lab@0' has the name of a level",
        ),
        ({"outcome": "lab"}, "outcome 'lab' must be a column per patient"),
        ({"constraints": ("lab < age",)}, "age"),
        ({"ignored": ("lab",)}, "^schema: the column 'lab' is both declared and ignored"),
        ({"columns": (DAY, LAB.model_copy(update={"special": (-1.0,)}))}, "special codes"),
        ({"columns": (DAY, LAB.model_copy(update={"name": "rows"}))}, "'rows'"),
    ]:
        given = {"unit": "id", "order": "day", "most": 5, "columns": (DAY, LAB)}
        with pytest.raises(SchemaError, match=message):
            PatientSchema(**given | fields)


@pytest.mark.parametrize(
    ("yaml", "message"),
    [
        ("unit: id\ncolumns: []\n", "rows must be a mapping"),
        ("- a\n- b\n", "rows must be a mapping"),
        ("unit: id\nrows: {most: 3, order: day}\ncolumns: [day]\n", "columns must be a list of mappings"),
        (
            "unit: id\nrows: {most: 3, order: day}\ncolumns:\n"
            "  - {name: day, kind: integer, lower: 0, upper: 9, per: week}\n",
            "per must be 'row' or 'patient'",
        ),
        (
            "unit: id\nrows: {most: 3, order: day}\ncolumns:\n"
            "  - {name: day, kind: integer, lower: 0, upper: 9, over_time: falling}\n",
            "over_time must be 'chronic' or 'increasing' or 'once' or 'terminal'",
        ),
    ],
)
def test_a_wrong_file_is_refused(yaml, message):
    """Catches a traceback in place of one sentence."""
    with pytest.raises(SchemaError, match=message):
        PatientSchema.from_yaml(yaml)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e7), st.sampled_from(["linear", "log"]))
@settings(deadline=None, max_examples=100)
def test_levels_of_any_bounds_can_be_declared(lower, width, scale):
    """Catches bounds of a level that are no whole number of its steps, after rounding."""
    lab = Column(name="lab", kind="continuous", lower=lower, upper=lower + width)
    if scale == "log" and lower > 0:
        lab = lab.model_copy(update={"scale": scale})
    schema = PatientSchema(unit="id", order="day", most=5, columns=(DAY, lab))
    assert schema.levels["lab sd"].bounds[1] == pytest.approx(width / 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.drop(columns="id"), "lacks the column 'id'"),
        (lambda frame: frame.assign(id=frame["id"].where(frame["id"] > 0)), "row 1: 'id' is missing"),
        (lambda frame: frame.drop(columns="lab"), "lab"),
        (lambda frame: frame.assign(day=None), "day"),
    ],
)
def test_a_wrong_table_is_refused(change, message):
    """Catches a row without a patient, or a table of other columns."""
    with pytest.raises(DataError, match=message):
        patient_table(change(visits(5)), VISITS)


def test_a_date_orders_rows_as_its_number_of_days_does():
    """Catches dates that are sorted as text, gaps in other units than days, and a first day as a number."""
    numbers = visits(60, seed=3)
    dates = numbers.assign(day=pd.Timestamp("2010-01-01") + pd.to_timedelta(numbers["day"], unit="D"))
    others = VISITS.columns[1:]
    for kind, upper in (("date", "2011-01-01"), ("datetime", "2011-01-01 00:00")):
        day = Column(name="day", kind=kind, lower="2010-01-01", upper=upper)
        found = patient_table(dates, VISITS.model_copy(update={"columns": (day, *others)}))
        plain = patient_table(numbers, VISITS)
        assert ((found["day first"] - pd.Timestamp("2010-01-01")).dt.days == plain["day first"]).all()
        np.testing.assert_allclose(found["day span"].astype(float), plain["day span"].astype(float))
        pd.testing.assert_frame_equal(found[list(plain.columns[4:])], plain[list(plain.columns[4:])])
        own = VISITS.model_copy(update={"columns": (day, *others)})
        histories = Histories.of(dates, own, np.random.default_rng(0)).numbers["day"]
        same = Histories.of(numbers, VISITS, np.random.default_rng(0)).numbers["day"]
        np.testing.assert_allclose(np.diff(histories, axis=1), np.diff(same, axis=1))
        assert own.clock.unit == "days" and own.clock.bounds[1] - own.clock.bounds[0] == 365


def test_other_dates_that_change_from_row_to_row_are_refused():
    """Catches a discharge date that is modelled as days since 1970."""
    left = Column(name="left", kind="date", lower="2010-01-01", upper="2011-01-01")
    born = Column(name="born", kind="date", lower="1910-01-01", upper="2011-01-01")
    with pytest.raises(SchemaError, match="Declare this one as derived, from the order"):
        PatientSchema(unit="id", order="day", most=3, columns=(DAY, left))
    own = PatientSchema(unit="id", order="day", most=3, columns=(DAY, born, LAB), per_patient=("born",))
    assert own.levels["born"].kind == "date"


def test_a_discharge_follows_from_the_order_and_a_stay():
    """Catches a stay that is not read from two dates, and a discharge that is a level."""
    day = Column(name="day", kind="date", lower="2010-01-01", upper="2011-01-01")
    stay = Column(name="stay", kind="integer", lower=0, upper=99, read_as="left - day")
    left = Column(name="left", kind="date", lower="2010-01-01", upper="2012-01-01", derived="day + stay")
    own = PatientSchema(
        unit="id", order="day", most=3, columns=(day, stay, left), constraints=("day <= left",)
    )
    rows = pd.DataFrame(
        {
            "id": [1, 1, 2],
            "day": ["2010-03-01", "2010-02-01", "2010-05-05"],
            "left": ["2010-03-04", "2010-02-02", "2010-05-25"],
        }
    )
    found = patient_table(rows, own)
    assert found["stay mean"].tolist() == [2.0, 20.0] and found["day span"].tolist()[0] == 28
    assert not [name for name in found if name.startswith("left")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.assign(id="?"), "row 1: 'id' is missing.*confidential"),
        (lambda frame: frame.assign(id=" "), "row 1: 'id' is missing"),
        (
            lambda frame: frame.assign(stay=[pd.Timestamp(0), *frame["stay"][1:]]),
            "'stay' .*cannot be compared",
        ),
    ],
)
def test_rows_of_nobody_or_in_no_order_are_refused(change, message):
    """Catches persons without identifiers that pass for one, and a traceback of what cannot be sorted."""
    with pytest.raises(DataError, match=message):
        patient_table(change(wards(5)), WARDS)


def test_a_number_that_means_missing_elsewhere_identifies_a_patient():
    """Catches a third patient or third stay that is refused, since 3 is a code in other columns."""
    assert len(patient_table(wards(5), WARDS.model_copy(update={"missing_words": ("?", "3")}))) == 5


def test_rows_may_have_dates_as_an_order_that_is_no_column():
    """Catches dates that cannot be compared, or that do not order rows."""
    frame = wards(5)
    dates = frame.assign(stay=pd.Timestamp("2010-01-01") + pd.to_timedelta(frame["stay"], unit="D"))
    pd.testing.assert_frame_equal(patient_table(dates, WARDS), patient_table(frame, WARDS))
