"""The forest plot: what it draws, and that it stays readable and narrow."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from dpsynth.checks import Counted
from dpsynth.report.plots import Forest, Plot, draw_forest, plot_effects, plot_estimates
from dpsynth.studies.study import Estimates, interval_texts


def side(estimate: float, lower: float, upper: float) -> SimpleNamespace:
    return SimpleNamespace(estimate=estimate, lower=lower, upper=upper, p_value=0.5)


def detail(rows, measure="odds ratio", **others):
    terms = {term: {"real": real, "synthetic": made, "declared": None} for term, real, made in rows}
    return Forest("death", measure, 0.95, terms, **others)


ROWS = [
    ("age (years)", side(1.1, 1.05, 1.15), side(1.2, 1.0, 1.4)),
    ("sex: M vs F", side(0.5, 0.25, 1.0), None),
    ("dose", side(2.0, 1.0, 4.0), side(1.5, 0.9, 2.5)),
]


def drawn(data, **options):
    """Return the axis of a figure that has been rendered, as its places are known only then."""
    figure = draw_forest(data, **options)
    FigureCanvasAgg(figure).draw()
    assert figure.get_figwidth() <= 4.5
    return figure, figure.axes[0]


def words(figure) -> list[str]:
    from matplotlib.text import Text

    return [text for artist in figure.findobj(Text) if (text := artist.get_text())]


def test_points_and_intervals_are_the_datas() -> None:
    """Estimates in the wrong row, on the wrong side, or an interval drawn as plus and minus."""
    _, axis = drawn(detail(ROWS))
    lines = [line for line in axis.lines if len(line.get_xdata())]
    spans = {tuple(line.get_xdata()): line for line in lines if len(line.get_xdata()) == 2}
    points = [float(line.get_xdata()[0]) for line in lines if len(line.get_xdata()) == 1]
    assert {(1.05, 1.15), (1.0, 1.4), (0.25, 1.0), (1.0, 4.0), (0.9, 2.5)} <= set(spans)
    assert sorted(points) == [0.5, 1.1, 1.2, 1.5, 2.0]
    first, second = spans[1.05, 1.15], spans[0.25, 1.0]
    assert first.get_ydata()[0] < second.get_ydata()[0]  # the axis runs downwards: the first term on top
    assert axis.yaxis_inverted()
    assert [label.get_text() for label in axis.get_yticklabels()] == ["age (years)", "sex: M vs F", "dose"]


def test_the_two_tables_differ_in_three_ways() -> None:
    """Real and synthetic that differ by colour alone."""
    figure, axis = drawn(detail(ROWS))
    handles, labels = axis.get_legend_handles_labels()
    assert labels == ["real records", "synthetic records"]
    real, made = handles
    for look in ("get_marker", "get_color", "get_linestyle", "get_markerfacecolor"):
        assert getattr(real, look)() != getattr(made, look)(), look
    assert {"real records", "synthetic records"} <= set(words(figure))


@pytest.mark.parametrize(
    ("measure", "scale", "place"), [("hazard ratio", "log", 1.0), ("difference", "linear", 0.0)]
)
def test_scale_and_reference(measure: str, scale: str, place: float) -> None:
    """A ratio on a linear axis, or a reference line where there is an effect."""
    _, axis = drawn(detail(ROWS, measure))
    assert axis.get_xscale() == scale
    assert any(list(line.get_xdata()) == [place, place] for line in axis.lines)
    assert axis.get_xlabel() == f"{measure} for death, 95 % interval"
    low, high = axis.get_xlim()
    assert low < place < high


def test_a_missing_side_is_said() -> None:
    """A term without an estimate that looks forgotten."""
    figure, _ = drawn(detail(ROWS))
    assert "synthetic: no estimate" in words(figure) and "real: no estimate" not in words(figure)
    figure, _ = drawn(detail([(term, real, None) for term, real, _ in ROWS]))
    # what concerns every term is said once
    assert "synthetic records: no estimate" in words(figure)
    assert "synthetic: no estimate" not in words(figure)


@pytest.mark.parametrize("rows", [[(f"age {k}", None, None) for k in range(3)], []])
def test_nothing_to_draw(rows) -> None:
    """An empty axis in place of the reason."""
    note = "No estimate from the real records: no event is observed. A further sentence."
    figure = draw_forest(detail(rows, note=note))
    text = " ".join(words(figure)).replace("\n", " ")
    assert f"No odds ratio for death could be estimated ({len(rows)} terms)." in text
    assert "No estimate from the real records: no event is observed." in text
    assert "further sentence" not in text


def test_many_terms() -> None:
    """Labels that overlap, or terms that vanish without a word."""
    rows = [
        (f"a_rather_long_name_of_a_column_{k} (per 10 mmHg)", side(1.1, 0.9, 1.4), side(1, 0.8, 1.3))
        for k in range(50)
    ]
    figure, axis = drawn(detail(rows))
    labels = axis.get_yticklabels()
    assert len(labels) == 40 and "10 further terms are not drawn" in axis.get_xlabel()
    renderer = figure.canvas.get_renderer()
    boxes = [label.get_window_extent(renderer) for label in labels]
    assert all(above.y0 >= below.y1 - 1 for above, below in pairwise(boxes))
    # the labels leave room for the intervals
    assert axis.get_window_extent(renderer).width > 0.5 * figure.get_figwidth() * figure.dpi
    assert len(drawn(detail(rows), most=3)[1].get_yticklabels()) == 3


def test_text_is_large_enough() -> None:
    """Letters too small to read on a phone."""
    from matplotlib.text import Text

    figure, _ = drawn(detail(ROWS))
    assert min(artist.get_fontsize() for artist in figure.findobj(Text) if artist.get_text()) >= 8


@pytest.mark.parametrize("term", ["x", "x" * 22])
@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (0.998, 1.003),
        (0.8, 1.3),
        (0.3, 4.0),
        (0.01, 90.0),
        (1e-6, 3.0),
        (1e-4, 3e5),
        (1e-200, 1e250),
        (1.4, 1.6),
    ],
)
def test_ticks_of_ratios_have_room(lower: float, upper: float, term: str) -> None:
    """Numbers on the axis that run into one another, or an axis without any."""
    middle = float(np.sqrt(lower) * np.sqrt(upper))
    figure, axis = drawn(detail([(term, side(middle, lower, upper), None)]))
    renderer = figure.canvas.get_renderer()
    low, high = axis.get_xlim()
    shown = [
        label.get_window_extent(renderer)
        for tick, label in zip(axis.get_xticks(), axis.get_xticklabels(), strict=True)
        if low <= tick <= high and label.get_text()
    ]
    assert len(shown) >= 2
    shown.sort(key=lambda box: box.x0)
    assert all(left.x1 + 3 < right.x0 for left, right in pairwise(shown))


def test_a_wide_interval_ends_in_an_arrow() -> None:
    """One interval of a near-separated term that presses all others into a line."""
    rows = [(f"x{k}", side(1.2, 1.0, 1.5), side(1.1, 0.9, 1.4)) for k in range(20)]
    _, axis = drawn(detail([*rows, ("wild", side(3.0, 1e-9, 1e12), side(1e6, 1e4, 1e8))]))
    low, high = axis.get_xlim()
    assert 1e-3 < low < 0.9 and 1.5 < high < 1e3
    markers = [line.get_marker() for line in axis.lines]
    assert markers.count("<") == 1 and markers.count(">") == 2
    assert all(
        low <= place <= high for line in axis.lines for place in np.asarray(line.get_xdata(), float) if place
    )


def test_the_strongest_term_keeps_its_point() -> None:
    """A precise estimate apart from the others, the one that matters most, that is drawn as a mere arrow."""
    rows = [(f"x{k}", side(0.1, 0.0, 0.2), side(0.0, -0.2, 0.2)) for k in range(20)]
    _, axis = drawn(detail([*rows, ("strong", side(1.5, 1.4, 1.6), side(1.4, 1.3, 1.5))], "difference"))
    assert axis.get_xlim()[1] > 1.5
    assert 1.5 in [line.get_xdata()[0] for line in axis.lines if len(line.get_xdata()) == 1]


@pytest.mark.parametrize("value", [0.0, 5.0])
def test_intervals_without_length(value: float) -> None:
    """An axis from a number to itself, of which matplotlib warns."""
    drawn(detail([("x", side(value, value, value), None)], "difference"))
    drawn(detail([("x", side(np.exp(value), np.exp(value), np.exp(value)), None)]))


def test_names_are_no_formulas():
    """Would catch a column's name read as mathematics, which fails where it is none."""
    effects = {"real": side(1.4, 1.2, 1.6), "synthetic": side(1.4, 1.2, 1.6)}
    figure = draw_forest(Forest(r"$\bar{", "odds ratio", 0.95, {r"$\foo$": effects}))
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg")
    assert buffer.getvalue()


