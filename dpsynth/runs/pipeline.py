"""One run from a configuration to a folder: load, split, fit, sample; then the judgement.

Table, model and ledger are written into a temporary folder beside the target, which is renamed when they are
complete: a run that fails before leaves nothing half-written, and what comes after
(:mod:`dpsynth.runs.evaluation`) finds them in place. An interrupt during training leaves a *private*
checkpoint (:mod:`dpsynth.runs.checkpoints`), from which the same run can go on once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpsynth.accounting.guarantee import WARNING
from dpsynth.accounting.journal import give_up, journalled
from dpsynth.accounting.ledger import Ledger
from dpsynth.datasets.table import training_schema
from dpsynth.errors import ConfigError, InputError, of_records
from dpsynth.files import storage
from dpsynth.files.storage import claimed
from dpsynth.model.rejection import Acceptance
from dpsynth.report.folder import LEDGER, REPORT_JSON
from dpsynth.runs import checkpoints
from dpsynth.runs.config import RunConfig
from dpsynth.runs.evaluation import Finished, judge
from dpsynth.runs.preflight import EVALUATED_ROWS, check_run, load_table, split_table
from dpsynth.runs.reporting import new_report
from dpsynth.runs.run_folder import MODEL, SYNTHETIC
from dpsynth.synthesis.studies import widening_lines
from dpsynth.synthesis.synthesizer import DPWGANGP
from dpsynth.table.io import write_table

if TYPE_CHECKING:
    from dpsynth.synthesis.synthesizer import Progress


def run(
    config: RunConfig,
    out: str | Path,
    *,
    force: bool = False,
    resume: bool = False,
    ledger: str | Path | None = None,
    forget_earlier: bool = False,
    accept_n_public: bool = False,
    evaluate: bool = True,
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
        for runs that failed, see :mod:`dpsynth.accounting.journal`.
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
    evaluate : bool
        Whether the table is judged now, as far as the configuration says; ``dpsynth evaluate`` does it later.
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
    if resume and (out / REPORT_JSON).is_file() and not force:
        raise InputError(f"{out} holds a complete table; `dpsynth evaluate {out}` evaluates it")
    with claimed(out, force=force, mark=REPORT_JSON):
        checkpoint = checkpoints.checkpoint_folder(out)
        checkpoints.check_checkpoint(checkpoint, config, resume=resume, force=force)
        storage.clear_leftovers(checkpoint, keep_worthy=force)
        schema = check_run(config, ledger)
        say = log or (lambda line: None)
        if not resume:  # where the studies have been released
            part = training_schema(schema, config.split.test_fraction)
            for line in widening_lines(model.validate(), part):
                say(line)
        named = None if ledger is None else Ledger.load(ledger)
        if resume:
            named = checkpoints.continued(checkpoint, named, ledger, forget_earlier)
        with journalled(out, named, forget=forget_earlier, say=say) as book:
            if config.split.method == "stratified":
                book.exclude("the stratified split: neighbouring tables are training parts, not whole tables")
            if not resume:
                give_up(checkpoint)  # before another configuration's run can be interrupted beside it
            start = time.perf_counter()
            table = load_table(config)
            train, test = split_table(config, table)
            if evaluate and config.evaluate.enabled and len(test.frame) < 2:
                raise of_records(
                    f"the evaluation needs at least 2 test rows, got {len(test.frame)}; give more records, a "
                    "larger split.test_fraction, or --no-evaluate"
                )
            loaded = time.perf_counter()
            with checkpoints.marked(checkpoint, config):
                if resume:
                    model = DPWGANGP.resume(checkpoint, train.frame, progress=progress)
                    model.ledger_.join(book)  # of which the checkpoint's is a part already, or all
                else:
                    model.fit(
                        train.frame,
                        schema=train.schema,
                        ledger=book,
                        accept_n_public=accept_n_public,
                        checkpoint=checkpoint,
                        progress=progress,
                    )
            seconds = {"load": loaded - start, "fit": time.perf_counter() - loaded}
            say(f"fitted {train.schema.name or table.name} in {seconds['fit']:.1f} s")
            report = new_report(
                model.ledger_,
                model.guarantee().delta,
                train.schema,
                name=table.name,
                outcome=train.schema.outcome,
                synthetic_records=0,
                config=_without_seed(config),
                seconds=seconds,
                studies=model.estimates_,
            )
            done = Finished(out, report)
            sampled = _write_table(done, model, config.sample.n, replace=force, say=say)
            if config.sample.n is None and train.schema.n_public is None:
                say("that is a noisy count of the training records; sample.n or n_public sets another")
            checkpoints.remove(checkpoint)
        if evaluate and sampled is not None:
            judge(done, config, (sampled, train, test), model, stages=stages, say=say)
        return done


def _write_table(
    done: Finished, model: DPWGANGP, n: int | None, *, replace: bool, say: Callable[[str], None]
) -> pd.DataFrame | None:
    """Write table, model, ledger and a report without evaluation; return the table's first records."""
    sampled: list[pd.DataFrame] = []
    # a private number of few records may come out as 1 or less, and one record cannot be evaluated
    n = n or max(round(model.n_), 2)

    def fill(folder: Path) -> None:
        model.save(folder / MODEL)
        model.ledger_.save(folder / LEDGER)
        model.guarantee().write_warning(folder / WARNING)
        with done.kept("sampling"):
            start = time.perf_counter()
            sampled.append(_sample_to(model, n, folder / SYNTHETIC))
            seconds = done.add("sample", start, table={**done.report.table, "synthetic_records": n})
            say(f"sampled {n:,} records in {seconds:.1f} s")
            for line in model.acceptance_.lines():
                say(line)
        done.write(folder)

    storage.write_folder(done.out, fill, replace=replace)
    if sampled:
        say(f"table, model and ledger are complete in {done.out}")
    return sampled[0] if sampled else None


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


def _without_seed(config: RunConfig) -> dict[str, object]:
    """The configuration as a report may show it: whoever has the noise's seed has the noise."""
    shown = config.to_dict()
    if "random_state" in shown["model"]:
        shown["model"]["random_state"] = "given, not kept"
    return shown


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
