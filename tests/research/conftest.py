"""Tests of `dpsynth/research/`, which may be deleted: CI runs them, `pytest` without options does not."""

from __future__ import annotations

from pathlib import Path

import pytest

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder, before pytest chooses by marks."""
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.research)
