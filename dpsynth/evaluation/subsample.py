"""Random parts of tables that are too large to be read as a whole."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def random_rows(n: int, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Positions of a random part of n records, in ascending order.

    All of them, and nothing is drawn, where ``size`` is no less than n.
    """
    if n <= size:
        return np.arange(n)
    return np.sort(rng.choice(n, size=size, replace=False))
