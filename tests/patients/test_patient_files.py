"""Patients' rows in several files of a folder."""

from __future__ import annotations

import itertools
import warnings
from decimal import Decimal
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsynth.errors import DataError, OwnerWarning, SchemaError
from dpsynth.files.text import dump_yaml
from dpsynth.patients import infer_patient_schema
from dpsynth.patients.files import PatientFile, cell_texts, ordered, places, read_files
from dpsynth.patients.schema import PatientSchema
from dpsynth.table.csv_format import CsvFormat

SCHEMA = PatientSchema.from_yaml("""
unit: patient_id
rows: {most: 8, order: day}
files:
  patients.csv: [sex]
  visits.parquet: [sbp, smoker]
  labs.csv: {item: test, value: result, columns: [hdl, crp, "=sign"]}
columns:
  - {name: day, kind: integer, lower: 0, upper: 9}
  - {name: sex, kind: binary, categories: [F, M], per: patient}
  - {name: sbp, kind: integer, lower: 50, upper: 250, missing: true}
  - {name: smoker, kind: binary, categories: ["no", "yes"], missing: true}
  - {name: hdl, kind: integer, lower: 5, upper: 150, missing: true}
  - {name: crp, kind: continuous, lower: 0, upper: 500, missing: true}
  - {name: "=sign", kind: categorical, categories: [neg, "+1", "=", None], missing: true}
""")
KEYS = ["patient_id", "day", "turn"]
ITEMS = {
    "hdl": st.integers(5, 150),
    "crp": st.floats(0, 500),
    "=sign": st.sampled_from(["neg", "+1", "=", "None"]),
}
VISIT = st.tuples(
    st.integers(1, 4),
    st.integers(0, 2),
    st.none() | st.integers(50, 250),
    st.none() | st.sampled_from(["no", "yes"]),
)
LAB = st.sampled_from([*ITEMS, "other"]).flatmap(
    lambda item: st.tuples(
        st.integers(1, 4), st.integers(0, 2), st.just(item), st.none() | ITEMS.get(item, st.just(1))
    )
)


def put(folder: Path, visits: list, labs: list, sexes: str = "FMFM") -> tuple[pd.DataFrame, pd.DataFrame]:
    """Write the files of SCHEMA, rows in any order."""
    ids = range(1, len(sexes) + 1)
    pd.DataFrame({"patient_id": ids, "sex": [*sexes]}).to_csv(folder / "patients.csv", index=False)
    seen = pd.DataFrame(visits, columns=["patient_id", "day", "sbp", "smoker"])
    seen = seen.astype({"patient_id": float, "day": int, "sbp": float, "smoker": "str"})
    seen.to_parquet(folder / "visits.parquet")
    made = pd.DataFrame(labs, columns=["patient_id", "day", "test", "result"], dtype=object)
    made.to_csv(folder / "labs.csv", index=False)
    return seen, made


def read(folder: Path) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OwnerWarning)
        return SCHEMA.read(folder)


def merged(visits: pd.DataFrame, labs: pd.DataFrame) -> pd.DataFrame:
    """The rows that the files give together, by pandas' own merge."""
    parts = [visits[visits[["sbp", "smoker"]].notna().any(axis=1)]]
    for item in ITEMS:
        part = labs[(labs["test"] == item) & labs["result"].notna()]
        parts.append(part.drop(columns="test").rename(columns={"result": item}))
    for k, part in enumerate(parts):
        part = part.astype({"patient_id": int, "day": int})
        parts[k] = part.assign(turn=part.groupby(["patient_id", "day"]).cumcount())
    rows = reduce(lambda left, right: left.merge(right, on=KEYS, how="outer"), parts)
    rows["sex"] = rows["patient_id"].map(dict(enumerate("FMFM", start=1)))
    return rows.sort_values(KEYS)


@pytest.mark.slow
@given(st.lists(VISIT, max_size=12), st.lists(LAB, max_size=12))
@settings(deadline=None, max_examples=15)
def test_files_are_joined_as_pandas_would_and_written_back(visits, labs):
    """Catches values of another patient, time or item, rows lost or doubled, files that do not come back."""
    with TemporaryDirectory() as place:
        folder, again = Path(place) / "a", Path(place) / "b"
        folder.mkdir()
        again.mkdir()
        expected = merged(*put(folder, visits, labs))
        found = read(folder)
        SCHEMA.folder.write(found, again)
        pd.testing.assert_frame_equal(read(again), found)
    found = found.assign(patient_id=found["patient_id"].astype(int))
    found["turn"] = found.groupby(["patient_id", "day"]).cumcount()
    found = found.sort_values(KEYS)[expected.columns]
    plain = [
        frame.astype(object).where(frame.notna(), None).to_numpy().tolist() for frame in (found, expected)
    ]
    assert plain[0] == plain[1]


