"""Training, test and reference records of a structure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.ground.structures import STRUCTURES
from dpsynth.table import Schema

#: records of a structure's test table: draws cost nothing
TEST_RECORDS = 20_000


@dataclass(frozen=True)
class Ground:
    """A table to be replaced by a synthetic one, and what that is judged by.

    Parameters
    ----------
    name : str
    schema : Schema
        Of the training table, with its public number of records.
    train : pandas.DataFrame of shape (n, columns)
    test : pandas.DataFrame
        Real records that had no part in anything; every measure is against them.
    real : pandas.DataFrame of shape (n, columns)
        Real records in the place of a synthetic table: a fresh draw.
    score : callable, optional
        Structure score of a frame, see :class:`~benchmarks.ground.known.Structure`.
    """

    name: str
    schema: Schema
    train: pd.DataFrame
    test: pd.DataFrame
    real: pd.DataFrame
    score: Callable[[pd.DataFrame], float] | None = None


def of_structure(name: str, n: int, seed: int) -> Ground:
    """Fresh draws of n training, n reference and ``TEST_RECORDS`` test records."""
    structure = STRUCTURES[name]
    train, real, test = (
        structure.draw(size, np.random.default_rng([seed, stream]))
        for stream, size in enumerate((n, n, TEST_RECORDS))
    )
    return Ground(name, structure.schema_of(n), train, test, real, structure.score)
