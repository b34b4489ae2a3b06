"""Tables to compare: synthetic records, the training records, and held-out records.

Every table is brought to the schema once: clipped to its bounds and rounded to its declared steps. A random
part represents a table that is too large, and the added error is stated. A rule on the schema sets how many
records a step reads. An evaluation then takes about two minutes on two cores. The rule uses no clock: the
same seed gives the same numbers everywhere.

If patients have several rows, a record is a patient's levels. The rows are kept beside them as histories.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_float_dtype

from dpsynth.checks import Counted
from dpsynth.errors import DataError, of_records
from dpsynth.evaluation.results import Evaluation, Findings, Measure, Row, frame_rows, shown
from dpsynth.patients.histories import Histories, levels_of
from dpsynth.patients.schema import Patients, patients_of
from dpsynth.studies.study import Estimates
from dpsynth.table.cells import plain_table
from dpsynth.table.conform import NotAllowed
from dpsynth.table.kinds.category import category_codes
from dpsynth.table.schema import Column, Schema, TableSchema
from dpsynth.table.values import numeric_values

# ------------------------------------------------------------------------------------------------
# Frames turned into arrays of numbers, for distances, correlations and classifiers.
#
# Two encodings of a conformed frame, both fixed by the public schema:
#
# * :func:`distance_features`: numeric columns are min-max scaled by their *public* bounds and ordinal
#   columns by rank, to [0, 1]. Categories are one-hot divided by sqrt(2): two different ones lie at distance
#   1. A missing number is placed at 1/2. A (present, missing) pair, one-hot as well, marks it.
# * :class:`ClassifierEncoding`: the same coordinates without the outcome. Missing numbers stay NaN if the
#   classifier takes them. Otherwise they become the median of the *training* frame, beside an indicator.
#
# No noise is added: numbers computed from private records by these arrays are confidential (``internal``).

Floats = NDArray[np.float64]


def unit_values(column: Column, series: pd.Series) -> Floats:
    """Scale numbers by their public bounds, or ordinal values by rank, to [0, 1]. NaN if missing."""
    if column.is_numeric:
        assert column.lower is not None and column.upper is not None
        return (numeric_values(column, series) - column.lower) / (column.upper - column.lower)
    # A single category carries no order; the division by 1 puts it at 0.
    return numeric_values(column, series) / max(len(column.categories) - 1, 1)


def distance_features(frame: pd.DataFrame, schema: Schema) -> Floats:
    """Encode a conformed frame for Euclidean distances and correlations: coordinates in [0, 1], never NaN.

    Examples
    --------
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=20, upper=60),
    ...                          Column(name="sex", kind="binary", categories=("F", "M"))))
    >>> distance_features(pd.DataFrame({"age": [30], "sex": ["M"]}), schema).round(3).tolist()
    [[0.25, 0.0, 0.707]]
    """
    blocks: list[Floats] = []
    for column in schema.columns:
        if column.is_categorical:
            blocks.append(one_hot(column, frame[column.name]) / np.sqrt(2.0))
            continue
        unit = unit_values(column, frame[column.name])
        absent = np.isnan(unit)
        blocks.append(np.where(absent, 0.5, unit)[:, None])
        if column.incomplete:
            blocks.append(np.stack([~absent, absent], axis=1) / np.sqrt(2.0))
    return np.hstack(blocks)


@dataclass(frozen=True)
class ClassifierEncoding:
    """Predictors of a classifier, without the outcome, and the medians of its training frame in [0, 1] units.

    The median is NaN for a column without any value, which is then the constant 1/2 wherever it is encoded.
    """

    schema: Schema
    medians: Floats

    @classmethod
    def fit(cls, frame: pd.DataFrame, schema: Schema, outcome: str) -> ClassifierEncoding:
        """Learn the medians of the training frame. Those of a synthetic frame may be shared."""
        predictors = schema.select(name for name in schema.names if name != outcome)
        medians = []
        for column in predictors.columns:
            if not column.is_categorical:
                unit = unit_values(column, frame[column.name])
                present = unit[~np.isnan(unit)]
                medians.append(float(np.median(present)) if len(present) else np.nan)
        return cls(predictors, np.array(medians, dtype=np.float64))

    def transform(self, frame: pd.DataFrame, *, impute: bool) -> Floats:
        """Encode a frame conformed to the schema that :meth:`fit` was given.

        Missing numbers become the training median with a 0/1 indicator if ``impute``, or stay NaN.
        """
        blocks: list[Floats] = []
        medians = iter(self.medians)
        for column in self.schema.columns:
            if column.is_categorical:
                blocks.append(one_hot(column, frame[column.name]))
                continue
            unit, median = unit_values(column, frame[column.name]), next(medians)
            absent = np.isnan(unit)
            if np.isnan(median):
                # Nothing was learned about this column, and histogram binning fails on one of NaN alone.
                unit = np.full(len(unit), 0.5)
            elif impute:
                unit = np.where(absent, median, unit)
            blocks.append(unit[:, None])
            if impute and column.incomplete:
                blocks.append(absent[:, None].astype(np.float64))
        return np.hstack(blocks)


def one_hot(column: Column, series: pd.Series) -> Floats:
    """One-hot columns of the declared categories, and last of missing values where these are allowed.

    Examples
    --------
    >>> sex = Column(name="sex", kind="binary", categories=("F", "M"))
    >>> one_hot(sex, pd.Series(["M", "F"])).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    codes = category_codes(column, series)
    size = len(column.categories)
    codes = np.where(codes < 0, size, codes) if column.missing else codes
    return (codes[:, None] == np.arange(size + column.missing)).astype(np.float64)


