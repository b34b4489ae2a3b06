"""Points with intervals: what attacks reached, scores, and each term of a study on several sides.

Sides of a row differ by place, marker, colour and line style, and so a plot reads without colour. All are as
narrow as a phone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill, wrap
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpsynth.attacks.attempt import Attempt
from dpsynth.checks import Counted
from dpsynth.evaluation.results import Measure
from dpsynth.report.figure import (
    COLOURS,
    Dash,
    Plot,
    clipped_text,
    finished,
    names_of,
    panels,
    plain_text,
    plain_ticks,
    styled,
)
from dpsynth.report.words import attempt_in_words, effect_text, level_text, plain, shown, shown_with_interval
from dpsynth.studies.study import Estimates

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class _Look(NamedTuple):
    """How the numbers of one side look."""

    marker: str
    colour: str
    fill: str
    dash: Dash


_LOOKS = {
    "real": _Look("o", COLOURS[0], COLOURS[0], "-"),
    "synthetic": _Look("D", COLOURS[1], "white", (0, (3, 1.5))),
    "declared": _Look("s", COLOURS[6], COLOURS[6], (0, (7, 1.2, 1.5, 1.2))),
    "attack": _Look("o", "black", "black", "-"),
    "baseline": _Look("D", COLOURS[1], "white", "none"),
}


def _point(
    axis: Axes, row: float, look: _Look, value: float | None, *ends: float, label: str | None = None
) -> None:
    """Draw a number in a row, if it is in sight, with its interval if it has ends."""
    if ends:
        axis.plot(ends, [row, row], color=look.colour, linestyle=look.dash)
    points = ([], []) if value is None else ([value], [row])
    (mark,) = axis.plot(*points, color=look.colour, linestyle=look.dash, label=label)
    mark.set(marker=look.marker, markersize=5, markerfacecolor=look.fill)


def plot_attempts(attempts: Sequence[Attempt], what: str) -> Plot:
    """Draw attempts of one measure: a dot with its interval, the control, and the bound as a bar's end.

    ``what`` names the measure. Attempts without a bound have no bar.
    """

    def draw() -> Figure:
        names = ["\n".join(wrap(attempt.attack, 26, max_lines=3, placeholder=" …")) for attempt in attempts]
        lines = max(name.count("\n") + 1 for name in names)
        (axis,) = panels(height=1.0 + (0.16 + 0.14 * lines) * len(attempts))
        for place, attempt in enumerate(attempts):
            found, control, proved = attempt.found, attempt.control, attempt.proved
            if proved is not None:
                label = "proved: no attack passes its end"
                axis.barh(place, proved, height=0.62, color=COLOURS[0], alpha=0.18, linewidth=0, label=label)
                axis.plot([proved, proved], [place - 0.31, place + 0.31], color=COLOURS[0])
            _point(axis, place, _LOOKS["attack"], found.value, found.lower, found.upper, label="reached")
            if control is not None:
                _point(axis, place, _LOOKS["baseline"], control.value, label="baseline attack")
        left = min(0.0, *(attempt.found.lower for attempt in attempts))
        return finished(axis, rows=names, legend=1, fewest=1, xlabel=what.lower(), xlim=(left, None))

    said = ". ".join(attempt_in_words(attempt) for attempt in attempts)
    caption = f"{what}: what attacks reached, with intervals, and what is proved"
    return Plot(draw, f"{what}. {said}.", caption, any(a.internal for a in attempts))


def plot_intervals(
    measures: Sequence[tuple[str, str, Measure]],
    counted: Counted,
    *,
    what: str,
    caption: str,
    reference: float,
    axis_label: str,
) -> Plot:
    """Draw measures as dots with their intervals, beside a vertical line at ``reference``.

    ``measures`` are (label, table, measure): those of one label share a row, and the table, "synthetic" or
    "train", gives the look. Measures without a value are left out.
    """
    known = [(label, table, m) for label, table, m in measures if m.value is not None]
    labels = list(dict.fromkeys(label for label, _, _ in known))
    tables = list(dict.fromkeys(table for _, table, _ in known))
    paired, names = len(tables) > 1, names_of(counted)
    said = [
        label + (f", {names[table]}: " if paired else " ") + shown_with_interval(m)
        for label, table, m in known
    ]

    def draw() -> Figure:
        (axis,) = panels(height=0.75 + (0.36 if paired else 0.28) * max(len(labels), 1))
        axis.axvline(reference, color="black", linewidth=1, linestyle=":")
        for label, table, m in known:
            place = labels.index(label) + ((tables.index(table) - 0.5) * 0.36 if paired else 0.0)
            ends = () if m.lower is None or m.upper is None else (m.lower, m.upper)
            look = _LOOKS["real" if table == "train" else "synthetic"]
            _point(axis, place, look, m.value, *ends, label=f"trained on {names[table]}")
        rows = [clipped_text(label, 26) for label in labels]
        return finished(axis, rows=rows, legend=1, xlabel=axis_label)

    alt = f"{what}. {'. '.join(said)}. The line stands at {shown(reference)}."
    return Plot(draw, alt, caption, any(m.internal for _, _, m in known))


# ------------------------------------------------------------------------------------------------
# The forest plot of a study: real and synthetic records, and private estimates beside them or alone.

#: what stands in a row, from top to bottom: in words, with the table's noun, and in few where one is lacking
Sides = Mapping[str, tuple[str, str]]
_TABLES: Sides = {
    "real": ("real {records}", "real"),
    "synthetic": ("synthetic {records}", "synthetic"),
}
_WITH_DECLARED: Sides = {
    "real": ("real {records}", "real"),
    "declared": ("pre-specified: private estimates", "pre-specified"),
    "synthetic": ("naive: synthetic {records} (not valid as inference)", "naive"),
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
#: least distance of two numbers on that axis, and the width of one of their signs, as parts of its length
_TICK_ROOM, _SIGN_WIDTH = 0.11, 0.026


@dataclass(frozen=True)
class Forest:
    """The numbers of a forest plot: ``terms`` has effects by term and side, or None, with their intervals."""

    outcome: str
    measure: str
    level: float
    terms: Mapping[str, Mapping[str, Any]]
    study: str | None = None
    note: str = ""
    counted: Counted = Counted.RECORDS

    @property
    def sides(self) -> Sides:
        """The sides of a row, from top to bottom."""
        return _TABLES if self.study is None else _WITH_DECLARED


def plot_effects(each: Any, counted: Counted) -> Plot:
    """Draw one regression of :func:`~dpsynth.evaluation.effects.regressions_of`, its estimates in words."""
    forest = Forest(each.outcome, each.measure, each.level, each.terms, each.study, each.note, counted)
    said = ". ".join(
        f"{term}: " + ", ".join(f"{few} {effect_text(of[side])}" for side, (_, few) in forest.sides.items())
        for term, of in forest.terms.items()
    )
    caption = f"{forest.measure.capitalize()} of each term with its interval"
    caption += f", on real and on synthetic {counted}"
    if "declared" in forest.sides:
        caption += " (naive: not valid as inference), and the private estimates"
    alt = f"Forest plot, {forest.measure}. {said}."
    return Plot(lambda: draw_forest(forest), alt, caption, each.confidential)


def plot_estimates(estimates: Estimates, level: float, *, internal: bool) -> Plot:
    """Draw the estimates of a pre-specified regression for a page, with intervals of ``level``."""
    terms = {told["term"]: {"declared": SimpleNamespace(**told)} for told in estimates.effects(level)}
    forest = Forest(estimates.outcome, estimates.measure, level, terms)
    said = ". ".join(f"{term}: {effect_text(of['declared'])}" for term, of in terms.items())
    alt = f"Forest plot of private estimates, {forest.measure}. {said}."
    caption = f"{forest.measure.capitalize()} of each term: private estimates of {estimates.study}"
    return Plot(lambda: draw_forest(forest, sides=_ALONE), alt, caption, internal)


def draw_forest(forest: Forest, *, most: int = 40, sides: Sides | None = None) -> Figure:
    """Draw a forest plot, 4.5 inches wide and as high as the number of terms needs.

    Terms beyond the first ``most`` are counted under the plot. Ratios have a logarithmic axis and a reference
    line at 1, differences a linear one at 0. An interval beyond the axis ends in an arrow. ``sides`` are
    those of a row, by default both tables and the private estimates of a pre-specified regression.
    """
    sides = sides or forest.sides
    # what no term has is said once, in the legend
    told = [side for side in sides if any(of[side] is not None for of in forest.terms.values())]
    with styled():
        return plain_text(_forest(forest, most, sides, told) if told else _without_estimate(forest))


def _forest(forest: Forest, most: int, sides: Sides, told: Sequence[str]) -> Figure:
    terms, ratio = dict([*forest.terms.items()][:most]), forest.measure != "difference"
    labels = [*map(_wrapped, terms)]
    # two lines of 8 points a row, three of three sides, and room for the axis and the legend
    heights = np.array([max(2, len(sides), label.count("\n") + 1) for label in labels])
    # rows are as high as their labels; a row's place is its middle
    middles = (np.cumsum(heights) - heights / 2) / 2
    (axis,) = panels(width=_WIDTH, height=1.5 + 0.18 * (len(sides) - 2) + 0.155 * heights.sum())
    limits = _limits([of[side] for of in terms.values() for side in sides if of[side] is not None], ratio)
    axis.set(xscale="log" if ratio else "linear", xlim=limits, ylim=(heights.sum() / 2 + 0.15, -0.15))
    axis.axvline(1.0 if ratio else 0.0, color="black", linewidth=0.9)
    for place, (side, (words, few)) in enumerate(sides.items()):
        name = forest.counted.fill(words)
        # what stands alone needs no dashes
        look = _LOOKS[side] if len(sides) > 1 else _LOOKS[side]._replace(dash="-")
        for middle, of in zip(middles, terms.values(), strict=True):
            if side in told:
                offset = _APART * (place - (len(sides) - 1) / 2)
                _effect(axis, middle + offset, of[side], look, f"{few}: no estimate", limits)
        _point(axis, 0.0, look, None, label=name if side in told else f"{name}: no estimate")
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="y", visible=False)
    per_cent, more = level_text(forest.level), len(forest.terms) - most
    rest = f"\n({more} further terms are not drawn)" if more > 0 else ""
    axis.set_xlabel(f"{forest.measure} for {forest.outcome}, {per_cent} interval{rest}", fontsize=8.5)
    # one side needs no telling apart
    figure = finished(axis, legend=2 if len(sides) == 2 else 1, yticks=middles, yticklabels=labels)
    if ratio:
        axis.set_xticks(_ratio_ticks(*limits))
        plain_ticks(axis.xaxis, 10)
    return figure


def _effect(
    axis: Axes, place: float, effect: Any, look: _Look, lacking: str, limits: tuple[float, float]
) -> None:
    """Draw an estimate as far as it is in sight, or say that there is none."""
    if effect is None:
        axis.text(
            0.01,
            place,
            lacking,
            transform=axis.get_yaxis_transform(),
            va="center",
            fontsize=8,
            color=look.colour,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )
        return
    low, high = limits
    left, right = np.clip([effect.lower, effect.upper], low, high)
    _point(axis, place, look, effect.estimate if low <= effect.estimate <= high else None, left, right)
    for end, beyond, arrow in ((left, effect.lower < low, "<"), (right, effect.upper > high, ">")):
        if beyond:
            axis.plot([end], [place], marker=arrow, color=look.colour, markersize=5, clip_on=False)


def _limits(effects: Sequence[Any], ratio: bool) -> tuple[float, float]:
    """Ends of the axis: all intervals, but for those that would press the others into a line."""
    found = np.array([(effect.estimate, effect.lower, effect.upper) for effect in effects]).reshape(-1, 3)
    found = np.log(found) if ratio else found
    # no effect is always in sight
    points = np.sort(np.r_[0.0, found[:, 0]])
    tenth = len(points) // 10
    first, last = points[tenth], points[-1 - tenth]
    # the width of a typical interval counts as well: the estimates may all be alike
    widths = np.sort(found[:, 2] - found[:, 1])
    room = _REACH * max(last - first, widths[len(widths) // 2] if effects else 1.0, 1e-12)
    ends = np.clip(np.r_[0.0, found[:, 1:].ravel()], first - room, last + room)
    # an estimate may lie further out than the end of an interval before it is left to an arrow
    seen = points[(first - _REACH * room <= points) & (points <= last + _REACH * room)]
    low, high = min(*ends, *seen, 0.0), max(*ends, *seen, 0.0)
    if ratio:
        low, high = max(low, -_FAR), min(high, _FAR)
    margin = 0.04 * (high - low) or 0.1
    low, high = float(low - margin), float(high + margin)
    return (math.exp(low), math.exp(high)) if ratio else (low, high)


def _ratio_ticks(low: float, high: float) -> list[float]:
    """Return ratios to mark, the simplest first, wherever there is room beside those chosen."""
    from matplotlib.ticker import MaxNLocator

    # from 1 outwards, so that no other number takes its place
    powers = sorted(range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1), key=abs)
    chosen: list[float] = []
    for tick in (float(plain(step * 10.0**power)) for step in _STEPS for power in powers):
        if low <= tick <= high and all(_apart(tick, other, low, high) for other in chosen):
            chosen.append(tick)
    if len(chosen) < 3:  # a narrow axis, on which a linear scale has the simpler numbers
        chosen = [float(tick) for tick in MaxNLocator(4).tick_values(low, high) if low <= tick <= high]
    return sorted(chosen)


def _apart(first: float, second: float, low: float, high: float) -> bool:
    """Whether the numbers of two ticks have room beside each other: half of each, and a sign between them."""
    signs = (len(plain(first)) + len(plain(second))) / 2 + 1
    return abs(math.log(first / second)) > max(_TICK_ROOM, _SIGN_WIDTH * signs) * math.log(high / low)


def _wrapped(term: str) -> str:
    """Break a term into short lines, between words if it can be, and after an underscore if not."""
    # an increment and a reference stay in one piece
    text = re.sub(r"\([^)]*\)", lambda found: found[0].replace(" ", "\xa0"), term).replace(" vs ", " vs\xa0")
    name, colon, tail = text.partition(": ")
    if colon and len(tail) <= _LABEL_WIDTH:
        text = f"{name}: " + tail.replace(" ", "\xa0")
    words = [word.replace("_", "_ ") if len(word) > _LABEL_WIDTH else word for word in text.split(" ")]
    return fill(" ".join(words), _LABEL_WIDTH, max_lines=3).replace("_ ", "_").replace("\xa0", " ")


def _without_estimate(forest: Forest) -> Figure:
    """Say in words that there is nothing to draw."""
    from matplotlib.figure import Figure

    terms = f"{len(forest.terms):,} term{'s' if len(forest.terms) != 1 else ''}"
    lines = [f"No {forest.measure} for {forest.outcome} could be estimated ({terms})."]
    # the reasons come first in the note of the detail
    lines += re.findall(r"No estimate from .*?\.(?= |$)", forest.note)
    text = "\n".join(fill(line, 62) for line in lines)
    figure = Figure(figsize=(_WIDTH, 0.5 + 0.16 * (text.count("\n") + 1)))
    figure.text(0.03, 0.5, text, va="center", fontsize=8.5)
    return figure
