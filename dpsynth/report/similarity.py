"""Two sections: similarity of columns and of pairs, and closeness of synthetic to real records.

Tables of tails, point masses and single columns are folded where the rules find nothing wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from dpsynth.evaluation.results import (
    Associations,
    Detail,
    Differences,
    Distances,
    Evaluation,
    FinerThanDeclared,
    Marginal,
    Measure,
    SingleColumnRow,
    SingleColumns,
    TableOne,
    TableOneRow,
    Tails,
    TailsRow,
    any_internal,
)
from dpsynth.evaluation.tails import MASS_AIM, MEAN_AIM, PERCENTILE_AIM, SPREAD_AIM, Percentile
from dpsynth.report.blocks import (
    MARK,
    OF_COLUMN,
    Block,
    Bullets,
    Cell,
    Heading,
    Plots,
    Section,
    Sentence,
    TableBlock,
    column_tables,
    measure_grid,
    measure_tables,
    number_cell,
    paragraph,
    section_measures,
    table,
)
from dpsynth.report.curves import plot_intervals
from dpsynth.report.plots import MOST_NAMES, Plot, plot_distances, plot_marginals, plot_matrix
from dpsynth.report.run_report import RunReport, marginal_pairs
from dpsynth.report.verdicts import similarity as rules
from dpsynth.report.verdicts.verdict import Verdict, get
from dpsynth.report.words import column_value, column_width, decimals, estimate_text, measured, thousandths
from dpsynth.table.kinds import kind_of_unit

# ------------------------------------------------------------------------------------------------
# Table 1 as clinicians publish it: the real and the synthetic records, column by column.
#
# A page for release has the synthetic records alone. Its evaluation holds no internal details.

#: a greater standardised mean difference is worth a look (Austin 2009)
NOTABLE = 0.1


def table_one_section(report: RunReport) -> Section | None:
    """Return the section. None where nothing was summarised."""
    evaluation = report.measured
    tables = evaluation.of(TableOne)
    if not tables:
        return None
    forms = {row.form for detail in tables for row in detail.data.rows}
    said = [
        text
        for form, text in (
            ("mean", "Numbers have mean (standard deviation)."),
            (
                "median",
                "Dates, and numbers that the schema declares on a log scale, have median (quartiles).",
            ),
            ("counts", "Categories have n (%), of the records with a value."),
        )
        if form in forms
    ]
    blocks: list[Block] = [paragraph("Each column of the table in summary, as in a clinical paper.", *said)]
    levels = [Sentence("Each column is a level of patients, which the rows of a patient determine.")]
    if differences := evaluation.of(Differences):
        blocks.append(paragraph(*(levels if report.of_patients else []), *_differing(differences[0])))
        blocks.append(paragraph(*_by_chance(differences[0])))
    for group in dict.fromkeys(detail.data.group for detail in tables):
        blocks.append(_grid(evaluation, group))
    return Section("table-one", "Table 1: the records", tuple(blocks))


def _differing(detail: Detail[Differences]) -> Iterator[Sentence]:
    data = detail.data
    yield Sentence("The standardised mean difference (SMD) is synthetic minus real, in standard deviations.")
    sizes = {row.column: abs(row.smd) for row in data.rows if row.smd is not None}
    if sizes:
        worst = max(sizes, key=lambda name: sizes[name])
        many = sum(size > NOTABLE for size in sizes.values())
        yield Sentence(
            f"It exceeds {NOTABLE} in {many} of {len(sizes)} columns. "
            f"The largest is {decimals(sizes[worst], 2)} ({worst}).",
            detail.internal,
        )


def _by_chance(detail: Detail[Differences]) -> Iterator[Sentence]:
    yield Sentence("Real records are those that the synthetic ones were made from.")
    yield Sentence(
        "By chance alone, two tables of these sizes stay below about "
        f"{decimals(detail.data.chance, 2)} in 95 of 100 columns. "
        "Columns with missing values, or of more than two categories, may differ by more.",
        detail.internal,
    )


def _grid(evaluation: Evaluation, group: str | None) -> TableBlock:
    tables = {d.data.table: d for d in evaluation.of(TableOne) if d.data.group == group}
    sides = [table for table in ("train", "synthetic") if table in tables]
    compared = [d for d in evaluation.of(Differences) if d.data.group == group]
    internal = any(detail.internal for detail in (*tables.values(), *compared))
    smds = {row.column: row.smd for detail in compared for row in detail.data.rows}

    records = [tables[side].data.records for side in sides]
    empty = [""] if compared else []
    rows = [["n", *(f"{count:,}" for count in records), *empty]]
    for pair in zip(*(tables[side].data.rows for side in sides), strict=True):
        smd = smds.get(pair[0].column)
        first = ["n/a" if smd is None else decimals(smd, 2)] if compared else []
        for label, cells in _lines(pair, records):
            rows.append([label, *cells, *first])
            first = empty
    names = {"train": "real", "synthetic": "synthetic"}
    header = ("column", *(names[side] for side in sides), *(("SMD",) if compared else ()))
    caption = "Table 1" if group is None else f"Table 1 of the records with {group}"
    status = MARK if internal else None
    return table(caption, header, rows, status=status, folded=True if group is not None else None)


def _lines(pair: tuple[TableOneRow, ...], records: list[int]) -> Iterator[tuple[str, list[str]]]:
    """The rows of one column in tables of so many records: its summary, special codes, missing values."""
    row = pair[0]
    has_unit = row.unit and kind_of_unit(row.unit) is None
    name = f"{row.column} ({row.unit})" if has_unit else row.column
    if row.form == "counts":
        known = [sum(side.counts) for side in pair]
        # of two categories the first follows from the last
        for place in (1,) if len(row.labels) == 2 else range(len(row.labels)):
            occurring = [side.counts[place] for side in pair]
            yield f"{name}: {row.labels[place]}, n (%)", list(map(_part, occurring, known))
    else:
        places = _places(pair)
        form = "mean (SD)" if row.form == "mean" else "median (quartiles)"
        yield f"{name}, {form}", [_number(side, places) for side in pair]
    for what, counts in (
        ("special codes", [side.special for side in pair]),
        ("missing", [side.missing for side in pair]),
    ):
        if counts[0] is not None:  # the schema decides, and so it is the same in all tables
            shares = [_part(count or 0, of) for count, of in zip(counts, records, strict=True)]
            yield f"{row.column}: {what}, n (%)", shares


def _part(count: int, of: int) -> str:
    return f"{count:,} ({100 * count / of:.1f})" if of else f"{count:,}"


def _number(row: TableOneRow, places: int) -> str:
    if row.center is None:
        return "n/a"
    if kind_of_unit(row.unit) is not None:
        center, low, high = (column_value(end, row.unit) for end in (row.center, row.low, row.high))
        return f"{center} ({low} to {high})"
    center = f"{row.center:z,.{places}f}"
    if row.form == "median":
        low, high = (f"{end or 0.0:z,.{places}f}" for end in (row.low, row.high))
        return f"{center} ({low} to {high})"
    return f"{center} (n/a)" if row.spread is None else f"{center} ({row.spread:,.{places}f})"


def _places(pair: tuple[TableOneRow, ...]) -> int:
    """Decimals, the same in all tables: two figures of the larger standard deviation.

    Below 100 there is at least one decimal. Medians go by the smallest median or quartile range.
    """
    centers = [abs(row.center or 0.0) for row in pair]
    if pair[0].form == "median":
        sizes = [*centers, *((row.high or 0.0) - (row.low or 0.0) for row in pair)]
        size, fewest = min((size for size in sizes if size > 0), default=1.0), 0
    else:
        size = max(row.spread or 0.0 for row in pair) or max(centers) or 1.0
        fewest = 1 if size < 99.5 else 0
    return min(max(1 - math.floor(math.log10(float(f"{size:.2g}"))), fewest), 6)


_ATTACKS = {
    "membership_auc": "attack by distance",
    "membership_auc_calibrated": "by compared distances",
    "dcr_closer_to_train": "nearer to training",
}


def closeness_section(evaluation: Evaluation) -> Section | None:
    """Return the section on repeated records and memorisation. None where nothing was measured."""
    measures = section_measures(evaluation, "closeness")
    accuracies = [measure for measure in measures if measure.name.startswith("nn_accuracy")]
    attacks = [measure for measure in measures if measure.name in _ATTACKS]
    drawn: list[Plot] = []
    for words, caption, label, chosen in (
        ("Nearest-neighbour accuracy", "Nearest-neighbour accuracy against 1/2, which is best", "accuracy",
         accuracies),
        ("Signs of memorisation", "Attacks by distance on training records: guessing gives 0.5",
         "AUC, or share", attacks),
    ):  # fmt: skip
        rows = [(_label(measure.name), "synthetic", measure) for measure in chosen]
        if any(measure.value is not None for measure in chosen):
            drawn.append(plot_intervals(rows, what=words, caption=caption, reference=0.5, axis_label=label))
    drawn += [plot_distances(detail) for detail in evaluation.of(Distances) if detail.data.edges]
    blocks: list[Block] = [Plots(tuple(drawn))] if drawn else []
    blocks += measure_tables(measures) + column_tables(measures, "Closeness")
    if not blocks:
        return None
    no_evidence = "Distances can show memorisation. A good distance is no evidence of privacy."
    intro = paragraph(
        no_evidence,
        "Copies of training records lie nearer to them than new real records do. A nearest-neighbour "
        "accuracy of 0.5 means that real and synthetic records mix. It is 0 for copies, and 1 if the two "
        "tables lie apart.",
    )
    said = _signs(evaluation)
    blocks = [*([Bullets(tuple(said))] if said else []), *blocks]
    if not any(measure.internal for measure in measures):
        return Section("closeness", "Repeated records", (paragraph(no_evidence), *blocks))
    return Section("closeness", "Distances between records", (intro, *blocks))


def _signs(evaluation: Evaluation) -> list[Sentence]:
    """Results of attacks by distance, in sentences."""
    sentences = (
        (
            "membership_auc",
            "An attack by distance separates training from held-out records with an AUC of {}. Guessing "
            "gives 0.5.",
        ),
        (
            "membership_tpr_at_1pct",
            "If that attack names 1 in 100 held-out records, it names a share of {} of the training records.",
        ),
        (
            "copies_excess",
            "The share of synthetic records that copy a training record is {} above the share that copy a "
            "new record by chance. The best value is 0 or less.",
        ),
        (
            "privacy_loss",
            "Synthetic records are nearer to training records than to new ones by {} in nearest-neighbour "
            "accuracy. The best value is 0 or less.",
        ),
    )
    known = [(get(evaluation, name), text) for name, text in sentences]
    return [Sentence(text.format(measured(m)), m.internal) for m, text in known if m is not None]


def _label(name: str) -> str:
    if name in _ATTACKS:
        return _ATTACKS[name]
    words = name.removeprefix("nn_accuracy_").replace("_", " ")
    head, _, side = words.partition(" ")
    return (
        f"{head}, {side} side" if name.startswith("nn_accuracy") and side in ("real", "synthetic") else words
    )


# Panels of columns that are shown at once; the rest unfolds.
_SHOWN = 9


def similarity_section(evaluation: Evaluation) -> Section | None:
    """Return the section. None where nothing was measured."""
    measures = section_measures(evaluation, "similarity")
    blocks: list[Block] = measure_tables(measures)
    blocks += _rules(evaluation)
    blocks += _marginals(evaluation, measures)
    blocks += column_blocks(evaluation)
    blocks += _associations(evaluation)
    blocks += column_tables([m for m in measures if "_violations_" not in m.name], "Resemblance")
    said = (*_distributions(evaluation), *_rounded(evaluation))
    if not blocks and not said:
        return None
    both = any(m.internal for m in measures) or any_internal(evaluation.of(Marginal))
    intro = "Distributions of single columns and associations of pairs" + (
        ", synthetic beside real." if both else " in the synthetic table."
    )
    return Section("resemblance", "Columns and pairs", (paragraph(intro, *said), *blocks))


def _distributions(evaluation: Evaluation) -> list[Sentence]:
    tvd = get(evaluation, "tvd_mean")
    if tvd is None:
        return []
    text = (
        f"On average over columns, a share of {measured(tvd)} of the records would have to change to give "
        "the real distribution."
    )
    return [Sentence(text, tvd.internal)]


def _rounded(evaluation: Evaluation) -> list[Sentence]:
    """Columns of the real files with digits beyond the declared steps. This is no fault of any table."""
    real = [detail for detail in evaluation.of(FinerThanDeclared) if not detail.name.endswith(".synthetic")]
    if not real:
        return []
    text = (
        f"The real tables are finer than the schema: {', '.join(rules.between_steps(real))}. They were "
        "rounded before any comparison, as they are before fitting."
    )
    return [Sentence(text, any_internal(real))]


def _rules(evaluation: Evaluation) -> list[Block]:
    """Rules by how many rows break them: declared ones, those asked for, and those that names suggest."""
    shares = rules.rule_shares(evaluation)
    if not shares:
        return []
    compared = any(rule.real is not None for rule in shares)
    rows = tuple(
        (
            Cell(rule.text),
            Cell("names and units" if rule.suggested else "schema or evaluation"),
            number_cell(thousandths(rule.synthetic), rule.synthetic.internal),
            *((_real_rows(rule.real),) if compared else ()),
        )
        for rule in shares
    )
    header = ("rule", "from", "synthetic", *(("real",) if compared else ()))
    named = [rule for rule in shares if rule.more_often]
    grid = TableBlock("Rows of 1,000 that break a rule", header, rows, folded=not named)
    said: list[Block] = []
    if not named:
        text, internal = "No synthetic row breaks one of these rules.", shares[0].synthetic.internal
        if shares[0].synthetic.value:
            text, internal = "Synthetic rows break no rule clearly more often than real rows.", True
        said = [paragraph(Sentence(text, internal))]
    return [Heading("Rules about rows"), *said, *_cut(grid)]


def _real_rows(measure: Measure | None) -> Cell:
    if measure is None:
        return Cell("")
    low, high = (1000 * float(end or 0.0) for end in (measure.lower, measure.upper))
    return number_cell(
        f"{thousandths(measure)} ({column_value(low)} to {column_value(high)})", measure.internal
    )


def _marginals(evaluation: Evaluation, measures: Sequence[Measure]) -> list[Block]:
    distance = {
        match["column"]: float(measure.value)
        for measure in measures
        if measure.value is not None
        and (match := OF_COLUMN.fullmatch(measure.name)) is not None
        and match["name"] == "tvd"
    }
    drawn: list[tuple[float, Plot]] = []
    for pair in marginal_pairs(evaluation):
        drawn.append((-distance.get(pair[0].data.column, 0.0), plot_marginals(pair)))
    if not drawn:
        return []
    if distance:
        drawn.sort(key=lambda entry: entry[0])
    panels = [plot for _, plot in drawn]
    blocks: list[Block] = [Heading("Column by column")]
    if distance and len(panels) > 1:
        blocks.append(paragraph(Sentence("The columns that differ most come first.", internal=True)))
    blocks.append(Plots(tuple(panels[:_SHOWN])))
    if len(panels) > _SHOWN:
        blocks.append(Plots(tuple(panels[_SHOWN:]), folded=f"The other {len(panels) - _SHOWN} columns"))
    return blocks


def _associations(evaluation: Evaluation) -> list[Block]:
    known = (d for d in evaluation.of(Associations) if d.data.columns and d.data.matrix)
    details: dict[str, Detail[Associations]] = {detail.data.table: detail for detail in known}
    if not details:
        return []
    plots: list[Plot] = []
    for name, words in (("synthetic", "Synthetic table"), ("train", "Real training table")):
        if (detail := details.get(name)) is not None:
            what = f"Associations of pairs of columns, {words.lower()}"
            plots.append(_heat_map(detail.data, what, words, internal=detail.internal))
    if "synthetic" in details and "train" in details:
        synthetic, real = details["synthetic"].data, details["train"].data
        if synthetic.columns == real.columns:
            what = "Difference of the associations, synthetic minus real"
            caption = "Difference: synthetic minus real"
            plots.append(_heat_map(_difference(synthetic, real), what, caption, internal=True, signed=True))
    columns = next(iter(details.values())).data.columns
    all_columns = len({detail.data.column for detail in evaluation.of(Marginal)})
    text = (
        "Between 0 (none) and 1: |Pearson| of two numbers, Cramér's V of two categories, correlation "
        "ratio of one of each. Undefined values are grey."
    )
    if len(columns) < all_columns:
        text += f" The heat maps show {len(columns)} of {all_columns} columns, chosen at random."
    blocks: list[Block] = [Heading("Associations"), paragraph(text), Plots(tuple(plots))]
    if len(columns) > MOST_NAMES:
        key = tuple((Cell(str(place)), Cell(name)) for place, name in enumerate(columns, start=1))
        blocks.append(
            TableBlock("Columns of the heat maps by number", ("number", "column"), key, folded=True)
        )
    return blocks


def _heat_map(data: Associations, what: str, caption: str, *, internal: bool, signed: bool = False) -> Plot:
    return plot_matrix(
        data.matrix, data.columns, what=what, caption=caption, internal=internal, signed=signed
    )


def _difference(synthetic: Associations, real: Associations) -> Associations:
    matrix = [
        [None if a is None or b is None else a - b for a, b in zip(*rows, strict=True)]
        for rows in zip(synthetic.matrix, real.matrix, strict=True)
    ]
    return replace(synthetic, matrix=matrix)


#: rows that are shown of a table in which something is wrong; the worst come first
_SHOWN_ROWS = 12

Rule = Callable[[Evaluation], Iterable[Verdict]]


def column_blocks(evaluation: Evaluation) -> list[Block]:
    """Return the tables of single columns under a heading. Empty where nothing was measured."""
    plain = [m for m in section_measures(evaluation, "columns") if OF_COLUMN.fullmatch(m.name) is None]
    single = [row for detail in evaluation.of(SingleColumns) for row in detail.data.rows]
    numbers_well = _well(evaluation, rules.tails) and _well(evaluation, rules.means)
    masses_well = _well(evaluation, rules.point_masses)
    grids = [
        grid
        for detail in evaluation.of(Tails)
        for grid in (_tails(detail, folded=numbers_well), _masses(detail, folded=masses_well))
    ]
    grids.append(_single(single, _well(evaluation, rules.single_columns)))
    blocks = [part for grid in grids if grid.rows for part in _cut(grid)]
    if plain:
        blocks.append(measure_grid("Tails, point masses, single columns: measures", plain, folded=True))
    if not blocks:
        return []
    (low, high), (narrow, wide) = MEAN_AIM, SPREAD_AIM
    intro = paragraph(
        Sentence(
            "Averages can hide implausible values in one record in a hundred. They can also hide zeros that "
            "became other small numbers, or unusual last digits. Here they are, column by column. “Held out” "
            "has the values by chance, from real records that had no part in the table. "
            "A column is called wrong if a value lies beyond its aim and its interval excludes no "
            "difference. Intervals are for all columns together. Aims are ratios of means from "
            f"{low:g} to {high:g}, and of standard deviations from {narrow:g} to {wide:g}. "
            f"Errors should be at most {PERCENTILE_AIM:g} for percentiles and {MASS_AIM:g} for shares.",
        )
    )
    return [Heading("Tails, point masses and habits of recording"), intro, *blocks]


def _cut(grid: TableBlock) -> list[TableBlock]:
    """Return a table that is shown as its first rows and, on demand, the others."""
    more = len(grid.rows) - _SHOWN_ROWS
    if grid.folded or more <= 0:
        return [grid]
    return [
        replace(grid, rows=grid.rows[:_SHOWN_ROWS]),
        replace(grid, rows=grid.rows[_SHOWN_ROWS:], caption=f"{grid.caption}: the other {more}", folded=True),
    ]


def _well(evaluation: Evaluation, rule: Rule) -> bool:
    return all(verdict.severity == "good" for verdict in rule(evaluation))


def _tails(detail: Detail[Tails], folded: bool) -> TableBlock:
    told = []
    for row in sorted(detail.data.rows, key=_least_fault):
        if row.spread is None:
            continue
        held_out = (row.spread_baseline, row.low_baseline, row.high_baseline)
        told.append(
            (
                f"{row.column} ({row.unit})" if row.unit else row.column,
                *_mean(row),
                f"{column_width(row.deviation_real, row.unit)} → "
                f"{column_width(row.deviation_synthetic, row.unit)}",
                estimate_text(row.spread, 2),
                *(text for end in (row.low, row.high) if end for text in _percentile(end, row.unit)),
                ", ".join(decimals(value, 2) for value in held_out if value is not None),
            )
        )
    header = ("column", "mean", "mean_ratio", "standard deviation", "spread_ratio",
              "1st percentile", "percentile_1_error", "99th percentile", "percentile_99_error",
              "held out: ratio, errors")  # fmt: skip
    caption = (
        f"Means, spread and tails{rules.whose_tails(detail)}, real → synthetic, errors in standard "
        "deviations of the real column"
    )
    return table(caption, header, told, folded=folded)


def _least_fault(row: TailsRow) -> float:
    """The surely largest fault of a column, below 0: a key that sorts the worst first."""
    return -max((f.least for f in (*rules.faults_of_tails(row), *rules.faults_of_means(row))), default=0.0)


def _masses(detail: Detail[Tails], folded: bool) -> TableBlock:
    masses = [(row.column, mass) for row in detail.data.rows for mass in row.masses]
    masses.sort(key=lambda entry: -abs(entry[1].difference.value))
    told = [
        (name, Cell(str(m.value)), decimals(m.real), decimals(m.synthetic), estimate_text(m.difference, 3))
        for name, m in masses
    ]
    header = ("column", "value", "share, real", "synthetic", "point_mass_error")
    whose = rules.whose_tails(detail)
    caption = f"Values and times of day of more than 5 % of a column{whose}, errors as differences of shares"
    return table(caption, header, told, folded=folded)


def _single(rows: Sequence[SingleColumnRow], folded: bool) -> TableBlock:
    told = [
        (row.column, estimate_text(row.auc, 3), _share(row.last_digits), _share(row.baseline))
        for row in sorted(rows, key=lambda row: -row.auc.value)
    ]
    header = ("column", "single_column_auc", "of its last digits alone", "held out")
    return table(
        "Synthetic records separated from real ones by one column alone", header, told, folded=folded
    )


def _mean(row: TailsRow) -> tuple[str, str]:
    """Both means and their ratio, of numbers without negative values."""
    if row.means is None:
        return "", ""
    ends = (column_value(mean, row.unit) for mean in (row.means.real, row.means.synthetic))
    return " → ".join(ends), estimate_text(row.means.ratio, 2)


def _percentile(end: Percentile, unit: str | None) -> tuple[str, str]:
    error = "" if end.error is None else estimate_text(end.error, 2)
    if end.error is not None and end.few:
        error = f"{decimals(end.error.value, 2)} (n/a: too few records)"
    return f"{column_value(end.real, unit)} → {column_value(end.synthetic, unit)}", error


def _share(value: float | None) -> str:
    return "" if value is None else decimals(value)
