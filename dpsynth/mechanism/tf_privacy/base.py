"""The one place where TensorFlow Privacy is imported.

A plain ``import tensorflow_privacy`` fails on TensorFlow 2.16 and later, because it loads estimators that
are gone; the flag below makes the package's ``__init__`` load nothing, and submodules are imported by path.
Its Keras optimizers are refused by Keras 3; its queries work.
"""

from __future__ import annotations

import sys
from typing import Any

from dpsynth.errors import RunError

_ABSENT = (
    "tensorflow_privacy is not installed (its releases need Python < 3.12), so the DPQuery interface is not "
    "available; everything else in dpsynth works without it"
)


class _Absent:
    """Stands in for the base class, so that the module which derives from it can be imported."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise RunError(_ABSENT)


def sum_query_base() -> Any:
    """TensorFlow Privacy's ``SumAggregationDPQuery``, or a class that says on use that it is absent."""
    sys.skip_tf_privacy_import = True  # type: ignore[attr-defined]
    try:
        from tensorflow_privacy.privacy.dp_query.dp_query import SumAggregationDPQuery
    except ImportError:
        return _Absent
    return SumAggregationDPQuery
