"""How every figure looks: panels, colours and line styles, and SVG files that come out the same each time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsynth.files.atomic import replaced

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colours that people with any colour vision can tell apart (Okabe and Ito 2008), each with its own dash.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (7, 2)), (0, (1, 1)))

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


@dataclass(frozen=True)
class Drawing:
    """A figure that can be drawn.

    Parameters
    ----------
    name : str
        Stem of its file.
    caption : str
        What the axes and parameters are, and what the figure shows.
    draw : callable
        Returns the matplotlib figure; called by :meth:`figure`.
    """

    name: str
    caption: str
    draw: Callable[[], Figure]

    def figure(self) -> Figure:
        """Draw the figure in the style of this module, whatever the user's own settings are."""
        with styled():
            return self.draw()


def line(number: int) -> dict[str, Any]:
    """Colour and dash of the curve with this number, counted from 0, as keywords of ``Axes.plot``.

    Examples
    --------
    >>> line(1)
    {'color': '#D55E00', 'linestyle': '--'}
    """
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": DASHES[number % len(DASHES)]}


def panels(
    rows: int = 1, columns: int = 1, *, width: float = 3.4, height: float = 2.8
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its axes row by row; ``width`` and ``height`` are inches of one panel."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def legend_below(figure: Figure, axis: Axes, columns: int = 3, fontsize: float | None = None) -> None:
    """Put the legend of one panel under all of them, where it covers nothing; each label once."""
    handles, labels = axis.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    figure.legend(once.values(), once.keys(), loc="outside lower center", ncols=columns, fontsize=fontsize)


def save(figure: Figure, path: Path, title: str) -> None:
    """Write a figure as SVG under a temporary name and move it into place; ``title`` is in its metadata."""
    with styled(), replaced(path) as temporary:
        # a date would make every file differ
        figure.savefig(temporary, format="svg", metadata={"Title": title, "Date": None})


@contextmanager
def styled() -> Iterator[None]:
    """Apply the settings; matplotlib reads some when an artist is made and some when it is rendered."""
    from matplotlib import style

    with style.context(["default", _SETTINGS]):
        yield