def test_what_becomes_of_a_patients_values_reads_no_other(tmp_path):
    """Catches values that join rows, or are left out, because of what another patient has."""
    visits = [(who, day, 100 + who, "no") for who in (1, 2, 3, 4) for day in (0, 0, 1)]
    labs = [(who, day, "hdl", 50 + who + day) for who in (4, 3, 2, 1) for day in (1, 0, 0)]
    put(tmp_path, visits, labs)
    whole = read(tmp_path)
    for who in "1234":
        put(tmp_path, [v for v in visits if v[0] == int(who)], [v for v in labs if v[0] == int(who)])
        alone = whole[whole["patient_id"] == who].reset_index(drop=True)
        assert len(alone) == 3
        pd.testing.assert_frame_equal(read(tmp_path), alone)


ORDERS = st.one_of(
    st.text("\0a1.", max_size=3),
    st.sampled_from([1, True, 1.0, 2.5, 2**60, 2**60 + 1, np.float32(1), Decimal("1.10"), "1", "1.0", None]),
)


@given(st.one_of(st.lists(ORDERS, max_size=6), st.lists(st.text("\0a", max_size=3), max_size=6)))
@example([1, True])
@example(["a\0b", "a\0c"])
def test_words_and_times_of_a_row_read_no_other(cells):
    """Catches an item or a time that another row changes: in a column of text pandas stops at a NUL, and it
    takes True for the 1 of an earlier row.
    """

    def column(*own: object) -> pd.Series:
        return pd.Series(np.array([*own, None], dtype=object)[:-1], dtype=object)

    assert cell_texts(column(*cells)).tolist() == [cell_texts(column(cell))[0] for cell in cells]
    alone = [ordered(column(cell))[0] for cell in cells]
    assert ordered(column(*cells)).tolist() == alone
    place = places(column(*cells)).tolist()
    for (one, a), (other, b) in itertools.combinations(zip(alone, place, strict=True), 2):
        first, second = places(column(one, other)).tolist()
        assert np.sign(first - second) == np.sign(a - b)


def test_what_is_left_out_is_told_to_the_owner(tmp_path):
    """Catches patients, items or rows that disappear without a word, or a number without its mark."""
    put(tmp_path, [(1, 0, 120, None), (1, 1, None, None)], [(1, 0, "other", 3), (1, 0, "hdl", 50)])
    with pytest.warns(OwnerWarning) as told:
        SCHEMA.read(tmp_path)
    said = sorted(str(one.message).split(": ")[1] for one in told)
    assert said == [
        "left out 1 row(s) with a value of 'test' that is no column of the schema (confidential)",
        "left out 1 row(s) without any value (confidential)",
        "left out 3 patient(s) without a row in the other files (confidential)",
    ]


def change(name: str, how):
    """Change one file of a folder."""

    def changed(folder: Path) -> None:
        path = folder / name
        parquet = name.endswith(".parquet")
        frame = how(pd.read_parquet(path) if parquet else pd.read_csv(path, dtype=object))
        if parquet:
            frame.to_parquet(path)
        else:
            frame.to_csv(path, index=False)

    return changed


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda folder: (folder / "labs.csv").unlink(), r"labs.csv: cannot be read"),
        (
            change("visits.parquet", lambda t: t.drop(columns="patient_id")),
            "visits.parquet: .*'patient_id', which identifies",
        ),
        (
            change("visits.parquet", lambda t: t.assign(patient_id=None)),
            "visits.parquet, row 1: 'patient_id' is missing.*confidential",
        ),
        (
            change("labs.csv", lambda t: t.drop(columns="test")),
            "labs.csv: the column 'test', which names the columns",
        ),
        (change("labs.csv", lambda t: t.drop(columns="day")), "labs.csv: .*'day', which orders the rows"),
        (change("labs.csv", lambda t: t.assign(day=None)), "'day', row 1 .*labs.csv, line 2.*missing"),
        (change("labs.csv", lambda t: t.assign(result="x")), "'hdl', row 1 .*labs.csv, line 2.*not a number"),
        (change("patients.csv", lambda t: t[1:]), "patients.csv: patient '1' of another file .*confidential"),
        (
            change("patients.csv", lambda t: pd.concat([t, t[:1]])),
            "patients.csv, row 5: patient '1' has a row already.*confidential",
        ),
        (change("patients.csv", lambda t: t.drop(columns="sex")), "patients.csv: .*lacks.*'sex'"),
        (change("patients.csv", lambda t: t.assign(age=3)), "patients.csv: .*'age'.*does not declare"),
    ],
)
def test_files_that_do_not_belong_together_are_refused(changed, message, tmp_path):
    """Catches rows that are joined wrongly or dropped in place of one sentence that names the file."""
    put(tmp_path, [(1, 0, 120, None)], [(1, 0, "hdl", 50)])
    read(tmp_path)
    changed(tmp_path)
    with pytest.raises(DataError, match=message):
        read(tmp_path)


