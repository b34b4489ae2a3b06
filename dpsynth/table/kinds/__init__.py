"""Kinds of columns. A new kind is a class in a file of its own, and an entry here."""

from __future__ import annotations

from dpsynth.table.kinds.category import Binary, Nominal, Ordinal
from dpsynth.table.kinds.date import Date, DateTime
from dpsynth.table.kinds.kind import Kind
from dpsynth.table.kinds.number import Integer, Number
from dpsynth.table.kinds.time_of_day import TimeOfDay

#: each kind by the name that schemas give it
KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Number("continuous"),
        Integer("integer"),
        Date("date"),
        DateTime("datetime"),
        TimeOfDay("time"),
        Ordinal("ordinal"),
        Nominal("categorical"),
        Binary("binary"),
    )
}


def kind_of_unit(unit: str | None) -> Kind | None:
    """The kind that writes numbers of this `Column.shown_unit` in a form of its own, or None."""
    kind = KINDS.get(unit or "")
    return kind if kind is not None and kind.written_apart else None
