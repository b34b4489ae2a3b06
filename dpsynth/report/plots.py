"""The plots of a report: how each looks, its kinds (curves, bars, points, paths, matrices), and all by name.

Curves of a guarantee are public: they can be recomputed from ``ledger.json``. Any other plot is internal if
one of its numbers is. A panel is as wide as a phone. Its column's name stands in the caption, which wraps.

On a page, an SVG inside ``<img>`` with a ``data:`` address runs no script and loads nothing. Its text stays
text: a third of the size of outlines, and any alphabet that the reader's machine has. It comes out the same
each time.
"""

from __future__ import annotations

import base64
import io
import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from textwrap import fill, wrap
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from dpsynth.attacks.attempt import Attempt
from dpsynth.checks import Counted
from dpsynth.evaluation.effects import regressions_of
from dpsynth.evaluation.results import Evaluation, Measure, any_confidential, frame_rows, plain_cells
from dpsynth.files.storage import replaced
from dpsynth.privacy.profile import Profile
from dpsynth.privacy.stages import Summary
from dpsynth.report import words
from dpsynth.report.words import decimals, effect_text, level_text, plain, round_up, shown
from dpsynth.studies.estimation import SurvivalCurve
from dpsynth.studies.study import Estimates
from dpsynth.table.kinds import kind_of_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike


# ------------------------------------------------------------------------------------------------
# The look of every figure, and figures as SVG.

#: dash of a line: a name, or an offset with lengths of dashes and gaps
Dash = str | tuple[int, tuple[float, ...]]


#: colour and dash of a line, as keywords of ``Axes.plot``
Look = Mapping[str, Any]

#: Colours that people with any colour vision can tell apart (Okabe and Ito 2008), each with its own dash.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES: tuple[Dash, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (7, 2)), (0, (1, 1)))
#: of each table, everywhere on a page
TABLES: dict[str, Look] = {
    "synthetic": {"color": COLOURS[1], "linestyle": "--"},
    "train": {"color": COLOURS[0], "linestyle": "-"},
    "test": {"color": COLOURS[2], "linestyle": "-."},
}


def names_of(counted: Counted) -> dict[str, str]:
    """The same in words."""
    return {"synthetic": f"synthetic {counted}", "train": f"real {counted}", "test": "real, held out"}


_SETTINGS: dict[str, Any] = {
    "axes.grid": True,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9,
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "svg.fonttype": "path",
    "svg.hashsalt": "dpsynth",
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}


def line(number: int) -> Look:
    """Colour and dash of the curve with this number, counted from 0, as keywords of ``Axes.plot``."""
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": DASHES[number % len(DASHES)]}


def panels(
    columns: int = 1, *, rows: int = 1, width: float = 3.4, height: float = 2.8, sharex: bool = True
) -> list[Axes]:
    """Return the axes of a new figure, side by side, or in rows that share their horizontal axis.

    ``width`` is inches of one panel, ``height`` of all rows. ``sharex``: whether rows share it.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height), layout="constrained")
    return list(figure.subplots(rows, columns, squeeze=False, sharex="col" if sharex else False).flat)


def finished(
    axis: Axes, *, rows: Sequence[str] = (), legend: int = 0, fewest: int = 2, **settings: Any
) -> Figure:
    """Return the figure of a panel once all is drawn, with its axes and its legend.

    Parameters
    ----------
    axis : Axes
        A panel of :func:`panels`. Logarithmic axes get plain numbers.
    rows : sequence of str
        Labels of rows from top to bottom, the first at height 0.
    legend : int
        Columns of the legend under all panels, where it covers nothing. Each label is in it once.
    fewest : int
        Labels that are worth a legend.
    **settings
        Keywords of ``Axes.set``.
    """
    from matplotlib.figure import Figure

    figure = axis.get_figure(root=True)
    assert isinstance(figure, Figure)
    if rows:
        axis.set(yticks=range(len(rows)), yticklabels=rows, ylim=(len(rows) - 0.5, -0.5))
        axis.grid(axis="y", visible=False)
    axis.set(**settings)
    for direction in (axis.xaxis, axis.yaxis):
        if direction.get_scale() != "linear":
            plain_ticks(direction)
    handles, labels = axis.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    if legend and len(once) >= fewest:
        figure.legend(once.values(), once.keys(), loc="outside lower center", ncols=legend)
    return figure


def plain_ticks(axis: Axis, figures: int = 6) -> None:
    """Label an axis with plain numbers: the labels of a logarithmic one are formulas."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value, figures)))
    axis.set_minor_locator(NullLocator())


def date_ticks(axis: Axis) -> None:
    """Label an axis of days since 1970-01-01 at a few round dates."""
    from matplotlib.dates import HOURLY, MINUTELY, MONTHLY, SECONDLY, AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(maxticks=6)
    # It counts months of up to five years, and knows no steps by which six ticks would be enough.
    for unit, whole in ((MONTHLY, 12), (HOURLY, 24), (MINUTELY, 60), (SECONDLY, 60)):
        locator.intervald[unit] = [*locator.intervald[unit], whole]
    axis.set_major_locator(locator)
    axis.set_major_formatter(ConciseDateFormatter(locator))


