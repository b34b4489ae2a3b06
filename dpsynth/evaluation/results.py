"""Results of an evaluation as plain frozen records, to JSON and Markdown."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, Literal, Self, TypeVar

from pydantic import ValidationError

from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import Estimate
from dpsynth.files.text import html_folded, html_lines, html_table, inert, one_sentence, text_table

# ------------------------------------------------------------------------------------------------
# Records behind the numbers of an evaluation: tables and curves that a report shows.
#
# Each record is the ``data`` of one kind of :class:`~dpsynth.evaluation.results.Detail`. ``to_dict`` gives
# the content of a JSON file, and :func:`read_detail` the same record again.

Table = Literal["synthetic", "train", "test"]
#: what is compared: records, or levels of patients with several rows, or these rows
Tabled = Literal["records", "levels", "rows"]
#: what a model learned from
TrainedOn = Literal["synthetic", "train"]


@dataclass(frozen=True)
class Data:
    """Data of a detail."""

    def to_dict(self) -> dict[str, Any]:
        """Return lists, mappings, text and numbers, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Build the record from :meth:`to_dict`. Raise pydantic.ValidationError otherwise."""
        from pydantic import TypeAdapter

        found: Self = TypeAdapter(cls).validate_python(record)
        return found


@dataclass(frozen=True)
class Marginal(Data):
    """Shares of one column of one table, over bins between ``edges`` or over categories (``labels``).

    ``missing`` and ``special`` are the shares of missing values and of special codes, None where the column
    has neither. On a logarithmic scale (``log``), the first bin may be a cell for 0 (``zero``).
    """

    column: str
    table: Table
    type: Literal["numeric", "categories"]
    share: Sequence[float]
    missing: float | None
    special: float | None
    unit: str | None
    log: bool
    zero: bool
    edges: Sequence[float] = ()
    labels: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the bins or the categories before the shares, without the other of the two."""
        plain = super().to_dict()
        edges, labels = plain.pop("edges"), plain.pop("labels")
        head = {name: plain.pop(name) for name in ("column", "table", "type")}
        return head | ({"edges": edges} if self.type == "numeric" else {"labels": labels}) | plain


@dataclass(frozen=True)
class Associations(Data):
    """One number for each pair of columns of one table."""

    table: Table
    columns: Sequence[str]
    matrix: Sequence[Sequence[float | None]]


@dataclass(frozen=True)
class Roc(Data):
    """Receiver operating characteristic of a classifier on held-out records, trained on one table."""

    trained_on: str
    model: str
    fpr: Sequence[float]
    tpr: Sequence[float]
    auc: float | None


@dataclass(frozen=True)
class Calibration(Data):
    """Observed shares of the outcome, by groups of predicted risk, with the records of each group."""

    trained_on: str
    model: str
    predicted: Sequence[float]
    observed: Sequence[float]
    count: Sequence[int]


@dataclass(frozen=True)
class Distances(Data):
    """Shares of records over the distance to their nearest training record."""

    space: str
    edges: Sequence[float]
    synthetic_to_train: Sequence[float]
    test_to_train: Sequence[float] | None


@dataclass(frozen=True)
class Effect:
    """One coefficient of a regression, with its interval."""

    estimate: float
    lower: float
    upper: float
    p_value: float | None = None


@dataclass(frozen=True)
class DeclaredEffect(Effect):
    """A private estimate against the real one. None if the latter is not known."""

    same_sign: bool | None = None
    same_decision: bool | None = None
    covered: bool | None = None
    holds_real: bool | None = None
    overlap: float | None = None
    standardised_difference: float | None = None


@dataclass(frozen=True)
class EffectRow:
    """One term of a regression, fitted to both tables. A pre-specified one has a private estimate as well.

    Comparisons are None if one side is not known.
    """

    term: str
    real: Effect | None
    synthetic: Effect | None
    same_sign: bool | None = None
    same_decision: bool | None = None
    covered: bool | None = None
    overlap: float | None = None
    standardised_difference: float | None = None
    declared: DeclaredEffect | None = None


#: what an effect is compared with the real one by
Comparison = EffectRow | DeclaredEffect


