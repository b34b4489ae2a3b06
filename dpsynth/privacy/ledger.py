"""The ledger: every noisy statistic of the private table, by name, and their joint cost.

Everything that reads private records is in it: histograms, counts, selections, the training run, and all
later fits on the same table. A ledger may have a file (:mod:`dpsynth.privacy.ledger_file`), in which other
runs on the data set post as well, each before it reads. ``ledger.json`` is an export: a plain file from which
others can recompute the guarantee without this package's model.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsynth.checks import PATIENT, Counted, text, together
from dpsynth.errors import DataError, DpsynthError, InputError, PrivacyError
from dpsynth.files.codec import record_as
from dpsynth.files.storage import read_json, sealed, unsealed, write_text
from dpsynth.files.text import html_lines, html_table, text_table
from dpsynth.privacy.guarantee import UNIT, Guarantee, about_schema, round_up
from dpsynth.privacy.ledger_file import (
    COMPLETE,
    INTERRUPTED,
    STOPPED,
    UNUSED,
    VARIABLE,
    Cost,
    LedgerFile,
)
from dpsynth.privacy.loss import ADD_REMOVE
from dpsynth.privacy.profile import Profile, meanings, measures_of
from dpsynth.privacy.stages import (
    PUBLISHED,
    ROUNDING,
    Contents,
    Entry,
    Stage,
    Summary,
    from_record,
    summary_of,
    to_record,
    without_published,
)

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

    from dpsynth.privacy.release import Read as Records
    from dpsynth.privacy.release import Release, Released

#: measures of the guarantee that a printed ledger explains
_PRINTED = ("epsilon", "total variation", "attack accuracy")


@dataclass
class _Reservation:
    """A run of the ledger's file that this object carries out: its number there, and the thread."""

    number: int
    thread: int
    cost: Cost
    folder: str
    unread: tuple[str, Contents] | None  # its end if nothing is read, None once something may have been
    marks: Contents  # what was marked before it began, and goes with the next entry if this one has none
    again: bool = False  # whether it is that of a copy, which went on before
    taken: bool = False  # whether a fit uses it


# A ledger's state. `_own` is what this object has posted, `_earlier` what other runs have posted in its
# file, `_contents` both, in that order. Each is a `Contents`, replaced as a whole. A change goes through
# `_set_own` (in memory) or `_write_own` (first to the file, where a run is reserved). `_begun` is a stage
# without an entry yet. `_closed` says that the last stage takes no more entries. `_reservation` is the
# run of the file that this object carries out, on one thread of one process: a copy of the object carries
# out none (`_leave_run`).


