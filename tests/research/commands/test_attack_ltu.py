"""``dpsynth attack ltu``."""

from __future__ import annotations

import json

import pytest

from dpsynth import datasets
from dpsynth.cli import main

QUICK = [
    "attack",
    "ltu",
    "--dataset",
    "breast_cancer",
    "--model",
    "ridge",
    "--records",
    "30",
    "--rounds",
    "6",
]


def ran(capsys, *words):
    assert main([*QUICK, *words]) == 0
    return capsys.readouterr()


def test_a_person_is_told_what_it_means(capsys):
    """Catches a table of numbers without the sentence, the chance and the word internal."""
    told = ran(capsys)
    assert "names the record that was trained on in 100.0 % (54.1 to 100.0) of 6 pairs" in told.out
    assert "a coin is right in 50 %" in told.out
    assert "confidential" in told.out
    assert "rounds of ridge" in told.err and "rounds of" not in told.out


def test_one_object_with_json(capsys):
    """Catches text beside the JSON object, or numbers that JSON cannot hold."""
    record = json.loads(ran(capsys, "--json", "--shadows", "4", "--scenario", "unseeded").out)
    assert record["internal"] is True and record["design"]["scenario"] == "unseeded"
    names = {one["strategy"] for one in record["rounds"]}
    assert {"loss", "bounded_loss", "retraining_predictions", "bayes_shadow"} <= names
    assert len(record["attempts"]) >= len(names)
    assert record["effective_privacy_loss"]["largest"] > 0


def test_rounds_resume_in_a_folder(capsys, tmp_path):
    """Catches a folder that is not gone on with, or gone on with for other records."""
    out = tmp_path / "ltu"
    ran(capsys, "--out", str(out))
    first = sorted((out / "rounds").iterdir())
    times = [path.stat().st_mtime_ns for path in first]
    assert main([*QUICK[:-1], "9", "--out", str(out)]) == 0
    assert [path.stat().st_mtime_ns for path in first] == times
    assert len(list((out / "rounds").iterdir())) == 9
    assert json.loads((out / "ltu.json").read_text())["rounds"][0]["rounds"] == 9
    capsys.readouterr()
    assert main([*QUICK, "--seed", "1", "--out", str(out)]) == 2
    assert "other settings or records" in capsys.readouterr().err


def test_ones_own_table(capsys, tmp_path):
    """Catches --data and --schema that are not read as --dataset's table is."""
    table = datasets.load("breast_cancer")
    table.frame.to_csv(tmp_path / "own.csv", index=False)
    table.schema.to_yaml(tmp_path / "own.yaml")
    own = ["--data", str(tmp_path / "own.csv"), "--schema", str(tmp_path / "own.yaml")]
    assert main(["attack", "ltu", *own, *QUICK[4:], "--json"]) == 0
    mine = json.loads(capsys.readouterr().out)
    theirs = json.loads(ran(capsys, "--json").out)
    assert mine == theirs


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "forest"], "model must be one of logistic_regression"),
        (["--scenario", "known"], "scenario must be one of original, random, unseeded"),
        (["--records", "400"], "at most 284"),
        (["--record", "30"], "record must be below 30"),
        (["--shadows", "3"], "--shadows must be even"),
        (["--shadows", "4", "--anew"], "--shadows does not go with --anew"),
        (["--schema", "x.yaml"], "--schema goes with --data"),
        (["--level", "1"], "level must lie in"),
    ],
)
def test_bad_input_is_one_sentence(words, said, capsys, tmp_path):
    """Catches a request that fails late, with a traceback or status 1."""
    assert main([*QUICK, *words, "--out", str(tmp_path / "x")]) == 2
    told = capsys.readouterr()
    assert said in told.err and told.err.count("\n") == 1 and not told.out
    assert not (tmp_path / "x").exists()


def test_a_table_is_needed(capsys):
    """Catches an attack on nothing, or on two tables."""
    assert main(["attack", "ltu"]) == 2
    assert "either --dataset, or --data" in capsys.readouterr().err
    assert main(["attack", "ltu", "--data", "x.csv"]) == 2
    assert "--data needs --schema" in capsys.readouterr().err
