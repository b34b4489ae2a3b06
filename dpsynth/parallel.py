"""Work on several cores and machines: Dask workers, and blocks of records."""

from __future__ import annotations

import logging
import math
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from os import cpu_count
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from dpsynth.checks import whole
from dpsynth.errors import DpsynthError, InputError, RunError

if TYPE_CHECKING:
    from distributed import Client, Future
    from threadpoolctl import ThreadpoolController


# ------------------------------------------------------------------------------------------------
# Work on the parts of a table with Dask workers, of a local cluster or of one that runs already.
#
# Nothing here depends on what a table is. `each` hands every part to a worker and yields the results as they
# come. If a worker dies, its parts go to another.

Part = TypeVar("Part")
Result = TypeVar("Result")

#: Seconds that a scheduler has to answer.
_PATIENCE = 15
#: Of Dask, for workers that are started here.
_SETTINGS = {
    # Otherwise they return freed memory at once, which doubles the time of work on small arrays.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None,
    # Otherwise one that stops is given up if its successor takes 15 s to start, as on a busy machine.
    "distributed.deploy.lost-worker-timeout": "1 day",
    # Otherwise they write private results to the disk when memory is short.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
}


@contextmanager
def connected(
    scheduler: str | None = None, *, workers: int | None = None, memory: str = "auto"
) -> Iterator[Client]:
    """Connect to Dask workers. Those started here end with the block.

    ``scheduler`` is the address of a running scheduler (``tcp://host:8786``). Its workers need dpsynth
    installed, and the table's folder under the same name. By default ``workers`` processes of one thread
    each, one for each core, are started on this machine. ``memory`` is that of each (``"2GB"``), by default
    its share of the machine's. A worker that needs more is ended. Raises InputError if Dask is not installed,
    no scheduler answers, or ``workers`` is given beside a scheduler.

    Notes
    -----
    Anyone who can reach a scheduler can run code on its workers. One started here listens on this machine
    only, but to all its users. ``tls://`` addresses take their certificates from Dask's configuration.
    """
    if scheduler is not None and workers is not None:
        raise InputError(f"workers is {workers}, but the scheduler at {scheduler} has workers of its own")
    if workers is not None:
        whole("workers", workers)
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise InputError('tables in parts need Dask: pip install "dpsynth-health[distributed]"') from None
    if scheduler is not None:
        try:
            client = Client(scheduler, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError, ImportError) as problem:
            raise InputError(f"no Dask scheduler answers at {scheduler} ({_line(problem)})") from None
        with client:
            yield client
        return
    with (
        dask.config.set(_SETTINGS),
        LocalCluster(
            n_workers=workers or os.cpu_count() or 1,
            threads_per_worker=1,
            memory_limit=memory,
            dashboard_address="127.0.0.1:0",
            preload=[__name__],
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def dask_setup(worker: object) -> None:
    """Leave Ctrl-C to the process that started this worker, which ends it. Dask calls this in each worker.

    Dask's warnings are not logged. Tracebacks of a lost connection, which it replaces, look like a failure.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)


def each(client: Client, work: Callable[[Part], Result], parts: Sequence[Part]) -> Iterator[Result]:
    """Yield ``work(part)`` once for every part, in the order in which workers finish.

    ``work`` must be pure, but for files that it would write the same again. If a worker dies, its part is
    worked on again, and still yields one result. Raises RunError if workers die of the same part again and
    again, or the scheduler is lost.
    """
    from distributed import KilledWorker, as_completed
    from distributed.client import ClosedClientError

    # A task of its own, so that work travels to each worker once, however many parts there are. (The keyword
    # arguments of Client.map would do the same, but under a key that later calls would share.)
    pending: set[Future] = set()
    try:
        carried = client.submit(_carried, work, pure=False)
        pending |= set(client.map(_apply, parts, [carried] * len(parts), pure=False))
        for future in as_completed(list(pending), loop=client.loop):
            result = future.result()
            pending.remove(future)
            if isinstance(result, DpsynthError):
                raise result
            yield result
    except KilledWorker as problem:
        raise RunError(
            f"{problem.allowed_failures + 1} workers died of the same part of the table. Give each more "
            "memory, or write smaller row groups (smaller files where patients have several rows)"
        ) from None
    except (CancelledError, ClosedClientError):
        raise RunError(
            "the connection to the Dask scheduler failed. Partial results were discarded"
        ) from None
    finally:
        if pending:  # something has failed, or nobody wants the rest
            client.cancel(list(pending))


def _carried(work: Callable[[Part], Result]) -> Callable[[Part], Result]:
    return work


def _apply(part: Part, work: Callable[[Part], Result]) -> Result | DpsynthError:
    """Return the result or the error of a part. Raised, it would put a record's value in Dask's logs."""
    try:
        return work(part)
    except DpsynthError as problem:
        return problem


def _line(problem: Exception) -> str:
    return " ".join(str(problem).split()) or type(problem).__name__


# ------------------------------------------------------------------------------------------------
# Work on blocks of records, on all cores.
#
# The arrays of a block stay in the processor's cache. NumPy lets other threads work while it computes. Each
# block has a random stream of its own, so the result does not depend on the number of cores.

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
