"""The record of a run: the guarantee first, NOT PRIVATE where it is void, valid JSON always."""

from __future__ import annotations

import html
import io
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
import report_sources as sources
from plain_words import complaints, hard_words

from dpsynth.errors import InputError
from dpsynth.evaluation.results import Evaluation, Measure
from dpsynth.files.storage import dump_json
from dpsynth.privacy import Ledger, gaussian_event, non_private_event
from dpsynth.privacy.guarantee import round_up
from dpsynth.report.page import render, to_markdown
from dpsynth.report.run_report import RunReport


def report_of(ledger: Ledger, **changes: object) -> RunReport:
    fields = {
        "ledger": ledger,
        "delta": 1e-5,
        "table": {"name": "cohort", "synthetic_records": 10, "outcome": None},
        "config": {"dataset": "cohort", "model": {"epsilon": 1.0}},
        "evaluation": Evaluation((Measure("Utility", "auc_mean", 0.8, True, "three classifiers"),)),
        "versions": {"python": "3.11"},
        "seconds": {"fit": 1.23456},
    }
    return RunReport(**{**fields, **changes})


def test_the_head_of_the_markdown_is_in_plain_english() -> None:
    """Catches long sentences and hard words. What follows is on the page as well (test_html)."""
    for report in (RunReport(), RunReport(sources.bare_ledger(), 1e-5, table={"name": "cohort"})):
        head = html.unescape(to_markdown(report).partition("## ")[0])
        assert "Numbers marked" in head and complaints(head) == [] and hard_words(head) == []


@pytest.fixture
def ledger() -> Ledger:
    made = Ledger()
    made.post("histograms", gaussian_event(4.0), sensitivity="sqrt(2)", detail="a|b")
    made.post("critic", gaussian_event(8.0), sensitivity="proved each step")
    return made


def test_markdown_opens_with_the_guarantee_and_shows_every_reading(ledger: Ledger) -> None:
    """Would catch a reading of the private table that the report does not list."""
    text = to_markdown(report_of(ledger))
    promise, cost, worth = "## Guarantee", "### Cost", "## Prediction"
    assert text.index(promise) < text.index(cost) < text.index(worth)
    assert "NOT PRIVATE" not in text
    rows = [line for line in text.splitlines() if re.match(r"\| \d\. (histograms|critic) ", line)]
    assert len(rows) == 2
    assert all(row.replace("\\|", "").count("|") == 7 for row in rows)
    shown = round_up(ledger.epsilon(1e-5))
    assert float(shown) >= ledger.epsilon(1e-5)
    assert shown in rows[1] and f"ε = {shown}" in text
    assert "confidential" in text
    assert "epsilon: 1.0" in text and "fit 1.2 s" in text and "python 3.11" in text


def test_json_is_complete_and_valid(ledger: Ledger) -> None:
    """Would catch a part of the report that is only in the Markdown."""
    record = json.loads(dump_json(report_of(ledger).to_dict()))
    assert record["private"] is True
    assert record["ledger"]["epsilon"] == pytest.approx(ledger.epsilon(1e-5))
    assert [entry["name"] for entry in record["ledger"]["entries"]] == ["histograms", "critic"]
    assert record["evaluation"]["measures"][0]["internal"] is True
    assert record["seconds"] == {"fit": 1.235}
    assert set(record) == {
        "guarantee", "private", "release", "ledger", "table", "evaluation", "config", "versions", "seconds",
            "created", "studies", "attempts", "training",
    }  # fmt: skip


def test_a_run_without_noise_says_so_everywhere() -> None:
    """Would catch NOT PRIVATE missing, or an infinite epsilon that breaks the JSON."""
    bare = Ledger()
    bare.post("fit without noise", non_private_event(), sensitivity="unbounded")
    report = report_of(bare)
    assert math.isinf(report.guarantee.epsilon)
    record = json.loads(dump_json(report.to_dict()))
    assert record["private"] is False and record["ledger"]["epsilon"] is None
    text = to_markdown(report)
    assert text.splitlines()[2].startswith("> **NOT PRIVATE.**")
    assert "| ∞ |" in text


def test_seeded_noise_is_not_private(ledger: Ledger) -> None:
    """Would catch a report that promises privacy although the noise can be drawn again."""
    ledger.seeded = True
    assert not report_of(ledger).guarantee.private
    assert to_markdown(report_of(ledger)).splitlines()[2].startswith("> **NOT PRIVATE.**")


def test_exclusions_are_listed(ledger: Ledger) -> None:
    """Would catch unreviewed fields that the report passes over in silence."""
    ledger.exclude("bounds of age were read off the data")
    assert "- bounds of age were read off the data" in to_markdown(report_of(ledger))