def test_a_word_for_a_missing_value_is_no_patient(tmp_path):
    """Catches several persons without identifiers that pass for one patient."""
    put(tmp_path, [], [("?", 0, "hdl", 50)])
    with pytest.raises(DataError, match=r"labs.csv, row 1: 'patient_id' is missing.*confidential"):
        SCHEMA.model_copy(update={"missing_words": ("?",)}).read(tmp_path)


def test_a_column_of_another_file_is_not_read(tmp_path):
    """Catches the sex of a visit in place of the one that the schema names."""
    put(tmp_path, [(1, 0, 120, None)], [])
    change("visits.parquet", lambda t: t.assign(sex="M"))(tmp_path)
    assert read(tmp_path)["sex"].tolist() == ["F"]


def test_one_file_with_all_columns_is_read_too(tmp_path):
    """Catches a schema with files that cannot read the long table that `sample` writes."""
    put(tmp_path, [(1, 0, 120, "no")], [(1, 0, "crp", 50.25)])
    rows = read(tmp_path)
    rows.to_csv(tmp_path / "long.csv", index=False)
    pd.testing.assert_frame_equal(SCHEMA.read(tmp_path / "long.csv"), rows, check_dtype=False)


FILES = {
    "patients.csv": ["sex"],
    "visits.parquet": ["sbp", "smoker"],
    "labs.csv": {"item": "test", "value": "result", "columns": ["hdl", "crp", "=sign"]},
}


def test_wrong_files_are_refused():
    """Catches a folder that would fail, or write a file elsewhere, after budget is spent."""
    for files, message in [
        ({"labs.csv": None}, "no file has the column"),
        ({"patients.csv": ["sex", "sbp"]}, "'sbp' stands in 'patients.csv' and 'visits.parquet'"),
        ({"patients.csv": ["sex", "age"]}, "names 'age', which is not a column"),
        ({"patients.csv": ["sex", "day"]}, "need not name 'day'"),
        ({"../patients.csv": ["sex"], "patients.csv": None}, "name no folder"),
        ({"patients.txt": ["sex"], "patients.csv": None}, "end with .csv or .parquet"),
        ({"labs.csv": {"item": "test", "columns": ["hdl", "crp", "=sign"]}}, "item, value and columns"),
        ({"labs.csv": {**FILES["labs.csv"], "unit": "mg"}}, "unit"),
        ({"labs.csv": {**FILES["labs.csv"], "item": "day"}}, "columns of their own"),
        ({"labs.csv": "hdl"}, "list of columns"),
        ({"labs.csv": {**FILES["labs.csv"], "order": "result"}}, "columns of their own"),
        ({"patients.csv": {"columns": ["sex"], "order": "born"}}, "needs no order"),
        ({"patients.csv": None, "labs.csv": {**FILES["labs.csv"], "columns": ["sex", "hdl"]}}, "per patient"),
    ]:
        given_files = {name: entry for name, entry in (FILES | files).items() if entry is not None}
        with pytest.raises(SchemaError, match=message):
            PatientSchema.from_dict(SCHEMA.to_dict() | {"files": given_files})


