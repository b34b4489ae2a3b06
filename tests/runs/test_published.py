"""What readers of a run's folder are told: whose table it is, whom to ask, and which file was made."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from cohort import config, folder, model

from dpsynth import DPMarginals
from dpsynth.cli import main
from dpsynth.errors import ConfigError, DataError
from dpsynth.privacy import Ledger, gaussian_event
from dpsynth.report.catalogues import registry_record
from dpsynth.report.page import render
from dpsynth.report.run_report import RunReport
from dpsynth.runs import pipeline
from dpsynth.runs.config import RunConfig
from dpsynth.runs.folder import RunFolder

__all__ = ["folder"]
TOLD = {"owner": "  Example \n Hospital", "contact": "Data office <data@example.org>"}
QUICK: dict[str, Any] = {"evaluate": {"enabled": False}}


def digest(path: str | Path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@pytest.mark.slow
def test_the_ledger_and_the_page_to_share_name_owner_contact_and_table(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Catches a page or a ledger that names nobody, another file, or that is refused with what it names."""
    pipeline.run(config(**QUICK, **TOLD), "out")
    published = {
        "data_owner": "Example Hospital",
        "contact": "Data office <data@example.org>",
        "synthetic_sha256": digest("out/synthetic.csv"),
    }
    assert json.loads(Path("out/ledger.json").read_text())["published"] == published
    assert Ledger.load("out/ledger.json").published == published
    assert main(["report", "out", "--mode", "release"]) == 0
    page = Path("out/release.html").read_text()
    assert published["synthetic_sha256"] in page and "Example Hospital" in page
    assert "Data office &lt;data@example.org&gt;" in page
    for command in ("account --ledger out", "sample out -n 3 --out s.csv", "evaluate out --json"):
        assert main(command.split()) == 0
    capsys.readouterr()
    assert main(["report", "out", "--mode", "registry"]) == 0
    record = json.loads(Path("out/registry.json").read_text())
    assert record["contact"] == published["contact"]
    assert record["record"]["deployment"]["basic"]["data_curators"] == ["Example Hospital"]
    assert published["synthetic_sha256"] in json.dumps(record["record"])
    assert DPMarginals.load("out/model").ledger_.to_dict() == Ledger.load("out/ledger.json").to_dict()


def test_a_table_drawn_later_is_named_and_another_one_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Catches a ledger that names the table of yesterday, or any other file as the one that it guarantees."""
    pipeline.run(config(**QUICK, **TOLD), "out")
    before = Ledger.load("out/ledger.json").published
    assert main(["sample", "out", "-n", "7", "--out", "out/synthetic.csv", "--force"]) == 0
    after = Ledger.load("out/ledger.json").published
    assert after == before | {"synthetic_sha256": digest("out/synthetic.csv")} != before
    assert RunFolder(Path("out")).read_report().ledger.published == after
    assert main(["sample", "out", "-n", "7", "--out", "elsewhere.csv"]) == 0
    assert Ledger.load("out/ledger.json").published == after
    Path("out/synthetic.csv").write_bytes(Path("elsewhere.csv").read_bytes())
    capsys.readouterr()
    reports = ("report out --mode release", "report out --mode registry")
    for command in (*reports, "evaluate out", "attack synthetic out"):
        assert main(command.split()) == 2
        assert "is not the table that out/ledger.json names by its SHA-256" in capsys.readouterr().err


def test_a_later_run_of_the_folder_names_its_own(folder: Path) -> None:
    """Catches the owner or the table of an earlier run in a ledger that continues from it."""
    pipeline.run(config(**QUICK, **TOLD), "out")
    pipeline.run(config(**QUICK), "out", force=True)
    ledger = Ledger.load("out/ledger.json")
    assert len(ledger.stages) == 2 and ledger.published == {"synthetic_sha256": digest("out/synthetic.csv")}


def test_without_a_guarantee_no_digest_is_published(folder: Path) -> None:
    """Catches a number that follows from real records: whoever guesses the whole table could check it."""
    pipeline.run(config(model=model(epsilon=None), **QUICK, **TOLD), "out")
    told = digest("out/synthetic.csv")
    assert Ledger.load("out/ledger.json").published == {
        "data_owner": "Example Hospital",
        "contact": "Data office <data@example.org>",
    }
    report = RunFolder(Path("out")).read_report()
    assert not any(told in render(report, mode) for mode in ("release", "internal"))


def test_a_ledger_of_an_earlier_version_is_read(folder: Path) -> None:
    """Catches a field that old files lack and that is required, and one that may hold anything."""
    pipeline.run(config(**QUICK, **TOLD), "out")
    ledger = Ledger.load("out/ledger.json")
    ledger.published = {}
    ledger.save("old.json")
    assert "published" not in Path("old.json").read_text()
    assert Ledger.load("old.json").to_dict() == ledger.to_dict() and Ledger.load("old.json").published == {}
    for wrong in ({"data_owner": 3}, {"data_owner": "a\nb"}, {"patients": "80"}, ["owner"]):
        ledger.published = wrong  # type: ignore[assignment]
        ledger.save("wrong.json")
        with pytest.raises(DataError, match=r"wrong\.json: the field 'published' of a ledger must hold"):
            Ledger.load("wrong.json")


def test_owner_and_contact_are_one_line_and_change_no_fit() -> None:
    """Catches text that breaks a page's line, and a resumed run that is refused for another contact."""
    fields = {"dataset": "flchain", "model": {"epsilon": 3.0}}
    for wrong in ("", " \n", "a\0b", "a" * 201, 7):
        with pytest.raises(ConfigError, match="contact"):
            RunConfig.from_dict({**fields, "contact": wrong})
    asked = RunConfig.from_dict({**fields, **TOLD})
    assert asked.of_fit() == RunConfig.from_dict(fields).of_fit()
    assert RunConfig.from_dict(asked.to_dict()) == asked


def test_the_record_names_the_noise_of_a_wgan_only_where_one_ran() -> None:
    """Catches an open attack on critic steps that were never made, and one that is passed over."""
    ledger = Ledger()
    ledger.begin_stage(1e-5)
    names = ("single-column counts", "WGAN critic steps")
    for name, said in zip(names, (False, True), strict=True):
        ledger.post(name, gaussian_event(5.0), sensitivity="1")
        report = RunReport(ledger=ledger, delta=1e-5, created="2026-03-04")
        record = json.dumps(registry_record(report))
        assert ("floating-point" in record) == said and "side channels" in record
        assert ("Attacks on the rounding of WGAN critic steps" in render(report, "release")) == said


@pytest.mark.parametrize(
    ("evaluate", "attack", "attacked"),
    [(False, None, False), (True, None, True), (False, True, True), (True, False, False)],
)
def test_a_table_that_is_not_evaluated_is_not_attacked_unasked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, evaluate: bool, attack: bool | None, attacked: bool
) -> None:
    """Catches attacks that run for minutes although `evaluate: {enabled: false}` switched them off."""
    made: list[str] = []
    monkeypatch.setattr("dpsynth.runs.evaluation.attempts_on", lambda *args: made.append("attack") or ())
    monkeypatch.setattr("dpsynth.runs.evaluation.evaluate_tables", lambda *args: made.append("evaluation"))
    asked: dict[str, Any] = {"evaluate": {"enabled": evaluate}, "attack": {}}
    if attack is not None:
        asked["attack"] = {"enabled": attack}
    run = config(**asked)
    assert RunConfig.from_dict(run.to_dict()) == run
    pipeline.run(run, "out")
    assert made == ["evaluation"] * evaluate + ["attack"] * attacked
