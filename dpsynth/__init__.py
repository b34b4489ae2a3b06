"""Differentially private synthetic health tables, with a privacy ledger.

Public names are loaded at first use. ``import dpsynth`` is therefore quick and loads no TensorFlow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsynth.lazy import first_used
from dpsynth.version import __version__

if TYPE_CHECKING:
    from dpsynth import datasets, errors, evaluation, privacy, report, table
    from dpsynth.evaluation import evaluate
    from dpsynth.patients.schema import PatientSchema
    from dpsynth.runs.forecast import plan
    from dpsynth.studies.combining import combine
    from dpsynth.studies.study import Study
    from dpsynth.synthesis.generators import load
    from dpsynth.synthesis.marginals import DPMarginals
    from dpsynth.synthesis.matching import DPCriticMatching
    from dpsynth.synthesis.parts.studies import Studies
    from dpsynth.synthesis.wgan_gp import DPWGANGP
    from dpsynth.table.inference import infer_schema
    from dpsynth.table.schema import Column, Schema
    from dpsynth.wgan.settings import TrainingSettings

_HOMES = {
    "DPMarginals": "dpsynth.synthesis.marginals",
    "DPWGANGP": "dpsynth.synthesis.wgan_gp",
    "DPCriticMatching": "dpsynth.synthesis.matching",
    "load": "dpsynth.synthesis.generators",
    "combine": "dpsynth.studies.combining",
    "plan": "dpsynth.runs.forecast",
    "evaluate": "dpsynth.evaluation",
    "infer_schema": "dpsynth.table.inference",
    "Schema": "dpsynth.table.schema",
    "Column": "dpsynth.table.schema",
    "PatientSchema": "dpsynth.patients.schema",
    "TrainingSettings": "dpsynth.wgan.settings",
    "Studies": "dpsynth.synthesis.parts.studies",
    "Study": "dpsynth.studies.study",
    "datasets": "dpsynth.datasets",
    "errors": "dpsynth.errors",
    "evaluation": "dpsynth.evaluation",
    "privacy": "dpsynth.privacy",
    "report": "dpsynth.report",
    "table": "dpsynth.table",
}

__all__ = [
    "DPWGANGP",
    "Column",
    "DPCriticMatching",
    "DPMarginals",
    "PatientSchema",
    "Schema",
    "Studies",
    "Study",
    "TrainingSettings",
    "__version__",
    "combine",
    "datasets",
    "errors",
    "evaluate",
    "evaluation",
    "infer_schema",
    "load",
    "plan",
    "privacy",
    "report",
    "table",
]


__getattr__ = first_used(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
