"""A study's results as files."""

from __future__ import annotations

from pathlib import Path

from dpsynth.studies.results import Results


def write_results(results: Results, folder: Path) -> tuple[str, ...]:
    """Write them (a stand-in until the tables are there)."""
    return ()
