"""The judgement of a run's table: evaluation and attacks, after the table was made or again later.

Nothing is fitted, and no privacy budget is used. The report is written anew after each part. Its page, whose
figures take most of the time, is written once at the end. Each file has a temporary name first and is
renamed. An interrupt leaves the parts before it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.attacks.attempt import Attempt
from dpsynth.attacks.risk import Proved
from dpsynth.attacks.suite import quick
from dpsynth.datasets.table import PatientTable, Table
from dpsynth.errors import InputError
from dpsynth.evaluation.evaluators import evaluate_tables
from dpsynth.evaluation.tables import Tables
from dpsynth.privacy.ledger import Ledger
from dpsynth.report.run_report import RunReport
from dpsynth.runs.config import RunConfig
from dpsynth.runs.folder import RunFolder, open_run
from dpsynth.runs.forecast import check_run, compared
from dpsynth.synthesis.parts.part import Part
from dpsynth.synthesis.synthesizer import Synthesizer
from dpsynth.table.coded import CodedTable

#: receives the name of a stage and the part of it that is done
Stages = Callable[[str, float], None]


@dataclass
class FinishedRun:
    """A run whose model and ledger are in its folder.

    ``problems`` say why the table, the evaluation, the attacks or the page are absent. The model and the
    ledger are kept. ``interrupted`` says whether the user's interrupt is a reason.
    """

    folder: RunFolder
    report: RunReport
    problems: list[str] = field(default_factory=list)
    interrupted: bool = False

    @property
    def out(self) -> Path:
        """The path of the folder."""
        return self.folder.path

    @contextmanager
    def kept(self, what: str) -> Iterator[None]:
        """Note a failure and go on: the privacy budget is used, and its results must not be lost."""
        try:
            yield
        except KeyboardInterrupt:
            self.problems.append(f"{what} was interrupted")
            self.interrupted = True
        except Exception as problem:
            self.problems.append(f"{what} failed ({type(problem).__name__}: {problem})")

    def add(self, stage: str, start: float, **changes: object) -> float:
        """Change the report after a stage, and return how many seconds it took."""
        seconds = time.perf_counter() - start
        self.report = replace(self.report, seconds={**self.report.seconds, stage: seconds}, **changes)  # type: ignore[arg-type]
        return seconds

    def write(self, folder: RunFolder) -> None:
        """Write the report as JSON, Markdown and a page."""
        folder.write_report(self.report)
        with self.kept("drawing the report's page"):
            folder.write_page(self.report)


def evaluate_run(
    done: FinishedRun,
    config: RunConfig,
    made: tuple[pd.DataFrame, Table | PatientTable, Table | PatientTable],
    model: Synthesizer,
    *,
    stages: Stages | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Evaluate and attack a run's table as its configuration says. Write the report after each, and its page.

    ``made`` are the synthetic table, of which the first records are judged, and both parts of the real one.
    """
    before = len(done.problems)
    with done.kept("the evaluation"):
        start = time.perf_counter()
        tables = compared(*made, done.report.studies)
        if config.evaluate.enabled:
            # a regression of patients' rows has no counterpart among the levels
            own = [study for study in config.studies if study.clusters(tables.described) is None]
            studies = [study.effects(tables.schema) for study in own]
            found = evaluate_tables(tables, config.evaluate.replicating(studies), stages)
            seconds = done.add("evaluate", start, evaluation=found)
            done.folder.write_report(done.report)
            say(f"evaluated in {seconds:.1f} s")
    if config.attacked and len(done.problems) == before:
        with done.kept("the attack"):
            start = time.perf_counter()
            seconds = done.add("attack", start, attempts=attempts_on(config, tables, model, stages))
            done.folder.write_report(done.report)
            say(f"attacked in {seconds:.1f} s")
    if config.evaluate.enabled or config.attacked:
        with done.kept("drawing the report's page"):
            done.folder.write_page(done.report)


