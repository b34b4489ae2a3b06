"""Drafts of the schema of patients with several rows."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth.errors import DataError
from dpsynth.patients import inference as patient_inference
from dpsynth.patients.files import read_files
from dpsynth.patients.inference import infer_patient_schema
from dpsynth.patients.schema import PatientSchema
from dpsynth.table.csv_format import CsvFormat
from dpsynth.table.files import read_table


def clinic(n: int = 60) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Patients, visits and laboratory values in long form. Patient 0 has no visit, as numbers and text."""
    rng = np.random.default_rng(3)
    who = np.repeat(np.arange(1, n), rng.integers(1, 5, n - 1))
    patients = pd.DataFrame({"patient_id": range(n), "sex": rng.choice(["F", "M"], n)})
    visits = pd.DataFrame({"patient_id": who, "visit_id": np.arange(len(who)) * 7 + 1000})
    visits["day"] = rng.integers(1, 90, len(who))
    visits["day"] = visits.groupby("patient_id")["day"].cumsum()
    visits["sex"] = patients["sex"].to_numpy()[who]
    visits["sbp"] = rng.integers(90, 190, len(who))
    labs = visits[["patient_id", "day"]].sample(frac=0.8, random_state=0)
    labs = labs.assign(test=rng.choice(["hdl", "blood"], len(labs)), unit="mg")
    labs["result"] = [
        str(rng.integers(20, 90)) if t == "hdl" else rng.choice(["A", "B"]) for t in labs["test"]
    ]
    return patients, visits, labs


def test_a_long_table_is_drafted_for_patients():
    """Catches a key that is modelled, a visit's number as a value of patients, or fields without review."""
    made = infer_patient_schema(clinic()[1])
    schema = made.schema
    assert (schema.unit, schema.order, schema.most, schema.per_patient) == ("patient_id", "day", 5, ("sex",))
    assert schema.ignored == ("visit_id",) and schema.names == ("day", "sex", "sbp")
    assert schema.unreviewed["rows"] == ("unit", "most", "order", "per")
    assert all(schema.unreviewed[name] for name in schema.names)
    said = "\n".join(made.lines())
    assert "patient_id" in said and "at most 5 rows" in said and "orders the rows" in said
    assert PatientSchema.from_yaml(made.to_yaml()) == schema
    assert "patient_id" in str(made) and "orders the rows" in made._repr_html_()


def test_a_folder_is_drafted_and_its_own_draft_reads_it(tmp_path):
    """Catches items that are no columns, files in the wrong form, and a draft that the files do not fit."""
    patients, visits, labs = clinic()
    patients.to_csv(tmp_path / "patients.csv", index=False)
    visits.to_parquet(tmp_path / "visits.parquet")
    labs.to_csv(tmp_path / "labs.csv.gz", index=False)
    schema = infer_patient_schema(read_files(tmp_path, CsvFormat())).schema
    files = {file.name: file.entry() for file in schema.files}
    assert files == {
        "patients.csv": ["sex"],
        "labs.csv": {"item": "test", "value": "result", "columns": ["blood", "hdl"]},
        "visits.parquet": ["sbp"],
    }
    assert schema.column("blood").categories == ("A", "B") and schema.column("hdl").kind == "integer"
    assert all(schema.column(name).missing for name in ("blood", "hdl", "sbp"))
    assert not any(column.missing for column in schema.columns)
    assert schema.ignored == ("unit", "visit_id") and "files" in schema.rows_unreviewed
    with pytest.warns(match="1 patient"):
        rows = schema.read(tmp_path)
    assert len(rows) == len(visits) and rows["hdl"].notna().any()


