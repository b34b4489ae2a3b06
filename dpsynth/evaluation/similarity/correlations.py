"""Mean absolute difference of two tables' correlation matrices over the encoded columns.

A first number, not from a paper but used by every comparison of generators; associations that suit the kinds
of the columns are in :mod:`~dpsynth.evaluation.similarity.associations`. Reads real records without payment:
internal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.evaluation.features import distance_features
from dpsynth.table.schema import Schema


#: records that are encoded at a time
_ROWS = 2048


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
    """Correlations of the encoded columns: sums of products, few of them, as most cells are categories."""
    from scipy.sparse import csr_matrix

    shift = None
    products, sums = np.zeros(()), np.zeros(())
    for start in range(0, len(frame), _ROWS):
        points = distance_features(frame.iloc[start : start + _ROWS], schema).points
        if shift is None:  # numbers are centred, or their products would lose digits; zeros stay zeros
            shift = np.where((points != 0.0).mean(axis=0) > 0.5, points.mean(axis=0), 0.0)
        few = csr_matrix(points - shift)
        products, sums = products + (few.T @ few).toarray(), sums + points.sum(axis=0) - len(points) * shift
    scatter = products - np.outer(sums, sums) / len(frame)
    norms = np.sqrt(np.maximum(scatter.diagonal(), 0.0))
    # Rounding leaves a constant column with a norm of a few ulp instead of 0.
    varies = norms > 1e-9 * np.sqrt(len(frame))
    scale = np.where(varies, norms, np.inf)
    return np.asarray(scatter / np.outer(scale, scale))
