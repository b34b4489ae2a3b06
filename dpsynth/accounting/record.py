"""A ledger as a dictionary that JSON can hold, and its costs as plain numbers and words.

The record has the unit in which neighbouring tables differ, the ledger's own delta and the composed totals at
it. Reading it computes the totals again and refuses a record whose totals are not those of its entries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from dpsynth.accounting.contents import Contents, Entry, Stage
from dpsynth.accounting.events import describe_event, event_from_dict, event_to_dict
from dpsynth.accounting.guarantee import PATIENT, UNIT
from dpsynth.accounting.profile import Profile
from dpsynth.checks import text
from dpsynth.errors import DataError, InputError

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