def clipped_text(text: object, longest: int) -> str:
    """Return a text of at most so many characters, for a place where it cannot wrap."""
    text = " ".join(str(text).split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def save_figure(figure: Figure, path: Path, title: str, *, shared: bool = False) -> None:
    """Write a figure as SVG under a temporary name and move it into place. Its metadata has ``title``."""
    with styled(), replaced(path, shared=shared) as temporary:
        # a date would make every file differ
        figure.savefig(temporary, format="svg", metadata={"Title": title, "Date": None})


@contextmanager
def styled() -> Iterator[None]:
    """Apply the settings. matplotlib reads some when an artist is made and some when it is rendered."""
    from matplotlib import style

    with style.context(["default", _SETTINGS]):
        yield


_FONTS = "Helvetica,Arial,'Liberation Sans','DejaVu Sans',sans-serif"
_PAGE_SETTINGS: Any = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # a column may be called "$x$"
    "font.family": "DejaVu Sans",
    "figure.facecolor": "white",
}
# Inches: what is wider is no panel, and gets a row of its own.
_PANEL = 3.6
_UNUSED = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->|<metadata>.*?</metadata>", re.DOTALL)
_FAMILY = re.compile(r"(font: [\d.]+px |font-family: )[^;\"]*")
_NUMBERS = re.compile(r'( (?:d|x|y|width|height|points)=")([^"]*)"', re.DOTALL)
_DIGITS = re.compile(r"(\d\.\d\d)\d+")


@dataclass(frozen=True)
class Plot:
    """A figure of a report, drawn when it is first asked for."""

    draw: Callable[[], Figure]
    alt: str  #: what it shows, for those who do not see it
    caption: str
    internal: bool = False  #: whether it was drawn from real records without payment

    def figure(self) -> Figure:
        """Draw a figure, which belongs to the caller, in the style of the page."""
        with page_style():
            return plain_text(self.draw())

    @property
    def uri(self) -> str:
        """A ``data:`` address that holds all of it."""
        return self._drawn[0]

    @property
    def wide(self) -> bool:
        """Whether it takes a row of its own."""
        return self._drawn[1]

    @cached_property
    def _drawn(self) -> tuple[str, bool]:
        with page_style():
            figure = self.draw()
            code = base64.b64encode(to_svg(figure).encode()).decode()
        return f"data:image/svg+xml;base64,{code}", figure.get_figwidth() > _PANEL


@contextmanager
def page_style() -> Iterator[None]:
    """Apply the style of all figures of a page, whatever the user's own settings are."""
    import matplotlib as mpl

    with styled(), mpl.rc_context(_PAGE_SETTINGS), warnings.catch_warnings():
        # the reader's browser may have the letters that the font used for the layout lacks
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from")
        # drawn a little too tight is better than no page
        warnings.filterwarnings("ignore", message=r".*constrained_layout not applied.*")
        yield


def to_svg(figure: Figure) -> str:
    """Return a figure as a short SVG document."""
    buffer = io.StringIO()
    plain_text(figure).savefig(buffer, format="svg", metadata={"Date": None})
    code = _UNUSED.sub("", buffer.getvalue())
    code = re.sub(r">\s+<", "><", code).strip()
    code = _NUMBERS.sub(lambda match: f'{match[1]}{_short(match[2])}"', code)
    return _FAMILY.sub(rf"\g<1>{_FONTS}", code)


