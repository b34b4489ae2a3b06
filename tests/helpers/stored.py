"""A record as it comes back from a file."""

from __future__ import annotations

import json
from typing import TypeVar

from dpsynth.files.codec import apart, together

Record = TypeVar("Record")


def read_back(value: Record) -> Record:
    """A record written out and read, without the file."""
    plain, arrays = apart(value)
    return together(type(value), json.loads(json.dumps(plain, allow_nan=False)), arrays)
