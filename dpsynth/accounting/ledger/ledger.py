"""The ledger: every reading of the private table, by name, and what all of them cost together.

Nothing that reads private records stays outside it: histograms, counts, selections, the training run, and
the readings of every later fit on the same table. It is a plain JSON file, so that the guarantee can be
recomputed by others without this package's model.

Readings come in stages. Those of one stage, whose noise was fixed together, are composed on one privacy-loss
distribution. Where a ledger has several, each with its own (epsilon, delta) and total variation, these add
up: that holds whatever a later stage's noise owes to the outputs of an earlier one
(:mod:`dpsynth.accounting.loss.promise` has the proofs), and nothing else is claimed.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dpsynth.accounting.events.events import event_from_dict, event_to_dict
from dpsynth.accounting.events.normal_form import ADD_REMOVE, normal_form
from dpsynth.accounting.ledger import record as ledger_record
from dpsynth.accounting.ledger import statement
from dpsynth.accounting.ledger.entries import Entry, Overflow, Stage, stage_numbers
from dpsynth.accounting.ledger.guarantee import Guarantee
from dpsynth.accounting.ledger.summary import Summary
from dpsynth.accounting.profile import Profile
from dpsynth.checks import in_range, text
from dpsynth.errors import DataError, InputError, PrivacyError
from dpsynth.files.atomic import read_json, write_text

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent


class Ledger:
    """Named readings of one private table, and their composed cost.

    Attributes
    ----------
    entries : tuple of Entry
        Readings in the order in which they were posted, stage by stage.
    stages : tuple of Stage
        What was fixed before each stage began.
    overflows : tuple of Overflow
        Charges for batches of fixed capacity.
    excluded : tuple of str
        What the guarantee does not cover, such as column bounds that were read off the data.
    generators : list of str
        What drew the noise, in words.
    seeded : bool
        Set it where noise was drawn from a caller's seed: whoever knows the seed can take the noise away.
    journal : path, optional
        A file to which the ledger is written at every post, before :meth:`post` returns and so before the
        records are read: what was posted outlives whatever happens to the process.

    Examples
    --------
    >>> from dpsynth.accounting.events.events import gaussian_event, training_event
    >>> ledger = Ledger()
    >>> ledger.post("histograms", gaussian_event(10.0), sensitivity="sqrt(number of columns)")
    >>> ledger.post("critic", training_event(1.0, 0.01, 1000), sensitivity="proved each step")
    >>> round(ledger.epsilon(1e-5), 2)
    1.87
    >>> Ledger.from_dict(ledger.to_dict()).entries == ledger.entries
    True
    """

    def __init__(self) -> None:
        self._stages: list[Stage] = []
        self._closed = 0  # so many stages are complete: nothing more is posted into them
        self._entries: list[Entry] = []
        self._overflows: list[Overflow] = []
        self._excluded: list[str] = []
        self.generators: list[str] = []
        self.seeded = False
        self.journal: str | os.PathLike[str] | None = None

    def __repr__(self) -> str:
        return f"Ledger({', '.join(entry.name for entry in self._entries)})"

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Readings in the order in which they were posted, stage by stage."""
        return tuple(self._entries)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Stages in which something was read; an entry's ``stage`` is the place here, from 1."""
        used = [entry.stage for entry in self._entries] + [charge.stage for charge in self._overflows]
        return tuple(self._stages[: max(used, default=0)])

    @property
    def overflows(self) -> tuple[Overflow, ...]:
        """Charges for batches of fixed capacity."""
        return tuple(self._overflows)

    @property
    def excluded(self) -> tuple[str, ...]:
        """What the guarantee does not cover."""
        return tuple(self._excluded)

    @property
    def adjacency(self) -> str:
        """Adjacency of the entries (add/remove while there are none)."""
        return self._entries[0].adjacency if self._entries else ADD_REMOVE

    @property
    def delta(self) -> float | None:
        """Sum of the stages' deltas, at which the ledger is to be read; None if a stage names none."""
        parts = [stage.delta for stage in self.stages if stage.delta is not None]
        return math.fsum(parts) if parts and len(parts) == len(self.stages) else None

    @property
    def not_private(self) -> bool:
        """Whether some entry has no guarantee at all, so that every epsilon is infinite."""
        return not normal_form([entry.event for entry in self._entries], self.adjacency).private

    @property
    def failure_probability(self) -> float:
        """Sum of the overflow probabilities, at most 1."""
        return min(1.0, math.fsum(overflow.probability for overflow in self._overflows))

    def begin_stage(self, delta: float, *, epsilon: float | None = None, tv: float | None = None) -> None:
        """Begin a stage: what is posted from now on may depend on the outputs of what was posted before.

        Parameters
        ----------
        delta : float
            The stage's part of the whole delta, in [0, 1), fixed before the stage. Stages before it that
            name none are told at the same.
        epsilon, tv : float, optional
            What the stage costs at most, fixed before it. Name them where an earlier output decides about
            noise: the entries then show one of the costs that were possible. Where None, and where they cost
            more than was named, the entries count.

        Raises
        ------
        InputError
            If a number is out of range or NaN.

        Examples
        --------
        >>> from dpsynth.accounting.events.events import gaussian_event
        >>> ledger = Ledger()
        >>> for _ in range(2):
        ...     ledger.begin_stage(1e-6, epsilon=0.5)
        ...     ledger.post("count", gaussian_event(20.0), sensitivity="1")
        >>> ledger.delta, ledger.epsilon(2e-6), ledger.epsilon(1e-6)
        (2e-06, 1.0, inf)
        """
        stage = Stage(secrets.token_hex(8), *stage_numbers(delta, epsilon, tv))
        begun = [replace(old, delta=stage.delta) if old.delta is None else old for old in self.stages]
        self._stages = [*begun, stage]

    def end_stage(self) -> None:
        """Close the stages that are there: what is posted next begins a new one, of the last one's delta."""
        self._stages = list(self.stages)
        self._closed = len(self._stages)

    def post(
        self, name: str, event: DpEvent, *, sensitivity: str, adjacency: str = ADD_REMOVE, detail: str = ""
    ) -> None:
        """Enter a reading of the private table; do so before the reading, never after seeing its result.

        Parameters
        ----------
        name, event, sensitivity, adjacency, detail
            See :class:`Entry`. A name may be posted again, as a second fit does.

        Raises
        ------
        PrivacyError
            If the event is unknown, cannot be accounted for under this adjacency, the adjacency differs
            from that of the entries before, or the stages are closed and the last one names no delta that a
            new one could have.
        InputError
            If a text is missing, or a number in the event is out of range or infinite.
        """
        text("name", name)
        text("sensitivity", sensitivity)
        text("detail", detail, may_be_empty=True)
        event = event_from_dict(event_to_dict(event))  # a copy: an event can hold a list
        normal_form([event], adjacency)
        if self._entries and adjacency != self.adjacency:
            raise PrivacyError(
                f"{name!r} is posted under {adjacency} adjacency, but this ledger is {self.adjacency}"
            )
        self._entries.append(Entry(name, event, sensitivity, adjacency, detail, self._stage_now()))
        if self.journal is not None:
            self._write(self.journal, total=False)

    def charge_overflow(self, name: str, probability: float, detail: str = "") -> None:
        """Enter the probability that batches of a fixed capacity overflow (see ``overflow_probability``).

        It adds ``(1 + e^epsilon) * probability`` to delta.

        Raises
        ------
        InputError
            If the probability lies outside [0, 1] or is NaN, or a text is missing.
        """
        text("name", name)
        text("detail", detail, may_be_empty=True)
        probability = in_range(f"overflow probability of {name!r}", probability, 0.0, 1.0)
        self._overflows.append(Overflow(name, probability, detail, self._stage_now()))

    def exclude(self, reason: str) -> None:
        """Record something that the guarantee does not cover; a reason given twice is kept once."""
        text("reason", reason)
        if reason not in self._excluded:
            self._excluded.append(reason)

    def join(self, other: Ledger) -> int:
        """Take over what another ledger of the same table holds, and return the number of new entries.

        A stage that is in both, because one ledger went on from the other, counts once. Where both went on,
        what they share counts once, and the rest of the other's entries becomes a stage of its own. All
        stages are closed then, as they are after :meth:`load`: what is posted next begins a new one.

        Raises
        ------
        PrivacyError
            If the two ledgers are about different neighbouring tables.
        """
        if self._entries and other._entries and self.adjacency != other.adjacency:
            raise PrivacyError(
                f"one ledger is {self.adjacency}, the other {other.adjacency}: they cannot be summed"
            )
        before, self._stages = len(self._entries), list(self.stages)
        for number, stage in enumerate(other.stages, 1):
            self._take(stage, *other._of(number))
        self._entries.sort(key=lambda entry: entry.stage)
        self.end_stage()
        for reason in other._excluded:
            self.exclude(reason)
        self.generators += [g for g in other.generators if g not in self.generators]
        self.seeded = self.seeded or other.seeded
        return len(self._entries) - before

    def holds(self, other: Ledger) -> bool:
        """Whether everything that another ledger says is in this one."""
        trial = Ledger()
        trial.join(self)
        charges = len(trial.overflows)
        news = trial.join(other) or len(trial.overflows) > charges
        return not news and trial.seeded == self.seeded and trial.excluded == self.excluded

    def profile(self) -> Profile:
        """Return the composed cost of all entries, overflow charges included."""
        if len(self.stages) <= 1:
            return self._alone(1)
        costs = [self.cost(number) for number in range(1, len(self.stages) + 1)]
        # basic composition and its like for total variation; see dpsynth.accounting.loss.promise
        epsilon, delta, tv = (math.fsum(part) for part in zip(*costs, strict=True))
        return Profile.promised(epsilon, delta, tv, adjacency=self.adjacency)

    def cost(self, number: int) -> tuple[float, float, float]:
        """Epsilon, delta and total variation of one stage, counted from 1, as they are summed.

        Raises
        ------
        PrivacyError
            If the stage names no delta.
        """
        stage, profile = self._stages[number - 1], self._alone(number)
        if stage.delta is None:
            raise PrivacyError(
                f"stage {number} of the ledger names no delta, so it cannot be summed: call "
                "begin_stage(delta), which tells it at that"
            )
        epsilon, tv = stage.epsilon or 0.0, stage.tv or 0.0
        return max(epsilon, profile.epsilon(stage.delta)), stage.delta, max(tv, profile.tv())

    def prefix(self, length: int) -> Ledger:
        """The ledger as it was when ``length`` entries were posted, all overflows charged.

        Of a stage that was not complete then, its entries count and not what it promises as a whole.
        """
        early = Ledger()
        early._entries, early._stages = self._entries[:length], list(self.stages)
        last = early._entries[-1].stage if early._entries else 1
        early._overflows = [replace(o, stage=min(o.stage, last)) for o in self._overflows]
        if length < len(self._entries) and self._entries[length].stage == last:
            early._stages[last - 1] = replace(self._stages[last - 1], epsilon=None, tv=None)
        return early

    def epsilon(self, delta: float) -> float:
        """Epsilon of all entries at ``delta``; see :meth:`Profile.epsilon`.

        A ledger of several stages has none below its own :attr:`delta`.
        """
        return self.profile().epsilon(delta)

    def summary(self, delta: float | None = None) -> Summary:
        """Cost of the whole and of each entry.

        Parameters
        ----------
        delta : float, optional
            In [0, 1]; by default the ledger's own.

        Returns
        -------
        dict
            ``epsilon``, ``delta``, ``tv``, ``advantage``, ``attack_accuracy_bound``, ``adjacency``, ``unit``,
            ``not_private``, ``seeded``, ``excluded``, ``failure_probability``, ``overflow_delta`` (the part
            of delta that overflows take at that epsilon), ``guarantee`` (a sentence), ``stages``: a list of
            each stage's ``epsilon``, ``delta`` and ``tv`` (empty for a single stage), and ``entries``: a list
            in the order of posting, each with ``name``, ``stage``, ``event`` (words), ``sensitivity``,
            ``detail``, ``epsilon_alone`` and ``epsilon_cumulative`` (with all entries before it; overflow
            charges are in the cumulative figures only, so that the last equals ``epsilon``). Epsilons may be
            infinite.

        Raises
        ------
        InputError
            If delta lies outside [0, 1] or is NaN, or neither it nor the ledger names one.
        """
        return statement.summary(self, self._read_at(delta))

    def guarantee(self, delta: float | None = None) -> Guarantee:
        """What is promised at ``delta`` (by default the ledger's own); printed, it is a sentence.

        Examples
        --------
        >>> from dpsynth.accounting.events.events import non_private_event
        >>> ledger = Ledger()
        >>> ledger.post("raw means", non_private_event(), sensitivity="unbounded")
        >>> print(ledger.guarantee(1e-5))
        NOT PRIVATE: raw means was released without any guarantee.
        """
        return statement.guarantee(self, self._read_at(delta))

    def to_dict(self, *, total: bool = True) -> dict[str, Any]:
        """Return the ledger as a dictionary that JSON can hold; :meth:`from_dict` is its inverse.

        Parameters
        ----------
        total : bool
            Whether the composed cost is told as well: ``epsilon`` (null where it is infinite, or where the
            ledger names no delta) and ``tv`` (null where stages without a delta cannot be summed).
        """
        return ledger_record.to_record(self, total=total)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Ledger:
        """Rebuild a ledger from :meth:`to_dict`.

        Raises
        ------
        DataError
            If the record is not a ledger, a field is missing or wrong, or the totals that it tells are not
            those of its entries.
        PrivacyError
            If it holds an event that cannot be accounted for.
        """
        return ledger_record.from_record(cls(), record)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ledger as JSON, atomically: a reader sees the old file or the new one, never a part.

        Raises
        ------
        OSError
            If the folder does not exist or cannot be written to.
        """
        self._write(path, total=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Ledger:
        """Read a ledger written by :meth:`save`.

        Raises
        ------
        DataError
            If the file cannot be read, is not JSON, is not a ledger, or is one without an entry; the message
            names the file.
        PrivacyError
            If it holds an event that cannot be accounted for.
        """
        record = read_json(path, "the ledger")
        try:
            ledger = cls.from_dict(record)
            if not ledger.entries:
                raise DataError("it is empty: no reading of a table stands in it, so it promises nothing")
        except DataError as error:
            raise DataError(f"cannot read the ledger {path}: {error}") from None
        return ledger

    def _write(self, path: str | os.PathLike[str], *, total: bool) -> None:
        write_text(path, json.dumps(self.to_dict(total=total), indent=2, allow_nan=False) + "\n")

    def _stage_now(self) -> int:
        """The stage that is posted into; where all are closed, a new one of the last one's delta."""
        if not self._stages:
            self._stages.append(Stage(secrets.token_hex(8)))
        elif len(self._stages) <= self._closed:
            delta = self._stages[-1].delta
            if delta is None:
                raise PrivacyError(
                    "the last stage of this ledger is complete and names no delta: call begin_stage(delta) "
                    "before anything more is posted"
                )
            self.begin_stage(delta)
        return len(self._stages)

    def _take(self, stage: Stage, entries: list[Entry], overflows: list[Overflow]) -> None:
        """Add what is new in another ledger's stage."""
        here = next((n for n, mine in enumerate(self._stages, 1) if mine.key == stage.key), 0)
        if not here:
            self._stages.append(stage)
            here = len(self._stages)
        elif self._stages[here - 1].delta is None:  # it may have been told since
            self._stages[here - 1] = stage
        mine, charged = self._of(here)
        entries = [replace(entry, stage=here) for entry in entries]
        overflows = [replace(overflow, stage=here) for overflow in overflows]
        pairs = enumerate(zip(mine, entries, strict=False))
        common = next((place for place, (a, b) in pairs if a != b), min(len(mine), len(entries)))
        rest = entries[common:]
        if rest and common < len(mine):
            # Both went on, each under the stage's promise: that of one does not cover both.
            self._take(replace(stage, key=_key_of(stage, rest)), rest, [])
        else:
            self._entries += rest
        self._overflows += (Counter(overflows) - Counter(charged)).elements()

    def _of(self, number: int) -> tuple[list[Entry], list[Overflow]]:
        """Entries and overflows of one stage."""
        return [e for e in self._entries if e.stage == number], [
            o for o in self._overflows if o.stage == number
        ]

    def _alone(self, number: int) -> Profile:
        """The entries of one stage on one privacy-loss distribution."""
        entries, overflows = self._of(number)
        failure = min(1.0, math.fsum(overflow.probability for overflow in overflows))
        events = [entry.event for entry in entries]
        return Profile(events, adjacency=self.adjacency, failure_probability=failure)

    def _read_at(self, delta: float | None) -> float:
        if delta is None and self.delta is None:
            raise InputError("the ledger names no delta of its own; say at which one to read it")
        return float(delta if delta is not None else self.delta)  # type: ignore[arg-type]  # one is a number


def _key_of(stage: Stage, rest: list[Entry]) -> str:
    """The key of what a second ledger posted into a stage: the same whenever the two are joined."""
    said = [[e.name, event_to_dict(e.event), e.sensitivity, e.detail] for e in rest]
    return hashlib.sha256(json.dumps([stage.key, said]).encode()).hexdigest()[:16]
