"""The content of a model's file, and of a checkpoint's."""

from __future__ import annotations

from dataclasses import dataclass

from dpsynth.errors import DataError
from dpsynth.files.codec import record
from dpsynth.privacy.ledger import Ledger
from dpsynth.synthesis.model import GeneratorModel
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.parts.part import Parts
from dpsynth.wgan.checkpoint import Interrupted
from dpsynth.wgan.history import TrainingHistory
from dpsynth.wgan.snapshots import snapshots_fit


@record
@dataclass(frozen=True, eq=False)
class SavedFit:
    """A fit, with its unfinished training in a private checkpoint and without it in a model.

    ``n``, ``delta``: as the estimator's attributes.
    ``parts``: what was read, with its noise, for tables to combine.
    ``guarantee``: in words, for readers of the file.
    """

    params: FitOptions
    n: float
    delta: float
    guarantee: str
    ledger: Ledger
    history: TrainingHistory
    model: GeneratorModel
    parts: Parts
    interrupted: Interrupted | None = None

    def __post_init__(self) -> None:
        if not self.ledger.entries:
            raise DataError("its ledger is empty, so nothing is known of what it cost")
        model, encoder, network = self.model, self.model.encoder, self.model.base_model
        told = model.declared_schema
        fits = encoder.schema == model.schema.ungrouped.modelled == told.levels.ungrouped.modelled
        fits &= bool(model.schema.groups) == (model.codes is not None)
        fits &= tuple(grid.column for grid in encoder.grids) == encoder.schema.columns
        if network is not None:
            shapes = [(len(grid),) for grid in network.cells]
            fits &= [(grid.size,) for grid in encoder.grids] == shapes
            fits &= [binning.labels.shape for binning in network.binnings] == shapes
        schemas = (part.schema.levels.ungrouped.modelled for part in self.parts if hasattr(part, "schema"))
        fits &= all(schema == encoder.schema for schema in schemas)
        fits &= snapshots_fit(self.history.snapshots, encoder)
        for study in model.studies:
            design, declared = study.design, study.declared
            fits &= design.schema == declared.table(told) and design.model == declared.effects(told)
            fits &= design.patients == declared.clusters(told)
        if not fits:
            raise DataError("its parts are of different schemas")