#: receives the part of the work that is done, in [0, 1]
Progress = Callable[[float], None]


def silent(done: float) -> None:
    """Do nothing."""


def within(progress: Progress, start: float, stop: float) -> Progress:
    """Return a progress callable for the part of the work from ``start`` to ``stop``.

    Examples
    --------
    >>> within(print, 0.5, 1.0)(0.5)
    0.75
    """
    return lambda done: progress(start + done * (stop - start))


@dataclass(frozen=True)
class Tables:
    """Tables of one schema, conformed to it and rounded to its steps, with at least two records each.

    Attributes
    ----------
    synthetic : pandas.DataFrame of shape (m, columns)
        From any generator.
    train : pandas.DataFrame of shape (n, columns)
        The real records the synthetic ones were made from. Private.
    test : pandas.DataFrame of shape (k, columns) or None
        Real records that had no part in the synthetic table. Private.
    schema : Schema
        Columns of all tables.
    raw : mapping of str to pandas.DataFrame
        The tables as they came, ``"synthetic"``, ``"train"`` and, if given, ``"test"``: of rows, if patients
        have several.
    declared : tuple of Estimates
        Private estimates of pre-specified regressions. These have used privacy budget.
    patients : Patients or None
        If patients have several rows: the schema of rows. All tables above then hold levels of patients.
    histories : mapping of str to Histories
        The rows of each patient by table, in the order of the levels. Empty if ``patients`` is None.
    rows : mapping of str to pandas.DataFrame
        All rows by table, conformed. Empty if ``patients`` is None.
    left_out : int
        Number of rows of the synthetic table as it came with a value that the schema does not allow. They are
        in no other field but ``raw``: another tool's slip in one cell is a finding, and no reason to stop.
    """

    synthetic: pd.DataFrame
    train: pd.DataFrame
    test: pd.DataFrame | None
    schema: Schema
    raw: Mapping[str, pd.DataFrame]
    declared: tuple[Estimates, ...] = ()
    patients: Patients = None
    histories: Mapping[str, Histories] = field(default_factory=dict)
    rows: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    left_out: int = 0

    @classmethod
    def of(
        cls,
        synthetic: pd.DataFrame,
        *,
        train: pd.DataFrame,
        test: pd.DataFrame | None = None,
        schema: TableSchema,
        declared: Sequence[Estimates] = (),
    ) -> Tables:
        """Conform tables as they came, of rows if ``schema`` says that patients have several.

        Raises
        ------
        DataError
            If a table has fewer than two records or does not fit the schema. The message names the table,
            the column and the row.

        Examples
        --------
        >>> from dpsynth.table.schema import Column
        >>> schema = Schema(columns=(Column(name="age", kind="continuous", lower=0, upper=99, step=1),))
        >>> real, made = pd.DataFrame({"age": [30.2, 40.0]}), pd.DataFrame({"age": [31.0, 120.0]})
        >>> tables = Tables.of(made, train=real, schema=schema)
        >>> tables.train["age"].tolist(), tables.synthetic["age"].tolist()
        ([30.0, 40.0], [31.0, 99.0])
        """
        given = {"synthetic": synthetic, "train": train} | ({} if test is None else {"test": test})
        raw = {name: plain_table(frame) for name, frame in given.items()}
        histories, rows, patients = {}, {}, patients_of(schema)
        frames = raw | {"synthetic": _allowed(_whole(raw["synthetic"], schema.table), schema.table)}
        left_out = len(synthetic) - len(frames["synthetic"])
        if patients is not None:
            for name, frame in frames.items():
                rows[name] = patients.keyed(_conformed(name, frame, patients.table), frame)
            rows["synthetic"] = patients.in_order(rows["synthetic"])
            for name, frame in rows.items():
                with _named(name):  # a fixed seed: an evaluation repeats itself
                    histories[name] = Histories.of(frame, patients, np.random.default_rng(0))
            frames = {name: levels_of(own, patients) for name, own in histories.items()}
        frames = {name: _conformed(name, frame, schema.levels) for name, frame in frames.items()}
        return cls(
            frames["synthetic"],
            frames["train"],
            frames.get("test"),
            schema.levels,
            raw,
            tuple(declared),
            patients,
            histories,
            rows,
            left_out,
        )

    @property
    def described(self) -> TableSchema:
        """The schema as its owner gave it."""
        return self.patients or self.schema


