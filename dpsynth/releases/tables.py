"""The prior's tables: counts of the columns that it ties together, with Gaussian noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpsynth.errors import PrivacyError
from dpsynth.releases.bins import Bins
from dpsynth.releases.gaussian import Array, GaussianRelease
from dpsynth.releases.records import Records
from dpsynth.releases.structure import Family


@dataclass(frozen=True, kw_only=True)
class TablesRelease(GaussianRelease[list[Array]]):
    """One table for every family of columns.

    A record lies in one cell of each table, so all of them together have L2 sensitivity sqrt(number of
    tables) under add/remove of one record. The number of tables is public; which columns they have is
    released before them, and given with :meth:`of`.

    Parameters
    ----------
    count : int
        Number of tables.
    bins : Bins, optional
    families : tuple of tuples of int, optional
        Columns of each table, the child last.
    """

    count: int
    bins: Bins | None = None
    families: tuple[Family, ...] = ()
    name = "prior tables"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bins is not None and len(self.families) != self.count:
            raise PrivacyError(
                f"{len(self.families)} tables are to be released, but {self.count} were planned"
            )

    def of(self, bins: Bins, families: Sequence[Family]) -> TablesRelease:
        """The release of these tables; its cost is the same.

        Raises
        ------
        PrivacyError
            If they are not as many as were planned.
        """
        return replace(self, bins=bins, families=tuple(families))

    @property
    def l2_sensitivity(self) -> float:
        """Square root of the number of tables."""
        return float(np.sqrt(self.count))

    @property
    def sensitivity(self) -> str:
        """In words, for the ledger."""
        return f"sqrt({self.count}) for {self.count} tables together"

    def query(self, records: Records) -> list[Array]:
        """Exact tables of all families, shapes by their columns' bins."""
        if self.bins is None:
            raise PrivacyError("tables are counted in bins, which are released before and given with of()")
        axes = self.bins.axes
        return records.counts([tuple(axes[j] for j in family) for family in self.families])

    def finish(self, noisy: Sequence[Array]) -> list[Array]:
        """The noisy tables as they are."""
        return list(noisy)
