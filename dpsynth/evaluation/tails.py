"""Plausibility of columns for a clinician: spread, tails, point masses, habits of recording.

Distances between distributions hardly show one record in a hundred at a hundred times its usual value. They
also miss zeros that were spread around zero. Five plain numbers show both. One is the ratio of the standard
deviations. One is the ratio of the means of counts, costs and other numbers without negative values. A skewed
column's mean may double by a small part of its standard deviation. Two are the errors of the 1st and 99th
percentile, in real standard deviations. One is the share of records at frequent values. Panels that a
laboratory measures together are missing together. The number of missing cells a record then varies more than
its columns' rates suggest.

Training records are the reference. Values of held-out records beside them show the size by chance.

All intervals are over independent records of both tables. For a ratio of standard deviations, ``log s`` of
each table is normal with variance ``(kurtosis - 1) / (4 n)`` (the delta method). The larger kurtosis stands
for both: a table that lacks a rare extreme value shows a small one. For a ratio of means, the variance of
``log m`` is ``s^2 / (n m^2)``. For a difference of percentiles, the sum of squares joins both order-statistic
intervals (Zou and Donner 2008, "Construction of confidence limits about effect measures", Statistics in
Medicine 27). These are valid for any distribution. The real standard deviation is held fixed. If a table is
too small for an end, there is no interval. For a difference of shares it is Newcombe's from two
Clopper-Pearson ones.

If patients have several rows, records are their levels. A second comparison reads the rows. Its intervals are
over independent patients (:class:`~dpsynth.evaluation.estimates.Clustered`). Influence values are added up by
patient. Shares and percentiles take the effective number of rows.

A page prints many such intervals. Their level is divided by their number (Bonferroni), so they are for
all columns together. A column is called wrong if its value lies beyond the aim and its interval excludes no
difference: what is printed decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.checks import Counted
from dpsynth.evaluation.discriminator import separate_single_columns
from dpsynth.evaluation.estimates import FEWEST, Clustered, Estimate, quantile, share_difference
from dpsynth.evaluation.results import Findings, Measure, Row
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import SORTED, Progress, Tables, on_part, silent
from dpsynth.patients.histories import numbered_rows
from dpsynth.table.column import Column
from dpsynth.table.kinds.date import SECONDS
from dpsynth.table.schema import Schema
from dpsynth.table.values import numeric_values

Floats = NDArray[np.float64]

#: what a clinician would still believe: ratios of standard deviations, errors of percentiles in standard
#: deviations of the real column, differences of shares at point masses
SPREAD_AIM, PERCENTILE_AIM, MASS_AIM = (0.8, 1.25), 0.5, 0.05
#: and ratios of means
MEAN_AIM = (0.9, 1.1)

#: a value that holds a greater share of a table's present values is a point mass
POINT_MASS = 0.05
LOW, HIGH = 0.01, 0.99
#: what is compared: records, or levels of patients with several rows, or these rows
Tabled = Literal["records", "levels", "rows"]


def column_tails(
    real: pd.DataFrame,
    synthetic: pd.DataFrame,
    schema: Schema,
    *,
    level: float = 0.95,
    unit: str | None = None,
) -> list[Row]:
    """Compare spread, tails and point masses of the numeric and ordinal columns of two tables, a row each.

    Each row has a number of both tables (``real``, ``synthetic``), and the measure that compares them with
    its ``value`` and interval. These are None if real values do not vary. A point mass is the share of
    present values at one value (``at``), the largest difference first. ``few``: a table has too few records
    for an end of the interval, which then is the public bound, or fewer than FEWEST real ones have a value,
    and there is no interval. An ordinal column has point masses only.

    ``unit``: a column of both tables that numbers the patient of each row. By default rows are independent.

    Columns that have no present value in one of the tables are left out.
    """
    found: list[Row] = []
    for column in schema.columns:
        if column.is_categorical:
            continue
        a, b = (_present(frame, column, unit) for frame in (real, synthetic))
        if not len(a.numbers) or not len(b.numbers):
            continue
        rows: list[Row] = []
        if not column.is_ordinal:  # differences of ranks mean nothing
            deviations = float(a.numbers.std()), float(b.numbers.std())
            rows.append(_compare("spread_ratio", *deviations, spread_ratio(a, b, level)))
            rows += _means(a, b, column, level)
            rows += (_percentile(a, b, q, column, level) for q in (LOW, HIGH))
        rows += _masses(a, b, column, level)
        if a.units < FEWEST:
            rows = [{**row, "lower": None, "upper": None, "few": True} for row in rows]
        found += ({"column": column.name, "unit": column.shown_unit, **row} for row in rows)
    return found


def _compare(
    measure: str, real: float, synthetic: float, found: Estimate | None, at: object = None, few: bool = False
) -> Row:
    """A number of both tables, and the measure that compares them."""
    ends = (None,) * 3 if found is None else (found.value, found.lower, found.upper)
    row = {"measure": measure, "at": at, "real": real, "synthetic": synthetic, "few": few}
    return row | dict(zip(("value", "lower", "upper"), ends, strict=True))


def _present(frame: pd.DataFrame, column: Column, unit: str | None) -> Clustered:
    values = numeric_values(column, frame[column.name])
    known = ~np.isnan(values)
    return Clustered.of(values[known], None if unit is None else frame[unit].to_numpy()[known])


def missing_cells(
    real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, level: float = 0.95
) -> tuple[float, float, Estimate | None] | None:
    """Standard deviations of the number of missing cells a record: real, synthetic, and their ratio.

    None where fewer than two columns can miss values.
    """
    names = [column.name for column in schema.columns if column.missing]
    if len(names) < 2:
        return None
    first, second = (
        Clustered.of(frame[names].isna().to_numpy().sum(axis=1) * 1.0) for frame in (real, synthetic)
    )
    return float(first.numbers.std()), float(second.numbers.std()), spread_ratio(first, second, level)


def spread_ratio(real: Clustered, synthetic: Clustered, level: float = 0.95) -> Estimate | None:
    """Ratio of two standard deviations, synthetic over real, None if real values are constant."""
    from scipy.stats import norm

    (a, var_a), (b, var_b) = (_deviation(values) for values in (real, synthetic))
    if not a:
        return None
    n, m = real.units, synthetic.units
    spread = max(var_a * n, var_b * m) * (1 / n + 1 / m)
    reach = float(np.exp(norm.isf((1.0 - level) / 2) * np.sqrt(spread)))
    return Estimate(b / a, b / a / reach, b / a * reach)


def _deviation(of: Clustered) -> tuple[float, float]:
    """Standard deviation, and the variance of its logarithm, zeros for values that do not vary."""
    moved = of.numbers - of.numbers.mean()
    variance = float((moved**2).mean())
    # rounding leaves a constant column with a deviation of a few ulp
    if variance <= (1e-12 * float(np.abs(of.numbers).max())) ** 2:
        return 0.0, 0.0
    return float(np.sqrt(variance)), of.variance((moved**2 / variance - 1.0) / 2.0)


def mean_ratio(real: Clustered, synthetic: Clustered, level: float = 0.95) -> Estimate | None:
    """Ratio of two means of numbers that are not negative, synthetic over real, None if all real ones are 0.

    If all synthetic numbers are 0, the real standard deviation stands in for theirs.
    """
    from scipy.stats import norm

    a, b = float(real.numbers.mean()), float(synthetic.numbers.mean())
    if not a > 0:
        return None
    z = float(norm.isf((1.0 - level) / 2))
    if not b > 0:
        return Estimate(0.0, 0.0, z * float(real.numbers.std()) / a / np.sqrt(synthetic.units))
    errors = (np.sqrt(of.variance(of.numbers / of.numbers.mean() - 1.0)) for of in (real, synthetic))
    reach = float(np.exp(z * np.hypot(*errors)))
    return Estimate(b / a, b / a / reach, b / a * reach)


def _means(real: Clustered, synthetic: Clustered, column: Column, level: float) -> Iterator[Row]:
    """The means of a column whose zero means none: numbers that cannot be negative, no dates."""
    if column.written_apart or column.lower is None or column.lower < 0:
        return
    ratio = mean_ratio(real, synthetic, level)
    if ratio is not None:
        means = float(real.numbers.mean()), float(synthetic.numbers.mean())
        yield _compare("mean_ratio", *means, ratio)


def _percentile(real: Clustered, synthetic: Clustered, q: float, column: Column, level: float) -> Row:
    name = f"percentile_{round(100 * q)}_error"
    (a, n), (b, m) = (_quantile(of, q, column, level) for of in (real, synthetic))
    deviation = _deviation(real)[0]
    if not deviation:
        return _compare(name, a.value, b.value, None)
    value = b.value - a.value
    # the same squares as of two shares, without their ends at -1 and 1; a percentile between two order
    # statistics may lie outside its own interval
    below = np.hypot(max(b.value - b.lower, 0.0), max(a.upper - a.value, 0.0))
    above = np.hypot(max(b.upper - b.value, 0.0), max(a.value - a.lower, 0.0))
    error = Estimate(*(float(end) / deviation for end in (value, value - below, value + above)))
    return _compare(name, a.value, b.value, error, few=min(n, m) < _fewest(level))


def _fewest(level: float) -> int:
    """Fewest present values with which both ends of a percentile's interval are order statistics."""
    return int(np.ceil(np.log((1.0 - level) / 2) / np.log(HIGH)))


