"""``dpsynth registry``: written without reading a table, and refused with one sentence."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd
import pytest
import report_sources as sources

from dpsynth import datasets
from dpsynth.cli import main
from dpsynth.report.catalogues import FORMAT
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
        assert main(["registry", str(run), "--contact", "Data office"]) == 0
        opened = {Path(path).name for path in OPENED if path.startswith(str(run.parent))}
    finally:
        OPENED = None
    assert opened == {"report.json", "ledger.json"}
    record = json.loads(capsys.readouterr().out)
    assert record["format"] == FORMAT and record["contact"] == "Data office"


def test_the_record_is_written(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Catches a file replaced unasked, a field that nobody is told to fill, and a given one that is lost."""
    out = run.parent / "record.json"
    command = ["registry", str(run), "--contact", "Data office", "--out", str(out)]
    assert main(command) == 0
    assert "to complete: deployment.basic.data_curators" in capsys.readouterr().out
    assert json.loads(out.read_text())["record"]["deployment"]["administrative"]["registry_authors"]
    assert main(command) == 2 and "--force" in capsys.readouterr().err
    assert main([*command, "--force"]) == 0
    capsys.readouterr()
    given = ["--curator", "Hospital A", "--curator", "Hospital B", "--use", "Teaching", "--region", "Denmark"]
    assert main([*command, *given, "--force"]) == 0
    assert "to complete" not in capsys.readouterr().out
    record = json.loads(out.read_text())
    basic = record["record"]["deployment"]["basic"]
    assert record["to_complete"] == [] and basic["data_curators"] == ["Hospital A", "Hospital B"]
    assert (basic["intended_use"], basic["data_product_region"]) == ("Teaching", "Denmark")


def test_bad_input(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Catches a record without a contact, and a traceback for a folder that is none of a run."""
    assert main(["registry", str(run)]) == 2
    assert "contact is needed" in capsys.readouterr().err
    assert main(["registry", str(run.parent), "--contact", "x"]) == 2
    assert "is not the folder of a run" in capsys.readouterr().err
