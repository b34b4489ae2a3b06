"""Results as plain frozen records, to JSON and Markdown.

Every number says whether it is confidential (``internal``): computed from real records without noise, and so
outside the privacy guarantee of the synthetic table. Confidential numbers are for the owner of the real
records. Sharing one needs a decision of its own.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from dpsynth.errors import InputError
from dpsynth.evaluation.details import Data, read
from dpsynth.evaluation.estimates import Estimate
from dpsynth.files.markdown import inert
from dpsynth.files.notebook import html_folded, html_lines, html_table, text_table
from dpsynth.files.yaml_text import one_sentence

Data_co = TypeVar("Data_co", covariant=True)
Record = TypeVar("Record", bound=Data)


@dataclass(frozen=True)
class Measure:
    """One number of an evaluation.

    Parameters
    ----------
    group : str
        The question it belongs to, for instance ``"Utility"``.
    name : str
        Unique within an evaluation, for instance ``"auc_mean"``.
    value : float, int or None
        None if the number is not defined. ``detail`` then says why.
    internal : bool
        Whether it was computed from real records without noise.
    detail : str
        Its meaning, in a few words.
    lower, upper : float, optional
        Both ends of its confidence interval, at the ``level`` of the evaluation's settings. ``detail`` says
        which variation the interval covers.
    """

    group: str
    name: str
    value: float | int | None
    internal: bool
    detail: str = ""
    lower: float | None = None
    upper: float | None = None

    @classmethod
    def estimated(cls, group: str, name: str, estimate: Estimate, detail: str) -> Measure:
        """Return a confidential measure with its interval."""
        return cls(group, name, estimate.value, True, detail, estimate.lower, estimate.upper)

    def __post_init__(self) -> None:
        # JSON has no NaN; an undefined number is None everywhere.
        for name in ("value", "lower", "upper"):
            number = getattr(self, name)
            if isinstance(number, float) and not math.isfinite(number):
                object.__setattr__(self, name, None)
        if self.lower is None or self.upper is None:
            object.__setattr__(self, "lower", None)
            object.__setattr__(self, "upper", None)


@dataclass(frozen=True)
class Detail(Generic[Data_co]):
    """Data of a plot or a longer table of a report.

    Parameters
    ----------
    kind : str
        The kind of ``data``, for instance ``"marginal"`` or ``"roc"``. The report draws each kind in its way.
    name : str
        Unique within an evaluation, for instance ``"marginal[age].synthetic"``.
    internal : bool
        Whether it was computed from real records without noise. Numbers of the real and of the synthetic
        table are therefore never in one detail, unless all of it is confidential.
    data : Data or dict
        One of :mod:`dpsynth.evaluation.details`, or lists, mappings, text, finite numbers and None.
    """

    kind: str
    name: str
    internal: bool
    data: Data_co

    def to_dict(self) -> dict[str, Any]:
        """Return lists, mappings, text and numbers, ready for JSON."""
        data = self.data.to_dict() if isinstance(self.data, Data) else self.data
        return {"kind": self.kind, "name": self.name, "internal": self.internal, "data": data}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Detail[Any]:
        """Build a detail from :meth:`to_dict`. Raise TypeError otherwise."""
        try:
            data = read(record["kind"], record["data"])
        except ValidationError as problem:
            raise TypeError(
                f"the detail {record.get('name')!r} is damaged: {one_sentence(problem)}"
            ) from None
        return Detail(**{**record, "data": data})


@dataclass(frozen=True)
class Part:
    """A random part of the records, or of another ``unit``, that a step of an evaluation read.

    ``error`` is the greatest standard error that this adds to a measure, named ``measure``. It is None if no
    measure has an interval.
    """

    what: str
    used: int
    total: int
    error: float | None = None
    measure: str = ""
    unit: str = "records"


@dataclass(frozen=True)
class Findings:
    """Results of one evaluator: numbers, details behind them, and what it read a part of."""

    measures: tuple[Measure, ...] = ()
    details: tuple[Detail, ...] = ()
    parts: tuple[Part, ...] = ()


_HEADER = ("measure", "value", "interval", "status", "what it is")


def _row(measure: Measure, shared: str = "") -> tuple[str, ...]:
    """Cells of a measure for people, the last with its meaning. ``shared`` is the status of the others."""
    status = "confidential" if measure.internal else shared
    return measure.name, shown(measure.value), shown_interval(measure), status, measure.detail


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Measures of a synthetic table, printed as a table.

    Parameters
    ----------
    measures : tuple of Measure
        With unique names.
    settings : dict
        How it was measured: outcome, seed, limits, ``level`` of the intervals. Public.
    details : tuple of Detail
        With unique names.

    Examples
    --------
    >>> result = Evaluation((Measure("Utility", "auc_mean", 0.81, True, "three classifiers"),))
    >>> result["auc_mean"].value
    0.81
    >>> print(result.to_markdown())
    ### Utility
    <BLANKLINE>
    | measure | value | interval | status | what it is |
    |---|---:|---|---|---|
    | auc_mean | 0.8100 |  | confidential | three classifiers |
    <BLANKLINE>
    """

    measures: tuple[Measure, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    details: tuple[Detail, ...] = ()

    def __post_init__(self) -> None:
        for what, entries in (("measure", self.measures), ("detail", self.details)):
            twice = [name for name, times in Counter(entry.name for entry in entries).items() if times > 1]
            if twice:
                raise InputError(f"the {what} {min(twice)!r} is given twice")

    def __getitem__(self, name: str) -> Measure:
        """Return the measure of that name. Raise KeyError naming those there are."""
        for measure in self.measures:
            if measure.name == name:
                return measure
        raise KeyError(f"no measure {name!r}. There are: {', '.join(m.name for m in self.measures)}")

    def __repr__(self) -> str:
        """The measures of the whole table. :meth:`to_markdown` has those of each column as well."""
        whole = [measure for measure in self.measures if not measure.name.endswith("]")]
        rows = [(measure.group, *_row(measure)[:-1]) for measure in whole]
        left = len(self.measures) - len(whole)
        more = f"\nand {left:,} measures of single columns, which to_markdown() has" if left else ""
        return text_table(("question", *_HEADER[:-1]), rows) + more

    def _repr_html_(self) -> str:
        """The measures for a notebook, each question unfolded on demand, and how to get a report."""
        groups: dict[str, list[tuple[str, ...]]] = {}
        for measure in self.measures:
            groups.setdefault(measure.group, []).append(_row(measure))
        folded = (
            html_folded(f"{group} ({len(rows):,} measures)", html_table(_HEADER, rows))
            for group, rows in groups.items()
        )
        said = [
            f"Evaluation of {len(self.measures):,} measures. dpsynth.report.RunReport.of_evaluation says "
            "what they mean, and draws them."
        ]
        if any(measure.internal for measure in self.measures):
            said.append("Confidential (internal) numbers were computed from real records without noise.")
        return html_lines(said) + "".join(folded)

    def __contains__(self, name: object) -> bool:
        return any(measure.name == name for measure in self.measures)

    def released(self) -> Evaluation:
        """Return only what was computed without real records."""
        return Evaluation(
            tuple(measure for measure in self.measures if not measure.internal),
            self.settings,
            tuple(detail for detail in self.details if not detail.internal),
        )

    def of_kind(self, kind: str) -> tuple[Detail, ...]:
        """Return the details of one kind, in order."""
        return tuple(detail for detail in self.details if detail.kind == kind)

    def of(self, record: type[Record]) -> tuple[Detail[Record], ...]:
        """Return the details whose data are such a record, in order."""
        return tuple(detail for detail in self.details if isinstance(detail.data, record))

    def to_dict(self) -> dict[str, Any]:
        """Return lists, mappings, text and numbers, ready for JSON."""
        return {
            "settings": dict(self.settings),
            "measures": [asdict(measure) for measure in self.measures],
            "details": [detail.to_dict() for detail in self.details],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Evaluation:
        """Build an evaluation from :meth:`to_dict`. Raise InputError otherwise."""
        try:
            measures = tuple(Measure(**entry) for entry in data["measures"])
            details = tuple(map(Detail.from_dict, data.get("details", ())))
            marks = [(found.name, found.internal) for found in measures]
            for name, internal in marks + [(found.name, found.internal) for found in details]:
                if not isinstance(internal, bool):  # whatever is not clearly released is not
                    raise TypeError(f"`internal` of {name!r} must be true or false")
            return cls(measures, dict(data["settings"]), details)
        except (KeyError, TypeError) as problem:
            raise InputError(f"this is not a saved evaluation: {problem}") from None

    def to_json(self) -> str:
        """Return :meth:`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_markdown(self, *, level: int = 3) -> str:
        """Return one table a group, each under a heading of ``level``."""
        lines: list[str] = []
        for group in dict.fromkeys(measure.group for measure in self.measures):
            rows = [_row(measure, "may be shared") for measure in self.measures if measure.group == group]
            lines += [f"{'#' * level} {inert(group)}", "", f"| {' | '.join(_HEADER)} |"]
            lines += ["|---|---:|---|---|---|", *(f"| {' | '.join(map(inert, row))} |" for row in rows), ""]
        return "\n".join(lines)


def any_internal(details: Iterable[Detail[Any]]) -> bool:
    """Whether one of them was computed from real records without noise."""
    return any(detail.internal for detail in details)


def shown(value: float | int | None) -> str:
    """Return a number as people read it: four significant digits, whole numbers with commas, n/a for None.

    Examples
    --------
    >>> shown(0.81234), shown(0.000123456), shown(12345), shown(None)
    ('0.8123', '0.0001235', '12,345', 'n/a')
    """
    if value is None:
        return "n/a"
    if isinstance(value, int):
        return f"{value:,}"
    if value != 0 and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.4g}"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:,.2f}"


def shown_interval(measure: Measure) -> str:
    """Return the interval of a measure as people read it, empty if it has none."""
    if measure.lower is None or measure.upper is None:
        return ""
    return f"{shown(measure.lower)} to {shown(measure.upper)}"


def shown_with_interval(measure: Measure) -> str:
    """Return the value of a measure with its interval, if it has one, as people read it.

    Examples
    --------
    >>> shown_with_interval(Measure("Utility", "auc", 0.8, True, lower=0.75, upper=0.85))
    '0.8000 (0.7500 to 0.8500)'
    """
    interval = shown_interval(measure)
    return shown(measure.value) + (f" ({interval})" if interval else "")