def test_a_name_that_leads_elsewhere_on_any_platform_is_refused():
    """Catches a schema whose file lies in another folder, on another drive or nowhere, here or on Windows."""
    for name in [
        *("../a.csv", "a/b.csv", "/a.csv", "..\\a.csv", "C:a.csv", "C:\\a.csv", "\\\\host\\a.csv", "..", "."),
        *("a\0.csv", "a\n.csv", "a\u202ev.csv", "NUL.csv", "con.parquet", "Com1.x.csv", "a.csv:b.csv"),
        *("a?.csv", "*.csv", "a.csv ", "a.csv.", "nul .csv", "COM¹.csv", "lpt3  .x.csv"),
        *("CONIN$.csv", "conout$.csv", "CLOCK$.csv", "a" * 227 + ".csv", "é" * 120 + ".csv"),
    ]:
        with pytest.raises(SchemaError, match=r"\.csv or \.parquet|not the name of a file on every computer"):
            PatientFile(name=name)
        for kept in ("..a b (é).csv", "a" * 226 + ".csv", "null.csv", "console.csv", "com10.csv"):
            assert PatientFile(name=kept).name == kept


def test_a_value_that_its_own_file_always_has_is_missing_with_the_file_alone(tmp_path):
    """Catches a cell that may be empty since another file has rows, and formulas of it that may not be."""
    stated = SCHEMA.to_dict()
    for column in stated["columns"]:
        column |= {"missing": False} if column["name"] in ("sbp", "hdl") else {}
    derived = {"name": "sbp / 7", "kind": "continuous", "lower": 0, "upper": 99, "derived": "sbp / 7"}
    stated["columns"].append(derived)
    schema = PatientSchema.from_dict(stated)
    assert schema.to_dict() == PatientSchema.from_yaml(schema.to_yaml()).to_dict()
    put(tmp_path, [(1, 0, 120, None)], [(1, 0, "hdl", 50), (2, 1, "hdl", 51), (2, 2, "hdl", None)], "FM")
    rows = schema.read(tmp_path)
    assert rows["sbp"].isna().tolist() == rows["sbp / 7"].isna().tolist() == [False, True]
    found = [(presence.name, presence.columns, presence.within) for presence in schema.presences]
    visit = ("visits.parquet", ("sbp", "smoker"), "")
    assert found[:2] == [visit, ("smoker", ("smoker",), "visits.parquet")]
    assert [name for name, _, within in found[2:] if not within] == ["hdl", "crp", "=sign"]
    put(tmp_path, [(1, 0, None, "no")], [], "F")
    with pytest.raises(DataError, match=r"'sbp', row 1.*missing"):
        schema.read(tmp_path)


def test_each_file_may_call_the_time_by_its_own_name(tmp_path):
    """Catches times of one file that are lost, or written under another name than they were read from."""
    stated = SCHEMA.to_dict()
    stated["files"]["labs.csv"]["order"] = "charttime"
    stated["files"]["visits.parquet"] = {"order": "seen", "columns": ["sbp", "smoker"]}
    schema = PatientSchema.from_yaml(dump_yaml(stated))
    seen, taken = [(1, 0, 120, "no"), (1, 2, 130, None)], [(1, 2, "hdl", 50), (2, 1, "crp", 5)]
    visits, labs = put(tmp_path, seen, taken, "FM")
    plain = read(tmp_path)
    # a column of another meaning may have the name of the order
    visits.rename(columns={"day": "seen"}).assign(day=7).to_parquet(tmp_path / "visits.parquet")
    labs.rename(columns={"day": "charttime"}).to_csv(tmp_path / "labs.csv", index=False)
    rows = schema.read(tmp_path)
    pd.testing.assert_frame_equal(rows, plain)
    (tmp_path / "again").mkdir()
    schema.folder.write(rows, tmp_path / "again")
    assert [*pd.read_csv(tmp_path / "again" / "labs.csv")] == ["patient_id", "charttime", "test", "result"]
    pd.testing.assert_frame_equal(schema.read(tmp_path / "again"), plain)
    labs.to_csv(tmp_path / "labs.csv", index=False)
    with pytest.raises(DataError, match="'charttime', which orders the rows, is not in the file"):
        schema.read(tmp_path)
    labs.rename(columns={"day": "charttime"}).assign(charttime="x").to_csv(tmp_path / "labs.csv", index=False)
    with pytest.raises(DataError, match=r"'charttime', row 1 .*labs.csv, line 2"):
        schema.read(tmp_path)
    columns = tuple(column for column in schema.columns if column.name != "day")
    with pytest.raises(DataError, match=r"labs.csv, row 1: 'charttime' is missing, but orders the rows"):
        labs.rename(columns={"day": "charttime"}).assign(charttime="").to_csv(tmp_path / "labs.csv")
        schema.model_copy(update={"columns": columns}).read(tmp_path)


