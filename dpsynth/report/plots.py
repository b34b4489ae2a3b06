"""Plots of a report: style, attempts, the budget, and distributions."""

from __future__ import annotations

import base64
import io
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
import pandas as pd

from dpsynth.attacks.attempt import Attempt
from dpsynth.evaluation.results import any_confidential, frame_rows
from dpsynth.files.storage import replaced
from dpsynth.report.words import attempt_in_words, column_value, in_percent, plain, shown
from dpsynth.table.kinds import kind_of_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike


# ------------------------------------------------------------------------------------------------
# How every figure looks, and figures as SVG that come out the same each time: as files, or within a page.
#
# On a page, an SVG inside ``<img>`` with a ``data:`` address runs no script and loads nothing. Its text
# stays text: a third of the size of outlines, and any alphabet that the reader's machine has.

#: dash of a line: a name, or an offset with lengths of dashes and gaps
Dash = str | tuple[int, tuple[float, ...]]


class Look(TypedDict):
    """Keywords of ``Axes.plot``."""

    color: str
    linestyle: Dash


#: Colours that people with any colour vision can tell apart (Okabe and Ito 2008), each with its own dash.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES: tuple[Dash, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (7, 2)), (0, (1, 1)))
#: of each table, everywhere on a page
TABLES: dict[str, Look] = {
    "synthetic": {"color": COLOURS[1], "linestyle": "--"},
    "train": {"color": COLOURS[0], "linestyle": "-"},
    "test": {"color": COLOURS[2], "linestyle": "-."},
}
#: the same in words
NAMES = {"synthetic": "synthetic records", "train": "real records", "test": "real, held out"}

