"""``dpsynth attack adversary`` from its arguments to what it prints and writes."""

from __future__ import annotations

import json

import pytest

from dpsynth.cli import main

QUICK = ["attack", "adversary", "--dataset", "breast_cancer", "--runs", "20"]


def test_the_golden_run(capsys, tmp_path):
    """Catches noise, rho_a or exceedance of another run than the document's: belief .9, delta .01."""
    out = tmp_path / "a"
    assert main([*QUICK, "--json", "--out", str(out)]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["rho_a"] == pytest.approx(0.2562, abs=5e-5)
    assert record["exact"]["tv"] == pytest.approx(0.25619, abs=5e-6)
    assert record["setting"]["noise_multiplier"] == pytest.approx(8.3799, abs=5e-5)
    assert record["exact"]["exceedance"] == pytest.approx(0.0012033, rel=1e-4)
    assert record["exact"]["exceedance"] > 5 * record["exact"]["delta"]
    assert record["runs"] == 20 and record["internal"] and len(record["attempts"]) == 2
    assert json.loads((out / "adversary.json").read_text()) == record
    assert (out / "beliefs.svg").read_text().startswith("<?xml")
    assert main([*QUICK, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "rho_a = 0.2562" in printed and "No bound was passed." in printed
    assert (out / "adversary.txt").read_text().splitlines()[0] == printed.splitlines()[0]


def test_a_replaced_record_has_noise_for_twice_the_sensitivity(capsys):
    """Catches the bounded game with the unbounded game's noise."""
    assert main([*QUICK, "--neighbour", "replaced", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["setting"]["noise_multiplier"] == pytest.approx(2 * 8.3799, abs=1e-4)
    assert record["exact"]["tv"] == pytest.approx(0.25619, abs=5e-6)


def test_sampled_steps_keep_the_belief_but_for_delta(capsys):
    """Catches noise that is calibrated without sampling, or for another probability."""
    assert main([*QUICK, "--sampling-prob", "0.2", "--delta", "0.02", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["exact"]["largest_exceedance"] == pytest.approx(0.02, rel=5e-3)
    assert record["rho_a"] is None and record["setting"]["noise_multiplier"] < 4


def test_what_is_not_private_says_so_in_every_line(capsys, tmp_path):
    """Catches a line or a drawing of local noise that could be taken for a private run's."""
    assert main([*QUICK, "--local-noise", "--out", str(tmp_path / "a")]) == 0
    *lines, wrote = capsys.readouterr().out.splitlines()
    assert all("NOT PRIVATE" in line for line in lines) and wrote.startswith("wrote")
    assert "NOT PRIVATE" in (tmp_path / "a" / "beliefs.svg").read_text()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--model", "tree"], "--model"),
        (["--belief", "0.5"], "--belief"),
        (["--delta", "0"], "--delta"),
        (["--neighbour", "added"], "--neighbour"),
        (["--sampling-prob", "0"], "--sampling-prob"),
        (["--model", "critic", "--local-noise"], "--local-noise"),
        (["--model", "critic", "--steps", "5"], "steps"),
        (["--schema", "a.yaml"], "--schema"),
        (["--dataset", "nothing"], "nothing"),
        (["--learning-rate", "-1"], "learning_rate"),
    ],
)
def test_bad_input_is_one_sentence(more, told, capsys, tmp_path):
    """Catches work that starts before its arguments are checked."""
    assert main([*QUICK, *more, "--out", str(tmp_path / "a")]) == 2
    error = capsys.readouterr().err.strip()
    assert told in error and len(error.splitlines()) == 1
    assert not (tmp_path / "a").exists()
