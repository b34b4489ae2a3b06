"""Noisy tables of what each row of a patient's history adds to the patient's levels.

A patient with many rows would move a table of counts by as many. Here a patient adds the vector of their own
counts divided by its Euclidean length (0 without rows). Every patient then has length 1 in each table, whatever
their number of rows, and k tables together have L2 sensitivity sqrt(k) under adding or removing one patient with
all rows. Divided by the number of rows instead, a patient would have length 1 at most, and less signal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth.releases.gaussian import Array, GaussianRelease
from dpsynth.releases.records import FrameRecords, Records
from dpsynth.table.patients import Histories, PatientSchema, levels_of
from dpsynth.table.visit_tables import Ints, VisitTable, cells, visit_tables

#: Patients that are counted at once, which bounds memory.
_BLOCK = 20_000


class PatientRecords(FrameRecords):
    """Histories in memory. Each patient is one record, whose columns are the levels."""

    def __init__(self, histories: Histories, schema: PatientSchema) -> None:
        super().__init__(levels_of(histories, schema))
        self._histories = histories

    def histories(self) -> Histories:
        """The histories themselves."""
        self._check_open()
        return self._histories


def weighted_counts(cell: Ints, size: int) -> Array:
    """Sum of each patient's own counts divided by their Euclidean length, shape (size,).

    ``cell``, shape (N, rows): the cell of each row, -1 for none.

    Examples
    --------
    >>> weighted_counts(np.array([[0, 0, 0, 0], [0, 1, -1, -1]]), 2).round(3).tolist()
    [1.707, 0.707]
    """
    total = np.zeros(size)
    for start in range(0, len(cell), _BLOCK):
        part = cell[start : start + _BLOCK]
        there = part >= 0
        # The squared length is the number of ordered pairs of rows in one cell.
        pairs = (part[:, :, None] == part[:, None, :]) & there[:, :, None] & there[:, None, :]
        length = np.sqrt(np.maximum(pairs.sum(axis=(1, 2)), 1))
        weights = np.broadcast_to(1.0 / length[:, None], part.shape)
        total += np.bincount(part[there], weights[there], minlength=size)
    return total


@dataclass(frozen=True, kw_only=True)
class VisitsRelease(GaussianRelease[list[Array]]):
    """The tables of `visit_tables`, to each of which a patient adds a vector of length 1."""

    schema: PatientSchema
    name = "tables of rows"

    @property
    def tables(self) -> list[VisitTable]:
        """Public shapes of the tables."""
        return visit_tables(self.schema)

    @property
    def l2_sensitivity(self) -> float:
        """Square root of the number of tables."""
        return float(np.sqrt(len(self.tables)))

    @property
    def sensitivity(self) -> str:
        """In words, for the ledger."""
        number = len(self.tables)
        return f"sqrt({number}) (a patient with all rows adds a vector of length 1 to each of {number} tables)"

    def query(self, records: Records) -> Sequence[Array]:
        """Exact sums: a private quantity, never to be shown."""
        if not isinstance(records, PatientRecords):
            raise TypeError("tables of rows need the histories of patients")
        histories = records.histories()
        exact = []
        for table in self.tables:
            own = cells(table, histories, self.schema)
            exact.append(weighted_counts(own, int(np.prod(table.shape))).reshape(table.shape))
        return exact

    def finish(self, noisy: Sequence[Array]) -> list[Array]:
        """The noisy tables, in the order of `tables`."""
        return list(noisy)


__all__ = ["PatientRecords", "VisitsRelease", "weighted_counts"]