class Ledger:
    """Named noisy statistics of one private table, and their composed cost.

    Attributes
    ----------
    file : LedgerFile or None
        The file of the data set, to which every entry is written before :meth:`post` returns. The records are
        read after that, so a crash of the process loses no entry. None if the ledger is in memory alone. See
        :meth:`open`.
    published : dict of str to str
        Text for readers of the file that :meth:`save` writes: ``data_owner``, ``contact``, and
        ``synthetic_sha256`` of a run's table. No part of the cost.

    Examples
    --------
    >>> from dpsynth.privacy import gaussian_event, training_event
    >>> ledger = Ledger()
    >>> ledger.post("histograms", gaussian_event(10.0), sensitivity="sqrt(number of columns)")
    >>> ledger.post("critic", training_event(1.0, 0.01, 1000), sensitivity="proved each step")
    >>> round(ledger.epsilon(1e-5), 2)
    1.87
    >>> Ledger.from_dict(ledger.to_dict()).entries == ledger.entries
    True
    """

    def __init__(self) -> None:
        self.file: LedgerFile | None = None
        self._earlier, self._own = Contents(), Contents()
        self._contents = self._own
        self._reservation: _Reservation | None = None
        self._begun: Stage | None = None
        self._closed = True
        self._computed: set[tuple[str, ...]] = set()  # first keys of entries that are or were computed here
        self._ended = False  # whether a run that this object carried out in the file has ended
        self.published: dict[str, str] = {}
        self._lock = threading.RLock()  # of two threads that post, none loses the other's entry
        self._process = os.getpid()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_lock", "_reservation")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        empty = {"_computed": set(), "_ended": False}  # of objects that an older version pickled
        vars(self).update(empty | state, _lock=threading.RLock(), _reservation=None)
        self._leave_run()

    def _leave_run(self) -> None:
        """Make of a copy, maybe in another process, a ledger that carries out no run of the file itself."""
        self._process, self._reservation = os.getpid(), None
        if self.file is not None:
            begun, marks = self._begun, Contents().marked(self._own)
            self._set_both(self._contents)
            self._set_own(self._own.marked(marks))
            self._begun = None if begun is None else begun.renewed()

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Keep other threads out. A fork of the process has a copy of the ledger, which parts here."""
        with self._lock:
            if self._process != os.getpid():
                self._leave_run()
            yield

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, make: bool = False) -> Ledger:
        """The ledger of a data set's file, with all that was posted there, to which others may post as well.

        Without ``make`` the file must be there: ``dpsynth ledger`` with a cap makes it. Raises InputError for
        no file, DataError for a damaged one, RunError if another process holds it for long.
        """
        ledger = cls()
        ledger.file = LedgerFile(path, make=make)
        ledger._set_both(ledger.file.history().contents())
        return ledger

    @classmethod
    def named(cls, given: Ledger | str | os.PathLike[str] | None) -> Ledger | None:
        """A given ledger, or that of the file that is named, here or by ``DPSYNTH_LEDGER``, or None."""
        if given is None:
            given = os.environ.get(VARIABLE) or None
        if given is None or isinstance(given, Ledger):
            return given
        if not isinstance(given, str | os.PathLike):
            raise InputError(f"ledger must be a Ledger or the path of its file, got {type(given).__name__}")
        return cls.open(given)

    def __repr__(self) -> str:
        return f"Ledger({', '.join(entry.name for entry in self.entries)})"

    def __str__(self) -> str:
        """The guarantee, and each noisy statistic with its cost."""
        sentences, header, rows = self._shown()
        return "\n".join([*sentences, text_table(header, rows), *map(": ".join, self._meanings())])

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        sentences, header, rows = self._shown()
        meanings = self._meanings()
        table = html_table(("measure", "bound", "meaning"), meanings) if meanings else ""
        return html_lines(sentences) + html_table(header, rows) + table

    def _shown(self) -> tuple[list[str], tuple[str, ...], list[tuple[str, ...]]]:
        """Sentences, and the entries as a table, without epsilons if the ledger names no delta."""
        if not self.entries:
            return ["An empty ledger: no private record has been read."], ("noisy statistic",), []
        if self.delta is None:
            sentence = "This ledger names no delta. The method summary(delta) gives its cost."
            rows: list[tuple[str, ...]] = [(e.name, e.sensitivity, e.detail) for e in self.entries]
            return [sentence], ("noisy statistic", "sensitivity", "detail"), rows
        summary = self.summary()
        header = ("noisy statistic", "epsilon alone", "epsilon so far", "mechanism", "detail")
        costs: list[tuple[str, ...]] = [
            (
                entry["name"],
                round_up(entry["epsilon_alone"]),
                round_up(entry["epsilon_cumulative"]),
                entry["event"],
                entry["detail"],
            )
            for entry in summary["entries"]
        ]
        return [summary["guarantee"]], header, costs

    def _meanings(self) -> list[tuple[str, str, str]]:
        if not self.entries or self.delta is None or not self.guarantee().private:
            return []
        explained = meanings(measures_of(self.profile(), self.delta), self.guarantee().who)
        return [row for row in explained if row[0] in _PRINTED]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Noisy statistics in the order of posting, stage by stage."""
        return self._contents.entries

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Stages with an entry. An entry's ``stage`` is the place here, from 1."""
        return self._contents.stages

    @property
    def excluded(self) -> tuple[str, ...]:
        """Anything that the guarantee does not cover, such as column bounds taken from the data."""
        return self._contents.excluded

    @property
    def generators(self) -> tuple[str, ...]:
        """Sources of the noise, in words."""
        return self._contents.generators

    @property
    def adjacency(self) -> str:
        """Adjacency of the entries (add/remove while there are none)."""
        return self._contents.adjacency

    @property
    def delta(self) -> float | None:
        """Sum of the stages' deltas, at which to read the ledger, or None if a stage has none."""
        return self._contents.delta

    @property
    def not_private(self) -> bool:
        """Whether some entry has no guarantee at all, so that every epsilon is infinite."""
        return bool(self._contents.bare)

    @property
    def seeded(self) -> bool:
        """Whether noise was drawn from a caller's seed, with which anybody can subtract the noise."""
        return self._contents.seeded

    @seeded.setter
    def seeded(self, seeded: bool) -> None:
        with self._changing():
            self._check_mark("seeded")
            self._set_own(replace(self._own, seeded=seeded))

    @property
    def unit(self) -> str:
        """The difference between neighbouring tables: one row, with its meaning, or a patient's rows."""
        return self._contents.unit

    def about(self, row: str | None) -> None:
        """Record what one row of the table is, in words, before anything is posted.

        If there are entries with another unit, or none, the unit is one row. Words that begin with "one
        patient with all rows" are the unit themselves. Raises PrivacyError if there are entries about a row,
        and these words are about a patient with all rows, or the other way round.
        """
        unit = UNIT if row is None else row if row.startswith(PATIENT) else f"{UNIT} = {row}"
        with self._changing():
            unit = self._own.shared_unit(self._earlier.shared_unit(unit))
            self._set_own(replace(self._own, unit=unit))

    def drawn_by(self, generator: str) -> None:
        """Record a source of the noise, in words, once if given twice."""
        with self._changing():
            self._check_mark("drawn_by")
            known = (*self.generators, text("generator", generator))
            self._set_own(replace(self._own, generators=tuple(dict.fromkeys(known))))

    def exclude(self, reason: str) -> None:
        """Record something that the guarantee does not cover, once if given twice."""
        with self._changing():
            self._check_mark("exclude")
            known = (*self.excluded, text("reason", reason))
            self._set_own(replace(self._own, excluded=tuple(dict.fromkeys(known))))

    def _check_mark(self, what: str) -> None:
        """Refuse a mark that would never reach the file: its statistic was posted before."""
        if self._ended and self._reservation is None:
            raise PrivacyError(
                f"{what} comes after a run that is complete in {self.file}. It would not be written there. "
                "Say it before the run or within `reserved`, or open the file once more for another run"
            )

    def begin_stage(self, delta: float, *, epsilon: float | None = None, tv: float | None = None) -> None:
        """Begin a stage: entries posted from now on may depend on the outputs of those posted before.

        ``delta``, in [0, 1), is the stage's part of the whole delta, fixed before the stage. Earlier stages
        without a delta get the same. ``epsilon`` and ``tv`` bound the stage's cost, and are fixed before the
        ledger's first entry. That they were fixed before rests on the caller's word, as a sensitivity does.
        Name them if an earlier output decides about noise: the entries then show one of the possible costs.
        Without ``tv``, the largest total variation counts that epsilon and delta allow. Entries that cost
        more than the promise are refused when they are posted.

        Examples
        --------
        >>> from dpsynth.privacy import gaussian_event
        >>> ledger = Ledger()
        >>> for _ in range(2):
        ...     ledger.begin_stage(1e-6, epsilon=0.5)
        ...     ledger.post("count", gaussian_event(20.0), sensitivity="1")
        >>> ledger.delta, ledger.epsilon(2e-6), ledger.epsilon(1e-6)
        (2e-06, 1.0, inf)
        """
        self._begin_stage(Stage.begin(delta, epsilon=epsilon, tv=tv))

    def end_stage(self) -> None:
        """Close all stages. The next entry begins a new one, with the last one's delta."""
        with self._changing():
            self._begun, self._closed = None, True

    @contextlib.contextmanager
    def reserved(self, cost: Cost, folder: str, *, resumed: Ledger | None = None) -> Iterator[None]:
        """Reserve the cost of a run, which the block carries out, in the ledger's file, and note how it ends.

        ``resumed`` is the ledger of a checkpoint, whose run has paid and goes on. Without a file nothing
        happens. Inside of another reservation of this thread, that one pays: for one fit, of no larger cost.

        Raises PrivacyError if the cap of the file would be passed, or if the file does not hold the resumed
        run. Also if the run counts patients and earlier ones rows. Raises InputError if another thread
        carries out a run of this object. Nothing is posted then.
        """
        run = None if self.file is None else self._reserve(self.file, cost, folder, resumed)
        try:
            yield
        except BaseException as problem:
            if run is not None:
                state = INTERRUPTED if isinstance(problem, KeyboardInterrupt) else STOPPED
                self._end_run(run, *(run.unread or (state, self._own)))
            raise
        else:
            if run is not None:
                self._end_run(run, COMPLETE, self._own)
        finally:
            self.end_stage()  # what is posted after a fit is not covered by what the fit set aside

    def run(
        self, release: Release[Records, Released], records: Records, rng: np.random.Generator
    ) -> Released:
        """Post a release, then run it. Only this and :meth:`resume` release something of private records.

        ``records`` are opened for this release alone. ``rng``, the source of the noise, is secret. Raises
        PrivacyError as :meth:`post` does, or if the release's stage is complete. Nothing has been read then.
        """
        with self._changing():
            if release.stage is not None:
                self._join_stage(release.stage, release.name)
            self.post(
                release.name,
                release.event,
                sensitivity=release.sensitivity,
                adjacency=release.adjacency,
                detail=release.detail,
            )
            key = self.entries[-1].keys[:1]
            self._computed.add(key)
        return self._compute(release, records, rng, key)

    def resume(
        self, release: Release[Records, Released], records: Records, rng: np.random.Generator
    ) -> Released:
        """Continue an interrupted release, whose cost is that of its entry.

        Its entry gets one more random key, by which the ledger's file knows a copy of the interrupted run.
        Raises PrivacyError if the release does not go on from an unfinished state (``resumed``), if it was
        not posted as a whole, or if this ledger computes or has computed it: a second one would be another
        release. Copies of a ledger without a file know nothing of one another.
        """
        with self._changing():
            if not getattr(release, "resumed", False):
                raise PrivacyError(f"{release.name!r} cannot go on: it has no unfinished state")
            entries = list(self._own.entries)
            # ledgers of older versions name the critic's steps without WGAN
            names = (release.name, release.name.removeprefix("WGAN "))
            posted = [n for n, e in enumerate(entries) if e.name in names and e.event == release.event]
            if not posted:
                raise PrivacyError(f"{release.name!r} cannot go on: this ledger does not hold it")
            unfinished = [n for n in posted if entries[n].keys[:1] not in self._computed]
            if not unfinished:
                raise PrivacyError(f"{release.name!r} cannot go on: it is finished, or goes on already")
            last = unfinished[-1]
            entries[last] = entries[last].with_key()
            self._write_own(replace(self._own, entries=tuple(entries)))
            key = entries[last].keys[:1]
            self._computed.add(key)
        return self._compute(release, records, rng, key)

    def _compute(
        self,
        release: Release[Records, Released],
        records: Records,
        rng: np.random.Generator,
        key: tuple[str, ...],
    ) -> Released:
        """Run what is posted. If it fails, it may be resumed."""
        try:
            with records.opened():
                return release(records, rng)
        except BaseException:
            with self._changing():
                self._computed.discard(key)
            raise

    def post(
        self, name: str, event: DpEvent, *, sensitivity: str, adjacency: str = ADD_REMOVE, detail: str = ""
    ) -> None:
        """Enter a noisy statistic of the private table before it is computed, never after.

        The arguments are those of :class:`Entry`. ``{record}`` and ``{records}`` in ``sensitivity`` and
        ``detail`` become the nouns of the ledger's unit (:class:`dpsynth.checks.Counted`). A name may be
        posted again, as a second fit does. If the ledger has a file, and no run is being carried out, the
        statistic is a run of its own there.

        Raises
        ------
        PrivacyError
            If the event cannot be accounted for, or its adjacency is not that of earlier entries. If the
            stages are closed and the last one has no delta for a new one. If the cap of the ledger's file
            would be passed.
        InputError
            If a text is missing, or a number in the event is out of range or infinite.
        """
        entry, noun = Entry(name, event, sensitivity, adjacency, detail).checked(), Counted.of(self.unit)
        entry = replace(entry, sensitivity=noun.fill(sensitivity), detail=noun.fill(detail)).with_key()
        with self._changing():
            stage = self._stage_now()
            run = self._reservation
            if self.file is None or (run is not None and run.thread == threading.get_ident()):
                self._post(entry, stage)
                return
            epsilon, delta, _ = replace(self._own, entries=(), stages=()).posting(entry, stage).cost(1)
            with self.reserved(Cost(epsilon, delta, self.unit), name):
                self._post(entry, stage)

    def _post(self, entry: Entry, stage: Stage) -> None:
        self._write_own(self._own.posting(entry, stage))
        self._begun, self._closed = None, False

    @property
    def pays_again(self) -> bool:
        """Whether the run that goes on is a copy of one that went on before, so needs noise of its own."""
        return self._reservation is not None and self._reservation.again

    def counts(self, other: Ledger) -> bool:
        """Whether all noisy statistics of another ledger are in this one, by the keys of their posting."""
        known = {entry.keys[:1] for entry in self.entries}
        return all(entry.keys and entry.keys[:1] in known for entry in other.entries)

    def profile(self) -> Profile:
        """Return the composed cost, or raise PrivacyError if one of several stages has no delta."""
        return self._contents.profile

    def epsilon(self, delta: float) -> float:
        """Return epsilon of all entries at ``delta``."""
        return self.profile().epsilon(delta)

    def summary(self, delta: float | None = None) -> Summary:
        """Cost of the whole and of each entry at ``delta`` in [0, 1], by default the ledger's own.

        Returns
        -------
        dict
            ``epsilon``, ``delta``, ``tv``, ``advantage``, ``attack_accuracy_bound``, ``adjacency``, ``unit``,
            ``not_private``, ``seeded``, ``excluded`` and ``guarantee`` (a sentence). ``stages`` has each
            stage's ``epsilon``, ``delta`` and ``tv``, and is empty for a single stage. ``entries``, in the
            order of posting, have ``name``, ``stage``, ``event`` (words), ``sensitivity``, ``detail``,
            ``epsilon_alone`` and ``epsilon_cumulative`` (with all earlier entries). Epsilons may be infinite.
        """
        return summary_of(self._contents, self._read_at(delta))

    def guarantee(self, delta: float | None = None) -> Guarantee:
        """Return the guarantee at ``delta`` (by default the ledger's own), which prints as a sentence.

        Examples
        --------
        >>> from dpsynth.privacy import non_private_event
        >>> ledger = Ledger()
        >>> ledger.post("raw means", non_private_event(), sensitivity="unbounded")
        >>> print(ledger.guarantee(1e-5))
        NOT PRIVATE: raw means was computed without any guarantee.
        """
        return self._contents.guarantee(self._read_at(delta))

    def to_dict(self, *, total: bool = True) -> dict[str, Any]:
        """Return the ledger as a dictionary that JSON can hold, the inverse of :meth:`from_dict`.

        With ``total``, the composed ``epsilon`` (null if infinite or without a delta) and ``tv`` as well.
        """
        return to_record(self._contents, total=total)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Ledger:
        """Rebuild a ledger from :meth:`to_dict`, with closed stages.

        Raises DataError if the record is not a ledger, a field is missing or wrong, or its totals are not
        those of its entries. Raises PrivacyError if it holds an event that cannot be accounted for.
        """
        ledger = cls()
        ledger._set_own(from_record(record))
        return ledger

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ledger as JSON, atomically: a reader sees the old file or the new one, never a part.

        Only its owner can read it if it names fields of a schema that were read off the records. Its
        sensitivities follow from them: they say how many columns have many values.
        """
        published = {PUBLISHED: self.published} if self.published else {}
        self._write(path, {**self.to_dict(), **published}, shared=not about_schema(self.excluded))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Ledger:
        """Read a ledger written by :meth:`save`, or raise DataError, naming the file, if it has no entry."""
        record = unsealed(read_json(path, "the ledger"), f"cannot read the ledger {path}")
        try:
            record, published = without_published(record)
            ledger = cls.from_dict(record)
            ledger.published = published
            if not ledger.entries:
                raise DataError("it is empty, so it guarantees nothing")
        except DataError as error:
            raise DataError(f"cannot read the ledger {path}: {error}") from None
        return ledger

    def spent(self) -> str | None:
        """Say what the run that this ledger carries out has cost, or None if it has posted nothing.

        It costs all that it reserved: when it stopped may depend on its noisy statistics.
        """
        entries, run = self._own.entries, self._reservation
        if not entries or run is None:
            return None
        cost = f"cost {run.cost}" if math.isfinite(run.cost.epsilon) else "have no guarantee"
        many = "1 noisy statistic" if len(entries) == 1 else f"{len(entries)} noisy statistics"
        return f"{many} ({together([entry.name for entry in entries])}), which {cost}"

    def _set_own(self, own: Contents) -> None:
        """Hold other entries of one's own, or raise PrivacyError if they do not go with the earlier ones."""
        self._contents = self._earlier.then(own)
        self._own = own

    def _write_own(self, own: Contents) -> None:
        """Hold other entries of one's own, which are in the file first, if there is one."""
        both = self._earlier.then(own)
        if self.file is not None and self._reservation is not None:
            self._check_thread(self._reservation)
            self._check_reserved(self._reservation, own)
            self._earlier = self.file.write(self._reservation.number, own)
            self._reservation.unread = None
            both = self._earlier.then(own)
        self._own, self._contents = own, both

    def _set_both(self, earlier: Contents, own: Contents | None = None) -> None:
        """Hold the entries of other runs in the file, and those of one's own run there."""
        self._earlier = earlier
        self._begun, self._closed = None, True
        self._set_own(Contents(unit=earlier.unit) if own is None else own)

    def _reserve(
        self, file: LedgerFile, cost: Cost, folder: str, resumed: Ledger | None
    ) -> _Reservation | None:
        """Begin a run of the file or go on with one, or see that the run that is carried out pays."""
        with self._changing():
            if self._reservation is not None:
                self._use_reservation(self._reservation, cost)
                return None
            if resumed is None:
                number, unread, marks = file.begin(cost, folder), (UNUSED, Contents()), self._own
            else:
                number, own, unread = file.go_on(resumed._contents, cost, folder)
                marks, own = self._own, own.marked(self._own)
                self._set_both(file.history().contents(without=number), own)
            again = resumed is not None and unread[0] == UNUSED
            self._reservation = _Reservation(
                number, threading.get_ident(), cost, folder, unread, marks, again
            )
            return self._reservation

    def _use_reservation(self, outer: _Reservation, cost: Cost) -> None:
        """Let a fit use a reservation."""
        self._check_thread(outer)
        if outer.taken or cost.epsilon > outer.cost.epsilon or cost.delta > outer.cost.delta:
            raise PrivacyError(
                f"{outer.cost} was reserved for one fit of {outer.folder}, and this one needs {cost}: "
                "reserve the cost of each fit"
            )
        outer.taken = True

    def _check_reserved(self, run: _Reservation, own: Contents) -> None:
        """Refuse what costs more than was reserved: the cap of the file counts the reservation alone."""
        if not math.isfinite(run.cost.epsilon):
            return
        stages = [replace(s, delta=run.cost.delta) if s.delta is None else s for s in own.stages]
        costs = replace(own, stages=tuple(stages)).costs()
        epsilon, delta = (math.fsum(cost[part] for cost in costs) for part in (0, 1))
        most = run.cost.epsilon * (1 + ROUNDING), run.cost.delta * (1 + ROUNDING)
        if epsilon > most[0] or delta > most[1]:
            raise PrivacyError(
                f"{own.entries[-1].name!r} would make {run.folder} cost epsilon {round_up(epsilon)} at "
                f"delta {round_up(delta)}, and {run.cost} was reserved. Nothing was read: reserve more"
            )

    def _check_thread(self, run: _Reservation) -> None:
        if run.thread != threading.get_ident():
            raise InputError(
                f"another thread posts into {self!r}: open the ledger's file once in each thread"
            )

    def _end_run(self, ended: _Reservation, state: str, own: Contents) -> None:
        """Note how a run ended, and what it posted. If that fails, its cost stays reserved."""
        with self._changing():
            if self._reservation is not ended or self.file is None:
                return  # this is a fork of the process that carries the run out
            self._reservation = None
            posted = Contents() if state == UNUSED else own
            earlier = self._earlier
            try:
                with contextlib.suppress(DpsynthError):
                    earlier = self.file.write(ended.number, own, state)
            finally:  # also after an interrupt
                self._set_both(earlier.then(posted))
                if ended.unread is None:
                    self._ended = True
                else:  # nothing is read
                    self._set_own(self._own.marked(Contents().marked(ended.marks)))

    def _write(self, path: str | os.PathLike[str], record: dict[str, Any], *, shared: bool) -> None:
        write_text(path, json.dumps(sealed(record), indent=2, allow_nan=False) + "\n", shared=shared)

    def _join_stage(self, stage: Stage, name: str) -> None:
        """Begin a release's stage, or see that it is still open."""
        open_stage = self._begun or (None if self._closed else self.stages[-1])
        if open_stage is not None and open_stage.key == stage.key:
            return
        if stage.key in {old.key for old in self.stages}:
            raise PrivacyError(f"{name!r} belongs to a stage of this ledger that is complete")
        self._begin_stage(stage)

    def _begin_stage(self, stage: Stage) -> None:
        with self._changing():
            stages = [
                replace(old, delta=stage.delta) if old.delta is None else old for old in self._own.stages
            ]
            self._set_own(replace(self._own, stages=tuple(stages)))
            self._begun = stage

    def _stage_now(self) -> Stage:
        """The stage that is posted into, or if all are closed, a new one with the last one's delta."""
        if self._begun is not None:
            return self._begun
        if not self.stages:
            return Stage.begin()
        last = self.stages[-1]
        if not self._closed:
            return last
        if last.delta is None:
            raise PrivacyError(
                "the last stage of this ledger is complete and names no delta: call begin_stage(delta) "
                "before anything more is posted"
            )
        return Stage.begin(last.delta)

    def _read_at(self, delta: float | None) -> float:
        read_at = self.delta if delta is None else delta
        if read_at is None:
            raise InputError("the ledger names no delta of its own: give the delta at which to read it")
        return float(read_at)


record_as(Ledger, Ledger.to_dict, Ledger.from_dict)