def declared(places=range(4)):
    """A declared study of three sides, with intervals of their own lengths."""
    data = detail([(f"x{k}", side(2.0, 1.0, 4.0), side(1.5, 1.2, 1.9)) for k in places], study="mortality")
    private = side(1.8, 0.7, 4.6)
    return replace(data, terms={term: of | {"declared": private} for term, of in data.terms.items()})


def test_three_sides_differ_in_more_than_colour() -> None:
    """A naive interval that is taken for the declared one, on paper or by a colour-blind reader."""
    figure, axis = drawn(declared())
    handles, labels = axis.get_legend_handles_labels()
    assert labels == [
        "real records",
        "pre-specified: private estimates",
        "naive: synthetic records (not valid as inference)",
    ]
    for look in ("get_marker", "get_color", "get_linestyle"):
        told = [getattr(handle, look)() for handle in handles]
        if look != "get_linestyle":
            assert len(set(told)) == 3, look
    dashes = {str(handle._dash_pattern) for handle in handles}
    assert len(dashes) == 3
    # what is drawn in colour keeps apart in grey
    from matplotlib.colors import to_rgb

    grey = sorted(float(np.dot(to_rgb(h.get_color()), (0.299, 0.587, 0.114))) for h in handles)
    assert grey[1] - grey[0] > 0.2
    renderer = figure.canvas.get_renderer()
    (legend,) = figure.legends
    box = legend.get_window_extent(renderer)
    assert box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y0 >= 0
    assert not box.overlaps(axis.xaxis.label.get_window_extent(renderer))


