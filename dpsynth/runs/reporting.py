"""The report of what was just made: the facts of its table, today's date and the software that decided it."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata

from dpsynth.accounting.ledger.ledger import Ledger
from dpsynth.evaluation.records import Evaluation
from dpsynth.report.run_report import RunReport
from dpsynth.studies.estimates import Estimates
from dpsynth.table.schema import Schema

_PACKAGES = ("dpsynth", "dp-accounting", "numpy", "pandas", "scikit-learn", "scipy", "tensorflow")


def new_report(
    ledger: Ledger,
    delta: float,
    schema: Schema,
    *,
    name: str,
    outcome: object,
    synthetic_records: int,
    config: Mapping[str, object],
    evaluation: Evaluation | None = None,
    seconds: Mapping[str, float],
    studies: tuple[Estimates, ...] = (),
) -> RunReport:
    """Return the report of a table made, or evaluated, today with the software at hand.

    ``schema`` is the one that the table was made with, ``name`` that of the data, ``config`` the run's as it
    may be shown; see :class:`RunReport` for the rest.
    """
    table: dict[str, object] = {
        "name": name,
        "synthetic_records": synthetic_records,
        "columns": len(schema),
        "outcome": outcome,
        "schema_sha256": schema.digest(),
        "n_public": schema.n_public,
    }
    if schema.unreviewed:
        # without an evaluation nothing else would say so
        table["unreviewed"] = sorted(schema.unreviewed)
    return RunReport(
        ledger=ledger,
        delta=delta,
        table=table,
        config=config,
        evaluation=evaluation,
        versions=versions(),
        seconds=seconds,
        created=datetime.now(UTC).date().isoformat(),
        studies=studies,
    )


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that are installed.

    Examples
    --------
    >>> sorted(versions())[0:2]
    ['dp-accounting', 'dpsynth']
    """
    installed = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            installed[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return installed
