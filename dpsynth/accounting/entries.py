"""The lines of a ledger: readings of the private table, and charges for what may go wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpsynth.accounting.normal_form import ADD_REMOVE

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
    """

    name: str
    event: DpEvent
    sensitivity: str
    adjacency: str = ADD_REMOVE
    detail: str = ""


@dataclass(frozen=True)
class Overflow:
    """A probability that a run leaves its events' description, on any table: see ``overflow.py``."""

    name: str
    probability: float
    detail: str = ""
