"""The forest plot of a study: each term's estimate and interval, from real and from synthetic records.

The two tables differ by marker, colour and line style, so that the plot reads without colour; it is as narrow
as a phone.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from dpsynth.evaluation.records import shown
from dpsynth.report.details import Effect, EffectRow, Effects, Of
from dpsynth.report.drawing.style import COLOURS, Dash, legend_below, styled
from dpsynth.report.drawing.svg import Plot, to_plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class _Look(NamedTuple):
    """How one table's estimates look; ``offset`` is from the middle of their row."""

    offset: float
    marker: str
    colour: str
    fill: str
    dash: Dash


Side = Literal["real", "synthetic"]
_SIDES: dict[Side, _Look] = {
    "real": _Look(-0.17, "o", COLOURS[0], COLOURS[0], "-"),
    "synthetic": _Look(0.17, "D", COLOURS[1], "white", (0, (3, 1.5))),
}
_WIDTH = 4.5
_LABEL_WIDTH = 22
#: estimates this many times the inner range away from it are drawn as arrows at the edge
_REACH = 3.0
#: no axis of ratios goes beyond a million, up or down
_FAR = math.log(1e6)
#: leading digits of the numbers on an axis of ratios, the ones that are read most easily first
_STEPS = (1.0, 2.0, 5.0, 3.0, 1.5, 7.0, 8.0, 9.0, 1.2, 1.1, 9.5, 1.05, 9.8, 1.02, 9.9, 1.01, 9.95, 1.005)
#: least distance of two numbers on that axis, as a part of its length
_TICK_ROOM = 0.11


def plot_effects(detail: Of[Effects]) -> Plot:
    """Draw a study for a page, with its estimates in words."""
    data = detail.data
    said = "; ".join(
        f"{row['term']}: real {in_words(row['real'])}, synthetic {in_words(row['synthetic'])}"
        for row in data["rows"]
    )
    measure = data["measure"]
    caption = f"{measure.capitalize()} of each term with its interval, on real and on synthetic records"
    return to_plot(lambda: draw(data), f"Forest plot, {measure}. {said}.", caption, internal=detail.internal)


def in_words(effect: Effect | None) -> str:
    """An estimate with its interval, as people read it."""
    if effect is None:
        return "n/a"
    return f"{shown(effect['estimate'])} ({shown(effect['lower'])} to {shown(effect['upper'])})"


def draw(data: Effects, *, most: int = 40) -> Figure:
    """Draw a forest plot.

    The figure is 4.5 inches wide and as high as the number of terms needs; terms beyond the first ``most``
    are counted under the plot. Ratios have a logarithmic axis and a reference line at 1, differences a linear
    one at 0. An interval beyond the axis ends in an arrow.
    """
    with styled():
        if any(row[key] is not None for row in data["rows"] for key in _SIDES):
            figure = _draw(data, most)
        else:
            figure = _without_estimate(data)
    for text in figure.findobj(match=lambda artist: hasattr(artist, "set_parse_math")):
        text.set_parse_math(False)  # type: ignore[attr-defined]  # a column may be called "$x$"
    return figure


def _draw(data: Effects, most: int) -> Figure:
    from matplotlib.figure import Figure

    rows, ratio = data["rows"][:most], data["measure"] != "difference"
    labels = [_wrapped(row["term"]) for row in rows]
    heights = [max(2, label.count("\n") + 1) for label in labels]
    # two lines of 8 points a row, and room for the axis and the legend
    figure = Figure(figsize=(_WIDTH, 1.5 + 0.155 * sum(heights)), layout="constrained")
    axis = figure.subplots()
    # rows are as high as their labels; a row's place is its middle
    middles = [sum(heights[:i]) / 2 + height / 4 for i, height in enumerate(heights)]
    # what no term has is said once, in the legend
    told = [key for key in _SIDES if any(row[key] is not None for row in data["rows"])]
    low, high = _limits(rows, ratio)
    if ratio:
        axis.set_xscale("log")
    axis.set_xlim(low, high)
    axis.set_ylim(sum(heights) / 2 + 0.15, -0.15)
    axis.axvline(1.0 if ratio else 0.0, color="black", linewidth=0.9)
    for middle, row in zip(middles, rows, strict=True):
        for key in told:
            _side(axis, middle, row[key], key, low, high)
    axis.set_yticks(middles, labels)
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="y", visible=False)
    if ratio:
        _ratio_ticks(axis, low, high)
    per_cent, more = f"{100 * data.get('level', 0.95):g} %", len(data["rows"]) - most
    rest = f"\n({more} further terms are not drawn)" if more > 0 else ""
    axis.set_xlabel(f"{data['measure']} for {data['outcome']}, {per_cent} interval{rest}", fontsize=8.5)
    for key, look in _SIDES.items():
        label = f"{key} records" if key in told else f"{key} records: no estimate"
        _mark(axis, [], [], look, dash=look.dash, label=label)
    legend_below(figure, axis, columns=2)
    return figure


