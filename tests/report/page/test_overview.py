"""The first pictures of a page: which columns, which matrices, which attacks, and nothing real to share."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
import report_sources as sources

from dpsynth.attacks.attempt import Attempt
from dpsynth.evaluation.estimates import Estimate
from dpsynth.evaluation.results import Evaluation
from dpsynth.report.blocks import Plots
from dpsynth.report.overview import overview_section
from dpsynth.report.plots import Plot
from dpsynth.report.run_report import RunReport

COLUMNS = ("died", "a", "b", "c", "d")
#: of each column with the outcome, in the synthetic table: the order is not that of the columns
STRENGTHS = {"a": 0.1, "b": -0.9, "c": 0.5, "d": 0.3}


def bars(column: str, table: str) -> list[dict[str, object]]:
    """Two bars of a number, with shares of their own for each table."""
    share = 0.25 if table == "train" else 0.75
    fixed = {"column": column, "table": table, "unit": None, "scale": "linear", "cell": "bin", "label": None}
    fixed |= {"confidential": table == "train"}
    return [
        fixed | {"lower": 0.0, "upper": 1.0, "share": share},
        fixed | {"lower": 1.0, "upper": 2.0, "share": 1 - share},
    ]


def pairs(table: str) -> list[dict[str, object]]:
    def strength(one: str, other: str) -> float:
        if one == other:
            return 1.0
        of = {one, other} - {"died"}
        known = STRENGTHS[of.pop()] if "died" in (one, other) else 0.0
        return abs(known) / (1 if table == "synthetic" else 2)

    return [
        {"table": table, "first": one, "second": other, "value": strength(one, other)}
        | {"confidential": table == "train"}
        for one in COLUMNS
        for other in COLUMNS
    ]


@pytest.fixture
def report() -> RunReport:
    tables = ("synthetic", "train")
    details = {
        "marginal": pd.DataFrame([row for c in COLUMNS for table in tables for row in bars(c, table)]),
        "association": pd.DataFrame([row for table in tables for row in pairs(table)]),
    }
    attempts = (
        Attempt("distance, beyond held-out records", "advantage", Estimate(0.05, 0.0, 0.1), 0.3),
        Attempt("singling out, beyond held-out records", "advantage", Estimate(0.05, 0.0, 0.1)),
        Attempt("audit: counts", "tv", Estimate(0.2, 0.1, 0.3), 0.4, internal=False),
    )
    attempts = (replace(attempts[0], internal=True), replace(attempts[1], internal=True), attempts[2])
    measured = Evaluation((), {"outcome": "died"}, details)
    return RunReport(sources.ledger_of(), sources.DELTA, evaluation=measured, attempts=attempts)


def pictures(report: RunReport) -> tuple[Plot, ...]:
    section = overview_section(report)
    assert section is not None
    (block,) = section.blocks
    assert isinstance(block, Plots) and block.small
    return block.plots


def test_pictures_are_of_the_numbers(report: RunReport) -> None:
    """Columns in the table's own order, a matrix or its difference missing, or an attack without a bound."""
    columns, matrices, attacks = pictures(report)
    assert "died, b, c, d" in columns.alt and columns.internal
    assert columns.caption == "died and the columns that go most with it"
    assert "The largest difference is 0.45" in matrices.caption and matrices.internal
    assert (
        "singling out" not in attacks.alt
        and "distance: 0.050 (0.000 to 0.100) of at most 0.300" in attacks.alt
    )
    axes = columns.figure().axes
    assert [axis.get_title() for axis in axes] == ["died", "b", "c", "d"]
    heights = [patch.get_data()[0].tolist() for patch in axes[0].patches]
    assert heights == [[0.75, 0.25], [0.25, 0.75]]
    shown = [image.get_array().tolist() for axis in matrices.figure().axes for image in axis.images]
    places = {name: k for k, name in enumerate(COLUMNS)}
    assert [matrix[0][places["b"]] for matrix in shown[:3]] == [0.9, 0.45, 0.45]


def test_a_page_to_share_has_no_real_bar(report: RunReport) -> None:
    """A bar, a matrix or an attack of real records on the page that is shared."""
    columns, matrices, attacks = pictures(report.released())
    assert not any(plot.internal for plot in (columns, matrices, attacks))
    assert all("real" not in plot.alt for plot in (columns, matrices)) and "audit: counts" in attacks.alt
    assert [len(axis.patches) for axis in columns.figure().axes] == [1, 1, 1, 1]
    (axis,) = matrices.figure().axes
    assert len(axis.images) == 1


def test_other_bins_are_not_drawn_over_each_other(report: RunReport) -> None:
    """Real bars over synthetic ones of other bins, and a section without any picture."""
    frame = report.measured.details["marginal"].copy()
    frame.loc[frame["table"] == "train", "upper"] *= 1.5
    other = Evaluation((), {"outcome": "died"}, {"marginal": frame})
    (columns, *_) = pictures(replace(report, evaluation=other))
    assert not columns.internal and "real" not in columns.alt
    assert overview_section(RunReport()) is None
