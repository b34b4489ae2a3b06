"""The judgement of a run's table: evaluation and attacks, after the table was made or again later.

Nothing is fitted or paid for. The report is written anew after each part, each file under a temporary name
that is renamed: what is interrupted leaves the parts before it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from dpsynth.datasets.table import Table
from dpsynth.errors import InputError
from dpsynth.evaluation.evaluators import evaluate_tables
from dpsynth.files.atomic import locked
from dpsynth.report.folder import REPORT_HTML, REPORT_JSON, REPORT_MD, write_json, write_markdown
from dpsynth.report.page.html import write_page
from dpsynth.report.run_report import RunReport
from dpsynth.runs.attempts import attempts_on
from dpsynth.runs.config import RunConfig
from dpsynth.runs.preflight import EVALUATED_ROWS, check_run, compared
from dpsynth.runs.run_folder import MODEL, folder_of, open_run
from dpsynth.synthesis.synthesizer import DPWGANGP

#: receives the name of a stage and the part of it that is done
Stages = Callable[[str, float], None]


@dataclass
class Finished:
    """A run whose model and ledger are in its folder.

    Attributes
    ----------
    out : Path
    report : RunReport
    problems : list of str
        Why the table, the evaluation, the attacks or the page are absent. What was paid for is kept.
    interrupted : bool
        Whether the user's interrupt is a reason.
    """

    out: Path
    report: RunReport
    problems: list[str] = field(default_factory=list)
    interrupted: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """What the folder holds."""
        return tuple(sorted(entry.name for entry in self.out.iterdir()))

    @contextmanager
    def kept(self, what: str) -> Iterator[None]:
        """Note a failure and go on: the private budget is spent, and what it bought must not be lost."""
        try:
            yield
        except KeyboardInterrupt:
            self.problems.append(f"{what} was interrupted")
            self.interrupted = True
        except Exception as problem:
            self.problems.append(f"{what} failed ({type(problem).__name__}: {problem})")

    def add(self, stage: str, start: float, **changes: object) -> float:
        """Change the report after a stage; return how many seconds it took."""
        seconds = time.perf_counter() - start
        self.report = replace(self.report, seconds={**self.report.seconds, stage: seconds}, **changes)  # type: ignore[arg-type]
        return seconds

    def write(self, folder: Path) -> None:
        """Write the report as JSON, Markdown and a page."""
        write_json(self.report, folder / REPORT_JSON)
        write_markdown(self.report, folder / REPORT_MD)
        with self.kept("drawing the report's page"):
            write_page(self.report, folder / REPORT_HTML, "internal")


def judge(
    done: Finished,
    config: RunConfig,
    made: tuple[pd.DataFrame, Table, Table],
    model: DPWGANGP,
    *,
    stages: Stages | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Evaluate and attack a run's table as its configuration says, and write the report after each.

    Parameters
    ----------
    made : tuple of pandas.DataFrame, Table and Table
        The synthetic table, of which the first records are judged, and both parts of the real one.
    """
    before = len(done.problems)
    with done.kept("the evaluation"):
        start = time.perf_counter()
        tables = compared(made[0].head(EVALUATED_ROWS), *made[1:], done.report.studies)
        if config.evaluate.enabled:
            studies = [study.effects(tables.schema) for study in config.studies]
            found = evaluate_tables(tables, config.evaluate.replicating(studies), stages)
            seconds = done.add("evaluate", start, evaluation=found)
            done.write(done.out)
            say(f"evaluated in {seconds:.1f} s")
    if config.attack.enabled and len(done.problems) == before:
        with done.kept("the attack"):
            start = time.perf_counter()
            seconds = done.add("attack", start, attempts=attempts_on(config, tables, model, stages))
            done.write(done.out)
            say(f"attacked in {seconds:.1f} s")


def judge_again(
    folder: str | Path,
    *,
    force: bool = False,
    settings: Mapping[str, object] | None = None,
    stages: Stages | None = None,
) -> Finished:
    """Judge a run's synthetic table again; table, model and ledger stay.

    The real table is read and split as the run's configuration says.

    Parameters
    ----------
    folder : path
        Of a run whose evaluation failed, was interrupted or left out, or is to be replaced.
    force : bool
        Whether an evaluation that is there may be replaced.
    settings : dict, optional
        Entries of the configuration's section ``evaluate`` to change.
    stages : callable, optional
        Receives the name of each stage and the part of it that is done.

    Raises
    ------
    InputError
        If the folder is not a run's, holds an evaluation that may not be replaced, or a setting is wrong.
    DataError
        If the schema is not the run's any more, or a file cannot be read.
    """
    folder = folder_of(folder)
    with locked(folder):
        run = open_run(folder, settings)
        report, config = run.report, run.config
        if report.evaluation is not None and not force:
            raise InputError(f"{folder} holds an evaluation; add --force to replace it")
        check_run(config)
        made = run.parts()
        table = {**report.table, "synthetic_records": len(made[0])}
        asked = {**report.config, "evaluate": config.to_dict()["evaluate"]}
        done = Finished(folder, replace(report, table=table, config=asked))
        judge(done, config, made, DPWGANGP.load(folder / MODEL), stages=stages)
    return done
