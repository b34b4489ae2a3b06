"""A small cohort in a working folder and the quickest private run of it, for tests of whole runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpsynth.runs.config import RunConfig
from dpsynth.table.schema import Schema

SCHEMA = Schema.from_dict(
    {
        "name": "cohort",
        "n_public": 80,
        "outcome": "died",
        "columns": [
            {"name": "age", "kind": "integer", "lower": 18, "upper": 90},
            {"name": "crea", "kind": "continuous", "lower": 0.1, "upper": 10, "decimals": 1, "missing": True},
            {"name": "died", "kind": "binary", "categories": [0, 1]},
        ],
    }
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a table of 80 records and its schema."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{20 + (i * 13) % 65},{'' if i % 7 == 0 else 0.5 + i % 12 / 10},{i % 2}" for i in range(80)]
    Path("cohort.csv").write_text("\n".join(["age,crea,died", *rows]) + "\n")
    SCHEMA.to_yaml("cohort.yaml")
    return tmp_path


def config(**changes: Any) -> RunConfig:
    """A run of the default generator, whose table nobody attacks."""
    fields: dict[str, Any] = {
        "data": {"path": "cohort.csv", "schema": "cohort.yaml"},
        "model": {"epsilon": 3.0, "delta": 1e-5},
        "evaluate": {"seed": 0, "reference": False},
        "attack": {"enabled": False},
    }
    return RunConfig.from_dict(fields | changes)


def model(**changes: Any) -> dict[str, Any]:
    return {"epsilon": 3.0, "delta": 1e-5} | changes