def plain_text(figure: Figure) -> Figure:
    """Take no text for a formula, in figures that were drawn in another style as well."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_parse_math(False)
    return figure


def _short(numbers: str) -> str:
    """Coordinates to a hundredth of a point: a page holds tens of thousands of them."""
    return " ".join(_DIGITS.sub(r"\1", numbers).split())


# ------------------------------------------------------------------------------------------------
# Points with intervals. Sides of a row differ by place, marker, colour and line style.


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

    said = ". ".join(words.attempt_in_words(attempt) for attempt in attempts)
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
        label + (f", {names[table]}: " if paired else " ") + words.shown_with_interval(m)
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
    for place, (side, (long, few)) in enumerate(sides.items()):
        name = forest.counted.fill(long)
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
    pieces = [word.replace("_", "_ ") if len(word) > _LABEL_WIDTH else word for word in text.split(" ")]
    return fill(" ".join(pieces), _LABEL_WIDTH, max_lines=3).replace("_ ", "_").replace("\xa0", " ")


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


# ------------------------------------------------------------------------------------------------
# Curves of tables over each other, a line of a table for each kind of curve.

#: in the order of the curves, real ones first
_PATIENTS = {"train": "real patients", "test": "real patients", "synthetic": "synthetic patients"}
_WHOLE = (-0.02, 1.02)
#: the diagonal of tests that know nothing
_KNOWS_NOTHING: Any = {"color": "black", "linewidth": 0.8, "linestyle": ":"}
_UNIT_SQUARE: dict[str, Any] = {"aspect": "equal", "xlim": _WHOLE, "ylim": _WHOLE}


@dataclass(frozen=True)
class _Curves:
    """How the tables of a frame are drawn over each other.

    ``name`` is that of their words in ``plots`` of ``words.yaml``. There, braces stand for a cell of the
    first row, and ``said`` for what ``each`` says of every table: its ``name``, and the text of ``said``.
    """

    name: str
    said: Callable[[pd.DataFrame], str]
    points: Callable[[pd.DataFrame], tuple[ArrayLike, ArrayLike]]  #: (x, y), or heights and ends of bins
    axes: Mapping[str, Any] = field(default_factory=dict)
    look: Mapping[str, Any] = field(default_factory=dict)
    kind: Literal["plot", "stairs"] = "plot"
    names: Callable[[Counted], Mapping[str, str]] = lambda counted: _PATIENTS
    by: str = "table"
    legend: str = "{}"
    columns: int = 3
    fewest: int = 2
    height: float = 2.1
    diagonal: bool = False
    limits: Callable[[Axes, pd.DataFrame], object] = lambda axis, frame: None

    def __call__(self, frame: pd.DataFrame, counted: Counted) -> Plot:
        """Return the plot of one frame."""
        names, text = self.names(counted), words.wording("plots", counted)[self.name]
        tables = _tables(frame, names, self.by)
        facts = {name: str(cell) for name, cell in vars(frame_rows(frame.head(1))[0]).items()}
        if "model" in facts:
            facts["model"] = facts["model"].replace("_", " ")
        each = (text["each"].format(name=names[table], said=self.said(own)) for table, own in tables.items())
        facts["said"] = text.get("between", ", ").join(each)
        facts["caption"] = text["caption"].format(**facts)
        labels = {name: clipped_text(text[name].format(**facts), 44) for name in ("xlabel", "ylabel")}
        draw = partial(self.draw, frame, tables, names, {**labels, **self.axes})
        return Plot(draw, text["alt"].format(**facts), facts["caption"], any_confidential(frame))

    def draw(
        self,
        frame: pd.DataFrame,
        tables: Mapping[str, pd.DataFrame],
        names: Mapping[str, str],
        axes: Mapping[str, Any],
    ) -> Figure:
        """Draw the curve of each table."""
        (axis,) = panels(height=self.height)
        if self.diagonal:
            axis.plot([0, 1], [0, 1], **_KNOWS_NOTHING)
        for table, own in tables.items():
            look = {"linewidth": 1.6, **TABLES[table], **self.look}
            label = self.legend.format(names[table])
            getattr(axis, self.kind)(*map(np.asarray, self.points(own)), label=label, **look)
        axis.set(**axes)
        self.limits(axis, frame)
        return finished(axis, legend=self.columns, fewest=self.fewest)


def _tables(frame: pd.DataFrame, names: Iterable[str], by: str = "table") -> dict[str, pd.DataFrame]:
    tables = dict(iter(frame.groupby(by, sort=False)))
    return {table: tables[table] for table in names if table in tables}


def _edges(bars: pd.DataFrame) -> np.ndarray:
    """Ends of the bins of one table."""
    return np.append(bars["lower"], bars["upper"].iloc[-1]).astype(float)


def _median(bars: pd.DataFrame) -> float:
    edges, total = _edges(bars), np.cumsum(bars["share"].to_numpy())
    if total[-1] <= 0:
        return float(edges[0])
    return float(edges[np.searchsorted(total, total[-1] / 2) :][:2].mean())


def _mode(rows: pd.DataFrame) -> str:
    most = rows.iloc[int(np.argmax(rows["share"]))]
    return f"{int(most['rows'])} ({words.in_percent(most['share'])})"


def _long_gaps(axis: Axes, frame: pd.DataFrame) -> None:
    """Most gaps are short, and a few are very long."""
    longest = max(float(frame["gap"].max()), 1e-9)
    axis.set_xscale("symlog", linthresh=longest / 100)
    axis.set_xlim(0.0, longest)


_OF_MODELS: dict[str, Any] = {"names": names_of, "by": "trained_on", "legend": "trained on {}", "columns": 1}
_OF_MODELS |= {"fewest": 1, "height": 3.0, "diagonal": True}
plot_roc = _Curves(
    "roc",
    lambda own: shown(plain_cells(own["auc"])[0]),
    lambda own: (own["fpr"], own["tpr"]),
    _UNIT_SQUARE,
    **_OF_MODELS,
)
plot_calibration = _Curves(
    "calibration",
    lambda own: ", ".join(f"{shown(p)} to {shown(o)}" for p, o in own[["predicted", "observed"]].to_numpy()),
    lambda own: (own["predicted"], own["observed"]),
    _UNIT_SQUARE,
    {"marker": "o", "markersize": 4},
    **_OF_MODELS,
)
plot_distances = _Curves(
    "distances",
    lambda own: shown(_median(own)),
    lambda own: (own["share"], _edges(own)),
    {"ylim": (0, None)},
    kind="stairs",
    height=2.6,
    names=names_of,
    legend="{} to training",
    columns=1,
    fewest=1,
)
plot_rows = _Curves(
    "rows",
    _mode,
    lambda own: (own["share"], np.arange(len(own) + 1) + 0.5),
    {"ylim": (0, None)},
    kind="stairs",
)
plot_gaps = _Curves(
    "gaps",
    lambda own: plain(own["gap"].iloc[len(own) // 2], 4),
    lambda own: (own["gap"], own["share"]),
    {"ylim": _WHOLE},
    limits=_long_gaps,
)
plot_lags = _Curves(
    "lags",
    lambda own: ", ".join(
        "n/a" if lag is None else decimals(lag, 2) for lag in plain_cells(own["correlation"])
    ),
    lambda own: (own["lag"], own["correlation"].astype(float)),
    look={"marker": "o", "markersize": 3},
    limits=lambda axis, _: axis.set_ylim(min(-0.02, *axis.get_ylim()), 1.02),
)
plot_event = _Curves(
    "events",
    lambda own: words.in_percent(own["share"].iloc[-1]),
    lambda own: ([0.0, *own["time"]], [1.0, *own["share"]]),
    {"ylim": _WHOLE},
    {"drawstyle": "steps-post"},
)


# ------------------------------------------------------------------------------------------------
# Distributions of one column, synthetic over real. Numbers have steps, categories bars.

# Rows of a bar chart that a phone shows readably.
_MOST_BARS = 20


def plot_marginals(frame: pd.DataFrame, counted: Counted) -> Plot:
    """Draw one column's distribution, of one table or of several over each other, with the same bins."""
    (first, *_), names = frame_rows(frame), names_of(counted)
    caption = str(first.column)
    caption += f" ({first.unit})" if first.unit and kind_of_unit(first.unit) is None else ""
    for cell, what in (("missing", "Missing"), ("special", "Special codes")):
        apart = frame_rows(frame[frame["cell"] == cell])
        said = ", ".join(f"{names[row.table]} {words.in_percent(row.share)}" for row in apart)
        caption += f". {what}: {said}" if apart else ""
    bars = frame[frame["cell"].isin(("zero", "bin", "category"))]
    tables = {str(table): part for table, part in bars.groupby("table", sort=False)}
    categories = int(((bars["cell"] == "category") & (bars["table"] == first.table)).sum())
    if categories > _MOST_BARS:
        caption += f". The first {_MOST_BARS} of {categories} categories"
    alt = f"Share of {counted} over {first.column}, {' and '.join(names[table] for table in tables)}. "
    alt += " ".join(_peak(bars, names) for bars in tables.values())
    draw = _categories if categories else _numeric
    return Plot(partial(draw, tables, names), alt, caption, any_confidential(frame))


