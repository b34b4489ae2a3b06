"""``dpsynth evaluate``: a synthetic table measured against real ones, or a run measured again.

``dpsynth report``: the page of a finished run or evaluation, for its owner or for everybody, and its public
record.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from dpsynth import progress
from dpsynth.errors import ConfigError, DataError, InputError
from dpsynth.files.codec import to_plain
from dpsynth.files.storage import claimed, dump_json, require_free_file, write_text
from dpsynth.files.text import read_yaml
from dpsynth.runs.commands import console
from dpsynth.runs.commands.console import read_named
from dpsynth.runs.commands.run import end_of, judgement
from dpsynth.table.csv_format import CsvFormat

if TYPE_CHECKING:
    import pandas as pd

    from dpsynth.evaluation.results import Evaluation
    from dpsynth.report.run_report import RunReport
    from dpsynth.runs.folder import RunFolder
    from dpsynth.runs.pipeline import Origin
    from dpsynth.table.schema import TableSchema


_FILES = "evaluation.json, evaluation.md and report.html"


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
    config: Annotated[
        Path | None,
        Option(help="YAML file of what is measured: outcome, effects, groups and other keys of `evaluate`."),
    ] = None,
    seed: Annotated[int | None, Option(help="Seed of models and subsamples.", min=0)] = None,
    out: Annotated[
        Path | None, Option(help="Folder for evaluation.json, evaluation.md and report.html.")
    ] = None,
    force: console.ForceFlag = False,
) -> None:
    """Measure utility, replication, similarity, neighbours and disclosure of any tool's synthetic table.

    The table is compared with real records, so its numbers are confidential. Without --test, memorisation
    cannot be separated from coincidence. With --model or --ledger the page starts with the guarantee.
    With RUN, the real table is read and split as in the run's configuration. The run's report is written
    again. Keys of --config are those of `evaluate` in a run's YAML file.
    """
    from dpsynth.evaluation.evaluators import evaluate_tables
    from dpsynth.evaluation.tables import Tables
    from dpsynth.report.run_report import RunReport
    from dpsynth.runs.config import EvaluateConfig
    from dpsynth.runs.folder import RunFolder

    asked = {} if config is None else read_yaml(config, _settings, error=ConfigError)
    asked |= {} if seed is None else {"seed": seed}
    if run is not None:
        of_tables: dict[str, object] = {
            "--synthetic": synthetic,
            "--train": train,
            "--test": test,
            "--schema": schema,
        }
        others = {"--model": model, "--ledger": ledger, "--delta": delta, "--out": out}
        console.refuse(of_tables | others, f"the folder of a run, {run}")
        _again(run, asked, force=force)
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
        settings = EvaluateConfig.of(**asked)
        settings.check(known.levels)
        start = time.perf_counter()
        made, real = _made(synthetic, known), read_named(train, known)
        held_out = None if test is None else read_named(test, known)
        loaded = time.perf_counter()
        with progress.stage_bar() as stages:
            declared = () if origin is None else origin.studies
            tables = Tables.of(made, train=real, test=held_out, schema=known, declared=declared)
            result = evaluate_tables(tables, settings, stages)
        seconds = {"load": loaded - start, "evaluate": time.perf_counter() - loaded}
        report = RunReport.of_evaluation(result)
        if origin is not None:
            files = {"path": train, "schema": schema}
            told: dict[str, object] = {
                "data": {name: str(path.resolve()) for name, path in files.items() if path is not None}
            }
            if origin.model:
                told["model"] = dict(origin.model)
            told["evaluate"] = settings.model_dump(mode="json", exclude_none=True)
            of_table = origin.schema or known
            report = origin.report(
                of_table,
                name=of_table.name or train.stem,
                outcome=result.settings.get("outcome"),
                size=known.sizes(made),
                config=told,
                seconds=seconds,
                evaluation=result,
            )
        if out is not None:
            _write(out, report, force=force)
    _show(result, out)


def _settings(record: Any) -> dict[str, object]:
    """The keys of a file of settings, checked."""
    from dpsynth.runs.config import EvaluateConfig

    if not isinstance(record, Mapping):
        raise ConfigError("a mapping of keys is required, such as outcome and groups")
    asked = {str(name): value for name, value in record.items()}
    try:
        EvaluateConfig.of(**asked)
    except InputError as problem:
        raise ConfigError(str(problem)) from None
    return asked


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


def _again(run: Path, asked: dict[str, object], *, force: bool) -> None:
    from dpsynth.runs.evaluation import judge_again

    with progress.stage_bar() as stages:
        done = judge_again(run, force=force, settings=asked, stages=stages)
    if done.report.evaluation is not None:
        _show(done.report.evaluation, run, files="report.json, report.md and report.html")
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


def _show(result: Evaluation, out: Path | None, *, files: str = _FILES) -> None:
    from dpsynth.report.verdicts.rules import judge

    # the whole is in the folder; a terminal has room for what it means
    lines = [*judgement(result), f"wrote {files} to {out}"]
    shown = _markdown(result).rstrip("\n") if out is None else "\n".join(lines)
    record = result.to_dict() | {"verdicts": [asdict(verdict) for verdict in judge(result)]}
    console.emit(record, shown)


def _markdown(result: Evaluation) -> str:
    from dpsynth.report.page import section_lines
    from dpsynth.report.quality import subgroup_section, table_one_section
    from dpsynth.report.run_report import RunReport

    report = RunReport.of_evaluation(result)
    said = ["## In plain words (internal)", "", *judgement(result), ""]
    sections = (table_one_section(report), subgroup_section(report))
    told = [line for section in sections for line in section_lines(section)]
    return "\n".join([*said, *told, result.to_markdown(level=2)])


class Mode(StrEnum):
    """What a report shows, and who may read it."""

    INTERNAL = "internal"
    RELEASE = "release"
    REGISTRY = "registry"
    STUDIES = "studies"


def draw_report(
    folder: Annotated[Path, Argument(help="Folder written by `dpsynth run` or `dpsynth evaluate --out`.")],
    mode: Annotated[
        Mode,
        Option(
            help="`internal` shows everything, `release` only what may be shared. `registry` writes the "
            "public record, `studies` prints the private estimates of a run or a model."
        ),
    ] = Mode.INTERNAL,
    out: Annotated[
        Path | None,
        Option(help="File to write. Default: `report.html`, `release.html` or `registry.json` in FOLDER."),
    ] = None,
    force: console.ForceFlag = False,
) -> None:
    """Write one self-contained HTML page: guarantee, cost, quality, plots and model card.

    It reads results only, never a table of real records. With `--mode release`, the page has no number that
    was computed from real records without noise. `croissant.json` then describes the synthetic table for
    catalogues. With `--mode registry`, a JSON file follows the Differential Privacy Deployments Registry. It
    names the fields that are left to complete.
    """
    from dpsynth.runs.folder import RunFolder

    run = RunFolder(folder)
    if mode is Mode.STUDIES:
        if out is not None:
            raise InputError("--out does not go with --mode studies, which prints")
        _print_studies(run)
    elif mode is Mode.REGISTRY:
        _write_record(RunFolder.of_run(folder), run.registry if out is None else out, force=force)
    else:
        _write_page(run, "release" if mode is Mode.RELEASE else "internal", out, force=force)


def _print_studies(run: RunFolder) -> None:
    model = run.load_model()
    if not model.estimates_:
        raise InputError(f"the model of {run.path} holds no study: none was pre-specified before its fit")
    guarantee = model.guarantee()
    result = {
        "estimates": [to_plain(estimates) for estimates in model.estimates_],
        "effects": {estimates.study: estimates.effects() for estimates in model.estimates_},
        "guarantee": guarantee.to_dict(),
    }
    console.emit(result, "\n".join([*console.estimate_tables(model.estimates_), str(guarantee)]))


def _write_record(run: RunFolder, path: Path, *, force: bool) -> None:
    from dpsynth.report.catalogues import registry_record

    report = run.read_report()
    record = registry_record(report)
    require_free_file(path, force=force)
    write_text(path, dump_json(record) + "\n", shared=not report.undecided)
    to_complete = ", ".join(record["to_complete"])
    console.emit({"path": str(path), **record}, f"wrote {path}\nto complete: {to_complete}")


def _write_page(
    run: RunFolder, mode: Literal["internal", "release"], out: Path | None, *, force: bool
) -> None:
    from dpsynth.report.page import write_page

    path = run.page(mode) if out is None else out
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path}: the page is HTML. Name a file that ends with .html")
    record = run.read_report()
    require_free_file(path, force=force)
    try:
        write_page(record, path, mode)
        if mode == "release" and run.synthetic.is_file() and run.report_json.is_file():
            run.write_croissant(record)
    except OSError as problem:
        raise InputError(f"{path} cannot be written ({problem.strerror or problem})") from None
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as problem:
        if isinstance(problem, InputError):
            raise
        raise DataError(f"{run.path}: a detail of its evaluation is damaged ({problem!r})") from None
    size = path.stat().st_size
    result = {"path": str(path), "mode": mode, "bytes": size}
    console.emit(result, f"wrote {path} ({size / 1e6:.1f} MB, {mode})")
