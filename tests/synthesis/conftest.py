"""Fixtures of the tests of fits."""

from __future__ import annotations

import pytest

from dpsynth.privacy.records import FrameRecords
from dpsynth.wgan.settings import MatchingSettings


@pytest.fixture
def unrefined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits whose chain is fitted to few records, which reads nothing and takes a second otherwise."""
    monkeypatch.setattr("dpsynth.marginals.chain_fit._POOL", 500)
    monkeypatch.setattr("dpsynth.marginals.chain_fit._DRAWS", 1000)


@pytest.fixture
def roughly_matched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few points, matched in few iterations, where a test is about something else than how near they come."""
    small = MatchingSettings(critic_width=8, points=200, iterations=10)
    monkeypatch.setattr("dpsynth.synthesis.matching.MatchingOptions.settings", lambda self, n: small)


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the ways in which private records are read, as they are."""
    read_in: list[str] = []
    for name in ("_size", "_counts", "_sums", "_frame"):
        read = getattr(FrameRecords, name)
        monkeypatch.setattr(
            FrameRecords,
            name,
            lambda self, *args, read=read, name=name: read_in.append(name) or read(self, *args),
        )
    return read_in
