"""An axis that kills the worker it is counted on, once: as the machine's memory watcher would."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.releases.axes import GridAxis


@dataclass(frozen=True, eq=False)
class DyingAxis(GridAxis):
    """Counts a column like its base, but the first worker that meets ``value`` in it dies of kill -9."""

    value: object = None
    grave: Path = Path()
    lives: int = 1

    def cells(self, frame: pd.DataFrame) -> NDArray[np.int64]:
        met = (frame[self.grid.column.name] == self.value).any()
        died = len(list(self.grave.iterdir()))
        if met and died < self.lives:
            (self.grave / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().cells(frame)
