"""The drawings: small, repeatable, harmless whatever columns are called, and true to their numbers."""

from __future__ import annotations

import base64
import math
import warnings
import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import report_sources as sources
from matplotlib.collections import PolyCollection

from dpsynth.checks import Counted
from dpsynth.evaluation.results import Evaluation, Measure
from dpsynth.privacy import Ledger, gaussian_event, non_private_event
from dpsynth.report import plots as style
from dpsynth.report.plots import (
    MOST_NAMES,
    Plot,
    draw_survival,
    plot_costs,
    plot_curves,
    plot_intervals,
    plot_marginals,
    plot_matrix,
    plot_survival,
)
from dpsynth.report.words import bound

PREFIX = "data:image/svg+xml;base64,"


def decoded(plot) -> str:
    assert plot.uri.startswith(PREFIX) and plot.alt and plot.caption
    text = base64.b64decode(plot.uri[len(PREFIX) :]).decode()
    ElementTree.fromstring(text)
    return text


def marginal(table: str = "synthetic", **changes: Any) -> list[dict[str, Any]]:
    data: dict[str, Any] = {
        "column": "age",
        "edges": [0.0, 10.0, 100.0],
        "labels": None,
        "share": [0.25, 0.75],
    }
    data |= {"missing": 0.125, "special": None, "unit": "years", "log": False} | changes
    of = {"column": data["column"], "table": table, "unit": data["unit"]}
    of |= {"scale": "log" if data["log"] else "linear", "confidential": table != "synthetic"}
    ends = [(low, high, None) for low, high in pairwise(data["edges"])]
    cells = [("bin", *end) for end in ends]
    if data["labels"] is not None:
        cells = [("category", None, None, label) for label in data["labels"]]
    shares = [*data["share"]]
    for name in ("missing", "special"):
        if data[name] is not None:
            cells.append((name, None, None, None))
            shares.append(data[name])
    names = ("cell", "lower", "upper", "label", "share")
    return [
        of | dict(zip(names, (*cell, share), strict=True)) for cell, share in zip(cells, shares, strict=True)
    ]


def marginals(*tables: list[dict[str, Any]]) -> Plot:
    rows = [row for table in tables for row in table]
    return plot_marginals(Evaluation((), {}, {"marginal": rows}).details["marginal"], Counted.RECORDS)


def test_a_drawing_is_small_and_comes_out_the_same():
    """Catches dates, random identifiers, outlines of letters, or references to other files."""
    first, again = (marginals(marginal()) for _ in range(2))
    assert (first.uri, first.alt) == (again.uri, again.alt)
    text = decoded(first)
    assert len(text) < 20_000
    assert "<metadata" not in text and "<!--" not in text and ">share by width</text>" in text
    assert "DejaVu" not in text.replace("'DejaVu Sans',sans-serif", "")
    assert "http" not in text.replace("http://www.w3.org", "")


@pytest.mark.parametrize("name", sources.HOSTILE)
def test_any_name_can_be_drawn(name):
    """Catches names that matplotlib reads as formulas, letters its font lacks, and markup in the SVG."""
    changes = {"labels": [name, f"{name} 2"], "column": name, "unit": name}
    text = decoded(marginals(marginal(**changes), marginal("train", **changes)))
    assert "<script" not in text
    matrix = np.array([[1.0, np.nan], [np.nan, 1.0]])
    decoded(plot_matrix(matrix, [name, "b"], what="w", caption="c", internal=False))
    rows = [(name, "synthetic", Measure("g", "m", 0.5, True))]
    decoded(plot_intervals(rows, Counted.RECORDS, what="w", caption="c", reference=0.5, axis_label="x"))


@pytest.mark.parametrize(("categories", "said"), [(20, ""), (21, ". The first 20 of 21 categories")])
def test_categories_beyond_those_drawn_are_said(categories, said):
    """Catches a bar of another category's share, one too many, or categories left out without a word."""
    names = [f"c{k:02d}" for k in range(categories)]
    shares = {"share": [(k + 1) / 1000 for k in range(categories)]}
    plot = marginals(marginal(labels=names, missing=None, **shares))
    assert plot.caption == f"age (years){said}"
    assert [name for name in names if f">{name}<" in decoded(plot)] == names[:20]


