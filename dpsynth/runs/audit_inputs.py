"""What of a run or of its configuration an auditor needs: schema and options, and for a black box records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsynth.datasets.split import training_schema
from dpsynth.errors import InputError
from dpsynth.runs.attack_inputs import Generator
from dpsynth.runs.config import RunConfig
from dpsynth.runs.pipeline import build_model
from dpsynth.runs.preflight import check_run
from dpsynth.runs.run_folder import folder_of, open_run
from dpsynth.runs.tables import load_table, split_table
from dpsynth.synthesis.options import FitOptions
from dpsynth.table.schema import Schema

if TYPE_CHECKING:
    from dpsynth.attacks.audit.black_box import BlackBox


@dataclass(frozen=True)
class ToAudit:
    """A configuration to be audited.

    Attributes
    ----------
    config : RunConfig
    schema : Schema
        Of the training part.
    options : FitOptions
    """

    config: RunConfig
    schema: Schema
    options: FitOptions

    def audit_tables(self, fits: int, **options: Any) -> BlackBox:
        """Fit the whole generator so often and look at its tables: reads the training part, internal.

        ``options`` are ``canaries``, ``seed``, ``jobs``, ``folder`` and ``on_round`` of
        :func:`~dpsynth.attacks.audit.black_box.audit_table`.
        """
        from dpsynth.attacks.audit.black_box import audit_table
        from dpsynth.audits.configuration import declared_of

        train, _ = split_table(self.config, load_table(self.config))
        declared = declared_of(self.schema, self.options)
        return audit_table(
            Generator(self.config.to_dict(), self.schema, len(train.frame)),
            train.frame,
            self.schema,
            fits=fits,
            delta=declared.delta,
            epsilon=declared.epsilon,
            accuracy=declared.profile.attack_accuracy(),
            settings=self.identity,
            **options,
        )

    @property
    def identity(self) -> dict[str, Any]:
        """What an audit depends on, as plain data."""
        return {"configuration": self.config.of_fit(), "schema": self.schema.digest()}


def to_audit(path: str | Path) -> ToAudit:
    """Read a YAML file, or the configuration in the folder of a run; no record is read.

    Raises
    ------
    InputError
        If it is neither, the configuration is wrong, or it asks for no privacy.
    """
    path = Path(path)
    config = open_run(folder_of(path)).config if path.is_dir() else RunConfig.from_yaml(path)
    options = build_model(config).validate()
    schema = training_schema(check_run(config), config.split.test_fraction)
    if options.epsilon is None:
        raise InputError(f"{path}: model.epsilon is null, and a run without noise promises nothing to audit")
    return ToAudit(config, schema, options)
