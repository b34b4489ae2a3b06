"""The layout of a run's folder, known here alone: where its files are, how they are read and written.

`dpsynth evaluate --out` writes some of these files, which are read here as well. A run is opened again with
its configuration and with both parts of the real table. The guarantee is never read from a report. It is
computed from ``ledger.json``, as anybody can. A ledger that is not the report's is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dpsynth.errors import ConfigError, DataError, InputError
from dpsynth.files.storage import (
    check_same_ledger,
    dump_json,
    finite,
    locked,
    read_json,
    sealed,
    sha256,
    unsealed,
    write_text,
)
from dpsynth.privacy.ledger import Ledger
from dpsynth.runs.spending import is_waiting

# What reads a model, a report or a table is imported where it is used: commands that ask for paths and the
# ledger alone start without it.
if TYPE_CHECKING:
    import pandas as pd

    from dpsynth.datasets.table import PatientTable, Table
    from dpsynth.evaluation.results import Evaluation
    from dpsynth.report.run_report import RunReport
    from dpsynth.runs.config import RunConfig
    from dpsynth.synthesis.synthesizer import Synthesizer
    from dpsynth.table.schema import Schema


class _Place:
    """A path in a folder."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, folder: RunFolder, owner: type[RunFolder]) -> Path:
        return folder.path / self.name


