"""What stands in a ledger, and what all of it costs.

Entries of one stage, whose noise was fixed together, are composed on one privacy-loss distribution. Several
stages, each with its own (epsilon, delta) and total variation, add up: that holds whatever a later stage's
noise owes to the outputs of an earlier one (:mod:`dpsynth.accounting.loss.promise` has the proofs), and
nothing else is claimed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from dpsynth.accounting.events.normal_form import ADD_REMOVE, normalised
from dpsynth.accounting.ledger.entries import Entry, Stage
from dpsynth.accounting.ledger.guarantee import UNIT, Guarantee
from dpsynth.accounting.profile import Profile
from dpsynth.errors import PrivacyError


@dataclass(frozen=True)
class Contents:
    """A ledger as it is at one moment.

    Parameters
    ----------
    stages : tuple of Stage
        Those in which something was read; an entry's ``stage`` is the place here, from 1.
    entries : tuple of Entry
        In the order of their stages.
    excluded : tuple of str
        What the guarantee does not cover.
    generators : tuple of str
        What drew the noise, in words.
    seeded : bool
        Whether noise was drawn from a caller's seed.
    unit : str
        What neighbouring tables differ in.
    """

    stages: tuple[Stage, ...] = ()
    entries: tuple[Entry, ...] = ()
    excluded: tuple[str, ...] = ()
    generators: tuple[str, ...] = ()
    seeded: bool = False
    unit: str = UNIT

    @property
    def adjacency(self) -> str:
        """Adjacency of the entries (add/remove while there are none)."""
        return self.entries[0].adjacency if self.entries else ADD_REMOVE

    @property
    def delta(self) -> float | None:
        """Sum of the stages' deltas, at which the ledger is to be read; None if a stage names none."""
        parts = [stage.delta for stage in self.stages if stage.delta is not None]
        return math.fsum(parts) if parts and len(parts) == len(self.stages) else None

    @property
    def bare(self) -> tuple[str, ...]:
        """Names of the entries that have no guarantee at all, so that every epsilon is infinite."""
        return tuple(e.name for e in self.entries if not normalised([e.event], self.adjacency).private)

    def shared_unit(self, unit: str) -> str:
        """The unit of these entries together with others of ``unit``: what both say, or else a row."""
        return unit if not self.entries or unit == self.unit else UNIT

    def of_stage(self, number: int) -> list[Entry]:
        """Entries of one stage, counted from 1."""
        return [entry for entry in self.entries if entry.stage == number]

    def adding(self, entry: Entry, stage: Stage) -> Contents:
        """With one more entry, in a stage that is the last or a new one.

        Raises
        ------
        PrivacyError
            If the entry's adjacency is not that of the entries before.
        """
        if self.entries and entry.adjacency != self.adjacency:
            raise PrivacyError(
                f"{entry.name!r} is posted under {entry.adjacency} adjacency, but this ledger is "
                f"{self.adjacency}"
            )
        stages = self.stages if stage in self.stages else (*self.stages, stage)
        return replace(self, stages=stages, entries=(*self.entries, replace(entry, stage=len(stages))))

    @cached_property
    def profile(self) -> Profile:
        """The composed cost of all entries.

        Raises
        ------
        PrivacyError
            If there are several stages and one names no delta.
        """
        if len(self.stages) <= 1:
            return self._alone(1)
        # basic composition and its like for total variation; see dpsynth.accounting.loss.promise
        epsilon, delta, tv = (math.fsum(part) for part in zip(*self.costs(), strict=True))
        return Profile.promised(epsilon, delta, tv, adjacency=self.adjacency)

    def costs(self) -> list[tuple[float, float, float]]:
        """Epsilon, delta and total variation of each stage, as they are summed; see :meth:`cost`."""
        return [self.cost(number) for number in range(1, len(self.stages) + 1)]

    def cost(self, number: int) -> tuple[float, float, float]:
        """Epsilon, delta and total variation of one stage, counted from 1.

        Raises
        ------
        PrivacyError
            If the stage names no delta.
        """
        stage, profile = self.stages[number - 1], self._alone(number)
        if stage.delta is None:
            raise PrivacyError(
                f"stage {number} of the ledger names no delta, so it cannot be summed: call "
                "begin_stage(delta), which tells it at that"
            )
        epsilon, tv = stage.epsilon or 0.0, stage.tv or 0.0
        return max(epsilon, profile.epsilon(stage.delta)), stage.delta, max(tv, profile.tv())

    def prefix(self, length: int) -> Contents:
        """The ledger as it was when ``length`` entries were posted.

        Of a stage that was not complete then, its entries count and not what it promises as a whole.
        """
        entries = self.entries[:length]
        last = entries[-1].stage if entries else 0
        stages = list(self.stages[:last])
        if entries and length < len(self.entries) and self.entries[length].stage == last:
            stages[-1] = replace(stages[-1], epsilon=None, tv=None)
        return replace(self, stages=tuple(stages), entries=entries)

    def guarantee(self, delta: float) -> Guarantee:
        """What is promised at ``delta``; see :meth:`Ledger.guarantee`."""
        profile = self.profile
        return Guarantee(
            epsilon=profile.epsilon(delta),
            delta=delta,
            tv=profile.tv(),
            adjacency=self.adjacency,
            unit=self.unit,
            entries=len(self.entries),
            stages=len(self.stages),
            bare=self.bare,
            seeded=self.seeded,
            excluded=self.excluded,
        )

    def _alone(self, number: int) -> Profile:
        """The entries of one stage on one privacy-loss distribution."""
        return Profile([entry.event for entry in self.of_stage(number)], adjacency=self.adjacency)
