"""Shares of a run's budget that a user may set.

Shares are fractions of the target's squared Gaussian-DP parameter mu^2
(:mod:`dpsynth.synthesis.parts.part`).
"""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from dpsynth.files.options import options_record


@options_record
class Shares:
    """Fractions of mu^2. Training receives the rest.

    Parameters
    ----------
    count : float
        Fraction of epsilon and of delta (not of mu^2), for the number of records if it is not public.
    marginals, selection, tables, pairwise_statistics, neighbour_histogram : float
        For single-column counts, the choice of the base model's edges, its tables, the pairwise statistics,
        and the nearest-neighbour histogram.
    studies : float
        For all pre-specified regressions together, in equal parts. The others and training share the rest.
    visits : float
        For the tables of rows, where patients have several rows. The others share the rest.

    Raises
    ------
    InputError
        If one lies outside (0, 1), or all but ``studies`` and ``neighbour_histogram`` leave nothing for
        training.
    """

    count: float = 0.02
    marginals: float = 0.2
    selection: float = 0.05
    tables: float = 0.6
    pairwise_statistics: float = 0.1
    neighbour_histogram: float = 0.1
    studies: float = 0.3
    visits: float = 0.3

    @model_validator(mode="after")
    def _leave_something(self) -> Self:
        for name, share in vars(self).items():
            if not 0 < share < 1:
                raise ValueError(f"shares.{name} must be greater than 0 and less than 1, got {share:g}")
        if self.total >= 1:
            raise ValueError(f"shares must add to less than 1, got {self.total:g}")
        return self

    @property
    def total(self) -> float:
        """Sum of all but studies and the nearest-neighbour histogram."""
        return self.count + self.marginals + self.selection + self.tables + self.pairwise_statistics
