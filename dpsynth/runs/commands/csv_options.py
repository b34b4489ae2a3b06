"""The options of every command that reads a table: how a CSV file is written."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpsynth.errors import DataError
from dpsynth.table.csv_format import CsvFormat

if TYPE_CHECKING:
    import pandas as pd

    from dpsynth.table.schema import Schema

__all__ = ["CsvFormat", "read_named", "reads_tables"]

_OPTIONS: dict[str, Any] = {
    "sep": Annotated[
        str | None, typer.Option("--sep", help="Sign between cells of the CSV file, or 'tab'; else guessed.")
    ],
    "decimal": Annotated[
        str | None, typer.Option("--decimal", help="'.' or ',' in numbers of the CSV file; else guessed.")
    ],
    "encoding": Annotated[
        str | None,
        typer.Option("--encoding", help="Of the CSV file, such as utf-8 or cp1252; else guessed."),
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


def read_named(path: Path, schema: Schema, csv_format: CsvFormat) -> pd.DataFrame:
    """Read one table of several; an error says which it is about."""
    from dpsynth.table.io import read_table

    try:
        return read_table(path, schema, csv_format)
    except DataError as problem:
        raise problem if str(path) in str(problem) else DataError(f"{path}: {problem}") from None
