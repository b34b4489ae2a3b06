"""REDCap data dictionaries: the CSV file of 18 columns that a project exports.

Read are the type, the choices, the validation with its limits, the identifiers, and the branching logic. A
field that is shown only under a condition is missing elsewhere, which becomes a rule. Choices stay the codes
of a raw export, and labels are read as these codes. A checkbox is one yes/no column for each choice.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dpsynth.errors import InputError
from dpsynth.table.cells import number
from dpsynth.table.dictionaries.dictionary import Dictionary, Variable

_NAME, _TYPE, _LABEL = "Variable / Field Name", "Field Type", "Field Label"
_LABELS = "Choices, Calculations, OR Slider Labels"
_CHECK, _LEAST, _MOST = (
    "Text Validation Type OR Show Slider Number",
    "Text Validation Min",
    "Text Validation Max",
)
_IDENTIFIER, _BRANCHING = "Identifier?", "Branching Logic (Show field only if...)"
_REQUIRED = "Required Field?"
_NEEDED = (_NAME, _TYPE, _LABELS)
#: how REDCap writes dates, whatever the form shows
_DATES = {"date": "date", "datetime": "datetime"}
#: validations of text that says who somebody is
_CONTACT = frozenset(
    ("email", "phone", "zipcode", "ssn", "mrn_10d", "mrn_generic", "vmrn", "postalcode_canada")
)
_REFERENCE = re.compile(r"\[(\w+)(?:\((\w+)\))?\]")


def read_redcap(path: Path) -> Dictionary | None:
    """The dictionary of a REDCap project, None for other files. InputError names the field that is wrong."""
    if path.suffix.lower() != ".csv":
        return None
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file)
        if not {*_NEEDED} <= {*(rows.fieldnames or ())}:
            return None
        fields = [{key: (value or "").strip() for key, value in row.items() if key} for row in rows]
    codes = {name: whole for field in fields for name, whole in _checkboxes(field)}
    return Dictionary.of(str(path), (one for field in fields for one in _variables(field, codes, path)))


def _checkboxes(field: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if field[_TYPE] == "checkbox":
        for code in _choices(field):
            yield f"{field[_NAME]}({code})", f"{field[_NAME]}___{code.lower().replace('-', '_')}"


def _variables(field: Mapping[str, str], codes: Mapping[str, str], path: Path) -> Iterator[Variable]:
    name, kind = field[_NAME], field[_TYPE]
    if kind == "descriptive":
        return
    label = re.sub(r"<[^>]+>", "", field.get(_LABEL, "")).strip()
    shown = _rule(field.get(_BRANCHING, ""), codes)
    if kind == "checkbox":
        for code, choice in _choices(field).items():
            column = codes[f"{name}({code})"]
            said = f"{label}: {choice}"
            fields = {"kind": "binary", "categories": (0, 1), "missing": True, "description": said}
            yield Variable(column, {**fields, "aliases": {"Unchecked": 0, "Checked": 1}})
        return
    left_out = _left_out(field)
    if left_out:
        yield Variable(name, {}, left_out)
        return
    try:
        found = _fields(field)
    except ValueError as problem:
        raise InputError(f"{path}: field {name!r}: {problem}") from None
    labels = found.pop("labels", "")
    if label or labels:
        found["description"] = f"{label} {labels}".strip()
    found["missing"] = bool(shown) or field.get(_REQUIRED, "").lower() != "y"
    yield Variable(name, found, rules=(f"not ({shown}) implies `{name}` is missing",) if shown else ())


def _left_out(field: Mapping[str, str]) -> str:
    kind, check = field[_TYPE], field.get(_CHECK, "")
    if field.get(_IDENTIFIER, "").lower() == "y":
        return "marked as an identifier"
    if kind in ("notes", "file", "signature", "sql"):
        return f"a field of type {kind}"
    if kind == "text" and check in _CONTACT:
        return f"validated as {check}"
    if kind == "text" and not check:
        return "free text"
    return "a time of day" if check.startswith("time") else ""


def _fields(field: Mapping[str, str]) -> dict[str, Any]:
    """Fields of the column of a field. ValueError says what cannot be read."""
    kind, check = field[_TYPE], field.get(_CHECK, "")
    if kind in ("radio", "dropdown"):
        choices = _choices(field)
        whole = all(code.lstrip("-").isdigit() and number(code) is not None for code in choices)
        values = {code: int(code) if whole else code for code in choices}
        fields: dict[str, Any] = {
            "kind": "binary" if len(values) == 2 else "categorical",
            "categories": tuple(values.values()),
            "aliases": {label: values[code] for code, label in choices.items() if label not in choices},
        }
        return {**fields, "labels": f"({', '.join(f'{code} {label}' for code, label in choices.items())})"}
    if kind == "yesno":
        return {"kind": "binary", "categories": (0, 1), "aliases": {"No": 0, "Yes": 1}}
    if kind == "truefalse":
        return {"kind": "binary", "categories": (0, 1), "aliases": {"False": 0, "True": 1}}
    if kind == "slider":
        return {"kind": "integer", **_limits(field, 0, 100)}
    if kind == "calc":
        return {"kind": "continuous"}
    start = check.split("_")[0]
    if start in _DATES:
        return {"kind": _DATES[start], **_limits(field, None, None, text=True)}
    if check == "integer":
        return {"kind": "integer", **_limits(field, None, None)}
    if start == "number":
        decimals = re.search(r"(\d)dp", check)
        return {
            "kind": "continuous",
            **({"decimals": int(decimals[1])} if decimals else {}),
            **_limits(field, None, None),
        }
    raise ValueError(f"the type {kind!r} with the validation {check!r} is not known")


def _limits(
    field: Mapping[str, str], least: float | None, most: float | None, *, text: bool = False
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, column, usual in (("lower", _LEAST, least), ("upper", _MOST, most)):
        said = field.get(column, "")
        if said and not text:
            value = number(said)
            if value is None:
                raise ValueError(f"{column} must be a number, got {said!r}")
            found[name] = value
        elif said and re.fullmatch(r"\d{4}-\d\d-\d\d.*", said):
            found[name] = said
        elif usual is not None:
            found[name] = usual
    return found


def _choices(field: Mapping[str, str]) -> dict[str, str]:
    """Labels by code of ``1, Yes | 0, No``."""
    found = {}
    for part in re.split(r"\s*\|\s*", field[_LABELS]):
        code, _, label = part.partition(",")
        if code.strip():
            found[code.strip()] = re.sub(r"<[^>]+>", "", label).strip() or code.strip()
    if not found:
        raise InputError(f"field {field[_NAME]!r} has no choices")
    return found


def _rule(text: str, codes: Mapping[str, str]) -> str:
    """Branching logic as a condition of ours, "" if it uses more than fields, numbers and text."""
    if not text:
        return ""

    def column(match: re.Match[str]) -> str:
        name = codes.get(f"{match[1]}({match[2]})", "") if match[2] else match[1]
        return f"`{name}`"

    said = _REFERENCE.sub(column, text).replace("<>", "!=")
    said = re.sub(r"""(['"])(-?\d+(?:\.\d+)?)\1""", r"\2", said)  # codes are numbers
    said = re.sub(
        r"""(`\w+`)\s*(!?=)\s*(?:''|"")""", lambda m: f"{m[1]} is {'not ' * (m[2] == '!=')}missing", said
    )
    said = re.sub(r"\b(AND|OR|NOT)\b", lambda m: m[1].lower(), said)
    return (
        ""
        if re.search(r"\[|\b(?!and|or|not|in|is|missing)\w+\s*\(", re.sub(r"`[^`]*`|'[^']*'", "", said))
        else said
    )
