"""What a table is: schema, public grids, conforming, encoder, reading and writing.

The names below are loaded when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpsynth.table.column import Column
    from dpsynth.table.conform import Conformed
    from dpsynth.table.encoder import Encoder
    from dpsynth.table.grid import Grid
    from dpsynth.table.io import read_table, write_table
    from dpsynth.table.layout import Layout
    from dpsynth.table.marginals import Marginals
    from dpsynth.table.schema import Schema, require_reviewed
    from dpsynth.table.schema_inference import infer

_HOMES = {
    "Column": "column",
    "Conformed": "conform",
    "Encoder": "encoder",
    "Grid": "grid",
    "Layout": "layout",
    "Marginals": "marginals",
    "Schema": "schema",
    "infer": "schema_inference",
    "read_table": "io",
    "require_reviewed": "schema",
    "write_table": "io",
}

__all__ = [
    "Column",
    "Conformed",
    "Encoder",
    "Grid",
    "Layout",
    "Marginals",
    "Schema",
    "infer",
    "read_table",
    "require_reviewed",
    "write_table",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value  # once imported, `infer` must stay the function, not become the module
    return value
