"""TensorFlow without its start-up messages, which no setting of its own keeps off stderr."""

from __future__ import annotations

import os
import sys


def load_tensorflow_quietly() -> None:
    """Import TensorFlow and look for GPUs with the process's error output turned away meanwhile.

    The messages are written by C++ code to the file descriptor, past Python's ``sys.stderr``. Does nothing
    where TensorFlow has been imported already.
    """
    if "tensorflow" in sys.modules:
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        import tensorflow as tf

        tf.config.list_physical_devices("GPU")
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
