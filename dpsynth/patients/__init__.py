"""Tables whose patients have several rows: their schema, files, drafts and histories.

The names below are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsynth.lazy import first_used

if TYPE_CHECKING:
    from dpsynth.patients.histories import patient_table
    from dpsynth.patients.inference import infer_patient_schema

_HOMES = {
    "infer_patient_schema": "dpsynth.patients.inference",
    "patient_table": "dpsynth.patients.histories",
}

__all__ = ["infer_patient_schema", "patient_table"]

__getattr__ = first_used(__name__, _HOMES)