@dataclass(frozen=True)
class Effects(Data):
    """A regression, fitted to both tables. ``study`` is the name of a pre-specified one.

    ``problems`` says by side why a fit failed. ``separated`` names sides whose outcomes are separated.
    """

    model: str
    formula: str
    outcome: str
    event: str | None
    measure: str
    level: float
    rows: Sequence[EffectRow]
    n_real: int
    n_synthetic: int
    problems: Mapping[str, str]
    separated: Sequence[str]
    note: str
    study: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the name of a pre-specified regression first. Without one, no private estimates."""
        plain = super().to_dict()
        study = plain.pop("study")
        if study is not None:
            return {"study": study, **plain}
        for row in plain["rows"]:
            del row["declared"]
        return plain


@dataclass(frozen=True)
class Percentile:
    """One percentile of a column in both tables, with the error in real standard deviations.

    ``few``: a table has too few records for an end of its interval, which then is the public bound.
    """

    real: float
    synthetic: float
    error: Estimate | None
    few: bool = False


@dataclass(frozen=True)
class Means:
    """The mean of a column without negative values in both tables, with their ratio."""

    real: float
    synthetic: float
    ratio: Estimate  # synthetic over real


@dataclass(frozen=True)
class PointMass:
    """The share of present values at one value that holds many of them in one table or the other."""

    value: float | int | str | bool  # A number, a category of an ordinal column, or a time of day: "08:30"
    real: float
    synthetic: float
    difference: Estimate  # synthetic minus real


@dataclass(frozen=True)
class TailsRow:
    """Differences in spread, tails and point masses of a column. An ordinal column has point masses only.

    ``..._baseline`` are those of held-out records.
    """

    column: str
    deviation_real: float | None
    deviation_synthetic: float | None
    spread: Estimate | None
    low: Percentile | None
    high: Percentile | None
    masses: tuple[PointMass, ...]  # the largest difference first
    unit: str | None
    means: Means | None = None
    spread_baseline: float | None = None
    low_baseline: float | None = None
    high_baseline: float | None = None


@dataclass(frozen=True)
class Tails(Data):
    """One entry a column. There are two such tables if patients have several rows."""

    rows: Sequence[TailsRow]
    of: Tabled = "records"


@dataclass(frozen=True)
class SingleColumnRow:
    """How well one column alone separates synthetic from real records. Held-out ones give ``baseline``.

    ``last_digits`` is the AUC of the last digits alone. It is near ``auc`` if habits of recording separate
    the column, and None if the column has too few values. ``size`` is the number of records of each table.
    """

    column: str
    auc: Estimate
    last_digits: float | None
    size: int
    baseline: float | None = None


@dataclass(frozen=True)
class SingleColumns(Data):
    """One entry a column. The ``reference`` is training or held-out records."""

    reference: str
    rows: Sequence[SingleColumnRow]


@dataclass(frozen=True)
class MissingCells(Data):
    """Standard deviations of the number of missing cells a record, and their ratio."""

    train: float
    synthetic: float
    ratio: Estimate


@dataclass(frozen=True)
class FinerRow:
    """How many values of a column lie between its declared steps."""

    column: str
    values: int
    step: float
    unit: str | None


@dataclass(frozen=True)
class FinerThanDeclared(Data):
    """One entry a column."""

    rows: Sequence[FinerRow]


@dataclass(frozen=True)
class OutsideRow:
    """How many values of a column, of so many, lie outside its declared bounds."""

    column: str
    values: int
    of: int
    lower: float
    upper: float
    unit: str | None


@dataclass(frozen=True)
class OutsideBounds(Data):
    """One entry a column."""

    rows: Sequence[OutsideRow]


@dataclass(frozen=True)
class TableOneRow:
    """One column of one table in a Table 1.

    The form ``mean`` has ``center`` and ``spread``, the standard deviation. ``median`` also has the
    quartiles ``low`` and ``high``. ``counts`` are those of the declared categories (``labels``). Numbers are
    None where a column has no value. ``missing`` is None where no value may be missing. ``special`` counts
    codes that are no numbers, and is None where the schema has none.
    """

    column: str
    unit: str | None
    form: Literal["mean", "median", "counts"]
    missing: int | None
    special: int | None
    center: float | None = None
    spread: float | None = None
    low: float | None = None
    high: float | None = None
    labels: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()


@dataclass(frozen=True)
class TableOne(Data):
    """Table 1 of one table, or of its records of one outcome (``group``), with one entry a column."""

    table: Table
    group: str | None
    records: int
    rows: tuple[TableOneRow, ...]


@dataclass(frozen=True)
class SmdRow:
    """Standardised mean difference of a column, synthetic minus real. None where it is not defined.

    More than two categories have a distance, which is not negative.
    """

    column: str
    smd: float | None


@dataclass(frozen=True)
class Differences(Data):
    """Differences of a Table 1, one entry a column. ``group`` is as in :class:`TableOne`.

    ``chance`` is what 95 of 100 differences stay below if both tables have one distribution. It holds for
    numbers and two categories, without missing values.
    """

    group: str | None
    chance: float
    rows: tuple[SmdRow, ...]


@dataclass(frozen=True)
class SubgroupScores:
    """Errors in the held-out records of a subgroup, by a model trained on one table.

    ``calibration`` is calibration in the large: the observed minus the predicted share of the event. If a
    number is None, ``why`` says so.
    """

    trained_on: TrainedOn
    auc: Estimate | None
    calibration: Estimate | None
    why: str


@dataclass(frozen=True)
class SubgroupRow:
    """Records of one category or band of ``column``.

    ``real`` and ``synthetic`` are its shares of the training and of the synthetic records. ``records`` are
    held out and have a known outcome, and ``events`` of them have the event. Both are None where nothing is
    predicted.
    """

    column: str
    name: str
    real: Estimate
    synthetic: Estimate
    difference: Estimate
    records: int | None
    events: int | None
    scores: tuple[SubgroupScores, ...]


@dataclass(frozen=True)
class Subgroups(Data):
    """One entry a subgroup.

    ``event`` and ``model`` are None where nothing is predicted, and ``note`` says why. With fewer than
    ``fewest`` records with the event, or without it, a subgroup has no scores.
    """

    event: str | None
    model: str | None
    level: float
    fewest: int
    note: str
    rows: tuple[SubgroupRow, ...]


@dataclass(frozen=True)
class Path(Data):
    """Numbers at times since the first row, of one patient or of all."""

    times: Sequence[float]
    values: Sequence[float]


@dataclass(frozen=True)
class OverTime(Data):
    """Rows of the patients of one table.

    ``rows`` are the shares of patients with 1, 2 and so on. ``gaps`` are quantiles of the times between rows,
    in equal steps of probability from 0 to 1, and ``clock`` names their unit. ``lags`` has, for each number,
    its correlation with the value 1, 2 and so on later. None stands for too few patients. ``events`` has, for
    each terminal event, the share of patients without it at times since the first row.
    """

    table: Table
    clock: str
    rows: Sequence[float]
    gaps: Sequence[float]
    lags: Mapping[str, Sequence[float | None]]
    events: Mapping[str, Path]


@dataclass(frozen=True)
class Paths(Data):
    """A number of a few random patients of one table. ``clock`` names the unit of time."""

    column: str
    table: Table
    unit: str | None
    clock: str
    paths: Sequence[Path]


_KINDS: dict[str, type[Data]] = {
    "marginal": Marginal,
    "association": Associations,
    "roc": Roc,
    "calibration": Calibration,
    "distances": Distances,
    "effects": Effects,
    "tails": Tails,
    "single_columns": SingleColumns,
    "missing_cells": MissingCells,
    "finer_than_declared": FinerThanDeclared,
    "outside_bounds": OutsideBounds,
    "table_one": TableOne,
    "table_one_differences": Differences,
    "subgroups": Subgroups,
    "over_time": OverTime,
    "paths": Paths,
}


def read_detail(kind: str, data: Mapping[str, Any]) -> Data | Mapping[str, Any]:
    """Return the record of one kind of detail. A kind without a record stays a mapping.

    Raises
    ------
    pydantic.ValidationError
        If a key is missing or holds something else.
    """
    return _KINDS[kind].from_dict(data) if kind in _KINDS else data


# ------------------------------------------------------------------------------------------------
# Results as plain frozen records, to JSON and Markdown.
#
# Every number says whether it is confidential (``internal``): computed from real records without noise, and
# so outside the privacy guarantee of the synthetic table. Confidential numbers are for the owner of the real
# records. Sharing one needs a decision of its own.

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
        One of :mod:`dpsynth.evaluation.results`, or lists, mappings, text, finite numbers and None.
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
            data = read_detail(record["kind"], record["data"])
        except ValidationError as problem:
            raise TypeError(
                f"the detail {record.get('name')!r} is damaged: {one_sentence(problem)}"
            ) from None
        return Detail(**{**record, "data": data})


@dataclass(frozen=True)
class Subsample:
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
    parts: tuple[Subsample, ...] = ()


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
