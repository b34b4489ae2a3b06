"""The order of the tests."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The README's tours, the longest tests, first: at the end they would be left to one of two processes."""
    items.sort(key=lambda item: item.path.name != "test_readme.py")