def test_without_evaluation(ledger: Ledger) -> None:
    """Would catch a crash where a run does not evaluate."""
    report = report_of(ledger, evaluation=None)
    assert report.to_dict()["evaluation"] is None
    assert "## Prediction" not in to_markdown(report)


def test_markdown_carries_nothing_live(ledger: Ledger) -> None:
    """Would catch a script, a picture or a link that stands in a name or in the configuration."""
    from markdown_it import MarkdownIt

    evil = "<script>alert(1)</script> ![p](http://example.org/p.png) | a"
    ledger.post(evil, gaussian_event(9.0), sensitivity=evil, detail=evil)
    ledger.exclude(evil)
    report = report_of(
        ledger,
        table={"name": evil, "outcome": evil},
        config={"description": f"```\n{evil}\n````\n{evil}", "evaluate": {"constraints": [evil]}},
        evaluation=Evaluation((Measure(evil, evil, 0.8, True, evil),)),
        studies=(sources.study_of(evil, (evil,)),),
    )
    text = to_markdown(report)
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    kinds = {child.type for token in tokens for child in [token, *(token.children or [])]}
    assert not kinds & {"html_inline", "html_block", "link_open", "image"}
    assert text.count("&lt;script>") >= 9
    assert any("Wall time" in token.content for token in tokens if token.type == "inline")


