"""Distance to the closest record (DCR) and nearest-neighbour distance ratio (NNDR), against held-out records.

A synthetic record may lie close to a training record because it was copied from there or because records
like it are common; held-out records tell the two apart. All distances of synthetic to real records come from
one pass over tiles; they are Euclidean on :func:`~dpsynth.evaluation.features.distance_features`, formed from
differences, so that the distance of equal records is exactly 0. Two different categories lie at distance 1
there, so that categories are compared as codes, which takes far less time than their one-hot coordinates.

References
----------
Zhao et al. (2021), "CTAB-GAN: effective table data synthesizing", section 4.4, for DCR and NNDR; the share
closer to training than to held-out records as in Platzer and Reutterer (2021), "Holdout-based empirical
assessment of mixed-type synthetic data".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from dpsynth.evaluation.features import category_codes, unit_values
from dpsynth.evaluation.neighbours.sides import TIE_TOLERANCE, tie_band
from dpsynth.evaluation.progress import Progress, silent
from dpsynth.table.schema import Schema

Floats = NDArray[np.float64]

#: distances in one tile; 32 MB
_TILE = 4_000_000


@dataclass(frozen=True)
class Points:
    """Records to measure distances between.

    Attributes
    ----------
    numbers : ndarray of shape (n, a)
        Their differences count squared.
    codes : ndarray of shape (n, b)
        Whole numbers; each that differs counts 1.
    """

    numbers: Floats
    codes: Floats

    @classmethod
    def of(cls, frame: pd.DataFrame, schema: Schema) -> Points:
        """Encode a conformed frame, with the distances of ``distance_features``.

        Examples
        --------
        >>> from dpsynth.table.schema import Column
        >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=20, upper=60, missing=True),
        ...                          Column(name="sex", kind="binary", categories=("F", "M"))))
        >>> points = Points.of(pd.DataFrame({"age": [30.0, None], "sex": ["M", "F"]}), schema)
        >>> points.numbers.tolist(), points.codes.tolist()
        ([[0.25], [0.5]], [[0.0, 1.0], [1.0, 0.0]])
        """
        numbers, codes = [], []
        for column in schema.columns:
            if column.is_categorical:
                codes.append(category_codes(column, frame[column.name]).astype(np.float64))
                continue
            unit = unit_values(column, frame[column.name])
            absent = np.isnan(unit)
            numbers.append(np.where(absent, 0.5, unit))
            if column.missing:
                codes.append(absent.astype(np.float64))
        return cls(
            *(np.array(block).T.copy() if block else np.empty((len(frame), 0)) for block in (numbers, codes))
        )

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: slice) -> Points:
        return Points(self.numbers[rows], self.codes[rows])

    def followed_by(self, others: Points) -> Points:
        """Return these records and then the others."""
        return Points(np.vstack([self.numbers, others.numbers]), np.vstack([self.codes, others.codes]))

    def squared(self, others: Points) -> Floats:
        """Return squared distances, shape (n, m)."""
        a, b = self.numbers.shape[1], self.codes.shape[1]
        if not b:
            return cdist(self.numbers, others.numbers, "sqeuclidean")
        differing = cdist(self.codes, others.codes, "hamming")
        differing *= b
        np.rint(differing, out=differing)  # counts, exactly
        if a:
            differing += cdist(self.numbers, others.numbers, "sqeuclidean")
        return differing


@dataclass(frozen=True)
class Closest:
    """Distances between synthetic records and k training (and k held-out) records.

    Attributes
    ----------
    synthetic_train, synthetic_test : ndarray of shape (m, 2), or None
        Distances of each synthetic record to its nearest and second nearest training (held-out) record;
        infinite where there is no second one.
    train_synthetic, test_synthetic : ndarray of shape (k,), or None
        Distance of each real record to its nearest synthetic record.
    test_train : ndarray of shape (k, 2), or None
        Distances of each held-out record to its two nearest training records.
    train_reference, test_reference : ndarray of shape (k,), (k - k // 2,), or None
        Distance of each training record, and of each held-out record of the second half, to its nearest one
        among the first ``k // 2`` held-out records; None for k = 1.
    weights : ndarray of shape (2 k,), or None
        Share of the synthetic records whose nearest real record is each of the training, then of the
        held-out records; a tie is split evenly among the tied records.
    """

    synthetic_train: Floats
    train_synthetic: Floats
    synthetic_test: Floats | None = None
    test_synthetic: Floats | None = None
    test_train: Floats | None = None
    train_reference: Floats | None = None
    test_reference: Floats | None = None
    weights: Floats | None = None


def closest(
    synthetic: Points,
    train: Points,
    test: Points | None = None,
    *,
    progress: Progress = silent,
) -> Closest:
    """Measure how close synthetic records lie to training and to as many held-out records.

    Parameters
    ----------
    synthetic : Points
        m records.
    train : Points
        k records.
    test : Points, optional
        As many records as ``train``: the nearest of more records is nearer. In random order.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    Closest
        Internal.

    Examples
    --------
    >>> tables = ([[0.0], [0.9]], [[0.0], [0.5]], [[0.4], [1.0]])
    >>> found = closest(*(Points(np.array(table), np.empty((2, 0))) for table in tables))
    >>> found.synthetic_train.round(1).tolist(), found.weights.tolist()
    ([[0.0, 0.5], [0.4, 0.9]], [0.5, 0.0, 0.0, 0.5])
    """
    m, k = len(synthetic), len(train)
    real = train if test is None else train.followed_by(test)
    to_train, to_test = np.empty((m, 2)), np.empty((m, 2))
    to_synthetic = np.full(len(real), np.inf)
    weights = np.zeros(len(real))
    part = 2 * m / (2 * m + k)
    for rows, squared in _tiles(synthetic, real):
        to_train[rows] = _two_smallest(squared[:, :k])
        np.minimum(to_synthetic, squared.min(axis=0), out=to_synthetic)
        if test is not None:
            to_test[rows] = _two_smallest(squared[:, k:])
            nearest = np.minimum(to_train[rows, 0], to_test[rows, 0])
            i, j = np.nonzero(squared <= tie_band(nearest, TIE_TOLERANCE)[1][:, None])
            tied = np.bincount(i, minlength=len(squared))
            weights += np.bincount(j, weights=1.0 / tied[i], minlength=len(real))
        progress(rows.stop / m * (part if test is not None else 1.0))
    if test is None:
        return Closest(np.sqrt(to_train), np.sqrt(to_synthetic))

    test_train, train_reference, test_reference = (
        np.empty((k, 2)),
        np.full(k, np.inf),
        np.full(k - k // 2, np.inf),
    )
    for rows, squared in _tiles(test, train):
        test_train[rows] = _two_smallest(squared)
        references = squared[: max(k // 2 - rows.start, 0)]
        np.minimum(train_reference, references.min(axis=0, initial=np.inf), out=train_reference)
        progress(part + (1.0 - part) * rows.stop / k)
    for _, squared in _tiles(test[: k // 2], test[k // 2 :]):
        np.minimum(test_reference, squared.min(axis=0), out=test_reference)
    return Closest(
        synthetic_train=np.sqrt(to_train),
        train_synthetic=np.sqrt(to_synthetic[:k]),
        synthetic_test=np.sqrt(to_test),
        test_synthetic=np.sqrt(to_synthetic[k:]),
        test_train=np.sqrt(test_train),
        train_reference=np.sqrt(train_reference) if k > 1 else None,
        test_reference=np.sqrt(test_reference) if k > 1 else None,
        weights=weights / m,
    )


def distance_ratio(nearest: Floats) -> Floats:
    """Nearest-neighbour distance ratio of each record: nearest over second nearest distance, in [0, 1].

    Parameters
    ----------
    nearest : ndarray of shape (n, 2)
        As in :class:`Closest`. Two equal nearest records, at distance 0 as well, have ratio 1.

    Examples
    --------
    >>> distance_ratio(np.array([[1.0, 4.0], [0.0, 0.0], [0.0, 2.0]])).tolist()
    [0.25, 1.0, 0.0]
    """
    first, second = nearest.T
    return np.where(second > 0, first / np.where(second > 0, second, 1.0), 1.0)


def _tiles(points: Points, others: Points) -> Iterator[tuple[slice, Floats]]:
    """Yield squared distances of some points to all others; the one place where distances are formed."""
    rows = max(1, _TILE // max(len(others), 1))
    for top in range(0, len(points), rows):
        chosen = slice(top, min(top + rows, len(points)))
        yield chosen, points[chosen].squared(others)


def _two_smallest(squared: Floats) -> Floats:
    if squared.shape[1] < 2:
        return np.hstack([squared, np.full((len(squared), 1), np.inf)])
    return np.partition(squared, 1, axis=1)[:, :2]
