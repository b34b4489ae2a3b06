"""Does the synthetic table look like the real one? Columns, rules, conformity, whole records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpsynth.checks import Counted, few
from dpsynth.errors import DataError, InputError
from dpsynth.evaluation.associations import association_blocks, association_findings
from dpsynth.evaluation.discriminator import FOLDS, Discrimination, discriminate
from dpsynth.evaluation.estimates import Estimate, share, share_difference
from dpsynth.evaluation.results import Findings, Measure, Row, Table
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import COMPARED, Progress, Tables, on_part, silent
from dpsynth.table.bars import bar_edges, bar_grid
from dpsynth.table.conform import only_values
from dpsynth.table.draft import rarely_held
from dpsynth.table.kinds.category import category_codes
from dpsynth.table.kinds.number import without_special
from dpsynth.table.schema import Column, Schema
from dpsynth.table.suggestions import RuleCount, count_rules, suggested

# ------------------------------------------------------------------------------------------------
# One column in two tables: distance of the distributions, coverage of its values, histogram.
#
# Two samples of one distribution never agree. The total variation distance therefore stands beside its mean
# over two samples of these sizes from the pooled table. The distance of the samples and that of the
# populations differ by at most a sum: each sample's distance from its own population (triangle inequality).
# The interval is the samples' distance plus and minus a quantile of that sum over multinomial resamples of
# both tables. It is wide but valid near 0 too, unlike a bootstrap percentile interval of a distance.
#
# Generators lose rare values first. The share of categories that occur stands beside its mean in a fresh
# sample of as many records.
#
# The bins of a histogram come from the schema alone, never from records. A synthetic table's histogram may
# therefore be shown wherever the table itself may.

Floats = NDArray[np.float64]

_DRAWS = 200


@dataclass(frozen=True)
class Difference:
    """One distance between two samples. The interval is for the populations, and conservative."""

    estimate: Estimate  # of the distance between the populations; the interval is conservative
    chance: float  # its mean over two samples of these sizes from the pooled sample


@dataclass(frozen=True)
class ColumnDifference:
    """Differences of the distributions of one column, for missing values only if the schema allows them."""

    column: str
    tvd: Difference
    missing_real: float | None
    missing_synthetic: float | None
    missing_difference: Estimate | None


def compare_column(
    real: pd.Series,
    synthetic: pd.Series,
    column: Column,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
) -> ColumnDifference:
    """Compare one column of two tables, with records taken as independent and cells held fixed."""
    tvd = _difference(cell_counts(real, synthetic, column), rng, level)
    if not column.missing:
        return ColumnDifference(column.name, tvd, None, None, None)
    made, known = (share(int(s.isna().sum()), len(s), level) for s in (synthetic, real))
    return ColumnDifference(column.name, tvd, known.value, made.value, share_difference(made, known))


def cell_counts(
    real: pd.Series, synthetic: pd.Series, column: Column, bins: int = 20
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the values of two columns in common cells, missing ones in the first.

    Every declared category or number is a cell if there are at most ``bins`` of them. Otherwise the quantiles
    of the real values cut the cells. The distance is then as sensitive on a skewed column as on an even one.
    """
    cells = [_cells(column, series, real, bins) for series in (real, synthetic)]
    size = max(int(codes.max()) for codes in cells) + 1
    first, second = (np.bincount(codes, minlength=size) for codes in cells)
    return first, second


def _cells(column: Column, series: pd.Series, real: pd.Series, bins: int) -> NDArray[np.int64]:
    """The cell of each value, 0 for a missing one. Quantiles of ``real`` cut those of many numbers."""
    if not column.is_numeric:
        return category_codes(column, series) + 1
    values = column.code(series)
    n_values = column.n_values
    if n_values is not None and n_values <= bins:
        steps = np.arange(n_values - 1) + 0.5
        edges = float(column.lower or 0.0) + float(column.resolution or 1.0) * steps
    else:
        reference = column.code(real)
        reference = reference[~np.isnan(reference)]
        inner = np.linspace(0.0, 1.0, bins + 1)[1:-1]
        edges = np.unique(np.quantile(reference, inner)) if len(reference) else np.empty(0)
    return np.where(np.isnan(values), 0, np.searchsorted(edges, values, side="right") + 1)


