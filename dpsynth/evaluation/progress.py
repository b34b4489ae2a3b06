"""Progress of one step of a work, told as progress of the whole."""

from __future__ import annotations

from collections.abc import Callable


def within(
    progress: Callable[[float], None] | None, start: float, stop: float
) -> Callable[[float], None] | None:
    """Return a progress callable for the part of the work from ``start`` to ``stop``; None for None.

    Examples
    --------
    >>> within(print, 0.5, 1.0)(0.5)
    0.75
    """
    if progress is None:
        return None
    told = progress
    return lambda share: told(start + share * (stop - start))
