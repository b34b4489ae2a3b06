"""Figures as text: one SVG in a ``data:`` address, small, and the same bytes each time.

An SVG inside ``<img>`` cannot clash with the identifiers of others, runs no script and loads nothing. Its
text stays text (``svg.fonttype: none``): a third of the size of outlines, any alphabet that the reader's
machine has, and room enough, because it is laid out with a font that is wider than those it names.
"""

from __future__ import annotations

import base64
import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpsynth.report.drawing import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FONTS = "Helvetica,Arial,'Liberation Sans','DejaVu Sans',sans-serif"
_SETTINGS: Any = {
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
    """A drawn figure."""

    uri: str  #: a ``data:`` address that holds all of it
    alt: str  #: what it shows, for those who do not see it
    caption: str
    internal: bool = False  #: whether it was drawn from real records without payment
    wide: bool = False  #: whether it takes a row of its own


@contextmanager
def page_style() -> Iterator[None]:
    """Apply the style of all figures of a page, whatever the user's own settings are."""
    import matplotlib as mpl

    with style.styled(), mpl.rc_context(_SETTINGS), warnings.catch_warnings():
        # the reader's browser may have the letters that the font used for the layout lacks
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from")
        # drawn a little too tight is better than no page
        warnings.filterwarnings("ignore", message=r".*constrained_layout not applied.*")
        yield


def to_svg(figure: Figure) -> str:
    """Return a figure as a short SVG document."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        if isinstance(text, Text):
            text.set_parse_math(False)  # of figures that were drawn in another style as well
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    code = _UNUSED.sub("", buffer.getvalue())
    code = re.sub(r">\s+<", "><", code).strip()
    code = _NUMBERS.sub(lambda match: f'{match[1]}{_short(match[2])}"', code)
    return _FAMILY.sub(rf"\g<1>{_FONTS}", code)


def to_plot(draw: Callable[[], Figure], alt: str, caption: str, *, internal: bool = False) -> Plot:
    """Draw a figure in the style of the page and put it into a ``data:`` address."""
    with page_style():
        figure = draw()
        text = to_svg(figure)
    code = base64.b64encode(text.encode()).decode()
    return Plot(f"data:image/svg+xml;base64,{code}", alt, caption, internal, figure.get_figwidth() > _PANEL)


def _short(numbers: str) -> str:
    """Coordinates to a hundredth of a point: a page holds tens of thousands of them."""
    return " ".join(_DIGITS.sub(r"\1", numbers).split())
