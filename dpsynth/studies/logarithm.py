"""Numbers as logarithms: what skewed laboratory values enter a regression as.

Zero has no logarithm, so values below the smallest positive one that the *public* schema knows are taken for
that one: the lower bound where it is greater than 0, otherwise the step between values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.table.column import Column


def smallest_positive(column: Column) -> float:
    """Return the smallest value of a numeric column whose logarithm is taken.

    Raises
    ------
    InputError
        If the column may be negative, may be 0 and has no step, or has one positive value only.

    Examples
    --------
    >>> smallest_positive(Column(name="creatinine", kind="continuous", lower=0, upper=20, decimals=1))
    0.1
    >>> smallest_positive(Column(name="change", kind="continuous", lower=-5, upper=5))
    Traceback (most recent call last):
    dpsynth.errors.InputError: 'change' cannot enter as its logarithm: its lower bound is -5, below 0
    """
    lower, step = float(column.lower or 0.0), column.resolution
    why = ""
    if lower < 0:
        why = f"its lower bound is {lower:g}, below 0"
    elif lower == 0 and step is None:
        why = "its lower bound is 0, and it has no step or decimals that say where the scale begins"
    elif lower == 0 and step == column.upper:
        why = f"{step:g} is its only value above 0"
    if why:
        raise InputError(f"{column.name!r} cannot enter as its logarithm: {why}")
    return lower or float(step or 0.0)


def logarithms(column: Column, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Natural logarithms of a column's numbers, of the same shape; NaN where missing."""
    return np.log(np.maximum(numbers, smallest_positive(column)))
