"""How every figure of a report looks, and figures as SVG that come out the same each time.

On a page, an SVG inside ``<img>`` with a ``data:`` address runs no script and loads nothing. Its text stays
text: a third of the size of outlines, and any alphabet that the reader's machine has.
"""

from __future__ import annotations

import base64
import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from dpsynth.checks import Counted
from dpsynth.files.storage import replaced
from dpsynth.report.words import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


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


def panels(columns: int = 1, *, width: float = 3.4, height: float = 2.8) -> list[Axes]:
    """Return the axes of a new figure, side by side. ``width`` and ``height`` are inches of one panel."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height), layout="constrained")
    return list(figure.subplots(1, columns, squeeze=False).flat)


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
