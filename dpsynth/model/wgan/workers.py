"""WGAN critic steps that several machines share, by TensorFlow's `MultiWorkerMirroredStrategy`.

Each worker runs the whole fit in the strategy's scope, with the same random numbers. In a critic step it sums
the gradients of its own part of the sampled records. The sums of all workers are added, and then each worker
adds the same noise to the same total. So a total has noise once, and all workers have the same weights. The
sums that travel between workers have no noise: they are as secret as the records.
"""

from __future__ import annotations

import secrets
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import DataError, InputError


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
                "fit shares WGAN critic steps in the scope of a MultiWorkerMirroredStrategy, with one device "
                f"for each worker, not of this {type(strategy).__name__}"
            )
        return cls(strategy, resolver.task_id, count)

    def own(self, index: NDArray[np.int32]) -> NDArray[np.int32]:
        """Places of sampled records, with -1 for those that other workers sum."""
        return np.where(index % self.count == self.rank, index, -1).astype(np.int32)

    def check_same(self, digest: str) -> None:
        """Raise DataError if a worker has another digest. A record at two places might be summed twice."""
        import tensorflow as tf

        own = np.frombuffer(bytes.fromhex(digest), np.uint32).astype(np.int64)
        if (self._summed(tf.constant(own)) != self.count * own).any():
            raise DataError("the workers of the strategy have different tables: give all the same rows")

    def _summed(self, own: Any) -> NDArray[np.int64]:
        """A sum over all workers outside a step."""
        import tensorflow as tf

        @tf.function(autograph=False)
        def program(own: Any) -> Any:
            return self.run(lambda one: self.total([tf.identity(one)]), own)

        return program(own)[0].numpy()

    def total(self, arrays: list[Any]) -> list[Any]:
        """Sums over all workers. Called in `run`, and in no loop of the program."""
        import tensorflow as tf

        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, arrays)

    def run(self, step: Any, *arguments: Any) -> Any:
        """The value of ``step`` on this worker."""
        return self.strategy.run(step, args=arguments)


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
