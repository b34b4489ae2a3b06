"""How a synthetic table lies around a record: what shadow models learn to tell a planted one by.

A generator that copies brings records close to it. One that draws from counts shows a record
where one or two of its values occur more often than they should: for a table without privacy this tells nine
canaries of ten, where distances alone tell six (benchmarks/results/synthetic_attacks.md).

References
----------
Houssiau et al. (2022), "TAPAS: a toolbox for adversarial privacy auditing of synthetic data", for counts of
records that share values with a target.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.evaluation.disclosure.distances import record_distance
from dpsynth.evaluation.features import category_codes, unit_values
from dpsynth.evaluation.neighbours.search import nearest
from dpsynth.table.schema import Schema

Floats = NDArray[np.float64]

#: what rounds that were kept by another version would not have
VERSION = 2
#: how close the closest and the fifth closest synthetic record lie
_NEIGHBOURS = (1, 5)
#: two numbers are alike within this part of the public range
_ALIKE = 0.02
#: stands for the logarithm of distance 0
_COPY = -30.0


def look_around(canaries: pd.DataFrame, made: pd.DataFrame, schema: Schema) -> Floats:
    """Return how a table lies around each canary, larger numbers where it is far away or rare.

    Parameters
    ----------
    canaries, made : pandas.DataFrame of shape (k, columns), (m, columns)
        Conformed.
    schema : Schema
        Derived columns are left out.

    Returns
    -------
    ndarray of shape (k, 4)
        Logarithms of the distances of the closest and the fifth closest record; minus mean logarithms of how
        many records share one value with the canary, and two.
    """
    schema = schema.modelled
    metric = record_distance(schema)
    points, others = (metric.encode(frame, schema) for frame in (canaries, made))
    far = np.sqrt(nearest(points, others, metric, max(_NEIGHBOURS)).distance)
    columns = [far[:, min(k, far.shape[1]) - 1] for k in _NEIGHBOURS]
    with np.errstate(divide="ignore"):
        distances = np.maximum(np.log(np.stack(columns, axis=1)), _COPY)
    return np.hstack([distances, shared_values(canaries, made, schema)])


def shared_values(canaries: pd.DataFrame, made: pd.DataFrame, schema: Schema) -> Floats:
    """How few synthetic records share one value with a canary, or two: minus mean logarithms of counts.

    Parameters
    ----------
    canaries, made : pandas.DataFrame of shape (k, columns), (m, columns)
        Conformed.

    Returns
    -------
    ndarray of shape (k, 2)
        Over the columns, and over the pairs of columns (0 where there is one column alone).
    """
    codes = [_units(frame, schema) for frame in (canaries, made)]
    within = np.array([0.0 if column.is_categorical else _ALIKE for column in schema.columns])
    pairs = ~np.eye(len(schema), dtype=bool)
    found = np.zeros((len(canaries), 2))
    for row, record in zip(found, codes[0], strict=True):
        alike = (np.abs(codes[1] - record) <= within).astype(np.float32)
        both = alike.T @ alike
        row[0] = -float(np.log1p(np.diag(both)).mean())
        row[1] = -float(np.log1p(both[pairs]).mean()) if pairs.any() else 0.0
    return found


def _units(frame: pd.DataFrame, schema: Schema) -> Floats:
    """Numbers scaled by their public range, codes of categories; NaN, which is like nothing, if missing."""
    columns = []
    for column in schema.columns:
        if column.is_categorical:
            codes = category_codes(column, frame[column.name]).astype(np.float64)
            columns.append(np.where(codes < 0, np.nan, codes))
        else:
            columns.append(unit_values(column, frame[column.name]))
    return np.stack(columns, axis=1)
