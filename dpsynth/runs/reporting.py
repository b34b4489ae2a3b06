"""The report of a new table: its facts, today's date and the software that decided it.

A model or a ledger has the facts with which a report opens.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from dpsynth.accounting.ledger import Ledger
from dpsynth.checks import together
from dpsynth.errors import DataError, InputError
from dpsynth.evaluation.records import Evaluation
from dpsynth.files.storage import check_same_ledger
from dpsynth.report.run_report import RunReport
from dpsynth.runs.config import ELSEWHERE
from dpsynth.runs.run_folder import RunFolder
from dpsynth.studies.estimates import Estimates
from dpsynth.synthesis.check_inputs import outcome_in_noise
from dpsynth.synthesis.synthesizer import Synthesizer
from dpsynth.table.patients import TableSchema
from dpsynth.version import __version__

_PACKAGES = ("dp-accounting", "numpy", "pandas", "scikit-learn", "scipy", "tensorflow")


def versions() -> dict[str, str]:
    """Return the versions of dpsynth, Python and the packages that are installed.

    Examples
    --------
    >>> sorted(versions())[0:2]
    ['dp-accounting', 'dpsynth']
    """
    installed = {"dpsynth": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            installed[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return installed


@dataclass(frozen=True)
class Origin:
    """How a synthetic table was made, from its model or from a ledger alone.

    ``model`` are the options as a run's configuration has them. ``studies`` are the private estimates of the
    model. Noise has left little of the columns ``flattened``. ``outcome_noise`` says that it hides the
    outcome's rarest class.
    """

    ledger: Ledger
    delta: float
    schema: TableSchema | None = None
    model: Mapping[str, object] = field(default_factory=dict)
    studies: tuple[Estimates, ...] = ()
    flattened: tuple[str, ...] = ()
    outcome_noise: str | None = None

    @classmethod
    def of_model(cls, fitted: Synthesizer) -> Origin:
        """Take the facts from a fitted model."""
        # in the order of a run's configuration
        dumped = fitted.validate().model_dump()
        options = {
            name: value for name, value in dumped.items() if name not in ELSEWHERE and value is not None
        }
        if fitted.ledger_.seeded:
            options["random_state"] = "given, not kept"
        own, marginals = fitted.ledger_.delta, fitted.model_.encoder.marginals
        return cls(
            fitted.ledger_,
            fitted.delta_ if own is None else own,
            fitted.model_.declared_schema,
            {"generator": fitted.options.generator, "epsilon": fitted.epsilon, **options},
            fitted.estimates_,
            () if marginals is None else marginals.flattened,
            outcome_in_noise(fitted.model_.schema, marginals),
        )

    @classmethod
    def of_ledger(cls, path: str | Path, delta: float | None) -> Origin:
        """Read a ledger, or raise InputError if neither it nor ``delta`` gives the delta of epsilon."""
        path = Path(path)
        folder = RunFolder(path)
        if path.is_dir():
            check_same_ledger(folder.ledger, folder.model)
            path = folder.ledger
        ledger = Ledger.load(path)
        told = ledger.delta if delta is None else delta
        if told is None:
            raise InputError(f"--delta is needed: {path} does not give a delta")
        ledger.guarantee(told)  # refuses a delta that is none, before anything takes time
        return cls(ledger, float(told))

    def check_schema(self, schema: TableSchema, path: str | Path) -> None:
        """Raise DataError for a schema that is not the model's, up to the public number of records."""
        if self.schema is None:
            return
        if schema.with_n_public(None).digest() != self.schema.with_n_public(None).digest():
            raise DataError(f"{path} is not the schema that the model was fitted with")

    def report(
        self,
        schema: TableSchema,
        *,
        name: str,
        outcome: object,
        size: Mapping[str, int],
        config: Mapping[str, object],
        seconds: Mapping[str, float],
        evaluation: Evaluation | None = None,
    ) -> RunReport:
        """Return the report of a table made, or evaluated, today with the software at hand.

        ``schema`` is the one that the table was made with, and ``name`` that of the data. ``size`` is that of
        the synthetic table. ``config`` is the run's as it may be shown. The rest is as in RunReport.
        """
        table: dict[str, object] = {
            "name": name,
            "schema_name": schema.name,
            **size,
            "columns": len(schema),
            "outcome": outcome,
            "schema_sha256": schema.digest(),
            "n_public": schema.n_public,
        }
        if self.flattened:
            table["mostly_noise"] = together(self.flattened)
        if self.outcome_noise:
            table["outcome_noise"] = self.outcome_noise
        # names of columns alone, which are public
        table["unconfirmed"] = ", ".join(schema.unconfirmed)
        if schema.unreviewed:
            # without an evaluation nothing else would say so
            table["unreviewed"] = sorted(schema.unreviewed)
        return RunReport(
            ledger=self.ledger,
            delta=self.delta,
            table=table,
            config=config,
            evaluation=evaluation,
            versions=versions(),
            seconds=seconds,
            created=datetime.now(UTC).date().isoformat(),
            studies=self.studies,
        )