def _quantile(of: Clustered, q: float, column: Column, level: float) -> tuple[Estimate, int]:
    """Quantile with its interval, whose end is the public bound where no order statistic is one.

    Also how many independent values would say as much. As many order statistics stand for all.
    """
    value = float(np.quantile(of.numbers, q))
    n = round(of.effective(of.numbers <= value))
    kept = of.numbers[((np.arange(n) + 0.5) * len(of.numbers) / n).astype(np.int64)]
    found, tail = quantile(kept, q, level), (1.0 - level) / 2
    assert column.lower is not None and column.upper is not None
    # all of n values lie below the quantile with probability q^n
    lower = column.lower if (1.0 - q) ** n > tail else found.lower
    upper = column.upper if q**n > tail else found.upper
    return Estimate(value, lower, upper), n


def _masses(real: Clustered, synthetic: Clustered, column: Column, level: float) -> list[Row]:
    """Values that hold many of one table or the other, and such times of day of a column that has times."""

    def named(number: float) -> float | int | str:
        if column.is_ordinal:
            return column.categories[int(number)]
        if column.written_apart:
            return column.shown(number)
        return int(number) if number.is_integer() else number

    found = [*_frequent(real, synthetic, named, level)]
    if column.is_date and column.seconds < SECONDS["date"]:
        day = SECONDS["date"] / column.seconds
        a, b = (Clustered(of.numbers % day, of.unit) for of in (real, synthetic))
        found += _frequent(a, b, lambda number: column.shown(number).split()[1], level)
    return sorted(found, key=lambda mass: -abs(mass["value"]))


