"""The lines of a ledger: readings of the private table, the stages they belong to, and other charges."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpsynth.accounting.events.normal_form import ADD_REMOVE
from dpsynth.checks import in_range

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent


@dataclass(frozen=True)
class Entry:
    """One reading of the private table.

    Parameters
    ----------
    name : str
        What was read, such as ``"histograms"``.
    event : DpEvent
        What it costs, its numbers being those under add/remove one record.
    sensitivity : str
        How far one record can move the query, in words.
    adjacency : {"add/remove", "replace-one"}
        The neighbouring tables for which the guarantee is given.
    detail : str
        Anything a reader needs besides.
    stage : int
        Number of its stage, from 1.
    """

    name: str
    event: DpEvent
    sensitivity: str
    adjacency: str = ADD_REMOVE
    detail: str = ""
    stage: int = 1


@dataclass(frozen=True)
class Overflow:
    """A probability that a run leaves its events' description, on any table: see ``overflow.py``."""

    name: str
    probability: float
    detail: str = ""
    stage: int = 1


@dataclass(frozen=True)
class Stage:
    """Readings whose noise was fixed together, and what was fixed about all of them before the first.

    Within a stage noise depends on nothing that was released in it, so its entries compose on one
    privacy-loss distribution. A later stage's noise may depend on the outputs of an earlier one.

    Parameters
    ----------
    key : str
        Made at random when the stage begins: a stage that came into two ledgers is counted once.
    delta : float, optional
        The stage's part of the ledger's delta.
    epsilon, tv : float, optional
        What the stage costs at most, whatever was released before; where None, what its entries cost.
    """

    key: str
    delta: float | None = None
    epsilon: float | None = None
    tv: float | None = None


def stage_numbers(delta: float | None, epsilon: float | None, tv: float | None) -> list[float | None]:
    """The numbers of a stage, checked.

    Raises
    ------
    InputError
        If one is out of range or NaN.
    """
    ranges = (("delta", delta, 1.0, True), ("epsilon", epsilon, math.inf, True), ("tv", tv, 1.0, False))
    return [
        None if value is None else in_range(name, value, 0.0, high, high_open=high_open)
        for name, value, high, high_open in ranges
    ]