@pytest.mark.parametrize(("most", "long"), [(2, True), (1, False)])
def test_many_names_of_values_are_a_column(most, long, tmp_path, monkeypatch):
    """Catches a file of free text in long form that becomes a column for each text, or loses its rows.

    With one name more than the cap, the names are a category beside the values. Either draft reads the files.
    """
    monkeypatch.setattr(patient_inference, "_MOST_ITEMS", most)
    patients, visits, labs = clinic()
    labs = labs[labs["test"] == "hdl"].assign(test=lambda own: np.resize(["hdl", "ldl"], len(own)))
    labs = labs.drop(columns="unit").drop_duplicates(["patient_id", "day"])
    frames = {"p.csv": patients, "v.csv": visits.drop(columns="visit_id"), "labs.csv": labs}
    for file, frame in frames.items():
        frame.to_csv(tmp_path / file, index=False)
    schema = infer_patient_schema(read_files(tmp_path, CsvFormat())).schema
    assert set(schema.names) == {"sex", "day", "sbp"} | ({"hdl", "ldl"} if long else {"test", "result"})
    with pytest.warns(match="1 patient"):
        rows = schema.read(tmp_path)
    values = rows[["hdl", "ldl"]].sum().sum() if long else rows["result"].sum()
    assert values == labs["result"].astype(int).sum()


@pytest.mark.parametrize(
    ("longest", "most", "more"), [(100, 100, 0), (101, 100, 60), (20, 20, 0), (21, 50, 0)]
)
def test_the_number_of_rows_is_a_round_one(longest, most, more):
    """Catches a number for more rows than are used at most, or the next round number where it is enough."""
    frame = pd.DataFrame(
        {"patient_id": np.repeat(np.arange(60), longest), "day": np.tile(range(longest), 60)}
    )
    frame["sbp"] = np.resize(range(90, 190), len(frame))
    made = infer_patient_schema(frame)
    assert made.schema.most == most
    assert f"at most {most} rows of a patient are used, and {more:,} patients have more" in "\n".join(
        made.lines()
    )


@pytest.mark.parametrize(
    "spelled",
    [
        lambda day: day.astype(float),
        lambda day: day.map("{:.1f}".format),
        lambda day: pd.Timestamp("2000-01-01") + pd.to_timedelta(day, unit="D"),
    ],
    ids=["decimals", "text", "dates"],
)
def test_rows_at_one_time_in_two_files_are_one(spelled):
    """Catches a day that is 7 in one file and 7.0 in the other, which doubles the rows of each patient."""
    visits = pd.DataFrame({"patient_id": np.repeat(np.arange(60), 4), "day": np.tile([1, 5, 9, 20], 60)})
    dated = spelled(visits["day"])
    labs = visits.assign(day=dated, hb=np.resize([9, 12, 8, 15, 7], len(visits)))
    visits = visits.assign(sbp=np.resize(range(90, 190), len(visits)))
    if pd.api.types.is_datetime64_any_dtype(dated.dtype):
        visits["day"] = dated.dt.strftime("%Y-%m-%d 00:00")
    made = infer_patient_schema({"v.csv": visits, "labs.csv": labs})
    assert made.schema.most == 5


def test_a_time_with_an_empty_cell_is_asked_about():
    """Catches a traceback where another column of the file rises by chance and takes the time's name."""
    visits = pd.DataFrame({"patient_id": np.repeat(np.arange(60), 4), "day": np.tile([1, 5, 9, 20], 60)})
    labs = visits.assign(day=visits["day"].where(visits.index > 0), hb=np.tile([8, 9, 10, 11], 60))
    frames = {"v.csv": visits.assign(sbp=np.resize(range(90, 190), 240)), "labs.csv": labs}
    with pytest.raises(DataError, match=r"'hb' seems to order the rows of labs\.csv, .* 'day' too.*--order"):
        infer_patient_schema(frames)
    made = infer_patient_schema(frames, order="day")
    assert made.schema.most == 5 and any("1 empty cells" in line for line in made.lines())