@contextmanager
def _named(table: str) -> Iterator[None]:
    """Put the table's name in front of what does not fit."""
    try:
        yield
    except DataError as problem:
        raise DataError(f"{table} table: {problem}") from None


def _whole(synthetic: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Round to whole numbers, where the schema has them: other generators leave that to the reader."""
    columns = [column.name for column in schema.columns if column.kind == "integer"]
    floats = [name for name in synthetic.columns if name in columns and is_float_dtype(synthetic[name])]
    return synthetic.assign(**{name: synthetic[name].round() for name in floats})


def _allowed(synthetic: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The rows whose values the schema allows, or all if these are fewer than two."""
    left = synthetic
    while True:
        try:
            schema.conform(left)
            return left
        except NotAllowed as problem:
            left = left[~problem.rows]
            if len(left) < 2:
                return synthetic
        except DataError:  # told later, with the name of the table
            return synthetic


def _conformed(name: str, frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    if len(frame) < 2:
        raise of_records(f"the {name} table must have at least 2 records, got {len(frame)}")
    with _named(name):
        return schema.conform(frame).frame


#: records that a step reads, however wide the table
_LEAST = 500


@dataclass(frozen=True)
class Most:
    """The most records that a step reads of each table, also by ``records ** power * coordinates``."""

    records: int
    work: float
    power: int = 1

    def of(self, schema: Schema) -> int:
        """Return the number of records for a schema.

        Examples
        --------
        >>> from dpsynth.table.schema import Column
        >>> ward = Column(name="ward", kind="categorical", categories=tuple(f"w{i}" for i in range(1000)))
        >>> Most(10_000, 2e10, power=2).of(Schema(columns=(ward,)))
        4472
        """
        affordable = (self.work / coordinates(schema)) ** (1.0 / self.power)
        return max(int(min(self.records, affordable)), _LEAST)


#: records that models learn from; that they are tested on; whose neighbours are sought, or that a classifier
#: separates from as many others; whose labels are permuted; and of which single columns are sorted
LEARNED = Most(50_000, 1e7)
TESTED = Most(20_000, 4e7)
COMPARED = Most(10_000, 2e10, power=2)
PERMUTED = Most(2_000, 2e9, power=2)
SORTED = Most(200_000, math.inf)


def coordinates(schema: Schema) -> int:
    """Return the number of coordinates of an encoded record: one a category, two a number.

    Examples
    --------
    >>> from dpsynth.table.schema import Column
    >>> coordinates(Schema(columns=(Column(name="sex", kind="binary", categories=("F", "M")),)))
    2
    """
    return sum(len(column.categories) if column.is_categorical else 2 for column in schema.modelled.columns)


def random_rows(n: int, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Positions of a random part of n records, in ascending order.

    If ``size`` is at least n, these are all of them, and no random number is drawn.
    """
    if n <= size:
        return np.arange(n)
    return np.sort(rng.choice(n, size=size, replace=False))


def on_part(
    measures: Iterable[Measure],
    what: str,
    used: int,
    total: int,
    level: float,
    counted: Counted = Counted.RECORDS,
) -> Findings:
    """Add to measures on a random part of the records how much that adds to their error.

    The variance of an estimate is taken to fall as one over the records. Its standard error s on the part
    comes from its interval. The part adds ``s * sqrt(1 - used / total)`` to the error of the whole table.
    ``what`` names the use of the records, in a few words, and ``counted`` says what they are. All measures
    rest on ``used`` records.

    Examples
    --------
    >>> auc = Measure("Utility", "auc", 0.8, True, "AUC", 0.7608, 0.8392)
    >>> found = on_part([auc], "testing models", 2_500, 10_000, 0.95)
    >>> found.measures[0].detail
    'AUC, on a random 2,500 of 10,000 records, which adds a standard error of 0.0173'
    """
    measures = [replace(measure, n=min(used, total)) for measure in measures]
    if used >= total:
        return Findings(measures)
    added = {measure.name: _added(measure, used / total, level) for measure in measures}
    errors = {name: error for name, error in added.items() if error is not None}
    worst = max(errors, key=lambda name: errors[name], default="")
    told = []
    for measure in measures:
        error = added[measure.name]
        adds = "" if error is None else f", which adds a standard error of {shown(error)}"
        said = f"on a random {used:,} of {total:,} {counted}{adds}"
        told.append(replace(measure, detail=f"{measure.detail}, {said}" if measure.detail else said))
    found = Findings(told)
    found.frame("parts", [subsample(what, used, total, errors.get(worst), worst, counted)], confidential=True)
    return found


def subsample(
    what: str, used: int, total: int, error: float | None, measure: str, unit: str = "records"
) -> Row:
    """A row of the frame ``"parts"``: a random part of the records, or of another ``unit``, that a step read.

    ``error`` is the greatest standard error that this adds to a measure, named ``measure``. It is None if no
    measure has an interval.
    """
    return {"what": what, "used": used, "total": total, "error": error, "measure": measure, "unit": str(unit)}


def _added(measure: Measure, share: float, level: float) -> float | None:
    from scipy.special import ndtri

    if measure.lower is None or measure.upper is None:
        return None
    error = (measure.upper - measure.lower) / (2.0 * float(ndtri(0.5 + level / 2)))
    return error * math.sqrt(1.0 - share)


def sampled(evaluation: Evaluation) -> tuple[str, ...]:
    """Return a sentence for each step that read a random part of the records or pairs. Confidential.

    Examples
    --------
    >>> part = subsample("training models", 500, 9000, None, "")
    >>> sampled(Evaluation((), details={"parts": [part]}))
    ('Training models used a random 500 of 9,000 records.',)
    """
    lines = []
    for frame in evaluation.groups("parts"):
        for part in frame_rows(frame):
            line = f"{part.what.capitalize()} used a random {part.used:,} of {part.total:,} {part.unit}."
            if part.error is not None:
                line += f" This adds a standard error of at most {shown(part.error)} ({part.measure})."
            lines.append(line)
    return tuple(lines)