def _peak(bars: pd.DataFrame, names: Mapping[str, str]) -> str:
    """Where most records of one table are, in words."""
    most = frame_rows(bars)[int(np.argmax(bars["share"]))]
    if most.share <= 0:
        return f"No {most.table} value."
    low, high = most.lower, most.upper
    text: Callable[..., str] = partial(plain, figures=4)
    if most.cell != "bin":
        low, high, text = most.label if most.cell == "category" else 0, math.nan, str
    elif _is_calendar(most.unit):  # bins end half a step outside
        low, high = _days([low, high], most.unit)
        low, high, text = math.ceil(low), math.floor(high), partial(words.column_value, unit="date")
    elif all(edge % 1 == 0.5 for edge in _edges(bars)):  # those of whole numbers as well
        low, high = low + 0.5, high - 0.5
    where = text(low) + (f" to {text(high)}" if most.cell == "bin" and high > low else "")
    return f"Most frequent in {names[most.table]}: {where} ({words.in_percent(most.share)})."


def _is_calendar(unit: str | None) -> bool:
    kind = kind_of_unit(unit)
    return kind is not None and kind.seconds is not None


def _days(edges: ArrayLike, unit: str) -> np.ndarray:
    """Dates as days since 1970-01-01."""
    kind = kind_of_unit(unit)
    assert kind is not None
    return np.asarray(edges, dtype=float) * kind.unit_size


def _numeric(tables: Mapping[str, pd.DataFrame], names: Mapping[str, str]) -> Figure:
    (axis,), bars = panels(height=2.1), next(iter(tables.values()))
    edges, unit = _edges(bars), plain_cells(bars["unit"])[0]
    log = bars["scale"].iloc[0] == "log" and edges.min() > 0
    if _is_calendar(unit):
        edges = _days(edges, unit)
        date_ticks(axis.xaxis)
    scale = _to_equal_widths(np.log(edges) if log else edges)
    for table, own in tables.items():
        share, look = own["share"].to_numpy(dtype=float) * scale, TABLES[table]
        axis.stairs(share, edges, label=names[table], linewidth=1.6, **look)
        if table == "synthetic":
            axis.stairs(share, edges, fill=True, color=look["color"], alpha=0.18, linewidth=0)
    if log:
        axis.set_xscale("log")
    ylabel = "share" if np.all(scale == 1) else "share by width"
    xlabel = clipped_text(unit or "value", 40)
    return finished(axis, legend=3, ylim=(0, None), xlabel=xlabel, ylabel=ylabel)


def draw_snapshots(told: Mapping[str, Any], titles: Sequence[str], counts: str) -> Figure:
    """Draw a column at several points of a training, one below the other, beside its released counts.

    ``told``: as `dpsynth.report.training.read_training` has a column. ``counts`` names the released counts.
    """
    edges, labels = np.asarray(told["edges"], dtype=float), told["labels"][:_MOST_BARS]
    axes = panels(rows=len(titles), height=0.75 + 0.62 * len(titles))
    log = told["scale"] == "log" and bool(labels == [] and edges.min() > 0)
    if labels:
        edges = np.arange(len(labels) + 1) - 0.5
    elif _is_calendar(told["unit"]):
        edges = _days(edges, told["unit"])
        date_ticks(axes[-1].xaxis)
    scale = _to_equal_widths(np.log(edges) if log else edges)
    for axis, title, shares in zip(axes, titles, told["generated"], strict=True):
        look = TABLES["synthetic"]["color"]
        height = np.asarray(shares[: len(scale)]) * scale
        axis.stairs(height, edges, fill=True, color=look, alpha=0.35, linewidth=0, label="generated")
        if told["released"]:
            height = np.asarray(told["released"][: len(scale)]) * scale
            axis.stairs(height, edges, color="black", linewidth=1.1, label=counts)
        axis.set_title(title, loc="left", fontsize=8, pad=2)
        axis.set(yticks=[], ylim=(0, None))
        axis.grid(visible=False)
    last = axes[-1]
    if log:
        last.set_xscale("log")
    if labels:
        names = [clipped_text(label, 14) for label in labels]
        turned: dict[str, Any] = {"rotation": 40, "ha": "right"} if sum(map(len, names)) > 30 else {}
        last.set_xticks(range(len(names)), names, **turned)
    return finished(last, legend=2, xlabel="" if labels else clipped_text(told["unit"] or "value", 40))


