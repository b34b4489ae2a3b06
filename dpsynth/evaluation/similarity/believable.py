"""Would somebody who knows patients believe the columns? Spread, tails, point masses, habits of recording.

The numbers of :mod:`~dpsynth.evaluation.similarity.tails` and of
:mod:`~dpsynth.evaluation.similarity.single_column`, each beside what held-out records give, as measures and
as the tables that a report draws. All of them read real records without payment: internal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.evaluation.estimates import Estimate
from dpsynth.evaluation.progress import Progress, silent
from dpsynth.evaluation.records import Detail, Findings, Measure
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.similarity.single_column import SingleColumn, single_columns
from dpsynth.evaluation.similarity.tails import (
    MASS_AIM,
    PERCENTILE_AIM,
    SPREAD_AIM,
    ColumnTails,
    column_tails,
    missing_cells,
)
from dpsynth.evaluation.subsample import SORTED, on_part
from dpsynth.evaluation.tables import Tables
from dpsynth.table.schema import Schema

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
