"""Contents of a ledger: noisy statistics of the private table, their stages, and their joint cost.

Entries of one stage, whose noise was fixed together, are composed on one privacy-loss distribution. Stages
add up: each has its own epsilon, delta and total variation. This holds even if a later stage's noise depends
on the outputs of an earlier one (proofs in :mod:`dpsynth.privacy.loss`). Beliefs follow from a
composition instead where that is proved.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dpsynth.checks import PATIENT, in_range, text
from dpsynth.errors import DataError, InputError, PrivacyError
from dpsynth.files.codec import record
from dpsynth.privacy.conversions import largest_tv
from dpsynth.privacy.events import approx_tv_event, describe_event, event_from_dict, event_to_dict
from dpsynth.privacy.guarantee import UNIT, Guarantee, is_of_patients
from dpsynth.privacy.loss import ADD_REMOVE, normalised
from dpsynth.privacy.profile import Profile

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent


#: by which the entries' cost may exceed the promise of their stage that their noise was solved for
ROUNDING = 1e-9


@dataclass(frozen=True)
class Entry:
    """One noisy statistic of the private table.

    Parameters
    ----------
    name, sensitivity, detail : str
        Name, how far one record can move the query, and anything else a reader needs.
    event : DpEvent
        Its cost, with numbers under add/remove one record.
    adjacency : {"add/remove", "replace-one"}
        The neighbouring tables for which the guarantee is given.
    stage : int
        Number of its stage, from 1.
    keys : tuple of str
        Made at random, one when it is posted and one whenever it is resumed. The first distinguishes two
        statistics of the same words. The last shows whether a checkpoint has been resumed since.
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

    def checked(self) -> Entry:
        """The entry with an event of its own, which nobody else can change, if it can be accounted for."""
        text("name", self.name)
        text("sensitivity", self.sensitivity)
        text("detail", self.detail, may_be_empty=True)
        event = event_from_dict(event_to_dict(self.event))  # a copy: an event can hold a list
        normalised([event], self.adjacency)
        keys = tuple(text("key", key) for key in self.keys)
        return replace(self, event=event, keys=keys)


@record
@dataclass(frozen=True)
class Stage:
    """Entries whose noise was fixed together, and what was fixed about all of them before the first.

    Noise in a stage depends on none of its outputs, so its entries compose on one privacy-loss distribution.
    A later stage's noise may depend on the outputs of an earlier one.

    ``key`` is made at random when the stage begins.
    ``delta`` is the stage's part of the ledger's delta. ``epsilon`` and ``tv`` bound the stage's cost,
    whatever was released before. They are fixed before the ledger's first entry. Without ``epsilon`` the cost
    of its entries counts, without ``tv`` the largest that epsilon and delta allow.
    """

    key: str
    delta: float | None = None
    epsilon: float | None = None
    tv: float | None = None

    @classmethod
    def begin(
        cls, delta: float | None = None, *, epsilon: float | None = None, tv: float | None = None
    ) -> Stage:
        """A new stage, see :meth:`Ledger.begin_stage`."""
        if epsilon is not None and delta is None:
            raise InputError("epsilon bounds the cost of a stage at its delta: give both")
        if tv is not None and epsilon is None:
            raise InputError(
                "tv bounds a stage's total variation together with epsilon: give both, or epsilon alone"
            )
        return cls(secrets.token_hex(8), delta, epsilon, tv).checked()

    def renewed(self) -> Stage:
        """Another stage, about which the same was fixed."""
        return replace(self, key=secrets.token_hex(8))

    def checked(self) -> Stage:
        """The stage with floats, or InputError if a number is out of range or NaN."""
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


