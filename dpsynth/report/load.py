"""What a report is made from, read off the folder of a run or of an evaluation, and what of it may be shared.

:meth:`ReportSource.released` is where a page for release begins: it keeps what is on a list and drops the
rest, so that nothing that is added to a run later gets onto such a page by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property
from pathlib import Path, PureWindowsPath
from typing import Any

from dpsynth.accounting.ledger.guarantee import Guarantee
from dpsynth.accounting.ledger.ledger import Ledger
from dpsynth.accounting.profile import Profile
from dpsynth.errors import DataError, InputError
from dpsynth.evaluation.records import Evaluation
from dpsynth.files.atomic import read_json
from dpsynth.files.storage import check_same_ledger

_RUN, _LEDGER, _EVALUATION = "report.json", "ledger.json", "evaluation.json"
# What was decided or published before any record was read. A description is free text and may hold anything.
_TABLE = ("name", "synthetic_records", "columns", "outcome", "schema_sha256", "n_public")
_SETTINGS = ("outcome", "level")
_CONFIG: dict[str, tuple[str, ...]] = {
    "split": ("method", "test_fraction"),
    "sample": ("n",),
    "model": (
        "epsilon",
        "delta",
        "preset",
        "prior",
        "training_steps",
        "batch_size",
        "noise_shape",
        "centred",
        "numeric",
        "categorical",
        "marginals",
        "match_marginals",
    ),
}


@dataclass(frozen=True)
class ReportSource:
    """What a report is made from.

    Parameters
    ----------
    title : str
    guarantee : Guarantee, optional
        None where nothing is known of how the table was made.
    ledger : Ledger, optional
    delta : float, optional
        At which epsilon is told, in [0, 1).
    table : dict
        Facts: name, synthetic_records, columns, outcome, schema_sha256.
    config : dict
        The run's configuration.
    evaluation : Evaluation, optional
    versions : dict of str to str
    seconds : dict of str to float
        Wall times, which are internal: they depend on the number of real records.
    created : str, optional
        ISO date or time of the run.

    Raises
    ------
    InputError
        If ``created`` is not an ISO date or time, or only one of ``ledger`` and ``delta`` is given.
    """

    title: str
    guarantee: Guarantee | None = None
    ledger: Ledger | None = None
    delta: float | None = None
    table: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    evaluation: Evaluation | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    created: str | None = None

    def __post_init__(self) -> None:
        if (self.ledger is None) != (self.delta is None):
            raise InputError("ledger and delta belong together, and only one of them is given")
        if self.created is not None:
            try:
                datetime.fromisoformat(self.created)
            except (TypeError, ValueError):
                raise InputError(f"created must be an ISO date, got {self.created!r}") from None

    @property
    def day(self) -> str | None:
        """The day on which it was made, as ``2026-01-31``."""
        return None if self.created is None else date.isoformat(datetime.fromisoformat(self.created).date())

    @cached_property
    def summary(self) -> Mapping[str, Any] | None:
        """``Ledger.summary(delta)``, computed once."""
        if self.ledger is None or self.delta is None:
            return None
        return self.ledger.summary(self.delta)

    @cached_property
    def profile(self) -> Profile | None:
        """``Ledger.profile()``, computed once."""
        return None if self.ledger is None else self.ledger.profile()

    @classmethod
    def from_run(cls, folder: str | Path) -> ReportSource:
        """Read the folder of a run, or of ``dpsynth evaluate --out``.

        Parameters
        ----------
        folder : path
            With ``report.json`` and ``ledger.json``, or with ``evaluation.json``: then nothing is known of a
            guarantee.

        Raises
        ------
        InputError
            If the folder is neither.
        DataError
            If a file cannot be read or holds something else; the message names it.
        """
        folder = Path(folder)
        if (folder / _RUN).is_file():
            return _of_run(folder)
        if (folder / _EVALUATION).is_file():
            evaluation = _evaluation(_read(folder / _EVALUATION), folder / _EVALUATION)
            facts: dict[str, Any] = {"outcome": evaluation.settings.get("outcome")}
            return cls(title="Synthetic table", table=facts, evaluation=evaluation)
        raise InputError(
            f"{folder} is not the folder of a run or of an evaluation: it holds neither {_RUN} nor "
            f"{_EVALUATION}"
        )

    def released(self) -> ReportSource:
        """Return what may be shared: what was paid for, is public, or comes from the synthetic table alone.

        A title or name that repeats the name of the private table's file is replaced; times, seeds, paths and
        free text are left out.

        Examples
        --------
        >>> source = ReportSource("Cohort", seconds={"fit": 1.5}, config={"model": {"random_state": 7}})
        >>> source.released().seconds, source.released().config
        ({}, {})
        """
        evaluation = self.evaluation
        if evaluation is not None:
            evaluation = replace(evaluation.released(), settings=_kept(evaluation.settings, _SETTINGS))
        table = _kept(self.table, _TABLE)
        read_off = self.evaluation is not None and self.evaluation.settings.get("unreviewed")
        if read_off or (self.ledger is not None and self.ledger.excluded):
            table.pop(
                "schema_sha256", None
            )  # of bounds that were read off the records: a guess can be checked
        title, file = self.title, _stem(self.config)
        if file is not None and file in (table.get("name"), title.removeprefix("Synthetic table: ")):
            table.pop("name", None)
            title = "Synthetic table"
        config = {key: _kept(self.config.get(key), names) for key, names in _CONFIG.items()}
        config = {key: values for key, values in config.items() if values}
        return replace(
            self,
            title=title,
            table=table,
            config=_kept(self.config, ("dataset",)) | config,
            evaluation=evaluation,
            seconds={},
            created=self.day,
        )


def _kept(record: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """The entries of these names whose values are plain text, numbers, truth values or None."""
    if not isinstance(record, Mapping):
        return {}
    plain = str | int | float | bool | None
    return {name: record[name] for name in names if name in record and isinstance(record[name], plain)}


def _stem(config: Mapping[str, Any]) -> str | None:
    data = config.get("data")
    path = data.get("path") if isinstance(data, Mapping) else None
    # which reads both kinds of slashes
    return PureWindowsPath(path).stem if isinstance(path, str) else None


def _of_run(folder: Path) -> ReportSource:
    path = folder / _RUN
    record = _read(path)
    if not (folder / _LEDGER).is_file():
        raise DataError(f"{folder} holds {_RUN} but no {_LEDGER}")
    ledger = Ledger.load(folder / _LEDGER)
    check_same_ledger(folder / _LEDGER, folder / "model")
    try:
        delta = float(record["ledger"]["delta"])
        _same_story(ledger, record["ledger"], folder)
        table, config = dict(record["table"]), dict(record["config"])
        evaluation = record["evaluation"]
        return ReportSource(
            title=f"Synthetic table: {table['name']}" if table.get("name") else "Synthetic table",
            # from the ledger, which anybody can recompute, not from the report's copy
            guarantee=ledger.guarantee(delta),
            ledger=ledger,
            delta=delta,
            table=table,
            config=config,
            evaluation=None if evaluation is None else _evaluation(evaluation, path),
            versions=dict(record.get("versions", {})),
            seconds=dict(record.get("seconds", {})),
            created=record.get("created"),
        )
    except (KeyError, TypeError, ValueError) as problem:
        if isinstance(problem, DataError):
            raise
        what = f"it lacks {problem}" if isinstance(problem, KeyError) else str(problem)
        raise DataError(f"{path} is not the report of a run: {what}") from None


def _same_story(ledger: Ledger, told: Mapping[str, Any], folder: Path) -> None:
    """Refuse a ledger that is not the one the report was written beside: a guarantee hangs on it."""
    entries = [entry["name"] for entry in told["entries"]]
    same = (
        entries == [entry.name for entry in ledger.entries]
        and list(told["excluded"]) == list(ledger.excluded)
        and bool(told["seeded"]) == ledger.seeded
    )
    if same and told["epsilon"] is not None:
        epsilon = ledger.epsilon(float(told["delta"]))
        # versions of the accounting may differ in the last digits
        same = abs(epsilon - float(told["epsilon"])) <= 1e-3 * max(epsilon, float(told["epsilon"]))
    if not same:
        raise DataError(f"{folder}: {_LEDGER} and {_RUN} tell different stories; one of them was changed")


def _evaluation(record: Any, path: Path) -> Evaluation:
    try:
        return Evaluation.from_dict(record)
    except InputError as problem:
        raise DataError(f"{path}: {problem}") from None


def _read(path: Path) -> dict[str, Any]:
    record = read_json(path)
    if not isinstance(record, dict):
        raise DataError(f"{path} must hold a JSON object, not a {type(record).__name__}")
    return record
