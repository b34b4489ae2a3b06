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
    "snapshots": [0, 100, 400],
    "columns": [
        {
            "column": "sex",
            "unit": None,
            "scale": "linear",
            "edges": [],
            "labels": ["F", "M"],
            "released": [0.5, 0.5],
            "generated": [[0.9, 0.1], [0.7, 0.3], [0.5, 0.5]],
        },
        {
            "column": "age",
            "unit": "years",
            "scale": "linear",
            "edges": [0.0, 40.0, 80.0],
            "labels": [],
            "released": [0.25, 0.75],
            "generated": [[1.0, 0.0], [0.5, 0.5], [0.375, 0.625]],
        },
    ],
    "adjusted": True,
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
def test_columns_in_training_are_shown_beside_noisy_counts():
    """Catches a column that is not shown, or a line explained that there is not."""
    page, said = render(report(), "release"), text(report())
    for name, first, last in (("sex", "0.4", "0"), ("age", "0.75", "0.12")):
        assert f"{name} as generated before the first step and after 400 steps, and its noisy counts." in page
        assert f"Total variation distance from them: {first} at first, {last} at last." in page
    assert "The black line is the noisy counts" in said and "itself has these noisy counts" in said
    without = [{**column, "released": []} for column in TOLD["columns"]]
    assert "black line" not in text(report(columns=without, adjusted=False))
    assert "itself has" not in text(report(adjusted=False))
    assert "are generated during the training" not in text(report(columns=[]))


@pytest.mark.usefixtures("undrawn")
def test_a_training_without_noise_is_not_called_noisy():
    """Catches words of protection, or of noise, about numbers that have none."""
    rows = {**TOLD["rows"], "noise_std": [0.0, 0.0], "wasserstein_error": [0.0, 0.0]}
    said = text(
        RunReport(sources.bare_ledger(), sources.DELTA, training={**TOLD, "rows": rows, "warning": None})
    )
    assert "This training had no noise, so it protects nobody." in said and "exact counts" in said
    assert "At the end it is 0.123. " in said
    for words in ("noisy", "privacy budget", "protects the real", "standard error", "Signal"):
        assert words not in said


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("known", ["ledger", "fact"])
def test_columns_of_an_unreviewed_schema_are_not_shared(known):
    """Catches limits and categories that were read off records, on a page to share or unmarked."""
    ledger = sources.ledger_of()
    if known == "ledger":
        ledger.exclude("bounds that were read off the data")
    facts = {"unreviewed": ["age"]} if known == "fact" else {}
    found = RunReport(ledger, sources.DELTA, table=facts, training=TOLD)
    assert found.released().training == {**TOLD, "columns": []}
    assert "as generated before" not in render(found, "release")
    (*_, drawn) = (block for block in training_section(found).blocks if block.kind == "plots")
    assert len(drawn.plots) == 2 and all(plot.internal for plot in drawn.plots)
    (*_, drawn) = (block for block in training_section(report()).blocks if block.kind == "plots")
    assert not any(plot.internal for plot in drawn.plots)


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
        {"snapshots": [0, 400]},
        {"snapshots": [0, 100, "<b>"]},
        {"columns": [{**TOLD["columns"][0], "labels": ["F"]}]},
        {"columns": [{**TOLD["columns"][0], "labels": ["F", 3]}]},
        {"columns": [{**TOLD["columns"][0], "released": [0.5, float("nan")]}]},
        {"columns": [{**TOLD["columns"][0], "generated": [[0.9, 0.1], [0.7, 0.3], [0.5, -0.5]]}]},
        {"columns": [{**TOLD["columns"][1], "edges": [0.0, 80.0, 40.0]}]},
        {"columns": [{**TOLD["columns"][1], "edges": []}]},
        {"columns": [{"column": "age"}]},
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
        plots = [plot for b in training_section(told).blocks if b.kind == "plots" for plot in b.plots]
        assert len(plots) == 4
        for plot in plots:
            assert plot.uri.startswith("data:image/svg+xml") and plot.alt.endswith(".")
    assert dataclasses.replace(report(), training={}).training == {}
