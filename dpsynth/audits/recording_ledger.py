"""A ledger that keeps what it runs: the releases of a fit as they are, with all that they rest on."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from dpsynth.accounting.ledger import Ledger
from dpsynth.releases.records import FrameRecords

T = TypeVar("T")


class WatchingLedger(Ledger):
    """A ledger that also keeps every release that it runs, in order, in ``releases``.

    For auditors: a release that was given bins or a point by an earlier one can be run again.
    """

    def __init__(self) -> None:
        super().__init__()
        self.releases: list[Any] = []

    def run(self, release: Any, records: Any, rng: np.random.Generator) -> Any:
        """Post and run the release, as every ledger does, and keep it."""
        self.releases.append(release)
        return super().run(release, records, rng)


class Remembered(FrameRecords):
    """Records that count themselves once and answer from memory afterwards.

    For one release, which asks the same questions every time: ten thousand trials then cost their noise.
    """

    def _counts(self, tables: Any) -> Any:
        return self._once("counts", lambda: super(Remembered, self)._counts(tables))

    def _sums(self, of: Any) -> Any:
        return self._once("sums", lambda: super(Remembered, self)._sums(of))

    def _once(self, name: str, count: Any) -> Any:
        kept = self.__dict__.setdefault("_kept", {})
        if name not in kept:
            kept[name] = count()
        return [array.copy() for array in kept[name]]
