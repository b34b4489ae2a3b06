"""The leave-two-unlabeled attacker on the command line: a YAML file for `dpsynth replication`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpsynth import datasets
from dpsynth.cli import main
from dpsynth.files.text import dump_yaml

QUICK = {"attacker": "ltu", "dataset": "breast_cancer", "model": "ridge", "records": 30, "rounds": 6}


@pytest.fixture
def attack(tmp_path, monkeypatch, capsys):
    """Run the attack with these changes and options, and give what it printed."""
    monkeypatch.chdir(tmp_path)

    def run(*options, status=0, **changes):
        given = {name: value for name, value in (QUICK | changes).items() if value is not None}
        Path("attack.yaml").write_text(dump_yaml(given))
        assert main(["replication", "attack.yaml", *options]) == status
        return capsys.readouterr()

    return run


def test_a_person_is_told_what_it_means(attack):
    """Catches a table of numbers without the sentence, the chance and the word internal."""
    told = attack()
    assert "names the record that was trained on in 100.0 % (54.1 to 100.0) of 6 pairs" in told.out
    assert "a coin is right in 50 %" in told.out
    assert "confidential" in told.out
    assert "rounds of ridge" in told.err and "rounds of" not in told.out


def test_one_object_with_json(attack):
    """Catches text beside the JSON object, or numbers that JSON cannot hold."""
    record = json.loads(attack("--json", shadows=4, scenario="unseeded").out)
    assert record["internal"] is True and record["design"]["scenario"] == "unseeded"
    names = {one["strategy"] for one in record["rounds"]}
    assert {"loss", "bounded_loss", "retraining_predictions", "bayes_shadow"} <= names
    assert len(record["attempts"]) >= len(names)
    assert record["effective_privacy_loss"]["largest"] > 0


def test_rounds_resume_in_a_folder(attack, tmp_path):
    """Catches a folder that is not gone on with, or gone on with for other records."""
    out = tmp_path / "ltu"
    attack("--out", str(out))
    first = sorted((out / "rounds").iterdir())
    times = [path.stat().st_mtime_ns for path in first]
    attack("--out", str(out), rounds=9)
    assert [path.stat().st_mtime_ns for path in first] == times
    assert len(list((out / "rounds").iterdir())) == 9
    assert json.loads((out / "results.json").read_text())["rounds"][0]["rounds"] == 9
    assert "other settings or records" in attack("--out", str(out), seed=1, status=2).err


def test_ones_own_table(attack):
    """Catches data that are not read as a data set's table is, or not beside the file that names them."""
    table = datasets.load("breast_cancer")
    table.frame.to_csv("own.csv", index=False)
    table.schema.to_yaml("own.yaml")
    mine = json.loads(attack("--json", dataset=None, data={"path": "own.csv", "schema": "own.yaml"}).out)
    theirs = json.loads(attack("--json").out)
    assert mine == theirs


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "forest"}, "model must be one of logistic_regression"),
        ({"scenario": "known"}, "scenario must be 'original', 'random' or 'unseeded'"),
        ({"records": 400}, "at most 284"),
        ({"record": 30}, "record must be below 30"),
        ({"shadows": 3}, "shadows must be even"),
        ({"shadows": 4, "anew": True}, "shadows does not go with anew"),
        ({"level": 1}, "level must be less than 1"),
        ({"attacker": "friend"}, "attacker must be one of adversary, ltu"),
        ({"round": 3}, "attack.yaml: round is not a known key"),
        ({"dataset": None}, "one of dataset and data is required"),
        ({"data": {"path": "x.csv", "schema": "x.yaml"}}, "one of dataset and data is required"),
        ({"dataset": None, "data": {"path": "x.csv"}}, "data.schema is required"),
    ],
)
def test_bad_input_is_one_sentence(changes, said, attack, tmp_path):
    """Catches a request that fails late, with a traceback or status 1."""
    told = attack("--out", str(tmp_path / "x"), status=2, **changes)
    assert said in told.err and told.err.count("\n") == 1 and not told.out
    assert not (tmp_path / "x").exists()


def test_options_of_studies_are_refused(attack):
    """Catches an option that is read and forgotten."""
    assert "--seeds does not go with the attack of attack.yaml" in attack("--seeds", "2", status=2).err
