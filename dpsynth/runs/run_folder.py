"""A run's folder opened again: its report, its configuration, and both parts of the real table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from dpsynth.errors import ConfigError, DataError, InputError
from dpsynth.report.folder import EVALUATION, REPORT_JSON, load
from dpsynth.report.run_report import RunReport
from dpsynth.runs.checkpoints import checkpoint_folder, waits
from dpsynth.runs.config import EvaluateConfig, RunConfig
from dpsynth.runs.preflight import load_table, split_table
from dpsynth.table.csv_format import OURS
from dpsynth.table.io import read_table

if TYPE_CHECKING:
    from dpsynth.datasets.table import Table


#: files of a run, beside those of its report
SYNTHETIC, MODEL = "synthetic.csv", "model"


@dataclass(frozen=True)
class OpenedRun:
    """What a run left.

    Attributes
    ----------
    folder : Path
    report : RunReport
    config : RunConfig
        Without seed.
    """

    folder: Path
    report: RunReport
    config: RunConfig

    def parts(self) -> tuple[pd.DataFrame, Table, Table]:
        """Read the synthetic table, the training part and the held-out part.

        Raises
        ------
        InputError
            If there is no synthetic table.
        DataError
            If the schema is not the run's any more, or a file cannot be read.
        """
        made = self.folder / SYNTHETIC
        if not made.is_file():
            raise InputError(
                f"{self.folder} holds no {SYNTHETIC}; `dpsynth sample {self.folder} -n N --out {made}` "
                "draws one"
            )
        train, test = split_table(self.config, load_table(self.config))
        if train.schema.digest() != self.report.table.get("schema_sha256"):
            data = self.config.data
            schema = f"the card of {self.config.dataset}" if data is None else data.schema_path
            raise DataError(f"{self.folder} was made with another schema than {schema} is now")
        return read_table(made, train.schema, OURS), train, test


def folder_of(folder: str | Path) -> Path:
    """Return the folder of a run; raise InputError, saying what it is, unless `dpsynth run` wrote it."""
    folder = Path(folder)
    if folder.name in ("", ".."):  # of the folder that the user stands in, whose neighbours are looked at
        folder = folder.resolve()
    if (folder / REPORT_JSON).is_file() and not (folder / EVALUATION).is_file():
        return folder
    if waits(checkpoint_folder(folder)):
        raise InputError(
            f"{folder} is not there yet: its training was interrupted; go on with `dpsynth run --resume`"
        )
    raise InputError(f"{folder} is not the folder of a run: it holds no {REPORT_JSON} of `dpsynth run`")


def open_run(folder: Path, settings: Mapping[str, object] | None = None) -> OpenedRun:
    """Open a :func:`folder_of`, with other settings of its evaluation; no record is read.

    Raises
    ------
    DataError
        If its report or its ledger cannot be read.
    ConfigError
        If the configuration in the report, or a setting, is wrong.
    """
    report = load(folder)
    config = dict(report.config)
    if isinstance(model := config.get("model"), Mapping):
        # whoever reads a report must not learn the seed, so that a word stands in its place
        config["model"] = {key: value for key, value in model.items() if key != "random_state"}
    if isinstance(evaluate := config.get("evaluate"), Mapping):
        # an earlier version's settings that are gone do not keep a table from being measured again
        config["evaluate"] = {key: evaluate[key] for key in evaluate if key in EvaluateConfig.model_fields}
    try:
        known = RunConfig.from_dict(config)
    except ConfigError as problem:
        raise ConfigError(f"{folder / REPORT_JSON}: {problem}") from None
    asked = {**known.to_dict()["evaluate"], **(settings or {}), "enabled": True}
    return OpenedRun(folder, report, RunConfig.from_dict({**known.to_dict(), "evaluate": asked}))