def test_words_beside_a_marginal():
    """Catches an alternative text that tells another bin, or a caption without missing values or codes."""
    plot = marginals(marginal(), marginal("train", share=[0.6, 0.4], missing=0.25))
    assert plot.internal
    assert (
        "synthetic records: 10 to 100 (75.0 %)" in plot.alt and "real records: 0 to 10 (60.0 %)" in plot.alt
    )
    assert plot.caption == "age (years). Missing: synthetic records 12.5 %, real records 25.0 %"
    whole = marginals(
        *[marginal(edges=[-0.5, 0.5, 3.5]), marginal("train", edges=[-0.5, 0.5, 3.5], share=[1, 0])]
    )
    assert "synthetic records: 1 to 3 (" in whole.alt and "real records: 0 (" in whole.alt
    coded = marginals(*[marginal(missing=None, special=0.125), marginal("train", missing=None, special=0.0)])
    assert coded.caption == "age (years). Special codes: synthetic records 12.5 %, real records 0.0 %"


@pytest.mark.parametrize(
    "changes",
    [
        {"share": [0.0, 0.0]},
        {"labels": ["only"], "share": [1.0]},
        {"labels": [f"c{i}" for i in range(60)], "share": [1 / 60] * 60},
        {"log": True},
        {"edges": [1e-3, 1.0, 1e6], "log": True},
        {"edges": [5.0, 5.5], "share": [1.0]},
        {"missing": None, "unit": None},
    ],
)
def test_odd_columns_are_drawn(changes):
    """Catches a crash on constant, all-missing, many-valued columns or log scales from 0."""
    decoded(marginals(marginal(**changes)))


def test_uneven_bins_are_drawn_by_width():
    """Catches notches in an even distribution of ages, some of whose bins hold one year and some two."""
    even = style._to_equal_widths(np.array([0.0, 1.0, 2.0, 3.0]))
    assert even.tolist() == [1, 1, 1]
    edges = np.array([0.0, 2.0, 4.0, 5.0, 7.0])
    share = np.diff(edges) / 7
    drawn = share * style._to_equal_widths(edges)
    assert drawn == pytest.approx([2 / 7] * 4)


@pytest.mark.parametrize("size", [1, 2, 11, 31])
def test_heat_maps_of_all_sizes(size):
    """Catches labels or an alternative text that fail for one column, or undefined associations."""
    matrix = np.eye(size)
    matrix[0, -1] = matrix[-1, 0] = np.nan
    names = [f"column {i}" for i in range(size)]
    plot = plot_matrix(matrix, names, what="Association", caption="c", internal=False, signed=True)
    assert ("No pair" in plot.alt) == (size <= 2)
    assert ">column 0<" in decoded(plot) or size > MOST_NAMES


def test_intervals_tell_all_their_numbers():
    """Catches an interval that is left out of the words, and a badge that is lost."""
    rows = [
        ("forest", "synthetic", Measure("g", "auc_forest", 0.7, True, lower=0.6, upper=0.8)),
        ("forest", "train", Measure("g", "auc_real_forest", 0.75, True)),
        ("linear", "synthetic", Measure("g", "auc_linear", None, True)),
    ]
    plot = plot_intervals(rows, Counted.RECORDS, what="AUC", caption="c", reference=0.5, axis_label="AUC")
    assert plot.internal
    assert "forest, synthetic records: 0.7000 (0.6000 to 0.8000). forest, real records: 0.7500." in plot.alt
    assert "linear" not in plot.alt


@pytest.mark.parametrize("entries", [1, 4, 10, 11, 60])
def test_waterfall_shows_every_entry(entries):
    """Catches entries that are left out of a long ledger, or bars that do not reach the total."""
    ledger = sources.ledger_of(entries)
    summary = ledger.summary(sources.DELTA)
    drawn = plot_costs(summary["entries"], sources.DELTA)
    assert len(drawn) == math.ceil(entries / 25)
    texts = [decoded(plot) for plot in drawn]
    words = " ".join(plot.alt for plot in drawn)
    for place, entry in enumerate(ledger.entries, start=1):
        assert f"{place}, {entry.name}: from" in words
        assert any(f">{place}</text>" in text for text in texts)
    assert f"to {bound(summary['epsilon'])}." in words
    assert not any(plot.internal for plot in drawn)


def waterfall(ledger: Ledger) -> tuple[style.Plot, ...]:
    return plot_costs(ledger.summary(sources.DELTA)["entries"], sources.DELTA)


