"""The model card: what was released beyond the base model, and why no more."""

from __future__ import annotations

import re

import pytest

from dpsynth.privacy import Ledger, gaussian_event
from dpsynth.report.privacy import card_section
from dpsynth.report.run_report import RunReport


def told(
    names: list[str], model: dict[str, object], fact: str = "Beyond the base model", critic: str = "proved"
) -> str | None:
    ledger = Ledger()
    for name in names:
        words = critic if name.endswith("critic steps") else "1"
        ledger.post(name, gaussian_event(9.0), sensitivity=words, adjacency="add/remove")
    report = RunReport(ledger=ledger, delta=1e-5, config={"model": model})
    facts = card_section(report).blocks[0].items
    return next((sentence.text for name, sentence in facts if name == fact), None)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["single-column counts"], None),
        (
            ["base model tables"],
            "No pairwise statistics. By rule: there are fewer than three columns, or .* "
            "No further tables. By rule: there are fewer than three columns, or .*",
        ),
        (
            ["base model tables", "counts of codes and of pairs of codes"],
            "No pairwise.* No further tables.* Codes: .*columns.",
        ),
        (["base model tables", "pairwise statistics"], "Pairwise statistics: .*once. No further tables.*"),
        (["base model tables", "further tables"], "No pairwise.* One round of further tables: .*records."),
        (
            ["base model tables", *2 * ["further tables"]],
            "No pairwise.* 2 rounds of further tables: .*records.",
        ),
    ],
)
def test_the_page_says_what_was_bought_and_why_no_more(names, words) -> None:
    """Catches a statistic that was paid for and is not named, or a missing reason for one that was not."""
    found = told(names, {})
    assert found is words if words is None else re.fullmatch(words, found)


@pytest.mark.parametrize(
    ("names", "model", "critic", "words"),
    [
        (["single-column counts"], {}, "", None),
        (["base model tables"], {}, "", "No steps: .*"),
        (["WGAN critic steps"], {}, "proved", "A generator was trained .* alone."),
        (["WGAN critic steps"], {}, "proved for each random critic", "Points were moved .*"),
    ],
)
def test_the_page_says_what_the_critic_did(names, model, critic, words) -> None:
    """Catches a page that names a critic's work that was not done, or a rule where somebody chose."""
    found = told(names, model, "WGAN critic", critic)
    assert found is words if words is None else re.fullmatch(words, found)