def _frequent(
    real: Clustered, synthetic: Clustered, named: Callable[[float], float | int | str], level: float
) -> Iterator[Row]:
    values, place = np.unique(np.concatenate([real.numbers, synthetic.numbers]), return_inverse=True)
    places = place[: len(real.numbers)], place[len(real.numbers) :]
    shares = [np.bincount(part, minlength=len(values)) / len(part) for part in places]
    for k in np.flatnonzero(np.maximum(*shares) > POINT_MASS):
        truth, made = (of.share(at == k, level) for of, at in zip((real, synthetic), places, strict=True))
        difference = share_difference(made, truth)
        at = named(float(values[k]))
        yield _compare("point_mass_error", truth.value, made.value, difference, at)


TAILS, SINGLE = "Tails and point masses", "Single columns"
_HELD_OUT = "the same between training and held-out {records}"
_INTERVAL = "Interval for all columns together"


def columns_believed(
    tables: Tables, settings: Settings, rng: np.random.Generator, progress: Progress = silent
) -> Findings:
    """Compare spread, tails, point masses and habits of recording, column by column.

    Single columns are compared with held-out records if given: a table whose counts were fitted to the
    training records is a little closer to these. ``records`` limits these alone. Everything else reads whole
    tables. The rows of patients are compared as well, but for single columns.
    """
    schema, patients = tables.schema, tables.patients
    limit = settings.most(schema, SORTED)
    synthetic, train, test = tables.synthetic, tables.train, tables.test
    columns = [*schema.columns, *(patients.rows.columns if patients is not None else ())]
    strict = _together(settings.level, _COMPARISONS * sum(not column.is_categorical for column in columns))
    of: Tabled = "records" if patients is None else "levels"
    found = _compared(train, synthetic, test, schema, strict, of)
    if patients is not None:
        rows = {name: numbered_rows(own, patients) for name, own in tables.histories.items()}
        frames = rows["train"], rows["synthetic"], rows.get("test")
        found.join(_compared(*frames, patients.rows, strict, "rows", patients.unit))
    progress(0.4)
    found.join(_missing_cells(synthetic, train, test, schema, settings.level))
    progress(0.5)
    level = _together(settings.level, sum(column.is_numeric for column in schema.columns))
    single = separate_single_columns(
        train if test is None else test, synthetic, schema, rng=rng, limit=limit, level=level
    )
    progress(0.75)
    baseline = None
    if test is not None:
        baseline = separate_single_columns(train, test, schema, rng=rng, limit=limit, level=level)
    reference = "training" if test is None else "held-out"
    alone = _of_single_columns(single, baseline, reference, schema.counted)
    total = min(len(synthetic), len(train if test is None else test))
    if alone.measures:
        told = on_part(alone.measures, "single columns", min(limit, total), total, level, schema.counted)
        found.join(told, Findings(details=alone.details))
    return found


