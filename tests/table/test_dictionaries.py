"""Data dictionaries of other programs, and the files that these write."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth.cli import main
from dpsynth.errors import DataError, InputError
from dpsynth.table import Schema, infer_schema, read_dictionary, read_table, require_reviewed

HEAD = (
    "Variable / Field Name,Form Name,Section Header,Field Type,Field Label,"
    '"Choices, Calculations, OR Slider Labels",Field Note,Text Validation Type OR Show Slider Number,'
    "Text Validation Min,Text Validation Max,Identifier?,Branching Logic (Show field only if...),"
    "Required Field?,Custom Alignment,Question Number (surveys only),Matrix Group Name,Matrix Ranking?,"
    "Field Annotation"
)
FIELDS = """record_id,f,,text,Record,,,,,,,,,,,,,
surname,f,,text,Surname,,,,,,y,,,,,,,
born,f,,text,Date of birth,,,date_dmy,1920-01-01,2020-12-31,y,,,,,,,
seen,f,,text,Date of visit,,,date_ymd,2010-01-01,2020-12-31,,,,,,,,
age,f,,text,Age in years,,,integer,18,110,,,,,,,,
weight,f,,text,Weight <b>in kg</b>,,,number_1dp,30,250,,,,,,,,
sex,f,,radio,Sex,"1, Female | 2, Male",,,,,,,,,,,,
pregnant,f,,yesno,Pregnant,,,,,,,[sex] = '1' and [age] < 55,,,,,,
stage,f,,dropdown,Stage,"I, one | II, two | III, three",,,,,,,,,,,,
pain,f,,slider,Pain,,,number,,,,,,,,,,
drugs,f,,checkbox,Drugs,"a, Aspirin | b, Statin",,,,,,,,,,,,
dose,f,,text,Dose,,,number,0,500,,[drugs(a)] = '1',,,,,,
about,f,,descriptive,Read this,,,,,,,,,,,,,
note,f,,notes,Remarks,,,,,,,,,,,,,"""


def redcap(folder: Path) -> tuple[Path, Path]:
    """A project's dictionary and its raw export."""
    rng, n = np.random.default_rng(0), 400
    sex, age = rng.integers(1, 3, n), rng.integers(18, 95, n)
    aspirin = rng.integers(0, 2, n)
    pregnant = np.where((sex == 1) & (age < 55), rng.integers(0, 2, n).astype(str), "")
    table = pd.DataFrame(
        {
            "record_id": np.arange(n),
            "surname": [f"name {i}" for i in range(n)],
            "born": pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 9000, n), unit="D"),
            "seen": pd.Timestamp("2012-01-01") + pd.to_timedelta(rng.integers(0, 2000, n), unit="D"),
            "age": age,
            "weight": rng.normal(78, 12, n).clip(40, 150).round(1),
            "sex": sex,
            "pregnant": pregnant,
            "stage": rng.choice(["I", "II", "III"], n),
            "pain": rng.integers(0, 101, n),
            "drugs___a": aspirin,
            "drugs___b": rng.integers(0, 2, n),
            "dose": np.where(aspirin == 1, rng.integers(1, 4, n) * 100, "").astype(str),
            "note": [f"seen by {i}" for i in range(n)],
        }
    )
    described, data = folder / "dictionary.csv", folder / "project.csv"
    described.write_text(f"{HEAD}\n{FIELDS}\n", encoding="utf-8")
    table.to_csv(data, index=False)
    return described, data


def test_a_redcap_dictionary_is_public(tmp_path: Path) -> None:
    """Limits of the form taken for limits of records, an identifier modelled, or a choice forgotten."""
    described, data = redcap(tmp_path)
    frame = read_table(data)
    made = infer_schema(frame, dictionary=read_dictionary(described))
    schema = made.schema
    assert {*schema.ignored} == {"record_id", "surname", "born", "note"}
    age, weight, stage = schema["age"], schema["weight"], schema["stage"]
    assert (age.kind, age.lower, age.upper, weight.decimals, weight.upper) == ("integer", 18, 110, 1, 250)
    assert stage.categories == ("I", "II", "III") and stage.reviewed
    assert schema["sex"].categories == (1, 2) and dict(schema["sex"].aliases) == {"Female": 1, "Male": 2}
    assert schema["pain"].bounds == (0, 100) and schema["drugs___a"].categories == (0, 1)
    assert "not (`sex` = 1 and `age` < 55) implies `pregnant` is missing" in schema.constraints
    assert "not (`drugs___a` = 1) implies `dose` is missing" in schema.constraints
    assert not schema.unreviewed
    conformed = schema.conform(frame).frame
    assert all(not rule.broken(conformed).any() for rule in schema.rules)
    assert not any(one.question == "public_list" for one in made.questions)


