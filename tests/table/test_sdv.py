"""SDV's metadata read as a schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.errors import InputError, PrivacyError
from dpsynth.table import Schema, infer_schema, read_dictionary, require_reviewed

COLUMNS = {
    "mrn": {"sdtype": "id", "regex_format": "[0-9]{6}"},
    "age": {"sdtype": "numerical", "computer_representation": "Int64"},
    "lab": {"sdtype": "numerical", "computer_representation": "Float"},
    "visits": {"sdtype": "numerical"},
    "sex": {"sdtype": "categorical"},
    "ward": {"sdtype": "categorical"},
    "stage": {"sdtype": "categorical", "order": ["I", "II", "III"]},
    "died": {"sdtype": "boolean"},
    "seen": {"sdtype": "datetime", "datetime_format": "%d/%m/%Y"},
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
            "seen": np.where(np.arange(n) % 2, "02/01/2026", "01/12/2026"),
            "note": "x",
            "town": "y",
        }
    )


def drafted(metadata: dict[str, Any], folder: Path) -> Schema:
    (folder / "metadata.json").write_text(json.dumps(metadata))
    return infer_schema(frame(), dictionary=read_dictionary(folder / "metadata.json")).schema


@pytest.mark.parametrize("metadata", [SINGLE, MULTI])
def test_kinds_are_public_and_limits_are_not(metadata: dict[str, Any], tmp_path: Path) -> None:
    """A kind that is read wrongly, an identifier that becomes a column, a limit of records that is public."""
    schema = drafted(metadata, tmp_path)
    assert {column.name: column.kind for column in schema.columns} == {
        "age": "integer",
        "lab": "continuous",
        "visits": "continuous",
        "sex": "categorical",
        "ward": "categorical",
        "stage": "ordinal",
        "died": "binary",
        "seen": "date",
    }
    assert {*schema.ignored} == {"mrn", "note", "town"}
    said = {column.name: set(column.unreviewed) for column in schema.columns}
    assert said["age"] >= {"lower", "upper", "missing"} and "kind" not in said["age"]
    assert said["lab"] >= {"lower", "upper", "missing"} and said["visits"] >= {"lower", "upper"}
    assert said["sex"] >= {"categories"} and said["ward"] >= {"categories"}
    assert said["died"] == {"missing"} and "format" not in said["seen"]
    real = frame()
    assert (schema["visits"].bounds, schema["visits"].resolution) == ((1, 3), 1.0)  # no codes: SDV says so
    assert schema["ward"].categories == tuple(map(str, sorted(set(real["ward"]))))  # no numbers either
    assert schema["stage"].categories == ("I", "II", "III") and schema["stage"].unconfirmed
    assert schema["seen"].allowed == "2026-01-02 to 2026-12-01"  # day first, as the metadata says
    assert not any(schema.conform(real).clipped.values())
    with pytest.raises(PrivacyError, match="age"):
        require_reviewed(schema)


def test_what_sdv_read_off_records_is_not_public(tmp_path: Path) -> None:
    """The bounds of version 2, which SDV reads off private records, that pass for public ones."""
    schema = drafted(DETECTED, tmp_path)
    real = frame()
    assert schema["age"].bounds == (real["age"].min(), real["age"].max())  # those of this table, unreviewed
    assert {"lower", "upper"} <= {*schema["age"].unreviewed} & {*schema["lab"].unreviewed}
    assert "categories" in schema["sex"].unreviewed and schema["died"].categories == (False, True)


def test_several_tables_are_refused(tmp_path: Path) -> None:
    """The first of several tables, taken without a word."""
    (tmp_path / "m.json").write_text(json.dumps({"tables": {"a": SINGLE, "b": SINGLE}}))
    with pytest.raises(InputError, match="must describe one table, and it has a, b"):
        read_dictionary(tmp_path / "m.json")
