"""``dpsynth account`` and ``dpsynth calibrate``: what they print, and bad input in one line."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from dpsynth.cli import main
from dpsynth.privacy import Ledger, gaussian_event, training_event
from dpsynth.privacy.calibration import TvTarget
from dpsynth.runs.commands import account as costs

BAD_INPUT = {
    "account --noise-multiplier 1 --sampling-prob 1.5": "sampling_prob must lie in (0, 1]",
    "account --noise-multiplier -1": "noise_multiplier must lie in (0, inf)",
    "account --noise-multiplier nan": "noise_multiplier must be a number",
    "account --noise-multiplier 1 --delta 1": "delta must lie in [0, 1)",
    "account --noise-multiplier 1 --delta nan": "delta must be a number",
    "account --noise-multiplier 1 --steps 0": "steps must be a whole number",
    "account --noise-multiplier 1 --prior 1": "prior must lie in (0, 1)",
    "account --noise-multiplier 1 --fpr 2": "fpr must lie in [0, 1]",
    "account --noise-multiplier 1 --adjacency both": "adjacency must be one of",
    "account --noise-multiplier 1 --epsilon 1": "describe a --mechanism",
    "account --mechanism cauchy --epsilon 1": "mechanism must be one of gaussian, laplace, staircase",
    "account --mechanism laplace": "takes noise_multiplier or epsilon",
    "account --mechanism staircase --epsilon 1": "takes epsilon and gamma",
    "account --mechanism staircase --epsilon 1 --gamma 2": "gamma must lie in",
    "account --mechanism exponential --epsilon 0": "epsilon must lie in (0, inf)",
    "account --mechanism gaussian --noise-multiplier 1 --sampling-prob 0.1": "does not go with --mechanism",
    "account --ledger x.json --noise-multiplier 1": "--ledger holds its own events",
    "account --ledger x.json --adjacency replace-one": "does not go with --ledger",
    "account --ledger absent.json": "absent.json",
    "calibrate --target tv=2": "tv must lie in (0, 1)",
    "calibrate --target hope=1": "target must be one of",
    "calibrate --target tv=0.1 --sampling-prob 0": "sampling_prob must lie in (0, 1]",
    "calibrate --target epsilon=1 --delta 0": "no noise multiplier up to 1e+07",
    "calibrate --target tv=0.1 --steps 1.5": "'--steps'",
    "calibrate": "--target",
}


@pytest.mark.parametrize("command", BAD_INPUT)
def test_bad_input(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch a figure printed for input that means nothing, a traceback, or something written."""
    monkeypatch.chdir(tmp_path)
    Path("taken").write_text("a file")
    assert main(command.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert BAD_INPUT[command] in captured.err
    assert [path.name for path in Path().iterdir()] == ["taken"]


def printed(command: str, capsys: pytest.CaptureFixture[str]) -> dict:
    assert main([*command.split(), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_measure_of_a_training_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Would catch a measure that is left out, or contradicts another."""
    cost = printed("account --noise-multiplier 1 --sampling-prob 0.01 --steps 1000 --prior 0.2", capsys)
    assert cost["epsilon"] == pytest.approx(1.8282, abs=2e-4)
    assert cost["tv"] == pytest.approx(0.16102, abs=2e-5)
    assert cost["tpr_at_fpr"] - cost["fpr"] == pytest.approx(cost["advantage_at_fpr"])
    true, false = 0.2 * cost["tpr_at_fpr"], 0.8 * cost["fpr"]
    assert cost["ppv_at_fpr"] == pytest.approx(true / (true + false))
    odds = cost["belief_bound"] / (1 - cost["belief_bound"])
    assert odds == pytest.approx(math.exp(cost["epsilon"]) * 0.25)
    assert cost["delta"] < cost["belief_exceedance"] < 0.01
    forms = cost["closed_forms"]
    assert forms["tv"] > cost["tv"] and forms["attack_accuracy_dp"] >= cost["attack_accuracy_bound"]
    assert forms["advantage_at_fpr_dp"] >= cost["advantage_at_fpr"]
    low, high = forms["tv_sharper_between_fprs"]
    assert 0 < low < high < 1


def test_text_explains_each_number(capsys: pytest.CaptureFixture[str]) -> None:
    """Would catch a number without its sentence, or one rounded down."""
    assert main(["account", "--noise-multiplier", "2", "--steps", "4"]) == 0
    text = capsys.readouterr().out
    assert "epsilon                4.37718 at delta 1e-05" in text
    assert "at most 79.62 times as probable with this record as without" in text
    assert "right at most 69.2 times in 100. Without the output it is right 50 times in 100" in text
    assert "whether its mean is 0 or 1." in text
    replaced = ["account", "--noise-multiplier", "2", "--steps", "4", "--adjacency", "replace-one"]
    assert main(replaced) == 0
    text = capsys.readouterr().out
    assert "this record rather than another" in text and "replace-one" in text


@pytest.mark.parametrize(
    ("row", "who"), [("one stay", "row"), ("one patient: the first stay", "patient"), (None, "row")]
)
def test_what_is_covered_is_called_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], row: str | None, who: str
) -> None:
    """Would catch a bound for one row of a patient that reads as one for the patient."""
    ledger = Ledger()
    ledger.about(row)
    ledger.begin_stage(1e-5)
    ledger.post("counts", gaussian_event(2.0), sensitivity="1")
    ledger.save(tmp_path / "ledger.json")
    assert main(["account", "--ledger", str(tmp_path / "ledger.json")]) == 0
    for text in (capsys.readouterr().out, str(ledger)):
        assert f"probable with this {who} as without" in text
        assert "this patient" not in text or who == "patient"


@pytest.mark.parametrize(
    ("options", "tv", "epsilon"),
    [
        ("laplace --epsilon 1", 1 - math.exp(-0.5), 1.0),
        ("laplace --noise-multiplier 2", 1 - math.exp(-0.25), 0.5),
        ("exponential --epsilon 1", math.tanh(0.5), 1.0),
        ("staircase --epsilon 1 --gamma 0.2", 0.39690, 1.0),
        ("staircase --epsilon 1 --gamma 0.5 --steps 1", math.tanh(0.5), 1.0),
        ("gaussian --noise-multiplier 1", 0.38292, 4.3772),
    ],
)
def test_mechanisms(options: str, tv: float, epsilon: float, capsys: pytest.CaptureFixture[str]) -> None:
    """Would catch a mechanism accounted for as another."""
    cost = printed(f"account --mechanism {options} --delta {'1e-5' if 'gauss' in options else '0'}", capsys)
    assert cost["tv"] == pytest.approx(tv, abs=2e-5)
    assert cost["epsilon"] == pytest.approx(epsilon, rel=1e-4)


def test_ledger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Would catch a ledger whose measures are those of another composition."""
    ledger = Ledger()
    ledger.post("tables", gaussian_event(4.0), sensitivity="2")
    ledger.post("steps", training_event(1.5, 0.02, 200), sensitivity="1")
    ledger.save(tmp_path / "ledger.json")
    cost = printed(f"account --ledger {tmp_path / 'ledger.json'}", capsys)
    assert cost["tpr_at_fpr"] == pytest.approx(float(ledger.profile().tpr(0.01)))
    assert [entry["name"] for entry in cost["entries"]] == ["tables", "steps"]
    assert main(["account", "--ledger", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("(")


def test_calibrate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Would catch noise that misses the target, is printed too small, or ignores earlier releases."""
    command = "calibrate --target advantage=0.1 --sampling-prob 0.002 --steps 10000"
    cost = printed(command, capsys)
    assert cost["noise_multiplier"] == pytest.approx(1.0251, rel=1e-3) and cost["tv"] <= 0.1
    assert main(command.split()) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert float(first.split()[2]) >= cost["noise_multiplier"]
    ledger = Ledger()
    ledger.post("tables", gaussian_event(10.0), sensitivity="1")
    ledger.save(tmp_path / "ledger.json")
    more = printed(f"{command} --ledger {tmp_path / 'ledger.json'}", capsys)
    assert more["noise_multiplier"] > cost["noise_multiplier"] and more["tv"] <= 0.1


def test_a_ledger_whose_seed_is_known_says_so_wherever_its_numbers_stand():
    """Would catch finite numbers of a seeded ledger without the words NOT PRIVATE beside them."""
    ledger = Ledger()
    ledger.post("count", gaussian_event(5.0), sensitivity="1")
    ledger.seeded = True
    ledger.exclude("bounds read off the data")
    alone = costs.of_ledger(ledger, 1e-5)
    planned = costs.calibrated(TvTarget(0.2), 0.01, 100, 1e-5, earlier=ledger)
    for text in (costs.to_text(alone), costs.to_text(planned)):
        assert "NOT PRIVATE: noise in the ledger" in text and "bounds read off the data" in text