def test_files_that_call_the_time_differently_are_drafted(tmp_path):
    """Catches a folder of a hospital that is refused since a visit and a sample have times of other names."""
    patients, visits, labs = clinic()
    frames = {"p.csv": patients, "v.csv": visits, "labs.csv": labs.rename(columns={"day": "charttime"})}
    frames["v.csv"] = visits.drop(columns="visit_id")
    made = infer_patient_schema(frames)
    orders = {file.name: file.order for file in made.schema.files}
    assert made.schema.order == "day" and orders == {"p.csv": None, "v.csv": None, "labs.csv": "charttime"}
    assert any("charttime orders the rows of labs.csv. Is it so?" in line for line in made.lines())
    for file, frame in frames.items():
        frame.to_csv(tmp_path / file, index=False)
    with pytest.warns(match="1 patient"):
        assert len(made.schema.read(tmp_path)) == len(visits)
    assert infer_patient_schema(frames, order="charttime").schema.files[1].order == "day"


@pytest.mark.slow
def test_files_may_write_dates_in_two_forms(tmp_path):
    """Catches a form that the first file alone decides, and an error that does not name the other file."""
    patients, visits, labs = clinic(2000)
    frames = {"p.csv": patients, "a.csv": visits.drop(columns="visit_id"), "b.csv": labs}

    def written(*forms):
        for (file, frame), form in zip(list(frames.items())[1:], forms, strict=True):
            moments = pd.Timestamp("2000-01-01") + pd.to_timedelta(frame["day"], unit="D")
            moments += pd.to_timedelta(np.arange(len(frame)) % 1440, unit="min")
            frame.assign(day=moments.dt.strftime(form)).to_csv(tmp_path / file, index=False)
        return read_files(tmp_path, CsvFormat())

    patients.to_csv(tmp_path / "p.csv", index=False)
    schema = infer_patient_schema(written("%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M")).schema
    assert schema.column("day").format == "%d.%m.%Y %H:%M"
    with pytest.warns(match="1 patient"):
        assert len(schema.read(tmp_path)) >= len(visits)
    with pytest.raises(DataError, match=r"20[^']*' in a.csv, '[0-9.: ]*' in b.csv \(confidential\)"):
        infer_patient_schema(written("%d/%m/%Y %H:%M", "%d.%m.%Y %H:%M"))


def test_codes_of_rows_are_drafted_as_missing():
    """Catches a code of a laboratory value that the schema of rows refuses, or that is taken for public."""
    visits = clinic(400)[1]
    visits.loc[visits.index % 9 == 0, "sbp"] = -9
    column = infer_patient_schema(visits).schema.column("sbp")
    assert (column.missing, column.missing_codes, column.special) == (True, (-9,), ())
    assert "missing_codes" in column.unreviewed and column.lower >= 90


def test_a_file_that_changes_nothing_is_left_out():
    """Catches a file of repeated rows that is taken for the file of patients."""
    patients, visits, labs = clinic()
    bare = visits[["patient_id", "day"]].assign(centre="north")
    made = infer_patient_schema({"p.csv": patients, "bare.csv": bare, "v.csv": visits, "labs.csv": labs})
    assert [file.name for file in made.schema.files] == ["p.csv", "v.csv", "labs.csv"]
    assert "centre" in made.schema.ignored
    assert any(line.startswith("left out: bare.csv") for line in made.lines())


def test_options_choose_and_are_not_asked_about():
    """Catches a guess that overrides the owner, or a chosen column that is still asked about."""
    visits = clinic()[1].rename(columns={"patient_id": "who", "day": "after"})
    schema = infer_patient_schema(visits, unit="who", order="after", drop=["visit_id"]).schema
    assert (schema.unit, schema.order, schema.ignored) == ("who", "after", ("visit_id",))
    assert schema.rows_unreviewed == ("most", "per")


def test_a_number_of_visits_orders_rows_without_being_a_column():
    """Catches identifiers of visits that are modelled as measurements."""
    made = infer_patient_schema(clinic()[1], order="visit_id", drop=["day"])
    assert made.schema.order == "visit_id" and made.schema.names == ("sex", "sbp")
    assert "visit_id: orders the rows and is not released" in "\n".join(made.lines())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.rename(columns={"patient_id": "who"}), "repeats its values. Name the one with unit"),
        (lambda t: t[["patient_id", "sex", "sbp"]], "seems to order the rows of a patient. Name one"),
        (lambda t: t.assign(day="2020-01-01"), "seems to order"),
        (lambda t: t.drop_duplicates("patient_id"), "repeats its values"),
    ],
)
def test_what_cannot_be_found_is_asked_for(change, message):
    """Catches a draft with a key or an order that is none."""
    with pytest.raises(DataError, match=message):
        infer_patient_schema(change(clinic()[1]).drop(columns="visit_id", errors="ignore"))


