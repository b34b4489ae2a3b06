"""The benchmarks are scripts beside the package; their helpers import each other by name."""

from __future__ import annotations

import sys
from pathlib import Path

import dpsynth

FOLDER = str(Path(dpsynth.__file__).parents[1] / "benchmarks")
if FOLDER not in sys.path:
    sys.path.append(FOLDER)
# a benchmark of several modules is imported as `benchmarks.NAME`
if str(Path(FOLDER).parent) not in sys.path:
    sys.path.append(str(Path(FOLDER).parent))
