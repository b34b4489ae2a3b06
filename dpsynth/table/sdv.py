"""Read metadata of the Synthetic Data Vault (SDV) as the fields of a schema.

SDV's metadata names the columns of a table and their kinds. Version 1 holds neither bounds nor categories.
Version 2 may hold both, which SDV reads from the records unless somebody wrote them. So bounds and categories
are public if the caller gives them, and marked as unreviewed otherwise.

Sources: https://docs.sdv.dev/sdv/concepts/metadata/metadata-json, and the package sdv 2.0.0, `sdv.metadata`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from dpsynth.checks import few
from dpsynth.errors import DataError, SchemaError, of_records
from dpsynth.files.atomic import read_json
from dpsynth.table.cells import TextCells
from dpsynth.table.column import Column
from dpsynth.table.drafting import LeftOut, Remarks, draft_column, is_text

_KINDS = ("numerical", "categorical", "ordinal", "boolean")
_KEYS = ("primary_key", "alternate_keys", "sequence_key", "sequence_index")


def sdv_fields(
    metadata: str | Path | Mapping[str, Any],
    frame: pd.DataFrame | None,
    known: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Return ``name``, ``columns`` and ``ignored``, see :meth:`dpsynth.table.schema.Schema.from_sdv`."""
    name, table = _only_table(metadata)
    described = table.get("columns")
    if not isinstance(described, Mapping) or not described:
        raise SchemaError("the SDV metadata must have a mapping `columns` with at least one column")
    for column, entry in described.items():
        if not (isinstance(entry, Mapping) and isinstance(entry.get("sdtype"), str)):
            raise SchemaError(f"the SDV metadata gives the column {column!r} no sdtype")
    for column in known:
        if column not in described:
            raise SchemaError(
                f"known names {column!r}, which is not a column of the SDV metadata ({few(described)})"
            )
    keys = [column for key in _KEYS for column in _listed(table.get(key))]
    columns: list[Column] = []
    ignored: list[str] = []
    for column, entry in described.items():
        bounded = frame is not None or {"lower", "upper"} <= known.get(column, {}).keys()
        taken = entry["sdtype"] in _KINDS or (entry["sdtype"] == "datetime" and bounded)
        taken = taken and column not in keys
        if not taken and "kind" not in known.get(column, {}):
            ignored.append(column)
            continue
        columns.append(_column(column, entry, known.get(column, {}), frame))
    return {"name": name, "columns": tuple(columns), "ignored": tuple(ignored)}


def _only_table(metadata: str | Path | Mapping[str, Any]) -> tuple[str | None, Mapping[str, Any]]:
    """The table's name, if it has one, and its metadata."""
    if isinstance(metadata, str | Path):
        try:
            record = read_json(metadata, "the SDV metadata")
        except DataError as problem:
            raise SchemaError(str(problem)) from None
    else:
        record = metadata
    if not isinstance(record, Mapping):
        raise SchemaError(
            "SDV metadata must be a file or a mapping (Metadata.to_dict() gives one), got a "
            f"{type(record).__name__}"
        )
    tables = record.get("tables")
    if tables is None:
        return None, record
    if not isinstance(tables, Mapping) or len(tables) != 1:
        found = few(tables) if isinstance(tables, Mapping) and tables else "none"
        raise SchemaError(
            f"the SDV metadata must describe one table, and it has {found}. Give the entry of one under "
            "`tables`"
        )
    name, table = next(iter(tables.items()))
    if not isinstance(table, Mapping):
        raise SchemaError(f"the SDV metadata of the table {name!r} must be a mapping")
    return str(name), table


def _listed(value: Any) -> list[Any]:
    """Names of a key: SDV writes one name, or a list of them, in which a key of several columns is a list."""
    if value is None:
        return []
    return [name for part in value for name in _listed(part)] if isinstance(value, list) else [value]


