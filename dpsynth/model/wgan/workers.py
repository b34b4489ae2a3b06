"""WGAN critic steps that several machines share, by TensorFlow's `MultiWorkerMirroredStrategy`.

Each worker runs the whole fit in the strategy's scope, with the same random numbers. In a critic step it sums
the gradients of its own part of the sampled records, all at the WGAN critic of worker 0. The sums of all
workers are added. Then each worker adds the same noise to the same total, which worker 0's next WGAN critic
follows. So the bound holds for one and the same WGAN critic, also if workers round differently. The sums that
travel between workers have no noise: they are as secret as the records.
"""

from __future__ import annotations

import secrets
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import DataError, InputError, RunError


@dataclass(frozen=True)
class Workers:
    """The workers of a strategy, seen from number ``rank`` of ``count``."""

    strategy: Any
    rank: int
    count: int

    @classmethod
    def present(cls) -> Workers | None:
        """Those of the strategy in whose scope this is called, None where one process works alone.

        Raises InputError for another kind of strategy, or several accelerators a worker.
        """
        if "tensorflow" not in sys.modules:  # so there is no strategy either
            return None
        import tensorflow as tf

        strategy = tf.distribute.get_strategy()
        count = strategy.num_replicas_in_sync
        if count == 1:
            return None
        resolver = getattr(strategy, "cluster_resolver", None)
        if resolver is None or len(resolver.cluster_spec().as_dict().get("worker", ())) != count:
            raise InputError(
                "fit shares WGAN critic steps in the scope of a MultiWorkerMirroredStrategy without a chief, "
                f"with one device for each worker, not of this {type(strategy).__name__}"
            )
        return cls(strategy, resolver.task_id, count)

    def own(self, index: NDArray[np.int32]) -> NDArray[np.int32]:
        """Places of sampled records, with -1 for those that other workers sum."""
        return np.where(index % self.count == self.rank, index, -1).astype(np.int32)

    def check_same(self, what: str, digest: str) -> None:
        """Raise DataError if a worker has another SHA-256."""
        import tensorflow as tf

        own = np.frombuffer(bytes.fromhex(digest), np.uint32).astype(np.int64)
        if (self._summed(tf.constant(own)) != self.count * own).any():
            raise DataError(f"the workers of the strategy have different {what}: give all the same")

    def _summed(self, own: Any) -> NDArray[np.int64]:
        """A sum over all workers outside a step."""
        import tensorflow as tf

        @tf.function(autograph=False)
        def program(own: Any) -> Any:
            return self.run(lambda one: self.total([one]), own)

        try:
            return program(own)[0].numpy()
        except lost():
            raise RunError("another worker of the strategy stopped: start all workers again") from None

    def total(self, arrays: list[Any]) -> list[Any]:
        """Sums over all workers. Called in `run`, and in no loop of the program."""
        import tensorflow as tf

        context = tf.distribute.get_replica_context()
        # an argument of the program has no device of its own, which a collective needs
        return context.all_reduce(tf.distribute.ReduceOp.SUM, [tf.identity(array) for array in arrays])

    def of_first(self, arrays: list[Any]) -> list[Any]:
        """The arrays of worker 0, to the last bit. Called as `total` is."""
        import tensorflow as tf

        return self.total([array if self.rank == 0 else tf.zeros_like(array) for array in arrays])

    def run(self, step: Any, *arguments: Any) -> Any:
        """The value of ``step`` on this worker."""
        return self.strategy.run(step, args=arguments)


def lost() -> tuple[type[Exception], ...]:
    """The errors of TensorFlow where another worker has stopped."""
    from tensorflow import errors

    return errors.UnavailableError, errors.AbortedError, errors.CancelledError, errors.InternalError


def shared_key() -> int | None:
    """128 secret random bits that all workers have, None where one process works alone.

    Each worker draws as many, and the sum is taken modulo 2^128 in parts of 32 bits.
    """
    workers = Workers.present()
    if workers is None:
        return None
    import tensorflow as tf

    drawn = tf.constant([secrets.randbits(32) for _ in range(4)], tf.int64)
    return sum((int(part) % 2**32) << (32 * i) for i, part in enumerate(workers._summed(drawn)))
