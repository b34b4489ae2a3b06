"""The base class of queries, from TensorFlow Privacy where it is installed.

Its Keras optimizers are refused by Keras 3; its queries work.
"""

from __future__ import annotations

from typing import Any

from dpsynth.errors import RunError
from dpsynth.optional import tf_privacy_module

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
    try:
        return tf_privacy_module("dp_query.dp_query").SumAggregationDPQuery
    except ImportError:
        return _Absent
