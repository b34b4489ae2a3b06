"""The cost of a ledger as a whole, stage by stage and entry by entry, as plain numbers and words."""

from __future__ import annotations

from typing import TypedDict

from dpsynth.accounting.events.events import describe_event
from dpsynth.accounting.ledger.contents import Contents
from dpsynth.accounting.profile import Profile


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
    guarantee: str
    stages: list[StageCost]
    entries: list[EntryCost]


def summary_of(contents: Contents, delta: float) -> Summary:
    """The costs of a ledger at ``delta``; see :meth:`Ledger.summary`."""
    profile = contents.profile
    stages = contents.costs() if len(contents.stages) > 1 else []  # a single stage has a whole curve
    return {
        "epsilon": profile.epsilon(delta),
        "delta": float(delta),
        "tv": profile.tv(),
        "advantage": profile.advantage(),
        "attack_accuracy_bound": profile.attack_accuracy(),
        "adjacency": contents.adjacency,
        "unit": contents.unit,
        "not_private": bool(contents.bare),
        "seeded": contents.seeded,
        "excluded": list(contents.excluded),
        "guarantee": str(contents.guarantee(delta)),
        "stages": [{"epsilon": epsilon, "delta": part, "tv": tv} for epsilon, part, tv in stages],
        "entries": [_entry(contents, place, delta) for place in range(len(contents.entries))],
    }


def _entry(contents: Contents, place: int, delta: float) -> EntryCost:
    entry = contents.entries[place]
    return {
        "name": entry.name,
        "stage": entry.stage,
        "event": describe_event(entry.event),
        "sensitivity": entry.sensitivity,
        "detail": entry.detail,
        "epsilon_alone": Profile([entry.event], adjacency=contents.adjacency).epsilon(delta),
        "epsilon_cumulative": contents.prefix(place + 1).profile.epsilon(delta),
    }
