"""The section on a training: what was released, and only where a guarantee covers it."""

from __future__ import annotations

import dataclasses

import pytest
import report_sources as sources

from dpsynth.report.page import render, to_markdown
from dpsynth.report.run_report import RunReport
from dpsynth.report.training import read_training, training_section

TOLD = {
    "planned": 1000,
    "made": 400,
    "rows": {
        "step": [200.0, 400.0],
        "noise_std": [1.5, 1.6],
        "signal": [0.5, 0.25],
        "wasserstein": [0.61, 0.1234],
        "wasserstein_error": [0.02, 0.0321],
    },
    "layers": [
        {"size": 480, "box": 6.28, "ball": 2.12, "used": "ball", "reached": 0.94},
        {"size": 32, "box": 1.5, "ball": -1.0, "used": "box", "reached": 0.5},
    ],
    "warning": "noise is more than 90% of the released gradient in 50% of the iterations",
}


def report(ledger=None, **changes) -> RunReport:
    return RunReport(ledger or sources.ledger_of(), sources.DELTA, training={**TOLD, **changes})


def text(of: RunReport) -> str:
    return to_markdown(of).split("## Training")[1].split("\n## ")[0]


@pytest.mark.usefixtures("undrawn")
def test_the_section_says_what_was_released():
    """Catches an early end without its cost, an estimate without its error, or a bound that is not shown."""
    said = text(report())
    for words in (
        "made 400 of 1,000 steps",
        "The cost is that of all 1,000",
        "it is 0.123, with a standard error of 0.032",
        "Noise is more than 90% of the released gradient in 50% of the iterations.",
        "| 1 | 480 | 6.28 | 2.12 | ball | 94% |",
        "| 2 | 32 | 1.5 | none | box | 50% |",
    ):
        assert words in said
    assert "confidential" not in said
    page = render(report(), "release")
    assert "Training" in page and page.count("Estimated Wasserstein distance") > 0
    assert "made 400 steps." in text(report(planned=400))
    rows = {name: TOLD["rows"][name] for name in ("step", "noise_std", "signal")}
    assert "leave no estimate" in text(report(rows=rows, layers=[], warning=None))
    assert training_section(RunReport()) is None


@pytest.mark.usefixtures("undrawn")
def test_a_training_without_a_guarantee_is_not_shared():
    """Catches exact mean scores of real records on a page to share, or unmarked on the owner's."""
    without = report(sources.bare_ledger())
    assert without.released().training == {} and report().released().training == TOLD
    assert "Wasserstein" not in render(without, "release")
    assert "0.032 by noise. *(confidential)*" in text(without)


@pytest.mark.parametrize(
    "change",
    [
        {"rows": {"step": [1.0], "noise_std": [1.0]}},
        {"rows": {**TOLD["rows"], "signal": [1.0]}},
        {"rows": {**TOLD["rows"], "signal": [1.0, float("nan")]}},
        {"rows": {**TOLD["rows"], "signal": ["<b>", 1.0]}},
        {"rows": {}},
        {"layers": [{"size": 3}]},
        {"made": 1001},
        {"warning": 3},
    ],
)
def test_a_changed_file_is_refused(change):
    """Catches a traceback, or a picture of what somebody wrote into report.json."""
    with pytest.raises(ValueError, match="its training"):
        read_training({**TOLD, **change})


def test_figures_are_drawn():
    """Catches a figure that fails for a single point, or that says nothing to those who cannot see it."""
    one = {name: column[:1] for name, column in TOLD["rows"].items()}
    for told in (report(), report(rows=one)):
        (plots,) = (b for b in training_section(told).blocks if b.kind == "plots")
        for plot in plots.plots:
            assert plot.uri.startswith("data:image/svg+xml") and plot.alt.endswith(".")
    assert dataclasses.replace(report(), training={}).training == {}
