"""Two sections: similarity of columns and of pairs, and closeness of synthetic to real records.

Tables of tails, point masses and single columns are folded where the rules find nothing wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from dpsynth.checks import Counted
from dpsynth.evaluation.estimates import Estimate
from dpsynth.evaluation.results import Evaluation, Measure, any_confidential, frame_rows
from dpsynth.evaluation.tails import MASS_AIM, MEAN_AIM, PERCENTILE_AIM, SPREAD_AIM
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
from dpsynth.report.figure import Plot
from dpsynth.report.intervals import plot_intervals
from dpsynth.report.plots import MOST_NAMES, matrix_of, plot_marginals, plot_matrix, plots_of_frames
from dpsynth.report.run_report import RunReport, marginal_pairs
from dpsynth.report.verdicts import similarity as rules
from dpsynth.report.verdicts.rules import answers
from dpsynth.report.verdicts.verdict import Evidence, get
from dpsynth.report.words import (
    between,
    column_value,
    column_width,
    decimals,
    estimate_text,
    measured,
    thousandths,
    wording,
)
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
    groups = evaluation.groups("table_one", "group")
    if not groups:
        return None
    forms = {form for frame in groups for form in frame["form"]}
    said = [report.say(f"{form} of columns") for form in ("mean", "median", "counts") if form in forms]
    blocks: list[Block] = [paragraph(report.say("table one"), *said)]
    differences = evaluation.groups("table_one_differences", "group")
    if differences:
        levels = [report.say("levels of patients")] if report.counted is Counted.PATIENTS else []
        blocks.append(paragraph(*levels, *_differing(report, differences[0])))
        chance = decimals(differences[0]["chance"].iloc[0], 2)
        by_chance = Sentence(report.say("by chance", chance=chance), any_confidential(differences[0]))
        blocks.append(paragraph(report.say("real ones"), by_chance))
    compared = {frame_rows(frame)[0].group: frame for frame in differences}
    blocks += [_grid(frame, compared.get(frame_rows(frame)[0].group), report.counted) for frame in groups]
    return Section("table-one", f"Table 1: the {report.counted}", tuple(blocks))


def _differing(report: RunReport, frame: pd.DataFrame) -> Iterator[Sentence]:
    yield Sentence(report.say("standardised difference"))
    sizes = {row.column: abs(row.smd) for row in frame_rows(frame) if row.smd is not None}
    if sizes:
        worst = max(sizes, key=lambda name: sizes[name])
        many, largest = sum(size > NOTABLE for size in sizes.values()), decimals(sizes[worst], 2)
        text = report.say(
            "greatest differences", notable=NOTABLE, many=many, of=len(sizes), largest=largest, worst=worst
        )
        yield Sentence(text, any_confidential(frame))


def _grid(frame: pd.DataFrame, differences: pd.DataFrame | None, counted: Counted) -> TableBlock:
    """The Table 1 of one group of records, real beside synthetic, with its differences."""
    tables = {str(table): part for table, part in frame.groupby("table", sort=False)}
    sides = {table: frame_rows(tables[table]) for table in ("train", "synthetic") if table in tables}
    compared = differences is not None
    smds = {row.column: row.smd for row in frame_rows(differences)} if differences is not None else {}

    records = [int(rows[0].records) for rows in sides.values()]
    empty = [""] if compared else []
    rows = [["n", *(f"{count:,}" for count in records), *empty]]
    for column in dict.fromkeys(row.column for row in next(iter(sides.values()))):
        of_column = [[row for row in side if row.column == column] for side in sides.values()]
        smd = smds.get(column)
        first = ["n/a" if smd is None else decimals(smd, 2)] if compared else []
        for label, cells in _lines(of_column, records):
            rows.append([label, *cells, *first])
            first = empty
    names = {"train": "real", "synthetic": "synthetic"}
    header = ("column", *(names[side] for side in sides), *(("SMD",) if compared else ()))
    group = frame_rows(frame)[0].group
    caption = "Table 1" if group is None else f"Table 1 of the {counted} with {group}"
    internal = any_confidential(frame, *([] if differences is None else [differences]))
    status = MARK if internal else None
    return table(caption, header, rows, status=status, folded=True if group is not None else None)


def _lines(sides: list[list[Any]], records: list[int]) -> Iterator[tuple[str, list[str]]]:
    """The rows of one column in tables of so many records: its summary, special codes, missing values."""
    row = sides[0][0]
    has_unit = row.unit and kind_of_unit(row.unit) is None
    name = f"{row.column} ({row.unit})" if has_unit else row.column
    if row.form == "counts":
        known = [sum(each.count for each in side) for side in sides]
        # of two categories the first follows from the last
        for category in [*zip(*sides, strict=True)][1 if len(sides[0]) == 2 else 0 :]:
            counts = [each.count for each in category]
            yield f"{name}: {category[0].label}, n (%)", list(map(_part, counts, known))
    else:
        pair = [side[0] for side in sides]
        places = _places(pair)
        form = "mean (SD)" if row.form == "mean" else "median (quartiles)"
        yield f"{name}, {form}", [_number(side, places) for side in pair]
    for what, counts in (
        ("special codes", [side[0].special for side in sides]),
        ("missing", [side[0].missing for side in sides]),
    ):
        if counts[0] is not None:  # the schema decides, and so it is the same in all tables
            shares = [_part(count or 0, of) for count, of in zip(counts, records, strict=True)]
            yield f"{row.column}: {what}, n (%)", shares


def _part(count: float, of: float) -> str:
    return f"{count:,.0f} ({100 * count / of:.1f})" if of else f"{count:,.0f}"


def _number(row: Any, places: int) -> str:
    if row.center is None:
        return "n/a"
    if kind_of_unit(row.unit) is not None:
        return between(row.center, row.low, row.high, say=lambda end: column_value(end, row.unit))
    if row.form == "median":
        return between(row.center, row.low, row.high, say=lambda end: f"{end or 0.0:z,.{places}f}")
    spread = "n/a" if row.spread is None else f"{row.spread:,.{places}f}"
    return f"{row.center:z,.{places}f} ({spread})"


def _places(pair: list[Any]) -> int:
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


def closeness_section(report: RunReport) -> Section | None:
    """Return the section on repeated records and memorisation. None where nothing was measured."""
    evaluation, counted = report.measured, report.counted
    measures = section_measures(evaluation, "closeness")
    accuracies = [measure for measure in measures if measure.name.startswith("nn_accuracy")]
    attacks = [measure for measure in measures if measure.name in _ATTACKS]
    drawn: list[Plot] = []
    for words, caption, label, chosen in (
        ("Nearest-neighbour accuracy", "accuracies", "accuracy", accuracies),
        ("Signs of memorisation", "attacks by distance", "AUC, or share", attacks),
    ):
        rows = [(_label(measure.name), "synthetic", measure) for measure in chosen]
        if any(measure.value is not None for measure in chosen):
            caption = report.say(caption)
            drawn.append(
                plot_intervals(rows, counted, what=words, caption=caption, reference=0.5, axis_label=label)
            )
    drawn += plots_of_frames(evaluation, "distances").values()
    blocks: list[Block] = [Plots(tuple(drawn))] if drawn else []
    blocks += measure_tables(measures) + column_tables(measures, "Closeness")
    if not blocks:
        return None
    signs = [(get(evaluation, name), text) for name, text in wording("signs", counted).items()]
    said = [Sentence(text.format(measured(m)), m.internal) for m, text in signs if m is not None]
    blocks = [*([Bullets(tuple(said))] if said else []), *blocks]
    intro = [report.say("distances")]
    if not any(measure.internal for measure in measures):
        return Section("closeness", f"Repeated {counted}", (paragraph(*intro), *blocks))
    intro.append(report.say("copies"))
    return Section("closeness", f"Distances between {counted}", (paragraph(*intro), *blocks))


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


def similarity_section(report: RunReport) -> Section | None:
    """Return the section. None where nothing was measured."""
    evaluation = report.measured
    measures = section_measures(evaluation, "similarity")
    blocks: list[Block] = measure_tables(measures)
    blocks += _rules(evaluation)
    blocks += _marginals(evaluation, measures)
    blocks += column_blocks(report)
    blocks += _associations(report)
    blocks += column_tables([m for m in measures if "_violations_" not in m.name], "Resemblance")
    tvd = get(evaluation, "tvd_mean")
    distance = [] if tvd is None else [Sentence(report.say("distance", tvd=measured(tvd)), tvd.internal)]
    said = (*distance, *_rounded(report))
    if not blocks and not said:
        return None
    both = any(m.internal for m in measures) or any_confidential(*evaluation.groups("marginal"))
    intro = report.say("both similar" if both else "synthetic alone")
    return Section("resemblance", "Columns and pairs", (paragraph(intro, *said), *blocks))


def _rounded(report: RunReport) -> list[Sentence]:
    """Columns of the real files with digits beyond the declared steps. This is no fault of any table."""
    finer = [row for frame in report.measured.groups("finer_than_declared") for row in frame_rows(frame)]
    real = [row for row in finer if row.table != "synthetic"]
    text = report.say("finer tables", steps=", ".join(rules.between_steps(real)))
    return [Sentence(text, any(row.confidential for row in real))] if real else []


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
    value, low, high = (1000 * float(end or 0.0) for end in (measure.value, measure.lower, measure.upper))
    return number_cell(between(value, low, high, say=column_value), measure.internal)


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
        plot = plot_marginals(pair, evaluation.counted)
        drawn.append((-distance.get(pair["column"].iloc[0], 0.0), plot))
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


def _associations(report: RunReport) -> list[Block]:
    evaluation = report.measured
    frames = {frame["table"].iloc[0]: frame for frame in evaluation.groups("association", "table")}
    if not frames:
        return []
    found = {table: matrix_of(frame) for table, frame in frames.items()}
    plots: list[Plot] = []
    for name, words in (("synthetic", "Synthetic table"), ("train", "Real training table")):
        if name in found:
            names, matrix = found[name]
            what = f"Associations of pairs of columns, {words.lower()}"
            internal = any_confidential(frames[name])
            plots.append(plot_matrix(matrix, names, what=what, caption=words, internal=internal))
    if "synthetic" in found and "train" in found:
        (names, made), (real_names, real) = found["synthetic"], found["train"]
        if names == real_names:
            what = "Difference of the associations, synthetic minus real"
            caption = "Difference: synthetic minus real"
            plots.append(
                plot_matrix(made - real, names, what=what, caption=caption, internal=True, signed=True)
            )
    columns, _ = next(iter(found.values()))
    all_columns = len(evaluation.groups("marginal", "column"))
    said = [report.say("associations")]
    if len(columns) < all_columns:
        said.append(report.say("heat maps", shown=len(columns), all=all_columns))
    blocks: list[Block] = [Heading("Associations"), paragraph(*said), Plots(tuple(plots))]
    if len(columns) > MOST_NAMES:
        key = tuple((Cell(str(place)), Cell(name)) for place, name in enumerate(columns, start=1))
        blocks.append(
            TableBlock("Columns of the heat maps by number", ("number", "column"), key, folded=True)
        )
    return blocks


#: rows that are shown of a table in which something is wrong; the worst come first
_SHOWN_ROWS = 12


def column_blocks(report: RunReport) -> list[Block]:
    """Return the tables of single columns under a heading. Empty where nothing was measured."""
    evaluation, counted = report.measured, report.counted
    plain = [m for m in section_measures(evaluation, "columns") if OF_COLUMN.fullmatch(m.name) is None]
    single = [row for frame in evaluation.groups("single_columns") for row in frame_rows(frame)]
    numbers_well = _well(evaluation, rules.tails, rules.means)
    masses_well = _well(evaluation, rules.point_masses)
    grids = [
        grid
        for frame in evaluation.groups("tails", "of")
        for grid in (_tails(frame, counted, folded=numbers_well), _masses(frame, folded=masses_well))
    ]
    grids.append(_single(single, counted, folded=_well(evaluation, rules.single_columns)))
    blocks = [part for grid in grids if grid.rows for part in _cut(grid)]
    if plain:
        blocks.append(measure_grid("Tails, point masses, single columns: measures", plain, folded=True))
    if not blocks:
        return []
    (low, high), (narrow, wide) = MEAN_AIM, SPREAD_AIM
    aims = {"low": low, "high": high, "narrow": narrow, "wide": wide, "percentile": PERCENTILE_AIM}
    intro = paragraph(report.say("single columns", **aims, mass=MASS_AIM))
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


def _well(evaluation: Evaluation, *readers: Callable[..., Iterable[Evidence]]) -> bool:
    return all(verdict.severity == "good" for verdict in answers(evaluation, *readers))


def _tails(frame: pd.DataFrame, counted: Counted, *, folded: bool) -> TableBlock:
    told = []
    for rows in sorted(rules.by_column(frame), key=_least_fault):
        spread = rows.get("spread_ratio")
        if spread is None or spread.value is None:
            continue
        ends = [rows[name] for name in ("percentile_1_error", "percentile_99_error") if name in rows]
        unit = spread.unit
        told.append(
            (
                f"{spread.column} ({unit})" if unit else spread.column,
                *_mean(rows.get("mean_ratio")),
                f"{column_width(spread.real, unit)} → {column_width(spread.synthetic, unit)}",
                estimate_text(spread, 2),
                *(text for end in ends for text in _percentile(end, counted)),
                ", ".join(decimals(row.baseline, 2) for row in (spread, *ends) if row.baseline is not None),
            )
        )
    header = ("column", "mean", "mean_ratio", "standard deviation", "spread_ratio",
              "1st percentile", "percentile_1_error", "99th percentile", "percentile_99_error",
              "held out: ratio, errors")  # fmt: skip
    caption = (
        f"Means, spread and tails{rules.whose_tails(frame)}, real → synthetic, errors in standard "
        "deviations of the real column"
    )
    return table(caption, header, told, folded=folded)


def _least_fault(rows: Mapping[str, Any]) -> float:
    """The surely largest fault of a column, below 0: a key that sorts the worst first."""
    return -max((f.least for f in (*rules.faults_of_tails(rows), *rules.faults_of_means(rows))), default=0.0)


def _masses(frame: pd.DataFrame, folded: bool) -> TableBlock:
    masses = frame_rows(frame[frame["measure"] == "point_mass_error"])
    masses.sort(key=lambda row: -abs(row.value))
    told = [
        (m.column, Cell(rules.frequent(m.at)), decimals(m.real), decimals(m.synthetic), estimate_text(m, 3))
        for m in masses
    ]
    header = ("column", "value", "share, real", "synthetic", "point_mass_error")
    whose = rules.whose_tails(frame)
    caption = f"Values and times of day of more than 5 % of a column{whose}, errors as differences of shares"
    return table(caption, header, told, folded=folded)


def _single(rows: Sequence[Any], counted: Counted, *, folded: bool) -> TableBlock:
    told = [
        (
            row.column,
            estimate_text(Estimate(row.auc, row.lower, row.upper), 3),
            _share(row.last_digits),
            _share(row.baseline),
        )
        for row in sorted(rows, key=lambda row: -row.auc)
    ]
    header = ("column", "single_column_auc", "of its last digits alone", "held out")
    caption = f"Synthetic {counted} separated from real ones by one column alone"
    return table(caption, header, told, folded=folded)


def _mean(row: Any) -> tuple[str, str]:
    """Both means and their ratio, of numbers without negative values."""
    if row is None:
        return "", ""
    ends = (column_value(mean, row.unit) for mean in (row.real, row.synthetic))
    return " → ".join(ends), estimate_text(row, 2)


def _percentile(row: Any, counted: Counted) -> tuple[str, str]:
    error = "" if row.value is None else estimate_text(row, 2)
    if row.value is not None and row.few:
        error = f"{decimals(row.value, 2)} (n/a: too few {counted})"
    return f"{column_value(row.real, row.unit)} → {column_value(row.synthetic, row.unit)}", error


def _share(value: float | None) -> str:
    return "" if value is None else decimals(value)
