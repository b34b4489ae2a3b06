"""The cost of a ledger as a whole, stage by stage and entry by entry, as plain numbers and words."""

from __future__ import annotations

from typing import TypedDict


class StageCost(TypedDict):
    """What one stage adds to the sum."""

    epsilon: float
    delta: float
    tv: float


class EntryCost(TypedDict):
    """One reading: its words, what it costs alone, and what all up to it cost."""

    name: str
    stage: int
    event: str
    sensitivity: str
    detail: str
    epsilon_alone: float
    epsilon_cumulative: float


class Summary(TypedDict):
    """See :meth:`Ledger.summary`."""

    epsilon: float
    delta: float
    tv: float
    advantage: float
    attack_accuracy_bound: float
    adjacency: str
    unit: str
    not_private: bool
    seeded: bool
    excluded: list[str]
    failure_probability: float
    overflow_delta: float
    guarantee: str
    stages: list[StageCost]
    entries: list[EntryCost]
