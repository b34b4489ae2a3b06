"""Published studies on the command line: `dpsynth replication`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from few_columns import few_columns

from dpsynth.cli import main

PROTOCOL = """\
name: nuclei
title: Nuclei
citation: nobody
question: Which are malignant?
dataset: breast_cancer
seeds: 1
epsilons: [3]
model: {delta: 1e-5}
classifiers: [logistic_regression]
studies: [{name: nuclei, model: "diagnosis ~ mean_texture + mean_smoothness"}]
findings:
- {text: Malignant nuclei are coarser., study: nuclei, term: mean_texture, effect: above}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nuclei.yaml").write_text(PROTOCOL)
    return tmp_path


def test_run_says_what_is_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A result that is not said to be internal, or a conclusion that nobody is told of."""
    with few_columns():
        assert main(["replication", "nuclei.yaml", "--out", "runs/n"]) == 0
    printed = capsys.readouterr()
    assert "1 of 2: real.split-0.restart-0" in printed.err
    assert printed.out.startswith("Nuclei: 2 trials carried out, 0 kept from before\n")
    assert "Malignant nuclei are coarser. [mean_texture: above 1]" in printed.out
    assert re.search(r"  kept: ε = 3 naive [01] of 1, ε = 3 declared [01] of 1", printed.out)
    assert "These results are confidential." in printed.out
    with few_columns():
        assert main(["replication", "nuclei.yaml", "--out", "runs/n", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["trials"] == {"carried_out": 0, "kept": 2} and told["internal"] is True
    assert {"results.md", "results.html", "results.json", "tables"} <= set(told["files"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["no-such-study"], "there is no study 'no-such-study' (studies: aki-mortality, "),
        (["absent.yaml"], "absent.yaml"),
        (["typo.yaml"], "typo.yaml: epsilon is not a known key"),
        (["term.yaml"], "findings: 'age' is no term of 'nuclei' (terms: mean_texture, "),
        (["aki-mortality"], "aki-mortality needs records of MIMIC-III: give --data"),
        (["nuclei.yaml", "--data", "."], "--data is for studies on MIMIC-III"),
        (["aki-mortality", "--data", "empty"], "empty"),
        (["aki-mortality", "--data", "cohort.csv"], "cohort.csv"),
    ],
)
def test_mistakes_are_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    """A mistake that is a traceback, or that leaves a folder."""
    (folder / "empty").mkdir()
    (folder / "cohort.csv").write_text("age,sex\n1,F\n")
    (folder / "typo.yaml").write_text(PROTOCOL.replace("epsilons", "epsilon"))
    (folder / "term.yaml").write_text(PROTOCOL.replace("term: mean_texture", "term: age"))
    assert main(["replication", *arguments, "--out", "runs/n"]) == 2
    printed = capsys.readouterr()
    assert sentence in printed.err and printed.out == "" and "Traceback" not in printed.err
    assert len(printed.err.strip().splitlines()) == 1
    assert not (folder / "runs").exists()
