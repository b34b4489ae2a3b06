"""Files of SPSS, Stata and SAS, which carry labels of values, codes of missing values and formats."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpsynth.table.dictionaries.dictionary import Dictionary, Variable
from dpsynth.table.labelled import SUFFIXES, open_file

#: labels of values from which on they name categories, rather than a few codes of a number
_FEWEST = 2
#: codes of a range of missing values that are listed
_MOST = 100


def read_labels(path: Path) -> Dictionary | None:
    """The dictionary that a file of SPSS, Stata or SAS carries, None for other files."""
    if path.suffix.lower() not in SUFFIXES:
        return None
    _, found = open_file(path, metadataonly=True)
    return Dictionary.of(str(path), _variables(found), beside_records=True)


def _variables(found: Any) -> Iterator[Variable]:
    for name in found.column_names:
        fields: dict[str, Any] = {"missing": True}
        label = found.column_names_to_labels.get(name)
        labels = {
            _whole(code): str(text).strip()
            for code, text in found.variable_value_labels.get(name, {}).items()
        }
        absent = [*_codes(found.missing_ranges.get(name, ())), *found.missing_user_values.get(name, ())]
        absent = [*dict.fromkeys(map(_whole, absent))]
        named = {code: text for code, text in labels.items() if code not in absent}
        measure = found.variable_measure.get(name, "unknown")
        if len(named) >= _FEWEST and measure != "scale":
            kind = "ordinal" if measure == "ordinal" and len(named) > 2 else "categorical"
            fields["kind"] = "binary" if len(named) == 2 else kind
            fields["categories"] = tuple(named)
            fields["aliases"] = {text: code for code, text in named.items() if text not in map(str, named)}
        if absent:
            fields["missing_codes"] = tuple(absent)
        described = [label] * bool(label)
        described += [f"({', '.join(f'{code} {text}' for code, text in labels.items())})"] if labels else []
        if described:
            fields["description"] = " ".join(described)
        yield Variable(name, fields)


def _whole(code: Any) -> Any:
    return int(code) if isinstance(code, float) and code.is_integer() else code


def _codes(ranges: Any) -> Iterator[Any]:
    """Codes of missing values: single ones, or the whole numbers between the ends of a short range."""
    for one in ranges:
        low, high = one["lo"], one["hi"]
        if low == high:
            yield low
        elif isinstance(low, float) and isinstance(high, float) and 0 < high - low <= _MOST:
            yield from range(int(-(-low // 1)), int(high // 1) + 1)
