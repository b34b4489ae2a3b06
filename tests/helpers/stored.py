"""A record as it comes back from a file."""

from __future__ import annotations

import json
from typing import TypeVar

import numpy as np

from dpsynth.files.codec import apart, numbers, rejoined

Record = TypeVar("Record")


def read_back(value: Record) -> Record:
    """A record written out and read, without the file. All arrays have the dtypes of their hints."""
    plain, arrays = apart(value)
    own = {place: array for place, array in numbers(value) if isinstance(array, np.ndarray)}
    assert {place: array.dtype for place, array in arrays.items()} == {p: a.dtype for p, a in own.items()}
    return rejoined(type(value), json.loads(json.dumps(plain, allow_nan=False)), arrays)
