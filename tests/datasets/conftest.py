"""Where the shared data files are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of the data files; the test is skipped where there is none."""
    named = os.environ.get("DPSYNTH_DATA_DIR")
    folder = Path(named) if named else Path(__file__).resolve().parents[3] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the data files: set DPSYNTH_DATA_DIR")
    return folder
