"""The lines of a ledger: readings of the private table, and the stages they belong to."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dpsynth.accounting.events.events import event_from_dict, event_to_dict
from dpsynth.accounting.events.normal_form import ADD_REMOVE, normalised
from dpsynth.checks import in_range, text

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
    keys : tuple of str
        Made at random, one when it is posted and one whenever it is resumed. Two copies of a ledger may post
        the same words, or resume the same entry: their keys show that these are two readings.
    """

    name: str
    event: DpEvent
    sensitivity: str
    adjacency: str = ADD_REMOVE
    detail: str = ""
    stage: int = 1
    keys: tuple[str, ...] = field(default=(), repr=False)

    def with_key(self) -> Entry:
        """The entry with one more random key."""
        return replace(self, keys=(*self.keys, secrets.token_hex(8)))

    def together(self, other: Entry) -> Entry | None:
        """The one entry that covers both, if one is the other or went on from it; None for two readings."""
        first, last = sorted((self, other), key=lambda entry: len(entry.keys))
        same = replace(first, keys=()) == replace(last, keys=())
        return last if same and last.keys[: len(first.keys)] == first.keys else None

    def checked(self) -> Entry:
        """The entry with an event of its own, which nobody else can change.

        Raises
        ------
        PrivacyError
            If the event is unknown or cannot be accounted for under the adjacency.
        InputError
            If a text is missing, or a number in the event is out of range or infinite.
        """
        text("name", self.name)
        text("sensitivity", self.sensitivity)
        text("detail", self.detail, may_be_empty=True)
        event = event_from_dict(event_to_dict(self.event))  # a copy: an event can hold a list
        normalised([event], self.adjacency)
        keys = tuple(text("key", key) for key in self.keys)
        return replace(self, event=event, keys=keys)


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

    @classmethod
    def begin(
        cls, delta: float | None = None, *, epsilon: float | None = None, tv: float | None = None
    ) -> Stage:
        """A new stage; see :meth:`Ledger.begin_stage`."""
        return cls(secrets.token_hex(8), delta, epsilon, tv).checked()

    def checked(self) -> Stage:
        """The stage, its numbers as floats.

        Raises
        ------
        InputError
            If one is out of range or NaN, or the key is no text.
        """
        numbers = (
            ("delta", self.delta, 1.0, True),
            ("epsilon", self.epsilon, math.inf, True),
            ("tv", self.tv, 1.0, False),
        )
        return Stage(
            text("key", self.key),
            *(
                None if value is None else in_range(name, value, 0.0, high, high_open=high_open)
                for name, value, high, high_open in numbers
            ),
        )
