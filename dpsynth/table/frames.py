"""Tables of other libraries: anything that hands its columns over as Arrow does (polars, duckdb, pyarrow)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from dpsynth.errors import InputError

_STREAM = "__arrow_c_stream__"


def pandas_of(table: Any) -> pd.DataFrame:
    """A table as a pandas DataFrame, its columns as Arrow keeps them.

    Raises InputError for what is no table.

    Examples
    --------
    >>> import pyarrow as pa
    >>> pandas_of(pa.table({"age": [30, None]}))["age"].isna().tolist()
    [False, True]
    """
    if isinstance(table, pd.DataFrame):
        return table
    if not hasattr(table, _STREAM):
        raise InputError(
            "a table must be a pandas DataFrame, or a table of polars, pyarrow or duckdb, got "
            f"{type(table).__name__}. pandas.DataFrame(...) makes one"
        )
    import pyarrow as pa

    frame: pd.DataFrame = pa.table(table).to_pandas(types_mapper=pd.ArrowDtype)
    return frame


def _polars(table: Any) -> Any:
    import polars

    return polars.from_arrow(table)


def _duckdb(table: Any) -> Any:
    import duckdb

    return duckdb.from_arrow(table)


#: How a library makes its own table of one of Arrow.
_LIBRARIES: dict[str, Callable[[Any], Any]] = {
    "polars": _polars,
    "duckdb": _duckdb,
    "pyarrow": lambda table: table,
}


def library_of(table: Any) -> str:
    """The library whose table this is, "pandas" for one that gives no table back.

    Examples
    --------
    >>> library_of(pd.DataFrame())
    'pandas'
    """
    for kind in type(table).__mro__:
        name = kind.__module__.lstrip("_").split(".")[0]
        if name in _LIBRARIES:
            return name
    return "pandas"


def as_came(frame: pd.DataFrame, library: str) -> Any:
    """A synthetic table as a table of the library that the real one came from."""
    if library not in _LIBRARIES:
        return frame
    import pyarrow as pa

    return _LIBRARIES[library](pa.Table.from_pandas(frame, preserve_index=False))