STUDY = sources.study_of()
#: what may not be made or asked for, and a word of the reason
REFUSED = {
    "created must be an ISO date, got 'yesterday'": lambda: RunReport(created="yesterday"),
    "belong together": lambda: RunReport(ledger=Ledger()),
    "the study 'mortality' is given twice": lambda: RunReport(studies=(STUDY, STUDY)),
    "the ledger names no delta": lambda: RunReport.of_evaluation(Evaluation(()), ledger=Ledger()),
    "no plot 'auc'. It has: none": lambda: RunReport().plot("auc"),
    "mode must be one of internal, release, got 'Release'": lambda: render(RunReport(), "Release"),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_wrong_is_named(reason: str) -> None:
    """Catches half a ledger, no date, two captions that are one, or an internal page by a slip of the pen."""
    with pytest.raises(InputError, match=re.escape(reason)):
        REFUSED[reason]()


def told(report: RunReport) -> str:
    """What the Markdown says about pre-specified regressions; empty if nothing."""
    _, _, rest = to_markdown(report).partition("## Pre-specified regressions")
    return rest.partition("\n## ")[0]


def test_declared_studies_are_told(ledger: Ledger) -> None:
    """Would catch an estimate that was paid for and is nowhere, or is on the additive scale."""
    study = sources.study_of("mortality", ("age (per 10 years)", "sex: M vs F"))
    text = told(report_of(ledger, studies=(study,)))
    assert "logistic: death ~ age" in text and "1.4 times as wide as without noise" in text
    assert "can be quoted" in text and "too short" in text and "dpsynth.combine" in text
    odds, half = np.exp(-0.4), 1.959964 * np.sqrt(0.041)
    ends = [np.exp(-0.4 + sign * half) for sign in (-1, 1)]
    row = f"| age (per 10 years) | {odds:.3f} | {ends[0]:.3f} to {ends[1]:.3f} | 0.048 | covered |"
    assert row in text.splitlines()
    assert told(report_of(ledger)) == ""


def test_a_survival_curve_is_told(ledger: Ledger) -> None:
    """Would catch a curve that was paid for and is nowhere, or one of a study that nobody paid for."""
    study = replace(sources.study_of("mortality", ("age", "sex: M vs F"), "cox"), survival=sources.CURVE)
    text = told(report_of(ledger, studies=(study,)))
    assert "Survival by time (days)" in text and "Its 95 % bands include" in text
    assert "| 180 | 0.81 | 0.74 to 0.86 | covered |" in text.splitlines()
    assert text.count("| covered |") == len(study.terms) + len(sources.CURVE.times)
    ledger.seeded = True
    text = told(report_of(ledger, studies=(study,)))
    assert "| 180 | 0.81 | 0.74 to 0.86 | confidential |" in text and "| covered |" not in text


WITHHELD = {
    "no noise": ("NOT PRIVATE", {}),
    "seeded": ("NOT PRIVATE", {}),
    "unreviewed": ("read off the records", {"table": {"unreviewed": ["age", "ward"]}}),
    "unreviewed in the evaluation": (
        "read off the records",
        {"evaluation": Evaluation((), {"unreviewed": ["age", "ward"]})},
    ),
    "no ledger": ("No ledger", {"ledger": None, "delta": None}),
}


@pytest.mark.parametrize("case", WITHHELD)
def test_studies_that_were_not_paid_for_are_kept_back(ledger: Ledger, case: str) -> None:
    """Would catch estimates of a run without a guarantee, or names of terms read off records, released."""
    words, changes = WITHHELD[case]
    if case == "no noise":
        ledger.post("without noise", non_private_event(), sensitivity="unbounded")
    ledger.seeded = case == "seeded"
    report = replace(report_of(ledger, studies=(sources.study_of(),)), **changes)
    assert report.released().studies == () and words in report.withheld
    text = told(report)
    assert words in text and "confidential |" in text
    assert "| covered |" not in text and "can be quoted" not in text
    assert ("age, ward" in text) == case.startswith("unreviewed")


def test_studies_of_a_guarantee_that_leaves_something_out(ledger: Ledger) -> None:
    """Would catch estimates that are called covered where the guarantee has a hole, or that are lost."""
    ledger.exclude("the stratified split")
    report = report_of(ledger, studies=(sources.study_of(),))
    assert report.released().studies == report.studies and report.withheld == ""
    text = told(report)
    assert "also that of these estimates, does not cover: the stratified split" in text
    assert "| covered |" in text and "can be quoted" in text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Glyph")  # a font without every alphabet
def test_every_plot_is_drawn_by_its_name() -> None:
    """Would catch a plot that cannot be drawn, or that a formula in the name of a column breaks."""
    report, _ = sources.full_report(7)
    assert {"costs", "trade_off", "privacy_profile", "auc", "nn_accuracy", "distances"} <= set(report.plots)
    curve = replace(sources.study_of("time"), survival=sources.CURVE)
    report = replace(report, studies=(*report.studies, curve))
    kinds = {name.partition("[")[0] for name in report.plots if name.endswith("]")}
    assert kinds >= {"attempts", "estimates", "survival", "roc", "calibration", "marginal", "associations"}
    for name in report.plots:
        figure = report.plot(name)
        figure.savefig(io.BytesIO(), dpi=20)  # outside the style of the page, as a notebook does
    with pytest.raises(InputError, match=r"no plot 'roc'. It has: costs, trade_off"):
        report.plot("roc")


def test_a_report_in_a_notebook_is_escaped_and_says_what_is_confidential(undrawn: None) -> None:
    """Would catch HTML of a name that runs, no guarantee, or a number that must stay inside."""
    report, secret = sources.full_report(2)
    page = report._repr_html_()
    assert "<img style" in page and page.count("data:image/svg+xml") >= 4
    assert not re.search("<(script|b|i|img src)[ >]", page.replace('<img style="max-width: 100%"', ""))
    for shown in (repr(report), page):
        assert str(report.guarantee)[:20] in shown and "Confidential" in shown and "Bad" in shown
    kept = report.released()
    shared = kept._repr_html_()
    assert "onfidential" not in shared and "onfidential" not in repr(kept)
    assert not any(kept._plots[name].internal for name in kept.plots)
    assert not [number for number in secret if f"{number:.4f}" in shared or str(number) in shared]


def test_columns_that_are_mostly_noise_are_shared_only_under_the_guarantee(ledger: Ledger) -> None:
    """Would catch names that follow from counts without noise, or from categories read off records."""
    table: dict[str, object] = {"mostly_noise": "ward and code", "outcome_noise": "the outcome is noise"}
    assert table.items() <= report_of(ledger, table=table).released().table.items()
    draft = report_of(ledger, table={**table, "unreviewed": ["code"]})
    bare = RunReport(sources.bare_ledger(), 1e-5, table=table)
    ledger.exclude("schema fields read off the private data and not reviewed (code: categories)")
    for report in (draft, bare, report_of(ledger, table=table)):
        assert not set(table) & set(report.released().table)


def test_a_report_of_an_evaluation_takes_the_ledger_of_a_fit() -> None:
    """Would catch a guarantee told at a delta that nobody named."""
    evaluation = Evaluation((Measure("Utility", "auc_mean", 0.8, True),))
    known = Ledger()
    known.begin_stage(1e-6)
    known.post("counts", gaussian_event(4.0), sensitivity="1")
    assert str(known.guarantee()) in repr(RunReport.of_evaluation(evaluation, ledger=known))
    assert "No guarantee is known" in repr(RunReport.of_evaluation(evaluation))


@pytest.mark.parametrize(
    ("table", "config", "kept"),
    [
        ({"name": "smith_cohort", "schema_name": None}, {"data": {"path": "/d/link.csv"}}, None),
        ({"name": "smith_cohort"}, {}, None),
        ({"name": "cohort", "schema_name": "cohort"}, {"data": {"path": "/d/smith.csv"}}, "cohort"),
        ({"name": "flchain"}, {"dataset": "flchain"}, "flchain"),
        ({"name": "smith"}, {"dataset": "/home/smith/card.yaml"}, None),
    ],
)
def test_only_a_public_name_is_released(table, config, kept) -> None:
    """Catches the name of a private file, also of a link to it or of a card, on a page that is shared."""
    released = RunReport(table=table, config=config).released()
    assert released.table.get("name") == kept
    assert "smith" not in str(released.to_dict())
