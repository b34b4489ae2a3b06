"""Differentially private synthetic health tables, with a privacy ledger.

Public names are loaded at first use. ``import dpsynth`` is therefore quick and loads no TensorFlow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsynth.lazy import first_used
from dpsynth.version import __version__

if TYPE_CHECKING:
    from dpsynth import accounting, datasets, errors, evaluation, report, table
    from dpsynth.evaluation import evaluate
    from dpsynth.model.wgan.settings import TrainingSettings
    from dpsynth.runs.budget_plan import plan
    from dpsynth.studies.combining import combine
    from dpsynth.studies.study import Study
    from dpsynth.synthesis.budget import Shares
    from dpsynth.synthesis.generators import load
    from dpsynth.synthesis.marginals import DPMarginals
    from dpsynth.synthesis.matching import DPCriticMatching
    from dpsynth.synthesis.wgan_gp import DPWGANGP
    from dpsynth.table.patients import PatientSchema
    from dpsynth.table.schema import Column, Schema
    from dpsynth.table.schema_inference import infer_schema

_HOMES = {
    "DPMarginals": "dpsynth.synthesis.marginals",
    "DPWGANGP": "dpsynth.synthesis.wgan_gp",
    "DPCriticMatching": "dpsynth.synthesis.matching",
    "load": "dpsynth.synthesis.generators",
    "combine": "dpsynth.studies.combining",
    "plan": "dpsynth.runs.budget_plan",
    "evaluate": "dpsynth.evaluation",
    "infer_schema": "dpsynth.table.schema_inference",
    "Schema": "dpsynth.table.schema",
    "Column": "dpsynth.table.schema",
    "PatientSchema": "dpsynth.table.patients",
    "TrainingSettings": "dpsynth.model.wgan.settings",
    "Shares": "dpsynth.synthesis.budget",
    "Study": "dpsynth.studies.study",
    "accounting": "dpsynth.accounting",
    "datasets": "dpsynth.datasets",
    "errors": "dpsynth.errors",
    "evaluation": "dpsynth.evaluation",
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
    "Shares",
    "Study",
    "TrainingSettings",
    "__version__",
    "accounting",
    "combine",
    "datasets",
    "errors",
    "evaluate",
    "evaluation",
    "infer_schema",
    "load",
    "plan",
    "report",
    "table",
]


__getattr__ = first_used(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