#: of a column: its standard deviation, its mean, and two percentiles or frequent values
_COMPARISONS = 4


def _together(level: float, comparisons: int) -> float:
    """Level of each of several intervals that hold together at a level (Bonferroni)."""
    return 1.0 - (1.0 - level) / max(comparisons, 1)


def _compared(
    train: pd.DataFrame,
    synthetic: pd.DataFrame,
    test: pd.DataFrame | None,
    schema: Schema,
    level: float,
    of: Tabled,
    unit: str | None = None,
) -> Findings:
    """Tails and point masses of records, levels, or rows of ``unit``, beside those of held-out records."""
    rows = column_tails(train, synthetic, schema, level=level, unit=unit)
    fresh = [] if test is None else column_tails(train, test, schema, level=level, unit=unit)
    baseline = {(row["column"], row["measure"]): row["value"] for row in fresh if row["at"] is None}
    noun = "rows" if of == "rows" else schema.counted
    found = Findings([*_of_tails(rows, fresh, level, noun)])
    if of == "rows":
        found.measures = [replace(m, name=f"rows_{m.name}") for m in found.measures]
    beside = ({"of": of, **row, "baseline": baseline.get((row["column"], row["measure"]))} for row in rows)
    found.frame("tails", beside, confidential=True)
    return found


#: what is measured of each column
_OF_COLUMNS = {
    "spread_ratio": "standard deviation, synthetic over training {records}",
    "mean_ratio": "mean of numbers without negative values, synthetic over training {records}",
    "percentile_1_error": (
        "1st percentile, synthetic minus training, in standard deviations of training {records}"
    ),
    "percentile_99_error": "the same of the 99th percentile",
    "point_mass_error": (
        "share of values, synthetic minus training, at the frequent value where it differs most"
    ),
}
#: of the worst column: which of these, and words
_OF_WORST = {
    "spread_ratio": (("spread_ratio",), "ratio of standard deviations, synthetic over training", "1 is best"),
    "mean_ratio": (
        ("mean_ratio",),
        "ratio of means of numbers without negative values, synthetic over training",
        "1 is best",
    ),
    "percentile_error": (
        ("percentile_1_error", "percentile_99_error"),
        "error of the 1st or 99th percentile in standard deviations of training {records}",
        "0 is best",
    ),
    "point_mass_error": (("point_mass_error",), "difference of the shares at a frequent value", "0 is best"),
}