def test_a_column_is_read_by_a_formula_of_its_own_file(tmp_path):
    """Catches a discharge that is not read from its file, or not written to it."""
    stays = pd.DataFrame({"id": [1, 1, 2], "admitted": ["2020-01-01", "2020-03-01", "2020-02-01"]})
    stays["discharged"] = ["2020-01-05", "2020-03-02", "2020-02-01"]
    stays.to_csv(tmp_path / "stays.csv", index=False)
    pd.DataFrame({"id": [1], "taken": ["2020-01-02"], "test": ["k"], "value": [4.5]}).to_csv(
        tmp_path / "labs.csv", index=False
    )
    schema = PatientSchema.from_yaml("""
unit: id
rows: {most: 8, order: admitted}
files:
  stays.csv: [stay]
  labs.csv: {item: test, value: value, order: taken, columns: [k]}
columns:
  - {name: admitted, kind: date, lower: 2020-01-01, upper: 2020-12-31}
  - {name: stay, kind: integer, lower: 0, upper: 30, read_as: discharged - admitted}
  - {name: discharged, kind: date, lower: 2020-01-01, upper: 2021-12-31, derived: admitted + stay}
  - {name: k, kind: continuous, lower: 1, upper: 12}
""")
    rows = schema.read(tmp_path)
    assert rows["stay"].fillna(-1).tolist() == [4, -1, 1, 0]
    (tmp_path / "again").mkdir()
    schema.folder.write(rows, tmp_path / "again")
    again = pd.read_csv(tmp_path / "again" / "stays.csv", dtype=str)
    pd.testing.assert_frame_equal(again[[*stays]], stays.astype(str), check_dtype=False)
    pd.testing.assert_frame_equal(schema.read(tmp_path / "again"), rows)


def test_files_survive_the_schemas_file():
    """Catches a file, an ignored column or an unreviewed field that is lost on the way to YAML and back."""
    fields = {"ignored": ["visit_id"], "missing_words": ["?"], "other_columns": "ignore"}
    schema = PatientSchema.from_dict(SCHEMA.to_dict() | fields)
    schema = schema.model_copy(update={"rows_unreviewed": ("most", "per")})
    assert PatientSchema.from_yaml(schema.to_yaml()) == schema


def test_deaths_courses_and_formulas_are_kept(tmp_path):
    """Catches a death that another file's row forgets, a formula asked of a file, or a row that is lost."""
    from visits import STAYS, stays

    fields = STAYS.to_dict()
    for column in fields["columns"]:
        free = column.get("per") != "patient" and column["name"] not in ("day", "died", "age")
        column |= {"missing": True} if free else {}
    items = {"item": "test", "value": "result", "columns": ["sbp", "dbp", "died"]}
    fields["files"] = {
        "patients.csv": ["end", "sex", "first_age"],
        "stays.csv": ["stage", "dose", "pregnant"],
        "labs.csv": items,
    }
    schema = PatientSchema.from_dict(fields)
    rows = schema.table.check(stays(40).drop(columns="id"))
    schema.folder.write(rows.assign(id=stays(40)["id"]), tmp_path)
    found = schema.read(tmp_path)
    assert (found["died"] == "yes").sum() == (rows["died"] == "yes").sum() > 0
    assert "no" not in (tmp_path / "labs.csv").read_text() and found["age"].notna().all()
    pd.testing.assert_frame_equal(found.drop(columns="id"), rows)


def test_an_order_that_is_no_column_links_files_and_sorts_as_numbers(tmp_path):
    """Catches a tenth stay before the second, or files that are joined without stays."""
    fields = SCHEMA.to_dict()
    fields["columns"] = [column for column in fields["columns"] if column["name"] != "day"]
    schema = PatientSchema.from_dict(fields | {"rows": {"most": 8, "order": "stay"}})
    visits, labs = put(
        tmp_path, [(1, 10, 110, "no"), (1, 2, 102, "no")], [(1, 10, "hdl", 60), (1, 2, "hdl", 52)]
    )
    visits.rename(columns={"day": "stay"}).to_parquet(tmp_path / "visits.parquet")
    labs.rename(columns={"day": "stay"}).to_csv(tmp_path / "labs.csv", index=False)
    with pytest.warns(OwnerWarning):
        found = schema.read(tmp_path)
    assert found[["stay", "sbp", "hdl"]].to_numpy().tolist() == [[2, 102, 52], [10, 110, 60]]
    found.iloc[::-1].to_csv(tmp_path / "long.csv", index=False)
    assert schema.read(tmp_path / "long.csv")["stay"].tolist() == [10, 2]
    (tmp_path / "made").mkdir()
    schema.folder.write(found, tmp_path / "made")
    pd.testing.assert_frame_equal(schema.read(tmp_path / "made"), found)


