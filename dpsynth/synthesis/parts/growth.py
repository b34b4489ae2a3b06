"""Further tables of each column, chosen against the model of the moment."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import ConfigError
from dpsynth.marginals.chain import Chain
from dpsynth.marginals.chain_fit import ChainFit
from dpsynth.marginals.growth import Candidate, TableChoiceRelease
from dpsynth.marginals.statistics import TablesRelease
from dpsynth.synthesis.parts.base_model import BaseModel
from dpsynth.synthesis.parts.columns import Columns
from dpsynth.synthesis.parts.pairwise import Pairwise
from dpsynth.synthesis.parts.part import Part, Reading, Redrawing, Statistic
from dpsynth.synthesis.row_rules import rules_of_model
from dpsynth.table.schema import TableSchema

#: Fraction of the part's share for the choices. Tables get the rest.
_CHOICES = 0.1


def further_tables(columns: int, rounds: int) -> int:
    """Tables of all rounds, with so many columns beside the first: one has a single table.

    >>> [further_tables(columns, 2) for columns in (1, 2, 3)]
    [0, 3, 5]
    """
    return rounds * (columns - 1) + 1 if columns > 1 and rounds else 0


def fit_of(
    described: TableSchema, reading: Reading, states: Iterable[NDArray[np.int64]] | None = None
) -> ChainFit:
    """A chain fitted to what was read before it grows. Its states are made anew unless they are given."""
    network, marginals = reading.of(BaseModel), reading.of(Columns)
    if network is None or marginals is None:
        raise ConfigError("a chain is fitted to a base model: read Columns and BaseModel before it")
    return ChainFit(
        network,
        marginals,
        reading.of(Pairwise),
        reading.rng,
        described.levels,
        rules_of_model(described),
        states=None if states is None else list(states),
        rough=not reading.refine,
    )


@dataclass(frozen=True)
class Growth(Part[Chain]):
    """Tables beside those of the base model: in each round one of each column but the first two.

    The second column has no choice: it is counted once more with the first, in the first round.

    ``rounds``: how many, at least 1.
    """

    schema: TableSchema
    rounds: int

    @property
    def count(self) -> int:
        """Choices of a round."""
        return len(self.schema.levels.modelled) - 2

    @property
    def choice(self) -> TableChoiceRelease:
        """The choices of a round with their noise."""
        epsilon = None
        if self.noise is not None:
            # An exponential mechanism has a loss of variance eps^2 / 3, which is mu^2 in the Gaussian limit.
            epsilon = math.sqrt(3.0 * _CHOICES / (self.rounds * self.count)) / self.noise
        return TableChoiceRelease(
            count=self.count, epsilon=epsilon, noise_std=self.tables(0).noise_std, stage=self.stage
        )

    def tables(self, turn: int) -> TablesRelease:
        """The tables of a round, from 0, with their noise. A cell has the same in each round."""
        count, noise = self.count + (turn == 0), None
        if self.noise is not None:
            every = further_tables(self.count + 1, self.rounds)
            noise = self.noise * math.sqrt(every / count / (1.0 - _CHOICES))
        return TablesRelease(count=count, noise_multiplier=noise, stage=self.stage, name="further tables")

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """Choices and tables of all rounds."""
        choice, tables = self.choice, [self.tables(turn) for turn in range(self.rounds)]
        return (
            Statistic(choice.name, (choice.event,) * self.rounds, share=_CHOICES),
            Statistic(
                tables[0].name,
                tuple(one.event for one in tables),
                share=1.0 - _CHOICES,
                noise_std=tables[0].noise_std,
            ),
        )

    def read(self, reading: Reading) -> Chain:
        """Choose, count and fit, round by round."""
        fit = fit_of(self.schema, reading)
        for turn in range(self.rounds):
            candidates = fit.candidates(self.choice.noise_std)
            alone = [one for only in candidates if len(only) == 1 for one in only]
            several = [some for some in candidates if len(some) > 1]
            self._count(reading, fit, turn, [*alone, *reading.run(self.choice.at(several))])
        return fit.chain

    def redraw(self, reading: Redrawing) -> Chain:
        """The same tables: choices and states stay."""
        released = reading.released.chain
        assert released is not None  # the part was read
        fit = fit_of(self.schema, reading, (states.labels for states in released.binnings))
        for turn, grown in enumerate(released.grown):
            self._count(reading, fit, turn, fit.again(grown, self.choice.noise_std))
        return fit.chain

    def _count(self, reading: Reading, fit: ChainFit, turn: int, chosen: list[Candidate]) -> None:
        tables = self.tables(turn)
        axes = {one.cells.columns: one.axes for one in chosen}
        fit.grow(chosen, reading.run(tables.at(axes)) if axes else {}, tables.noise_std)
