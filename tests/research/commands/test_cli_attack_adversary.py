"""The adversary A_DI on the command line, from its YAML file to what it prints and writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpsynth.cli import main
from dpsynth.files.text import dump_yaml

QUICK = {"attacker": "adversary", "dataset": "breast_cancer", "runs": 20}


@pytest.fixture
def attack(tmp_path, monkeypatch, capsys):
    """Run the attack with these changes and options, and give what it printed."""
    monkeypatch.chdir(tmp_path)

    def run(*options, status=0, **changes):
        Path("attack.yaml").write_text(dump_yaml(QUICK | changes))
        assert main(["replication", "attack.yaml", *options]) == status
        return capsys.readouterr()

    return run


def test_the_golden_run(attack, tmp_path):
    """Catches noise, rho_a or exceedance of another run than the document's: belief .9, delta .01."""
    out = tmp_path / "a"
    record = json.loads(attack("--json", "--out", str(out)).out)
    assert record["rho_a"] == pytest.approx(0.2562, abs=5e-5)
    assert record["exact"]["tv"] == pytest.approx(0.25619, abs=5e-6)
    assert record["setting"]["noise_multiplier"] == pytest.approx(8.3799, abs=5e-5)
    assert record["exact"]["exceedance"] == pytest.approx(0.0012033, rel=1e-4)
    assert record["exact"]["exceedance"] > 5 * record["exact"]["delta"]
    assert record["runs"] == 20 and record["internal"] and len(record["attempts"]) == 2
    assert record.items() <= json.loads((out / "results.json").read_text()).items()
    assert "Distribution of the belief" in (out / "results.html").read_text()
    printed = attack("--out", str(out)).out
    assert "rho_a = 0.2562" in printed and "No bound was passed." in printed
    assert printed.splitlines()[0] in (out / "results.md").read_text()


def test_a_replaced_record_has_noise_for_twice_the_sensitivity(attack):
    """Catches the bounded game with the unbounded game's noise."""
    record = json.loads(attack("--json", neighbour="replaced").out)
    assert record["setting"]["noise_multiplier"] == pytest.approx(2 * 8.3799, abs=1e-4)
    assert record["exact"]["tv"] == pytest.approx(0.25619, abs=5e-6)


def test_sampled_steps_keep_the_belief_but_for_delta(attack):
    """Catches noise that is calibrated without sampling, or for another probability."""
    record = json.loads(attack("--json", sampling_prob=0.2, delta=0.02).out)
    assert record["exact"]["largest_exceedance"] == pytest.approx(0.02, rel=5e-3)
    assert record["rho_a"] is None and record["setting"]["noise_multiplier"] < 4


def test_what_is_not_private_says_so_in_every_line(attack, tmp_path):
    """Catches a line or a drawing of local noise that could be taken for a private run's."""
    *lines, wrote = attack("--out", str(tmp_path / "a"), local_noise=True).out.splitlines()
    assert all("NOT PRIVATE" in line for line in lines) and wrote.startswith("wrote")
    assert "NOT PRIVATE" in (tmp_path / "a" / "results.html").read_text()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model": "tree"}, "model"),
        ({"belief": 0.5}, "belief must be greater than 0.5"),
        ({"delta": 0}, "delta must be greater than 0"),
        ({"neighbour": "added"}, "neighbour"),
        ({"sampling_prob": 0}, "sampling_prob must be greater than 0"),
        ({"model": "critic", "local_noise": True}, "local_noise"),
        ({"model": "critic", "steps": 5}, "steps"),
        ({"dataset": "nothing"}, "nothing"),
        ({"learning_rate": -1}, "learning_rate"),
    ],
)
def test_bad_input_is_one_sentence(changes, told, attack, tmp_path):
    """Catches work that starts before its arguments are checked."""
    error = attack("--out", str(tmp_path / "a"), status=2, **changes).err.strip()
    assert told in error and len(error.splitlines()) == 1
    assert not (tmp_path / "a").exists()
