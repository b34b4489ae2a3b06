"""Products of full float32 precision while bounds hold, and the process's own setting back afterwards.

TF32 products of a GPU round at 1e-3, outside what the bounds are widened for. Whether TensorFlow uses them is
one setting of the whole process. It is off while anybody needs it off, also in another thread, and is then
what it was before.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import tensorflow as tf

_LOCK = threading.RLock()
#: how many need it off, and what it was before the first of them
_needed, _before = 0, True


@contextmanager
def full_precision() -> Iterator[None]:
    """No products in TF32 within the block, or in a function that this decorates.

    Examples
    --------
    >>> before = tf.config.experimental.tensor_float_32_execution_enabled()
    >>> with full_precision():
    ...     tf.config.experimental.tensor_float_32_execution_enabled()
    False
    >>> tf.config.experimental.tensor_float_32_execution_enabled() == before
    True
    """
    global _needed, _before
    with _LOCK:
        _needed += 1
        if _needed == 1:
            _before = tf.config.experimental.tensor_float_32_execution_enabled()
            tf.config.experimental.enable_tensor_float_32_execution(False)
    try:
        yield
    finally:
        with _LOCK:
            _needed -= 1
            if not _needed:
                tf.config.experimental.enable_tensor_float_32_execution(_before)


def full_precision_for(owner: object) -> None:
    """No products in TF32 for as long as an object lives, whose methods other code calls."""
    held = ExitStack()
    held.enter_context(full_precision())
    weakref.finalize(owner, held.close).atexit = False
