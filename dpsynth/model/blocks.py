"""Work on blocks of records, on all cores.

A block's arrays stay in the processor's cache. NumPy lets other threads work while it computes. Each block has
a random stream of its own, so the result does not depend on the number of cores.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count

import numpy as np

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
    workers = min(cpu_count() or 1, len(parts))
    if workers < 2 or getattr(_thread, "works", False):
        for part, stream in zip(parts, streams, strict=True):
            work(part, stream)
        return
    with ThreadPoolExecutor(workers, initializer=lambda: setattr(_thread, "works", True)) as pool:
        for _ in pool.map(work, parts, streams):
            pass
