"""Tables: schema, public grids, conforming, encoder, reading and writing.

The names below are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsynth.lazy import first_used

if TYPE_CHECKING:
    from dpsynth.patients.histories import patient_table
    from dpsynth.patients.inference import infer_patient_schema
    from dpsynth.table.column import Column
    from dpsynth.table.conform import Conformed
    from dpsynth.table.csv_format import CsvFormat
    from dpsynth.table.files import read_table, write_table
    from dpsynth.table.inference import infer_schema
    from dpsynth.table.parquet import ParquetTable
    from dpsynth.table.schema import Schema, require_reviewed

_HOMES = {
    "Column": "dpsynth.table.column",
    "Conformed": "dpsynth.table.conform",
    "CsvFormat": "dpsynth.table.csv",
    "ParquetTable": "dpsynth.table.parquet",
    "Schema": "dpsynth.table.schema",
    "infer_patient_schema": "dpsynth.patients.inference",
    "infer_schema": "dpsynth.table.inference",
    "patient_table": "dpsynth.patients.histories",
    "read_table": "dpsynth.table.files",
    "require_reviewed": "dpsynth.table.schema",
    "write_table": "dpsynth.table.files",
}

__all__ = [
    "Column",
    "Conformed",
    "CsvFormat",
    "ParquetTable",
    "Schema",
    "infer_patient_schema",
    "infer_schema",
    "patient_table",
    "read_table",
    "require_reviewed",
    "write_table",
]

__getattr__ = first_used(__name__, _HOMES)
