"""The model card: what was bought beyond the prior, and why no more."""

from __future__ import annotations

import re

import pytest

from dpsynth.accounting import Ledger, gaussian_event
from dpsynth.report.page.card import section
from dpsynth.report.run_report import RunReport


def told(names: list[str], model: dict[str, object]) -> str | None:
    ledger = Ledger()
    for name in names:
        ledger.post(name, gaussian_event(9.0), sensitivity="1", adjacency="add/remove")
    report = RunReport(ledger=ledger, delta=1e-5, config={"model": model})
    facts = section(report).blocks[0].items
    return next((sentence.text for name, sentence in facts if name == "Beyond the prior"), None)


@pytest.mark.parametrize(
    ("names", "model", "words"),
    [
        (["one-way marginals"], {}, None),
        (
            ["prior tables"],
            {"moments": "auto"},
            "Neither moments .* nor votes .* nor critic steps. By rule: .*",
        ),
        (["prior tables"], {}, "Neither moments .* nor critic steps."),
        (["prior tables"], {"moments": False}, "Neither moments .* nor critic steps."),
        (
            ["prior tables", "pair moments"],
            {"training_steps": "auto", "votes": "auto"},
            "Moments .*shot. No votes .*: by rule .* No critic steps: by rule .*",
        ),
        (["prior tables", "pair moments"], {"training_steps": 0}, "Moments .*shot."),
        (["prior tables", "pair moments", "votes"], {"votes": "auto"}, "Moments .*shot. Votes .* together."),
        (["prior tables", "votes"], {"moments": False, "votes": True}, "Votes .* together."),
        (["prior tables", "pair moments", "critic steps"], {}, "Moments .*shot. Critic steps."),
        (["prior tables", "critic steps"], {}, "Critic steps."),
    ],
)
def test_the_page_says_what_was_bought_and_why_no_more(names, model, words) -> None:
    """A reason that is not the run's: noise where somebody said no, a rule where somebody said 0."""
    found = told(names, model)
    assert found is words if words is None else re.fullmatch(words, found)
