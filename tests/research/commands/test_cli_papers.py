"""The papers' theory beside what ``account`` prints."""

from __future__ import annotations

import json

import pytest

from dpsynth.attacks.closed_forms import staircase_tv
from dpsynth.cli import main
from dpsynth.research.papers.ghazi_issa import compose


def printed(command: str, capsys: pytest.CaptureFixture[str]) -> dict:
    assert main([*command.split(), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_composed_staircase_is_theorem_2(capsys: pytest.CaptureFixture[str]) -> None:
    """Would catch a composition that forgets the total variation."""
    cost = printed("account --mechanism staircase --epsilon 0.5 --gamma 0.1 --steps 20 --delta 0", capsys)
    pairs = compose(0.5, 0.0, staircase_tv(0.5, 0.1), 20)
    assert cost["tv"] == pytest.approx(pairs[0].delta, rel=2e-3)
    full = printed("account --mechanism exponential --epsilon 0.5 --steps 20 --delta 0", capsys)
    assert cost["tv"] < 0.96 * full["tv"]