@dataclass(frozen=True)
class Contents:
    """State of a ledger.

    An entry's ``stage`` is the place in ``stages``, from 1. Entries are in the order of their stages. The
    guarantee does not cover ``excluded``. ``generators`` drew the noise, ``seeded`` says whether from a
    caller's seed. Neighbouring tables differ in one ``unit``.
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
        """Sum of the stages' deltas, at which to read the ledger, or None if a stage has none."""
        parts = [stage.delta for stage in self.stages if stage.delta is not None]
        return math.fsum(parts) if parts and len(parts) == len(self.stages) else None

    @property
    def bare(self) -> tuple[str, ...]:
        """Names of the entries that have no guarantee at all, so that every epsilon is infinite."""
        return tuple(e.name for e in self.entries if not normalised([e.event], self.adjacency).private)

    def shared_unit(self, unit: str) -> str:
        """The unit of these entries together with others of ``unit``: what both say, or else a row.

        A patient with all rows is no row: changing one of the rows can cost more than adding the patient.
        Raises PrivacyError if one is a patient with all rows, and the other may be less than a patient.
        """
        if not self.entries or unit == self.unit:
            return unit
        units = (self.unit, unit)
        if not any(each.startswith(PATIENT) for each in units):
            return UNIT
        if all(map(is_of_patients, units)):
            return PATIENT
        raise PrivacyError(
            f"this ledger is about {self.unit!r}, and what comes next about {unit!r}: no guarantee covers "
            "both. Give each a ledger and a folder of its own"
        )

    def then(self, later: Contents) -> Contents:
        """These entries and those of a later run on the same table, whose stages are its own.

        Raises PrivacyError if the two are about different neighbouring tables.
        """
        if self.entries and later.entries and self.adjacency != later.adjacency:
            raise PrivacyError(
                f"one run is {self.adjacency}, the other {later.adjacency}: they cannot be summed"
            )
        first = len(self.stages)
        moved = (replace(entry, stage=first + entry.stage) for entry in later.entries)
        return Contents(
            stages=(*self.stages, *later.stages),
            entries=(*self.entries, *moved),
            excluded=tuple(dict.fromkeys((*self.excluded, *later.excluded))),
            generators=tuple(dict.fromkeys((*self.generators, *later.generators))),
            seeded=self.seeded or later.seeded,
            unit=self.shared_unit(later.unit) if later.entries or not self.entries else self.unit,
        )

    def of_stage(self, number: int) -> list[Entry]:
        """Entries of one stage, counted from 1."""
        return [entry for entry in self.entries if entry.stage == number]

    def adding(self, entry: Entry, stage: Stage) -> Contents:
        """Add an entry of the same adjacency, in the last stage or a new one."""
        if self.entries and entry.adjacency != self.adjacency:
            raise PrivacyError(
                f"{entry.name!r} has neighbouring datasets by {entry.adjacency}, but this ledger by "
                f"{self.adjacency}"
            )
        stages = self.stages if stage in self.stages else (*self.stages, stage)
        return replace(self, stages=stages, entries=(*self.entries, replace(entry, stage=len(stages))))

    def posting(self, entry: Entry, stage: Stage) -> Contents:
        """Add an entry that is not computed yet, or raise PrivacyError if its stage would break its promise.

        Had an earlier output chosen other noise, nothing would bound what the stage costs then.
        """
        both = self.adding(entry, stage)
        number = len(both.stages)
        if stage.epsilon is None or stage.delta is None or not _breaks(stage, both._alone(number)):
            return both
        tv = largest_tv(stage.epsilon, stage.delta) if stage.tv is None else stage.tv
        raise PrivacyError(
            f"{entry.name!r} would make stage {number} of the ledger cost more than the epsilon "
            f"{stage.epsilon:.6g} and total variation {tv:.6g} that were fixed for it. Nothing was read: "
            "promise more, or add more noise"
        )

    def marked(self, other: Contents) -> Contents:
        """These contents with the exclusions, the sources of noise and the seed of others, not yet posted."""
        return replace(
            self,
            excluded=tuple(dict.fromkeys((*self.excluded, *other.excluded))),
            generators=tuple(dict.fromkeys((*self.generators, *other.generators))),
            seeded=self.seeded or other.seeded,
        )

    @cached_property
    def profile(self) -> Profile:
        """The composed cost of all entries."""
        promises = any(stage.epsilon is not None or stage.tv is not None for stage in self.stages)
        if len(self.stages) <= 1 and not promises:
            return self._alone(1)
        # basic composition and its like for total variation, see dpsynth.privacy.loss
        epsilon, delta, tv = (math.fsum(part) for part in zip(*self.costs(), strict=True))
        return Profile.promised(epsilon, delta, tv, adjacency=self.adjacency, composed=self._dominating())

    def costs(self) -> list[tuple[float, float, float]]:
        """Epsilon, delta and total variation of each stage, as they are summed."""
        return [self.cost(number) for number in range(1, len(self.stages) + 1)]

    def cost(self, number: int) -> tuple[float, float, float]:
        """Epsilon, delta and total variation of a stage, from 1, or PrivacyError if it has no delta."""
        stage, profile = self.stages[number - 1], self._alone(number)
        if stage.delta is None:
            raise PrivacyError(
                f"stage {number} of the ledger names no delta, so it cannot be summed: call "
                "begin_stage(delta) to give it one"
            )
        epsilon = max(stage.epsilon or 0.0, profile.epsilon(stage.delta))
        # The entries show one of the possible costs. A stage of an older ledger may have broken its promise.
        if stage.epsilon is not None and (stage.tv is None or _breaks(stage, profile)):
            return epsilon, stage.delta, largest_tv(epsilon, stage.delta)
        return epsilon, stage.delta, max(stage.tv or 0.0, profile.tv())

    def prefix(self, length: int) -> Contents:
        """The ledger as it was when ``length`` entries were posted.

        If a stage was not complete then, its entries count and not its promise as a whole.
        """
        entries = self.entries[:length]
        last = entries[-1].stage if entries else 0
        stages = list(self.stages[:last])
        if entries and length < len(self.entries) and self.entries[length].stage == last:
            stages[-1] = replace(stages[-1], epsilon=None, tv=None)
        return replace(self, stages=tuple(stages), entries=entries)

    def guarantee(self, delta: float) -> Guarantee:
        """The guarantee at ``delta``, see :meth:`Ledger.guarantee`."""
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

    def _dominating(self) -> list[DpEvent]:
        """Events whose composition dominates all stages, or none if no such composition is proved.

        The first stage depends on no output: its entries count. A later stage may have an epsilon that was
        fixed beforehand. Whatever was released before, it reveals at most as much as the worst mechanism of
        its epsilon, delta and total variation. Such pairs compose (Zhu, Dong and Wang 2022, "Optimal
        accounting of differential privacy via characteristic function", Theorem 10). A cost that was chosen
        in view of earlier outputs, as that of a second fit may be, does not compose in this way.
        """
        if self.adjacency != ADD_REMOVE:
            return []
        first = self.stages[0]
        fixed = first.epsilon is None
        events = [entry.event for entry in self.of_stage(1)] if fixed else []
        for number, stage in enumerate(self.stages, 1):
            if fixed and number == 1:
                continue
            if stage.epsilon is None or _breaks(stage, self._alone(number)):
                return []
            epsilon, delta, tv = self.cost(number)  # as promised, or the largest tv of that epsilon and delta
            events.append(approx_tv_event(epsilon, tv, delta))
        return events

    def _alone(self, number: int) -> Profile:
        """The entries of one stage on one privacy-loss distribution, composed when first asked for."""
        if number not in self._composed:
            events = [entry.event for entry in self.of_stage(number)]
            self._composed[number] = Profile(events, adjacency=self.adjacency)
        return self._composed[number]

    @cached_property
    def _composed(self) -> dict[int, Profile]:
        return {}