def _difference(counts: Sequence[NDArray[np.int64]], rng: np.random.Generator, level: float) -> Difference:
    """Distance of two samples from their counts, with its interval and its chance value."""

    def distance(gap: Floats) -> Floats:
        return 0.5 * np.abs(gap).sum(axis=-1)

    sizes = [int(count.sum()) for count in counts]
    shares = [count / size for count, size in zip(counts, sizes, strict=True)]
    pooled = (counts[0] + counts[1]) / sum(sizes)
    value = float(distance(shares[0] - shares[1]))
    own = [
        distance(rng.multinomial(size, p, size=_DRAWS) / size - p)
        for size, p in zip(sizes, shares, strict=True)
    ]
    stray = float(np.quantile(own[0] + own[1], level, method="higher"))
    one, other = (rng.multinomial(size, pooled, size=_DRAWS) / size for size in sizes)
    chance = float(distance(one - other).mean())
    return Difference(Estimate(value, max(value - stray, 0.0), min(value + stray, 1.0)), chance)


def marginal(frame: pd.DataFrame, column: Column, table: Table) -> list[Row]:
    """Count a column of a conformed table over its public bins, a row each.

    ``cell`` is ``bin`` with its ends, or ``category`` with its label. On a logarithmic scale the first bin
    may be a cell for 0 (``zero``). ``missing`` is the cell of missing values, and ``special`` that of all
    special codes together, where the column has them. Shares are of *all* records, and sum to 1. Bins of a
    column recorded in steps hold whole steps. Edges lie half a step outside the recorded values.
    """
    grid = bar_grid(column)
    counts = np.bincount(grid.encode(frame[column.name]), minlength=grid.size)
    shares = [float(count) / len(frame) for count in counts]
    cells: list[tuple[str, float | None, float | None, str | None, float]]
    if column.is_numeric:
        edges = [float(edge) for edge in bar_edges(grid)]
        cells = [
            ("bin", low, high, None, share)
            for (low, high), share in zip(pairwise(edges), shares, strict=False)
        ]
        cells[:1] = [("zero", *cells[0][1:])] if column.has_zero_cell else cells[:1]
    else:
        cells = [
            ("category", None, None, str(category), share)
            for category, share in zip(column.categories, shares, strict=False)
        ]
    if column.missing:
        cells.append(("missing", None, None, None, shares[-1]))
    if column.special:
        coded = sum(shares[grid.present :][: len(column.special)])
        cells.append(("special", None, None, None, coded))
    of = {"column": column.name, "table": table, "unit": column.shown_unit, "scale": column.scale}
    names = ("cell", "lower", "upper", "label", "share")
    return [{**of, **dict(zip(names, cell, strict=True))} for cell in cells]


@dataclass(frozen=True)
class Covered:
    """Share of the real records' categories that occur in the synthetic table, all columns together."""

    value: float
    chance: float  # mean of the same share over fresh draws of as many records
    categories: int  # how many categories it is a share of; none gives shares of 0


def category_coverage(real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema) -> Covered | None:
    """Look up every real category in the synthetic table. None without columns of categories."""
    columns = [column for column in schema.columns if not column.is_numeric]
    if not columns:
        return None
    shares, present, chance = [], [], []
    for column in columns:
        counts, made = _counts(real, column), _counts(synthetic, column)
        shares.append(counts / max(int(counts.sum()), 1))
        present.append((made > 0).astype(np.float64))
        chance.append(-np.expm1(int(made.sum()) * np.log1p(-np.minimum(shares[-1], 1.0 - 1e-16))))
    counted = np.concatenate(shares) > 0
    weights = counted / max(int(counted.sum()), 1)
    value, expected = (float(weights @ np.concatenate(of)) for of in (present, chance))
    return Covered(value, expected, int(counted.sum()))


