"""What a table is: schema, public grids, conforming, encoder, reading and writing.

The names below are loaded when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpsynth.table.column import Column
    from dpsynth.table.conform import Conformed
    from dpsynth.table.csv_format import CsvFormat
    from dpsynth.table.io import read_table, write_table
    from dpsynth.table.parquet import ParquetTable
    from dpsynth.table.schema import Schema, require_reviewed
    from dpsynth.table.schema_inference import infer

_HOMES = {
    "Column": "column",
    "Conformed": "conform",
    "CsvFormat": "csv_format",
    "ParquetTable": "parquet",
    "Schema": "schema",
    "infer": "schema_inference",
    "read_table": "io",
    "require_reviewed": "schema",
    "write_table": "io",
}

__all__ = [
    "Column",
    "Conformed",
    "CsvFormat",
    "ParquetTable",
    "Schema",
    "infer",
    "read_table",
    "require_reviewed",
    "write_table",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
