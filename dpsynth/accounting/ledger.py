"""The ledger: every reading of the private table, by name, and what all of them cost together.

Nothing that reads private records stays outside it: histograms, counts, selections, the training run, and
the readings of every later fit on the same table. It is a plain JSON file, so that the guarantee can be
recomputed by others without this package's model.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dpsynth.accounting import statement
from dpsynth.accounting.checks import in_range, text
from dpsynth.accounting.entries import Entry, Overflow
from dpsynth.accounting.events import event_from_dict, event_to_dict
from dpsynth.accounting.normal_form import ADD_REMOVE, normal_form
from dpsynth.accounting.profile import Profile
from dpsynth.errors import DataError, InputError, PrivacyError
from dpsynth.files import read_json, write_text

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

_FORMAT, _VERSION = "dpsynth ledger", 1


class Ledger:
    """Named readings of one private table, and their composed cost.

    Attributes
    ----------
    entries : tuple of Entry
        Readings in the order in which they were posted.
    overflows : tuple of Overflow
        Charges for batches of fixed capacity.
    excluded : tuple of str
        What the guarantee does not cover, such as column bounds that were read off the data.
    seeded : bool
        Set it where noise was drawn from a caller's seed: whoever knows the seed can take the noise away.

    Examples
    --------
    >>> from dpsynth.accounting.events import gaussian_event, training_event
    >>> ledger = Ledger()
    >>> ledger.post("histograms", gaussian_event(10.0), sensitivity="sqrt(number of columns)")
    >>> ledger.post("critic", training_event(1.0, 0.01, 1000), sensitivity="proved each step")
    >>> round(ledger.epsilon(1e-5), 2)
    1.87
    >>> Ledger.from_dict(ledger.to_dict()).entries == ledger.entries
    True
    """

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._overflows: list[Overflow] = []
        self._excluded: list[str] = []
        self.seeded = False

    def __repr__(self) -> str:
        return f"Ledger({', '.join(entry.name for entry in self._entries)})"

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Readings in the order in which they were posted."""
        return tuple(self._entries)

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
    def not_private(self) -> bool:
        """Whether some entry has no guarantee at all, so that every epsilon is infinite."""
        return not normal_form([entry.event for entry in self._entries], self.adjacency).private

    @property
    def failure_probability(self) -> float:
        """Sum of the overflow probabilities, at most 1."""
        return min(1.0, math.fsum(overflow.probability for overflow in self._overflows))

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
            If the event is unknown, cannot be accounted for under this adjacency, or the adjacency differs
            from that of the entries before.
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
        self._entries.append(Entry(name, event, sensitivity, adjacency, detail))

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
        self._overflows.append(Overflow(name, probability, detail))

    def exclude(self, reason: str) -> None:
        """Record something that the guarantee does not cover; a reason given twice is kept once."""
        text("reason", reason)
        if reason not in self._excluded:
            self._excluded.append(reason)

    def profile(self) -> Profile:
        """Return the composed cost of all entries, overflow charges included."""
        return Profile(
            [entry.event for entry in self._entries],
            adjacency=self.adjacency,
            failure_probability=self.failure_probability,
        )

    def epsilon(self, delta: float) -> float:
        """Epsilon of all entries at ``delta``; see :meth:`Profile.epsilon`."""
        return self.profile().epsilon(delta)

    def summary(self, delta: float) -> dict[str, Any]:
        """Cost of the whole and of each entry.

        Parameters
        ----------
        delta : float
            In [0, 1].

        Returns
        -------
        dict
            ``epsilon``, ``delta``, ``tv``, ``advantage``, ``attack_accuracy_bound``, ``adjacency``,
            ``not_private``, ``seeded``, ``excluded``, ``failure_probability``, ``overflow_delta`` (the part
            of delta that overflows take at that epsilon), ``guarantee`` (a sentence), and ``entries``: a list
            in the order of posting, each with ``name``, ``event`` (words), ``sensitivity``, ``detail``,
            ``epsilon_alone`` and ``epsilon_cumulative`` (with all entries before it; overflow charges are in
            the cumulative figures only, so that the last equals ``epsilon``). Epsilons may be infinite.

        Raises
        ------
        InputError
            If delta lies outside [0, 1] or is NaN.
        """
        return statement.summary(self, delta)

    def guarantee(self, delta: float) -> str:
        """The guarantee in plain words, which says NOT PRIVATE where there is none.

        Examples
        --------
        >>> from dpsynth.accounting.events import non_private_event
        >>> ledger = Ledger()
        >>> ledger.post("raw means", non_private_event(), sensitivity="unbounded")
        >>> ledger.guarantee(1e-5)
        'NOT PRIVATE: raw means was released without any guarantee.'
        """
        return statement.guarantee(self, delta)

    def to_dict(self) -> dict[str, Any]:
        """Return the ledger as a dictionary that JSON can hold; :meth:`from_dict` is its inverse."""
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "entries": [
                {
                    "name": entry.name,
                    "event": event_to_dict(entry.event),
                    "sensitivity": entry.sensitivity,
                    "adjacency": entry.adjacency,
                    "detail": entry.detail,
                }
                for entry in self._entries
            ],
            "overflows": [
                {"name": o.name, "probability": o.probability, "detail": o.detail} for o in self._overflows
            ],
            "excluded": list(self._excluded),
            "seeded": self.seeded,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Ledger:
        """Rebuild a ledger from :meth:`to_dict`.

        Raises
        ------
        DataError
            If the record is not a ledger, or a field is missing or wrong.
        PrivacyError
            If it holds an event that cannot be accounted for.
        """
        keys = {"format", "version", "entries", "overflows", "excluded", "seeded"}
        if not isinstance(record, Mapping) or record.get("format") != _FORMAT:
            raise DataError(f"not a ledger: the field 'format' must be {_FORMAT!r}")
        if record.get("version") != _VERSION:
            raise DataError(
                f"the ledger has version {record.get('version')!r}; this package reads {_VERSION}"
            )
        if set(record) != keys:
            raise DataError(f"a ledger must have the fields {sorted(keys)}, not {sorted(map(str, record))}")
        for key, kind in (("entries", list), ("overflows", list), ("excluded", list), ("seeded", bool)):
            if not isinstance(record[key], kind):
                raise DataError(
                    f"the field {key!r} of a ledger must be a {kind.__name__}, not {record[key]!r}"
                )
        ledger = cls()
        ledger.seeded = record["seeded"]
        try:
            for entry in record["entries"]:
                ledger.post(**{**entry, "event": event_from_dict(entry["event"])})
            for overflow in record["overflows"]:
                ledger.charge_overflow(**overflow)
            for reason in record["excluded"]:
                ledger.exclude(reason)
        except (KeyError, TypeError, InputError) as error:
            raise DataError(f"the ledger has a faulty entry: {error}") from None
        return ledger

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ledger as JSON, atomically: a reader sees the old file or the new one, never a part.

        Raises
        ------
        OSError
            If the folder does not exist or cannot be written to.
        """
        write_text(path, json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Ledger:
        """Read a ledger written by :meth:`save`.

        Raises
        ------
        DataError
            If the file cannot be read, is not JSON, or is not a ledger; the message names the file.
        PrivacyError
            If it holds an event that cannot be accounted for.
        """
        record = read_json(path, "the ledger")
        try:
            return cls.from_dict(record)
        except DataError as error:
            raise DataError(f"cannot read the ledger {path}: {error}") from None