def range_coverage(real: ArrayLike, synthetic: ArrayLike) -> float | None:
    """Share of the real range of numbers that lies within the synthetic range, in [0, 1].

    Missing numbers are left out. For a single real value, whether the synthetic range holds it. None where a
    table has no value at all.
    """
    a, b = (np.asarray(numbers, dtype=np.float64) for numbers in (real, synthetic))
    a, b = a[~np.isnan(a)], b[~np.isnan(b)]
    if not len(a) or not len(b):
        return None
    low, high = float(a.min()), float(a.max())
    if high == low:
        return float(b.min() <= low <= b.max())
    return max(min(high, float(b.max())) - max(low, float(b.min())), 0.0) / (high - low)


def ranges_covered(real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema) -> dict[str, float]:
    """Return :func:`range_coverage` of every numeric column where it is defined."""
    pairs = {
        column.name: range_coverage(*(column.code(frame[column.name]) for frame in (real, synthetic)))
        for column in schema.columns
        if column.is_numeric
    }
    return {name: value for name, value in pairs.items() if value is not None}


def _counts(frame: pd.DataFrame, column: Column) -> NDArray[np.int64]:
    codes = category_codes(column, frame[column.name])
    return np.bincount(codes[codes >= 0], minlength=len(column.categories))


# ------------------------------------------------------------------------------------------------
# How many rows break each rule: declared ones, those asked of an evaluation, and those that names suggest.
#
# Counts of the synthetic table need no real record, so they may be shared with it. Those of the real table
# are confidential. They do not decide which suggestions are counted.

CONSTRAINTS = "Constraints"


def violations(
    count: Callable[[pd.DataFrame], Sequence[RuleCount]],
    synthetic: pd.DataFrame,
    train: pd.DataFrame,
    *,
    units: int,
    level: float,
    what: str = "records",
) -> Iterator[Measure]:
    """Yield the share of synthetic and of training rows, conformed, that break each rule and formula.

    ``count`` counts them in a frame. If several formulas are suggested for one column, such as for other
    units, only the one that fewest synthetic rows break is kept. ``units`` is the number of training rows, or
    of patients if they have several. Rows of one patient are not independent, and the intervals allow for it.
    """
    made, real = count(synthetic), count(train)
    for place in _kept(made):
        name = "constraint_violations" if made[place].declared else "suggestion_violations"
        text, broken, of_train = made[place].text, made[place].broken, real[place].broken
        said = f"share of synthetic {what} that break it, {broken:,} of {len(synthetic):,}"
        yield Measure(CONSTRAINTS, f"{name}_synthetic[{text}]", broken / len(synthetic), False, said)
        part = of_train / len(train)
        ends = share(round(part * units), units, level)
        said = f"share of train {what} that break it, {of_train:,} of {len(train):,}"
        yield Measure(CONSTRAINTS, f"{name}_train[{text}]", part, True, said, ends.lower, ends.upper)


def _kept(made: Sequence[RuleCount]) -> list[int]:
    """Positions of all counts, but only the best one of formulas suggested for the same column."""
    best: dict[str, int] = {}
    for place, count in enumerate(made):
        key = count.text if count.declared or count.column is None else count.column
        if key not in best or count.broken < made[best[key]].broken:
            best[key] = place
    return sorted(best.values())


# ------------------------------------------------------------------------------------------------
# Values that the public schema does not allow, counted in a table as it came.
#
# Conforming a table refuses such values or clips them. The counts say how often a generator produced them.
# They need no real record, so they may be shared with the table.

_KINDS = {
    "off_step": "numbers that are not on a declared step",
    "outside": "numbers outside the declared bounds",
    "undeclared": "values that are no number or no declared category",
    "missing": "missing values where none is allowed",
}


@dataclass(frozen=True)
class Conformity:
    """How many values of one column the schema does not allow, see :data:`_KINDS`."""

    column: str
    outside: int = 0
    off_step: int = 0
    undeclared: int = 0
    missing: int = 0


