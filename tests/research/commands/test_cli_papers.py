"""``python -m dpsynth.research.papers.golden``, and the papers' theory beside what ``account`` prints."""

from __future__ import annotations

import json

import pytest

from dpsynth.attacks.tv_bounds import staircase_tv
from dpsynth.cli import main
from dpsynth.research.papers import golden
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


def test_golden_values(capsys: pytest.CaptureFixture[str]) -> None:
    """Would catch a golden value that this package no longer reproduces."""
    assert golden.print_values() == 0
    assert "57 of 57 values agree" in capsys.readouterr().out


def test_a_difference_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch a check that cannot fail."""
    monkeypatch.setattr("dpsynth.research.papers.golden.laplace_tv", lambda scale: 0.4)
    assert golden.print_values() == 1
    assert "DIFFERS" in capsys.readouterr().out
