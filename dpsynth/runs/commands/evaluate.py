"""``dpsynth evaluate``: a synthetic table measured against real ones, or a run measured again.

``dpsynth report``: the page of a finished run or evaluation, for its owner or for everybody.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from dpsynth import progress
from dpsynth.errors import DataError, InputError
from dpsynth.files.storage import claimed, dump_json, require_free_file, write_text
from dpsynth.runs.commands import console
from dpsynth.runs.commands.console import CsvFormat, read_named, reads_tables
from dpsynth.runs.commands.run import end_of, judgement

if TYPE_CHECKING:
    import pandas as pd

    from dpsynth.evaluation.results import Evaluation
    from dpsynth.report.run_report import RunReport
    from dpsynth.runs.pipeline import Origin
    from dpsynth.table.schema import TableSchema


# ------------------------------------------------------------------------------------------------
# ``dpsynth registry``: the public record of a synthetic table, for a registry of deployments.


def print_record(
    folder: Annotated[Path, Argument(help="Folder of a run.")],
    contact: Annotated[
        str, Option(help="Whom readers may ask: a name, an address or both. Default: as in the run.")
    ] = "",
    curator: Annotated[
        list[str] | None,
        Option(
            help="Person or organisation that holds the real records. Repeatable. Default: as in the run."
        ),
    ] = None,
    use: Annotated[str, Option(help="Intended use of the synthetic table.")] = "",
    region: Annotated[str, Option(help="Country or region that the table is about.")] = "",
    out: Annotated[Path | None, Option(help="JSON file to write. By default the record is printed.")] = None,
    force: console.ForceFlag = False,
) -> None:
    """Public record of a synthetic table as JSON, after the Differential Privacy Deployments Registry.

    Privacy unit, neighbouring datasets, epsilon, delta, total variation, noisy statistics and software. No
    table of real records is read. The record names the fields that are left to complete.
    """
    from dpsynth.report.catalogues import registry_record
    from dpsynth.runs.folder import RunFolder

    report = RunFolder.of_run(folder).read_report()
    record = registry_record(report, contact, curators=curator or (), use=use, region=region)
    if out is None:
        console.emit(record, "", as_json=True)
        return
    require_free_file(out, force=force)
    write_text(out, dump_json(record) + "\n", shared=not report.undecided)
    lines = [f"wrote {out}"]
    lines += [f"to complete: {', '.join(record['to_complete'])}"] if record["to_complete"] else []
    console.emit({}, "\n".join(lines), as_json=False)


_FILES = "evaluation.json, evaluation.md and report.html"


@reads_tables
def evaluate_table(
    run: Annotated[Path | None, Argument(help="Folder of a run, to evaluate it again.")] = None,
    synthetic: Annotated[Path | None, Option(help="Synthetic table.")] = None,
    train: Annotated[Path | None, Option(help="Real records it was made from.")] = None,
    schema: Annotated[Path | None, Option(help="YAML file. Default: the schema of --model.")] = None,
    test: Annotated[Path | None, Option(help="Real records held out.")] = None,
    model: Annotated[
        Path | None, Option(help="Folder of the model or run that the table was drawn from.")
    ] = None,
    ledger: Annotated[
        Path | None, Option(help="ledger.json of the table, where there is no --model.")
    ] = None,
    delta: Annotated[
        float | None, Option(help="Delta at which epsilon is reported. Default: the ledger's own.")
    ] = None,
    outcome: Annotated[str | None, Option(help="Column that classifiers predict.")] = None,
    effects: Annotated[
        list[str] | None, Option(help="Regression to replicate, such as 'logistic: death ~ age + sex'.")
    ] = None,
    constraint: Annotated[list[str] | None, Option(help="Rule to count, such as 'low <= high'.")] = None,
    metric: Annotated[str | None, Option(help="euclidean, gower or hamming.")] = None,
    group: Annotated[
        list[str] | None,
        Option(help="Column whose subgroups are compared, repeatable. Default: sex and age."),
    ] = None,
    level: Annotated[float | None, Option(help="Level of the confidence intervals.")] = None,
    seed: Annotated[int | None, Option(help="Seed of models and subsamples.", min=0)] = None,
    records: Annotated[str | None, Option(help="Records of each table for slow measures: N or all.")] = None,
    out: Annotated[
        Path | None, Option(help="Folder for evaluation.json, evaluation.md and report.html.")
    ] = None,
    force: console.ForceFlag = False,
    as_json: console.JsonFlag = False,
    *,
    csv_format: CsvFormat,
) -> None:
    """Measure utility, replication, similarity, neighbours and disclosure of any tool's synthetic table.

    --sep, --decimal and --encoding describe the file of real records.

    The table is compared with real records, so its numbers are confidential. Without --test, memorisation
    cannot be separated from coincidence. With --model or --ledger the page starts with the guarantee.
    With RUN, the real table is read and split as in the run's configuration. The run's report is written
    again.
    """
    from dpsynth.evaluation.evaluators import evaluate_tables
    from dpsynth.evaluation.tables import Tables
    from dpsynth.report.run_report import RunReport
    from dpsynth.runs.config import EvaluateConfig
    from dpsynth.runs.folder import RunFolder

    asked: dict[str, object] = {
        "seed": seed,
        "effects": effects,
        "constraints": constraint,
        "metric": metric,
        "groups": group,
        "level": level,
        "records": int(records) if records is not None and records.isdecimal() else records,
    }
    asked = {name: value for name, value in asked.items() if value is not None}
    if run is not None:
        of_tables = {"--synthetic": synthetic, "--train": train, "--test": test, "--schema": schema}
        others = {"--model": model, "--ledger": ledger, "--delta": delta, "--outcome": outcome, "--out": out}
        of_files = {f"--{name}": sign for name, sign in asdict(csv_format).items()}
        console.refuse(of_tables | others | of_files, f"the folder of a run, {run}")
        _again(run, asked, force=force, as_json=as_json)
        return
    if synthetic is None or train is None:
        absent = "--synthetic" if synthetic is None else "--train"
        raise InputError(f"{absent} is needed, or the folder of a run")
    if model is not None and (ledger is not None or delta is not None):
        name = "--delta" if ledger is None else "--ledger"
        raise InputError(f"{name} does not go with --model, which holds its own")
    if ledger is None and delta is not None:
        raise InputError("--delta goes with --ledger")
    claim = (
        nullcontext() if out is None else claimed(out, force=force, mark=RunFolder(out).evaluation_json.name)
    )
    with claim:
        known, origin = _known(schema, model, ledger, delta)
        settings = EvaluateConfig.of(**asked, outcome=outcome)
        settings.check(known.levels)
        start = time.perf_counter()
        made, real = _made(synthetic, known), read_named(train, known, csv_format)
        held_out = None if test is None else read_named(test, known, csv_format)
        loaded = time.perf_counter()
        with progress.stage_bar() as stages:
            declared = () if origin is None else origin.studies
            tables = Tables.of(made, train=real, test=held_out, schema=known, declared=declared)
            result = evaluate_tables(tables, settings, stages)
        seconds = {"load": loaded - start, "evaluate": time.perf_counter() - loaded}
        report = RunReport.of_evaluation(result)
        if origin is not None:
            files = {"path": train, "schema": schema}
            config: dict[str, object] = {
                "data": {name: str(path.resolve()) for name, path in files.items() if path is not None}
            }
            if origin.model:
                config["model"] = dict(origin.model)
            config["evaluate"] = settings.model_dump(mode="json", exclude_none=True)
            of_table = origin.schema or known
            report = origin.report(
                of_table,
                name=of_table.name or train.stem,
                outcome=result.settings.get("outcome"),
                size=known.sizes(made),
                config=config,
                seconds=seconds,
                evaluation=result,
            )
        if out is not None:
            _write(out, report, force=force)
    _show(result, out, as_json=as_json)


def _made(path: Path, schema: TableSchema) -> pd.DataFrame:
    """The synthetic table. It stays as its file has it if the schema does not allow a cell: a finding."""
    from dpsynth.table.conform import NotAllowed
    from dpsynth.table.files import read_cells

    try:
        return read_named(path, schema, CsvFormat())
    except NotAllowed:
        if path.is_dir():
            raise
        return read_cells(path, schema.columns, CsvFormat())[0]


def _again(run: Path, asked: dict[str, object], *, force: bool, as_json: bool) -> None:
    from dpsynth.runs.evaluation import judge_again

    with progress.stage_bar() as stages:
        done = judge_again(run, force=force, settings=asked, stages=stages)
    if done.report.evaluation is not None:
        _show(done.report.evaluation, run, as_json=as_json, files="report.json, report.md and report.html")
    end_of(done)


def _known(
    schema: Path | None, model: Path | None, ledger: Path | None, delta: float | None
) -> tuple[TableSchema, Origin | None]:
    """The schema of the tables, and how the synthetic table was made."""
    from dpsynth.patients.schema import read_schema
    from dpsynth.runs.folder import RunFolder
    from dpsynth.runs.pipeline import Origin

    origin = None
    if model is not None:
        origin = Origin.of_model(RunFolder(model).load_model())
    elif ledger is not None:
        origin = Origin.of_ledger(ledger, delta)
    if schema is None:
        if origin is None or origin.schema is None:
            raise InputError("--schema is needed, or --model, which holds it")
        return origin.schema, origin
    known = read_schema(schema)
    if origin is not None:
        origin.check_schema(known, schema)
    return known, origin


def _write(out: Path, report: RunReport, *, force: bool) -> None:
    from dpsynth.files import storage
    from dpsynth.files.storage import dump_json, finite, sealed, write_text
    from dpsynth.runs.folder import RunFolder

    def fill(path: Path) -> None:
        folder = RunFolder(path)
        write_text(folder.evaluation_json, dump_json(sealed(finite(report.measured.to_dict()))) + "\n")
        write_text(folder.evaluation_md, _markdown(report.measured))
        if report.ledger is not None:
            report.ledger.save(folder.ledger)
            folder.write_json(report)
        folder.write_page(report)

    storage.write_folder(out, fill, replace=force)


def _show(result: Evaluation, out: Path | None, *, as_json: bool, files: str = _FILES) -> None:
    from dpsynth.report.verdicts.rules import judge

    # the whole is in the folder; a terminal has room for what it means
    lines = [*judgement(result), f"wrote {files} to {out}"]
    shown = _markdown(result).rstrip("\n") if out is None else "\n".join(lines)
    record = result.to_dict() | {"verdicts": [asdict(verdict) for verdict in judge(result)]}
    console.emit(record, shown, as_json=as_json)


def _markdown(result: Evaluation) -> str:
    from dpsynth.report.page import section_lines
    from dpsynth.report.run_report import RunReport
    from dpsynth.report.sections import subgroup_section
    from dpsynth.report.similarity import table_one_section

    report = RunReport.of_evaluation(result)
    said = ["## In plain words (internal)", "", *judgement(result), ""]
    sections = (table_one_section(report), subgroup_section(report))
    told = [line for section in sections for line in section_lines(section)]
    return "\n".join([*said, *told, result.to_markdown(level=2)])


class Mode(StrEnum):
    """Who may read the page."""

    INTERNAL = "internal"
    RELEASE = "release"


def draw_report(
    folder: Annotated[Path, Argument(help="Folder written by `dpsynth run` or `dpsynth evaluate --out`.")],
    mode: Annotated[
        Mode, Option(help="`internal` shows everything, `release` only what may be shared.")
    ] = Mode.INTERNAL,
    out: Annotated[
        Path | None, Option(help="HTML file. Default: `FOLDER/report.html` or `FOLDER/release.html`.")
    ] = None,
    force: console.ForceFlag = False,
    as_json: console.JsonFlag = False,
) -> None:
    """Write one self-contained HTML page: guarantee, cost, quality, plots and model card.

    It reads results only, never a table of real records. With `--mode release`, the page has no number that
    was computed from real records without noise. `croissant.json` then describes the synthetic table for
    catalogues.
    """
    from dpsynth.report.page import write_page
    from dpsynth.runs.folder import RunFolder

    run = RunFolder(folder)
    path = out if out is not None else run.page(mode.value)
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path}: the page is HTML. Name a file that ends with .html")
    record = run.read_report()
    require_free_file(path, force=force)
    try:
        write_page(record, path, mode.value)
        if mode is Mode.RELEASE and run.synthetic.is_file() and run.report_json.is_file():
            run.write_croissant(record)
    except OSError as problem:
        raise InputError(f"{path} cannot be written ({problem.strerror or problem})") from None
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as problem:
        if isinstance(problem, InputError):
            raise
        raise DataError(f"{folder}: a detail of its evaluation is damaged ({problem!r})") from None
    size = path.stat().st_size
    result = {"path": str(path), "mode": mode.value, "bytes": size}
    console.emit(result, f"wrote {path} ({size / 1e6:.1f} MB, {mode.value})", as_json=as_json)