def values_not_allowed(frame: pd.DataFrame, schema: Schema) -> tuple[Conformity, ...]:
    """Count what the public schema does not allow in a frame as it came, before it is conformed.

    Examples
    --------
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=18, upper=90),))
    >>> values_not_allowed(pd.DataFrame({"age": [17, 40.5, "x", 60]}), schema)
    (Conformity(column='age', outside=1, off_step=1, undeclared=1, missing=0),)
    """
    # Columns with a formula that a table lacks are computed from the others.
    plain = [column.name for column in schema.columns if not (column.derived or column.read_as)]
    absent = [name for name in plain if name not in frame.columns]
    if absent:
        raise InputError(f"the table lacks the column {absent[0]!r} that the schema declares")
    given = (column for column in schema.columns if column.name in frame.columns)
    words = schema.missing_words
    return tuple(_conformity(only_values(column, frame[column.name], words), column) for column in given)


def conformity_measures(raw: pd.DataFrame, schema: Schema, left_out: int) -> Iterator[Measure]:
    """Yield how many values of a synthetic table, as it came, the schema does not allow, by kind.

    ``left_out``: the number of rows that no comparison reads, since they hold such a value that cannot be
    clipped or rounded.
    """
    what = "synthetic rows with a value that the schema does not allow. No comparison reads them"
    yield Measure(CONSTRAINTS, "rows_left_out", left_out, False, what)
    counts = values_not_allowed(raw, schema)
    for kind, what in _KINDS.items():
        bad = {entry.column: getattr(entry, kind) for entry in counts if getattr(entry, kind)}
        where = f": {few(bad)}" if bad else ""
        yield Measure(CONSTRAINTS, f"values_{kind}", sum(bad.values()), False, f"synthetic {what}{where}")


def rare_categories(tables: Tables) -> Iterator[Measure]:
    """Yield, for each list of categories or codes that nobody confirmed, how many of them few real rows hold.

    Confidential: it reads training and held-out rows without noise. Codes of a missing value are not counted,
    since no row has them after it is read.
    """
    real = [tables.rows.get(name, frame) for name, frame in (("train", tables.train), ("test", tables.test))]
    for column in tables.described.table.columns:
        if not (column.unconfirmed and (column.categories or column.special)):
            continue
        held = pd.concat([frame[column.name] for frame in real if frame is not None]).value_counts()
        rare, said = rarely_held(column, dict(held))
        yield Measure(CONSTRAINTS, f"rare_categories[{column.name}]", rare, True, said)


def undeclared_digits(raw: pd.DataFrame, schema: Schema, table: str) -> Findings:
    """List columns of a table that fits its schema with numbers between the declared steps.

    A file may hold 1.199951 for 1.2. Such digits separate tables without information about patients. They are
    rounded before comparison.
    """
    rows: list[Row] = []
    for column, numbers in _numeric(raw, schema):
        if column.resolution is not None and (off := _off_step(numbers, column)):
            step = {"step": column.resolution, "unit": column.shown_unit}
            rows.append({"table": table, "column": column.name, "count": off, **step})
    found = Findings()
    found.frame("finer_than_declared", rows, confidential=table != "synthetic")
    return found


def outside_bounds(raw: pd.DataFrame, schema: Schema, table: str) -> Findings:
    """List columns of a real table with numbers outside the declared bounds.

    They are clipped before fitting and before any comparison, so no other measure shows the loss. Half a step
    outside is rounding.
    """
    rows: list[Row] = []
    for column, numbers in _numeric(raw, schema):
        assert column.lower is not None and column.upper is not None
        slack = (column.resolution or 0.0) / 2 + 1e-9 * max(abs(column.lower), abs(column.upper))
        outside = int(((numbers < column.lower - slack) | (numbers > column.upper + slack)).sum())
        if outside:
            of = {"table": table, "column": column.name, "count": outside}
            of["of"] = int(np.isfinite(numbers).sum())
            bounds = {"lower": column.lower, "upper": column.upper, "unit": column.shown_unit}
            rows.append({**of, **bounds})
    found = Findings()
    found.frame("outside_bounds", rows, confidential=True)
    return found


