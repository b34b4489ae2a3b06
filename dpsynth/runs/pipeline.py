"""One run from a configuration to a folder: load, split, fit, sample, evaluate, and report."""

from __future__ import annotations

import platform
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpsynth.checks import together
from dpsynth.datasets.table import training_schema
from dpsynth.errors import ConfigError, DataError, InputError, of_records
from dpsynth.evaluation.results import Evaluation
from dpsynth.files import storage
from dpsynth.files.storage import check_same_ledger, claimed, dump_json, read_json, write_text
from dpsynth.privacy.guarantee import STRATIFIED, WARNING
from dpsynth.privacy.ledger import Ledger
from dpsynth.report.run_report import RunReport
from dpsynth.report.words import hundredths
from dpsynth.runs.config import ELSEWHERE, RunConfig, keys_of_fit
from dpsynth.runs.evaluation import FinishedRun, evaluate_run
from dpsynth.runs.folder import RunFolder
from dpsynth.runs.forecast import EVALUATED_ROWS, check_run, load_table, split_table
from dpsynth.runs.spending import checkpoint_ledger, give_up, ledger_of_run
from dpsynth.studies.study import Estimates
from dpsynth.synthesis.check_inputs import check_options, check_place, outcome_in_noise
from dpsynth.synthesis.fit import cost_of, outlook
from dpsynth.synthesis.generators import estimator
from dpsynth.synthesis.resuming import TrainedSynthesizer
from dpsynth.synthesis.risk import check_risk
from dpsynth.synthesis.sampling import Acceptance
from dpsynth.synthesis.synthesizer import Synthesizer
from dpsynth.table.files import write_table
from dpsynth.table.schema import TableSchema
from dpsynth.version import __version__

if TYPE_CHECKING:
    from dpsynth.synthesis.synthesizer import Progress


# ------------------------------------------------------------------------------------------------
# The report of a new table: its facts, today's date and the software that decided it.
#
# A model or a ledger has the facts with which a report opens.

_PACKAGES = ("dp-accounting", "numpy", "pandas", "scikit-learn", "scipy", "tensorflow")