def test_a_date_orders_rows_and_another_is_left_out():
    """Catches a date that is passed over without a word, and a discharge that no schema could model."""
    visits = clinic()[1]
    dates = pd.Timestamp("2020-01-01") + pd.to_timedelta(visits.pop("day"), unit="D")
    visits = visits.assign(seen=dates.dt.strftime("%d/%m/%Y"), left=dates + pd.Timedelta(days=2))
    made = infer_patient_schema(visits, order="seen")
    seen = made.schema.column("seen")
    assert (seen.kind, seen.format, seen.unreviewed) == (
        "date",
        "%d/%m/%Y",
        ("kind", "lower", "upper", "format"),
    )
    assert "left" in made.schema.ignored and any(
        "Declare the days since 'seen'" in line for line in made.lines()
    )


def test_a_slip_leaves_a_column_per_patient_and_is_asked_about():
    """Catches one wrong cell that makes a patient's sex change from visit to visit, or hides."""
    visits = pd.concat([clinic(400)[1]], ignore_index=True)
    row = int(visits["patient_id"].duplicated().idxmax())
    visits.loc[row, "sex"] = "M" if visits.loc[row, "sex"] == "F" else "F"
    made = infer_patient_schema(visits)
    assert made.schema.per_patient == ("sex",)
    assert any("sex (1 of" in line and "with exceptions" in line for line in made.lines())


@pytest.mark.parametrize(
    ("name", "order", "constant", "changing"),
    [
        ("pbcseq.csv", "day", {"sex", "age", "trt", "status"}, {"bili", "albumin", "stage"}),
        ("nafld_visits_odd.csv.gz", "days", set(), {"hdl", "sbp"}),
    ],
)
def test_published_tables_are_drafted(name, order, constant, changing):
    """Catches rules that fit made-up tables alone."""
    path = Path(os.environ.get("DPSYNTH_DATA_DIR", "")) / name
    if not path.is_file():
        pytest.skip(f"needs {name} in DPSYNTH_DATA_DIR")
    schema = infer_patient_schema(read_table(path)).schema
    assert (schema.unit, schema.order) == ("id", order)
    assert {*schema.per_patient} == constant
    assert changing <= {*schema.names}


def test_a_death_in_the_last_row_and_copied_rows_are_asked_about():
    """Catches a death that rows may follow, one that is no end, and rows that were exported twice."""
    visits = clinic(200)[1].sort_values(["patient_id", "day"])
    dies = (visits["patient_id"] % 3 == 0) & ~visits["patient_id"].duplicated(keep="last")
    visits = visits.assign(died=np.where(dies, "yes", "no"), smokes=np.where(visits["day"] % 2, "yes", "no"))
    visits["day"] = (pd.Timestamp("2000-01-01") + pd.to_timedelta(visits["day"], unit="D")).dt.strftime(
        "%d.%m.%Y"
    )
    made = infer_patient_schema(pd.concat([visits, visits[dies].tail(1), visits.head(1)]))
    (asked,) = [each for each in made.questions if "over_time: terminal" in each.text]
    several = int((dies & visits["patient_id"].duplicated()).sum())
    assert (asked.column, asked.detail) == ("died", f"'yes' of {several} patients with several rows")
    assert (
        "question: rows of the table are exact copies of earlier ones. Remove those that are slips: 2"
        in made.lines()
    )
    early = visits.assign(died=np.where(visits["patient_id"].duplicated(), "no", visits["died"].max()))
    for frame in (early, visits.assign(died=np.where(visits.index % 2, "yes", "no"))):
        questions = infer_patient_schema(frame).questions
        assert not any("terminal" in each.text or "copies" in each.text for each in questions)
