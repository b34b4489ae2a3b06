"""Tables: schema, public grids, conforming, encoder, reading and writing.

The names below are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsynth.lazy import first_used

if TYPE_CHECKING:
    from dpsynth.table.column import Column
    from dpsynth.table.conform import Conformed
    from dpsynth.table.csv_format import CsvFormat
    from dpsynth.table.dictionaries import read_dictionary
    from dpsynth.table.files import read_table, write_table
    from dpsynth.table.groups import Group
    from dpsynth.table.inference import infer_schema
    from dpsynth.table.parquet import ParquetTable
    from dpsynth.table.schema import Schema, require_reviewed

_HOMES = {
    "Column": "dpsynth.table.column",
    "Conformed": "dpsynth.table.conform",
    "CsvFormat": "dpsynth.table.csv_format",
    "Group": "dpsynth.table.groups",
    "ParquetTable": "dpsynth.table.parquet",
    "Schema": "dpsynth.table.schema",
    "infer_schema": "dpsynth.table.inference",
    "read_dictionary": "dpsynth.table.dictionaries",
    "read_table": "dpsynth.table.files",
    "require_reviewed": "dpsynth.table.schema",
    "write_table": "dpsynth.table.files",
}

__all__ = [
    "Column",
    "Conformed",
    "CsvFormat",
    "Group",
    "ParquetTable",
    "Schema",
    "infer_schema",
    "read_dictionary",
    "read_table",
    "require_reviewed",
    "write_table",
]

__getattr__ = first_used(__name__, _HOMES)
