"""A run evaluated again: same table, same split, new measures; nothing is fitted or paid for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from dpsynth.errors import ConfigError, DataError, InputError
from dpsynth.evaluation.records import Evaluation
from dpsynth.files.locks import locked
from dpsynth.report.folder import (
    EVALUATION,
    REPORT_HTML,
    REPORT_JSON,
    REPORT_MD,
    load,
    write_json,
    write_markdown,
)
from dpsynth.report.page.html import write_page
from dpsynth.report.run_report import RunReport
from dpsynth.runs.attempts import attempts_on
from dpsynth.runs.config import RunConfig
from dpsynth.runs.pipeline import (
    EVALUATED_ROWS,
    MODEL,
    SYNTHETIC,
    checkpoint_folder,
    compared,
    evaluate_parts,
    load_table,
    split_table,
)
from dpsynth.runs.preflight import check_run
from dpsynth.synthesis.synthesizer import DPWGANGP
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
    require_run(folder)
    with locked(folder):
        report = load(folder)
        if report.evaluation is not None and not force:
            raise InputError(f"{folder} holds an evaluation; add --force to replace it")
        config = configuration(report, folder, settings or {})
        check_run(config)
        if not (folder / SYNTHETIC).is_file():
            raise InputError(
                f"{folder} holds no {SYNTHETIC}; `dpsynth sample {folder} -n N --out {folder / SYNTHETIC}` "
                "draws one"
            )
        train, test = split_table(config, load_table(config))
        if train.schema.digest() != report.table.get("schema_sha256"):
            raise DataError(f"{folder} was made with another schema than {schema_of(config)} is now")
        synthetic = read_table(folder / SYNTHETIC, train.schema)
        start = time.perf_counter()
        first = synthetic.head(EVALUATED_ROWS)
        tables = compared(first, train, test, report.studies)
        evaluation = evaluate_parts(config, tables, stages)
        seconds = {**report.seconds, "evaluate": time.perf_counter() - start}
        attempts = report.attempts
        if config.attack.enabled:
            start = time.perf_counter()
            attempts = attempts_on(config, tables, DPWGANGP.load(folder / MODEL), stages)
            seconds["attack"] = time.perf_counter() - start
        report = replace(
            report,
            table={**report.table, "synthetic_records": len(synthetic)},
            config={**report.config, "evaluate": config.to_dict()["evaluate"]},
            evaluation=evaluation,
            attempts=attempts,
            seconds=seconds,
        )
        write_json(report, folder / REPORT_JSON)
        write_markdown(report, folder / REPORT_MD)
        write_page(report, folder / REPORT_HTML, "internal")
    return evaluation


def require_run(folder: Path) -> None:
    """Refuse a folder that `dpsynth run` did not write, saying what it is instead."""
    if (folder / REPORT_JSON).is_file() and not (folder / EVALUATION).is_file():
        return
    if (checkpoint_folder(folder) / "checkpoint.json").is_file():
        raise InputError(
            f"{folder} is not there yet: its training was interrupted; go on with `dpsynth run --resume`"
        )
    raise InputError(f"{folder} is not the folder of a run: it holds no {REPORT_JSON} of `dpsynth run`")


def configuration(report: RunReport, folder: Path, settings: Mapping[str, object]) -> RunConfig:
    """The configuration that a run's report tells, without seed, with other settings of its evaluation."""
    config = dict(report.config)
    if isinstance(model := config.get("model"), Mapping):
        # whoever reads a report must not learn the seed, so that a word stands in its place
        config["model"] = {key: value for key, value in model.items() if key != "random_state"}
    try:
        known = RunConfig.from_dict(config)
    except ConfigError as problem:
        raise ConfigError(f"{folder / REPORT_JSON}: {problem}") from None
    asked = {**known.to_dict()["evaluate"], **settings, "enabled": True}
    return RunConfig.from_dict({**known.to_dict(), "evaluate": asked})


def schema_of(config: RunConfig) -> str:
    """Where the schema of a run's table stands, for messages."""
    return f"the card of {config.dataset}" if config.data is None else config.data.schema_path
