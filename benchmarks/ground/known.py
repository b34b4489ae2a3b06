"""What a table of known structure is: a public schema, a population to draw from, a structure score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpsynth.table import Column, Schema

Floats = NDArray[np.float64]
#: public bounds of the columns of :func:`number`; values of a standard normal beyond them are clipped
BOUND = 5.0


@dataclass(frozen=True)
class Structure:
    """A population that is known.

    Parameters
    ----------
    name : str
    about : str
        What the structure is, in one sentence.
    schema : Schema
        With public bounds and without ``n_public``: :meth:`schema_of` adds it.
    draw : callable
        From a number of records and a generator to a frame of so many independent records.
    score : callable, optional
        From a frame to how much of the structure is in it: 1 is all of it, as in real records up to chance;
        what it is without any structure, ``score_name`` says.
    score_name : str
    """

    name: str
    about: str
    schema: Schema
    draw: Callable[[int, np.random.Generator], pd.DataFrame]
    score: Callable[[pd.DataFrame], float] | None = None
    score_name: str = ""

    def schema_of(self, n: int) -> Schema:
        """The schema of a table of n records, whose number is public."""
        return self.schema.with_n_public(n)


def number(name: str) -> Column:
    """A column of numbers with two decimals in [-5, 5]."""
    return Column(name=name, kind="continuous", lower=-BOUND, upper=BOUND, decimals=2)


def numbers(values: ArrayLike) -> Floats:
    """Values as a column of :func:`number` has them."""
    return np.clip(np.asarray(values, dtype=np.float64), -BOUND, BOUND).round(2)


def yes_no(name: str) -> Column:
    return Column(name=name, kind="binary", categories=("no", "yes"))


def answers(true: ArrayLike) -> NDArray[np.object_]:
    """Truth values as a column of :func:`yes_no` has them."""
    return np.where(np.asarray(true, dtype=bool), "yes", "no").astype(object)


def is_yes(column: pd.Series) -> NDArray[np.bool_]:
    return np.asarray(column == "yes", dtype=bool)


def kept(found: float, true: float) -> float:
    """How much of a figure of the population was found: 1 - |error| / |true|."""
    return 1.0 - abs(found - true) / abs(true)
