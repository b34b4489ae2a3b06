"""The base model's tables: counts of the columns that it joins, with Gaussian noise.

If the outcome is a parent of all, it is also counted with each other column alone. A classifier needs those
two-way tables. The sum of a three-way table over its third column adds up the noise of all its cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth.accounting.contents import Stage
from dpsynth.errors import PrivacyError
from dpsynth.releases.bins import Bins
from dpsynth.releases.gaussian import Adaptive, Array, GaussianRelease, Ints
from dpsynth.releases.records import Records
from dpsynth.releases.structure import Family

#: Square of what a record counts for in a table of the outcome and one column, where it is 1 in the others:
#: of many columns these tables have a quarter of mu^2.
OUTCOME_SHARE = 1.0 / 3.0


@dataclass(frozen=True, kw_only=True)
class TablesRelease(Adaptive[tuple[Bins, tuple[Family, ...]]], GaussianRelease[dict[Family, Array]]):
    """One table for every family of columns, made with `TablesRelease.plan`.

    A record lies in one cell of each table. All tables together have L2 sensitivity
    sqrt(count + with_outcome / 3) under add/remove of one record. The number of tables is public. Their
    columns come from an earlier noisy choice, and are given with :meth:`of`.

    ``count``: number of tables in which a record counts for 1. ``noise_std`` is that of their cells.
    ``with_outcome``: number of tables of the outcome and one column, in which it counts for sqrt(1 / 3).
    ``read_with``: bins, and columns of each table, the child last. Those of the outcome and one column come
        first.
    """

    count: int
    with_outcome: int = 0
    name = "base model tables"

    def __post_init__(self) -> None:
        super().__post_init__()
        counted = len(self.weights if self.read_with is None else self.read_with[1])
        if counted != len(self.weights):
            raise PrivacyError(f"{counted} tables are to be counted, but {len(self.weights)} were planned")

    @classmethod
    def plan(
        cls, columns: int, *, three_way: bool, noise_multiplier: float | None, stage: Stage | None = None
    ) -> TablesRelease:
        """The tables of a base model of so many columns.

        ``columns``: all but the root.
        ``three_way``: whether the root is a parent of all. Two columns have one table in any case.
        ``noise_multiplier``: over their sensitivity together. None: exact, **not private**.
        """
        three_way = three_way and columns > 1
        return cls(
            count=columns - three_way,
            with_outcome=columns if three_way else 0,
            noise_multiplier=noise_multiplier,
            stage=stage,
        )

    def of(self, bins: Bins, families: Sequence[Family]) -> TablesRelease:
        """The same release for these families of a base model, at the same cost."""
        counted = tuple(families)
        if self.with_outcome:
            alone = tuple((family[0], family[-1]) for family in families)
            counted = (*alone, *(family for family in families if len(family) > 2))
        return self.at((bins, counted))

    @property
    def weights(self) -> tuple[float, ...]:
        """Weight of a record in each table."""
        return (math.sqrt(OUTCOME_SHARE),) * self.with_outcome + (1.0,) * self.count

    @property
    def l2_sensitivity(self) -> float:
        """Square root of the number of tables, those of the outcome and one column a third each."""
        return float(np.linalg.norm(self.weights))

    @property
    def sensitivity(self) -> str:
        """In words, for the ledger."""
        if not self.with_outcome:
            return f"sqrt({self.count}) for {self.count} tables together"
        return (
            f"sqrt({self.count} + {self.with_outcome}/3) for {self.count} tables, and {self.with_outcome} of "
            "the outcome and one column in which a record counts for sqrt(1/3)"
        )

    def query(self, records: Records) -> list[Ints]:
        """Exact tables of all families, shapes by their columns' bins."""
        bins, families = self.given
        return records.counts([tuple(bins.axes[j] for j in family) for family in families])

    def finish(self, noisy: Sequence[Array]) -> dict[Family, Array]:
        """The noisy counts of each family."""
        return dict(zip(self.given[1], noisy, strict=True))
