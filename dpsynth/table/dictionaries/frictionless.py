"""Table Schemas of Frictionless Data, alone or in a data package (specification 1 and 2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dpsynth.errors import InputError
from dpsynth.table.dictionaries.dictionary import Dictionary, Variable, json_of

_KINDS = {
    "integer": "integer",
    "number": "continuous",
    "year": "integer",
    "date": "date",
    "datetime": "datetime",
}


def read_frictionless(path: Path) -> Dictionary | None:
    """The dictionary of a Table Schema, or of a package with one table. None for other files."""
    held = json_of(path)
    tables = held.get("resources") if isinstance(held, Mapping) else None
    if isinstance(tables, list):
        described = [
            one for one in tables if isinstance(one, Mapping) and isinstance(one.get("schema"), Mapping)
        ]
        if len(described) != 1:
            raise InputError(f"{path}: the data package must describe one table, and it has {len(described)}")
        held = described[0]["schema"]
    if not (isinstance(held, Mapping) and isinstance(held.get("fields"), list)):
        return None
    absent = tuple(str(word) for word in held.get("missingValues", ("",)) if word != "")
    return Dictionary.of(str(path), _variables(held, absent, path))


def _variables(held: Mapping[str, Any], absent: tuple[str, ...], path: Path) -> Iterator[Variable]:
    keys = held.get("primaryKey", [])
    for field in held["fields"]:
        if not (isinstance(field, Mapping) and isinstance(field.get("name"), str)):
            raise InputError(f"{path}: each field must be a mapping with a name, got {field!r}")
        name, said = field["name"], field.get("constraints") or {}
        if name in (keys if isinstance(keys, list) else [keys]) or said.get("unique"):
            yield Variable(name, left_out="a key, which says which row it is")
            continue
        yield Variable(name, _fields(field, said, absent))


def _fields(field: Mapping[str, Any], said: Mapping[str, Any], absent: tuple[str, ...]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    listed = said.get("enum") or [
        one.get("value") if isinstance(one, Mapping) else one for one in field.get("categories") or ()
    ]
    if listed:
        kind = "ordinal" if field.get("categoriesOrdered") else "categorical"
        fields = {"kind": "binary" if len(listed) == 2 else kind, "categories": tuple(listed)}
    elif field.get("type") == "boolean":
        fields = {"kind": "binary", "categories": (False, True)}
    elif field.get("type") in _KINDS:
        fields["kind"] = _KINDS[field["type"]]
        for ours, theirs in (("lower", "minimum"), ("upper", "maximum")):
            if said.get(theirs) is not None:
                fields[ours] = said[theirs]
        if fields["kind"] in ("date", "datetime") and str(field.get("format", "default")).startswith("%"):
            fields["format"] = field["format"]
    if not fields:
        return {}
    fields["missing"] = not said.get("required")
    if absent and fields["missing"] and "categories" in fields:
        fields["missing_codes"] = absent
    text = field.get("description") or field.get("title")
    if text:
        fields["description"] = str(text)
    if isinstance(field.get("unit"), str):
        fields["unit"] = field["unit"]
    return fields
