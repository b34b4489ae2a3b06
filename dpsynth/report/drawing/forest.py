"""The forest plot of a study: each term's estimate and interval, from real and from synthetic records.

Drawn from a detail of kind ``"effects"`` (:mod:`dpsynth.evaluation.replication.evaluator`). The two tables
differ by marker, colour and line style, so that the plot reads without colour; it is as narrow as a phone.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpsynth.errors import InputError
from dpsynth.report.drawing.style import COLOURS, legend_below, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: key of a row -> offset of its line, keywords of its marker, keywords of its interval
_SIDES: dict[str, tuple[float, dict[str, Any], dict[str, Any]]] = {
    "real": (
        -0.17,
        {"marker": "o", "color": COLOURS[0], "markerfacecolor": COLOURS[0]},
        {"color": COLOURS[0], "linestyle": "-"},
    ),
    "synthetic": (
        0.17,
        {"marker": "D", "color": COLOURS[1], "markerfacecolor": "white"},
        {"color": COLOURS[1], "linestyle": (0, (3, 1.5))},
    ),
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


def forest(data: Mapping[str, Any], *, most: int = 40) -> Figure:
    """Draw a forest plot.

    Parameters
    ----------
    data : mapping
        ``data`` of a detail of kind ``"effects"``.
    most : int
        Terms drawn; further ones are counted under the plot.

    Returns
    -------
    matplotlib.figure.Figure
        4.5 inches wide, as high as the number of terms needs. Ratios have a logarithmic axis and a reference
        line at 1, differences a linear one at 0. An interval beyond the axis ends in an arrow.

    Raises
    ------
    InputError
        If ``data`` is not of this kind, or ``most`` is less than 1.

    Examples
    --------
    >>> side = {"estimate": 1.4, "lower": 1.2, "upper": 1.6}
    >>> rows = [{"term": "sex: M vs F", "real": side, "synthetic": None}]
    >>> figure = forest({"measure": "odds ratio", "outcome": "death", "level": 0.95, "rows": rows})
    >>> float(figure.get_figwidth())
    4.5
    """
    try:
        rows, measure, outcome = list(data["rows"]), str(data["measure"]), str(data["outcome"])
    except KeyError as problem:
        raise InputError(f"this is not the data of an effects detail: it lacks {problem}") from None
    if most < 1:
        raise InputError(f"most must be at least 1, got {most!r}")
    level = float(data.get("level", 0.95))
    with styled():
        if any(row.get(key) is not None for row in rows for key in _SIDES):
            figure = _draw(rows, measure, outcome, level, most)
        else:
            figure = _without_estimate(data, len(rows), measure, outcome)
    for text in figure.findobj(match=lambda artist: hasattr(artist, "set_parse_math")):
        text.set_parse_math(False)  # type: ignore[attr-defined]  # a column may be called "$x$"
    return figure


def _draw(rows: Sequence[Mapping[str, Any]], measure: str, outcome: str, level: float, most: int) -> Figure:
    from matplotlib.figure import Figure

    shown, ratio = rows[:most], measure != "difference"
    labels = [_wrapped(str(row["term"])) for row in shown]
    heights = [max(2, label.count("\n") + 1) for label in labels]
    # two lines of 8 points a row, and room for the axis and the legend
    figure = Figure(figsize=(_WIDTH, 1.5 + 0.155 * sum(heights)), layout="constrained")
    axis = figure.subplots()
    # rows are as high as their labels; a row's place is its middle
    middles = [sum(heights[:i]) / 2 + height / 4 for i, height in enumerate(heights)]
    # what no term has is said once, in the legend
    told = [key for key in _SIDES if any(row.get(key) is not None for row in rows)]
    low, high = _limits(shown, ratio)
    if ratio:
        axis.set_xscale("log")
    axis.set_xlim(low, high)
    axis.set_ylim(sum(heights) / 2 + 0.15, -0.15)
    axis.axvline(1.0 if ratio else 0.0, color="black", linewidth=0.9)
    for middle, row in zip(middles, shown, strict=True):
        for key in _SIDES:
            if key in told:
                _side(axis, middle, row.get(key), key, low, high)
    axis.set_yticks(middles, labels)
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="y", visible=False)
    if ratio:
        _ratio_ticks(axis, low, high)
    per_cent = f"{100 * level:g} %"
    rest = f"\n({len(rows) - most} further terms are not drawn)" if len(rows) > most else ""
    axis.set_xlabel(f"{measure} for {outcome}, {per_cent} interval{rest}", fontsize=8.5)
    for key, (_, marker, interval) in _SIDES.items():
        label = f"{key} records" if key in told else f"{key} records: no estimate"
        axis.plot([], [], label=label, markersize=4.5, linewidth=1.6, **{**interval, **marker})
    legend_below(figure, axis, columns=2)
    return figure


def _side(
    axis: Axes, middle: float, side: Mapping[str, float] | None, key: str, low: float, high: float
) -> None:
    offset, marker, interval = _SIDES[key]
    place = middle + offset
    if side is None:
        axis.annotate(
            f"{key}: no estimate",
            (0.01, place),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=8,
            color=interval["color"],
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )
        return
    ends = [min(max(side[name], low), high) for name in ("lower", "upper")]
    axis.plot(ends, [place, place], linewidth=1.6, **interval)
    for end, beyond, arrow in ((ends[0], side["lower"] < low, "<"), (ends[1], side["upper"] > high, ">")):
        if beyond:
            axis.plot([end], [place], marker=arrow, color=interval["color"], markersize=5, clip_on=False)
    if low <= side["estimate"] <= high:
        axis.plot([side["estimate"]], [place], markersize=4.5, linestyle="", **marker)


def _limits(rows: Sequence[Mapping[str, Any]], ratio: bool) -> tuple[float, float]:
    """Ends of the axis: all intervals, but for those that would press the others into a line."""
    sides = [row[key] for row in rows for key in _SIDES if row.get(key) is not None]
    scale = math.log if ratio else float
    points = sorted([0.0, *(scale(side["estimate"]) for side in sides)])
    reach = [0.0, *(scale(side[name]) for side in sides for name in ("lower", "upper"))]
    tenth = len(points) // 10
    inner = (points[tenth], points[-1 - tenth])
    spread = sorted(scale(side["upper"]) - scale(side["lower"]) for side in sides) or [0.0]
    # the width of a typical interval counts as well: the estimates may all be alike
    room = _REACH * max(inner[1] - inner[0], spread[len(spread) // 2], 1e-12 if sides else 1.0)
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


def _without_estimate(data: Mapping[str, Any], count: int, measure: str, outcome: str) -> Figure:
    """Say in words that there is nothing to draw."""
    from matplotlib.figure import Figure

    lines = [f"No {measure} for {outcome} could be estimated ({count:,} term{'s' if count != 1 else ''})."]
    # the reasons come first in the note of the detail
    lines += re.findall(r"No estimate from .*?\.(?= |$)", str(data.get("note", "")))
    text = "\n".join(textwrap.fill(line, 62) for line in lines)
    figure = Figure(figsize=(_WIDTH, 0.5 + 0.16 * (text.count("\n") + 1)))
    figure.text(0.03, 0.5, text, va="center", fontsize=8.5)
    return figure
