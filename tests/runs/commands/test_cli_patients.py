"""Commands about schemas of patients with several rows."""

from __future__ import annotations

import json

import pytest
from visits import visits

from dpsynth.cli import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a table of visits."""
    monkeypatch.chdir(tmp_path)
    visits(120, seed=2).rename(columns={"id": "patient_id"}).to_csv("visits.csv", index=False)
    return tmp_path


def test_a_draft_of_visits_is_checked_with_its_table(folder, capsys):
    """Catches a draft that the next command cannot read, an unreviewed number of rows, or a lost outcome."""
    assert main(["schema", "infer", "visits.csv", "--out", "draft.yaml"]) == 0
    assert "question: day orders the rows" in capsys.readouterr().err
    assert (folder / "draft.yaml").stat().st_mode & 0o077 == 0
    assert main(["schema", "check", "draft.yaml", "--data", "visits.csv"]) == 0
    said = capsys.readouterr().out
    assert "unreviewed: rows (unit, most, order, per)" in said
    assert "rows fit (confidential)" in said and "no unit" not in said
    assert "not used" not in said
    draft = (folder / "draft.yaml").read_text().replace("most: 10", "most: 5")
    (folder / "draft.yaml").write_text(draft)
    assert main(["schema", "check", "draft.yaml", "--data", "visits.csv"]) == 0
    unused = sum(max(count - 5, 0) for count in visits(120, seed=2)["id"].value_counts())
    line = f"not used: {unused} rows of patients with more than 5 (confidential)"
    assert line in capsys.readouterr().out
    (folder / "draft.yaml").write_text(draft.replace("rows:", "outcome: sex\nrows:", 1))
    assert main(["schema", "check", "draft.yaml", "--data", "visits.csv", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["unit"], told["outcome"]) == ("patient_id", "sex")
    assert sum(told["unused"].values()) == unused and {"rows", "unused"} < {*told["internal"]}


def test_a_table_without_an_order_is_drafted_row_by_row_and_asked_about(folder, capsys):
    """Catches a draft of single rows without a word about patients who have several."""
    assert main(["schema", "infer", "visits.csv", "--drop", "day", "--json"]) == 0
    shown = capsys.readouterr()
    assert "does a patient have several rows? Not drafted: no column seems to order the rows" in shown.err
    assert "rows" not in json.loads(shown.out)["schema"]


def test_an_outcome_of_patients_with_several_rows_is_drafted(folder, capsys):
    """Catches --outcome that drafted one row for each patient, or was refused with --unit."""
    for chosen in ([], ["--unit", "patient_id"]):
        assert main(["schema", "infer", "visits.csv", "--outcome", "sex", *chosen, "--json"]) == 0
        drafted = json.loads(capsys.readouterr().out)["schema"]
        assert (drafted["unit"], drafted["outcome"]) == ("patient_id", "sex")
    assert main(["schema", "infer", "visits.csv", "--outcome", "grade", "--json"]) == 0
    shown = capsys.readouterr()
    assert (
        "does a patient have several rows? Not drafted: the outcome 'grade' must have one value" in shown.err
    )
    assert json.loads(shown.out)["schema"]["outcome"] == "grade"
