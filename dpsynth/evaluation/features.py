"""Frames turned into arrays of numbers, for distances, correlations and classifiers.

Two encodings of a conformed frame, both fixed by the public schema:

* :func:`distance_features`: numeric columns are min-max scaled by their *public* bounds and ordinal columns
  by rank, to [0, 1]. Categories are one-hot divided by sqrt(2): two different ones lie at distance 1. A
  missing number is placed at 1/2. A (present, missing) pair, one-hot as well, marks it.
* :class:`ClassifierEncoding`: the same coordinates without the outcome. Missing numbers stay NaN if the
  classifier takes them. Otherwise they become the median of the *training* frame, beside an indicator.

No noise is added: numbers computed from private records by these arrays are confidential (``internal``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.table.schema import Column, Schema
from dpsynth.table.values import category_codes, numeric_values

Floats = NDArray[np.float64]


def unit_values(column: Column, series: pd.Series) -> Floats:
    """Scale numbers by their public bounds, or ordinal values by rank, to [0, 1]. NaN if missing."""
    if column.is_numeric:
        assert column.lower is not None and column.upper is not None
        return (numeric_values(column, series) - column.lower) / (column.upper - column.lower)
    # A single category carries no order; the division by 1 puts it at 0.
    return numeric_values(column, series) / max(len(column.categories) - 1, 1)


def distance_features(frame: pd.DataFrame, schema: Schema) -> Floats:
    """Encode a conformed frame for Euclidean distances and correlations: coordinates in [0, 1], never NaN.

    Examples
    --------
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=20, upper=60),
    ...                          Column(name="sex", kind="binary", categories=("F", "M"))))
    >>> distance_features(pd.DataFrame({"age": [30], "sex": ["M"]}), schema).round(3).tolist()
    [[0.25, 0.0, 0.707]]
    """
    blocks: list[Floats] = []
    for column in schema.columns:
        if column.is_categorical:
            blocks.append(one_hot(column, frame[column.name]) / np.sqrt(2.0))
            continue
        unit = unit_values(column, frame[column.name])
        absent = np.isnan(unit)
        blocks.append(np.where(absent, 0.5, unit)[:, None])
        if column.incomplete:
            blocks.append(np.stack([~absent, absent], axis=1) / np.sqrt(2.0))
    return np.hstack(blocks)


@dataclass(frozen=True)
class ClassifierEncoding:
    """Predictors of a classifier, without the outcome, and the medians of its training frame in [0, 1] units.

    The median is NaN for a column without any value, which is then the constant 1/2 wherever it is encoded.
    """

    schema: Schema
    medians: Floats

    @classmethod
    def fit(cls, frame: pd.DataFrame, schema: Schema, outcome: str) -> ClassifierEncoding:
        """Learn the medians of the training frame. Those of a synthetic frame may be shared."""
        predictors = schema.select(name for name in schema.names if name != outcome)
        medians = []
        for column in predictors.columns:
            if not column.is_categorical:
                unit = unit_values(column, frame[column.name])
                present = unit[~np.isnan(unit)]
                medians.append(float(np.median(present)) if len(present) else np.nan)
        return cls(predictors, np.array(medians, dtype=np.float64))

    def transform(self, frame: pd.DataFrame, *, impute: bool) -> Floats:
        """Encode a frame conformed to the schema that :meth:`fit` was given.

        Missing numbers become the training median with a 0/1 indicator if ``impute``, or stay NaN.
        """
        blocks: list[Floats] = []
        medians = iter(self.medians)
        for column in self.schema.columns:
            if column.is_categorical:
                blocks.append(one_hot(column, frame[column.name]))
                continue
            unit, median = unit_values(column, frame[column.name]), next(medians)
            absent = np.isnan(unit)
            if np.isnan(median):
                # Nothing was learned about this column, and histogram binning fails on one of NaN alone.
                unit = np.full(len(unit), 0.5)
            elif impute:
                unit = np.where(absent, median, unit)
            blocks.append(unit[:, None])
            if impute and column.incomplete:
                blocks.append(absent[:, None].astype(np.float64))
        return np.hstack(blocks)


def one_hot(column: Column, series: pd.Series) -> Floats:
    """One-hot columns of the declared categories, and last of missing values where these are allowed.

    Examples
    --------
    >>> sex = Column(name="sex", kind="binary", categories=("F", "M"))
    >>> one_hot(sex, pd.Series(["M", "F"])).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    codes = category_codes(column, series)
    size = len(column.categories)
    codes = np.where(codes < 0, size, codes) if column.missing else codes
    return (codes[:, None] == np.arange(size + column.missing)).astype(np.float64)
