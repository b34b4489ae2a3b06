"""Metadata of the Synthetic Data Vault (SDV), versions 1 and 2, of one table.

SDV reads limits and categories off the records unless somebody wrote them. So kinds count as public, and
limits do not: a draft reads these itself, and marks them. Lists of categories must be confirmed.

Sources: https://docs.sdv.dev/sdv/concepts/metadata/metadata-json, and the package sdv 2.0.0, `sdv.metadata`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dpsynth.checks import few
from dpsynth.errors import InputError
from dpsynth.table.dictionaries.dictionary import Dictionary, Variable, json_of

_KINDS = ("numerical", "categorical", "ordinal", "boolean", "datetime")
_KEYS = ("primary_key", "alternate_keys", "sequence_key", "sequence_index")
_TIMED = ("%H", "%I", "%T", "%X", "%c")


def read_sdv(path: Path) -> Dictionary | None:
    """The dictionary of SDV's metadata. None for other files. InputError if it describes several tables."""
    held = json_of(path)
    if isinstance(held, Mapping) and isinstance(held.get("tables"), Mapping):
        tables = held["tables"]
        if len(tables) != 1:
            raise InputError(f"{path}: must describe one table, and it has {few(tables) or 'none'}")
        held = next(iter(tables.values()))
    columns = held.get("columns") if isinstance(held, Mapping) else None
    if not isinstance(columns, Mapping) or not any(
        isinstance(entry, Mapping) and "sdtype" in entry for entry in columns.values()
    ):
        return None
    keys = {name for key in _KEYS for name in _listed(held.get(key))}
    return Dictionary.of(str(path), _variables(columns, keys, path), beside_records=True)


def _listed(value: Any) -> list[Any]:
    """Names of a key: SDV writes one name, or a list of them, in which a key of several columns is a list."""
    if value is None:
        return []
    return [name for part in value for name in _listed(part)] if isinstance(value, list) else [value]


def _variables(columns: Mapping[str, Any], keys: set[str], path: Path) -> Iterator[Variable]:
    for name, entry in columns.items():
        if not (isinstance(entry, Mapping) and isinstance(entry.get("sdtype"), str)):
            raise InputError(f"{path}: the column {name!r} has no sdtype")
        if name in keys or entry["sdtype"] not in _KINDS:
            why = "a key" if name in keys else f"of the sdtype {entry['sdtype']}"
            yield Variable(name, left_out=why)
        else:
            yield Variable(name, _fields(entry))


def _fields(entry: Mapping[str, Any]) -> dict[str, Any]:
    kind, order = entry["sdtype"], entry.get("order")
    if kind == "numerical":
        whole = str(entry.get("computer_representation") or "Float") != "Float"
        return {"kind": "integer" if whole or entry.get("decimal_places") == 0 else "continuous"}
    if kind == "datetime":
        pattern = str(entry.get("datetime_format") or "%Y-%m-%d")
        return {"kind": "datetime" if any(part in pattern for part in _TIMED) else "date", "format": pattern}
    if kind == "boolean":
        return {"kind": "binary", "categories": (False, True)}
    listed = {"categories": tuple(order)} if isinstance(order, list) and order else {}
    return {"kind": "ordinal" if kind == "ordinal" or listed else "categorical", **listed}
