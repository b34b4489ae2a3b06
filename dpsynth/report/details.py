"""What the details of an evaluation hold, kind by kind: the types that verdicts, drawings and pages read.

A :class:`~dpsynth.evaluation.records.Detail` says by its ``kind`` what its ``data`` are. ``MARGINAL.of(...)``
gives the details of one kind with the type of their data. Keys that older files may lack are not required.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, NotRequired, Protocol, TypedDict, TypeVar, cast

from dpsynth.evaluation.records import Evaluation

Data_co = TypeVar("Data_co", covariant=True)
Table = Literal["synthetic", "train", "test"]


class Estimate(TypedDict):
    """A number with its interval."""

    value: float
    lower: float
    upper: float


class Marginal(TypedDict):
    """Shares of one column of one table, over bins of numbers or over categories."""

    column: str
    table: Table
    type: Literal["numeric", "categories"]
    share: Sequence[float]
    missing: float | None
    special: NotRequired[float | None]
    edges: NotRequired[Sequence[float]]
    labels: NotRequired[Sequence[str]]
    unit: NotRequired[str | None]
    log: NotRequired[bool]
    zero: NotRequired[bool]


class Associations(TypedDict):
    """One number for each pair of columns of one table; no matrix where there is no pair."""

    table: Table
    columns: Sequence[str]
    matrix: Sequence[Sequence[float | None]] | None


class Curve(TypedDict):
    """What one classifier did on held-out records, trained on one table."""

    trained_on: Table
    model: str


class Roc(Curve):
    """Its receiver operating characteristic."""

    fpr: Sequence[float]
    tpr: Sequence[float]
    auc: float | None


class Calibration(Curve):
    """Observed shares of the outcome, by groups of predicted risk."""

    predicted: Sequence[float]
    observed: Sequence[float]


class Distances(TypedDict):
    """Shares of records over the distance to their nearest training record."""

    edges: Sequence[float]
    synthetic_to_train: Sequence[float]
    test_to_train: NotRequired[Sequence[float] | None]
    space: NotRequired[str]


class Effect(TypedDict):
    """One coefficient of a regression, with its interval."""

    estimate: float
    lower: float
    upper: float


class Comparison(TypedDict):
    """How an effect compares with the real one; None where one of the two is not known."""

    same_sign: bool | None
    overlap: float | None
    standardised_difference: float | None


class DeclaredEffect(Effect, Comparison):
    """A private estimate against the real one; whether its interval holds that."""

    holds_real: NotRequired[bool | None]


class EffectRow(Comparison):
    """One term of a regression, fitted to both tables; in a declared study, with its private estimate."""

    term: str
    real: Effect | None
    synthetic: Effect | None
    declared: NotRequired[DeclaredEffect | None]


class Effects(TypedDict):
    """A study, fitted to both tables; ``study`` is the name of a declared one."""

    model: str
    outcome: str
    measure: str
    rows: Sequence[EffectRow]
    n_real: int
    n_synthetic: int
    level: NotRequired[float]
    note: NotRequired[str]
    problems: NotRequired[dict[str, str]]
    separated: NotRequired[Sequence[str]]
    study: NotRequired[str]


class Percentile(TypedDict):
    """One percentile of a column in both tables; its error in standard deviations of the real column."""

    real: float
    synthetic: float
    error: Estimate


class Mass(TypedDict):
    """A value that holds many records of a column."""

    value: object
    real: float
    synthetic: float
    difference: Estimate
    surely: float


class TailsRow(TypedDict):
    """Spread, tails and frequent values of one column; ``surely``: by how many times the aim is missed."""

    column: str
    unit: str | None
    deviation_real: float
    deviation_synthetic: float
    spread: Estimate | None
    spread_baseline: float | None
    low: Percentile
    low_baseline: float | None
    high: Percentile
    high_baseline: float | None
    masses: Sequence[Mass]
    surely: float


class SingleColumnRow(TypedDict):
    """How well one column alone tells synthetic from real records."""

    column: str
    auc: Estimate
    last_digits: float | None
    beyond_chance: bool
    baseline: float | None


class MissingCells(TypedDict):
    """Standard deviations of the number of missing cells a record, and their ratio."""

    train: float
    synthetic: float
    ratio: Estimate


class FinerRow(TypedDict):
    """How many values of a column lie between its declared steps."""

    column: str
    values: int
    step: float
    unit: str | None


class OutsideRow(TypedDict):
    """How many values of a column lie outside its declared bounds."""

    column: str
    values: int
    of: int
    lower: float
    upper: float


Row = TypeVar("Row")


class Rows(TypedDict, Generic[Row]):
    """One entry a column."""

    rows: Sequence[Row]


class Of(Protocol[Data_co]):
    """A detail whose data are of one type."""

    @property
    def name(self) -> str:
        """Unique within an evaluation."""

    @property
    def internal(self) -> bool:
        """Whether it was computed from real records without payment."""

    @property
    def data(self) -> Data_co:
        """What the kind says."""


def any_internal(details: Sequence[Of[object]]) -> bool:
    """Whether one of them was computed from real records without payment."""
    return any(detail.internal for detail in details)


@dataclass(frozen=True)
class Kind(Generic[Data_co]):
    """A kind of detail."""

    name: str

    def of(self, evaluation: Evaluation) -> tuple[Of[Data_co], ...]:
        """The details of this kind, in order."""
        return cast(tuple[Of[Data_co], ...], evaluation.of_kind(self.name))

    def by(self, evaluation: Evaluation, key: str) -> list[list[Of[Data_co]]]:
        """The same, those of one column or model together."""
        groups: dict[object, list[Of[Data_co]]] = {}
        for detail in self.of(evaluation):
            groups.setdefault(cast(Mapping[str, object], detail.data)[key], []).append(detail)
        return list(groups.values())


MARGINAL = Kind[Marginal]("marginal")
ASSOCIATION = Kind[Associations]("association")
ROC = Kind[Roc]("roc")
CALIBRATION = Kind[Calibration]("calibration")
DISTANCES = Kind[Distances]("distances")
EFFECTS = Kind[Effects]("effects")
TAILS = Kind[Rows[TailsRow]]("tails")
SINGLE_COLUMNS = Kind[Rows[SingleColumnRow]]("single_columns")
MISSING_CELLS = Kind[MissingCells]("missing_cells")
FINER = Kind[Rows[FinerRow]]("finer_than_declared")
OUTSIDE = Kind[Rows[OutsideRow]]("outside_bounds")
