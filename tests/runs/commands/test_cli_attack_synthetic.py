"""``dpsynth attack synthetic``: of plain files and of a run's folder."""

from __future__ import annotations

import json
import pickle
import shlex
from pathlib import Path

import numpy as np
import pytest
from attacked_tables import MIXED, patients

from dpsynth.cli import main
from dpsynth.privacy.events import gaussian_event, non_private_event
from dpsynth.privacy.ledger import Ledger
from dpsynth.runs.attack_inputs import attacked_run
from dpsynth.runs.evaluation import proved_by

FILES = "attack synthetic --synthetic made.csv --train train.csv --control control.csv --schema schema.yaml"
CONFIG = """\
data: {path: table.csv, schema: schema.yaml}
split: {method: METHOD, test_fraction: 0.5, seed: 0}
model: {epsilon: 3.0, delta: 1e-5}
sample: {n: 60}
evaluate: {enabled: false}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a table that is its own training table."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    train = patients(80, rng)
    for name, frame in (("made", train), ("train", train), ("control", patients(60, rng))):
        frame.to_csv(f"{name}.csv", index=False)
    patients(120, rng).to_csv("table.csv", index=False)
    MIXED.to_yaml("schema.yaml")
    return tmp_path


def call(words: str) -> int:
    return main(shlex.split(words))


def test_files_of_any_tool_are_attacked(folder, capsys):
    """Results on stderr, a table that is no copy of what --json holds, or a run that nothing is told of."""
    assert call(f"{FILES} --linked age,crp:ward,stage --sensitive ward --out attacked") == 0
    told = capsys.readouterr()
    assert "Memorisation of training records was found" in told.out
    assert "evaluating" in told.err
    assert "evaluating" not in told.out
    assert call(f"{FILES} --linked age,crp:ward,stage --sensitive ward --json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads(Path("attacked/attacks.json").read_text())
    assert told.out == Path("attacked/attacks.txt").read_text()
    assert printed["internal"] is True
    assert all(attempt["internal"] for attempt in printed["attempts"])
    assert {risk["proved"] for risk in printed["risks"]} == {None}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("attack synthetic --synthetic made.csv", "--train is needed"),
        (f"{FILES} --shadow 4", "--shadow needs the folder of a run"),
        (f"{FILES} --linked age,sex", "--linked needs two sets of columns"),
        (f"{FILES} --linked age,sex:zip", "'zip' is not a column"),
        (f"{FILES} --linked age,sex:sex", "'sex' is in both sets"),
        (f"{FILES} --sensitive zip", "'zip' is not a column"),
        (f"{FILES.replace('control.csv', 'absent.csv')}", "absent.csv"),
        ("attack synthetic run --train train.csv", "--train does not go with the folder of a run"),
        ("attack synthetic run --shadow 5", "--shadow must be even"),
        ("attack synthetic .", "is not the folder of a run"),
    ],
)
def test_what_cannot_be_is_one_sentence_and_leaves_nothing(words, said, folder, capsys):
    """A traceback, an exit status of 0, or a folder left behind."""
    assert call(f"{words} --out attacked") == 2
    error = capsys.readouterr().err
    assert said in error.splitlines()[-1]
    assert "Traceback" not in error
    assert not Path("attacked").exists()


def test_an_earlier_result_is_replaced_only_if_it_is_asked_for(folder, capsys):
    """Somebody's folder that is written over."""
    assert call(f"{FILES} --out attacked") == 0
    assert call(f"{FILES} --out attacked") == 2
    assert "add --force" in capsys.readouterr().err
    assert call(f"{FILES} --out attacked --force") == 0
    Path("other").mkdir()
    Path("other/thesis.txt").write_text("years of work")
    assert call(f"{FILES} --out other --force") == 2
    assert Path("other/thesis.txt").read_text() == "years of work"


@pytest.mark.slow
def test_a_run_is_attacked_with_its_bounds_and_its_generator(folder, capsys):
    """Another split than the run's, bounds of another ledger, or shadow models that begin anew."""
    Path("run.yaml").write_text(CONFIG.replace("METHOD", "independent"))
    assert call("run run.yaml --out ran") == 0
    attacked = attacked_run("ran")
    assert len(attacked.tables.train) + len(attacked.tables.test) == 120
    tv = Ledger.load("ran/ledger.json").guarantee().tv
    assert attacked.proved.advantage == pytest.approx(tv)
    made = pickle.loads(pickle.dumps(attacked.generator))(attacked.tables.train, np.random.default_rng(0))
    again = attacked.generator(attacked.tables.train, np.random.default_rng(0))
    assert len(made) == 60
    assert made.equals(again)
    capsys.readouterr()
    assert call("attack synthetic ran --shadow 4 --out attacked --json") == 0
    told = capsys.readouterr()
    result = json.loads(told.out)
    assert told.err.count("shadow models:") == 4
    assert result["shadow"]["guesses"] == 40
    assert result["shadow"]["proved"] == pytest.approx((1 + tv) / 2)
    excess = [
        each
        for each in result["attempts"]
        if each["attack"] == "membership, distance, beyond held-out records"
    ]
    assert excess[0]["proved"] == pytest.approx(tv)
    # what was carried out is kept, and more is added to it
    assert call("attack synthetic ran --shadow 6 --out attacked --force") == 0
    assert capsys.readouterr().err.count("shadow models:") == 2


@pytest.mark.slow
def test_a_split_in_exact_numbers_doubles_the_bound(folder):
    """A bound for adding a record beside an attack that exchanges one for another."""
    Path("run.yaml").write_text(CONFIG.replace("METHOD", "stratified"))
    assert call("run run.yaml --out ran") == 0
    tv = Ledger.load("ran/ledger.json").guarantee().tv
    assert attacked_run("ran").proved.advantage == pytest.approx(min(1.0, 2 * tv))


def test_a_void_guarantee_bounds_nothing():
    """A bound beside a table whose noise can be taken away."""
    ledger = Ledger()
    ledger.begin_stage(1e-5)
    ledger.post("sum", gaussian_event(2.0), sensitivity="1")
    assert proved_by(ledger, coins=True).advantage == pytest.approx(ledger.profile().tv())
    ledger.seeded = True
    assert proved_by(ledger, coins=True).advantage is None
    bare = Ledger()
    bare.begin_stage(1e-5)
    bare.post("raw", non_private_event(), sensitivity="unbounded")
    assert proved_by(bare, coins=True).advantage is None
