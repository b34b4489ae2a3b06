"""Do synthetic patients develop as real ones do? Features of patients, and the comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd

from dpsynth.checks import Counted, few
from dpsynth.evaluation import row_statistics as row
from dpsynth.evaluation.discriminator import FOLDS, discriminate
from dpsynth.evaluation.effects import CAUTION, add_regression
from dpsynth.evaluation.resemblance import violations
from dpsynth.evaluation.results import Findings, Measure, Row, Table
from dpsynth.evaluation.row_statistics import (
    CellCounts,
    Resampled,
    RowStatistic,
    distance_interval,
    follow_up,
    interval,
    kaplan_meier,
    kolmogorov_smirnov,
    mixed_models,
    survival_distance,
    total_variation,
)
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import COMPARED, Progress, Tables, on_part, silent
from dpsynth.patients.histories import Histories
from dpsynth.patients.schema import PatientSchema
from dpsynth.patients.series import Floats, Standardised, packed, trend
from dpsynth.table.kinds.category import categories_at
from dpsynth.table.schema import Column, Schema
from dpsynth.table.suggestions import count_rules, suggested

# ------------------------------------------------------------------------------------------------
# One row of features for each patient, from which a classifier separates synthetic from real patients.
#
# A generator may match the levels of patients exactly. So the features are other functions of the rows. They
# are the smallest and the largest value, the slope over time, the mean absolute step, the mean gap, and the
# rows with each category.
#: Categories of a column whose rows are counted: the first ones of its list.
_COUNTED = 12


def patient_features(histories: Histories, schema: PatientSchema) -> tuple[pd.DataFrame, Schema]:
    """Features of N patients with their schema, whose bounds follow from those of the rows.

    Every name ends in brackets. So no feature can have the name of another.
    """
    columns: list[Column] = []
    values: dict[str, object] = {}

    def add(of: str, what: str, numbers: Floats, lower: float, upper: float) -> None:
        bounds = {"lower": lower, "upper": upper if upper > lower else lower + 1.0}
        columns.append(Column(name=f"{of} ({what})", kind="continuous", missing=True, **bounds))
        values[columns[-1].name] = numbers

    for name in map(str, histories.patients):
        columns.append(schema.column(name).model_copy(update={"name": f"{name} (patient)"}))
        values[columns[-1].name] = histories.patients[name]
    times, rows = histories.numbers[schema.order], histories.rows
    add(schema.order, "rows", rows.astype(np.float64), 1, schema.most)
    # A clock that hardly moves would give slopes without a bound.
    least = 1.0
    if schema.timed:
        order = schema.clock
        length = order.bounds[1] - order.bounds[0]
        least = order.resolution or length / 1000
        span = np.nanmax(times, axis=1, initial=-np.inf) - times[:, 0]
        gap = np.where(rows > 1, span / np.maximum(rows - 1, 1), np.nan)
        add(schema.order, "span", span, 0, length)
        add(schema.order, "mean gap", gap, 0, length)
    for column in schema.variables:
        name, (packed_values, at) = column.name, packed(histories.numbers[column.name], times)
        own, clock = Standardised.of(packed_values), Standardised.of(at)
        several, steps = own.count > 1, np.maximum(own.count - 1, 1)
        changes = np.diff(packed_values, axis=1)
        if column.missing:
            add(name, "measured", own.count / rows, 0, 1)
        if not column.is_numeric:
            columns.append(column.model_copy(update={"name": f"{name} (first)", "missing": True}))
            values[columns[-1].name] = pd.Series(categories_at(column, packed_values[:, 0]), dtype=object)
            changed = np.nansum(np.abs(changes) > 0, axis=1)
            add(name, "changes", np.where(several, changed / steps, np.nan), 0, 1)
            for code, category in enumerate(column.categories[:_COUNTED]):
                counts = (packed_values == code).sum(axis=1).astype(np.float64)
                add(name, f"rows with {category}", counts, 0, schema.most)
            continue
        lower, upper = column.bounds
        high = upper - lower
        ends = [np.where(np.isnan(packed_values), end, packed_values) for end in (np.inf, -np.inf)]
        slope = trend(own, clock) * own.sd / np.maximum(clock.sd, least)
        step = np.nansum(np.abs(changes), axis=1) / steps
        for what, numbers, fewest, low, top in (
            ("mean", own.mean, 1, lower, upper),
            ("smallest", ends[0].min(axis=1), 1, lower, upper),
            ("largest", ends[1].max(axis=1), 1, lower, upper),
            ("standard deviation", own.sd, 2, 0.0, high),
            ("slope", slope, 2, -high / least, high / least),
            ("mean step", step, 2, 0.0, high),
        ):
            add(name, what, np.where(own.count >= fewest, numbers, np.nan), low, top)
    return pd.DataFrame(values), Schema(columns=tuple(columns))


# ------------------------------------------------------------------------------------------------
# Do synthetic patients develop as real ones do? Rows, gaps, lags, spread, transitions, mixed models.
#
# It runs only if patients have several rows. Training patients stand beside synthetic ones. Intervals of
# differences and of distances come from patients drawn with replacement, in both tables. Distances also have
# their value between training and held-out patients (``_baseline``). Real rows are read without noise, so
# all numbers of theirs are confidential.

GROUP = "Patients over time"

#: the tables that are compared, in this order everywhere
NAMES: tuple[Table, Table] = ("synthetic", "train")
Sides = tuple[Resampled, Resampled]

#: values later, of the correlations that are measures
LAGS = (1, 3, 8)
#: lags that are drawn
_DRAWN_LAGS = 10
#: patients below which a number of a table is not given
FEWEST = 30
#: days within which a row after another counts as a return
RETURN_DAYS = 30
#: percentiles of gaps
_PERCENTILES = (10, 50, 90)
#: drawn patients of each table, and numbers that are drawn
PATIENTS_DRAWN, NUMBERS_DRAWN = 20, 4


def trajectories(
    tables: Tables, settings: Settings, rng: np.random.Generator, progress: Progress = silent
) -> Findings:
    """Compare the rows of synthetic patients with those of the training patients.

    The real-versus-synthetic classifier compares with held-out patients if there are some. Drawn patients are
    random ones of each table.
    """
    schema = tables.patients
    assert schema is not None
    # A generator each: what is drawn of the synthetic table does not depend on the real one.
    resampling, mixing, *drawing = rng.spawn(4)
    synthetic, train = (Resampled.of(tables.histories[name], resampling) for name in NAMES)
    sides = (synthetic, train)
    test = tables.histories.get("test")
    fresh = None if test is None else Resampled.of(test, resampling, resamples=0)
    level = settings.level
    measures = [*_rows(sides, fresh, schema, level)]
    if schema.timed:
        measures += _gaps(sides, fresh, schema, level)
    progress(0.2)
    for column in schema.variables:
        measures += _variable(sides, column, schema.most, level)
    progress(0.4)
    measures += [*_within_rows(sides, schema, level), *_courses(sides, schema, level)]
    measures += _broken_rules(tables, schema, level)
    progress(0.5)
    found = Findings(measures)
    found.join(*(_mixed(tables, column.name, level) for column in schema.variables if column.is_numeric))
    progress(0.6)
    found.join(_discrimination(tables, schema, settings, mixing))
    for name, own in zip(NAMES, drawing, strict=True):
        for frame, rows in _drawn(tables.histories[name], schema, own):
            marked = ({"table": name, **cells} for cells in rows)
            found.frame(frame, marked, confidential=name != "synthetic")
    return found


def _both(
    name: str, found: Sequence[RowStatistic], what: str, level: float, of: str = ""
) -> Iterator[Measure]:
    """A number of the synthetic and of the training table, and the difference with its interval."""
    resampled: list[Floats] = []
    for table, (numbers, patients) in zip(NAMES, found, strict=True):
        text = f"{what}, {table}"
        if patients < FEWEST:
            numbers = np.full(len(numbers), np.nan)
            text += f": not defined, as fewer than {FEWEST} patients have such rows"
        elif np.isnan(numbers[0]):
            text += ": not defined, as it does not vary"
        resampled.append(numbers)
        yield Measure(GROUP, f"{name}_{table}{of}", float(numbers[0]), table != "synthetic", text)
    difference = resampled[0] - resampled[1]
    if not np.isnan(difference[0]):
        text = "synthetic minus train, interval over the patients of both"
        yield Measure.estimated(GROUP, f"{name}_difference{of}", interval(difference, level), text)


def _distance(
    name: str, values: Floats, what: str, level: float, baseline: Floats | None, of: str = ""
) -> Iterator[Measure]:
    """A distance with its interval, and that of held-out patients."""
    if np.isnan(values[0]):
        yield Measure(GROUP, f"{name}{of}", None, True, f"{what}: not defined, as a table has no such rows")
        return
    text = f"{what}, interval over the patients of both tables"
    yield Measure.estimated(GROUP, f"{name}{of}", distance_interval(values, level), text)
    if baseline is not None and not np.isnan(baseline[0]):
        text = "the same between training and held-out patients"
        yield Measure(GROUP, f"{name}_baseline{of}", float(baseline[0]), True, text)


def _rows(sides: Sides, fresh: Resampled | None, schema: PatientSchema, level: float) -> Iterator[Measure]:
    made, real = sides
    what = "mean number of rows a patient"
    yield from _both("rows_mean", [row.mean_rows(side) for side in sides], what, level)

    def apart(other: Resampled) -> Floats:
        first, second = (side.histories.rows.astype(np.float64)[:, None] for side in (real, other))
        return CellCounts.of(first, second)[0].distances(real, other, total_variation)

    what = "total variation distance of the number of rows a patient"
    yield from _distance("rows_tvd", apart(made), what, level, None if fresh is None else apart(fresh))


def _gaps(sides: Sides, fresh: Resampled | None, schema: PatientSchema, level: float) -> Iterator[Measure]:
    made, real = sides
    order = schema.clock

    def apart(other: Resampled) -> Floats:
        gaps = (row.gaps_of(side.histories.numbers[order.name]) for side in (real, other))
        return CellCounts.of(*gaps)[0].distances(real, other, kolmogorov_smirnov)

    what = "Kolmogorov-Smirnov distance of the times between rows"
    yield from _distance("gap_ks", apart(made), what, level, None if fresh is None else apart(fresh))
    quantiles = [row.gap_quantiles(side, order.name, [p / 100 for p in _PERCENTILES]) for side in sides]
    for percentile, *found in zip(_PERCENTILES, *quantiles, strict=True):
        what = f"{percentile} % of the times between rows are at most this"
        what += f", in {order.unit}" if order.unit else ""
        yield from _both(f"gap_p{percentile}", found, what, level)
    if in_days(order):
        what = f"share of rows within {RETURN_DAYS} days after the last"
        found = [row.short_gaps(side, order.name, RETURN_DAYS) for side in sides]
        yield from _both(f"return_{RETURN_DAYS}_days", found, what, level)


def in_days(order: Column) -> bool:
    """Whether the column that orders rows counts days."""
    return (order.unit or "").casefold() in ("d", "day", "days")


def _variable(sides: Sides, column: Column, most: int, level: float) -> Iterator[Measure]:
    name, of = column.name, f"[{column.name}]"
    if column.missing:
        what = "share of rows with a value"
        yield from _both("measured", [row.measured_share(side, name) for side in sides], what, level, of)
    if not column.is_numeric:
        yield from _category(sides, column, level)
        return
    for lag in (lag for lag in LAGS if lag < most):
        what = f"correlation of a patient's values that are {lag} apart"
        found = [row.lag_correlation(side, name, lag) for side in sides]
        yield from _both(f"lag{lag}", found, what, level, of)
    what = "standard deviation of patients' means"
    yield from _both("between_sd", [row.between_sd(side, name) for side in sides], what, level, of)
    what = "standard deviation around the patient's mean"
    yield from _both("within_sd", [row.within_sd(side, name) for side in sides], what, level, of)


def _category(sides: Sides, column: Column, level: float) -> Iterator[Measure]:
    name, size, (made, real) = column.name, len(column.categories), sides
    steps = (row.transitions(side.histories.numbers[name], size) for side in (real, made))
    cells, codes = CellCounts.of(*steps)
    origin = codes.astype(np.int64) // size
    what = "mean total variation distance of the next category given the last"
    apart = cells.distances(real, made, lambda p, q: row.transition_distance(origin, p, q))
    yield from _distance("transition_tvd", apart, what, level, None, f"[{name}]")
    what = "share of patients whose category changes, of those with two values"
    yield from _both("changed", [row.changed_share(side, name) for side in sides], what, level, f"[{name}]")


def _within_rows(sides: Sides, schema: PatientSchema, level: float) -> Iterator[Measure]:
    numbers = [column.name for column in schema.variables if column.is_numeric]
    errors = {}
    what = "correlation within a row of the distances from the patient's means"
    for pair in combinations(numbers, 2):
        of = f"[{pair[0]} | {pair[1]}]"
        both = [row.row_correlation(side, *pair) for side in sides]
        for measure in _both("row_correlation", both, what, level, of):
            yield measure
            if measure.name.startswith("row_correlation_difference"):
                errors[" and ".join(pair)] = abs(float(measure.value or 0.0))
    if errors:
        worst = max(errors, key=lambda pair: errors[pair])
        text = f"mean |difference| of the correlations within a row, largest for {worst}"
        yield Measure(GROUP, "row_correlation_error", float(np.mean([*errors.values()])), True, text)


def _courses(sides: Sides, schema: PatientSchema, level: float) -> Iterator[Measure]:
    """Columns that should never fall, and terminal events."""
    made, real = sides
    for name in schema.increasing:
        what = "share of steps to the next value that fall"
        yield from _both("falls", [row.falling_share(side, name) for side in sides], what, level, f"[{name}]")
    for name in schema.terminal:
        apart = survival_distance(real, made, schema.order, name, FEWEST)
        what = "largest difference of the shares of patients without the event over time (Kaplan-Meier)"
        yield from _distance("survival_distance", apart, what, level, None, f"[{name}]")


def _broken_rules(tables: Tables, schema: PatientSchema, level: float) -> Iterator[Measure]:
    """Shares of rows that break each rule."""
    table = schema.table
    count = partial(count_rules, table, rules=table.rules, suggestions=suggested(schema))
    synthetic, train = (tables.rows[name] for name in NAMES)
    yield from violations(count, synthetic, train, units=len(tables.train), level=level, what="rows")


def _mixed(tables: Tables, name: str, level: float) -> Findings:
    """Standard deviations and effects of the mixed model of one number."""
    real, made, effects = mixed_models(tables, name, level)
    found = Findings()
    for what in ("between", "within"):
        for table, side in (("synthetic", made), ("train", real)):
            text = f"standard deviation {what} patients in the mixed model, {table}"
            text += f": not defined, as {side.fit.problem}" if side.fit.problem else ""
            value = float(getattr(side, what))
            measure = Measure(GROUP, f"mixed_{what}_sd_{table}[{name}]", value, table == "train", text)
            found.measures.append(measure)
    if not effects:
        return found
    clear = [
        (term, own.value / known.value - 1.0)
        for term, known in real.fit.coefficients.items()
        if (own := made.fit.coefficients.get(term)) is not None and known.lower * known.upper > 0
    ]
    what = "largest |difference| of a clear effect in the mixed model, as a part of the real effect"
    worst = max((abs(error) for _, error in clear), default=None)
    said = few([f"{term} {error:+.0%}" for term, error in clear])
    text = f"{what}: {said or 'not defined, as no effect is clear in the real table'}"
    found.measures.append(Measure(GROUP, f"mixed_effect_error[{name}]", worst, True, text))
    assert tables.patients is not None
    predictors = " + ".join(row.patient_columns(tables))
    add_regression(
        found,
        f"effects[mixed: {name}]",
        effects,
        {"real": real.fit, "synthetic": made.fit},
        study=None,
        model="mixed",
        formula=f"mixed: {name} ~ {predictors} + (1 | {tables.patients.unit})",
        outcome=name,
        event=None,
        measure="difference",
        level=level,
        note=(
            "All rows of a patient are used. The model has a random intercept for each patient "
            f"(restricted maximum likelihood). {Counted.PATIENTS.fill(CAUTION)}"
        ),
    )
    return found


def _discrimination(
    tables: Tables, schema: PatientSchema, settings: Settings, rng: np.random.Generator
) -> Findings:
    reference = "test" if "test" in tables.histories else "train"
    said = "held-out" if reference == "test" else "training"
    (real, of), (made, _) = (
        patient_features(tables.histories[name], schema) for name in (reference, "synthetic")
    )
    limit = settings.most(of, COMPARED)
    total = min(len(real), len(made))
    if min(total, limit) < FOLDS:
        why = f"not defined: at least {FOLDS} patients of each table are needed to separate them"
        return Findings([Measure(GROUP, "patient_auc", None, True, why)])
    apart = discriminate(real, made, of, rng=rng, limit=limit, level=settings.level)
    what = (
        f"AUC of separating synthetic from {said} patients by their rows, {apart.size:,} of each, 0.5 is best"
    )
    measures = [Measure.estimated(GROUP, f"patient_auc_{name}", auc, what) for name, auc in apart.auc.items()]
    what = "what gradient boosting loses of its AUC when the feature of patients is shuffled"
    measures += [
        Measure.estimated(GROUP, f"patient_auc_loss[{name}]", loss, what)
        for name, loss in apart.importance.items()
    ]
    return on_part(
        measures,
        "separating synthetic from real patients",
        min(limit, total),
        total,
        settings.level,
        Counted.PATIENTS,
    )


def _drawn(
    histories: Histories, schema: PatientSchema, rng: np.random.Generator
) -> Iterator[tuple[str, list[Row]]]:
    """Rows of frames of one table: rows a patient, gaps, lags, terminal events, and a few random patients.

    ``gaps`` are quantiles of the times between rows. ``lags`` are correlations of a number with the value so
    many later, None for too few patients. ``events`` are shares of patients without a terminal event at times
    since the first row. ``paths`` are numbers of a patient at such times. ``clock`` names the unit of time.
    """
    unit = schema.clock.unit if schema.timed else "number of the row"
    clock = f"{schema.order}, {unit}" if unit not in (None, schema.order) else schema.order
    alone = Resampled.of(histories, rng, resamples=0)
    counts = np.bincount(histories.rows, minlength=schema.most + 1)[1:]
    shares = (counts / len(histories.rows)).tolist()
    yield "rows_per_patient", [{"rows": place + 1, "share": share} for place, share in enumerate(shares)]
    gaps = row.gaps_of(histories.numbers[schema.order])
    gaps = gaps[~np.isnan(gaps) & schema.timed]
    steps = np.linspace(0, 1, 101)
    lengths = np.quantile(gaps, steps).tolist() if len(gaps) else []
    quantiles = zip(steps.tolist(), lengths, strict=False)
    yield "gaps", [{"clock": clock, "share": share, "gap": gap} for share, gap in quantiles]
    numbers = [column for column in schema.variables if column.is_numeric][:NUMBERS_DRAWN]
    for column in numbers:
        lags = range(1, min(schema.most, _DRAWN_LAGS + 1))
        found = [row.lag_correlation(alone, column.name, lag) for lag in lags]
        known = [own.patients >= FEWEST and not np.isnan(own.numbers[0]) for own in found]
        values = [
            float(own.numbers[0]) if is_known else None for own, is_known in zip(found, known, strict=True)
        ]
        cells = zip(lags, values, strict=True)
        yield "lags", [{"column": column.name, "lag": lag, "correlation": value} for lag, value in cells]
    for name in schema.terminal:
        curve = _curve(histories, schema.order, name)
        yield (
            "events",
            [{"event": name, "clock": clock, "time": time, "share": share} for time, share in curve],
        )
    times, shuffled = histories.numbers[schema.order], rng.permutation(len(histories.rows))
    for column in numbers:
        values_of = histories.numbers[column.name]
        chosen = [who for who in shuffled.tolist() if not np.isnan(values_of[who]).all()][:PATIENTS_DRAWN]
        of = {"column": column.name, "unit": column.unit, "clock": clock}
        for place, who in enumerate(chosen):
            present = ~np.isnan(values_of[who])
            path = zip(
                (times[who] - times[who, 0])[present].tolist(), values_of[who][present].tolist(), strict=True
            )
            yield "paths", [{**of, "patient": place, "time": time, "value": value} for time, value in path]


def _curve(histories: Histories, order: str, event: str) -> list[tuple[float, float]]:
    """Share of patients without the event, at most 200 steps of it."""
    follow, ended = follow_up(histories, order, event)
    times, place = np.unique(follow, return_inverse=True)
    share, _ = kaplan_meier(place, ended, np.ones(len(follow)), len(times))
    kept = np.unique(np.linspace(0, len(times) - 1, 200).astype(np.int64))
    return [*zip(times[kept].tolist(), share[kept].tolist(), strict=True)]