def test_an_export_with_labels_is_read_as_its_codes(tmp_path: Path) -> None:
    """The other export of a project, whose words stop a fit."""
    described, data = redcap(tmp_path)
    schema = infer_schema(read_table(data), dictionary=read_dictionary(described)).schema
    labelled = read_table(data)
    labelled["sex"] = labelled["sex"].map({"1": "Female", "2": "Male"})
    labelled["drugs___a"] = labelled["drugs___a"].map({"0": "Unchecked", "1": "Checked"})
    pd.testing.assert_frame_equal(schema.conform(labelled).frame, schema.conform(read_table(data)).frame)


def test_the_command_takes_a_dictionary(tmp_path: Path) -> None:
    """A draft that a reviewer must go through although the form's own dictionary says it all."""
    described, data = redcap(tmp_path)
    out = tmp_path / "schema.yaml"
    assert main(["schema", "infer", str(data), "--dictionary", str(described), "--out", str(out)]) == 0
    schema = Schema.from_yaml(out)
    assert schema["age"].bounds == (18, 110) and len(schema.constraints) == 2


def test_wrong_redcap_fields_are_named(tmp_path: Path) -> None:
    """A slip in a dictionary that ends in a limit of zero, or in a traceback."""
    path = tmp_path / "dictionary.csv"
    for field, said in [
        (
            "age,f,,text,Age,,,integer,ten,110,,,,,,,,",
            "'age': Text Validation Min must be a number, got 'ten'",
        ),
        ("sex,f,,radio,Sex,,,,,,,,,,,,,", "'sex' has no choices"),
        ("x,f,,hologram,X,,,,,,,,,,,,,", "the type 'hologram'"),
        (
            "age,f,,text,,,,integer,1,2,,,,,,,,\nage,f,,text,,,,integer,1,2,,,,,,,,",
            "'age' is described twice",
        ),
    ]:
        path.write_text(f"{HEAD}\n{field}\n", encoding="utf-8")
        with pytest.raises(InputError, match=said.replace("(", r"\(")):
            read_dictionary(path)
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(InputError, match="is no data dictionary of REDCap"):
        read_dictionary(path)
    with pytest.raises(InputError, match="no such data dictionary"):
        read_dictionary(tmp_path / "absent.csv")


LABELS = {
    "sex": {1: "female", 2: "male"},
    "health": {1: "poor", 2: "fair", 3: "good"},
    "income": {-8: "refused"},
}