def judge_again(
    folder: str | Path,
    *,
    force: bool = False,
    settings: Mapping[str, object] | None = None,
    stages: Stages | None = None,
) -> FinishedRun:
    """Judge a run's synthetic table again. Table, model and ledger stay.

    The real table is read and split as the run's configuration says. ``force`` allows to replace an
    evaluation. ``settings`` are entries of the configuration's section ``evaluate`` to change.
    """
    where = RunFolder.of_run(folder)
    with where.locked():
        run = open_run(where, settings)
        report, config = run.report, run.config
        if report.evaluation is not None and not force:
            raise InputError(f"{where.path} holds an evaluation. Add --force to replace it")
        check_run(config)
        made = run.parts()
        table = {**report.table, **made[1].schema.sizes(made[0])}
        asked = {**report.config, "evaluate": config.to_dict()["evaluate"]}
        done = FinishedRun(where, replace(report, table=table, config=asked))
        evaluate_run(done, config, made, where.load_model(), stages=stages)
    return done


def attempts_on(
    config: RunConfig,
    tables: Tables,
    model: Synthesizer,
    progress: Callable[[str, float], None] | None = None,
) -> tuple[Attempt, ...]:
    """Attack the synthetic table of a run, and audit the releases that it was made with.

    Attempts on the table are internal: real records are read without payment. Audits are not, unless the
    schema has fields that were read off the records.
    """
    tell = progress or (lambda stage, done: None)
    # An audit is released: random numbers that follow those spent on real records would tell of them.
    on_table, on_releases = np.random.SeedSequence(config.evaluate.seed).spawn(2)
    coins = config.split.method == "independent"
    proved = proved_by(model.ledger_, coins=coins)
    rng = np.random.default_rng(on_table)
    level = config.evaluate.level
    risks = quick(
        tables, rng=rng, proved=proved, level=level, stages=lambda name, _: tell(f"attack by {name}", 0.0)
    )
    found = list(risks)
    if proved.profile is not None:
        tell("audit of the noisy statistics", 0.0)
        found += attempts_on_releases(
            tables, model, config.also, on_releases, lambda done: tell("audit of the noisy statistics", done)
        )
        tell("audit of the noisy statistics", 1.0)
    if tables.schema.unreviewed:
        found = [replace(attempt, internal=True) for attempt in found]
    return tuple(found)


def attempts_on_releases(
    tables: Tables,
    model: Synthesizer,
    also: Sequence[Part[Any]],
    seeds: np.random.SeedSequence,
    progress: Callable[[float], None],
) -> Iterator[Attempt]:
    """Audit each release of a fit, and set the adversary on the critic's steps.

    But for the last attempt, of the adversary against a real record, nothing here depends on a record. The
    adversary is left out where the number of records is not public: the plan is then another one.
    """
    from dpsynth.audits.configuration import QUICK, QUICK_NOISE, QUICK_STEPS, audit_one, releases_of

    rng, on_records = (np.random.default_rng(child) for child in seeds.spawn(2))
    options = model.validate()
    if options.epsilon is None:
        return
    found = releases_of(tables.described, options, rng, also=also)
    played = found.plan is not None and tables.schema.n_public is not None
    steps = len(found.mechanisms) + played
    for done, name in enumerate(found.mechanisms, 1):
        audited = audit_one(found, name, trials=QUICK, steps=QUICK_STEPS, rng=rng, most_noise=QUICK_NOISE)
        yield from audited.attempts()
        progress(done / steps)
    if played and found.plan is not None and found.training is not None:
        from dpsynth.audits.adversary import quick_attempts

        # their distances to one another are taken, and they are watched in training
        most = min(2000, max(int(math.sqrt(2e8 / found.layout.dim)), 2))
        records = CodedTable(tables.train.head(most))
        points = model.model_.encoder.transform(records, on_records).astype(np.float64)
        name = tables.schema.name or "the training records"
        seed = int(rng.integers(2**63))
        yield from quick_attempts(
            found.plan, found.training, found.layout, points, name=name, seed=seed, scale=found.scale
        )


def proved_by(ledger: Ledger, *, coins: bool) -> Proved:
    """Return the bounds of a ledger, and none where its guarantee is void.

    ``coins`` says whether each record came into the training part by a coin of its own.
    """
    void = ledger.delta is None or not ledger.guarantee().private
    return Proved() if void else Proved(ledger.profile(), coins)
