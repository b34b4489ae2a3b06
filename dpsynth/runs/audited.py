"""What of a run or of its configuration an auditor needs: schema and options, and for a black box records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from dpsynth.datasets.split import training_schema
from dpsynth.errors import InputError
from dpsynth.runs.attacked import Generator
from dpsynth.runs.config import RunConfig
from dpsynth.runs.opened import open_run, run_folder
from dpsynth.runs.pipeline import build_model, load_table, split_table
from dpsynth.runs.preflight import check_run
from dpsynth.synthesis.options import FitOptions
from dpsynth.table.schema import Schema


@dataclass(frozen=True)
class ToAudit:
    """A configuration to be audited.

    Attributes
    ----------
    config : RunConfig
    schema : Schema
        Of the training part.
    options : FitOptions
    """

    config: RunConfig
    schema: Schema
    options: FitOptions

    def records(self) -> pd.DataFrame:
        """Read the training part: private records, for a black box alone."""
        train, _ = split_table(self.config, load_table(self.config))
        return train.frame

    def generator(self, n: int) -> Generator:
        """The configuration's generator of ``n`` records."""
        return Generator(self.config.to_dict(), self.schema, n)

    @property
    def identity(self) -> dict[str, Any]:
        """What an audit depends on, as plain data."""
        record = self.config.to_dict()
        return {
            "configuration": {key: record[key] for key in record if key not in ("evaluate", "sample")},
            "schema": self.schema.digest(),
        }


def to_audit(path: str | Path) -> ToAudit:
    """Read a YAML file, or the configuration in the folder of a run; no record is read.

    Raises
    ------
    InputError
        If it is neither, the configuration is wrong, or it asks for no privacy.
    """
    path = Path(path)
    config = open_run(run_folder(path)).config if path.is_dir() else RunConfig.from_yaml(path)
    options = build_model(config).validate()
    schema = training_schema(check_run(config), config.split.test_fraction)
    if options.epsilon is None:
        raise InputError(f"{path}: model.epsilon is null, and a run without noise promises nothing to audit")
    return ToAudit(config, schema, options)
