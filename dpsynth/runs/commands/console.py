"""Shared parts of all commands: results on stdout, everything else on stderr.

The options of every command that reads a table: how a CSV file is written.
"""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from dpsynth.errors import DataError, InputError, OwnerWarning
from dpsynth.table.csv_format import CsvFormat

if TYPE_CHECKING:
    import pandas as pd

    from dpsynth.studies.study import Estimates
    from dpsynth.table.schema import TableSchema


JsonFlag = Annotated[bool, Option("--json", help="Print one JSON object on stdout.")]
ForceFlag = Annotated[bool, Option("--force", help="Replace the outcome of an earlier command.")]
DataOption = Annotated[
    Path, Option("--data", help="CSV or Parquet file, a folder of Parquet files, or one of patients' files.")
]
SchemaOption = Annotated[Path, Option("--schema", help="YAML file.")]
EpsilonOption = Annotated[float | None, Option("--epsilon", help="Total budget.")]
DeltaOption = Annotated[
    float | None,
    Option(
        "--delta",
        help="Probability of failure. Default: n^-1.5 for n records to fit, if n is public, else 1e-6.",
    ),
]
GeneratorOption = Annotated[str, Option("--generator", help="marginals, wgan-gp or matching.")]
StepsOption = Annotated[
    int | None, Option("--steps", help="Steps of the WGAN critic, with --generator wgan-gp.")
]
NotPrivateFlag = Annotated[bool, Option("--not-private", help="Fit without any noise.")]
UnreviewedFlag = Annotated[
    bool, Option("--accept-unreviewed", help="Use fields that were read off the data. The ledger says so.")
]
StudyOption = Annotated[
    list[str] | None,
    Option(
        "--study",
        help="Pre-specified regression to estimate, such as 'logistic: death ~ age + sex'. Repeatable.",
    ),
]
AcceptNFlag = Annotated[
    bool, Option("--accept-n-public", help="Go on although n_public is far from the number of rows.")
]
SchedulerOption = Annotated[
    str | None,
    Option("--scheduler", help="Address of running Dask workers (tcp://host:8786), to work in parts."),
]
WorkersOption = Annotated[
    int | None,
    Option("--workers", help="Dask workers to start here, to work in parts. Default: one per core.", min=1),
]


class InterruptedCommand(Exception):
    """Ctrl-C, with the sentence that says what is left behind."""


def emit(result: Mapping[str, Any], text: str, *, as_json: bool) -> None:
    """Print a command's result: the whole record as JSON, or what a person wants to read."""
    if as_json:
        from dpsynth.files.storage import dump_json

        text = dump_json(result)
    try:
        print(text, flush=True)
    except BrokenPipeError:  # whoever read our output has had enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def say(line: str) -> None:
    """Print a line of the log on stderr."""
    print(line, file=sys.stderr, flush=True)


def refuse(given: Mapping[str, object], beside: str) -> None:
    """Raise InputError for the first option that is given. ``beside`` says what it does not go with."""
    for name, value in given.items():
        if value is not None:
            raise InputError(f"{name} does not go with {beside}")


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


__all__ = ["CsvFormat", "read_named", "reads_tables"]

_OPTIONS: dict[str, Any] = {
    "sep": Annotated[
        str | None, Option("--sep", help="Sign between cells of the CSV file, or 'tab'. Default: guessed.")
    ],
    "decimal": Annotated[
        str | None, Option("--decimal", help="'.' or ',' in numbers of the CSV file. Default: guessed.")
    ],
    "encoding": Annotated[
        str | None,
        Option("--encoding", help="Encoding of the CSV file, such as utf-8 or cp1252. Default: guessed."),
    ],
}


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command ``--sep``, ``--decimal`` and ``--encoding``, which it receives as ``csv_format``.

    Examples
    --------
    >>> @reads_tables
    ... def show(data: str, *, csv_format: CsvFormat) -> None:
    ...     print(data, csv_format.sep)
    >>> show(data="a.csv", sep="tab", decimal=None, encoding=None)
    a.csv \t
    """

    def with_format(*, sep: str | None, decimal: str | None, encoding: str | None, **given: Any) -> None:
        command(**given, csv_format=CsvFormat(sep, decimal, encoding))

    own = inspect.signature(command, eval_str=True).parameters.values()
    parameters = [parameter for parameter in own if parameter.name != "csv_format"]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)
        for name, option in _OPTIONS.items()
    ]
    with_format.__name__, with_format.__doc__ = command.__name__, command.__doc__
    with_format.__module__ = command.__module__
    with_format.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    with_format.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return with_format


def read_named(path: Path, schema: TableSchema, csv_format: CsvFormat) -> pd.DataFrame:
    """Read one table of several. An error names the table."""
    from dpsynth.patients.reader import reader_of

    try:
        return reader_of(schema).read(path, csv_format)
    except DataError as problem:
        if str(path) not in str(problem):
            problem.args = (f"{path}: {problem}",)
        raise
