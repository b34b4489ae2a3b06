"""One run from a configuration to a folder: load, split, fit, sample, evaluate, report.

Everything is written into a temporary folder beside the target and renamed at the end, so that a run that
fails or is interrupted leaves nothing half-written. An interrupt during training leaves a *private*
checkpoint beside the target, from which the same run can go on once. From then on the budget is spent: where
sampling, evaluation or the page fails or is interrupted, the model, the ledger and what else is complete are
kept.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpsynth import datasets
from dpsynth.accounting.ledger.guarantee import WARNING
from dpsynth.accounting.ledger.journal import checkpoint_ledger, give_up, journalled
from dpsynth.accounting.ledger.ledger import Ledger
from dpsynth.attacks.attempt import Attempt
from dpsynth.datasets.split import training_schema
from dpsynth.errors import ConfigError, DataError, InputError
from dpsynth.evaluation.evaluators import evaluate_tables
from dpsynth.evaluation.records import Evaluation
from dpsynth.evaluation.tables import Tables
from dpsynth.files import storage
from dpsynth.files.targets import claimed
from dpsynth.regression.estimates import Estimates
from dpsynth.report.folder import REPORT_HTML, REPORT_JSON, REPORT_MD, write_json, write_markdown
from dpsynth.report.page.html import write_page
from dpsynth.report.run_report import RunReport
from dpsynth.runs.attempts import attempts_on
from dpsynth.runs.config import RunConfig
from dpsynth.runs.preflight import check_run
from dpsynth.runs.reporting import new_report
from dpsynth.synthesis.rejection import Acceptance
from dpsynth.synthesis.studies import widening_lines
from dpsynth.synthesis.synthesizer import DPWGANGP
from dpsynth.table.io import write_table

if TYPE_CHECKING:
    from dpsynth.datasets.table import Table
    from dpsynth.synthesis.synthesizer import Progress

#: files of a finished run, beside those of its report
SYNTHETIC, MODEL, LEDGER = "synthetic.csv", "model", "ledger.json"
# Put into a checkpoint, so that it is resumed by the run that left it.
_RUN = "run.json"
# Rows of the synthetic table that are kept in memory for evaluation, whatever its length.
EVALUATED_ROWS = 500_000
_INTERRUPTED = "was interrupted"


@dataclass(frozen=True)
class Finished:
    """A finished run.

    Attributes
    ----------
    out : Path
        The folder that was written.
    files : tuple of str
        What it holds.
    report : RunReport
    problem : str, optional
        Why the table, the evaluation or the page is absent. What was paid for is kept all the same.
    interrupted : bool
        Whether the user's interrupt is a reason.
    """

    out: Path
    files: tuple[str, ...]
    report: RunReport
    problem: str | None = None
    interrupted: bool = False


def run(
    config: RunConfig,
    out: str | Path,
    *,
    force: bool = False,
    resume: bool = False,
    ledger: str | Path | None = None,
    forget_earlier: bool = False,
    accept_n_public: bool = False,
    progress: Callable[[Progress], None] | None = None,
    stages: Callable[[str, float], None] | None = None,
    log: Callable[[str], None] | None = None,
) -> Finished:
    """Carry out a run and write its folder.

    Parameters
    ----------
    config : RunConfig
    out : path
        Receives ``synthetic.csv``, ``model/``, ``ledger.json``, ``report.json``, ``report.md`` and
        ``report.html``.
    force : bool
        Whether the folder of an earlier run may be replaced; it stays until the new one is complete. An
        unused checkpoint of an interrupted run is given up. What was released for either counts, as it does
        for runs that failed, see :mod:`dpsynth.accounting.ledger.journal`.
    resume : bool
        Go on from the checkpoint that an interrupted run of the same configuration left.
    ledger : path, optional
        ``ledger.json`` of what has been released about the same table before; this run is added to it. A
        run that is resumed must go on from it already.
    forget_earlier : bool
        Leave out what was released from the same folder before, and let the ledger say so: for tables that
        are public, or where the folder's earlier run was about another table.
    accept_n_public : bool
        Go on although ``n_public`` is far from the number of rows.
    progress : callable, optional
        Receives :class:`~dpsynth.synthesis.synthesizer.Progress` during training.
    stages : callable, optional
        Receives the name of each stage of the evaluation and the part of it that is done.
    log : callable, optional
        Receives one line at the end of each stage.

    Returns
    -------
    Finished

    Raises
    ------
    InputError
        If the configuration, the data or the schema is wrong, ``out`` must not be written to or is in use,
        or there is nothing to resume. All but what is wrong in the records is found before they are read.
    PrivacyError
        If the guarantee asked for cannot be given.

    Notes
    -----
    Privacy: the training half is read by ``fit`` (add/remove one record, every reading in the ledger) and
    by the evaluation, whose numbers are internal.
    """
    out = Path(out)
    model = build_model(config)
    with claimed(out, force=force, mark=REPORT_JSON):
        checkpoint = checkpoint_folder(out)
        _check_checkpoint(checkpoint, config, resume=resume, force=force)
        storage.clear_leftovers(checkpoint, keep_worthy=force)
        schema = check_run(config, ledger)
        say = log or (lambda line: None)
        if not resume:  # where the studies have been released
            part = training_schema(schema, config.split.test_fraction)
            for line in widening_lines(model.validate(), part):
                say(line)
        named = None if ledger is None else Ledger.load(ledger)
        if resume:
            named = _continued(checkpoint, named, ledger, forget_earlier)
        with journalled(out, named, forget=forget_earlier, say=say) as book:
            if config.split.method == "stratified":
                book.exclude("the stratified split: neighbouring tables are training parts, not whole tables")
            return _carry_out(
                config,
                model,
                out,
                force=force,
                resume=resume,
                ledger=book,
                accept_n_public=accept_n_public,
                progress=progress,
                stages=stages,
                say=say,
            )


def _carry_out(
    config: RunConfig,
    model: DPWGANGP,
    out: Path,
    *,
    force: bool,
    resume: bool,
    ledger: Ledger,
    accept_n_public: bool,
    progress: Callable[[Progress], None] | None,
    stages: Callable[[str, float], None] | None,
    say: Callable[[str], None],
) -> Finished:
    """Carry out a run whose configuration and folder have been found to be right."""
    checkpoint = checkpoint_folder(out)
    if not resume:
        give_up(checkpoint)  # before another configuration's run can be interrupted beside it
    seconds: dict[str, float] = {}

    start = time.perf_counter()
    table = load_table(config)
    train, test = split_table(config, table)
    if config.evaluate.enabled and len(test.frame) < 2:
        raise DataError(
            f"the evaluation needs at least 2 test rows, got {len(test.frame)} (internal: not for release); "
            "give more records, a larger split.test_fraction, or evaluate.enabled: false"
        )
    seconds["load"] = time.perf_counter() - start

    start = time.perf_counter()
    try:
        if resume:
            model = DPWGANGP.resume(checkpoint, train.frame, progress=progress)
            model.ledger_.join(ledger)  # of which the checkpoint's is a part already, or all
        else:
            model.fit(
                train.frame,
                schema=train.schema,
                ledger=ledger,
                accept_n_public=accept_n_public,
                checkpoint=checkpoint,
                progress=progress,
            )
    except KeyboardInterrupt:
        if (checkpoint / "checkpoint.json").exists():
            (checkpoint / _RUN).write_text(json.dumps(config.to_dict()), encoding="utf-8")
        raise
    seconds["fit"] = time.perf_counter() - start
    say(f"fitted {train.schema.name or table.name} in {seconds['fit']:.1f} s")

    guarantee = model.guarantee()
    # a private number of few records may come out as 1 or less, and one record cannot be evaluated
    n_synthetic = config.sample.n or max(round(model.n_), 2)
    reports: list[RunReport] = []
    problems: list[str] = []

    def fill(folder: Path) -> None:
        evaluation: Evaluation | None = None
        attempts: tuple[Attempt, ...] = ()
        tables: Tables | None = None
        sampled: pd.DataFrame | None = None
        model.save(folder / MODEL)
        model.ledger_.save(folder / LEDGER)
        start = time.perf_counter()
        with _kept("sampling", problems):
            sampled = _sample_to(model, n_synthetic, folder / SYNTHETIC)
            seconds["sample"] = time.perf_counter() - start
            say(f"sampled {n_synthetic:,} records in {seconds['sample']:.1f} s")
            if config.sample.n is None and train.schema.n_public is None:
                say("that is a noisy count of the training records; sample.n or n_public sets another")
            for line in model.acceptance_.lines():
                say(line)
        start = time.perf_counter()
        with _kept("the evaluation", problems):
            if sampled is not None and config.evaluate.enabled:
                tables = compared(sampled, train, test, model.estimates_)
                evaluation = evaluate_parts(config, tables, stages)
                seconds["evaluate"] = time.perf_counter() - start
                say(f"evaluated in {seconds['evaluate']:.1f} s")
        start = time.perf_counter()
        with _kept("the attack", problems):
            if sampled is not None and config.attack.enabled and not problems:
                attempts += attempts_on(config, tables or compared(sampled, train, test), model, stages)
                seconds["attack"] = time.perf_counter() - start
                say(f"attacked in {seconds['attack']:.1f} s")
        report = new_report(
            model.ledger_,
            guarantee.delta,
            train.schema,
            name=table.name,
            outcome=train.schema.outcome,
            synthetic_records=0 if sampled is None else n_synthetic,
            config=_without_seed(config),
            evaluation=evaluation,
            seconds=seconds,
            studies=model.estimates_,
            attempts=attempts,
        )
        write_json(report, folder / REPORT_JSON)
        write_markdown(report, folder / REPORT_MD)
        with _kept("drawing the report's page", problems):
            write_page(report, folder / REPORT_HTML, "internal")
        guarantee.write_warning(folder / WARNING)
        reports.append(report)

    storage.write_folder(out, fill, replace=force)
    for rest in (checkpoint, *storage.leftovers(checkpoint)):
        if rest.exists():
            shutil.rmtree(rest)
    files = tuple(sorted(entry.name for entry in out.iterdir()))
    interrupted = any(problem.endswith(_INTERRUPTED) for problem in problems)
    return Finished(out, files, reports[0], "; ".join(problems) or None, interrupted)


@contextmanager
def _kept(what: str, problems: list[str]) -> Iterator[None]:
    """Note a failure and go on: the private budget is spent, and what it bought must not be lost."""
    try:
        yield
    except KeyboardInterrupt:
        problems.append(f"{what} {_INTERRUPTED}")
    except Exception as problem:
        problems.append(f"{what} failed ({type(problem).__name__}: {problem})")


def checkpoint_folder(out: str | Path) -> Path:
    """Return the folder beside ``out`` where an interrupt leaves the private checkpoint."""
    path = Path(out)
    return path.with_name(f"{path.name}.checkpoint")


def build_model(config: RunConfig) -> DPWGANGP:
    """Make the unfitted model that a configuration describes.

    Raises
    ------
    ConfigError
        If an option is unknown or has a wrong value, naming it.
    PrivacyError
        If the options contradict the privacy asked for.
    """
    accept = config.data.accept_unreviewed if config.data is not None else False
    try:
        model = DPWGANGP(**dict(config.model), accept_unreviewed=accept, studies=config.studies)
        model.validate()
    except InputError as problem:
        # studies that contradict the model are a key of their own
        where = "" if str(problem).startswith("studies ") else "model: "
        raise ConfigError(f"{where}{problem}") from None
    return model


def load_table(config: RunConfig) -> Table:
    """Load the table that a configuration names."""
    if config.data is not None:
        data = config.data
        return datasets.open_table(data.path, data.schema_path, csv_format=data.csv_format)
    return datasets.load(str(config.dataset))


def split_table(config: RunConfig, table: Table) -> tuple[Table, Table]:
    """Split a table into its training and test part, as a configuration says; the same way every time."""
    split = datasets.train_test if config.split.method == "stratified" else datasets.independent_split
    return split(table, config.split.test_fraction, config.split.seed)


def _without_seed(config: RunConfig) -> dict[str, object]:
    """The configuration as a report may show it: whoever has the noise's seed has the noise."""
    shown = config.to_dict()
    if "random_state" in shown["model"]:
        shown["model"]["random_state"] = "given, not kept"
    return shown