def _numeric(raw: pd.DataFrame, schema: Schema) -> Iterator[tuple[Column, NDArray[np.float64]]]:
    """Numeric columns of a table as it came, NaN if there is no number. A derived one may be absent."""
    for column in schema.columns:
        if column.is_numeric and column.name in raw:
            values = only_values(column, raw[column.name], schema.missing_words)
            yield column, without_special(column, column.cell_numbers(values))


def _conformity(series: pd.Series, column: Column) -> Conformity:
    present = series[series.notna()]
    missing = 0 if column.missing else len(series) - len(present)
    if not column.is_numeric:
        codes, values = pd.factorize(present.astype(object))
        undeclared = 0
        if len(values) and not _all_declared(column, list(values)):
            bad = np.array([not _all_declared(column, [value]) for value in values])
            undeclared = int(bad[codes].sum())
        return Conformity(column.name, undeclared=undeclared, missing=missing)
    numbers = column.cell_numbers(present)
    undeclared = int(np.isnan(numbers).sum())
    numbers = without_special(column, numbers)
    numbers = numbers[~np.isnan(numbers)]
    assert column.lower is not None and column.upper is not None
    outside = int(((numbers < column.lower) | (numbers > column.upper)).sum())
    off_step = _off_step(numbers, column) if column.resolution is not None else 0
    return Conformity(column.name, outside, off_step, undeclared, missing)


def _off_step(numbers: NDArray[np.float64], column: Column) -> int:
    finite = numbers[np.isfinite(numbers)]
    steps = (finite - column.lower) / column.resolution
    return int((np.abs(steps - np.rint(steps)) > 1e-6 * np.maximum(1.0, 1e-6 * np.abs(steps))).sum())


def _all_declared(column: Column, values: list[object]) -> bool:
    try:
        Schema(columns=(column,)).check(pd.DataFrame({column.name: pd.Series(values, dtype=object)}))
    except DataError:
        return False
    return True


# ------------------------------------------------------------------------------------------------
# Does the synthetic table look like the real one? Columns, pairs of columns, whole records, and rules.
#
# Each distance has two values for comparison. One is its value between training and held-out records
# (``_baseline``), if given. The other is its mean over two samples of one distribution (``_chance``). Real
# records are read without noise. Numbers of the synthetic table and the public schema alone are not
# confidential.

GROUP = "Similarity to the training table"
_TVD = "total variation distance of single columns"
_HELD_OUT = "the same between training and held-out {records}"

_estimated = partial(Measure.estimated, GROUP)


def similarity(
    tables: Tables, settings: Settings, rng: np.random.Generator, progress: Progress = silent
) -> Findings:
    """Compare a synthetic table with the real one it stands for.

    Values outside the schema are counted in the synthetic table as it came. The real-versus-synthetic
    classifier uses a random part of each table, everything else whole tables. More than 200 columns are
    compared by a random part of their pairs, unless all records are asked for.
    """
    schema, level, counted = tables.schema, settings.level, tables.schema.counted
    limit = settings.most(schema, COMPARED)
    synthetic, train, test = tables.synthetic, tables.train, tables.test
    # First of all draws: those below are as many as real records make them, and a heat map names the columns.
    scored = None if settings.records == "all" else association_blocks(len(schema), rng)

    def against(other: pd.DataFrame) -> list[ColumnDifference]:
        return [compare_column(train[c.name], other[c.name], c, rng=rng, level=level) for c in schema.columns]

    columns = against(synthetic)
    baseline = None if test is None else against(test)
    progress(0.15)
    found = Findings([*_means(columns, baseline, counted)])
    found.join(association_findings(synthetic, train, test, schema, scored, group=GROUP))
    progress(0.3)
    apart = None
    if min(len(train), len(synthetic), limit) >= FOLDS:
        apart = discriminate(train, synthetic, schema, rng=rng, limit=limit, level=level)
    progress(0.95)
    total = min(len(train), len(synthetic))
    used, step = min(limit, total), f"separating synthetic from real {counted}"
    found.join(on_part(_discrimination(apart, counted), step, used, total, level, counted))
    found.measures += _coverage(synthetic, train, test, schema)
    found.measures += _per_column(columns, counted)
    found.measures += conformity_measures(tables.raw["synthetic"], tables.described.table, tables.left_out)
    # suggestions are about rows: if patients have several, about these (see trajectories)
    asked = suggested(schema) if tables.patients is None else ()
    count = partial(count_rules, schema, rules=settings.rules(schema), suggestions=asked)
    found.measures += violations(count, synthetic, train, units=len(train), level=level)

    frames: dict[Table, pd.DataFrame] = {"synthetic": synthetic, "train": train}
    frames |= {} if test is None else {"test": test}
    for column in schema.columns:
        for name, frame in frames.items():
            rows = marginal(frame, column, name)
            found.frame("marginal", rows, confidential=name != "synthetic")
    return found