_DIGEST = "synthetic_sha256"


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, which need not be there yet.

    It holds confidential files, so it is made for its owner alone.
    """

    path: Path

    synthetic = _Place("synthetic.csv")
    croissant = _Place("croissant.json")  # metadata of the synthetic table, to be shared with it
    model = _Place("model")
    ledger = _Place("ledger.json")  # every noisy statistic and its cost
    report_json = _Place("report.json")  # marks the folder of a run
    report_md = _Place("report.md")
    evaluation_json = _Place("evaluation.json")  # marks the folder of an evaluation
    evaluation_md = _Place("evaluation.md")
    registry = _Place("registry.json")  # the public record of the synthetic table

    @property
    def model_home(self) -> Path:
        """The folder of the model, or this folder if it holds no model: it may be that of a model."""
        return self.model if (self.model / "model.json").exists() else self.path

    @classmethod
    def of_run(cls, path: str | Path) -> RunFolder:
        """Return a folder that `dpsynth run` wrote, or raise InputError, saying what it is."""
        path = Path(path)
        if path.name in ("", ".."):  # of the folder that the user stands in, whose neighbours are looked at
            path = path.resolve()
        folder = cls(path)
        if folder.report_json.is_file() and not folder.evaluation_json.is_file():
            return folder
        if folder.interrupted:
            raise InputError(
                f"{path} is not there yet: its training was interrupted. Continue with `dpsynth run --resume`"
            )
        raise InputError(
            f"{path} is not the folder of a run: it holds no {folder.report_json.name} of `dpsynth run`"
        )

    @property
    def checkpoint(self) -> Path:
        """The folder beside it where an interrupt of the training leaves the private checkpoint."""
        return self.path.with_name(f"{self.path.name}.checkpoint")

    @property
    def checkpoint_config(self) -> Path:
        """The configuration of the run that left the checkpoint."""
        return self.checkpoint / "run.json"

    @property
    def interrupted(self) -> bool:
        """Whether a run can go on from the checkpoint."""
        return is_waiting(self.checkpoint)

    @property
    def files(self) -> tuple[str, ...]:
        """Names in the folder."""
        return tuple(sorted(entry.name for entry in self.path.iterdir()))

    def page(self, mode: Literal["internal", "release"] = "internal") -> Path:
        """The page for the table's owner, or for everybody."""
        return self.path / ("report.html" if mode == "internal" else "release.html")

    def locked(self) -> AbstractContextManager[None]:
        """Keep every other process from writing the folder."""
        return locked(self.path)

    def read_ledger(self) -> Ledger:
        """Read the ledger of a run or of a model, or raise DataError if it is not that of the model."""
        if not self.ledger.exists():
            return self.load_model().ledger_
        check_same_ledger(self.ledger, self.model)
        return Ledger.load(self.ledger)

    def write_ledger(self, ledger: Ledger) -> None:
        """Write the ledger, with the SHA-256 of the synthetic table if that is there and a guarantee holds.

        Without a guarantee it follows from real records: whoever guesses the whole table could check it.
        """
        told = {name: value for name, value in ledger.published.items() if name != _DIGEST}
        if ledger.guarantee().private and self.synthetic.is_file():
            told[_DIGEST] = sha256(self.synthetic)
        ledger.published = told
        ledger.save(self.ledger)

    def _check_table(self, ledger: Ledger) -> None:
        """Refuse a synthetic table that is not the one that the ledger names."""
        named = ledger.published.get(_DIGEST)
        if named is not None and self.synthetic.is_file() and sha256(self.synthetic) != named:
            raise DataError(
                f"{self.synthetic} is not the table that {self.ledger} names by its SHA-256: one of them was "
                f"changed. Restore it from a copy, or draw a new table: `dpsynth sample {self.path} -n N "
                f"--out {self.synthetic} --force`"
            )

    def load_model(self) -> Synthesizer:
        """Read the fitted model, or raise DataError for none or a damaged one."""
        from dpsynth.synthesis.generators import load

        return load(self.model_home)

    def write_report(self, report: RunReport) -> None:
        """Write the report as JSON and as Markdown."""
        from dpsynth.report.page import to_markdown

        self.write_json(report)
        write_text(self.report_md, to_markdown(report))

    def write_json(self, report: RunReport) -> None:
        """Write the report as JSON. The ledger, which is not in it, is written beside it."""
        write_text(self.report_json, dump_json(sealed(finite(report.to_dict()))) + "\n")

    def write_croissant(self, report: RunReport, schema: Schema | None = None) -> None:
        """Write the synthetic table's metadata beside it. The schema is that of its rows."""
        from dpsynth.report.catalogues import metadata_of

        known = self.load_model().model_.released_schema if schema is None else schema
        sample = report.config.get("sample")
        licence = sample.get("license") if isinstance(sample, Mapping) else None
        record = metadata_of(report, known, self.synthetic, licence)
        shared = report.guarantee is not None and report.guarantee.may_share(report)
        write_text(self.croissant, dump_json(record) + "\n", shared=shared)

    def write_page(self, report: RunReport) -> None:
        """Write the page for the table's owner."""
        from dpsynth.report.page import write_page

        write_page(report, self.page(), "internal")

    def read_report(self) -> RunReport:
        """Read the report of a run. For the folder of an evaluation alone, no guarantee is known.

        Raises InputError if the folder is neither, DataError if a file cannot be read or holds something
        else.
        """
        from dpsynth.report.run_report import RunReport

        if self.report_json.is_file():
            return self._report()
        if self.evaluation_json.is_file():
            return RunReport.of_evaluation(_evaluation(_record(self.evaluation_json), self.evaluation_json))
        raise InputError(
            f"{self.path} is not the folder of a run or of an evaluation: it holds neither "
            f"{self.report_json.name} nor {self.evaluation_json.name}"
        )

    def _report(self) -> RunReport:
        from dpsynth.report.run_report import RunReport

        path, record = self.report_json, _record(self.report_json)
        if not self.ledger.is_file():
            raise DataError(f"{self.path} holds {path.name} but no {self.ledger.name}")
        ledger = Ledger.load(self.ledger)
        check_same_ledger(self.ledger, self.model)
        self._check_table(ledger)
        try:
            if not _same_story(ledger, record["ledger"]):
                files = f"{self.ledger.name} and {path.name}"
                raise DataError(f"{self.path}: {files} contradict each other. One of them was changed")
            evaluation = record["evaluation"]
            known = None if evaluation is None else _evaluation(evaluation, path)
            return RunReport.from_dict(record, ledger, known)
        except (KeyError, TypeError, ValueError) as problem:
            if isinstance(problem, DataError):
                raise
            what = f"it lacks {problem}" if isinstance(problem, KeyError) else str(problem)
            raise DataError(f"{path} is not the report of a run: {what}") from None


def _record(path: Path) -> dict[str, Any]:
    record = unsealed(read_json(path), f"cannot read {path}")
    if not isinstance(record, dict):
        raise DataError(f"{path} must hold a JSON object, not a {type(record).__name__}")
    return record


