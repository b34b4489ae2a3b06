"""Where the shared data files are."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from dpsynth import datasets
from dpsynth.datasets import Table


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of the data files; the test is skipped where there is none."""
    named = os.environ.get("DPSYNTH_DATA_DIR")
    folder = Path(named) if named else Path(__file__).resolve().parents[3] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the data files: set DPSYNTH_DATA_DIR")
    return folder


@pytest.fixture(scope="session")
def loaded(data_dir: Path) -> Callable[[str], Table]:
    """Load a data set once, however many tests look at it."""
    return cache(lambda name: datasets.load(name, data_dir=data_dir))
