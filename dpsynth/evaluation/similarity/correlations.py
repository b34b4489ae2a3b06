"""Mean absolute difference of two tables' correlation matrices over the encoded columns.

A first number, not from a paper but used by every comparison of generators; associations that suit the kinds
of the columns are in :mod:`~dpsynth.evaluation.similarity.associations`. Reads real records without payment:
internal.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.evaluation.features import distance_features
from dpsynth.table.schema import Schema


def correlation_error(real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema) -> float:
    """Mean absolute difference of Pearson correlations over all pairs of encoded columns, in [0, 2].

    The columns are those of :func:`~dpsynth.evaluation.features.distance_features`, each pair of different
    columns once; a column that is constant in a table has correlation 0 with every other one there. 0 where
    there is only one encoded column. Both tables are conformed.
    """
    a, b = (_correlations(distance_features(frame, schema).points) for frame in (real, synthetic))
    upper = np.triu_indices(len(a), k=1)
    return float(np.abs(a - b)[upper].mean()) if len(upper[0]) else 0.0


def _correlations(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Correlations of the columns of an array that nobody needs afterwards: large tables are not copied."""
    values -= values.mean(axis=0)
    parts = np.array_split(values, -(-values.shape[1] // 16), axis=1)
    norms = np.sqrt(np.concatenate([(part**2).sum(axis=0) for part in parts]))
    # Rounding leaves a constant column with a norm of a few ulp instead of 0.
    varies = norms > 1e-9 * np.sqrt(len(values))
    values /= np.where(varies, norms, 1.0)
    values[:, ~varies] = 0.0
    return values.T @ values
