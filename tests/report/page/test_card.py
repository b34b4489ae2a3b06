"""The model card: what was released beyond the base model, and why no more."""

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
    return next((sentence.text for name, sentence in facts if name == "Beyond the base model"), None)


@pytest.mark.parametrize(
    ("names", "model", "words"),
    [
        (["single-column counts"], {}, None),
        (
            ["base model tables"],
            {"pairwise_statistics": "auto"},
            "Neither pairwise statistics nor a nearest-neighbour histogram nor WGAN critic steps. By rule.*",
        ),
        (
            ["base model tables"],
            {},
            "Neither pairwise statistics nor a nearest-neighbour histogram nor WGAN critic steps.",
        ),
        (
            ["base model tables"],
            {"pairwise_statistics": False},
            "Neither pairwise statistics nor a nearest-neighbour histogram nor WGAN critic steps.",
        ),
        (
            ["base model tables", "pairwise statistics"],
            {"training_steps": "auto", "neighbour_histogram": "auto"},
            "Pairwise .*once. No nearest-neighbour histogram: by rule .* No WGAN critic steps: by rule .*",
        ),
        (["base model tables", "pairwise statistics"], {"training_steps": 0}, "Pairwise statistics.*once."),
        (
            ["base model tables", "pairwise statistics", "nearest-neighbour histogram"],
            {"neighbour_histogram": "auto"},
            "Pairwise statistics.*once. Nearest-neighbour histogram .* together.",
        ),
        (
            ["base model tables", "nearest-neighbour histogram"],
            {"pairwise_statistics": False, "neighbour_histogram": True},
            "Nearest-neighbour histogram .* together.",
        ),
        (
            ["base model tables", "pairwise statistics", "WGAN critic steps"],
            {},
            "Pairwise statistics.*once. WGAN critic steps.",
        ),
        (["base model tables", "WGAN critic steps"], {}, "WGAN critic steps."),
        (["base model tables", "critic steps"], {}, "WGAN critic steps."),  # a ledger of an older version
    ],
)
def test_the_page_says_what_was_bought_and_why_no_more(names, model, words) -> None:
    """A reason that is not the run's: noise where somebody said no, a rule where somebody said 0."""
    found = told(names, model)
    assert found is words if words is None else re.fullmatch(words, found)
