"""Does the synthetic table look like the real one? Columns, pairs of columns, whole records, and rules.

Each distance has two values for comparison. One is its value between training and held-out records
(``_baseline``), if given. The other is its mean over two samples of one distribution (``_chance``). Real
records are read without noise. Numbers of the synthetic table and the public schema alone are not
confidential.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd

from dpsynth.evaluation.details import Table
from dpsynth.evaluation.records import Findings, Measure
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.similarity.association_errors import association_findings
from dpsynth.evaluation.similarity.broken_rules import violations
from dpsynth.evaluation.similarity.columns import (
    ColumnDifference,
    category_coverage,
    compare_column,
    marginal,
    ranges_covered,
)
from dpsynth.evaluation.similarity.conformity import conformity_measures
from dpsynth.evaluation.similarity.discriminator import FOLDS, Discrimination, discriminate
from dpsynth.evaluation.similarity.pairs import blocks
from dpsynth.evaluation.tables import COMPARED, Progress, Tables, on_part, silent
from dpsynth.table.rule_counts import count_rules
from dpsynth.table.schema import Schema
from dpsynth.table.suggestions import suggested

GROUP = "Similarity to the training records"
_TVD = "total variation distance of single columns"
_HELD_OUT = "the same between training and held-out records"

_estimated = partial(Measure.estimated, GROUP)


def similarity(
    tables: Tables, settings: Settings, rng: np.random.Generator, progress: Progress = silent
) -> Findings:
    """Compare a synthetic table with the real one it stands for.

    Values outside the schema are counted in the synthetic table as it came. The real-versus-synthetic
    classifier uses a random part of each table, everything else whole tables. More than 200 columns are
    compared by a random part of their pairs, unless all records are asked for.
    """
    schema, level = tables.schema, settings.level
    limit = settings.most(schema, COMPARED)
    synthetic, train, test = tables.synthetic, tables.train, tables.test
    # First of all draws: those below are as many as real records make them, and a heat map names the columns.
    scored = None if settings.records == "all" else blocks(len(schema), rng)

    def against(other: pd.DataFrame) -> list[ColumnDifference]:
        return [compare_column(train[c.name], other[c.name], c, rng=rng, level=level) for c in schema.columns]

    columns = against(synthetic)
    baseline = None if test is None else against(test)
    progress(0.15)
    measures = [*_means(columns, baseline)]
    pairs = association_findings(synthetic, train, test, schema, scored, group=GROUP)
    measures += pairs.measures
    progress(0.3)
    apart = None
    if min(len(train), len(synthetic), limit) >= FOLDS:
        apart = discriminate(train, synthetic, schema, rng=rng, limit=limit, level=level)
    progress(0.95)
    total = min(len(train), len(synthetic))
    told = on_part(
        _discrimination(apart), "separating synthetic from real records", min(limit, total), total, level
    )
    measures += told.measures
    measures += _coverage(synthetic, train, test, schema)
    measures += _per_column(columns)
    measures += conformity_measures(tables.raw["synthetic"], tables.raw_schema, tables.left_out)
    # suggestions are about rows: if patients have several, about these (see trajectories)
    asked = suggested(schema) if tables.patients is None else ()
    count = partial(count_rules, schema, rules=settings.rules(schema), suggestions=asked)
    measures += violations(count, synthetic, train, units=len(train), level=level)

    frames: dict[Table, pd.DataFrame] = {"synthetic": synthetic, "train": train}
    frames |= {} if test is None else {"test": test}
    details = [*pairs.details]
    details += [marginal(frame, column, name) for column in schema.columns for name, frame in frames.items()]
    return Findings(tuple(measures), tuple(details), (*pairs.parts, *told.parts))


def _means(columns: list[ColumnDifference], baseline: list[ColumnDifference] | None) -> Iterator[Measure]:
    mean = float(np.mean([entry.tvd.estimate.value for entry in columns]))
    yield Measure(GROUP, "tvd_mean", mean, True, f"{_TVD}, mean of columns")
    chance = float(np.mean([entry.tvd.chance for entry in columns]))
    what = "the same for two samples of one distribution, of these sizes"
    yield Measure(GROUP, "tvd_mean_chance", chance, True, what)
    if baseline is not None:
        fresh = float(np.mean([entry.tvd.estimate.value for entry in baseline]))
        yield Measure(GROUP, "tvd_mean_baseline", fresh, True, _HELD_OUT)
    gaps = [abs(c.missing_difference.value) for c in columns if c.missing_difference is not None]
    if gaps:
        what = "mean |difference| of missing-value rates, columns that may miss values"
        yield Measure(GROUP, "missing_rate_error", float(np.mean(gaps)), True, what)


def _discrimination(apart: Discrimination | None) -> Iterator[Measure]:
    if apart is None:
        why = f"not defined: at least {FOLDS} records of each table are needed to separate them"
        yield Measure(GROUP, "discriminator_auc", None, True, why)
        return
    for name, estimate in apart.auc.items():
        what = f"AUC of separating synthetic from training records, {apart.size:,} of each, 0.5 is best"
        yield _estimated(f"discriminator_auc_{name}", estimate, what)
    for column, loss in apart.importance.items():
        what = "what gradient boosting loses of its AUC when the column is shuffled"
        yield _estimated(f"discriminator_loss[{column}]", loss, what)


def _coverage(
    synthetic: pd.DataFrame, train: pd.DataFrame, test: pd.DataFrame | None, schema: Schema
) -> Iterator[Measure]:
    found = category_coverage(train, synthetic, schema)
    if found is not None:
        what = "share of the training records' categories that occur"
        if not found.categories:
            yield Measure(GROUP, "category_coverage", None, True, f"{what}: there is none")
        else:
            yield Measure(GROUP, "category_coverage", found.value, True, f"{what}, of {found.categories:,}")
            what = "the same for a fresh draw of as many records, on average"
            yield Measure(GROUP, "category_coverage_chance", found.chance, True, what)
    ranges = ranges_covered(train, synthetic, schema)
    if ranges:
        value = float(np.mean(list(ranges.values())))
        what = "share of the training records' range of numbers that is covered, mean of columns"
        yield Measure(GROUP, "range_coverage", value, True, what)
        held = ranges_covered(train, test, schema) if test is not None else {}
        if held:
            what = "the same by held-out records"
            yield Measure(GROUP, "range_coverage_baseline", float(np.mean(list(held.values()))), True, what)


def _per_column(columns: list[ColumnDifference]) -> Iterator[Measure]:
    for entry in columns:
        what = f"{_TVD}, {entry.tvd.chance:.2g} by chance"
        yield _estimated(f"tvd[{entry.column}]", entry.tvd.estimate, what)
    for entry in columns:
        gap = entry.missing_difference
        if gap is None:
            continue
        name = f"[{entry.column}]"
        what = "share of missing values, synthetic"
        yield Measure(GROUP, f"missing_rate_synthetic{name}", entry.missing_synthetic, False, what)
        what = "share of missing values, train"
        yield Measure(GROUP, f"missing_rate_train{name}", entry.missing_real, True, what)
        what = "synthetic minus train, interval over the records of both"
        yield _estimated(f"missing_rate_difference{name}", gap, what)
