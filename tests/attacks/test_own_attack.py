"""An attack of one's own: one function and one line, and the words, files and verdicts have its results."""

from __future__ import annotations

import numpy as np
import pytest
from attacked_tables import copying, fresh

from dpsynth.attacks import suite
from dpsynth.attacks.risk import Risk, rate_of
from dpsynth.evaluation.tables import Tables


def twins(tables: Tables, asked: suite.Request, rng: np.random.Generator) -> list[Risk]:
    """Is there a synthetic record with all values of a person?"""
    assert tables.test is not None
    made = {tuple(row) for row in tables.synthetic.astype(str).to_numpy()}
    rates = [
        rate_of(np.array([tuple(row) in made for row in frame.astype(str).to_numpy()]), asked.level)
        for frame in (tables.train, tables.test)
    ]
    nothing = rate_of(np.zeros(len(tables.train), dtype=bool), asked.level)
    sizes = (len(tables.train), len(tables.test))
    return [Risk.of("twins", "all columns", "a person's values", (rates[0], nothing, rates[1]), sizes)]


def test_an_attack_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches an attack that words, attempts or verdict leave out, or that moves the others' draws."""
    before = suite.attack_tables(copying(), rng=np.random.default_rng(0), effort=suite.QUICK)
    question = "Has a person a twin in the table?"
    own = suite.TableAttack("twins", question, "people with a twin", twins, "None.")
    monkeypatch.setattr(suite, "ATTACKS", (*suite.ATTACKS, own))
    found = suite.attack_tables(copying(), rng=np.random.default_rng(0), effort=suite.QUICK)
    assert found[:-1] == before and found[-1].risk == "twins" and found[-1].found
    words = suite.in_words(found)
    assert "TWINS. Has a person a twin in the table?" in words and "people with a twin" in words
    assert "twins" in suite.verdict(found) and suite.attempts(found)[-1].attack.startswith(
        "twins, all columns"
    )
    others = suite.attack_tables(fresh((300, 300, 300), 1), rng=np.random.default_rng(0), effort=suite.QUICK)
    assert not others[-1].found
