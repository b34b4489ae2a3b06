"""The forest plot of a study: each term's estimate and interval, from real and from synthetic records.

Private estimates of a pre-specified regression stand beside them or alone. All differ by place, marker,
colour and line style, and so the plot reads without colour. It is as narrow as a phone.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from dpsynth.report.plots import COLOURS, Dash, Plot, legend_below, styled
from dpsynth.report.words import effect_text, level_text, plain
from dpsynth.studies.study import Estimates

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class _Look(NamedTuple):
    """How the estimates of one side look."""

    marker: str
    colour: str
    fill: str
    dash: Dash


Side = Literal["real", "synthetic", "declared"]
_LOOKS: dict[Side, _Look] = {
    "real": _Look("o", COLOURS[0], COLOURS[0], "-"),
    "synthetic": _Look("D", COLOURS[1], "white", (0, (3, 1.5))),
    "declared": _Look("s", COLOURS[6], COLOURS[6], (0, (7, 1.2, 1.5, 1.2))),
}
#: what stands in a row, from top to bottom: in words, and in few where one is lacking
Sides = Mapping[Side, tuple[str, str]]
_TABLES: Sides = {
    "real": ("real records", "real"),
    "synthetic": ("synthetic records", "synthetic"),
}
_WITH_DECLARED: Sides = {
    "real": ("real records", "real"),
    "declared": ("pre-specified: private estimates", "pre-specified"),
    "synthetic": ("naive: synthetic records (not valid as inference)", "naive"),
}
_ALONE: Sides = {"declared": ("private estimates", "private estimates")}
#: distance of two intervals of one row; 1 is two lines of text
_APART = 0.34
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


@dataclass(frozen=True)
class Forest:
    """The numbers of a forest plot: ``terms`` has effects by term and side, or None, with their intervals."""

    outcome: str
    measure: str
    level: float
    terms: Mapping[str, Mapping[str, Any]]
    study: str | None = None
    note: str = ""

    @classmethod
    def of(cls, each: Any) -> Self:
        """The plot of one of :func:`~dpsynth.evaluation.effects.regressions_of`."""
        return cls(each.outcome, each.measure, each.level, each.terms, each.study, each.note)

    @property
    def sides(self) -> Sides:
        """The sides of a row, from top to bottom."""
        return _TABLES if self.study is None else _WITH_DECLARED

    def effects(self, *sides: str) -> list[Any]:
        """The known effects of some sides."""
        return [effect for of in self.terms.values() for side in sides if (effect := of[side]) is not None]


def plot_effects(each: Any) -> Plot:
    """Draw one regression of :func:`~dpsynth.evaluation.effects.regressions_of`, its estimates in words."""
    forest = Forest.of(each)
    said = ". ".join(
        f"{term}: " + ", ".join(f"{few} {effect_text(of[side])}" for side, (_, few) in forest.sides.items())
        for term, of in forest.terms.items()
    )
    measure = forest.measure
    caption = f"{measure.capitalize()} of each term with its interval, on real and on synthetic records"
    if "declared" in forest.sides:
        caption += " (naive: not valid as inference), and the private estimates"
    return Plot(lambda: draw(forest), f"Forest plot, {measure}. {said}.", caption, internal=each.confidential)


def plot_estimates(estimates: Estimates, level: float, *, internal: bool) -> Plot:
    """Draw the estimates of a pre-specified regression for a page, with intervals of ``level``."""
    terms = {told["term"]: {"declared": SimpleNamespace(**told)} for told in estimates.effects(level)}
    forest = Forest(estimates.outcome, estimates.measure, level, terms)
    said = ". ".join(f"{term}: {effect_text(of['declared'])}" for term, of in terms.items())
    measure = estimates.measure
    return Plot(
        lambda: draw(forest, sides=_ALONE),
        f"Forest plot of private estimates, {measure}. {said}.",
        f"{measure.capitalize()} of each term: private estimates of {estimates.study}",
        internal=internal,
    )


def draw(forest: Forest, *, most: int = 40, sides: Sides | None = None) -> Figure:
    """Draw a forest plot, 4.5 inches wide and as high as the number of terms needs.

    Terms beyond the first ``most`` are counted under the plot. Ratios have a logarithmic axis and a reference
    line at 1, differences a linear one at 0. An interval beyond the axis ends in an arrow. ``sides`` are
    those of a row, by default both tables and the private estimates of a pre-specified regression.
    """
    sides = sides or forest.sides
    with styled():
        figure = _draw(forest, most, sides) if forest.effects(*sides) else _without_estimate(forest)
    for text in figure.findobj(match=lambda artist: hasattr(artist, "set_parse_math")):
        text.set_parse_math(False)  # type: ignore[attr-defined]  # a column may be called "$x$"
    return figure


def _draw(forest: Forest, most: int, sides: Sides) -> Figure:
    from matplotlib.figure import Figure

    terms, ratio = dict([*forest.terms.items()][:most]), forest.measure != "difference"
    labels = [*map(_wrapped, terms)]
    heights = [max(2, len(sides), label.count("\n") + 1) for label in labels]
    # two lines of 8 points a row, three of three sides, and room for the axis and the legend
    legend = 0.18 * (len(sides) - 2)
    figure = Figure(figsize=(_WIDTH, 1.5 + legend + 0.155 * sum(heights)), layout="constrained")
    axis = figure.subplots()
    # rows are as high as their labels; a row's place is its middle
    middles = [sum(heights[:i]) / 2 + height / 4 for i, height in enumerate(heights)]
    # what stands alone needs no dashes
    looks = _LOOKS if len(sides) > 1 else {side: _LOOKS[side]._replace(dash="-") for side in sides}
    # what no term has is said once, in the legend
    told = [side for side in sides if forest.effects(side)]
    low, high = _limits(replace(forest, terms=terms).effects(*sides), ratio)
    if ratio:
        axis.set_xscale("log")
    axis.set_xlim(low, high)
    axis.set_ylim(sum(heights) / 2 + 0.15, -0.15)
    axis.axvline(1.0 if ratio else 0.0, color="black", linewidth=0.9)
    for middle, effects in zip(middles, terms.values(), strict=True):
        for place, side in enumerate(sides):
            if side in told:
                offset = _APART * (place - (len(sides) - 1) / 2)
                _side(axis, middle + offset, effects[side], looks[side], sides[side][1], (low, high))
    axis.set_yticks(middles, labels)
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="y", visible=False)
    if ratio:
        _ratio_ticks(axis, low, high)
    per_cent, more = level_text(forest.level), len(forest.terms) - most
    rest = f"\n({more} further terms are not drawn)" if more > 0 else ""
    axis.set_xlabel(f"{forest.measure} for {forest.outcome}, {per_cent} interval{rest}", fontsize=8.5)
    for side, (name, _) in sides.items():
        look, label = looks[side], name if side in told else f"{name}: no estimate"
        _mark(axis, [], [], look, dash=look.dash, label=label)
    if len(sides) > 1:  # one needs no telling apart
        legend_below(figure, axis, columns=2 if len(sides) == 2 else 1)
    return figure


def _side(axis: Axes, place: float, effect: Any, look: _Look, name: str, limits: tuple[float, float]) -> None:
    low, high = limits
    if effect is None:
        axis.annotate(
            f"{name}: no estimate",
            (0.01, place),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=8,
            color=look.colour,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )
        return
    left, right = (min(max(end, low), high) for end in (effect.lower, effect.upper))
    axis.plot([left, right], [place, place], linewidth=1.6, color=look.colour, linestyle=look.dash)
    for end, beyond, arrow in ((left, effect.lower < low, "<"), (right, effect.upper > high, ">")):
        if beyond:
            axis.plot([end], [place], marker=arrow, color=look.colour, markersize=5, clip_on=False)
    if low <= effect.estimate <= high:
        _mark(axis, [effect.estimate], [place], look)


def _mark(
    axis: Axes, x: list[float], y: list[float], look: _Look, *, dash: Dash = "", label: str | None = None
) -> None:
    (line,) = axis.plot(x, y, color=look.colour, linestyle=dash, linewidth=1.6, label=label)
    line.set(marker=look.marker, markersize=4.5, markerfacecolor=look.fill)


def _limits(effects: Sequence[Any], ratio: bool) -> tuple[float, float]:
    """Ends of the axis: all intervals, but for those that would press the others into a line."""
    scale = math.log if ratio else float
    points = sorted([0.0, *(scale(effect.estimate) for effect in effects)])
    reach = [0.0, *(scale(end) for effect in effects for end in (effect.lower, effect.upper))]
    tenth = len(points) // 10
    inner = (points[tenth], points[-1 - tenth])
    spread = sorted(scale(effect.upper) - scale(effect.lower) for effect in effects) or [0.0]
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
            tick = float(plain(step * 10.0**power))
            free = all(abs(math.log(tick / other)) > _TICK_ROOM * width for other in chosen)
            if low <= tick <= high and free:
                chosen.append(tick)
    if len(chosen) < 3:  # a narrow axis, on which a linear scale has the simpler numbers
        chosen = [float(tick) for tick in MaxNLocator(4).tick_values(low, high) if low <= tick <= high]
    axis.xaxis.set_major_locator(FixedLocator(sorted(chosen)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: plain(value, 10)))
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


def _without_estimate(forest: Forest) -> Figure:
    """Say in words that there is nothing to draw."""
    from matplotlib.figure import Figure

    terms = f"{len(forest.terms):,} term{'s' if len(forest.terms) != 1 else ''}"
    lines = [f"No {forest.measure} for {forest.outcome} could be estimated ({terms})."]
    # the reasons come first in the note of the detail
    lines += re.findall(r"No estimate from .*?\.(?= |$)", forest.note)
    text = "\n".join(textwrap.fill(line, 62) for line in lines)
    figure = Figure(figsize=(_WIDTH, 0.5 + 0.16 * (text.count("\n") + 1)))
    figure.text(0.03, 0.5, text, va="center", fontsize=8.5)
    return figure
