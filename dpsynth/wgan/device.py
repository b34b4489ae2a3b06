"""Which processor a training runs on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from pydantic import Field

from dpsynth.errors import InputError
from dpsynth.lazy import load_tensorflow_quietly

#: Name of a device, as ``GPU:0``.
Device = Annotated[str, Field(pattern=r"^(CPU|GPU):\d+$")]


@contextmanager
def on_device(name: str | None) -> Iterator[None]:
    """Run TensorFlow's operations on a device, by default the first GPU, or the processor without one.

    GPUs are given memory as it is needed, unless TensorFlow has begun to use them. By its own rule a fit
    takes nearly all of a GPU's memory from others.

    Raises
    ------
    InputError
        If TensorFlow finds no device of this name.
    """
    load_tensorflow_quietly()
    import tensorflow as tf

    found = [each.name.removeprefix("/physical_device:") for each in tf.config.list_physical_devices()]
    if name is not None and name not in found:
        raise InputError(
            f"device {name!r} was not found: TensorFlow finds {' and '.join(found)}. Leave `device` out, or "
            "install TensorFlow for GPUs with pip install 'tensorflow[and-cuda]'"
        )
    for gpu in tf.config.list_physical_devices("GPU"):
        try:
            tf.config.experimental.set_memory_growth(gpu, True)
        except (RuntimeError, ValueError):  # it is in use, or divided
            break
    with tf.device(name):
        yield


def runs_on_gpu() -> bool:
    """Whether an operation that is made now runs on a GPU."""
    import tensorflow as tf

    return "GPU" in tf.zeros([]).device
