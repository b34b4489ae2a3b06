"""The form of a schema's YAML file as JSON Schema, with which editors complete and check it."""

from __future__ import annotations

from typing import Any

from dpsynth.patients.courses import OVER_TIME
from dpsynth.patients.files import FILE_KEYS
from dpsynth.table.schema import Schema

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NAMES = {"type": "array", "items": {"type": "string"}}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of schema files, of rows and of patients with several rows.

    It checks keys and types. `dpsynth schema check` says whether the fields fit each other.

    Examples
    --------
    >>> form = json_schema()
    >>> form["$defs"]["Column"]["properties"]["scale"]["enum"]
    ['linear', 'log']
    """
    form = Schema.model_json_schema()
    for described in (form, *form["$defs"].values()):
        described["description"] = described["description"].split("\n\n")[0]
    column = form["$defs"]["Column"]["properties"]
    for end in ("lower", "upper"):  # those of dates are text
        column[end]["anyOf"].append({"type": "string"})
    column["special"]["items"] = {"type": ["number", "string"]}
    column |= {"per": {"enum": ["row", "patient"]}, "over_time": {"enum": [*OVER_TIME]}}
    rate = {"most": {"type": "number", "exclusiveMinimum": 0}, "per": {"type": "string"}}
    column["rate"] = {
        "type": "object",
        "properties": rate,
        "required": ["most", "per"],
        "additionalProperties": False,
    }
    entry = {
        "type": "object",
        "properties": {
            "columns": _NAMES,
            **{key: {"type": "string"} for key in FILE_KEYS},
        },
        "additionalProperties": False,
    }
    rows = {
        "most": {"type": "integer"},
        "order": {"type": "string"},
        "keep": {"enum": ["first", "last", "random"]},
        "times": {"type": "array", "items": {"type": ["number", "string"]}},
        "unique": {"type": "boolean"},
        "until": {"type": "string"},
        "unreviewed": _NAMES,
    }
    form["properties"] |= {
        "rows": {"type": "object", "properties": rows, "required": ["most", "order"]},
        "files": {"type": "object", "additionalProperties": {"anyOf": [_NAMES, entry]}},
    }
    form["properties"]["rows"]["additionalProperties"] = False
    form["properties"]["csv"].pop("default")
    return {"$schema": _DIALECT, **form, "required": ["columns"]}
