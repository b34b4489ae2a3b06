"""Work on blocks of records, on all cores.

The arrays of a block stay in the processor's cache. NumPy lets other threads work while it computes. Each
block has a random stream of its own, so the result does not depend on the number of cores.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from os import cpu_count
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

#: Blocks come in this number of equally long ones, for as many cores.
_ALIKE = 2
_thread = threading.local()


def in_blocks(
    work: Callable[[slice, np.random.Generator], object], n: int, most: int, rng: np.random.Generator
) -> None:
    """Call ``work(part, rng)`` for parts of ``n`` records, each of at most ``most`` records.

    Within a call of ``work``, all is done in its own thread.

    Examples
    --------
    >>> sizes = []
    >>> in_blocks(lambda part, rng: sizes.append(part.stop - part.start), 10, 4, np.random.default_rng(0))
    >>> sorted(sizes)
    [1, 3, 3, 3]
    """
    size = max(math.ceil(n / (_ALIKE * max(math.ceil(n / (_ALIKE * most)), 1))), 1)
    parts = [slice(start, min(start + size, n)) for start in range(0, n, size)]
    streams = [np.random.Generator(np.random.SFC64(seed)) for seed in rng.integers(2**63, size=len(parts))]
    if getattr(_thread, "works", False):
        for part, stream in zip(parts, streams, strict=True):
            work(part, stream)
        return
    # threads of BLAS would wait for each other's small products, at full load
    with (
        _libraries().limit(limits=1, user_api="blas"),
        ThreadPoolExecutor(cpu_count(), initializer=setattr, initargs=(_thread, "works", True)) as pool,
    ):
        for _ in pool.map(work, parts, streams):
            pass


@cache
def _libraries() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController  # comes with scikit-learn

    return ThreadpoolController()