def versions() -> dict[str, str]:
    """Return the versions of dpsynth, Python and the packages that are installed.

    Examples
    --------
    >>> sorted(versions())[0:2]
    ['dp-accounting', 'dpsynth']
    """
    installed = {"dpsynth": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            installed[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return installed


@dataclass(frozen=True)
class Origin:
    """How a synthetic table was made, from its model or from a ledger alone.

    ``model`` are the options as a run's configuration has them. ``studies`` are the private estimates of the
    model, ``training`` what its critic steps released. Noise has left little of the columns ``flattened``.
    ``outcome_noise`` says that it hides the outcome's rarest class.
    """

    ledger: Ledger
    delta: float
    schema: TableSchema | None = None
    model: Mapping[str, object] = field(default_factory=dict)
    studies: tuple[Estimates, ...] = ()
    flattened: tuple[str, ...] = ()
    outcome_noise: str | None = None
    training: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of_model(cls, fitted: Synthesizer) -> Origin:
        """Take the facts from a fitted model."""
        # in the order of a run's configuration
        dumped = fitted.validate().model_dump()
        options = {
            name: value for name, value in dumped.items() if name not in ELSEWHERE and value is not None
        }
        if fitted.ledger_.seeded:
            options["random_state"] = "given, not kept"
        own, marginals = fitted.ledger_.delta, fitted.model_.encoder.marginals
        return cls(
            fitted.ledger_,
            fitted.delta_ if own is None else own,
            fitted.model_.declared_schema,
            {"generator": fitted.options.generator, "epsilon": fitted.epsilon, **options},
            fitted.estimates_,
            () if marginals is None else marginals.flattened,
            outcome_in_noise(fitted.model_.schema, marginals),
            fitted.training_,
        )

    @classmethod
    def of_ledger(cls, path: str | Path, delta: float | None) -> Origin:
        """Read a ledger, or raise InputError if neither it nor ``delta`` gives the delta of epsilon."""
        path = Path(path)
        folder = RunFolder(path)
        if path.is_dir():
            check_same_ledger(folder.ledger, folder.model)
            path = folder.ledger
        ledger = Ledger.load(path)
        told = ledger.delta if delta is None else delta
        if told is None:
            raise InputError(f"--delta is needed: {path} does not give a delta")
        ledger.guarantee(told)  # refuses a delta that is none, before anything takes time
        return cls(ledger, float(told))

    def check_schema(self, schema: TableSchema, path: str | Path) -> None:
        """Raise DataError for a schema that is not the model's, up to the public number of records."""
        if self.schema is None:
            return
        if schema.with_n_public(None).digest() != self.schema.with_n_public(None).digest():
            raise DataError(f"{path} is not the schema that the model was fitted with")

    def report(
        self,
        schema: TableSchema,
        *,
        name: str,
        outcome: object,
        size: Mapping[str, int],
        config: Mapping[str, object],
        seconds: Mapping[str, float],
        evaluation: Evaluation | None = None,
    ) -> RunReport:
        """Return the report of a table made, or evaluated, today with the software at hand.

        ``schema`` is the one that the table was made with, and ``name`` that of the data. ``size`` is that of
        the synthetic table. ``config`` is the run's as it may be shown. The rest is as in RunReport.
        """
        table: dict[str, object] = {
            "name": name,
            "schema_name": schema.name,
            **size,
            "columns": len(schema),
            "outcome": outcome,
            "schema_sha256": schema.digest(),
            "n_public": schema.n_public,
        }
        if self.flattened:
            table["mostly_noise"] = together(self.flattened)
        if self.outcome_noise:
            table["outcome_noise"] = self.outcome_noise
        # names of columns alone, which are public
        table["unconfirmed"] = ", ".join(schema.unconfirmed)
        if schema.unreviewed:
            # without an evaluation nothing else would say so
            table["unreviewed"] = sorted(schema.unreviewed)
        return RunReport(
            ledger=self.ledger,
            delta=self.delta,
            table=table,
            config=config,
            evaluation=evaluation,
            versions=versions(),
            seconds=seconds,
            created=datetime.now(UTC).date().isoformat(),
            studies=self.studies,
            training=self.training,
        )


# ------------------------------------------------------------------------------------------------
# One run from a configuration to a folder: load, split, fit, sample, and evaluate.
#
# Table, model and ledger are written into a temporary folder beside the target. It is renamed when they are
# complete. A run that fails before leaves nothing half-written. The evaluation
# (:mod:`dpsynth.runs.evaluation`) finds them in place. Critic steps leave a *private* checkpoint beside the
# folder every two minutes, and when anything stops them. So a killed run is not lost. The same run can go on.


def run(
    config: RunConfig,
    out: str | Path,
    *,
    force: bool = False,
    resume: bool = False,
    evaluate: bool = True,
    progress: Callable[[Progress], None] | None = None,
    stages: Callable[[str, float], None] | None = None,
    log: Callable[[str], None] | None = None,
) -> FinishedRun:
    """Carry out a run and write its folder (:class:`~dpsynth.runs.folder.RunFolder`).

    Errors outside the records are found before the records are read. The training half is read by ``fit``
    (every statistic is in the ledger) and by the evaluation, whose numbers are internal. Raises InputError if
    the configuration, the data or the schema is wrong, or there is nothing to resume. It raises InputError as
    well if ``out`` must not be written to or is in use. Raises PrivacyError if the guarantee asked for cannot
    be given.

    Parameters
    ----------
    force : bool
        Whether the folder of an earlier run may be replaced. It stays until the new one is complete. A
        checkpoint is given up. Noisy statistics of either count, as do those of failed runs, see
        :mod:`dpsynth.runs.spending`.
    resume : bool
        Go on from the checkpoint that a run of the same configuration left when it was stopped or killed.
    evaluate : bool
        Whether the table is judged now, as far as the configuration says.
    """
    folder = RunFolder(Path(out))
    out = folder.path
    model = build_model(config)
    if resume and folder.report_json.is_file() and not force:
        raise InputError(f"{out} holds a complete table. `dpsynth evaluate {out}` evaluates it")
    with claimed(out, force=force, mark=folder.report_json.name):
        checkpoint = folder.checkpoint
        if resume:
            storage.mend(checkpoint)
        _check_checkpoint(folder, config, resume=resume, force=force)
        storage.clear_leftovers(checkpoint, keep_worthy=force)
        schema = check_run(config)
        say = log or (lambda line: None)
        part = training_schema(schema, config.split.test_fraction)
        if not resume:  # where the studies have been released
            check_options(schema, model.validate(), config.also)
            check_place(model.validate())
            check_risk(config.risk, part, model.validate(), config.also)
            for line in outlook(part, model.validate(), config.also):
                say(line)
        left = checkpoint_ledger(checkpoint) if resume else None
        with ledger_of_run(
            config.ledger, cost_of(part, model.validate()), out, resumed=left, say=say
        ) as ledger:
            if config.split.method == "stratified":
                ledger.exclude(STRATIFIED)
            if not resume:
                give_up(checkpoint)  # before another configuration's run can be interrupted beside it
            start = time.perf_counter()
            table = load_table(config)
            train, test = split_table(config, table)
            if evaluate and config.evaluate.enabled and test.records < 2:
                raise of_records(
                    f"the evaluation needs at least 2 test {test.schema.protected}, got {test.records}. Give "
                    f"more {test.schema.counted}, a larger split.test_fraction, or --no-evaluate"
                )
            loaded = time.perf_counter()
            say(_divided(config, part))
            with _marked(folder, config, model, say):
                if resume:
                    if not isinstance(model, TrainedSynthesizer):
                        raise DataError(f"{checkpoint} is of a generator that leaves no checkpoint")
                    model = type(model).resume(checkpoint, train.frame, ledger=ledger, progress=progress)
                else:
                    model.fit(
                        train.frame,
                        schema=train.schema,
                        ledger=ledger,  # paid above, before the table was opened
                        checkpoint=checkpoint,
                        progress=progress,
                        also=config.also,
                    )
            model.ledger_.published = config.published()
            seconds = {"load": loaded - start, "fit": time.perf_counter() - loaded}
            say(f"fitted {train.schema.name or table.name} in {seconds['fit']:.1f} s")
            report = Origin.of_model(model).report(
                train.schema,
                name=table.name,
                outcome=train.outcome,
                size={"synthetic_records": 0},
                config=_without_seed(config),
                seconds=seconds,
            )
            done = FinishedRun(folder, report)
            sampled = _write_table(done, model, config.sample.n, replace=force, say=say)
            if sampled is not None and config.sample.n is None and train.schema.n_public is None:
                say(_as_counted(model))
            _remove(checkpoint)
        if evaluate and sampled is not None:
            evaluate_run(done, config, (sampled, train, test), model, stages=stages, say=say)
        return done


def _divided(config: RunConfig, part: TableSchema) -> str:
    """How many records train and test, said before a statistic is read."""
    tests = config.split.test_fraction
    return (
        f"about {hundredths(1 - tests)} of 100 {part.counted} train, and the others test the table "
        f"(--test-fraction, or split.test_fraction in a YAML file: {tests:g})"
    )


def _write_table(
    done: FinishedRun, model: Synthesizer, n: int | None, *, replace: bool, say: Callable[[str], None]
) -> pd.DataFrame | None:
    """Write table, model, ledger and a report without evaluation. Return the table's first records."""
    sampled: list[pd.DataFrame] = []
    # a private number of few records may come out as 1 or less, and one record cannot be evaluated
    n = n or max(round(model.n_), 2)

    def fill(path: Path) -> None:
        folder = RunFolder(path)
        model.save(folder.model)
        folder.write_ledger(model.ledger_)
        model.guarantee().write_warning(path / WARNING)
        with done.kept("sampling"):
            start = time.perf_counter()
            first, rows = _sample_to(model, n, folder.synthetic)
            sampled.append(first)
            several = model.model_.trajectories is not None
            size = {"synthetic_records": n} | ({"synthetic_rows": rows} if several else {})
            seconds = done.add("sample", start, table={**done.report.table, **size})
            in_rows = f" with {rows:,} rows" if several else ""
            counted = model.model_.declared_schema.counted
            say(f"sampled {n:,} {counted}{in_rows} in {seconds:.1f} s")
            for line in model.acceptance_.lines(counted):
                say(line)
        if sampled:
            with done.kept("describing the table"):
                folder.write_ledger(model.ledger_)  # which names the table now
                folder.write_croissant(done.report, model.model_.released_schema)
        done.write(folder)

    storage.write_folder(done.out, fill, replace=replace)
    if sampled:
        say(f"table, model and ledger are complete in {done.out}")
    return sampled[0] if sampled else None


def _as_counted(model: Synthesizer) -> str:
    """The source of the number of synthetic records, if nobody named one."""
    counted = model.model_.declared_schema.counted
    many = f"a noisy number of {counted}, because the exact number of training {counted} is private"
    if model.ledger_.not_private:
        many = f"as many {counted} as the training part, an exact number that is confidential"
    return f"the table has {many}. Set sample.n to choose the number"


def build_model(config: RunConfig) -> Synthesizer:
    """Make the unfitted model of a configuration, or raise ConfigError naming the wrong key."""
    given = config.arguments()
    try:
        model = estimator(config.model.generator, given)(**given)
        model.validate()
    except InputError as problem:
        raise ConfigError(f"model: {problem}") from None
    return model


def _without_seed(config: RunConfig) -> dict[str, object]:
    """The configuration as a report may show it, without the seed, which gives the noise."""
    shown = config.to_dict()
    if "random_state" in shown["model"]:
        shown["model"]["random_state"] = "given, not kept"
    return shown


def _sample_to(model: Synthesizer, n: int, path: Path) -> tuple[pd.DataFrame, int]:
    """Stream ``n`` records to a file. Return the first of them, for evaluation, and the number of rows."""
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

    rows = write_table(blocks(), path, shared=model.may_share)
    return pd.concat(kept, ignore_index=True), rows


@contextmanager
def _marked(
    folder: RunFolder, config: RunConfig, model: Synthesizer, say: Callable[[str], None]
) -> Iterator[None]:
    """Write into the folder of the block's checkpoints which run they are of, before there is any."""
    if not model.validate().holds_points:
        yield
        return
    storage.make_folder(folder.checkpoint)
    write_text(folder.checkpoint_config, dump_json(config.to_dict()))
    try:
        yield
    except Exception:
        if folder.interrupted:
            say(f"{folder.checkpoint} holds a private checkpoint. Go on with --resume")
        raise
    finally:
        if [entry.name for entry in folder.checkpoint.iterdir()] == [folder.checkpoint_config.name]:
            shutil.rmtree(folder.checkpoint)


def _check_checkpoint(folder: RunFolder, config: RunConfig, *, resume: bool, force: bool) -> None:
    """Refuse to resume what is not there or another run's, and to give up a checkpoint without ``force``."""
    if not resume:
        if folder.interrupted and not force:
            raise InputError(
                f"{folder.checkpoint} holds the private checkpoint of an interrupted run. Continue with "
                "--resume, or give it up with --force"
            )
        return
    if not folder.interrupted:
        raise DataError(f"there is no checkpoint to resume in {folder.checkpoint}")
    saved = folder.checkpoint_config
    if not saved.exists():
        raise DataError(
            f"{folder.checkpoint} holds no {saved.name}: no run wrote it. Give it up with --force, without "
            "--resume"
        )
    record = read_json(saved)
    if not isinstance(record, dict) or keys_of_fit(record) != config.of_fit():
        raise ConfigError(f"{folder.checkpoint} was left by a run of another configuration")


def _remove(checkpoint: Path) -> None:
    """Remove a checkpoint and what killed processes left of it. The caller holds the folder's lock."""
    for rest in (checkpoint, *storage.leftovers(checkpoint)):
        if rest.exists():
            shutil.rmtree(rest)