def _stated(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The kind that the metadata states, which counts as public, and what follows from it alone."""
    representation = str(entry.get("computer_representation") or "")
    if entry["sdtype"] == "numerical" and representation:
        return {"kind": "continuous" if representation == "Float" else "integer"}
    if entry["sdtype"] == "datetime":
        pattern = str(entry.get("datetime_format") or "%Y-%m-%d")
        timed = any(part in pattern for part in ("%H", "%I", "%T", "%X", "%c"))
        return {"kind": "datetime" if timed else "date", "format": pattern}
    if entry["sdtype"] == "boolean":
        return {"kind": "binary", "categories": (False, True)}
    return {"kind": "ordinal"} if entry["sdtype"] == "ordinal" or _order(entry) else {}


def _detected(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Bounds, decimals, categories and missing values of the metadata, perhaps read from records."""
    fields: dict[str, Any] = {}
    for ours, theirs in (("lower", "range_min"), ("upper", "range_max"), ("missing", "range_is_nullable")):
        if entry.get(theirs) is not None:
            fields[ours] = entry[theirs]
    if (decimals := entry.get("decimal_places")) is not None:
        fields |= {"kind": "continuous", "decimals": decimals} if decimals else {"kind": "integer"}
    values = _order(entry) or entry.get("range_values")
    if isinstance(values, list) and values:
        numbers = all(isinstance(value, int | float) for value in values)
        # SDV lists numbers in the order in which records have them
        fields["categories"] = tuple(sorted(values) if numbers else values)
    return fields


def _order(entry: Mapping[str, Any]) -> list[Any]:
    """The order of categories in metadata of version 1, empty if there is none."""
    order = entry.get("order")
    return order if entry["sdtype"] == "categorical" and isinstance(order, list) else []


def _column(
    name: str, entry: Mapping[str, Any], known: Mapping[str, Any], frame: pd.DataFrame | None
) -> Column:
    """One column: public fields, and the others from metadata or records, marked as unreviewed."""
    given = {**_stated(entry), **known}
    numeric = given.get("kind") in ("continuous", "integer", "date", "datetime") or (
        "kind" not in given and entry["sdtype"] == "numerical" and "categories" not in given
    )
    needed = ("lower", "upper") if numeric else ("categories",)
    found = _detected(entry)
    drafted = {} if frame is None else _read(name, frame, numeric)
    if all(field in {**found, **given} for field in needed):
        # bounds from elsewhere need no step, scale or code of the records, which would not fit them
        drafted = {field: value for field, value in drafted.items() if field in ("kind", "missing")}
    if all(field in given for field in needed):
        found = {field: value for field, value in found.items() if field in ("kind", "missing")}
    read = {field: value for field, value in {**drafted, **found}.items() if field not in given}
    fields = {**read, **given}
    if absent := [field for field in needed if field not in fields]:
        raise SchemaError(
            f"column {name!r}: SDV metadata has no {few(absent)}. Give known={{{name!r}: "
            f"{{{few(f'{field!r}: ...' for field in absent)}}}}}, or the frame, whose values are then "
            "marked as unreviewed"
        )
    if "kind" not in given and not numeric:
        fields["kind"] = "binary" if len(fields["categories"]) == 2 else "categorical"
    elif "kind" not in fields:
        fields["kind"] = "continuous"
    if "step" in given or (fields["kind"] == "integer" and "decimals" not in given):
        fields.pop("decimals", None)
    return Column(name=name, **fields, unreviewed=tuple(field for field in read if field in fields))


def _read(name: str, frame: pd.DataFrame, numeric: bool) -> dict[str, Any]:
    """Fields of a column that is numeric or not, as :func:`dpsynth.table.infer_schema` reads them."""
    if name not in frame.columns:
        raise DataError(f"the table lacks the column {name!r} of the SDV metadata")
    values = frame[name]
    cells = TextCells.of(values, ()) if is_text(values) else None
    try:
        drafted = draft_column(Remarks(name), values, cells, set(), (name,), None)
    except LeftOut as why:
        raise of_records(f"column {name!r} of the SDV metadata cannot be used: {why}") from None
    fields = {field: getattr(drafted, field) for field in drafted.unreviewed}
    if drafted.is_date:
        fields |= dict(zip(("lower", "upper"), map(drafted.shown, drafted.bounds), strict=True))
    if drafted.is_numeric == numeric:
        return fields
    if numeric:  # few different numbers look like codes; SDV says that they are numbers
        numbers = [category for category in drafted.categories if not isinstance(category, str)]
        if len(numbers) < max(2, len(drafted.categories)):
            raise of_records(
                f"column {name!r}: its values give no bounds. Write known={{{name!r}: {{'lower': ..., "
                "'upper': ...}}"
            )
        whole = all(float(number).is_integer() for number in numbers)
        kind = "integer" if whole else "continuous"
        return {"kind": kind, "lower": min(numbers), "upper": max(numbers), "missing": drafted.missing}
    if drafted.is_date:
        raise of_records(f"column {name!r} holds dates, and the SDV metadata says that it does not")
    numbers = list(values.dropna() if cells is None else cells.numbers.values())
    distinct = sorted({int(number) if float(number).is_integer() else float(number) for number in numbers})
    return {"kind": "categorical", "categories": tuple(distinct), "missing": drafted.missing}
