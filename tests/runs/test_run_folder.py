"""A report in its folder: read back as the record that was written, and refused where it was changed."""

from __future__ import annotations

import json

import numpy as np
import pytest
import report_sources as sources

from dpsynth.attacks.attempt import Attempt
from dpsynth.errors import DataError, InputError
from dpsynth.evaluation.estimates import Estimate
from dpsynth.evaluation.results import Evaluation, Measure
from dpsynth.files.codec import to_plain
from dpsynth.privacy import Ledger
from dpsynth.report.page import MODES, render, to_markdown
from dpsynth.report.run_report import RunReport
from dpsynth.runs.folder import RunFolder


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_report_from_its_folder_has_the_page_of_the_one_in_memory(tmp_path, mode):
    """Catches a page that a run draws and that `dpsynth report` draws otherwise."""
    report, _ = sources.full_report(4)
    RunFolder(tmp_path).write_report(report)
    report.ledger.save(tmp_path / "ledger.json")
    again = RunFolder(tmp_path).read_report()
    assert render(again, mode) == render(report, mode)
    assert again.to_dict() == report.to_dict()
    assert to_markdown(again) == (tmp_path / "report.md").read_text(encoding="utf-8")


def a_run(folder, **changes):
    ledger = sources.ledger_of()
    report = RunReport(
        ledger=ledger,
        delta=1e-5,
        table={"name": "cohort", "synthetic_records": 10, "columns": 2, "schema_sha256": "ab"},
        config={"dataset": "cohort", "model": {"epsilon": 1.0}},
        evaluation=Evaluation((Measure("Utility", "auc_mean", 0.8, True),), {"seed": 1}),
        versions={"python": "3.11"},
        seconds={"fit": 1.5},
    )
    (folder / "report.json").write_text(json.dumps(report.to_dict() | changes))
    ledger.save(folder / "ledger.json")
    return ledger


def test_read_a_run(tmp_path):
    """Catches a field of a run's folder that does not arrive."""
    ledger = a_run(tmp_path, created="2026-03-04T05:06:07Z")
    report = RunFolder(tmp_path).read_report()
    assert report.title == "Synthetic table: cohort" and report.delta == 1e-5
    assert report.ledger.to_dict() == ledger.to_dict() and report.guarantee == ledger.guarantee(1e-5)
    assert report.evaluation["auc_mean"].value == 0.8 and report.day == "2026-03-04"
    assert report.seconds == {"fit": 1.5} and report.versions == {"python": "3.11"}
    assert report.studies == ()  # as a report has it that is older than declared studies
    a_run(tmp_path, evaluation=None)
    assert (
        RunFolder(tmp_path).read_report().evaluation is None and RunFolder(tmp_path).read_report().day is None
    )


def test_studies_arrive(tmp_path):
    """Catches an estimate that is rounded, or a covariance that is lost, on the way through the file."""
    study = sources.study_of("ward | 3", ("age (years)", "sex: M vs F"))
    a_run(tmp_path, studies=[to_plain(study)])
    (again,) = RunFolder(tmp_path).read_report().studies
    assert to_plain(again) == to_plain(study) and again.terms == study.terms
    assert np.array_equal(again.covariance, study.covariance)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "probit"}, "unknown kind 'probit'"),
        ({"coefficients": [0.1]}, "lacks an estimate or a variance"),
        ({"coefficients": [0.1, None]}, "must be a list of numbers"),
        ({"covariance": [[0.1, 0.0], [0.0, 0.0]]}, "lacks an estimate or a variance"),
        ({"secret": 1}, "must have the fields"),
    ],
)
def test_a_study_that_was_changed_is_refused(tmp_path, changes, words):
    """Catches a page of a damaged study, or a traceback in its place."""
    record = to_plain(sources.study_of("mortality", ("age (years)", "sex: M vs F")))
    a_run(tmp_path, studies=[record | changes])
    with pytest.raises(DataError, match=words):
        RunFolder(tmp_path).read_report()
    a_run(tmp_path, studies=[record, record])
    with pytest.raises(DataError, match="given twice"):
        RunFolder(tmp_path).read_report()


def test_read_an_evaluation(tmp_path):
    """Catches a table of another tool for which a guarantee is shown."""
    evaluation = Evaluation((Measure("Utility", "auc_mean", 0.8, True),), {"outcome": "death"})
    (tmp_path / "evaluation.json").write_text(evaluation.to_json())
    report = RunFolder(tmp_path).read_report()
    assert report.guarantee is None and report.ledger is None
    assert report.evaluation == evaluation and report.table["outcome"] == "death"


@pytest.mark.parametrize("ledger", [sources.bare_ledger, Ledger], ids=["bare", "emptied"])
def test_a_ledger_that_tells_another_story_is_refused(tmp_path, ledger):
    """Catches a guarantee told from a ledger that is not the run's: emptied, it would promise everything."""
    a_run(tmp_path)
    ledger().save(tmp_path / "ledger.json")
    with pytest.raises(DataError, match=r"contradict each other|it is empty"):
        RunFolder(tmp_path).read_report()


@pytest.mark.parametrize(
    ("files", "error", "words"),
    [
        ({}, InputError, "not the folder of a run or of an evaluation"),
        ({"report.json": "{}"}, DataError, "no ledger.json"),
        ({"report.json": "{}", "ledger.json": "LEDGER"}, DataError, "it lacks 'ledger'"),
        ({"report.json": "nonsense", "ledger.json": "LEDGER"}, DataError, "not JSON"),
        ({"report.json": "[]", "ledger.json": "LEDGER"}, DataError, "must hold a JSON object"),
        ({"evaluation.json": "{}"}, DataError, "not a saved evaluation"),
        ({"evaluation.json": '{"measures": 3, "settings": {}}'}, DataError, "not a saved evaluation"),
    ],
)
def test_folders_that_are_neither(tmp_path, files, error, words):
    """Catches a traceback, or a message without the folder's name."""
    for name, text in files.items():
        if text == "LEDGER":
            sources.ledger_of().save(tmp_path / name)
        else:
            (tmp_path / name).write_text(text)
    with pytest.raises(error, match=words) as caught:
        RunFolder(tmp_path).read_report()
    assert str(tmp_path) in str(caught.value) and "\n" not in str(caught.value)


def test_attempts_come_back(tmp_path):
    """Catches attempts that a folder loses, and a damaged one that is drawn."""
    found = Estimate(0.3, 0.2, 0.4)
    attempt = Attempt(
        "white box", "epsilon", found, 1.0, None, "10,000 trials", "more trials", internal=False
    )
    a_run(tmp_path, attempts=[attempt.to_dict()])
    assert RunFolder(tmp_path).read_report().attempts == (attempt,)
    a_run(tmp_path, attempts=[attempt.to_dict() | {"internal": "no"}])
    with pytest.raises(DataError, match=r"report\.json"):
        RunFolder(tmp_path).read_report()