def _means(
    columns: list[ColumnDifference], baseline: list[ColumnDifference] | None, counted: Counted
) -> Iterator[Measure]:
    mean = float(np.mean([entry.tvd.estimate.value for entry in columns]))
    yield Measure(GROUP, "tvd_mean", mean, True, f"{_TVD}, mean of columns")
    chance = float(np.mean([entry.tvd.chance for entry in columns]))
    what = "the same for two samples of one distribution, of these sizes"
    yield Measure(GROUP, "tvd_mean_chance", chance, True, what)
    if baseline is not None:
        fresh = float(np.mean([entry.tvd.estimate.value for entry in baseline]))
        yield Measure(GROUP, "tvd_mean_baseline", fresh, True, counted.fill(_HELD_OUT))
    gaps = [abs(c.missing_difference.value) for c in columns if c.missing_difference is not None]
    if gaps:
        what = "mean |difference| of missing-value rates, columns that may miss values"
        yield Measure(GROUP, "missing_rate_error", float(np.mean(gaps)), True, what)


def _discrimination(apart: Discrimination | None, counted: Counted) -> Iterator[Measure]:
    if apart is None:
        why = f"not defined: at least {FOLDS} {counted} of each table are needed to separate them"
        yield Measure(GROUP, "discriminator_auc", None, True, why)
        return
    for name, estimate in apart.auc.items():
        what = f"AUC of separating synthetic from training {counted}, {apart.size:,} of each, 0.5 is best"
        yield _estimated(f"discriminator_auc_{name}", estimate, what)
    for column, loss in apart.importance.items():
        what = "what gradient boosting loses of its AUC when the column is shuffled"
        yield _estimated(f"discriminator_loss[{column}]", loss, what)


def _coverage(
    synthetic: pd.DataFrame, train: pd.DataFrame, test: pd.DataFrame | None, schema: Schema
) -> Iterator[Measure]:
    found = category_coverage(train, synthetic, schema)
    if found is not None:
        what = f"share of the training {schema.counted}' categories that occur"
        if not found.categories:
            yield Measure(GROUP, "category_coverage", None, True, f"{what}: there is none")
        else:
            yield Measure(GROUP, "category_coverage", found.value, True, f"{what}, of {found.categories:,}")
            what = f"the same for a fresh draw of as many {schema.counted}, on average"
            yield Measure(GROUP, "category_coverage_chance", found.chance, True, what)
    ranges = ranges_covered(train, synthetic, schema)
    if ranges:
        value = float(np.mean(list(ranges.values())))
        what = f"share of the training {schema.counted}' range of numbers that is covered, mean of columns"
        yield Measure(GROUP, "range_coverage", value, True, what)
        held = ranges_covered(train, test, schema) if test is not None else {}
        if held:
            what = f"the same by held-out {schema.counted}"
            yield Measure(GROUP, "range_coverage_baseline", float(np.mean(list(held.values()))), True, what)


def _per_column(columns: list[ColumnDifference], counted: Counted) -> Iterator[Measure]:
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
        what = f"synthetic minus train, interval over the {counted} of both"
        yield _estimated(f"missing_rate_difference{name}", gap, what)
