"""A run evaluated again: same table, same split, new measures; nothing is fitted or paid for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dpsynth.runs.config import RunConfig
from dpsynth.errors import ConfigError, DataError, InputError
from dpsynth.evaluation.records import Evaluation
from dpsynth.files.atomic import read_json, write_text
from dpsynth.files.locks import locked
from dpsynth.runs.pipeline import (
    EVALUATED_ROWS,
    REPORT_HTML,
    REPORT_JSON,
    REPORT_MD,
    SYNTHETIC,
    checkpoint_folder,
    evaluate_parts,
    load_table,
    split_table,
)
from dpsynth.runs.preflight import check_run
from dpsynth.report.load import ReportSource
from dpsynth.report.page.page import write_page
from dpsynth.report.run import RunReport
from dpsynth.table.io import read_table


def evaluate_again(
    folder: str | Path,
    *,
    force: bool = False,
    settings: Mapping[str, object] | None = None,
    stages: Callable[[str, float], None] | None = None,
) -> Evaluation:
    """Evaluate a run's synthetic table again and write the run's report and page anew.

    The real table is read and split as the run's configuration says; table, model and ledger stay.

    Parameters
    ----------
    folder : path
        Of a run whose evaluation failed, was interrupted or switched off, or is to be replaced.
    force : bool
        Whether an evaluation that is there may be replaced.
    settings : dict, optional
        Entries of the configuration's section ``evaluate`` to change.
    stages : callable, optional
        Receives the name of each stage and the part of it that is done.

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        If the folder is not a run's, holds an evaluation that may not be replaced, or a setting is wrong.
    DataError
        If the schema is not the run's any more, or a file cannot be read.
    """
    folder = Path(folder)
    if folder.name in ("", ".."):  # of the folder that the user stands in, whose neighbours are looked at
        folder = folder.resolve()
    _require_run(folder)
    with locked(folder):
        record = _read_report(folder)
        if record["evaluation"] is not None and not force:
            raise InputError(f"{folder} holds an evaluation; add --force to replace it")
        config = _configuration(record, folder, settings or {})
        check_run(config)
        if not (folder / SYNTHETIC).is_file():
            raise InputError(
                f"{folder} holds no {SYNTHETIC}; `dpsynth sample {folder} -n N --out {folder / SYNTHETIC}` "
                "draws one"
            )
        train, test = split_table(config, load_table(config))
        if train.schema.digest() != record["table"]["schema_sha256"]:
            raise DataError(f"{folder} was made with another schema than {_schema_of(config)} is now")
        synthetic = read_table(folder / SYNTHETIC, train.schema)
        start = time.perf_counter()
        evaluation = evaluate_parts(config, synthetic.head(EVALUATED_ROWS), train, test, stages)
        seconds = {**record.get("seconds", {}), "evaluate": time.perf_counter() - start}
        report = RunReport(
            guarantee=record["guarantee"],
            ledger=record["ledger"],
            table={**record["table"], "synthetic_records": len(synthetic)},
            config={**record["config"], "evaluate": config.to_dict()["evaluate"]},
            evaluation=evaluation,
            versions=record.get("versions", {}),
            seconds=seconds,
            created=record.get("created"),
        )
        write_text(folder / REPORT_JSON, report.to_json())
        write_text(folder / REPORT_MD, report.to_markdown())
        write_page(ReportSource.from_run(folder), folder / REPORT_HTML, "internal")
    return evaluation


def _require_run(folder: Path) -> None:
    if (folder / REPORT_JSON).is_file() and not (folder / "evaluation.json").is_file():
        return
    if (checkpoint_folder(folder) / "checkpoint.json").is_file():
        raise InputError(
            f"{folder} is not there yet: its training was interrupted; go on with `dpsynth run --resume`"
        )
    raise InputError(f"{folder} is not the folder of a run: it holds no {REPORT_JSON} of `dpsynth run`")


def _read_report(folder: Path) -> dict[str, Any]:
    path = folder / REPORT_JSON
    record = read_json(path)
    keys = {"guarantee": str, "ledger": dict, "table": dict, "config": dict}
    if (
        not isinstance(record, dict)
        or not all(isinstance(record.get(key), kind) for key, kind in keys.items())
        or "evaluation" not in record
    ):
        raise DataError(f"{path} is not the report of a run")
    ReportSource.from_run(folder)  # refuses a ledger that is not the report's
    return record


def _configuration(record: Mapping[str, Any], folder: Path, settings: Mapping[str, object]) -> RunConfig:
    config = dict(record["config"])
    # whoever reads a report must not learn the seed, so that a word stands in its place
    config["model"] = {k: v for k, v in dict(config.get("model", {})).items() if k != "random_state"}
    try:
        known = RunConfig.from_dict(config)
    except ConfigError as problem:
        raise ConfigError(f"{folder / REPORT_JSON}: {problem}") from None
    asked = {**known.to_dict()["evaluate"], **settings, "enabled": True}
    return RunConfig.from_dict({**known.to_dict(), "evaluate": asked})


def _schema_of(config: RunConfig) -> str:
    return f"the card of {config.dataset}" if config.data is None else config.data.schema_path
