"""A run evaluated again: same table, same split, new measures; nothing is fitted or paid for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from dpsynth.errors import InputError
from dpsynth.evaluation.records import Evaluation
from dpsynth.files.locks import locked
from dpsynth.report.folder import REPORT_HTML, REPORT_JSON, REPORT_MD, write_json, write_markdown
from dpsynth.report.page.html import write_page
from dpsynth.runs.attempts import attempts_on
from dpsynth.runs.opened import open_run, run_folder
from dpsynth.runs.pipeline import EVALUATED_ROWS, MODEL, compared, evaluate_parts
from dpsynth.runs.preflight import check_run
from dpsynth.synthesis.synthesizer import DPWGANGP


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
    folder = run_folder(folder)
    with locked(folder):
        run = open_run(folder, settings)
        report, config = run.report, run.config
        if report.evaluation is not None and not force:
            raise InputError(f"{folder} holds an evaluation; add --force to replace it")
        check_run(config)
        synthetic, train, test = run.parts()
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