def _breaks(stage: Stage, profile: Profile) -> bool:
    """Whether the entries of a stage, composed, cost more than was fixed about it."""
    if stage.epsilon is None or stage.delta is None:
        return False
    beyond = stage.tv is not None and profile.tv() > stage.tv + ROUNDING
    return beyond or profile.epsilon(stage.delta) > stage.epsilon * (1 + ROUNDING)


# ------------------------------------------------------------------------------------------------
# A ledger as a dictionary that JSON can hold, and its costs as plain numbers and words.
#
# The record has the unit in which neighbouring tables differ, the ledger's own delta and the composed totals
# at it. Reading it computes the totals again and refuses a record whose totals are not those of its entries.

FORMAT, VERSION = "dpsynth ledger", 3
#: field of a file that names owner, contact and table. Files of earlier versions have none
PUBLISHED = "published"
_TOLD = ("data_owner", "contact", "synthetic_sha256")
# Versions of the accounting may differ in the last digits of a total.
_AGREE = 1e-3


def to_record(contents: Contents, *, total: bool) -> dict[str, Any]:
    """See :meth:`Ledger.to_dict`."""
    untold = {"delta": contents.delta, "epsilon": None, "tv": None}
    return {
        "format": FORMAT,
        "version": VERSION,
        "unit": contents.unit,
        "adjacency": contents.adjacency,
        **(_totals(contents) if total else untold),
        "seeded": contents.seeded,
        "generators": list(contents.generators),
        "excluded": list(contents.excluded),
        "stages": [asdict(stage) for stage in contents.stages],
        "entries": [
            {
                "name": entry.name,
                "stage": entry.stage,
                "event": event_to_dict(entry.event),
                "sensitivity": entry.sensitivity,
                "adjacency": entry.adjacency,
                "detail": entry.detail,
                "keys": list(entry.keys),
            }
            for entry in contents.entries
        ],
    }


