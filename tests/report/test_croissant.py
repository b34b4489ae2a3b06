"""Croissant metadata of a synthetic table, read by the format's own library."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pandas as pd
import pytest
from table_strategies import random_frame

from dpsynth.privacy import Ledger, gaussian_event
from dpsynth.report.catalogues import metadata_of
from dpsynth.report.run_report import RunReport
from dpsynth.table import Column, Schema, write_table

SCHEMA = Schema(
    columns=(
        Column(name="age at visit", kind="integer", lower=18, upper=90, unit="years", missing=True),
        Column(name="<lab/1>", kind="continuous", lower=0, upper=9, decimals=1, missing=True),
        Column(
            name="=stage",
            kind="ordinal",
            categories=("I", "II"),
            description="after the TNM system",
            reviewed=True,
        ),
        Column(name="grade", kind="categorical", categories=(1, 2, 3)),
        Column(name="died", kind="binary", categories=(False, True)),
    ),
    n_public=40,
)


def report(**table) -> RunReport:
    ledger = Ledger()
    ledger.begin_stage(1e-5)
    ledger.post("counts", gaussian_event(3.0), sensitivity="1")
    return RunReport(
        ledger,
        1e-5,
        table={"name": "cohort", "synthetic_records": 40, **table},
        config={"data": {"path": "/private/ward7.csv"}},
        seconds={"fit": 1.25},
        created="2026-01-31T10:11:12",
    )


@pytest.fixture
def file(tmp_path):
    write_table(random_frame(SCHEMA, 40, 0), tmp_path / "synthetic.csv")
    return tmp_path / "synthetic.csv"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the format's library in what it uses
def test_the_formats_own_library_reads_it_and_the_records(file) -> None:
    """Catches metadata that no tool can use: a wrong key, type, digest, or name of a column."""
    record = metadata_of(report(), SCHEMA, file, license="https://creativecommons.org/licenses/by/4.0/")
    (file.parent / "croissant.json").write_text(json.dumps(record))
    mlcroissant = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed")
    dataset = mlcroissant.Dataset(file.parent / "croissant.json")
    assert not dataset.metadata.ctx.issues.errors
    read = pd.DataFrame(dataset.records("records"))
    assert read.shape == (40, 5)
    made = pd.read_csv(file)
    ages = read["records/age%20at%20visit"].astype(float)
    assert ages.fillna(-1).tolist() == made["age at visit"].fillna(-1).tolist()
    assert [field["dataType"] for field in record["recordSet"][0]["field"]] == [
        "sc:Integer",
        "sc:Float",
        "sc:Text",
        "sc:Integer",
        "sc:Boolean",
    ]
    assert record["distribution"][0]["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()


def test_columns_are_named_as_in_the_file(tmp_path, file) -> None:
    """Catches an escaped name for a Parquet file, or for a CSV file that was written without escaping."""
    write_table(random_frame(SCHEMA, 40, 0), tmp_path / "synthetic.parquet")
    for path, escaped, kind, name in (
        (file, True, "text/csv", "'=stage"),
        (file, False, "text/csv", "=stage"),
        (tmp_path / "synthetic.parquet", True, "application/x-parquet", "=stage"),
    ):
        record = metadata_of(report(), SCHEMA, path, escape_formulas=escaped)
        fields = [field["source"]["extract"]["column"] for field in record["recordSet"][0]["field"]]
        assert record["distribution"][0]["encodingFormat"] == kind and fields[2] == name


def test_it_holds_the_guarantee_and_nothing_confidential(file) -> None:
    """Catches bounds that were read off records, the name of the private file, or times, in a shared file."""
    told = report()
    text = json.dumps(metadata_of(told, SCHEMA, file), ensure_ascii=False)
    assert str(told.guarantee) in text and "18 to 90 (years)" in text and "after the TNM system" in text
    assert "license" not in text and "10:11" not in text and "1.25" not in text
    assert "ward7" in json.dumps(report(name="ward7").to_dict())
    assert "ward7" not in json.dumps(metadata_of(report(name="ward7"), SCHEMA, file))
    assert "One of: I, II" in text and "1, 2, 3" not in text, "of a list that nobody confirmed"
    columns = tuple(
        column.model_copy(update={"reviewed": False, "unreviewed": ("lower", "upper", "categories")})
        for column in SCHEMA.columns
    )
    text = json.dumps(metadata_of(told, Schema(columns=columns), file))
    assert "18" not in text.split("recordSet")[1] and "TNM" not in text and "age at visit" in text
    bare = replace(told, ledger=None, delta=None)
    assert "No guarantee is known" in metadata_of(bare, SCHEMA, file)["description"]
