"""Progress of one step of a work, told as progress of the whole."""

from __future__ import annotations

from collections.abc import Callable

#: is told the part of the work that is done, in [0, 1]
Progress = Callable[[float], None]


def silent(done: float) -> None:
    """Tell nobody."""


def within(progress: Progress, start: float, stop: float) -> Progress:
    """Return a progress callable for the part of the work from ``start`` to ``stop``.

    Examples
    --------
    >>> within(print, 0.5, 1.0)(0.5)
    0.75
    """
    return lambda done: progress(start + done * (stop - start))
