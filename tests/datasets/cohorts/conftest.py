"""The open demo of MIMIC-III."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpsynth.datasets.cohorts.definitions import STUDIES
from dpsynth.datasets.cohorts.extraction import Cohort, extract

pytest.importorskip("duckdb", reason="cohorts need duckdb: pip install 'dpsynth-health[cohorts]'")


@pytest.fixture(scope="session")
def demo() -> Path:
    """The folder of the demo's tables; the test is skipped where there is none."""
    named = os.environ.get("DPSYNTH_DATA_DIR")
    root = Path(named) if named else Path(__file__).resolve().parents[4] / "shared" / "data"
    if not (root / "mimic3-demo").is_dir():
        pytest.skip("needs MIMIC-III's open demo in the folder mimic3-demo: set DPSYNTH_DATA_DIR")
    return root / "mimic3-demo"


@pytest.fixture(scope="session")
def cohorts(demo: Path) -> dict[str, Cohort]:
    """The cohort of every study in the demo."""
    return {name: extract(study, demo) for name, study in STUDIES.items()}
