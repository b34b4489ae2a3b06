"""Mean absolute difference of two tables' correlation matrices over the encoded columns.

A first number, not from a paper but used by every comparison of generators; associations that suit the kinds
of the columns are in :mod:`~dpsynth.evaluation.similarity.associations`. Reads real records without payment:
internal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.evaluation.features import category_codes, unit_values
from dpsynth.table.schema import Schema


def correlation_errors(
    real: pd.DataFrame, others: Sequence[pd.DataFrame], schema: Schema
) -> tuple[float, ...]:
    """Mean absolute difference of Pearson correlations over all pairs of encoded columns, in [0, 2].

    One for each of ``others`` against ``real``; all tables are conformed. The columns are those of
    :func:`~dpsynth.evaluation.features.distance_features`, each pair of different columns once; a column that
    is constant in a table has correlation 0 with every other one there. 0 where there is only one encoded
    column.
    """
    first = _correlations(real, schema)
    upper = np.triu_indices(len(first), k=1)
    found = []
    for other in others:
        differences = np.abs(first - _correlations(other, schema))[upper]
        found.append(float(differences.mean()) if len(differences) else 0.0)
    return tuple(found)


def _correlations(frame: pd.DataFrame, schema: Schema) -> NDArray[np.float64]:
    """Correlations of the encoded columns, from a sparse table: a record has one number a column, or two."""
    points = _sparse(frame, schema)
    products = (points.T @ points).toarray()
    sums = np.asarray(points.sum(axis=0)).ravel()
    scatter = products - np.outer(sums, sums) / len(frame)
    norms = np.sqrt(np.maximum(scatter.diagonal(), 0.0))
    # Rounding leaves a constant column with a norm of a few ulp instead of 0.
    varies = norms > 1e-9 * np.sqrt(len(frame))
    scale = np.where(varies, norms, np.inf)
    scatter /= scale[:, None]
    scatter /= scale
    return np.asarray(scatter)


def _sparse(frame: pd.DataFrame, schema: Schema) -> Any:
    """The columns of ``distance_features``, numbers less their mean, which keeps the digits of products."""
    from scipy.sparse import csr_matrix

    places, values, width = [], [], 0
    ones = np.ones(len(frame))
    for column in schema.columns:
        if column.is_categorical:
            codes = category_codes(column, frame[column.name])
            size = len(column.categories)
            places.append(width + np.where(codes < 0, size, codes))
            values.append(ones)
            width += size + column.missing
            continue
        unit = unit_values(column, frame[column.name])
        absent = np.isnan(unit)
        unit = np.where(absent, 0.5, unit)
        places.append(np.full(len(frame), width))
        values.append(unit - unit.mean())
        width += 1
        if column.incomplete:
            places.append(width + absent)
            values.append(ones)
            width += 2
    rows = np.arange(len(frame) + 1) * len(places)
    cells = np.stack(values, axis=1).ravel(), np.stack(places, axis=1).ravel(), rows
    return csr_matrix(cells, shape=(len(frame), width))
