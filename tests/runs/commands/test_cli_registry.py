"""``dpsynth report --mode registry``: written without reading a table, and refused with one sentence."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd
import pytest
import report_sources as sources

from dpsynth import datasets
from dpsynth.cli import main
from dpsynth.privacy import Ledger
from dpsynth.report.catalogues import FORMAT, TO_COMPLETE
from dpsynth.runs.folder import RunFolder

#: what was opened since a test began to listen
OPENED: list[str] | None = None


def _listen(event: str, arguments: tuple[object, ...]) -> None:
    if OPENED is not None and event == "open" and isinstance(arguments[0], str):
        OPENED.append(arguments[0])


sys.addaudithook(_listen)  # which cannot be taken away again


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run, with a synthetic table that must not be read either."""
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    report, _ = sources.full_report(4)
    folder.write_report(report)
    report.ledger.save(folder.ledger)
    folder.synthetic.write_text("age\n1\n")
    return folder.path


def poisoned(*arguments: object, **options: object) -> None:
    raise AssertionError("a table was read")


def test_no_table_is_read(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Catches a record that opens a table: readers are poisoned, and every opened file is noted."""
    global OPENED
    for home, name in ((pd, "read_csv"), (pd, "read_parquet"), (datasets, "load"), (datasets, "open_table")):
        monkeypatch.setattr(home, name, poisoned)
    OPENED = []
    try:
        assert main(["report", str(run), "--mode", "registry"]) == 0
        opened = {Path(path).name for path in OPENED if path.startswith(str(run.parent))}
    finally:
        OPENED = None
    read = {name for name in opened if not name.startswith(".registry")}  # which is written, in the folder
    assert read - {run.name} == {"report.json", "ledger.json"}
    assert json.loads((run / "registry.json").read_text())["format"] == FORMAT


def test_the_record_is_written(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Catches a file replaced unasked, and a field that nobody is told to fill."""
    out = run.parent / "record.json"
    command = ["report", str(run), "--mode", "registry", "--out", str(out)]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert f"wrote {out}" in said and "to complete: deployment.basic.data_curators" in said
    record = json.loads(out.read_text())
    assert record["contact"] == TO_COMPLETE and "deployment.administrative.registry_authors" in said
    assert record["record"]["deployment"]["administrative"]["registry_authors"] == [TO_COMPLETE]
    assert main(command) == 2 and "--force" in capsys.readouterr().err
    ledger = Ledger.load(run / "ledger.json")
    ledger.published = {"contact": "Data office", "data_owner": "Hospital A"}
    ledger.save(run / "ledger.json")
    assert main([*command, "--force", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert {**json.loads(out.read_text()), "path": str(out)} == record and record["contact"] == "Data office"
    assert record["record"]["deployment"]["basic"]["data_curators"] == ["Hospital A"]
    assert record["to_complete"] == ["deployment.basic.intended_use", "deployment.basic.data_product_region"]
