"""The order of the tests."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The README's tours, the longest tests, first: at the end they would be left to one of two processes."""
    items.sort(key=lambda item: item.path.name != "test_readme.py")


@pytest.fixture(autouse=True)
def _audits_take_seconds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the audit of its releases out of the many runs whose tests are about something else."""
    if request.path.parent.name in ("runs", "commands") and "audited" not in request.keywords:
        monkeypatch.setattr("dpsynth.runs.attempts.attempts_on_releases", lambda *args: iter(()))
