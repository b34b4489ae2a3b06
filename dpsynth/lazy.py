"""What is loaded when it is first used: public names of a package, and TensorFlow."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

from dpsynth.errors import InputError


def first_used(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Make the ``__getattr__`` of a package whose names stand in these modules (PEP 562).

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : mapping of str to str
        Module of each name, in full. A name that is a module itself has its own.
    """

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(homes[name])
        return module if homes[name] == f"{package}.{name}" else getattr(module, name)

    return load


def load_tensorflow_quietly() -> None:
    """Import TensorFlow and look for GPUs with the process's error output turned away meanwhile.

    The messages are written by C++ code to the file descriptor, past Python's ``sys.stderr``. Does nothing
    where TensorFlow has been imported already. Raises InputError where it is not installed.
    """
    if "tensorflow" in sys.modules:
        return
    if find_spec("tensorflow") is None:
        raise InputError(
            "generators wgan-gp and matching need TensorFlow, which is not installed: pip install "
            "tensorflow, or use generator marginals (DPMarginals)"
        )
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
