"""The records of both sides: the defender's, which the model is trained on, and the reserved ones.

One pool holds both, the defender's first, so that a training set is a list of positions in it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.errors import InputError, of_records

if TYPE_CHECKING:
    from dpsynth.datasets.table import Table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sides:
    """Defender and Reserve records of a classification.

    Parameters
    ----------
    x : ndarray of shape (n_defender + n_reserve, d)
        Features, the defender's records first; record by record, so that no record is seen through another.
    y : ndarray of int, shape (n_defender + n_reserve,)
        Classes 0, 1, ...
    n_defender : int
    names : tuple of str
        Of the classes.

    Raises
    ------
    InputError
        If shapes differ, a side has no record, or a class is not a whole number from 0.
    """

    x: Floats
    y: Ints
    n_defender: int
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.x.ndim != 2 or self.y.shape != (len(self.x),):
            raise InputError(f"x must be a matrix and y have its rows, got {self.x.shape} and {self.y.shape}")
        if not 0 < self.n_defender < len(self.x):
            raise InputError(f"both sides must have records, got {self.n_defender} of {len(self.x)} records")
        if self.y.dtype.kind not in "iu" or self.y.min() < 0:
            raise InputError("y must hold whole numbers from 0")

    @classmethod
    def of(
        cls,
        x_defender: ArrayLike,
        y_defender: ArrayLike,
        x_reserve: ArrayLike,
        y_reserve: ArrayLike,
    ) -> Sides:
        """Join both sides' features (n, d) and classes (n,).

        Examples
        --------
        >>> sides = Sides.of([[0.0], [1.0]], [0, 1], [[2.0]], [1])
        >>> len(sides), sides.n_defender, sides.n_classes, sides.members.tolist()
        (3, 2, 2, [True, True, False])
        """
        parts = [np.asarray(x, dtype=np.float64) for x in (x_defender, x_reserve)]
        if any(part.ndim != 2 for part in parts) or parts[0].shape[1] != parts[1].shape[1]:
            raise InputError(f"features of both sides must have one width, got {[p.shape for p in parts]}")
        return cls(
            np.vstack(parts),
            np.concatenate([np.asarray(y_defender), np.asarray(y_reserve)]),
            len(parts[0]),
        )

    def __len__(self) -> int:
        return len(self.x)

    @property
    def n_reserve(self) -> int:
        """Number of reserved records."""
        return len(self.x) - self.n_defender

    @property
    def n_classes(self) -> int:
        """Number of classes, at least two."""
        return max(int(self.y.max()) + 1, len(self.names), 2)

    @property
    def members(self) -> NDArray[np.bool_]:
        """Whether each record is the defender's, shape (n_defender + n_reserve,)."""
        return np.arange(len(self.x)) < self.n_defender

    def fingerprint(self) -> str:
        """A text that differs for other records or another split; says nothing else about them."""
        digest = hashlib.blake2b(digest_size=12)
        for part in (self.x, self.y, np.array([self.n_defender])):
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()


def sides_of_table(table: Table, records: int, seed: int) -> Sides:
    """Draw the records of both sides from a table, without replacement.

    Features are the predictors on public bounds and declared categories
    (:func:`dpsynth.evaluation.features.distance_features`), so that none depends on another record. Records
    without an outcome are left out.

    Parameters
    ----------
    table : Table
        With an outcome that has categories.
    records : int
        On each side.
    seed : int
        Of the draw.

    Raises
    ------
    InputError
        If the schema has no outcome, or it is a number.
    DataError
        If the table has too few records.
    """
    from dpsynth.evaluation.features import distance_features
    from dpsynth.table.values import category_codes

    schema = table.schema
    if schema.outcome is None:
        raise InputError(f"{table.name} has no outcome to classify; name one in its schema")
    outcome = schema[schema.outcome]
    if outcome.is_numeric:
        raise InputError(
            f"the outcome {schema.outcome!r} is a number, a classifier needs categories; "
            "declare it as binary or categorical"
        )
    codes = category_codes(outcome, table.frame[schema.outcome])
    known = np.flatnonzero(codes >= 0)
    if len(known) < 2 * records:
        raise of_records(
            f"{table.name} has {len(known)} records with an outcome, two sides of {records} need "
            f"{2 * records}; ask for at most {len(known) // 2}"
        )
    chosen = np.random.default_rng(seed).permutation(known)[: 2 * records]
    predictors = schema.select(name for name in schema.names if name != schema.outcome)
    points = distance_features(table.frame.iloc[chosen], predictors)
    return Sides(points, codes[chosen], records, tuple(str(name) for name in outcome.categories))
