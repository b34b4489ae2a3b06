"""JSON text that any reader takes: what JSON has no number for (an infinite epsilon) is null."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def finite(value: Any) -> Any:
    """Replace numbers that JSON cannot hold by None, however deep.

    Examples
    --------
    >>> finite({"epsilon": float("inf"), "entries": (1, 2.5)})
    {'epsilon': None, 'entries': [1, 2.5]}
    """
    if isinstance(value, Mapping):
        return {str(key): finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def dump_json(value: Any) -> str:
    """Return indented JSON text, letters of any alphabet as they are."""
    return json.dumps(finite(value), indent=2, ensure_ascii=False, allow_nan=False)