def _to_equal_widths(edges: np.ndarray) -> np.ndarray:
    """Factors that make heights comparable where bins differ in width, as those of whole numbers do.

    A bin of the median width keeps its height. All are 1 where widths agree.
    """
    widths = np.diff(edges)
    if len(widths) == 0 or widths.min() <= 0 or widths.max() < 1.01 * widths.min():
        return np.ones(len(widths))
    return np.asarray(np.median(widths) / widths)


def _categories(tables: Mapping[str, pd.DataFrame], names: Mapping[str, str]) -> Figure:
    labels = [clipped_text(label, 16) for label in next(iter(tables.values()))["label"][:_MOST_BARS]]
    (axis,) = panels(height=0.75 + len(labels) * (0.16 + 0.09 * len(tables)))
    width = 0.8 / len(tables)
    for place, (table, bars) in enumerate(tables.items()):
        rows = np.arange(len(labels)) + (place - (len(tables) - 1) / 2) * width
        colour = TABLES[table]["color"]
        # hatched as well, since print may have no colours
        look: dict[str, Any] = (
            {"color": colour} if table == "synthetic" else {"color": "white", "hatch": "////"}
        )
        look |= {"edgecolor": colour, "label": names[table]}
        axis.barh(rows, bars["share"].to_numpy()[: len(labels)], height=width, **look)
    limits: dict[str, Any] = {"xlim": (0, None), "ylim": (len(labels) - 0.4, -0.6)}
    return finished(axis, rows=labels, legend=3, xlabel="share", **limits)


# ------------------------------------------------------------------------------------------------
# Patients over time: paths of a few, and survival.


def plot_paths(frame: pd.DataFrame, counted: Counted) -> Plot:
    """Draw one number of a few patients over the time since their first row, a panel for each table.

    Paths of both tables share one scale, so that slopes and spreads compare by eye.
    """
    tables = _tables(frame, _PATIENTS)
    first, *_ = frame_rows(frame)
    titles = {table: f"{own['patient'].nunique()} {_PATIENTS[table]}" for table, own in tables.items()}

    def draw() -> Figure:
        axes = panels(len(tables), height=2.6)
        for axis, (table, paths) in zip(axes, tables.items(), strict=True):
            axis.sharex(axes[0])
            axis.sharey(axes[0])
            for place, (_, path) in enumerate(paths.groupby("patient")):
                axis.plot(path["time"], path["value"], marker="o", markersize=2, lw=0.9, **line(place))
            axis.set(title=titles[table], xlabel=clipped_text(f"{first.clock}, since the first row", 44))
        unit = f", {first.unit}" if first.unit else ""
        return finished(axes[0], ylabel=clipped_text(f"{first.column}{unit}", 30))

    said = [
        f"{titles[table]}, from {plain(own['value'].min(), 4)} to {plain(own['value'].max(), 4)}"
        for table, own in tables.items()
    ]
    caption = f"{first.column} of random patients, one line each"
    caption += ". Both panels have one scale" if len(tables) > 1 else ""
    alt = f"{first.column} over time: {'. '.join(said)}."
    return Plot(draw, alt, caption, any_confidential(frame))


def plot_survival(curve: SurvivalCurve, study: str, *, internal: bool) -> Plot:
    """Draw a survival curve for a page, with a few of its times in words."""
    band = f"{level_text(curve.level)} band"
    alt = f"Survival curve of regression {study} with its {band}. {'. '.join(str(curve).splitlines())}."
    caption = (
        f"Pre-specified regression {study}: survival with its {band} at each time, whatever the predictors"
    )
    return Plot(lambda: draw_survival(curve), alt, caption, internal)


def draw_survival(curve: SurvivalCurve) -> Figure:
    """Draw a survival curve: all are alive at 0, and each value holds until the next time."""
    (axis,) = panels(width=4.5, height=2.8)
    # the last is seen a little longer than its time
    times = np.r_[0.0, curve.times, 1.03 * curve.times[-1]]
    survival, lower, upper = (np.r_[1.0, v, v[-1]] for v in (curve.survival, curve.lower, curve.upper))
    colour = COLOURS[6]
    axis.fill_between(times, lower, upper, step="post", color=colour, alpha=0.15, linewidth=0)
    for end in (lower, upper):
        axis.step(times, end, where="post", color=colour, linewidth=0.7, linestyle="--")
    axis.step(times, survival, where="post", color=colour)
    unit = f" ({curve.unit})" if curve.unit else ""
    return finished(axis, xlabel=f"time{unit}", ylabel="survival", xlim=(0.0, times[-1]), ylim=_WHOLE)


# ------------------------------------------------------------------------------------------------
# What a guarantee costs and allows: curves, and bars of epsilon, entry by entry.


