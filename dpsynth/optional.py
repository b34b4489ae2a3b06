"""The one place that knows how TensorFlow Privacy is imported, which an installation may lack.

A plain ``import tensorflow_privacy`` fails on TensorFlow 2.16 and later, because it loads estimators that
are gone; the flag below makes the package's ``__init__`` load nothing, and submodules are imported by path.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType


def tf_privacy_module(path: str) -> ModuleType:
    """Import ``tensorflow_privacy.privacy.<path>``.

    Its Keras models and optimizers need ``TF_USE_LEGACY_KERAS=1`` in the environment before TensorFlow is
    imported, and tf-keras.

    Raises
    ------
    ImportError
        If TensorFlow Privacy is not installed.
    """
    sys.skip_tf_privacy_import = True  # type: ignore[attr-defined]
    return importlib.import_module(f"tensorflow_privacy.privacy.{path}")
