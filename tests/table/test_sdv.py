"""SDV's metadata read as a schema."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from dpsynth.errors import PrivacyError
from dpsynth.table import Schema, require_reviewed

COLUMNS = {
    "mrn": {"sdtype": "id", "regex_format": "[0-9]{6}"},
    "age": {"sdtype": "numerical", "computer_representation": "Int64"},
    "lab": {"sdtype": "numerical", "computer_representation": "Float"},
    "visits": {"sdtype": "numerical"},
    "sex": {"sdtype": "categorical"},
    "ward": {"sdtype": "categorical"},
    "stage": {"sdtype": "categorical", "order": ["I", "II", "III"]},
    "died": {"sdtype": "boolean"},
    "seen": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"},
    "note": {"sdtype": "unknown", "pii": True},
    "town": {"sdtype": "city", "pii": True},
}
SINGLE = {
    "METADATA_SPEC_VERSION": "SINGLE_TABLE_V1",
    "primary_key": "mrn",
    "columns": COLUMNS,
    "column_relationships": [],
}
MULTI = {"METADATA_SPEC_VERSION": "V1", "tables": {"stays": SINGLE}, "relationships": []}
KNOWN = {
    "age": {"lower": 18, "upper": 110, "unit": "years"},
    "lab": {"lower": 0, "upper": 20, "decimals": 1, "missing": True},
    "visits": {"kind": "integer", "lower": 0, "upper": 9},
    "sex": {"categories": ("F", "M")},
    "ward": {"categories": (1, 2, 3)},
    "stage": {"categories": ("I", "II", "III")},
}
#: as SDV 2.0.0 wrote it of a table, with its bounds and categories
DETECTED = {
    "tables": {
        "stays": {
            "columns": {
                "mrn": {"sdtype": "id"},
                "age": {
                    "sdtype": "numerical",
                    "range_is_nullable": False,
                    "range_min": 18,
                    "range_max": 89,
                    "decimal_places": 0,
                },
                "lab": {
                    "sdtype": "numerical",
                    "range_is_nullable": True,
                    "range_min": 0.0,
                    "range_max": 9.8,
                    "decimal_places": 1,
                },
                "sex": {
                    "sdtype": "categorical",
                    "range_is_nullable": False,
                    "range_values": ["M", "F"],
                    "high_cardinality": False,
                },
                "grade": {
                    "sdtype": "ordinal",
                    "range_is_nullable": False,
                    "range_values": [2, 1, 3],
                    "high_cardinality": False,
                },
                "died": {
                    "sdtype": "categorical",
                    "range_is_nullable": False,
                    "range_values": [True, False],
                    "high_cardinality": False,
                },
                "seen": {
                    "datetime_format": "%Y-%m-%d",
                    "sdtype": "datetime",
                    "range_is_nullable": False,
                    "range_min": "2020-01-01",
                    "range_max": "2020-07-18",
                },
            },
            "primary_key": "mrn",
        }
    },
    "relationships": [],
    "METADATA_SPEC_VERSION": "V2",
}


def frame(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "mrn": np.arange(n),
            "age": rng.integers(20, 90, n),
            "lab": np.where(rng.random(n) < 0.2, np.nan, rng.integers(10, 90, n) / 10),
            "visits": rng.integers(1, 4, n),
            "sex": rng.choice(["F", "M"], n),
            "ward": rng.integers(100, 160, n),
            "stage": rng.choice(["I", "II", "III"], n),
            "died": rng.random(n) < 0.5,
            "seen": "2026-01-01",
            "note": "x",
            "town": "y",
        }
    )


@pytest.mark.parametrize("metadata", [SINGLE, MULTI])
def test_known_fields_make_a_public_schema(metadata, tmp_path) -> None:
    """Catches a kind that is read wrongly, or an identifier that becomes a column."""
    (tmp_path / "metadata.json").write_text(json.dumps(metadata))
    schema = Schema.from_sdv(tmp_path / "metadata.json", known=KNOWN, outcome="died", n_public=60)
    assert schema == Schema.from_sdv(metadata, known=KNOWN, outcome="died", n_public=60)
    assert {column.name: column.kind for column in schema.columns} == {
        "age": "integer",
        "lab": "continuous",
        "visits": "integer",
        "sex": "binary",
        "ward": "categorical",
        "stage": "ordinal",
        "died": "binary",
    }
    assert schema.ignored == ("mrn", "seen", "note", "town") and schema.unreviewed == {}
    assert schema.name == (None if metadata is SINGLE else "stays")
    assert schema["stage"].categories == ("I", "II", "III") and schema["age"].unit == "years"


def test_what_records_show_is_unreviewed() -> None:
    """Catches bounds or categories of private records that pass for public ones."""
    schema = Schema.from_sdv(SINGLE, frame(), known={"age": {"lower": 18, "upper": 110}})
    told = {column.name: set(column.unreviewed) for column in schema.columns}
    assert told["age"] == {"missing"}
    assert told["lab"] >= {"lower", "upper", "decimals", "missing"}
    assert told["visits"] >= {"kind", "lower", "upper"} and told["sex"] >= {"categories"}
    assert told["ward"] >= {"categories"} and told["stage"] == {"categories", "missing"}
    assert told["died"] == {"missing"}
    real = frame()
    assert (schema["visits"].lower, schema["visits"].upper) == (1, 3)  # few numbers are no codes here
    assert schema["ward"].categories == tuple(sorted(set(real["ward"])))  # many numbers are codes
    assert schema["lab"].missing and schema.conform(real).clipped["lab"] == 0
    with pytest.raises(PrivacyError, match="lab"):
        require_reviewed(schema)
    for column in schema.columns:
        stated = {"kind"} if column.name in ("age", "lab", "stage", "died") else set()
        stated |= {"kind", "format"} if column.name == "seen" else set()
        stated |= {"categories"} if column.name == "died" else set()
        stated |= {"lower", "upper"} if column.name == "age" else set()
        assert column.model_fields_set - {"name", "unreviewed"} - stated == set(column.unreviewed)


def test_what_sdv_read_off_records_is_unreviewed() -> None:
    """Catches the bounds of version 2, which SDV reads off private records, that pass for public ones."""
    schema = Schema.from_sdv(DETECTED)
    kinds = [(column.name, column.kind) for column in schema.columns]
    assert dict(kinds) == {
        "age": "integer",
        "lab": "continuous",
        "sex": "binary",
        "grade": "ordinal",
        "died": "binary",
    }
    assert schema["grade"].categories == (1, 2, 3) and schema["lab"].decimals == 1 and schema["lab"].missing
    assert set(schema["age"].unreviewed) == {"kind", "lower", "upper", "missing"}
    assert set(schema["lab"].unreviewed) == {"kind", "lower", "upper", "decimals", "missing"}
    for name in ("sex", "grade", "died"):
        assert set(schema[name].unreviewed) == {"categories", "missing"}
    with pytest.raises(PrivacyError, match="age"):
        require_reviewed(schema)
    known = {"lab": {"lower": 0, "upper": 20, "decimals": 1}, "grade": {"categories": (1, 2, 3, 4)}}
    better = Schema.from_sdv(DETECTED, known=known)
    assert better["lab"].unreviewed == ("missing", "kind") and better["lab"].upper == 20
    assert better["grade"].unreviewed == ("missing",) and better["sex"] == schema["sex"]
