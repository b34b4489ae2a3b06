"""Shared parts of all commands: results on stdout, everything else on stderr."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from dpsynth.errors import DataError, InputError, OwnerWarning

if TYPE_CHECKING:
    import pandas as pd

    from dpsynth.studies.study import Estimates
    from dpsynth.table.csv_format import CsvFormat
    from dpsynth.table.schema import TableSchema


ForceFlag = Annotated[bool, Option("--force", help="Replace the outcome of an earlier command.")]
DataOption = Annotated[
    Path, Option("--data", help="CSV or Parquet file, a folder of Parquet files, or one of patients' files.")
]
SchemaOption = Annotated[Path, Option("--schema", help="YAML file.")]
EpsilonOption = Annotated[float | None, Option("--epsilon", help="Total budget.")]
#: the options that take epsilon's place, in a message
RISK = "--advantage or --tpr"
AdvantageOption = Annotated[
    float | None,
    Option(
        "--advantage",
        help="In place of --epsilon: the most by which an attack's hits may exceed its false alarms.",
    ),
]
TprOption = Annotated[
    float | None,
    Option("--tpr", help="In place of --epsilon: the most hits of an attack whose false alarms are --fpr."),
]
FprOption = Annotated[float | None, Option("--fpr", help="See --tpr.")]
TestFractionOption = Annotated[
    float | None,
    Option("--test-fraction", help="Part of the records that tests and does not train. Default: 0.5."),
]
DeltaOption = Annotated[
    float | None,
    Option(
        "--delta",
        help="Probability of failure. Default: n^-1.5 for n records to fit, if n is public, else 1e-6.",
    ),
]
DatasetOption = Annotated[
    str | None, Option("--dataset", help="Registered data set, as `dpsynth data` lists them.")
]
GeneratorOption = Annotated[
    str, Option("--generator", help="marginals, wgan-gp or matching. Its options follow.")
]
NotPrivateFlag = Annotated[bool, Option("--not-private", help="Fit without any noise.")]
StudyOption = Annotated[
    list[str] | None,
    Option(
        "--study",
        help="Pre-specified regression to estimate, such as 'logistic: death ~ age + sex'. Repeatable.",
    ),
]
WorkersOption = Annotated[
    str | None,
    Option(
        "--workers",
        help="Dask workers to start here, to work in parts, or the address of a scheduler (tcp://host:8786). "
        "Default: one per core.",
    ),
]


class InterruptedCommand(Exception):
    """Ctrl-C, with the sentence that says what is left behind."""


#: Whether results are printed as JSON: ``dpsynth --json``.
AS_JSON = ContextVar("as_json", default=False)


def emit(result: Mapping[str, Any], text: str) -> None:
    """Print a command's result: the whole record as JSON, or what a person wants to read."""
    if AS_JSON.get():
        from dpsynth.files.storage import dump_json

        text = dump_json(result)
    try:
        print(text, flush=True)
    except BrokenPipeError:  # whoever read our output has had enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def say(line: str) -> None:
    """Print a line of the log on stderr."""
    print(line, file=sys.stderr, flush=True)


def dask_workers(given: str | None) -> dict[str, Any]:
    """Arguments of `dpsynth.parallel.connected` for a number of workers, or the address of a scheduler."""
    if given is None or "://" in given:
        return {"scheduler": given}
    if not given.isdecimal() or int(given) < 1:
        raise InputError(f"--workers needs a number of at least 1, or an address with ://, got {given!r}")
    return {"workers": int(given)}


def refuse(given: Mapping[str, object], beside: str) -> None:
    """Raise InputError for the first option that is given. ``beside`` says what it does not go with."""
    for name, value in given.items():
        if value is not None:
            raise InputError(f"{name} does not go with {beside}")


def asked_risk(epsilon: float | None, advantage: float | None, tpr: float | None, fpr: float | None) -> Any:
    """The :class:`~dpsynth.privacy.risk.RiskLimit` that was given in place of epsilon, or None."""
    given = {"--advantage": advantage, "--tpr": tpr, "--fpr": fpr}
    if all(value is None for value in given.values()):
        return None
    from dpsynth.privacy.risk import RiskLimit

    if epsilon is not None:
        refuse(given, "--epsilon, which it replaces")
    return RiskLimit.of(advantage=advantage, tpr=tpr, fpr=fpr)


def estimate_tables(estimates: Sequence[Estimates]) -> list[str]:
    """Private estimates as tables of text, a blank line after each."""
    return [f"{study}\n" for study in estimates]


@contextmanager
def owner_warnings() -> Iterator[None]:
    """Print what is for the table's owner as one line on stderr."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", OwnerWarning)
        shown = warnings.showwarning

        def show(message: Any, category: Any, *place: Any, **where: Any) -> None:
            if issubclass(category, OwnerWarning):
                say(f"dpsynth: {message}")
            else:
                shown(message, category, *place, **where)

        warnings.showwarning = show
        yield


def read_named(path: Path, schema: TableSchema, csv_format: CsvFormat | None = None) -> pd.DataFrame:
    """Read one table of several, by default in the schema's format. An error names the table."""
    from dpsynth.patients.reader import reader_of

    try:
        return reader_of(schema).read(path, csv_format)
    except DataError as problem:
        if str(path) not in str(problem):
            problem.args = (f"{path}: {problem}",)
        raise