def _continued(
    checkpoint: Path, named: Ledger | None, path: str | Path | None, forget_earlier: bool
) -> Ledger:
    """The checkpoint's ledger; one that the interrupted run did not go on from is refused, not lost."""
    if forget_earlier:
        raise InputError("--forget-earlier does not go with --resume: the interrupted run has its ledger")
    ledger = checkpoint_ledger(checkpoint)
    if named is not None and not ledger.holds(named):
        raise InputError(
            f"the run that left {checkpoint} did not go on from the ledger {path}: give the checkpoint up "
            "(--force without --resume) and begin anew with that ledger, or resume without it if it is about "
            "another table"
        )
    return ledger


def _check_checkpoint(checkpoint: Path, config: RunConfig, *, resume: bool, force: bool) -> None:
    waiting = (checkpoint / "checkpoint.json").exists()
    if not resume:
        if waiting and not force:
            raise InputError(
                f"{checkpoint} holds the private checkpoint of an interrupted run; go on with --resume, or "
                "give it up with --force"
            )
        return
    if not waiting:
        raise DataError(f"there is no checkpoint to resume in {checkpoint}")
    saved = checkpoint / _RUN
    if not saved.exists() or json.loads(saved.read_text(encoding="utf-8")) != config.to_dict():
        raise ConfigError(f"{checkpoint} was left by a run of another configuration")


