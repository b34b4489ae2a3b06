"""Private records, which answer while the ledger runs a release on them and at no other time.

All counts come from one method, `Records.counts`. The records are a frame in memory or a table in parts
(`dpsynth.releases.partitioned`). The lock is against mistakes, not malice: code that reads records without
posting the reading fails the first time it is run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import PrivacyError
from dpsynth.releases.bins import Axis

#: The axes of one table of counts, in order.
Axes = Sequence[Axis]
#: Sums over the records of a frame.
Summing = Callable[[pd.DataFrame], Sequence[NDArray]]
#: ``of(frame, first)``: numbers of each record of a frame, whose first is number ``first`` of the table.
Rowwise = Callable[[pd.DataFrame, int], NDArray]
#: Records of a frame that are read at once, which bounds the memory of what each contributes.
_BLOCK = 20_000


class Records(ABC):
    """A conformed private table, counted by its subclasses.

    Examples
    --------
    >>> records = FrameRecords(pd.DataFrame({"age": [30, 40]}))
    >>> records.size()
    Traceback (most recent call last):
    dpsynth.errors.PrivacyError: private records can only be read through Ledger.run
    >>> with records.opened():
    ...     records.size()
    2
    """

    def __init__(self) -> None:
        self._open = False

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Allow reading. `dpsynth.accounting.Ledger.run` does so when the reading is posted."""
        before, self._open = self._open, True
        try:
            yield
        finally:
            self._open = before

    def size(self) -> int:
        """Number of records, with sensitivity 1 under add/remove."""
        self._check_open()
        return self._size()

    def counts(self, tables: Sequence[Axes]) -> list[NDArray[np.int64]]:
        """Exact contingency tables, each of L2 sensitivity 1 under add/remove: a record lies in one cell.

        ``tables``: an axis that several tables share is read once.

        Returns list of arrays, each of shape ``tuple(axis.size for axis in axes)``.
        """
        self._check_open()
        return list(self._counts(tables))

    def sums(self, of: Summing, columns: Collection[str] | None = None) -> list[NDArray[np.int64]]:
        """Exact sums over the records, of whole numbers to which each record adds something of its own.

        ``of``: the sums of a frame of records, which add up over frames, and are zeros without records. The
            release bounds the contribution of one record, and so the sensitivity.
        ``columns``: those that ``of`` reads, all by default. The others of a table in parts stay on disk.
        """
        self._check_open()
        return list(self._sums(of, columns))

    def rows(self, of: Rowwise) -> NDArray:
        """Numbers of each record, in their order, as secret as the records. For a critic's steps.

        Shape (n, ...). In a file if the records are in parts and many.
        """
        self._check_open()
        return self._rows(of)

    def frame(self) -> pd.DataFrame:
        """The records themselves, in memory."""
        self._check_open()
        return self._frame()

    def _check_open(self) -> None:
        if not self._open:
            raise PrivacyError("private records can only be read through Ledger.run")

    @abstractmethod
    def _size(self) -> int: ...

    def _counts(self, tables: Sequence[Axes]) -> Sequence[NDArray]:
        return self._total(partial(count_frame, tables=tables))

    def _sums(self, of: Summing, columns: Collection[str] | None) -> Sequence[NDArray]:
        return self._total(partial(sum_frame, of=of), columns)

    @abstractmethod
    def _total(self, of: Summing, columns: Collection[str] | None = None) -> Sequence[NDArray]:
        """Arrays of the frame of all records, or their sums over frames that hold all records."""

    @abstractmethod
    def _rows(self, of: Rowwise) -> NDArray: ...

    @abstractmethod
    def _frame(self) -> pd.DataFrame: ...


class FrameRecords(Records):
    """Records in memory.

    ``frame``, shape (n, columns): conformed to its schema.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        super().__init__()
        self._records = frame

    def _size(self) -> int:
        return len(self._records)

    def _total(self, of: Summing, columns: Collection[str] | None = None) -> Sequence[NDArray]:
        return of(self._records)

    def _rows(self, of: Rowwise) -> NDArray:
        none = of(self._records.iloc[:0], 0)
        found = np.empty((len(self._records), *none.shape[1:]), none.dtype)
        for start in range(0, len(found), _BLOCK):
            found[start : start + _BLOCK] = of(self._records.iloc[start : start + _BLOCK], start)
        return found

    def _frame(self) -> pd.DataFrame:
        return self._records


def sum_frame(frame: pd.DataFrame, of: Summing) -> Sequence[NDArray[np.int64]]:
    """Sums over the records of a frame, block by block, or of one part of a table: they add up over parts."""
    blocks = (frame.iloc[start : start + _BLOCK] for start in range(0, len(frame), _BLOCK))
    return reduce(added, map(of, blocks), of(frame.iloc[:0]))


def added(total: Sequence[NDArray], part: Sequence[NDArray]) -> Sequence[NDArray]:
    """Sums of the records of two frames from those of either."""
    return [whole + more for whole, more in zip(total, part, strict=True)]


def count_frame(frame: pd.DataFrame, tables: Sequence[Axes]) -> list[NDArray[np.int64]]:
    """Exact contingency tables of a frame, or of one part of a table: they add up over parts.

    Examples
    --------
    >>> from dpsynth.releases.bins import MissingAxis
    >>> missing = MissingAxis(("a", "b"))
    >>> frame = pd.DataFrame({"a": [1.0, None, None], "b": [1.0, 2.0, None]})
    >>> [table.tolist() for table in count_frame(frame, [(missing,), (missing, missing)])]
    [[1, 1, 1], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]]
    """
    axes = {id(axis): axis for table in tables for axis in table}
    cells = {key: axis.cells(frame) for key, axis in axes.items()}
    counts = []
    for table in tables:
        shape = tuple(axis.size for axis in table)
        index = np.ravel_multi_index(tuple(cells[id(axis)] for axis in table), shape)
        counts.append(np.bincount(index, minlength=int(np.prod(shape))).reshape(shape))
    return counts