def plot_curves(profile: Profile, delta: float) -> dict[str, Plot]:
    """Draw error rates, ROC, advantage, and delta over epsilon (a dot at ``delta``). Nothing if void."""
    if not profile.private:
        return {}
    fpr = np.unique(np.concatenate([np.linspace(0, 1, 161), np.geomspace(1e-4, 1e-2, 15)]))
    fnr = np.clip(np.asarray(profile.fnr(fpr), dtype=float), 0.0, 1.0)
    tv, epsilon = profile.tv(), profile.epsilon(delta)
    drawn = {
        "trade_off": lambda: _rates(fpr, fnr, "false negative rate", (1, 0)),
        "roc_bound": lambda: _rates(fpr, 1 - fnr, "true positive rate", (0, 1)),
        "advantage": lambda: _advantage(fpr, fnr, tv),
        "privacy_profile": lambda: _deltas(profile, delta, epsilon),
    }
    if not math.isfinite(epsilon):
        del drawn["privacy_profile"]
    values = {"members": words.percent(float(profile.tpr(0.01))), "tv": round_up(tv)}
    values |= {"delta": round_up(delta), "epsilon": words.bound(epsilon)}
    said = {name: words.wording("plots")[name] for name in drawn}
    return {
        name: Plot(draw, said[name]["alt"].format(**values), said[name]["caption"].format(**values))
        for name, draw in drawn.items()
    }


def _rates(fpr: np.ndarray, rate: np.ndarray, label: str, blind: tuple[float, float]) -> Figure:
    (axis,) = panels(height=3.0)
    axis.fill_between(fpr, rate, np.interp(fpr, [0, 1], blind), alpha=0.15)
    axis.plot(fpr, rate, label="any test, at best", **line(0))
    axis.plot([0, 1], blind, label="blind guessing", **_KNOWS_NOTHING)
    return finished(axis, legend=2, xlabel="false positive rate", ylabel=label, **_UNIT_SQUARE)


def _advantage(fpr: np.ndarray, fnr: np.ndarray, tv: float) -> Figure:
    (axis,) = panels(height=2.6)
    axis.plot(fpr, np.maximum(1 - fpr - fnr, 0), label="advantage, at best", **line(0))
    axis.axhline(tv, label="total variation", **line(1))
    limits: dict[str, Any] = {"xlim": (0, 1), "ylim": (0, max(1.15 * tv, 1e-9))}
    return finished(axis, legend=2, xlabel="false positive rate", ylabel="TPR − FPR", **limits)


def _deltas(profile: Profile, delta: float, epsilon: float) -> Figure:
    (axis,) = panels(height=2.6)
    grid = np.linspace(0.0, max(1.3 * epsilon, 0.1), 121)
    values = np.array([profile.delta(float(e)) for e in grid])
    axis.plot(grid[values > 0], values[values > 0], **line(0))
    limits: dict[str, Any] = {"xlim": (0, grid[-1])}
    if delta > 0:
        axis.plot([epsilon], [delta], "o", color=COLOURS[1])
        limits |= {"ylim": (delta / 30, 1.5)}
    return finished(axis, yscale="log", xlabel="ε", ylabel="δ", **limits)


# Bars of one panel of the waterfall: more would not fit a printed page at a size that can be read.
_BARS = 25
# Up to here bars carry the names of their entries, above their numbers in the table.
_NAMED = 10


def plot_costs(entries: Sequence[Mapping[str, Any]], delta: float) -> tuple[Plot, ...]:
    """Draw epsilon entry by entry: each bar reaches from the cost before it to the cost with it.

    ``entries`` are those of ``Ledger.summary(delta)``. Epsilons may be infinite. A plot has at most 25.
    """
    bars = pd.DataFrame(entries, columns=["name", "epsilon_alone", "epsilon_cumulative"])
    bars["before"] = bars["epsilon_cumulative"].shift(fill_value=0.0)
    bars["place"] = range(1, len(bars) + 1)
    ends = bars[["epsilon_cumulative", "epsilon_alone"]].to_numpy(dtype=float)
    reach = float(np.max(ends, initial=0.0, where=np.isfinite(ends))) or 1.0
    drawn = []
    for start in range(0, len(bars), _BARS):
        part = bars.iloc[start : start + _BARS]
        said = [
            "{}, {}: from {} to {}".format(
                row.place, row.name, *map(words.bound, (row.before, row.epsilon_cumulative))
            )
            for row in frame_rows(part)
        ]
        which = "" if len(part) == len(bars) else f", entries {start + 1} to {start + len(part)}"
        drawn.append(
            Plot(
                partial(_bars, part, reach, len(bars) <= _NAMED),
                f"Waterfall of epsilon at delta {round_up(delta)}{which}. {'. '.join(said)}.",
                f"Each noisy statistic: ε that it adds (bars), and its ε alone (dots){which}",
            )
        )
    return tuple(drawn)


def _bars(bars: pd.DataFrame, reach: float, named: bool) -> Figure:
    (axis,) = panels(height=0.75 + (0.42 if named else 0.2) * len(bars))
    end = reach * (1.16 if np.isfinite(bars["epsilon_cumulative"]).all() else 1.3)
    for place, row in enumerate(frame_rows(bars)):
        low, top = min(row.before, reach * 1.02), min(row.epsilon_cumulative, end)
        look: dict[str, Any] = {"color": COLOURS[0], "edgecolor": COLOURS[0]}
        if math.isinf(row.epsilon_cumulative):
            look = {"color": "white", "edgecolor": COLOURS[1], "hatch": "////"}
        # with an edge, so that the thinnest bar is seen
        axis.barh(place, top - low, left=low, height=0.55, **look)
        said = words.bound(row.epsilon_cumulative)
        axis.text(min(top, reach) + 0.035 * reach, place, said, va="center", fontsize=8)
        if math.isfinite(row.epsilon_alone):
            axis.plot(row.epsilon_alone, place, "o", color="white", markeredgecolor="black", markersize=4)
        if named:
            across = axis.get_yaxis_transform()
            name = clipped_text(row.name, 44)
            axis.text(0.01, place - 0.32, name, transform=across, va="bottom", fontsize=8)
    limits: dict[str, Any] = {"xlim": (0, end), "ylim": (len(bars) - 0.5, -0.8 if named else -0.6)}
    return finished(axis, rows=[*map(str, bars["place"])], xlabel="ε so far", **limits)