def survey(n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    income = rng.normal(3000, 800, n).round()
    income[:20] = -8
    sex, health = rng.integers(1, 3, n).astype(float), rng.integers(1, 4, n).astype(float)
    return pd.DataFrame({"sex": sex, "health": health, "income": income})


@pytest.mark.parametrize("suffix", [".sav", ".dta"])
def test_labels_of_spss_and_stata_are_public(suffix: str, tmp_path: Path) -> None:
    """Codes drafted as numbers although the file says what they stand for, and "refused" as an income."""
    pyreadstat = pytest.importorskip("pyreadstat")
    path = tmp_path / f"survey{suffix}"
    said = {"column_labels": {"income": "Monthly income"}, "variable_value_labels": LABELS}
    if suffix == ".sav":
        said |= {
            "missing_ranges": {"income": [{"lo": -9, "hi": -8}]},
            "variable_measure": {"health": "ordinal"},
        }
        pyreadstat.write_sav(survey(), str(path), **said)
    else:
        pyreadstat.write_dta(survey(), str(path), **said)
    frame = read_table(path)
    made = infer_schema(frame, dictionary=read_dictionary(path))
    schema = made.schema
    sex, income = schema["sex"], schema["income"]
    assert sex.categories == (1, 2) and dict(sex.aliases) == {"female": 1, "male": 2} and not sex.unreviewed
    # Stata's encode makes labels of records, so their owner must confirm the list.
    assert sex.unconfirmed and ("sex", "public_list") in {
        (one.column, one.question) for one in made.questions
    }
    assert str(income.description).startswith("Monthly income")
    assert {"lower", "upper"} <= {*income.unreviewed}  # no dictionary says them
    if suffix == ".sav":
        assert schema["health"].kind == "ordinal"
        assert income.missing_codes == (-9, -8) and income.missing and not income.special
        assert schema.conform(frame).frame["income"].isna().sum() == 20
    assert main(["schema", "infer", str(path), "--out", str(tmp_path / "schema.yaml")]) == 0
    assert Schema.from_yaml(tmp_path / "schema.yaml")["sex"].categories == (1, 2)


@pytest.mark.parametrize("suffix", [".sav", ".dta"])
def test_a_number_of_persons_in_a_labelled_file_is_left_out(suffix: str, tmp_path: Path) -> None:
    """A file that holds each variable, so that an identifier counts as described and is modelled."""
    pyreadstat = pytest.importorskip("pyreadstat")
    path = tmp_path / f"survey{suffix}"
    frame = survey().assign(id=range(len(survey())))
    write = pyreadstat.write_sav if suffix == ".sav" else pyreadstat.write_dta
    write(frame, str(path), column_labels={"id": "Number of the person"}, variable_value_labels=LABELS)
    made = infer_schema(read_table(path), dictionary=read_dictionary(path))
    assert "id" in made.schema.ignored and "sex" in made.schema.names


def test_files_of_statistics_need_their_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare ImportError."""
    monkeypatch.setitem(__import__("sys").modules, "pyreadstat", None)
    (path := tmp_path / "survey.sav").write_bytes(b"$FL2")
    with pytest.raises(DataError, match=r"need pyreadstat. Install dpsynth-health\[dictionaries\]"):
        read_table(path)


def test_a_broken_file_of_statistics_is_named(tmp_path: Path) -> None:
    """An error of the reading library, without the file."""
    pytest.importorskip("pyreadstat")
    (path := tmp_path / "survey.sav").write_bytes(b"$FL2 broken")
    with pytest.raises(DataError, match=r"survey.sav: cannot be read"):
        read_table(path)


TABLE_SCHEMA = {
    "fields": [
        {"name": "id", "type": "string", "constraints": {"unique": True}},
        {"name": "age", "type": "integer", "constraints": {"minimum": 18, "maximum": 110}, "title": "Age"},
        {"name": "stage", "type": "string", "categories": ["I", "II", "III"], "categoriesOrdered": True},
        {"name": "seen", "type": "date", "constraints": {"minimum": "2010-01-01", "maximum": "2020-12-31"}},
        {"name": "died", "type": "boolean"},
    ],
    "missingValues": ["", "NA"],
}


@pytest.mark.parametrize("package", [False, True])
def test_a_frictionless_schema_is_public(package: bool, tmp_path: Path) -> None:
    """A limit of a Table Schema that is read off the records instead."""
    path = tmp_path / "schema.json"
    held = (
        {"resources": [{"name": "t", "path": "t.csv", "schema": TABLE_SCHEMA}]} if package else TABLE_SCHEMA
    )
    path.write_text(json.dumps(held), encoding="utf-8")
    rng, n = np.random.default_rng(0), 200
    frame = pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(n)],
            "age": rng.integers(20, 90, n).astype(str),
            "stage": rng.choice(["I", "II", "III", "NA"], n),
            "seen": "2015-03-01",
            "died": rng.choice(["true", "false"], n),
        }
    )
    schema = infer_schema(frame, dictionary=read_dictionary(path)).schema
    assert schema.ignored == ("id",)
    assert schema["age"].bounds == (18, 110) and schema["stage"].kind == "ordinal"
    assert schema["stage"].missing_codes == ("NA",) and schema["died"].categories == (False, True)
    assert schema["seen"].shown(schema["seen"].bounds[1]) == "2020-12-31"
    require_reviewed(schema)
    schema.conform(frame)


def test_workbooks_and_tabs_are_read(tmp_path: Path) -> None:
    """The two files that hospitals send most often."""
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame(
        {"age": [31, 45, 60] * 20, "sex": ["F", "M", "F"] * 20, "code": ["010", "011", "010"] * 20}
    )
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    frame.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    drafts = [infer_schema(read_table(tmp_path / name)).schema for name in ("t.xlsx", "t.tsv")]
    assert drafts[0] == drafts[1] and drafts[0]["code"].categories == ("010", "011")


def test_decimals_that_a_dictionary_does_not_state_stay_unreviewed(tmp_path: Path) -> None:
    """A step that was read off the records, and that nobody is asked to review."""
    path = tmp_path / "dictionary.csv"
    path.write_text(f"{HEAD}\nlab,f,,text,Lab,,,number,0.01,500,,,,,,,,\n", encoding="utf-8")
    frame = pd.DataFrame({"lab": np.random.default_rng(0).lognormal(2, 1.5, 300).clip(0.1, 400).round(2)})
    lab = infer_schema(frame, dictionary=read_dictionary(path)).schema["lab"]
    assert lab.bounds == (0.01, 500) and lab.decimals == 2 and lab.unreviewed == ("decimals",)
    assert lab.scale == "linear"  # read off the records as well
