"""What a ledger says to people: its guarantee, and the cost of each entry."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpsynth.accounting.events.events import describe_event
from dpsynth.accounting.events.normal_form import normal_form
from dpsynth.accounting.ledger.guarantee import Guarantee
from dpsynth.accounting.ledger.summary import EntryCost, StageCost, Summary
from dpsynth.accounting.profile import Profile

if TYPE_CHECKING:
    from dpsynth.accounting.ledger.ledger import Ledger


def guarantee(ledger: Ledger, delta: float, profile: Profile | None = None) -> Guarantee:
    """Return the guarantee of a ledger; see :meth:`Ledger.guarantee`."""
    profile = profile or ledger.profile()
    bare = [e.name for e in ledger.entries if not normal_form([e.event], ledger.adjacency).private]
    return Guarantee(
        epsilon=profile.epsilon(delta),
        delta=float(delta),
        tv=profile.tv(),
        adjacency=ledger.adjacency,
        entries=len(ledger.entries),
        stages=len(ledger.stages),
        bare=tuple(bare),
        seeded=ledger.seeded,
        excluded=ledger.excluded,
    )


def summary(ledger: Ledger, delta: float) -> Summary:
    """Return the cost of a ledger as a whole and entry by entry; see :meth:`Ledger.summary`."""
    profile = ledger.profile()
    epsilon = profile.epsilon(delta)
    failure = ledger.failure_probability
    return {
        "epsilon": epsilon,
        "delta": float(delta),
        "tv": profile.tv(),
        "advantage": profile.advantage(),
        "attack_accuracy_bound": profile.attack_accuracy(),
        "adjacency": ledger.adjacency,
        "unit": "one row",
        "not_private": ledger.not_private,
        "seeded": ledger.seeded,
        "excluded": list(ledger.excluded),
        "failure_probability": failure,
        "overflow_delta": min(1.0, failure * (1 + math.exp(min(epsilon, 700.0)))),
        "guarantee": str(guarantee(ledger, delta, profile)),
        "stages": _stages(ledger),
        "entries": [_line(ledger, i, delta) for i in range(len(ledger.entries))],
    }


def _stages(ledger: Ledger) -> list[StageCost]:
    """What each stage adds to the sum; nothing for a single stage, which has a whole curve."""
    if len(ledger.stages) <= 1:
        return []
    costs = [ledger.cost(number) for number in range(1, len(ledger.stages) + 1)]
    return [{"epsilon": epsilon, "delta": part, "tv": tv} for epsilon, part, tv in costs]


def _line(ledger: Ledger, index: int, delta: float) -> EntryCost:
    entry = ledger.entries[index]
    return {
        "name": entry.name,
        "stage": entry.stage,
        "event": describe_event(entry.event),
        "sensitivity": entry.sensitivity,
        "detail": entry.detail,
        "epsilon_alone": Profile([entry.event], adjacency=ledger.adjacency).epsilon(delta),
        "epsilon_cumulative": ledger.prefix(index + 1).epsilon(delta),
    }