def draw_groups(groups: Sequence[tuple[float, int]], *, of: str) -> Figure:
    """Draw the smallest groups (epsilon, number) that survive the noise. Without any, the panel is empty."""
    with styled():
        (axis,) = panels()
        if not groups:
            return finished(axis)
        epsilons, sizes = zip(*groups, strict=True)
        axis.plot(epsilons, sizes, marker="o", markersize=5, **line(1))
        axis.set(xscale="log", yscale="log", xticks=epsilons, yticks=sorted(set(sizes)), xlabel="ε")
        title = "Count within 30 % in 95 of 100 repeats"
        return finished(axis, ylabel=f"Smallest group, of {of}", title=title)


# ------------------------------------------------------------------------------------------------
# Associations of pairs of columns, as squares.

#: columns whose names fit beside a heat map; if there are more, they are numbered
MOST_NAMES = 10


def matrix_of(frame: pd.DataFrame) -> tuple[list[str], np.ndarray]:
    """Return the columns of one table's associations, and their matrix, NaN where it is not defined."""
    columns = [str(name) for name in dict.fromkeys(frame["first"])]
    places = {name: place for place, name in enumerate(columns)}
    matrix = np.full((len(columns), len(columns)), np.nan)
    matrix[frame["first"].map(places), frame["second"].map(places)] = frame["value"].astype(float)
    return columns, matrix


def plot_matrix(
    values: np.ndarray,
    columns: Sequence[str],
    *,
    what: str,
    caption: str,
    internal: bool,
    signed: bool = False,
) -> Plot:
    """Draw a matrix of associations in [0, 1], or of differences in [-1, 1] if ``signed``."""

    def draw() -> Figure:
        from matplotlib import colormaps

        named = len(columns) <= MOST_NAMES
        (axis,) = panels(height=3.3 if named else 2.9)
        colours = colormaps["RdBu_r" if signed else "Blues"].with_extremes(bad="#cccccc")
        low = -1.0 if signed else 0.0
        cells = np.ma.masked_invalid(values)
        image = axis.imshow(cells, cmap=colours, vmin=low, vmax=1.0, interpolation="none")
        axis.grid(visible=False)
        if named:
            ticks, names = [*range(len(columns))], [clipped_text(name, 12) for name in columns]
            axis.tick_params(axis="x", labelrotation=90)
        else:
            ticks = [i for i in range(len(columns)) if i == 0 or (i + 1) % 5 == 0]
            names = [str(i + 1) for i in ticks]
        axis.figure.colorbar(image, ax=axis, shrink=0.8, ticks=[low, (low + 1) / 2, 1])
        return finished(axis, xticks=ticks, yticks=ticks, xticklabels=names, yticklabels=names)

    return Plot(draw, f"{what}. {_strongest(values, columns)}", caption, internal)


def _strongest(values: np.ndarray, columns: Sequence[str]) -> str:
    pairs = np.abs(np.where(np.tri(len(values), k=-1).astype(bool), values, np.nan))
    if not np.isfinite(pairs).any():
        return "No pair is defined."
    row, column = np.unravel_index(int(np.nanargmax(pairs)), pairs.shape)
    return f"Largest: {columns[int(column)]} and {columns[int(row)]}, {shown(float(values[row, column]))}."


# ------------------------------------------------------------------------------------------------
# All plots of a report by name. Sections of the page and notebooks choose from them.

#: plots of one frame each: the frame, the column that tells several apart, the plot, and what a table must
#: have a value of
_OF_FRAMES: dict[str, tuple[str, tuple[str, ...], Callable[[pd.DataFrame, Counted], Plot], str | None]] = {
    "roc": ("roc", ("model",), plot_roc, None),
    "calibration": ("calibration", ("model",), plot_calibration, None),
    "distances": ("distances", (), plot_distances, None),
    "paths": ("paths", ("column",), plot_paths, None),
    "rows": ("rows_per_patient", (), plot_rows, None),
    "gaps": ("gaps", (), plot_gaps, None),
    "lags": ("lags", ("column",), plot_lags, "correlation"),
    "events": ("events", ("event",), plot_event, None),
}


#: those of patients with several rows
OVER_TIME = ("paths", "rows", "gaps", "lags", "events")


def plots_of(
    evaluation: Evaluation,
    profile: Profile | None = None,
    summary: Summary | None = None,
    attempts: Sequence[Attempt] = (),
    studies: Sequence[Estimates] = (),
    *,
    internal: bool = False,
) -> dict[str, Plot]:
    """All plots of a report by name, each drawn when it is first asked for.

    ``internal`` says whether estimates of studies are confidential, since no guarantee covers them.
    """
    drawn, counted = {}, evaluation.counted
    if profile is not None and summary is not None:
        costs = plot_costs(summary["entries"], summary["delta"])
        drawn = {f"costs[{part}]" if part > 1 else "costs": plot for part, plot in enumerate(costs, start=1)}
        drawn |= plot_curves(profile, summary["delta"])
    for measure, group in words.by_measure(attempts):
        drawn[f"attempts[{measure}]"] = plot_attempts(group, words.WORDS[measure][0])
    for told in studies:
        drawn[f"estimates[{told.study}]"] = plot_estimates(told, words.LEVEL, internal=internal)
    for told in studies:
        if told.survival is not None:
            drawn[f"survival[{told.study}]"] = plot_survival(told.survival, told.study, internal=internal)
    drawn |= _scores(evaluation)
    drawn |= plots_of_frames(evaluation, "roc", "calibration")
    fitted = (each for each in regressions_of(evaluation) if each.terms)
    drawn |= {each.regression: plot_effects(each, counted) for each in fitted}
    drawn |= _marginals(evaluation)
    drawn |= _associations(evaluation)
    return drawn | plots_of_frames(evaluation, "distances", *OVER_TIME)


