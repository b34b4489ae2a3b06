"""Records behind the numbers of an evaluation: tables and curves that a report shows.

Each record is the ``data`` of one kind of :class:`~dpsynth.evaluation.records.Detail`. ``to_dict`` gives the
content of a JSON file, and :func:`read` the same record again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from dpsynth.evaluation.estimates import Estimate

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


def read(kind: str, data: Mapping[str, Any]) -> Data | Mapping[str, Any]:
    """Return the record of one kind of detail. A kind without a record stays a mapping.

    Raises
    ------
    pydantic.ValidationError
        If a key is missing or holds something else.
    """
    return _KINDS[kind].from_dict(data) if kind in _KINDS else data