def hospital(folder: Path) -> None:
    """Patients, stays that name their patient, and laboratory values that name the stay alone."""
    rng = np.random.default_rng(0)
    patients = pd.DataFrame({"patient_id": range(40), "age": rng.integers(20, 90, 40)})
    who = np.repeat(np.arange(40), rng.integers(1, 4, 40))
    day = rng.integers(0, 300, len(who))
    stays = pd.DataFrame({"patient_id": who, "stay_id": np.arange(len(who)) + 1000, "day": day})
    stays["ward"] = rng.choice(["A", "B"], len(who))
    of = rng.integers(0, len(who), 150)
    labs = pd.DataFrame({"stay_id": stays["stay_id"].to_numpy()[of], "labresultoffset": day[of] + 1})
    labs["sodium"] = rng.integers(130, 150, 150)
    for name, frame in (("patients", patients), ("stays", stays), ("labs", labs)):
        frame.to_csv(folder / f"{name}.csv", index=False)


KEYED = """
unit: patient_id
rows: {most: 20, order: day}
files:
  patients.csv: [age]
  stays.csv: {order: day, columns: [ward]}
  labs.csv: {order: labresultoffset, key: stay_id, through: stays.csv, columns: [sodium]}
columns:
- {name: day, kind: integer, lower: 0, upper: 400}
- {name: age, kind: integer, lower: 18, upper: 100, per: patient}
- {name: ward, kind: binary, categories: [A, B]}
- {name: sodium, kind: integer, lower: 100, upper: 200}
"""


def test_rows_that_name_a_stay_alone_belong_to_its_patient(tmp_path: Path) -> None:
    """A laboratory value of another patient, and rows of no stay that are lost without a word."""
    hospital(tmp_path)
    schema = PatientSchema.from_yaml(KEYED)
    assert PatientSchema.from_yaml(schema.to_yaml()) == schema
    labs, stays = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("labs", "stays"))
    rows = schema.read(tmp_path)
    own = labs.merge(stays, on="stay_id").groupby("patient_id")["sodium"].apply(sorted)
    found = rows.dropna(subset=["sodium"]).groupby("patient_id")["sodium"].apply(sorted)
    assert {int(k): [*map(int, v)] for k, v in found.items()} == own.to_dict()
    strange = labs.assign(stay_id=labs["stay_id"].where(labs.index >= 5, 1))
    strange.to_csv(tmp_path / "labs.csv", index=False)
    with pytest.warns(OwnerWarning, match=r"left out 5 row\(s\) whose 'stay_id' is not in stays.csv"):
        assert schema.read(tmp_path)["sodium"].notna().sum() == len(labs) - 5


def test_a_stay_of_two_patients_is_refused(tmp_path: Path) -> None:
    """A key that gives one patient's values to another."""
    hospital(tmp_path)
    stays = pd.read_csv(tmp_path / "stays.csv")
    again = stays.iloc[[0]].assign(stay_id=stays["stay_id"].iloc[-1])
    pd.concat([stays, again]).to_csv(tmp_path / "stays.csv", index=False)
    with pytest.raises(DataError, match=r"stays.csv: stay_id .* stands with two patients"):
        PatientSchema.from_yaml(KEYED).read(tmp_path)
    with pytest.raises(SchemaError, match="key and through belong together"):
        PatientFile(name="labs.csv", columns=("sodium",), key="stay_id")


def test_a_folder_with_stays_is_drafted(tmp_path: Path) -> None:
    """A file that is left out since it names no patient, and a time that is called an offset."""
    hospital(tmp_path)
    made = infer_patient_schema(read_files(tmp_path, CsvFormat()))
    labs = next(file for file in made.schema.files if file.name == "labs.csv")
    assert (labs.key, labs.through) == ("stay_id", "stays.csv")
    assert {labs.order, made.schema.order} >= {"labresultoffset"}
    assert len(made.schema.read(tmp_path)) > 40
