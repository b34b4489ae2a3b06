"""Where a model's records come from: a chain, a trained generator, matched points or columns alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dpsynth.marginals.chain import Chain
from dpsynth.synthesis.sampling import Codes, Places
from dpsynth.table.encoder import Encoder


class Sampler(ABC):
    """Where a generator's records come from, in codes. Everything else about samples is common code."""

    @property
    def chain(self) -> Chain | None:
        """The chain that the records are drawn from, if they are."""
        return None

    @abstractmethod
    def draw(self, encoder: Encoder, n: int, rng: np.random.Generator) -> tuple[list[Codes], list[Places]]:
        """Fine cells of n records and places within them, one array of each a column, shape (n,)."""

    def bins(self) -> Mapping[int, NDArray[np.int64]]:
        """Bin of each fine cell, by column, within which records may exchange values to obey a rule."""
        return {}
