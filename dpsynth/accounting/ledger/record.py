"""A ledger as a dictionary that JSON can hold, for people to read and for others to recompute.

It tells what neighbouring tables differ in, the ledger's own delta and the composed totals at it; who reads
it back computes them again and refuses a record whose totals are not those of its entries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dpsynth.accounting.events.events import event_from_dict, event_to_dict
from dpsynth.accounting.ledger.entries import Stage, stage_numbers
from dpsynth.checks import text
from dpsynth.errors import DataError, InputError

if TYPE_CHECKING:
    from dpsynth.accounting.ledger.ledger import Ledger

FORMAT, VERSION = "dpsynth ledger", 2
#: What neighbouring tables differ in.
UNIT = "one row"
# Versions of the accounting may differ in the last digits of a total.
_AGREE = 1e-3


def to_record(ledger: Ledger, *, total: bool) -> dict[str, Any]:
    """See :meth:`Ledger.to_dict`."""
    untold = {"delta": ledger.delta, "epsilon": None, "tv": None}
    return {
        "format": FORMAT,
        "version": VERSION,
        "unit": UNIT,
        "adjacency": ledger.adjacency,
        **(_totals(ledger) if total else untold),
        "seeded": ledger.seeded,
        "generators": list(ledger.generators),
        "excluded": list(ledger.excluded),
        "stages": [asdict(stage) for stage in ledger.stages],
        "entries": [
            {
                "name": entry.name,
                "stage": entry.stage,
                "event": event_to_dict(entry.event),
                "sensitivity": entry.sensitivity,
                "adjacency": entry.adjacency,
                "detail": entry.detail,
            }
            for entry in ledger.entries
        ],
        "overflows": [asdict(overflow) for overflow in ledger.overflows],
    }


def from_record(ledger: Ledger, record: Mapping[str, Any]) -> Ledger:
    """Fill a new ledger; see :meth:`Ledger.from_dict`."""
    _check_fields(record)
    ledger.seeded = record["seeded"]
    try:
        begun = []
        for stage in record["stages"]:
            numbers = stage_numbers(stage["delta"], stage["epsilon"], stage["tv"])
            begun.append(Stage(text("key", stage["key"]), *numbers))
        last = 1
        for entry in record["entries"]:
            last = _in_order(entry["stage"], last, len(begun))
            ledger._stages = begun[:last]  # a ledger posts into its last stage
            given = {key: value for key, value in entry.items() if key != "stage"}
            ledger.post(**{**given, "event": event_from_dict(entry["event"])})
        for overflow in record["overflows"]:
            ledger._stages = begun[: _in_order(overflow["stage"], 1, len(begun))]
            ledger.charge_overflow(**{key: value for key, value in overflow.items() if key != "stage"})
        ledger._stages = begun
        ledger.generators = [text("generator", name) for name in record["generators"]]
        for reason in record["excluded"]:
            ledger.exclude(reason)
        if ledger.stages != tuple(begun) or ledger.adjacency != record["adjacency"]:
            raise InputError("its stages or its adjacency are not those of its entries")
        ledger.end_stage()
        if record["tv"] is not None:
            real = _totals(ledger)
            told = {name: record[name] for name in real}
            if not all(_agree(told[name], real[name]) for name in real):
                raise InputError(f"its entries cost {real}, and it tells {told}")
    except (KeyError, TypeError, AttributeError, InputError) as error:
        raise DataError(f"the ledger has a faulty entry: {error}") from None
    return ledger


def _totals(ledger: Ledger) -> dict[str, float | None]:
    """Delta, epsilon (null if infinite or without a delta) and total variation of everything.

    All of them are null where stages are to be summed and one names no delta.
    """
    if len(ledger.stages) > 1 and ledger.delta is None:
        return {"delta": None, "epsilon": None, "tv": None}
    profile, delta = ledger.profile(), ledger.delta
    epsilon = math.inf if delta is None else profile.epsilon(delta)
    return {"delta": delta, "epsilon": epsilon if math.isfinite(epsilon) else None, "tv": profile.tv()}


def _in_order(number: object, earliest: int, stages: int) -> int:
    """Refuse a stage's number that there is none of, or one that goes back."""
    if not isinstance(number, int) or not earliest <= number <= stages:
        raise InputError(f"stage {number!r} is not one of {earliest} to {stages}")
    return number


def _agree(told: Any, real: float | None) -> bool:
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
    lists = ("generators", "excluded", "stages", "entries", "overflows")
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
    if record["unit"] != UNIT:
        raise DataError(f"the ledger is about {record['unit']!r}; this package accounts for {UNIT!r}")