def test_waterfall_without_a_guarantee():
    """Catches a crash or a finite bar where epsilon is infinite, and an empty drawing of an empty ledger."""
    (plot,) = waterfall(sources.bare_ledger())
    assert "∞" in decoded(plot) and "to ∞" in plot.alt
    alone = Ledger()
    alone.post("all of it", non_private_event(), sensitivity="unbounded")
    (plot,) = waterfall(alone)
    assert "from 0 to ∞" in plot.alt
    assert waterfall(Ledger()) == ()


def test_curves_of_a_profile():
    """Catches curves of another profile in the words, and curves where nothing is guaranteed."""
    ledger = Ledger()
    ledger.post("release", gaussian_event(1.0), sensitivity="1")
    drawn = [*plot_curves(ledger.profile(), sources.DELTA).values()]
    assert len(drawn) == 4
    for plot in drawn:
        decoded(plot)
    # total variation of a Gaussian release with mu = 1 is 2 Phi(1/2) - 1
    assert "0.383" in drawn[2].alt
    assert "at most 9.24 % of members" in drawn[0].alt
    assert "epsilon 4.378" in drawn[3].alt
    assert plot_curves(sources.bare_ledger().profile(), sources.DELTA) == {}


def test_curves_at_delta_zero():
    """Catches a crash where epsilon is infinite although there is noise."""
    ledger = Ledger()
    ledger.post("release", gaussian_event(1.0), sensitivity="1")
    assert len(plot_curves(ledger.profile(), 0.0)) == 3


def test_users_settings_do_not_show():
    """Catches a user's matplotlib settings in the drawing, or ours left behind."""
    import matplotlib as mpl

    plain = marginals(marginal()).uri
    with mpl.rc_context({"font.size": 30.0, "svg.fonttype": "path"}):
        assert marginals(marginal()).uri == plain
        assert mpl.rcParams["font.size"] == 30.0


def test_coordinates_are_shortened_and_words_are_not():
    """Catches a number in a label that loses its digits."""

    def draw():
        (axis,) = style.panels()
        return style.finished(axis, xlabel="1.23456789")

    with style.page_style():
        text = style.to_svg(draw())
    assert ">1.23456789</text>" in text


def value_at(line, time: float) -> float:
    """What a step line shows at a time."""
    x, y = line.get_xdata(), line.get_ydata()
    assert line.get_drawstyle() == "steps-post"
    return float(y[np.searchsorted(x, time, side="right") - 1])


def test_dates_over_any_span_have_a_few_ticks() -> None:
    """Catches sixteen warnings of matplotlib for dates of 2019 to 2022, and an axis full of labels."""
    (axis,) = style.panels()
    style.date_ticks(axis.xaxis)
    for days in np.geomspace(0.01, 400 * 365, 150):
        axis.set_xlim(17_897.3, 17_897.3 + days)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ticks = [tick for tick in axis.get_xticks() if tick <= 17_897.3 + days]
        assert 2 <= len(ticks) <= 12, days


def test_the_steps_are_the_curves() -> None:
    """Slanted lines that promise more than is told, steps an interval too early, a last one cut off."""
    (axis,) = draw_survival(sources.CURVE).axes
    lower, upper, curve = axis.lines
    for time, told in ((0, 1.0), (89, 1.0), (90, 0.9), (179, 0.9), (180, 0.81), (365, 0.7)):
        assert value_at(curve, time) == told
    assert [value_at(line, 200) for line in (lower, upper)] == [0.74, 0.86]
    assert axis.get_xlim()[1] > 365 and axis.get_ylim()[0] <= 0 and axis.get_xlabel() == "time (days)"
    (band,) = [part for part in axis.collections if isinstance(part, PolyCollection)]
    corners = band.get_paths()[0].vertices
    at = corners[(corners[:, 0] >= 180) & (corners[:, 0] < 365), 1]
    assert {0.74, 0.86} <= set(at.round(9)) and at.min() >= 0.74 and at.max() <= 0.93


def test_the_picture_in_words() -> None:
    """A picture that a screen reader cannot tell, or one of a paid curve that is marked as internal."""
    plot = plot_survival(sources.CURVE, "ward", internal=False)
    assert "Survival at 180 days: 0.81 (0.74 to 0.86)" in plot.alt and "ward" in plot.alt
    assert plot.wide and not plot.internal and plot_survival(sources.CURVE, "ward", internal=True).internal