def _of_tails(found: Sequence[Row], fresh: Sequence[Row], level: float, noun: str) -> Iterator[Measure]:
    def measure(name: str, estimate: Estimate, text: str) -> Measure:
        if np.isfinite(estimate.upper - estimate.lower):
            text += f". {_INTERVAL}"
        else:
            text += f". Interval n/a: both tables need {_fewest(level)} present values"
        return Measure.estimated(TAILS, name, estimate, text)

    errors, by_chance = _errors(found), _errors(fresh)
    for name, (kinds, what, aim) in _OF_WORST.items():
        worst, chance = (_worst(of, kinds) for of in (errors, by_chance))
        if worst is not None:
            text = f"{what.format(records=noun)}, of the worst column, {worst[0]}. {aim}"
            yield measure(f"{name}_worst", worst[1], text)
        if worst is not None and chance is not None:
            text = f"{_HELD_OUT.format(records=noun)}, of the worst column, {chance[0]}"
            yield Measure(TAILS, f"{name}_worst_baseline", chance[1].value, True, text)
    for name, what in _OF_COLUMNS.items():
        for kind, column, _, error in errors:
            if kind == name:
                yield measure(f"{name}[{column}]", error, what.format(records=noun))


def _errors(found: Sequence[Row]) -> list[tuple[str, str, str, Estimate]]:
    """Each error of each column: its kind, the column, the column with the value it is of, and itself.

    Of point masses it is the largest. Ends that too few records leave to the public bounds are NaN.
    """
    errors: dict[tuple[str, str], tuple[str, str, str, Estimate]] = {}
    for row in found:
        kind, column = row["measure"], row["column"]
        if row["value"] is not None and (kind, column) not in errors:
            where = column if row["at"] is None else f"{column} = {row['at']}"
            ends = (np.nan, np.nan) if row["few"] else (row["lower"], row["upper"])
            errors[kind, column] = (kind, column, where, Estimate(row["value"], *ends))
    return [*errors.values()]


def _worst(
    errors: Sequence[tuple[str, str, str, Estimate]], kinds: tuple[str, ...]
) -> tuple[str, Estimate] | None:
    def size(entry: tuple[str, Estimate]) -> float:
        value = entry[1].value
        if kinds not in (("spread_ratio",), ("mean_ratio",)):
            return abs(value)
        return abs(np.log(value)) if value > 0 else np.inf

    return max(((where, error) for kind, _, where, error in errors if kind in kinds), key=size, default=None)


def _missing_cells(
    synthetic: pd.DataFrame, train: pd.DataFrame, test: pd.DataFrame | None, schema: Schema, level: float
) -> Findings:
    found = missing_cells(train, synthetic, schema, level)
    if found is None:
        return Findings()
    real, made, ratio = found
    if ratio is None:  # every training record misses as many cells
        return Findings()
    what = (
        f"standard deviation of missing cells a {schema.counted.one}, synthetic ({made:.3g}) over training "
        f"({real:.3g}). Below 1, values that are missing together are not"
    )
    name = "missing_cells_spread"
    measures = [Measure.estimated(TAILS, name, ratio, what)]
    fresh = None if test is None else missing_cells(train, test, schema, level)
    if fresh is not None and fresh[2] is not None:
        measures.append(
            Measure(TAILS, f"{name}_baseline", fresh[2].value, True, schema.counted.fill(_HELD_OUT))
        )
    told = Findings(measures)
    ends = {"ratio": ratio.value, "lower": ratio.lower, "upper": ratio.upper}
    told.frame("missing_cells", [{"train": real, "synthetic": made, **ends}], confidential=True)
    return told


def _of_single_columns(
    found: Sequence[Row], baseline: Sequence[Row] | None, reference: str, counted: Counted
) -> Findings:
    if not found:
        return Findings()
    what = f"AUC of separating synthetic from {reference} {counted} by one column alone, 0.5 is best"
    auc = {row["column"]: Estimate(row["auc"], row["lower"], row["upper"]) for row in found}
    worst = max(auc, key=lambda name: auc[name].value)
    text = f"{what}, of the worst column, {worst}. {_INTERVAL}"
    told = Findings([Measure.estimated(SINGLE, "single_column_auc_worst", auc[worst], text)])
    chance = {row["column"]: row["auc"] for row in baseline or ()}
    if chance:
        value = max(chance.values())
        told.measures.append(
            Measure(SINGLE, "single_column_auc_worst_baseline", value, True, counted.fill(_HELD_OUT))
        )
    told.measures += [
        Measure.estimated(SINGLE, f"single_column_auc[{name}]", estimate, f"{what}. {_INTERVAL}")
        for name, estimate in auc.items()
    ]
    rows = [{**row, "baseline": chance.get(row["column"]), "reference": reference} for row in found]
    told.frame("single_columns", rows, confidential=True)
    return told
