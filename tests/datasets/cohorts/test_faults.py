"""What can be wrong with files and targets is one sentence, and nothing is left behind."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest
from modes import open_to_others, usual_umask
from simulated_mimic3 import simulate

from dpsynth.cli import main
from dpsynth.datasets.cohorts.definitions import STUDIES
from dpsynth.table.files import read_table
from dpsynth.table.schema import Schema

__all__ = ["usual_umask"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return simulate(tmp_path / "tables", "aki-mortality", 6, 0.5)


@pytest.fixture
def refused(folder, tmp_path, capsys):
    """Run the command, which must refuse, and give its one line; the target's folder stays empty."""
    target = tmp_path / "made"
    target.mkdir()

    def run(tables: Path = folder, study: str = "aki-mortality", out: str = "cohort.parquet") -> str:
        status = main(["cohort", study, "--tables", str(tables), "--out", str(target / out)])
        said = capsys.readouterr()
        assert status == 2 and said.out == "" and said.err.count("\n") == 1
        assert list(target.iterdir()) == []
        return said.err.strip()

    return run


def test_a_cohort_is_a_table_and_its_schema(folder, tmp_path, capsys, usual_umask):
    """A table that does not fit the schema beside it, that others can read, or a lost count."""
    for name in ("cohort.csv", "cohort.parquet"):
        out = tmp_path / name
        words = ["cohort", "aki-mortality", "--tables", str(folder), "--out", str(out)]
        assert main([*words, "--json", "--force"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["rows"] == 6 and told["positive_rate"] == 0.5 and told["steps"][0]["stays"] == 6
        assert told["internal"] == ["rows", "positive_rate", "steps"]
        schema = Schema.from_yaml(out.with_suffix(".yaml"))
        assert schema == STUDIES["aki-mortality"].schema
        assert schema.conform(read_table(out, schema)).clipped == dict.fromkeys(
            [column.name for column in schema.columns if column.is_numeric], 0
        )
        assert main(words) == 2 and "add --force" in capsys.readouterr().err
    assert main([*words, "--force"]) == 0
    opened = open_to_others(tmp_path)
    assert "cohort.yaml" in opened and not {"cohort.csv", "cohort.parquet"} & opened
    said = capsys.readouterr().out
    assert "6 rows, one a patient, died in 3 (50.0 %)" in said and "confidential" in said


def test_a_renamed_column(folder, refused):
    path = folder / "LABEVENTS.csv"
    path.write_text(path.read_text().replace("valuenum", "number", 1))
    assert (
        "LABEVENTS.csv: the column VALUENUM of the table LABEVENTS is missing (columns: row_id," in refused()
    )


def test_a_table_that_a_study_does_not_read_may_be_missing(folder, tmp_path):
    """A readmission study that wants the infusions."""
    for name in ("OUTPUTEVENTS", "INPUTEVENTS_CV", "INPUTEVENTS_MV", "PROCEDUREEVENTS_MV", "DIAGNOSES_ICD"):
        (folder / f"{name}.csv").unlink()
    words = ["cohort", "icu-readmission", "--tables", str(folder)]
    assert main([*words, "--out", str(tmp_path / "cohort.csv")]) == 0


def test_a_table_twice(folder, refused):
    (folder / "admissions.csv.gz").write_bytes(gzip.compress(b""))
    assert "ADMISSIONS is there twice (ADMISSIONS.csv and admissions.csv.gz). Keep one" in refused()


@pytest.mark.parametrize("kept", [0.0, 0.001, 0.5, 0.999])
def test_a_truncated_archive(folder, refused, kept):
    """A download that broke off and is taken for a smaller table."""
    path = folder / "CHARTEVENTS.csv"
    whole = gzip.compress(path.read_bytes())
    path.unlink()
    (folder / "CHARTEVENTS.csv.gz").write_bytes(whole[: int(len(whole) * kept)])
    said = refused()
    assert "CHARTEVENTS.csv.gz" in said, said


def test_a_value_that_is_no_time_and_no_number(folder, refused):
    """A table with its columns in disorder that gives wrong windows instead of an error."""
    path = folder / "ICUSTAYS.csv"
    frame = pd.read_csv(path, dtype=str)
    frame.assign(intime=frame["intime"].where(frame.index != 2, "yesterday")).to_csv(path, index=False)
    said = refused()
    assert said.endswith(
        "ICUSTAYS.csv: the column INTIME holds yesterday, which is not a time (YYYY-MM-DD HH:MM:SS) "
        "(confidential)"
    )
    frame.assign(hadm_id="HADM").to_csv(path, index=False)
    assert "the column HADM_ID holds HADM, which is not a whole number (confidential" in refused()


def test_a_broken_line(folder, refused):
    """A line with too few cells, filled up with nothing."""
    path = folder / "LABEVENTS.csv"
    lines = path.read_text().split("\n")
    lines[4] = "1,2,3"
    path.write_text("\n".join(lines))
    said = refused()
    assert "LABEVENTS.csv" in said and "Possible" not in said and len(said) < 400, said


def test_an_interrupted_run_leaves_nothing(folder, tmp_path, monkeypatch):
    """A schema without its table, or half of one, under the name that was asked for."""
    from dpsynth.datasets.cohorts import extraction

    def fails(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(extraction, "write_table", fails)
    target = tmp_path / "made"
    target.mkdir()
    out = str(target / "cohort.csv")
    assert main(["cohort", "aki-mortality", "--tables", str(folder), "--out", out]) == 130
    assert list(target.iterdir()) == []


def test_ctrl_c_during_a_query(tmp_path):
    """An interruption called a failure: DuckDB tells Ctrl-C during a query as an error of its own."""
    from dpsynth.datasets.cohorts.tables import database

    with pytest.raises(KeyboardInterrupt), database(tmp_path, tmp_path):
        raise RuntimeError("Query interrupted")
    with pytest.raises(RuntimeError, match="else"), database(tmp_path, tmp_path):
        raise RuntimeError("something else")
