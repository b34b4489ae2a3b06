"""``dpsynth data``: what it prints, and what it says where a file is not to be had."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpsynth import datasets
from dpsynth.cli import main
from dpsynth.datasets import files


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No file of any data set is there."""
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv("DPSYNTH_DATA_DIR", raising=False)
    return tmp_path


def test_list(capsys: pytest.CaptureFixture[str], empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that leaves a data set out, or takes any file of the right name for the right one."""
    (empty / "flchain.csv").write_text("another")
    monkeypatch.setenv("DPSYNTH_DATA_DIR", str(empty))
    assert main(["data"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["name", "rows", "outcome", "licence", "file", "is", "title"]
    by_name = {line.split()[0]: line for line in lines[1:]}
    assert set(datasets.names()) | {"mimic3"} == set(by_name)
    assert "  another version  " in by_name["flchain"] and "  not there  " in by_name["physionet2012"]
    assert (
        "  there  " in by_name["breast_cancer"]
        and "  69,973  readmitted  CC BY 4.0" in by_name["diabetes130"]
    )
    assert "needs credentials" in by_name["mimic3"]
    assert main(["data", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["datasets"]
    assert {row["name"]: row["file"] for row in rows}["flchain"] == "another version"


@pytest.mark.parametrize("name", datasets.names())
def test_show_tells_the_whole_card(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A card shown without its source, its licence, what a row is, a leaking column or a bound."""
    card = datasets.card(name)
    assert main(["data", name]) == 0
    shown = capsys.readouterr().out
    flat = " ".join(shown.split())
    told = [card.title, card.origin.citation, card.licence, card.licence_page, card.table.unit, card.bounds]
    told += [card.one_row, card.origin.address, card.sha256, *card.leaking, *card.leaking.values()]
    for text in filter(None, told):
        assert " ".join(text.split()) in flat, text
    for column in card.table.columns:
        row = next(line for line in shown.splitlines() if line.startswith(f"  {column.name} "))
        wanted = (
            [f"{column.lower:g} to {column.upper:g}"] if column.is_numeric else map(str, column.categories)
        )
        assert all(text in row for text in wanted)
    assert main(["data", name, "--json"]) == 0
    (record,) = json.loads(capsys.readouterr().out)["datasets"]
    assert record["schema"] == card.table.to_dict() and record["address"] == card.origin.address


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["flchian"], "there is no data set 'flchian' (data sets: breast_cancer, "),
        (["mimic3", "--fetch"], "MIMIC-III is given only to persons who have signed for it (PhysioNet Cred"),
        (["mimic3"], "apply and download it at https://physionet.org/content/mimiciii/1.4/"),
        (["mine.yaml", "--fetch"], "mine.yaml: cannot be read (No such file"),
        (["--fetch"], "--fetch needs the name of a data set"),
        (["flchain", "--dir", "new"], "--dir needs --fetch"),
    ],
)
def test_refusals(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A traceback, or an error of several lines, where a name or a licence is wrong."""
    assert main(["data", *arguments]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1 and words in told[0]
