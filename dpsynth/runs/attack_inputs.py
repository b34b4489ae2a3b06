"""A run as attackers find it: its tables, what its ledger allows, and its generator.

An auditor gets the schema and the options of a run or of its configuration. A black-box audit gets records
too.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsynth.attacks.risk import Proved
from dpsynth.datasets.table import training_schema
from dpsynth.errors import InputError, OwnerWarning
from dpsynth.evaluation.tables import Tables
from dpsynth.privacy.ledger import Ledger
from dpsynth.runs.config import RunConfig
from dpsynth.runs.evaluation import proved_by
from dpsynth.runs.folder import RunFolder, open_run
from dpsynth.runs.forecast import check_run, compared, load_table, split_table
from dpsynth.runs.pipeline import build_model
from dpsynth.synthesis.options import FitOptions
from dpsynth.table.schema import TableSchema

if TYPE_CHECKING:
    from dpsynth.attacks.shadow import BlackBox


@dataclass(frozen=True)
class Generator:
    """A run's generator as attackers use it: ``fit_sample(frame, rng) -> frame``, picklable.

    It draws ``n`` records: rows, or patients with all their rows.

    No ledger counts what it draws: it is for attacks on the spot and must not be released.
    """

    config: Mapping[str, Any]
    schema: TableSchema
    n: int

    def __call__(self, frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        """Fit the run's model to a frame and draw a table. All randomness comes from ``rng``."""
        seed = int(rng.integers(2**31))
        model = dict(self.config["model"]) | {"random_state": seed}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OwnerWarning)  # the run has told its owner
            config = RunConfig.from_dict({**self.config, "model": model})
            fitted = build_model(config)
            fitted.fit(frame, schema=self.schema, ledger=Ledger(), accept_n_public=True, also=config.also)
        return fitted.sample(self.n, random_state=seed)


@dataclass(frozen=True)
class AttackedRun:
    """A run to be attacked: its tables, which are private, what its ledger allows, and its generator.

    ``base``: what the generator is fitted to, rows where patients have several. ``identity``: what shadow
    models depend on, beside seed and canaries.
    """

    tables: Tables
    base: pd.DataFrame
    proved: Proved
    generator: Generator
    identity: dict[str, Any] = field(default_factory=dict)


def attacked_run(folder: str | Path) -> AttackedRun:
    """Read a run's synthetic table, and the real table split as the run's configuration says.

    Raises InputError if the folder is not a run's or holds no synthetic table, DataError if a file cannot be
    read.
    """
    run = open_run(RunFolder.of_run(folder))
    config = run.config
    made, train, test = run.parts()
    tables = compared(made, train, test)
    base = tables.train if tables.patients is None else train.frame
    records = pd.util.hash_pandas_object(base, index=False).to_numpy()
    return AttackedRun(
        tables,
        base,
        proved_by(Ledger.load(run.folder.ledger), coins=config.split.method == "independent"),
        Generator(config.to_dict(), train.schema, len(tables.synthetic)),
        {
            "configuration": config.of_fit(),
            "schema": train.schema.digest(),
            "drawn": len(tables.synthetic),
            "records_sha256": hashlib.sha256(records.tobytes()).hexdigest(),
        },
    )


@dataclass(frozen=True)
class ToAudit:
    """A configuration to be audited, with the schema of the training part."""

    config: RunConfig
    schema: TableSchema
    options: FitOptions

    def audit_tables(self, fits: int, **options: Any) -> BlackBox:
        """Fit the whole generator so often and look at its tables: reads the training part, internal.

        ``options`` are those of :func:`~dpsynth.attacks.shadow.audit_table`.
        """
        from dpsynth.attacks.shadow import audit_table
        from dpsynth.audits.configuration import declared_of

        train, _ = split_table(self.config, load_table(self.config))
        declared = declared_of(self.schema, self.options, self.config.also)
        return audit_table(
            Generator(self.config.to_dict(), self.schema, train.records),
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
        """Everything that an audit depends on, as plain data."""
        return {"configuration": self.config.of_fit(), "schema": self.schema.digest()}


def to_audit(path: str | Path) -> ToAudit:
    """Read a YAML file, or the configuration in the folder of a run. No record is read.

    Raises InputError if it is neither, the configuration is wrong, or it asks for no privacy.
    """
    path = Path(path)
    config = open_run(RunFolder.of_run(path)).config if path.is_dir() else RunConfig.from_yaml(path)
    options = build_model(config).validate()
    schema = training_schema(check_run(config), config.split.test_fraction)
    if options.epsilon is None:
        raise InputError(f"{path}: model.epsilon is null, and a run without noise promises nothing to audit")
    return ToAudit(config, schema, options)
