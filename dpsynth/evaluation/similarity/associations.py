"""How strongly any two columns go together, on one scale for all kinds of columns.

==========  ==========  ======================================================================
one         other       measure in [0, 1]
==========  ==========  ======================================================================
ordered     ordered     absolute Pearson correlation (ordinal columns by rank)
categories  categories  Cramér's V with Bergsma's bias correction
categories  ordered     correlation ratio, corrected as Kelley's epsilon squared
==========  ==========  ======================================================================

Each pair uses the records in which both values are present. Both corrections subtract what independent
columns of so many categories would show by chance, so that tables of different sizes can be compared.

References
----------
Bergsma (2013), "A bias-correction for Cramér's V and Tschuprow's T". Kelley (1935), "An unbiased correlation
ratio measure".
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.evaluation.features import category_codes, unit_values
from dpsynth.table.schema import Schema

Floats = NDArray[np.float64]

PEARSON, CRAMER, RATIO = "Pearson", "Cramér's V", "correlation ratio"


@dataclass(frozen=True)
class Association:
    """Associations of all pairs of columns of one table.

    Attributes
    ----------
    columns : tuple of str
    matrix : ndarray of shape (p, p)
        Symmetric, 1 on the diagonal; NaN where a column is constant among the complete records of a pair, or
        where there are fewer than two of them.
    kinds : tuple of tuple of str
        Which measure each entry is.
    signs : ndarray of shape (p, p), optional
        Direction of Pearson correlations, 1 or -1; 1 for measures without a direction, and if not given.
    """

    columns: tuple[str, ...]
    matrix: Floats
    kinds: tuple[tuple[str, ...], ...]
    signs: Floats | None = None


def association(frame: pd.DataFrame, schema: Schema, *, corrected: bool = True) -> Association:
    """Measure the association of every pair of columns of a conformed frame; ``corrected`` for chance.

    Time grows with ``n p**2``: matrix products for ordered columns, one count of ``n`` cells for each pair of
    columns of categories.
    """
    ordered = [i for i, column in enumerate(schema.columns) if not column.is_categorical]
    labels = [i for i, column in enumerate(schema.columns) if column.is_categorical]
    p = len(schema)
    matrix, signs = np.full((p, p), np.nan), np.ones((p, p))
    if ordered:
        values = np.column_stack(
            [unit_values(schema.columns[i], frame[schema.columns[i].name]) for i in ordered]
        )
        present = ~np.isnan(values)
        # Centred by column, the sums of squares below lose no digits.
        means = np.where(present, values, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
        values, mask = np.where(present, values - means, 0.0), present.astype(np.float64)
        pearson = _pearson(values, mask)
        matrix[np.ix_(ordered, ordered)] = np.abs(pearson)
        signs[np.ix_(ordered, ordered)] = np.where(pearson < 0.0, -1.0, 1.0)
    codes = {i: category_codes(schema.columns[i], frame[schema.columns[i].name]) for i in labels}
    sizes = {i: len(schema.columns[i].categories) for i in labels}
    for i in labels:
        if ordered:
            ratio = _correlation_ratio(codes[i], sizes[i], values, mask, corrected)
            matrix[i, ordered] = matrix[ordered, i] = ratio
    for i, j in combinations(labels, 2):
        both = (codes[i] >= 0) & (codes[j] >= 0)
        cells = codes[i][both] * sizes[j] + codes[j][both]
        table = np.bincount(cells, minlength=sizes[i] * sizes[j]).reshape(sizes[i], sizes[j])
        matrix[i, j] = matrix[j, i] = cramers_v(table, corrected=corrected)
    np.fill_diagonal(matrix, 1.0)
    flags = [column.is_categorical for column in schema.columns]
    kinds = tuple(tuple(CRAMER if a and b else RATIO if a or b else PEARSON for b in flags) for a in flags)
    return Association(schema.names, matrix, kinds, signs)


def cramers_v(table: NDArray[np.int64], *, corrected: bool = True) -> float:
    """Cramér's V of a table of counts, shape (r, c); NaN where rows or columns are fewer than two.

    Rows and columns without any count are left out; ``corrected`` is by Bergsma.
    """
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    r, c = table.shape
    if min(r, c) < 2:
        return float("nan")
    n = float(table.sum())
    rows, columns = table.sum(axis=1) / n, table.sum(axis=0) / n
    phi2 = float(((table / n) ** 2 / np.outer(rows, columns)).sum()) - 1.0
    if not corrected:
        return float(np.sqrt(np.clip(phi2 / (min(r, c) - 1), 0.0, 1.0)))
    # Bergsma (2013): phi^2 and both dimensions less what independence gives on average
    phi2 = max(phi2 - (r - 1) * (c - 1) / (n - 1), 0.0)
    r_less, c_less = r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)
    least = min(r_less, c_less) - 1.0
    # With as many categories as records nothing is left to tell association from chance.
    return float(np.sqrt(min(phi2 / least, 1.0))) if least > 1e-12 else 0.0


def _pearson(values: Floats, mask: Floats) -> Floats:
    """Correlations over complete pairs; ``values`` are 0 where ``mask`` is."""
    n = mask.T @ mask
    count = np.maximum(n, 1.0)
    sums = values.T @ mask  # sums[i, j]: of column i where j is present
    squares = (values**2).T @ mask
    spread = squares - sums**2 / count
    spread = np.where((n >= 2) & (spread > 1e-12 * count), spread, np.nan)
    product = values.T @ values - sums * sums.T / count
    # spread[i, j] is of column i, spread[j, i] of column j, over the same records
    return np.clip(product / np.sqrt(spread * spread.T), -1.0, 1.0)


def _correlation_ratio(
    codes: NDArray[np.int64], size: int, values: Floats, mask: Floats, corrected: bool
) -> Floats:
    """Correlation ratio of every ordered column given one column of categories."""
    from scipy.sparse import csr_matrix

    known = np.flatnonzero(codes >= 0)
    chosen = csr_matrix((np.ones(len(known)), (codes[known], known)), shape=(size, len(codes)))
    counts, sums, squares = chosen @ mask, chosen @ values, chosen @ values**2
    n = counts.sum(axis=0)
    groups = (counts > 0).sum(axis=0)
    total = squares.sum(axis=0) - sums.sum(axis=0) ** 2 / np.maximum(n, 1.0)
    between = (sums**2 / np.maximum(counts, 1.0)).sum(axis=0) - sums.sum(axis=0) ** 2 / np.maximum(n, 1.0)
    defined = (n >= 2) & (groups >= 2) & (total > 1e-12 * np.maximum(n, 1.0))
    eta2 = np.clip(between / np.where(defined, total, 1.0), 0.0, 1.0)
    if corrected:
        # Kelley: compare variances, not sums of squares; nothing is left where each record is its own group
        free = n - groups
        eta2 = np.where(free > 0, 1.0 - (1.0 - eta2) * (n - 1) / np.maximum(free, 1.0), 0.0)
    return np.where(defined, np.sqrt(np.clip(eta2, 0.0, 1.0)), np.nan)