def from_record(record: Mapping[str, Any]) -> Contents:
    """See :meth:`Ledger.from_dict`."""
    _check_fields(record)
    try:
        stages = [Stage(**_of(s, Stage)).checked() for s in record["stages"]]
        if len({stage.key for stage in stages}) < len(stages):
            raise InputError("two of its stages have one key")
        contents, last = Contents(), 1
        for line in record["entries"]:
            number = _of(line, Entry)["stage"]
            if type(number) is not int or not last <= number <= len(stages):
                raise InputError(f"stage {number!r} is not one of {last} to {len(stages)}")
            last = number
            event, keys = event_from_dict(line["event"]), tuple(line["keys"])
            entry = Entry(**{**line, "event": event, "keys": keys}).checked()
            contents = contents.adding(entry, stages[last - 1])
        contents = Contents(
            contents.stages,
            contents.entries,
            excluded=tuple(dict.fromkeys(text("reason", reason) for reason in record["excluded"])),
            generators=tuple(text("generator", name) for name in record["generators"]),
            seeded=record["seeded"],
            unit=record["unit"],
        )
        if contents.stages != tuple(stages) or contents.adjacency != record["adjacency"]:
            raise InputError("its stages or neighbouring datasets are not those of its entries")
        if record["tv"] is not None or record["epsilon"] is not None:
            real = _totals(contents)
            told = {name: record[name] for name in real}
            if not all(_agree(told[name], real[name]) for name in real):
                raise InputError(f"its entries cost {real}, but it says {told}")
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise DataError(f"the ledger has a faulty entry: {error}") from None
    return contents


def without_published(record: Any) -> tuple[Any, dict[str, str]]:
    """The record of a ledger's file without what names owner, contact and table, and that.

    Raises DataError if it is not made of short texts.
    """
    if not isinstance(record, Mapping) or PUBLISHED not in record:
        return record, {}
    told = record[PUBLISHED]
    if not isinstance(told, Mapping) or not all(
        name in _TOLD and isinstance(value, str) and value.isprintable() for name, value in told.items()
    ):
        raise DataError(f"the field {PUBLISHED!r} of a ledger must hold texts named {', '.join(_TOLD)}")
    return {name: value for name, value in record.items() if name != PUBLISHED}, dict(told)


def _totals(contents: Contents) -> dict[str, float | None]:
    """Delta, epsilon and total variation, null if infinite or if stages cannot be summed."""
    delta = contents.delta
    if len(contents.stages) > 1 and delta is None:
        return {"delta": None, "epsilon": None, "tv": None}
    epsilon = math.inf if delta is None else contents.profile.epsilon(delta)
    return {
        "delta": delta,
        "epsilon": epsilon if math.isfinite(epsilon) else None,
        "tv": contents.profile.tv(),
    }


def _of(line: dict[str, Any], kind: type[Entry] | type[Stage]) -> dict[str, Any]:
    """The fields of a line: all of them, and no other."""
    names = {field.name for field in fields(kind)}
    if set(line) != names:
        raise InputError(f"a line must have the fields {sorted(names)}, not {sorted(line)}")
    return line


def _agree(told: float | None, real: float | None) -> bool:
    if told is None or real is None:
        return told is real
    return abs(float(told) - real) <= _AGREE * max(abs(float(told)), real)


def _check_fields(record: Mapping[str, Any]) -> None:
    """Refuse what is no ledger, or one of another format, as a DataError."""
    if not isinstance(record, Mapping) or record.get("format") != FORMAT:
        raise DataError(f"not a ledger: the field 'format' must be {FORMAT!r}")
    version = record.get("version")
    if version != VERSION:
        newer = isinstance(version, int) and version > VERSION
        advice = "written by a newer dpsynth: install that" if newer else "which this dpsynth does not read"
        raise DataError(f"the ledger has version {version!r}, not {VERSION}, {advice}")
    lists = ("generators", "excluded", "stages", "entries")
    number = int | float | None
    kinds: dict[str, Any] = {"unit": str, "adjacency": str, "seeded": bool}
    kinds |= {"delta": number, "epsilon": number, "tv": number} | dict.fromkeys(lists, list)
    keys = {"format", "version", *kinds}
    if set(record) != keys:
        raise DataError(f"a ledger must have the fields {sorted(keys)}, not {sorted(map(str, record))}")
    for key, kind in kinds.items():
        if not isinstance(record[key], kind):
            words = getattr(kind, "__name__", "number or null")
            raise DataError(f"the field {key!r} of a ledger must be a {words}, not {record[key]!r}")
    if record["unit"] != UNIT and not record["unit"].startswith((f"{UNIT} = ", PATIENT)):
        raise DataError(f"the ledger is about {record['unit']!r}, but this package accounts for {UNIT!r}")


#: costs of a ledger by name, see :meth:`Ledger.summary`
Summary = dict[str, Any]


def summary_of(contents: Contents, delta: float) -> Summary:
    """The costs of a ledger at ``delta``, see :meth:`Ledger.summary`."""
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


def _entry(contents: Contents, place: int, delta: float) -> dict[str, Any]:
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