_SETTINGS: dict[str, Any] = {
    "axes.grid": True,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
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
    rows: int = 1, columns: int = 1, *, width: float = 3.4, height: float = 2.8
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its axes row by row. ``width`` and ``height`` are inches of one panel."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def legend_below(figure: Figure, axis: Axes, columns: int = 3, fontsize: float | None = None) -> None:
    """Put the legend of one panel under all of them, where it covers nothing, with each label once."""
    handles, labels = axis.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    figure.legend(once.values(), once.keys(), loc="outside lower center", ncols=columns, fontsize=fontsize)


def legend_of_curves(figure: Figure, axis: Axes, curves: int, columns: int = 3) -> None:
    """Put a legend under a panel of more than one curve."""
    if curves > 1:
        legend_below(figure, axis, columns=columns)


def plain_ticks(axis: Axis) -> None:
    """Label a logarithmic axis with plain numbers: the default labels are formulas."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
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
    "axes.titlesize": 9,
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
            return _plain_text(self.draw())

    def reworded(self, say: Callable[[str], str]) -> Plot:
        """The same figure with all its words as ``say`` gives them."""

        def draw() -> Figure:
            from matplotlib.text import Text

            figure = self.draw()
            for text in figure.findobj(Text):
                text.set_text(say(text.get_text()))
            return figure

        return replace(self, draw=draw, alt=say(self.alt), caption=say(self.caption))

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
    _plain_text(figure).savefig(buffer, format="svg", metadata={"Date": None})
    code = _UNUSED.sub("", buffer.getvalue())
    code = re.sub(r">\s+<", "><", code).strip()
    code = _NUMBERS.sub(lambda match: f'{match[1]}{_short(match[2])}"', code)
    return _FAMILY.sub(rf"\g<1>{_FONTS}", code)


def _plain_text(figure: Figure) -> Figure:
    """Take no text for a formula, in figures that were drawn in another style as well."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        if isinstance(text, Text):
            text.set_parse_math(False)
    return figure


def _short(numbers: str) -> str:
    """Coordinates to a hundredth of a point: a page holds tens of thousands of them."""
    return " ".join(_DIGITS.sub(r"\1", numbers).split())


# ------------------------------------------------------------------------------------------------
# Plot of attacks beside their baselines and their proved bounds.

_CONTROL: Any = {
    "marker": "D",
    "color": COLOURS[1],
    "markerfacecolor": "white",
    "markersize": 5,
    "linestyle": "none",
}


def plot_attempts(attempts: Sequence[Attempt], what: str) -> Plot:
    """Draw attempts of one measure: a dot with its interval, the control, and the bound as a bar's end.

    ``what`` names the measure. Attempts without a bound have no bar.
    """
    said = ". ".join(attempt_in_words(attempt) for attempt in attempts)

    def draw() -> Figure:
        names = ["\n".join(wrap(attempt.attack, 26, max_lines=3, placeholder=" …")) for attempt in attempts]
        lines = max(name.count("\n") + 1 for name in names)
        figure, (axis,) = panels(height=1.0 + (0.16 + 0.14 * lines) * len(attempts))
        for place, attempt in enumerate(attempts):
            first = place == 0
            if attempt.proved is not None:
                axis.barh(place, attempt.proved, height=0.62, color=COLOURS[0], alpha=0.18, linewidth=0)
                axis.plot([attempt.proved] * 2, [place - 0.31, place + 0.31], color=COLOURS[0])
            found = attempt.found
            axis.plot([found.lower, found.upper], [place] * 2, color="black", linewidth=1.6)
            axis.plot(
                [found.value], [place], "o", color="black", markersize=5, label="reached" if first else None
            )
            if attempt.control is not None:
                axis.plot([attempt.control.value], [place], **_CONTROL)
        if any(attempt.proved is not None for attempt in attempts):
            axis.plot(
                [],
                [],
                color=COLOURS[0],
                linewidth=5,
                alpha=0.4,
                label="proved: no attack passes its end",
            )
        if any(attempt.control is not None for attempt in attempts):
            axis.plot([], [], label="baseline attack", **_CONTROL)
        axis.set_yticks(range(len(attempts)), names)
        axis.set_ylim(len(attempts) - 0.5, -0.5)
        axis.set_xlim(left=min(0.0, *(attempt.found.lower for attempt in attempts)))
        axis.grid(axis="y", visible=False)
        axis.set_xlabel(what.lower())
        legend_below(figure, axis, columns=1)
        return figure

    caption = f"{what}: what attacks reached, with intervals, and what is proved"
    return Plot(draw, f"{what}. {said}.", caption, internal=any(a.internal for a in attempts))


# ------------------------------------------------------------------------------------------------
# The smallest group that survives the noise, at several epsilons.


def draw_groups(groups: Sequence[tuple[float, int]], *, records: int) -> Figure:
    """Draw group sizes (epsilon, records) against epsilon. Without any, the panel is empty."""
    with styled():
        figure, (axis,) = panels()
        if groups:
            epsilons, sizes = zip(*groups, strict=True)
            axis.plot(epsilons, sizes, marker="o", markersize=5, **line(1))
            axis.set_yscale("log")
            plain_ticks(axis.yaxis)
            axis.set_yticks(sorted(set(sizes)))
            axis.set_ylabel(f"Smallest group, of {records:,} records")
            axis.set_title("Count within 30 % in 95 of 100 repeats", fontsize=9)
            axis.set_xscale("log")
            plain_ticks(axis.xaxis)
            axis.set_xticks(epsilons)
            axis.set_xlabel("ε")
    return figure


# ------------------------------------------------------------------------------------------------
# Distributions of one column, synthetic over real, of distances between records, and associations of pairs.
#
# Numbers have steps, categories bars, pairs squares. A panel is as wide as a phone. The name of the column
# stands in the caption, where it can wrap.

# Rows of a bar chart that a phone shows readably.
_MOST_BARS = 20


def plot_marginals(frame: pd.DataFrame) -> Plot:
    """Draw one column's distribution, of one table or of several over each other, with the same bins."""
    first, *_ = frame_rows(frame)
    caption = str(first.column) + (
        f" ({first.unit})" if first.unit and kind_of_unit(first.unit) is None else ""
    )
    for cell, what in (("missing", "Missing"), ("special", "Special codes")):
        apart = frame_rows(frame[frame["cell"] == cell])
        if apart:
            caption += (
                f". {what}: {', '.join(f'{NAMES[row.table]} {in_percent(row.share)}' for row in apart)}"
            )
    bars = frame[frame["cell"].isin(("zero", "bin", "category"))]
    tables = {str(table): part for table, part in bars.groupby("table", sort=False)}
    categories = int(((bars["cell"] == "category") & (bars["table"] == first.table)).sum())
    if categories > _MOST_BARS:
        caption += f". The first {_MOST_BARS} of {categories} categories"
    names = " and ".join(NAMES[table] for table in tables)
    alt = f"Share of records over {first.column}, {names}. " + " ".join(map(_peak, tables.values()))
    draw = _categories if categories else _numeric
    return Plot(lambda: draw(tables), alt, caption, internal=any_confidential(frame))


def _peak(bars: pd.DataFrame) -> str:
    """Where most records of one table are, in words."""
    most = frame_rows(bars)[int(np.argmax(bars["share"]))]
    name = NAMES[most.table]
    if most.share <= 0:
        return f"No {most.table} value."
    first, last = most.lower, most.upper
    if most.cell == "zero":
        where = "0"
    elif most.cell == "category":
        where = str(most.label)
    elif _is_calendar(most.unit):
        # bins end half a step outside
        first, last = (
            round_in(day)
            for round_in, day in zip((math.ceil, math.floor), _days([first, last], most.unit), strict=True)
        )
        where = column_value(first, "date") + (f" to {column_value(last, 'date')}" if last > first else "")
    else:
        if all(edge % 1 == 0.5 for edge in _edges(bars)):  # bins of whole numbers end half a step outside
            first, last = first + 0.5, last - 0.5
        where = plain(first, 4) + (f" to {plain(last, 4)}" if last > first else "")
    return f"Most frequent in {name}: {where} ({in_percent(most.share)})."


def _edges(bars: pd.DataFrame) -> np.ndarray:
    """Ends of the bins of one table."""
    return np.append(bars["lower"], bars["upper"].iloc[-1]).astype(float)


def _numeric(tables: Mapping[str, pd.DataFrame]) -> Figure:
    figure, (axis,) = panels(height=2.1)
    bars = next(iter(tables.values()))
    first, *_ = frame_rows(bars)
    edges = _edges(bars)
    log = first.scale == "log" and edges.min() > 0
    is_date = _is_calendar(first.unit)
    edges = _days(edges, first.unit) if is_date else edges
    scale = _to_equal_widths(np.log(edges) if log else edges)
    for table, own in tables.items():
        share = own["share"].to_numpy(dtype=float) * scale
        look = TABLES[table]
        axis.stairs(share, edges, label=NAMES[table], linewidth=1.6, **look)
        if table == "synthetic":
            axis.stairs(share, edges, fill=True, color=look["color"], alpha=0.18, linewidth=0)
    if log:
        axis.set_xscale("log")
        plain_ticks(axis.xaxis)
    axis.set_ylim(bottom=0)
    axis.set_ylabel("share" if np.all(scale == 1) else "share by width")
    if is_date:
        date_ticks(axis.xaxis)
    axis.set_xlabel(clipped_text(first.unit or "value", 40))
    legend_of_curves(figure, axis, len(tables))
    return figure


def _is_calendar(unit: str | None) -> bool:
    kind = kind_of_unit(unit)
    return kind is not None and kind.seconds is not None


def _days(edges: ArrayLike, unit: str) -> np.ndarray:
    """Dates as days since 1970-01-01."""
    kind = kind_of_unit(unit)
    assert kind is not None
    return np.asarray(edges, dtype=float) * kind.unit_size


def _to_equal_widths(edges: np.ndarray) -> np.ndarray:
    """Factors that make heights comparable where bins differ in width, as those of whole numbers do.

    A bin of the median width keeps its height. All are 1 where widths agree.
    """
    widths = np.diff(edges)
    if len(widths) == 0 or widths.min() <= 0 or widths.max() < 1.01 * widths.min():
        return np.ones(len(widths))
    return np.asarray(np.median(widths) / widths)


def _categories(tables: Mapping[str, pd.DataFrame]) -> Figure:
    labels = [str(label) for label in next(iter(tables.values()))["label"]][:_MOST_BARS]
    count = max(len(labels), 1)
    figure, (axis,) = panels(height=0.75 + count * (0.16 + 0.09 * len(tables)))
    width = 0.8 / len(tables)
    for place, (table, bars) in enumerate(tables.items()):
        look = TABLES[table]
        rows = np.arange(len(labels)) + (place - (len(tables) - 1) / 2) * width
        share = bars["share"].tolist()[: len(labels)]
        hatch = None if table == "synthetic" else "////"
        # hatched as well, since print may have no colours
        axis.barh(
            rows,
            share,
            height=width,
            color=look["color"] if hatch is None else "white",
            edgecolor=look["color"],
            hatch=hatch,
            label=NAMES[table],
        )
    axis.set_yticks(range(len(labels)), [clipped_text(label, 16) for label in labels])
    axis.set_ylim(len(labels) - 0.4, -0.6)
    axis.set_xlim(left=0)
    axis.set_xlabel("share")
    axis.grid(axis="y", visible=False)
    legend_of_curves(figure, axis, len(tables))
    return figure


def plot_distances(frame: pd.DataFrame) -> Plot:
    """Draw how far synthetic and held-out records lie from their nearest training record."""
    series = {str(table): part for table, part in frame.groupby("table", sort=False)}

    def draw() -> Figure:
        figure, (axis,) = panels(height=2.6)
        for table, bars in series.items():
            label = f"{NAMES[table]} to training"
            axis.stairs(bars["share"].to_numpy(), _edges(bars), label=label, linewidth=1.6, **TABLES[table])
        axis.set_ylim(bottom=0)
        axis.set(xlabel=f"distance ({frame['space'].iloc[0]})", ylabel="share of records")
        legend_of_curves(figure, axis, 2, columns=1)
        return figure

    medians = [
        f"{NAMES[table]} {shown(_median(_edges(bars), bars['share']))}" for table, bars in series.items()
    ]
    alt = f"Distances to the nearest training record. Medians about: {', '.join(medians)}."
    return Plot(draw, alt, "Distance to the nearest training record", internal=any_confidential(frame))


def _median(edges: np.ndarray, share: ArrayLike) -> float:
    total = np.cumsum(np.asarray(share))
    if not len(total) or total[-1] <= 0:
        return float(edges[0])
    place = int(np.searchsorted(total, total[-1] / 2))
    return float((edges[place] + edges[place + 1]) / 2)


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
        figure, (axis,) = panels(height=3.3 if named else 2.9)
        colours = colormaps["RdBu_r" if signed else "Blues"].with_extremes(bad="#cccccc")
        shown_values = np.ma.masked_invalid(values)
        low = -1.0 if signed else 0.0
        image = axis.imshow(shown_values, cmap=colours, vmin=low, vmax=1.0, interpolation="none")
        axis.grid(visible=False)
        if named:
            names = [clipped_text(name, 12) for name in columns]
            axis.set_xticks(range(len(columns)), names, rotation=90)
            axis.set_yticks(range(len(columns)), names)
        else:
            ticks = [i for i in range(len(columns)) if i == 0 or (i + 1) % 5 == 0]
            for direction in (axis.xaxis, axis.yaxis):
                direction.set_ticks(ticks, [str(i + 1) for i in ticks])
        figure.colorbar(image, ax=axis, shrink=0.8, ticks=[low, (low + 1) / 2, 1])
        return figure

    return Plot(draw, f"{what}. {_strongest(values, columns)}", caption, internal=internal)


def _strongest(values: np.ndarray, columns: Sequence[str]) -> str:
    pairs = np.abs(np.where(np.tri(len(values), k=-1).astype(bool), values, np.nan))
    if not np.isfinite(pairs).any():
        return "No pair is defined."
    row, column = np.unravel_index(int(np.nanargmax(pairs)), pairs.shape)
    return f"Largest: {columns[int(column)]} and {columns[int(row)]}, {shown(float(values[row, column]))}."
