"""Two ledgers of one table become one: what is in both, because one went on from the other, counts once."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from dpsynth.accounting.events.events import event_to_dict
from dpsynth.accounting.ledger.contents import Contents
from dpsynth.accounting.ledger.entries import Entry, Stage
from dpsynth.errors import PrivacyError


def join(ours: Contents, others: Contents) -> Contents:
    """Everything that two ledgers hold; see :meth:`Ledger.join`.

    Raises
    ------
    PrivacyError
        If the two ledgers are about different neighbouring tables.
    """
    if ours.entries and others.entries and ours.adjacency != others.adjacency:
        raise PrivacyError(
            f"one ledger is {ours.adjacency}, the other {others.adjacency}: they cannot be summed"
        )
    joined = ours
    for number, stage in enumerate(others.stages, 1):
        joined = _take(joined, stage, others.of_stage(number))
    return replace(
        joined,
        entries=tuple(sorted(joined.entries, key=lambda entry: entry.stage)),
        excluded=tuple(dict.fromkeys((*ours.excluded, *others.excluded))),
        generators=tuple(dict.fromkeys((*ours.generators, *others.generators))),
        seeded=ours.seeded or others.seeded,
        unit=ours.shared_unit(others.unit) if others.entries else ours.unit,
    )


def _take(joined: Contents, stage: Stage, entries: list[Entry]) -> Contents:
    """With what is new in another ledger's stage."""
    keys = [ours.key for ours in joined.stages]
    stages = list(joined.stages)
    if stage.key not in keys:
        stages.append(stage)
    place = [ours.key for ours in stages].index(stage.key)
    if stages[place].delta is None:  # it may have been told since
        stages[place] = stage
    joined = replace(joined, stages=tuple(stages))
    ours = joined.of_stage(place + 1)
    entries = [replace(entry, stage=place + 1) for entry in entries]
    covered: dict[int, Entry] = {}
    for entry, other in zip(ours, entries, strict=False):
        both = entry.together(other)
        if both is None:
            break
        covered[id(entry)] = both
    joined = replace(joined, entries=tuple(covered.get(id(entry), entry) for entry in joined.entries))
    rest = entries[len(covered) :]
    if rest and len(covered) < len(ours):
        # Both went on, each under the stage's promise: that of one does not cover both.
        return _take(joined, replace(stage, key=_key_of(stage, rest)), rest)
    return replace(joined, entries=(*joined.entries, *rest))


def _key_of(stage: Stage, rest: list[Entry]) -> str:
    """The key of what a second ledger posted into a stage: the same whenever the two are joined."""
    said = [[e.name, event_to_dict(e.event), e.sensitivity, e.detail, *e.keys[:1]] for e in rest]
    return hashlib.sha256(json.dumps([stage.key, said]).encode()).hexdigest()[:16]