def _sample_to(model: DPWGANGP, n: int, path: Path) -> pd.DataFrame:
    """Stream ``n`` records to a file and return the first of them, for evaluation."""
    kept: list[pd.DataFrame] = []
    model.acceptance_ = Acceptance()
    rng = np.random.default_rng(model.random_state)

    def blocks() -> Iterator[pd.DataFrame]:
        rows = 0
        for block in model.model_.blocks(n, rng, record=model.acceptance_):
            if rows < EVALUATED_ROWS:
                kept.append(block)
                rows += len(block)
            yield block

    write_table(blocks(), path)
    return pd.concat(kept, ignore_index=True)


def compared(
    sampled: pd.DataFrame, train: Table, test: Table, declared: tuple[Estimates, ...] = ()
) -> Tables:
    """Conform a synthetic table and both parts of the real one; ``declared`` are private estimates."""
    return Tables.of(sampled, train=train.frame, test=test.frame, schema=train.schema, declared=declared)


def evaluate_parts(
    config: RunConfig, tables: Tables, progress: Callable[[str, float], None] | None
) -> Evaluation:
    """Evaluate a synthetic table against both parts of the real one, as a configuration says."""
    studies = [study.effects(tables.schema) for study in config.studies]
    return evaluate_tables(tables, config.evaluate.replicating(studies), progress)