def _evaluation(record: Mapping[str, Any], path: Path) -> Evaluation:
    from dpsynth.evaluation.results import Evaluation

    try:
        return Evaluation.from_dict(record)
    except InputError as problem:
        raise DataError(f"{path}: {problem}") from None


def read_ledger(path: str | Path) -> Ledger:
    """Read ledger.json, or the ledger in the folder of a run or of a model.

    Raises InputError for a ledger's SQLite file, which holds all runs of a data set and is no single ledger.
    """
    folder = Path(path)
    if folder.is_file() and _starts_with(folder, b"SQLite format 3\0"):
        raise InputError(
            f"{path} is the file of a data set's ledger. `dpsynth ledger {path}` prints all its runs. Give "
            "the folder of one run here, or its ledger.json"
        )
    return RunFolder(folder).read_ledger() if folder.is_dir() else Ledger.load(folder)


def _starts_with(path: Path, mark: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(mark)) == mark


def _same_story(ledger: Ledger, told: Mapping[str, Any]) -> bool:
    """Whether a ledger is the one that a report was written beside: a guarantee hangs on it."""
    same = (
        [entry["name"] for entry in told["entries"]] == [entry.name for entry in ledger.entries]
        and list(told["excluded"]) == list(ledger.excluded)
        and bool(told["seeded"]) == ledger.seeded
    )
    if same and told["epsilon"] is not None:
        epsilon = ledger.epsilon(float(told["delta"]))
        # versions of the accounting may differ in the last digits
        same = abs(epsilon - float(told["epsilon"])) <= 1e-3 * max(epsilon, float(told["epsilon"]))
    return same


@dataclass(frozen=True)
class OpenedRun:
    """A run that was made. Its configuration is without the seed."""

    folder: RunFolder
    report: RunReport
    config: RunConfig

    def parts(self) -> tuple[pd.DataFrame, Table | PatientTable, Table | PatientTable]:
        """Read the synthetic table, the training part and the held-out part.

        Raises InputError if there is no synthetic table, DataError if the schema is not the run's any more.
        """
        from dpsynth.patients.reader import reader_of
        from dpsynth.runs.forecast import load_table, split_table
        from dpsynth.table.csv_format import OURS

        made, path = self.folder.synthetic, self.folder.path
        if not made.is_file():
            raise InputError(
                f"{path} holds no {made.name}. `dpsynth sample {path} -n N --out {made}` generates one"
            )
        train, test = split_table(self.config, load_table(self.config))
        if train.schema.digest() != self.report.table.get("schema_sha256"):
            data = self.config.data
            schema = f"the card of {self.config.dataset}" if data is None else data.schema_path
            raise DataError(f"{path} was made with another schema than {schema} is now")
        return reader_of(train.schema).read(made, OURS), train, test


def open_run(run: RunFolder, settings: Mapping[str, object] | None = None) -> OpenedRun:
    """Open :meth:`RunFolder.of_run`, with other settings of its evaluation. No record is read.

    Raises DataError if its report or its ledger cannot be read, ConfigError if the configuration in the
    report, or a setting, is wrong.
    """
    from dpsynth.runs.config import EvaluateConfig, RunConfig

    report = run.read_report()
    config = dict(report.config)
    if isinstance(model := config.get("model"), Mapping):
        # whoever reads a report must not learn the seed, so that a word stands in its place
        config["model"] = {key: value for key, value in model.items() if key != "random_state"}
    if isinstance(evaluate := config.get("evaluate"), Mapping):
        # an earlier version's settings that are gone do not keep a table from being measured again
        config["evaluate"] = {key: evaluate[key] for key in evaluate if key in EvaluateConfig.model_fields}
    try:
        known = RunConfig.from_dict(config)
    except ConfigError as problem:
        raise ConfigError(f"{run.report_json}: {problem}") from None
    asked = {**known.to_dict()["evaluate"], **(settings or {}), "enabled": True}
    return OpenedRun(run, report, RunConfig.from_dict({**known.to_dict(), "evaluate": asked}))