def _side(axis: Axes, middle: float, effect: Effect | None, key: Side, low: float, high: float) -> None:
    look = _SIDES[key]
    place = middle + look.offset
    if effect is None:
        axis.annotate(
            f"{key}: no estimate",
            (0.01, place),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=8,
            color=look.colour,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )
        return
    left, right = (min(max(end, low), high) for end in (effect["lower"], effect["upper"]))
    axis.plot([left, right], [place, place], linewidth=1.6, color=look.colour, linestyle=look.dash)
    for end, beyond, arrow in ((left, effect["lower"] < low, "<"), (right, effect["upper"] > high, ">")):
        if beyond:
            axis.plot([end], [place], marker=arrow, color=look.colour, markersize=5, clip_on=False)
    if low <= effect["estimate"] <= high:
        _mark(axis, [effect["estimate"]], [place], look)


def _mark(
    axis: Axes, x: list[float], y: list[float], look: _Look, *, dash: Dash = "", label: str | None = None
) -> None:
    (line,) = axis.plot(x, y, color=look.colour, linestyle=dash, linewidth=1.6, label=label)
    line.set(marker=look.marker, markersize=4.5, markerfacecolor=look.fill)


def _limits(rows: Sequence[EffectRow], ratio: bool) -> tuple[float, float]:
    """Ends of the axis: all intervals, but for those that would press the others into a line."""
    effects = [effect for row in rows for key in _SIDES if (effect := row[key]) is not None]
    scale = math.log if ratio else float
    points = sorted([0.0, *(scale(effect["estimate"]) for effect in effects)])
    reach = [0.0, *(scale(end) for effect in effects for end in (effect["lower"], effect["upper"]))]
    tenth = len(points) // 10
    inner = (points[tenth], points[-1 - tenth])
    spread = sorted(scale(effect["upper"]) - scale(effect["lower"]) for effect in effects) or [0.0]
    # the width of a typical interval counts as well: the estimates may all be alike
    room = _REACH * max(inner[1] - inner[0], spread[len(spread) // 2], 1e-12 if effects else 1.0)
    low, high = max(min(reach), inner[0] - room), min(max(reach), inner[1] + room)
    # an estimate may lie further out than the end of an interval before it is left to an arrow
    seen = [point for point in points if inner[0] - _REACH * room <= point <= inner[1] + _REACH * room]
    low, high = min(low, *seen), max(high, *seen)
    if ratio:
        low, high = max(low, -_FAR), min(high, _FAR)
    # no effect is always in sight
    low, high = min(low, 0.0), max(high, 0.0)
    margin = 0.04 * (high - low) or 0.1
    low, high = low - margin, high + margin
    return (math.exp(low), math.exp(high)) if ratio else (low, high)


def _ratio_ticks(axis: Axes, low: float, high: float) -> None:
    """Mark ratios with plain numbers, the simplest first, wherever there is room beside those chosen."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

    width = math.log(high / low)
    # from 1 outwards, so that no other number takes its place
    powers = sorted(range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1), key=abs)
    chosen: list[float] = []
    for step in _STEPS:
        for power in powers:
            tick = float(f"{step * 10.0**power:.6g}")
            free = all(abs(math.log(tick / other)) > _TICK_ROOM * width for other in chosen)
            if low <= tick <= high and free:
                chosen.append(tick)
    if len(chosen) < 3:  # a narrow axis, on which a linear scale has the simpler numbers
        chosen = [float(tick) for tick in MaxNLocator(4).tick_values(low, high) if low <= tick <= high]
    axis.xaxis.set_major_locator(FixedLocator(sorted(chosen)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.10g}"))
    axis.xaxis.set_minor_locator(NullLocator())


def _wrapped(term: str) -> str:
    """Break a term into short lines, between words if it can be, and after an underscore if not."""
    # an increment and a reference stay in one piece
    text = re.sub(r"\([^)]*\)", lambda found: found[0].replace(" ", "\xa0"), term).replace(" vs ", " vs\xa0")
    name, colon, tail = text.partition(": ")
    if colon and len(tail) <= _LABEL_WIDTH:
        text = f"{name}: " + tail.replace(" ", "\xa0")
    words = [word.replace("_", "_ ") if len(word) > _LABEL_WIDTH else word for word in text.split(" ")]
    return textwrap.fill(" ".join(words), _LABEL_WIDTH, max_lines=3).replace("_ ", "_").replace("\xa0", " ")


def _without_estimate(data: Effects) -> Figure:
    """Say in words that there is nothing to draw."""
    from matplotlib.figure import Figure

    terms = f"{len(data['rows']):,} term{'s' if len(data['rows']) != 1 else ''}"
    lines = [f"No {data['measure']} for {data['outcome']} could be estimated ({terms})."]
    # the reasons come first in the note of the detail
    lines += re.findall(r"No estimate from .*?\.(?= |$)", data.get("note", ""))
    text = "\n".join(textwrap.fill(line, 62) for line in lines)
    figure = Figure(figsize=(_WIDTH, 0.5 + 0.16 * (text.count("\n") + 1)))
    figure.text(0.03, 0.5, text, va="center", fontsize=8.5)
    return figure