def test_rows_of_three_sides_keep_apart() -> None:
    """Intervals of two terms that stand as near as those of one."""
    _, axis = drawn(declared())
    spans = [line for line in axis.lines if len(line.get_xdata()) == 2 and line.get_xdata()[0] > 0]
    heights = sorted(
        {float(line.get_ydata()[0]) for line in spans if line.get_xdata()[0] != line.get_xdata()[1]}
    )
    assert len(heights) == 12
    gaps = np.diff(heights)
    assert min(gaps[2::3]) > 2 * max(gaps[0::3]) and gaps[0::3] == pytest.approx(gaps[1::3])
    first = [line.get_xdata()[0] for line in spans if float(line.get_ydata()[0]) == heights[1]]
    assert first == [0.7]  # the declared interval stands between the two


def test_a_term_without_a_private_estimate_is_said() -> None:
    """A term of the regression that the estimates do not hold, passed over in silence."""
    data = declared()
    lacking = {"x0": data.terms["x0"] | {"declared": None}, "x1": data.terms["x1"] | {"synthetic": None}}
    data = replace(data, terms=data.terms | lacking)
    told = words(drawn(data)[0])
    assert "pre-specified: no estimate" in told and "naive: no estimate" in told


def svg(plot: Plot) -> str:
    return base64.b64decode(plot.uri.partition(",")[2]).decode()


def test_private_estimates_alone() -> None:
    """A release figure that speaks of other sides, or without its numbers in words."""
    terms = ("age", "$x$ <b>", "sex: M vs F")
    told = Estimates(
        "ward <3>",
        "cox",
        "cox: (t, d) ~ x",
        "d",
        terms,
        np.array([0.1, -0.4, 2.0]),
        np.diag([0.01, 0.1, 1]),
        1.3,
    )
    plot = plot_estimates(told, 0.95, internal=False)
    assert not plot.internal and plot.wide and plot.caption.endswith("private estimates of ward <3>")
    for row in told.effects():
        ends = interval_texts(row["estimate"], row["lower"], row["upper"])
        assert f"{row['term']}: {ends[0]} ({ends[1]} to {ends[2]})" in plot.alt
    assert "95 % interval" in svg(plot) and "hazard ratio for d" in svg(plot)
    for absent in ("naive", "real", "synthetic", "records", "<b>"):
        assert absent not in svg(plot), absent
    assert "real" not in plot.alt and "synthetic" not in plot.alt
    assert plot_estimates(told, 0.95, internal=True).internal


def test_three_sides_in_words() -> None:
    """A figure whose sides a screen reader does not tell apart."""
    plot = plot_effects(SimpleNamespace(**vars(declared()), confidential=True), Counted.RECORDS)
    expected = "x0: real 2.00 (1.00 to 4.00), pre-specified 1.80 (0.70 to 4.60), naive 1.50 (1.20"
    assert expected in plot.alt and "naive: not valid as inference" in plot.caption and plot.internal