#: scores as points: their reference, what they are, the label of the axis and the caption
_SCORES = {
    "auc": (0.5, "AUC", "AUC", "scores of models"),
    "r2": (0.0, "explained variance", "explained variance", "scores of models"),
    "nn_accuracy": (0.5, "Nearest-neighbour accuracy", "accuracy", "accuracies"),
    "attacks": (0.5, "Signs of memorisation", "AUC, or share", "attacks by distance"),
}
_ATTACKS = {
    "membership_auc": "attack by distance",
    "membership_auc_calibrated": "by compared distances",
    "dcr_closer_to_train": "nearer to training",
}


def _scores(evaluation: Evaluation) -> dict[str, Plot]:
    drawn, counted = {}, evaluation.counted
    for kind, (reference, what, label, caption) in _SCORES.items():
        rows = score_rows(evaluation.measures, kind)
        if any(measure.value is not None for _, _, measure in rows):
            caption = words.wording(caption, counted, label=label)
            of: Any = {"what": what, "caption": caption, "reference": reference, "axis_label": label}
            drawn[kind] = plot_intervals(rows, counted, **of)
    return drawn


def score_rows(measures: Sequence[Measure], kind: str) -> list[tuple[str, str, Measure]]:
    """Scores of one kind, such as ``auc``: label, table and measure, both tables of a model together."""
    if kind == "attacks":
        return [(_ATTACKS[m.name], "synthetic", m) for m in measures if m.name in _ATTACKS]
    rows = []
    for measure in measures:
        rest = measure.name.removeprefix(f"{kind}_")
        if rest and rest != measure.name and not re.search("difference|delta|loss", rest):
            label = rest.removeprefix("real_").replace("_", " ")
            if kind == "nn_accuracy":
                label = re.sub(r"^(\w+) (real|synthetic)$", r"\1, \2 side", label)
            rows.append((label, "train" if rest.startswith("real_") else "synthetic", measure))
    order = list(dict.fromkeys(label for label, _, _ in rows))
    return sorted(rows, key=lambda row: order.index(row[0]))


def _marginals(evaluation: Evaluation) -> dict[str, Plot]:
    """Distributions of each column, synthetic and real, if both have the same bins. The worst come first."""
    drawn: dict[str, Plot] = {}
    for frame in evaluation.groups("marginal", "column"):
        tables = {str(table): part for table, part in frame.groupby("table", sort=False)}
        chosen = [tables.get("synthetic"), tables.get("train", tables.get("test"))]
        pair = [part for part in chosen if part is not None]
        same = pd.concat([part for part in pair if _bins(part) == _bins(pair[0])])
        drawn[str(frame["column"].iloc[0])] = plot_marginals(same, evaluation.counted)
    distances = {m.name: float(m.value) for m in evaluation.measures if m.value is not None}
    worst = sorted(drawn, key=lambda column: -distances.get(f"tvd[{column}]", 0.0))
    return {f"marginal[{column}]": drawn[column] for column in worst}


def _bins(frame: pd.DataFrame) -> list[list[object]]:
    bars = frame[frame["cell"].isin(("zero", "bin", "category"))]
    return [plain_cells(bars[name]) for name in ("lower", "upper", "label")]


def _associations(evaluation: Evaluation) -> dict[str, Plot]:
    """Heat maps of both tables, and of their difference if they have the same columns."""
    frames = {str(frame["table"].iloc[0]): frame for frame in evaluation.groups("association", "table")}
    found = {table: matrix_of(frames[table]) for table in ("synthetic", "train") if table in frames}
    captions = {"synthetic": "Synthetic table", "train": "Real training table"}
    drawn: dict[str, Plot] = {}
    for table, (columns, matrix) in found.items():
        what = f"Associations of pairs of columns, {captions[table].lower()}"
        internal = any_confidential(frames[table])
        drawn[table] = plot_matrix(matrix, columns, what=what, caption=captions[table], internal=internal)
    if len(found) == 2 and found["synthetic"][0] == found["train"][0]:
        drawn["difference"] = plot_matrix(
            found["synthetic"][1] - found["train"][1],
            found["train"][0],
            what="Difference of the associations, synthetic minus real",
            caption="Difference: synthetic minus real",
            internal=True,
            signed=True,
        )
    return {f"associations[{name}]": plot for name, plot in drawn.items()}


def plots_of_frames(evaluation: Evaluation, *names: str) -> dict[str, Plot]:
    """The plots of these names that the evaluation has, such as ``gaps`` and ``lags[COLUMN]``."""
    drawn = {}
    for name in names:
        source, columns, plot, known = _OF_FRAMES[name]
        for frame in evaluation.groups(source, *columns):
            if known is not None:
                frame = frame[frame[known].notna().groupby(frame["table"]).transform("any")]
            if len(frame):
                of = "".join(f"[{frame[column].iloc[0]}]" for column in columns)
                drawn[f"{name}{of}"] = plot(frame, evaluation.counted)
    return drawn
