"""A first draft of a schema, read off a table.

Reading bounds and categories off private records and then publishing anything that depends on them voids
the guarantee: one unusual record moves a bound. So everything that the draft read is named in each column's
``unreviewed``, and :func:`dpsynth.table.schema.require_reviewed` refuses it until somebody has replaced it
by public knowledge.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.errors import DataError
from dpsynth.table.column import EXACT_INTEGERS, Column
from dpsynth.table.schema import Schema

_MOST_DECIMALS = 6
_MOST_CATEGORIES = (
    50  # a text column with more distinct values than this and than half its rows is no category
)
_LOG_RATIO = 50.0


def infer(frame: pd.DataFrame, name: str | None = None) -> Schema:
    """Draft a schema from a table.

    Not private: it reads the records with unlimited sensitivity and posts no event. The draft must not
    leave the place where the records are before it is reviewed. The number of records is not written down.

    Parameters
    ----------
    frame : pandas.DataFrame, shape (n, columns)
        True/false columns and numbers of two values become binary, other numbers integer or continuous,
        ordered categoricals ordinal, text categorical.
    name : str, optional
        Of the schema.

    Returns
    -------
    Schema
        Each column's ``unreviewed`` lists every field but the name, since all are read off the data.

    Raises
    ------
    DataError
        If the table has no rows or no columns, or a column holds dates, free text, infinite numbers or
        nothing at all.

    Examples
    --------
    >>> schema = infer(pd.DataFrame({"age": [34, 51, 78], "sex": ["F", "M", "F"]}))
    >>> schema["age"].lower, schema["age"].upper, schema["age"].unreviewed
    (34.0, 78.0, ('kind', 'lower', 'upper', 'missing'))
    """
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        raise DataError(f"a schema cannot be drafted from {frame.shape[0]} rows and {frame.shape[1]} columns")
    return Schema(
        name=name,
        columns=tuple(_draft(str(label), frame.iloc[:, i]) for i, label in enumerate(frame.columns)),
    )


def _draft(name: str, values: pd.Series) -> Column:
    present = values.dropna()
    if present.empty:
        raise DataError(f"column {name!r} has no values; leave it out")
    if pd.api.types.is_datetime64_any_dtype(values.dtype) or pd.api.types.is_timedelta64_dtype(values.dtype):
        raise DataError(
            f"column {name!r} holds dates; give days since a public date as whole numbers instead"
        )
    if isinstance(values.dtype, pd.CategoricalDtype):
        kind = "ordinal" if values.dtype.ordered else "categorical"
        fields = _category_fields(name, kind, list(values.dtype.categories), len(present))
    elif pd.api.types.is_bool_dtype(values.dtype) or all(isinstance(v, bool | np.bool_) for v in present):
        fields = {"kind": "binary", "categories": (False, True)}
    elif pd.api.types.is_numeric_dtype(values.dtype):
        fields = _number_fields(name, present.to_numpy(dtype=np.float64))
    else:
        distinct = sorted({str(value).strip() for value in present})
        fields = _category_fields(name, "categorical", distinct, len(present))
    fields["missing"] = bool(values.isna().any())
    return Column(name=name, **fields, unreviewed=tuple(fields))


def _number_fields(name: str, numbers: np.ndarray) -> dict[str, Any]:
    if np.isinf(numbers).any():
        raise DataError(f"column {name!r}, row {int(np.argmax(np.isinf(numbers))) + 1}: an infinite value")
    distinct = np.unique(numbers)
    whole = bool(np.all(distinct == np.rint(distinct)))
    if whole and np.abs(distinct).max() > EXACT_INTEGERS:
        raise DataError(f"column {name!r} holds whole numbers beyond 2**53: identifiers? leave it out")
    if len(distinct) <= 2 and (whole or len(distinct) == 1):
        categories = tuple(int(v) if whole else float(v) for v in distinct)
        return {"kind": "binary" if len(distinct) == 2 else "categorical", "categories": categories}
    lower, upper = float(distinct[0]), float(distinct[-1])
    if whole and len(distinct) == len(numbers) > _MOST_CATEGORIES and upper - lower == len(numbers) - 1:
        raise DataError(
            f"column {name!r} counts the rows from {lower:g} to {upper:g}: identifiers cannot be "
            "synthesized; leave it out"
        )
    fields: dict[str, Any] = {"kind": "integer" if whole else "continuous", "lower": lower, "upper": upper}
    if not whole:
        decimals = _decimals(distinct)
        if decimals is not None:
            fields["decimals"] = decimals
    if lower > 0 and upper / lower >= _LOG_RATIO:
        fields["scale"] = "log"
    return fields


def _decimals(distinct: np.ndarray) -> int | None:
    for decimals in range(1, _MOST_DECIMALS + 1):
        if np.array_equal(np.round(distinct, decimals), distinct):
            return decimals
    return None


def _category_fields(name: str, kind: str, distinct: list[Any], n: int) -> dict[str, Any]:
    if len(distinct) > max(_MOST_CATEGORIES, math.floor(n / 2)):
        raise DataError(
            f"column {name!r} has {len(distinct)} distinct values in {n} rows: identifiers or free text "
            "cannot be synthesized; leave it out"
        )
    categories = tuple(value.item() if isinstance(value, np.generic) else value for value in distinct)
    return {
        "kind": "binary" if kind == "categorical" and len(categories) == 2 else kind,
        "categories": categories,
    }
