"""Would somebody who knows patients believe the columns? Spread, tails, point masses, habits of recording.

The numbers of :mod:`~dpsynth.evaluation.similarity.tails` and of
:mod:`~dpsynth.evaluation.similarity.believable`, each beside what held-out records give, as measures and
as the tables that a report draws. All of them read real records without payment: internal.

Does one numeric column alone tell synthetic from real records, by its shape or by habits of recording?

People write numbers down by habit: blood pressures on tens, pulses counted in 15 seconds on multiples of 4,
heights converted from inches. A generator that spreads values evenly over a cell is found out by one such
column, whatever it does well elsewhere. A classifier over all columns sees this without saying where.

The best score of one value is the ratio of its probabilities in both tables. It is estimated in three steps,
each shrunk towards the one before by some pseudo-records: the share of synthetic records in an interval
(between quantiles), times how the value's last digits shift it (its number of steps modulo 20, which holds
twos, fours, fives and tens; the number of decimals where no step is declared), then in the value itself.
Scores come from the other folds' records, so that the AUC of two samples of one distribution is 1/2, or a
little less. All steps are counts of distinct values: the time is that of sorting a column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.evaluation.estimates import Estimate
from dpsynth.evaluation.records import Detail, Findings, Measure
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.similarity.discriminator import FOLDS, within_folds
from dpsynth.evaluation.similarity.tails import (
    MASS_AIM,
    PERCENTILE_AIM,
    SPREAD_AIM,
    ColumnTails,
    column_tails,
    missing_cells,
)
from dpsynth.evaluation.subsample import SORTED, on_part
from dpsynth.evaluation.tables import Progress, Tables, silent
from dpsynth.table.column import Column
from dpsynth.table.schema import Schema
from dpsynth.table.values import numeric_values

Floats = NDArray[np.float64]

#: intervals between quantiles; last digits told apart, in steps or in decimals
_INTERVALS, _MODULUS, _MOST_DECIMALS = 30, 20, 6
#: records of each table that an estimate's parent counts for
_PSEUDO = 5.0


@dataclass(frozen=True)
class SingleColumn:
    """How well one column tells synthetic from real records.

    Attributes
    ----------
    column : str
    auc : Estimate
        Of all that its present values give away; 1/2 is best. The interval is that of
        :class:`~dpsynth.evaluation.similarity.discriminator.Discrimination`.
    last_digits : float or None
        AUC of the last digits alone: near ``auc`` where habits of recording give the column away. None where
        the column has too few values to tell digits from values.
    beyond_chance : bool
        Whether the AUC lies above 1/2 although the best of all columns was looked for (Bonferroni).
    size : int
        Records of each table.
    """

    column: str
    auc: Estimate
    last_digits: float | None
    beyond_chance: bool
    size: int


def single_columns(
    real: pd.DataFrame,
    synthetic: pd.DataFrame,
    schema: Schema,
    *,
    rng: np.random.Generator,
    limit: int = 10_000,
    level: float = 0.95,
) -> tuple[SingleColumn, ...]:
    """Tell synthetic from real records by each numeric column alone.

    Parameters
    ----------
    real, synthetic : pandas.DataFrame of shape (n, columns), (m, columns)
        Conformed to ``schema`` and rounded to its steps.
    limit : int
        Of each table a random part is used: of the column's present values as many as the table with fewer
        has, at most this many.

    Returns
    -------
    tuple of SingleColumn
        In the order of the schema; without columns that have fewer present values than folds. Internal.
    """
    found = []
    numeric = [column for column in schema.columns if column.is_numeric]
    for column in numeric:
        parts = [numeric_values(column, frame[column.name]) for frame in (real, synthetic)]
        parts = [values[~np.isnan(values)] for values in parts]
        size = min(*map(len, parts), limit)
        if size >= FOLDS:
            a, b = (values[rng.permutation(len(values))[:size]] for values in parts)
            found.append(_tell(a, b, column, level, len(numeric)))
    return tuple(found)


def _tell(real: Floats, synthetic: Floats, column: Column, level: float, tried: int) -> SingleColumn:
    size = len(real)
    values, place = np.unique(np.concatenate([real, synthetic]), return_inverse=True)
    # Rows are in random order: every fifth row of a table is a random fold.
    fold, label = np.tile(np.arange(size) % FOLDS, 2), np.repeat([0, 1], size)
    counts = np.zeros((2, FOLDS, len(values)))
    np.add.at(counts, (label, fold, place), 1.0)
    # what the other folds hold
    others = counts.sum(axis=1, keepdims=True) - counts
    nothing, digits = np.full((FOLDS, len(values)), 0.5), _last_digits(values, column)
    by_digits = _shifted(nothing, others, digits)
    shape = _shifted(nothing, others, _intervals(counts.sum(axis=(0, 1))))
    scores = _shifted(_shifted(shape, others, digits), others, np.arange(len(values)))

    def told(score: Floats, at: float) -> Estimate:
        return within_folds(score[fold, place], label, fold, at)

    beyond_chance = told(scores, 1.0 - (1.0 - level) / tried).lower > 0.5
    enough = column.n_values is None or column.n_values >= 2 * _MODULUS
    last_digits = told(by_digits, level).value if enough else None
    return SingleColumn(column.name, told(scores, level), last_digits, beyond_chance, size)


def _shifted(parent: Floats, counts: Floats, group: NDArray[np.int64]) -> Floats:
    """Share of synthetic records at each value, shape (folds, values), corrected group by group.

    In each group the odds of the parent are multiplied by found over expected records of both tables, with
    as many pseudo-records of each on both sides: a group that the parent explains is left as it is.
    """
    n_groups = int(group.max()) + 1
    total = counts.sum(axis=0)

    def by_group(weights: Floats) -> Floats:
        return np.stack([np.bincount(group, row, minlength=n_groups) for row in weights])

    synthetic, expected = by_group(counts[1]), by_group(parent * total)
    real, expected_real = by_group(counts[0]), by_group((1.0 - parent) * total)
    factor = (synthetic + _PSEUDO) / (expected + _PSEUDO) * (expected_real + _PSEUDO) / (real + _PSEUDO)
    odds = parent / (1.0 - parent) * factor[:, group]
    return odds / (1.0 + odds)


def _intervals(count: Floats) -> NDArray[np.int64]:
    """The interval of each value in ascending order, as many records in each as can be."""
    middle = np.cumsum(count) - 0.5 * count
    return np.unique((middle / count.sum() * _INTERVALS).astype(np.int64), return_inverse=True)[1]


def _last_digits(values: Floats, column: Column) -> NDArray[np.int64]:
    if column.resolution is not None:
        return np.mod(np.rint(values / column.resolution), _MODULUS).astype(np.int64)
    # 1.25 has 2 decimals; beyond the most, digits are no habit
    scaled = np.outer(values, 10.0 ** np.arange(_MOST_DECIMALS))
    whole = np.abs(scaled - np.rint(scaled)) <= 1e-9 * np.maximum(np.abs(scaled), 1.0)
    return np.where(whole.any(axis=1), whole.argmax(axis=1), _MOST_DECIMALS)


TAILS, SINGLE = "Tails and point masses", "Single columns"
_HELD_OUT = "the same between training and held-out records"


def columns_believed(
    tables: Tables, settings: Settings, rng: np.random.Generator, progress: Progress = silent
) -> Findings:
    """Compare spread, tails, point masses and habits of recording, column by column.

    Parameters
    ----------
    tables : Tables
        Held-out records say what chance gives. Single columns are told from them where they are given, since
        a table whose counts were fitted to the training records is a little closer to these.
    settings : Settings
        ``level`` and ``records``: of each table, by which single columns are told apart; everything
        else reads whole tables.

    Returns
    -------
    Findings
        Measures ``spread_ratio[<column>]``, ``percentile_1_error[<column>]``,
        ``percentile_99_error[<column>]``, ``point_mass_error[<column>]``, ``single_column_auc[<column>]``,
        their ``..._worst``, the shares that a clinician would believe, and ``missing_cells_spread``. Details
        ``tails``, ``single_columns`` and ``missing_cells``.
    """
    schema, level = tables.schema, settings.level
    limit = settings.most(schema, SORTED)
    synthetic, train, test = tables.synthetic, tables.train, tables.test
    found = column_tails(train, synthetic, schema, level=level)
    held_out = None if test is None else {c.column: c for c in column_tails(train, test, schema, level=level)}
    progress(0.4)
    measures = [*_of_tails(found, held_out)]
    details = [Detail("tails", "tails", True, {"rows": [_row(c, held_out, schema) for c in found]})]
    together = _missing_cells(synthetic, train, test, schema, level)
    progress(0.5)
    single = single_columns(
        train if test is None else test, synthetic, schema, rng=rng, limit=limit, level=level
    )
    progress(0.75)
    baseline = None
    if test is not None:
        baseline = single_columns(train, test, schema, rng=rng, limit=limit, level=level)
    alone = _of_single_columns(single, baseline, "training" if test is None else "held-out")
    total = min(len(synthetic), len(train if test is None else test))
    told = on_part(alone.measures, "single columns", min(limit, total), total, level)
    return Findings(
        (*measures, *together.measures, *told.measures),
        (*details, *together.details, *alone.details),
        told.parts if alone.measures else (),
    )


def _of_tails(found: Sequence[ColumnTails], held_out: dict[str, ColumnTails] | None) -> Iterator[Measure]:
    fresh = None if held_out is None else tuple(held_out.values())
    for name, what, aim, errors in (
        ("spread_ratio", "ratio of standard deviations, synthetic over training", "1 is best", _spreads),
        (
            "percentile_error",
            "error of the 1st or 99th percentile in standard deviations of training records",
            "0 is best",
            _percentile_errors,
        ),
        ("point_mass_error", "difference of the shares at a frequent value", "0 is best", _mass_errors),
    ):
        worst = _worst(errors(found), name == "spread_ratio")
        if worst is None:
            continue
        where, end = worst
        text = f"{what}; of the worst column, {where}; {aim}"
        yield Measure(TAILS, f"{name}_worst", end.value, True, text, end.lower, end.upper)
        chance = None if fresh is None else _worst(errors(fresh), name == "spread_ratio")
        if chance is not None:
            text = f"{_HELD_OUT}; of the worst column, {chance[0]}"
            yield Measure(TAILS, f"{name}_worst_baseline", chance[1].value, True, text)
    for name, what, share in (
        (
            "tails_believable",
            f"share of numeric columns whose standard deviation is {SPREAD_AIM[0]:g} to {SPREAD_AIM[1]:g} "
            f"times the real one and whose percentiles err by less than {PERCENTILE_AIM:g} deviations",
            _tails_believable,
        ),
        ("point_masses_believable", f"share of frequent values within {MASS_AIM:g}", _masses_believable),
    ):
        value = share(found)
        if value is not None:
            yield Measure(TAILS, name, value, True, what)
            if fresh is not None:
                yield Measure(TAILS, f"{name}_baseline", share(fresh), True, _HELD_OUT)
    for name, what, pick in (
        ("spread_ratio", "standard deviation, synthetic over training records", lambda c: c.spread),
        (
            "percentile_1_error",
            "1st percentile, synthetic minus training, in standard deviations of training records",
            lambda c: c.low and c.low.error,
        ),
        ("percentile_99_error", "the same of the 99th percentile", lambda c: c.high and c.high.error),
        (
            "point_mass_error",
            "share of values, synthetic minus training, at the frequent value where it differs most",
            lambda c: c.masses[0].difference if c.masses else None,
        ),
    ):
        for column in found:
            picked: Estimate | None = pick(column)
            if picked is not None:
                name_of = f"{name}[{column.column}]"
                yield Measure(TAILS, name_of, picked.value, True, what, picked.lower, picked.upper)


def _spreads(found: Iterable[ColumnTails]) -> list[tuple[str, Estimate]]:
    return [(c.column, c.spread) for c in found if c.spread is not None]


def _percentile_errors(found: Iterable[ColumnTails]) -> list[tuple[str, Estimate]]:
    ends = [(c.column, p.error) for c in found for p in (c.low, c.high) if p is not None]
    return [(name, error) for name, error in ends if error is not None]


def _mass_errors(found: Iterable[ColumnTails]) -> list[tuple[str, Estimate]]:
    return [(f"{c.column} = {m.value}", m.difference) for c in found for m in c.masses]


def _worst(errors: list[tuple[str, Estimate]], ratio: bool) -> tuple[str, Estimate] | None:
    def size(entry: tuple[str, Estimate]) -> float:
        value = entry[1].value
        return abs(np.log(value)) if ratio and value > 0 else np.inf if ratio else abs(value)

    return max(errors, key=size, default=None)


def _tails_believable(found: Sequence[ColumnTails]) -> float | None:
    good = []
    for column in found:
        if column.spread is not None:
            errors = [
                p.error.value for p in (column.low, column.high) if p is not None and p.error is not None
            ]
            spread = SPREAD_AIM[0] <= column.spread.value <= SPREAD_AIM[1]
            good.append(spread and all(abs(error) < PERCENTILE_AIM for error in errors))
    return float(np.mean(good)) if good else None


def _masses_believable(found: Sequence[ColumnTails]) -> float | None:
    good = [abs(mass.difference.value) <= MASS_AIM for column in found for mass in column.masses]
    return float(np.mean(good)) if good else None


def _row(column: ColumnTails, held_out: dict[str, ColumnTails] | None, schema: Schema) -> dict[str, Any]:
    """What a report tells of one column, in its unit."""
    fresh = None if held_out is None else held_out.get(column.column)
    row = asdict(column) | {"unit": schema.column(column.column).unit}
    row["masses"] = list(row["masses"])
    for name in ("spread", "low", "high"):
        other = None if fresh is None else getattr(fresh, name)
        error = other if name == "spread" or other is None else other.error
        row[f"{name}_baseline"] = None if error is None else error.value
    return row


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
        f"standard deviation of missing cells a record, synthetic ({made:.3g}) over training ({real:.3g}); "
        "below 1, values that are missing together are not"
    )
    name = "missing_cells_spread"
    measures = [Measure(TAILS, name, ratio.value, True, what, ratio.lower, ratio.upper)]
    fresh = None if test is None else missing_cells(train, test, schema, level)
    if fresh is not None and fresh[2] is not None:
        measures.append(Measure(TAILS, f"{name}_baseline", fresh[2].value, True, _HELD_OUT))
    data = {"train": real, "synthetic": made, "ratio": asdict(ratio)}
    return Findings(tuple(measures), (Detail("missing_cells", "missing_cells", True, data),))


def _of_single_columns(
    found: Sequence[SingleColumn], baseline: Sequence[SingleColumn] | None, reference: str
) -> Findings:
    if not found:
        return Findings()
    what = f"AUC of telling synthetic from {reference} records by one column alone; 0.5 is best"
    worst = max(found, key=lambda entry: entry.auc.value)
    text = f"{what}; of the worst column, {worst.column}"
    end = worst.auc
    measures = [Measure(SINGLE, "single_column_auc_worst", end.value, True, text, end.lower, end.upper)]
    chance = {entry.column: entry.auc.value for entry in baseline or ()}
    if chance:
        value = max(chance.values())
        measures.append(Measure(SINGLE, "single_column_auc_worst_baseline", value, True, _HELD_OUT))
    for entry in found:
        name, end = f"single_column_auc[{entry.column}]", entry.auc
        measures.append(Measure(SINGLE, name, end.value, True, what, end.lower, end.upper))
    rows = [asdict(entry) | {"baseline": chance.get(entry.column)} for entry in found]
    detail = Detail("single_columns", "single_columns", True, {"reference": reference, "rows": rows})
    return Findings(tuple(measures), (detail,))
