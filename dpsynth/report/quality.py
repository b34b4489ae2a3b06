"""Sections on quality: use, prediction, regressions, Table 1, columns and pairs, distances, subgroups, rows.

Estimates of pre-specified regressions are covered by the guarantee. They stand on top, on a page to share
too. Comparisons with real records are internal. A page for release has the synthetic records alone: its
evaluation holds no internal frame.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from dpsynth.checks import Counted, together
from dpsynth.evaluation.effects import regressions_of
from dpsynth.evaluation.estimates import Estimate
from dpsynth.evaluation.results import Evaluation, Measure, any_confidential, frame_rows
from dpsynth.evaluation.tails import MASS_AIM, MEAN_AIM, PERCENTILE_AIM, SPREAD_AIM
from dpsynth.report import words
from dpsynth.report.blocks import (
    MARK,
    OF_COLUMN,
    Block,
    Bullets,
    Cell,
    Heading,
    Item,
    Items,
    Plots,
    Section,
    Sentence,
    TableBlock,
    column_tables,
    items,
    measure_grid,
    measure_tables,
    number_cell,
    paragraph,
    section_measures,
    table,
)
from dpsynth.report.plots import MOST_NAMES, matrix_of
from dpsynth.report.run_report import RunReport
from dpsynth.report.verdicts import Evidence, get
from dpsynth.report.verdicts import similarity as rules
from dpsynth.report.verdicts.rules import answers
from dpsynth.report.verdicts.utility import judged, mixed_effects, mixed_sizes
from dpsynth.report.words import between, column_value, decimals, effect_text, estimate_text, measured, shown
from dpsynth.studies.study import Estimates
from dpsynth.table.kinds import kind_of_unit

# ------------------------------------------------------------------------------------------------
# Use in short, models that learn from the table, and regressions.


def uses_section(report: RunReport) -> Section:
    """Return possible uses of the table, in short."""
    said = (*_studies(report), *_prediction(report))
    found = _findings(report)
    blocks: list[Block] = [paragraph(*(said or (_unmeasured(report),)))]
    blocks += [Items(found[:_WORST])] if found else []
    return Section(
        "utility",
        "Is it useful?",
        tuple(blocks),
        ("findings", "prediction", "replication", "resemblance", "closeness"),
    )


def findings_section(report: RunReport) -> Section | None:
    """Return the findings for which the page before the folds has no room. None if it has all."""
    found = _findings(report)[_WORST:]
    return Section("findings", "More findings", (Items(found),)) if found else None


def _findings(report: RunReport) -> tuple[Item, ...]:
    return items(verdict for verdict in report.findings if verdict.about == "trust")


#: findings that are seen before the folds, the worst
_WORST = 5


def _studies(report: RunReport) -> list[Sentence]:
    if not report.studies:
        return []
    if report.withheld:
        return [Sentence(f"This page has estimates of pre-specified regressions. {report.withheld}", True)]
    named = ", ".join(told.study for told in report.studies)
    return [Sentence(report.say("quotable", named=named))]


def _prediction(report: RunReport) -> list[Sentence]:
    evaluation = report.measured
    outcome = evaluation.settings.get("outcome") or "the outcome"
    sentences = []
    for name, real_name, what, best in (
        ("auc_mean", "auc_real_mean", "AUC", "guessing gives 0.5"),
        ("r2_mean", "r2_real_mean", "explained variance", "guessing gives 0"),
    ):
        synthetic, real = get(evaluation, name), get(evaluation, real_name)
        if synthetic is None:
            continue
        text = report.say("models", outcome=outcome, what=what, made=measured(synthetic), best=best)
        text += report.say("models of real", real=measured(real)) if real is not None else ""
        internal = synthetic.internal or (real is not None and real.internal)
        sentences.append(Sentence(text, internal))
    return sentences


def _unmeasured(report: RunReport) -> Sentence:
    """Why the page says nothing about models, if the evaluation does."""
    for measure in report.measured.measures:
        if measure.name in ("auc_mean", "r2_mean") and measure.value is None:
            why = measure.detail.partition(": ")[2]
            return Sentence(f"Usefulness could not be measured ({why}).", measure.internal)
    return Sentence(report.say("no use measured"))


def _effects(report: RunReport) -> list[Sentence]:
    sentences = []
    for each in regressions_of(report.measured):
        signs = [effect.same_sign for _, effect in judged(each)]
        if signs:
            found = f"A {each.model} regression of {each.outcome} has"
            if each.study is not None:
                found = f"The private estimates of the pre-specified regression {each.study} have"
            text = report.say("same direction", found=found, same=sum(signs), of=len(signs))
            sentences.append(Sentence(text, each.confidential))
    return sentences


def prediction_section(report: RunReport) -> Section | None:
    """Return the section on models that learn from the table. None where nothing was measured."""
    scores = section_measures(report.measured, "utility")
    blocks: list[Block] = [Plots((plot,)) for plot in report.drawn("auc", "r2")]
    for name, heading in (("roc", "Receiver operating characteristic"), ("calibration", "Calibration")):
        curves = report.drawn(name)
        blocks += [Heading(heading), Plots(curves)] if curves else []
    blocks += measure_tables(scores) + column_tables(scores, "Utility")
    if not blocks:
        return None
    if not any(measure.internal for measure in scores):
        return Section("prediction", "The outcome", tuple(blocks))
    return Section("prediction", "Prediction", (paragraph(report.say("prediction")), *blocks))


def replication_section(report: RunReport) -> Section | None:
    """Return the section on study replication. None where no study was pre-specified or replicated."""
    evaluation = report.measured
    measures = section_measures(evaluation, "replication")
    compared: list[Block] = []
    for each in regressions_of(evaluation):
        compared += _compared(report, each)
    compared += measure_tables(measures) + column_tables(measures, "Replication")
    declared = _declared(report)
    if not compared:
        title = "Pre-specified regressions"
        return Section("replication", title, tuple(declared)) if declared else None
    intro = paragraph(*_effects(report), report.say("replication"))
    if declared:
        declared.append(Heading(f"Beside real {report.counted}"))
    return Section("replication", "Regressions", (*declared, intro, *compared))


def _declared(report: RunReport) -> list[Block]:
    """The private estimates of each study, and their permitted uses."""
    if not report.studies:
        return []
    internal = bool(report.withheld)
    blocks: list[Block] = [Bullets(tuple(Sentence(text, internal) for text in _guidance(report)))]
    for estimates in report.studies:
        blocks += _estimates(report, estimates, internal)
    return blocks


def _guidance(report: RunReport) -> list[str]:
    """How an analyst uses the estimates, or why they may not be shared, and what no guarantee covers."""
    if report.withheld:
        return [report.withheld]
    guide = report.say("guide").splitlines()
    if report.guarantee is not None and report.guarantee.excluded:
        guide.append(report.say("excluded estimates", reasons=together(report.guarantee.excluded)))
    return guide


def _estimates(report: RunReport, estimates: Estimates, internal: bool) -> list[Block]:
    status = MARK if internal else Cell(words.PAID)
    header = ("term", estimates.measure, f"{words.level_text(words.LEVEL)} interval", "p")
    caption = f"Pre-specified regression {estimates.study}: private estimates"
    effects = estimates.no_effect is not None
    return [
        Heading(f"Pre-specified regression: {estimates.study}"),
        paragraph(Sentence(words.described(estimates), internal)),
        *([Plots((report.plot_of(f"estimates[{estimates.study}]"),))] if effects else []),
        table(caption, header, words.rows(estimates), status=status),
        *_survival(report, estimates, internal, status),
    ]


def _survival(report: RunReport, estimates: Estimates, internal: bool, status: Cell) -> list[Block]:
    """Survival at the ends of the intervals of time."""
    curve = estimates.survival
    if curve is None:
        return []
    header = ("time", "survival", f"{words.level_text(curve.level)} band")
    caption = f"Pre-specified regression {estimates.study}: survival"
    return [
        paragraph(Sentence(words.surviving(curve), internal)),
        Plots((report.plot_of(f"survival[{estimates.study}]"),)),
        table(caption, header, curve.rows(), status=status),
    ]


def _compared(report: RunReport, each: Any) -> list[Block]:
    """One regression (:func:`~dpsynth.evaluation.effects.regressions_of`): its fits, a plot and its terms."""
    name = f"{each.model.capitalize()} regression of {each.outcome}"
    title = name if each.study is None else f"{name}, pre-specified as {each.study}"
    fitted = f"Fitted to {each.n_real} real and {each.n_synthetic} synthetic {report.counted}."
    note = Sentence(f"{fitted} {each.note}".strip(), each.confidential)
    blocks: list[Block] = [Heading(title), paragraph(note)]
    if not any(effect for sides in each.terms.values() for effect in sides.values()):
        return blocks  # the note says why; a table of nothing adds nothing
    blocks.append(Plots((report.plot_of(each.regression),)))
    status = Cell("", internal=each.confidential)
    tables = _three_sides(each, name, report.counted) if each.study is not None else _two_sides(each, name)
    return [*blocks, *(table(caption, header, told, status=status) for caption, header, told in tables)]


#: caption, header and rows of a table
_Table = tuple[str, tuple[str, ...], list[tuple[str | Cell, ...]]]


def _two_sides(each: Any, name: str) -> Iterator[_Table]:
    header = ("term", f"real {each.measure}", f"synthetic {each.measure}", *_ALIKE)
    told = [
        (term, effect_text(of["real"]), effect_text(of["synthetic"]), *_agreement(of["synthetic"]))
        for term, of in each.terms.items()
    ]
    yield f"{name}: effects with intervals ({each.regression})", header, told


def _three_sides(each: Any, name: str, counted: Counted) -> Iterator[_Table]:
    """Two tables, since one of all numbers is wider than paper."""
    sides = ("term", f"real {each.measure}", "pre-specified", "naive: not valid as inference")
    effects: list[tuple[str | Cell, ...]] = [
        (term, *(effect_text(of[side]) for side in ("real", "declared", "synthetic")))
        for term, of in each.terms.items()
    ]
    yield f"{name}: effects with intervals ({each.regression})", sides, effects
    alike = (
        "term",
        *(f"pre-specified: {name}" for name in _ALIKE),
        "pre-specified: interval covers the real estimate",
        *(f"naive: {name}" for name in _ALIKE),
    )
    compared = [
        (term, *_agreement(of["declared"]), Cell(_held(of["declared"])), *_agreement(of["synthetic"]))
        for term, of in each.terms.items()
    ]
    yield f"{name}: agreement with real {counted} ({each.regression})", alike, compared


_ALIKE = ("same sign", "overlap", "standardised difference")


def _agreement(side: Any) -> tuple[str | Cell, ...]:
    """Same sign, overlap and standardised difference of one side against the real one."""
    if side is None:
        return Cell("n/a"), "n/a", "n/a"
    return Cell(_yes_no(side.same_sign)), shown(side.overlap), shown(side.standardised_difference)


def _held(private: Any) -> str:
    return _yes_no(None if private is None else private.holds_real)


def _yes_no(answer: bool | None) -> str:
    return "n/a" if answer is None else "yes" if answer else "no"


# ------------------------------------------------------------------------------------------------
# Table 1 as clinicians publish it: the real and the synthetic records, column by column.

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
    made = table(caption, header, rows, status=status, folded=True if group is not None else None)
    return replace(made, phone="cards")


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


# ------------------------------------------------------------------------------------------------
# Distances between records, columns and pairs. Tables of columns are folded if the rules find nothing wrong.


def closeness_section(report: RunReport) -> Section | None:
    """Return the section on repeated records and memorisation. None where nothing was measured."""
    evaluation, counted = report.measured, report.counted
    measures = section_measures(evaluation, "closeness")
    drawn = report.drawn("nn_accuracy", "attacks", "distances")
    blocks: list[Block] = [Plots(drawn)] if drawn else []
    blocks += measure_tables(measures) + column_tables(measures, "Closeness")
    if not blocks:
        return None
    signs = [(get(evaluation, name), text) for name, text in report.words("signs").items()]
    said = [Sentence(text.format(measured(m)), m.internal) for m, text in signs if m is not None]
    blocks = [*([Bullets(tuple(said))] if said else []), *blocks]
    intro = [report.say("distances")]
    if not any(measure.internal for measure in measures):
        return Section("closeness", f"Repeated {counted}", (paragraph(*intro), *blocks))
    intro.append(report.say("copies"))
    return Section("closeness", f"Distances between {counted}", (paragraph(*intro), *blocks))


# Panels of columns that are shown at once; the rest unfolds.
_SHOWN = 9


def similarity_section(report: RunReport) -> Section | None:
    """Return the section. None where nothing was measured."""
    evaluation = report.measured
    measures = section_measures(evaluation, "similarity")
    blocks: list[Block] = measure_tables(measures)
    blocks += _rules(evaluation)
    blocks += _marginals(report, measures)
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
            number_cell(words.thousandths(rule.synthetic), rule.synthetic.internal),
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


def _marginals(report: RunReport, measures: Sequence[Measure]) -> list[Block]:
    panels = report.drawn("marginal")
    if not panels:
        return []
    blocks: list[Block] = [Heading("Column by column")]
    if len(panels) > 1 and any(m.name.startswith("tvd[") and m.value is not None for m in measures):
        blocks.append(paragraph(Sentence("The columns that differ most come first.", internal=True)))
    blocks.append(Plots(panels[:_SHOWN]))
    if len(panels) > _SHOWN:
        blocks.append(Plots(panels[_SHOWN:], folded=f"The other {len(panels) - _SHOWN} columns"))
    return blocks


def _associations(report: RunReport) -> list[Block]:
    frames = report.measured.groups("association", "table")
    if not frames:
        return []
    columns, all_columns = matrix_of(frames[0])[0], len(report.measured.groups("marginal", "column"))
    said = [report.say("associations")]
    if len(columns) < all_columns:
        said.append(report.say("heat maps", shown=len(columns), all=all_columns))
    blocks: list[Block] = [Heading("Associations"), paragraph(*said), Plots(report.drawn("associations"))]
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
        for grid in (_tails(frame, counted, folded=numbers_well), _masses(frame, counted, folded=masses_well))
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
                *_mean(rows.get("mean_ratio"), counted),
                f"{words.column_width(spread.real, unit)} → {words.column_width(spread.synthetic, unit)}",
                _found(spread, counted),
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


def _masses(frame: pd.DataFrame, counted: Counted, folded: bool) -> TableBlock:
    masses = frame_rows(frame[frame["measure"] == "point_mass_error"])
    masses.sort(key=lambda row: -abs(row.value))
    told = [
        (m.column, Cell(rules.frequent(m.at)), decimals(m.real), decimals(m.synthetic), _found(m, counted, 3))
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


def _found(row: Any, counted: Counted, places: int = 2) -> str:
    """An error or ratio with its interval, or why there is none."""
    if row.value is None:
        return ""
    return f"{row.value:.{places}f} (n/a: too few {counted})" if row.few else estimate_text(row, places)


def _mean(row: Any, counted: Counted) -> tuple[str, str]:
    """Both means and their ratio, of numbers without negative values."""
    if row is None:
        return "", ""
    ends = (column_value(mean, row.unit) for mean in (row.real, row.synthetic))
    return " → ".join(ends), _found(row, counted)


def _percentile(row: Any, counted: Counted) -> tuple[str, str]:
    return (
        f"{column_value(row.real, row.unit)} → {column_value(row.synthetic, row.unit)}",
        _found(row, counted),
    )


def _share(value: float | None) -> str:
    return "" if value is None else decimals(value)


# ------------------------------------------------------------------------------------------------
# Subgroups: is each there in its real share, and do predictions hold in it? All internal.


def subgroup_section(report: RunReport) -> Section | None:
    """Return the section. None where no column makes subgroups."""
    frames = report.measured.groups("subgroups")
    if not frames:
        return None
    rows, scores = frame_rows(frames[0]), _subgroup_scores(report.measured)
    data, status = rows[0], Cell("", internal=any_confidential(*frames))
    blocks: list[Block] = [paragraph(report.say("share of subgroups", level=words.level_text(data.level)))]
    blocks.append(Bullets(tuple(_worst(report, rows, scores, any_confidential(*frames)))))
    shares = (
        (_name(row), *(_share_text(row, of) for of in ("real", "synthetic", "difference"))) for row in rows
    )
    header = ("subgroup", "real", "synthetic", "difference")
    blocks.append(table(f"Subgroups: share of the {report.counted}", header, shares, status=status))
    if data.note:
        blocks.append(paragraph(data.note))
    if data.event is not None and data.model is not None:
        model, event = data.model.replace("_", " "), data.event
        blocks.append(
            paragraph(report.say("scores of subgroups", model=model, event=event, fewest=data.fewest))
        )
        blocks += [_score_table(report, rows, scores, what, status) for what in ("AUC", "Calibration")]
    return Section("subgroups", "Subgroups", tuple(blocks))


#: AUC and calibration by column, subgroup, table that a model learned from, and score
_Scores = Mapping[tuple[str, str, str, str], Any]


def _subgroup_scores(evaluation: Evaluation) -> _Scores:
    rows = (row for frame in evaluation.groups("subgroup_scores") for row in frame_rows(frame))
    return {(row.column, row.subgroup, row.trained_on, row.score): row for row in rows}


def _worst(report: RunReport, rows: Sequence[Any], scores: _Scores, internal: bool) -> Iterator[Sentence]:
    """The subgroups whose share, and whose AUC, differ most."""
    row = max(rows, key=lambda row: abs(row.difference))
    text = report.say(
        "furthest share",
        name=_name(row),
        real=words.in_percent(row.real),
        synthetic=words.in_percent(row.synthetic),
        beyond=sum(not row.difference_lower <= 0 <= row.difference_upper for row in rows),
        of=len(rows),
    )
    yield Sentence(text, internal)
    losses = []
    for row in rows:
        both = (scores.get((row.column, row.subgroup, arm, "auc")) for arm in ("synthetic", "train"))
        made, real = (None if score is None else score.value for score in both)
        if made is not None and real is not None and made < real:
            losses.append((_name(row), made, real))
    if losses:
        name, *ends = max(losses, key=lambda loss: loss[2] - loss[1])
        made, real = map(decimals, ends)
        yield Sentence(report.say("furthest score", name=name, made=made, real=real), internal)


def _score_table(
    report: RunReport, rows: Sequence[Any], scores: _Scores, what: str, status: Cell
) -> TableBlock:
    arms = list(dict.fromkeys(arm for _, _, arm, _ in scores))
    told = (
        (
            _name(row),
            f"{row.records:,.0f} ({row.events:,.0f})",
            *(_score_text(scores.get((row.column, row.subgroup, arm, what.lower())), what) for arm in arms),
        )
        for row in rows
    )
    learned = {"synthetic": "from synthetic", "train": "from real"}
    header = ("subgroup", f"{report.counted} (events)", *(learned[arm] for arm in arms))
    return table(f"Subgroups: {what} in held-out {report.counted}", header, told, status=status)


def _score_text(score: Any, what: str) -> str:
    if score is None or score.value is None:
        return "n/a" if score is None else score.why or "n/a"
    ends = (score.value, score.lower, score.upper)
    return between(*ends) if what == "AUC" else _points(*ends)


def _name(row: Any) -> str:
    return f"{row.column}: {row.subgroup}"


def _share_text(row: Any, of: str) -> str:
    value, lower, upper = (getattr(row, f"{of}{end}") for end in ("", "_lower", "_upper"))
    if of == "difference":
        return _points(value, lower, upper)
    return f"{words.in_percent(value)} ({100 * lower:.1f} to {100 * upper:.1f})"


def _points(*ends: float) -> str:
    return between(*ends, say=lambda end: decimals(100 * end, 1))


# ------------------------------------------------------------------------------------------------
# The section on patients with several rows: paths, rows a patient, gaps, and measures of both tables.

_ASKED = (rules.whole_patients, rules.over_time, rules.rows_and_gaps, mixed_effects, mixed_sizes)
#: a number of one table, or the difference of both, of a column or of none
_SIDE = re.compile(r"(?P<name>[^\[]+)_(?P<side>synthetic|train|difference)(?P<of>\[.*\])?", re.DOTALL)


def over_time_section(report: RunReport) -> Section | None:
    """Return the section. None where patients have one row."""
    evaluation = report.measured
    measures = section_measures(evaluation, "patients")
    plots = [*filter(None, (report.drawn("paths"), report.drawn("rows", "gaps", "lags", "events")))]
    if not measures and not plots:
        return None
    intro = paragraph(report.say("over time"))
    blocks: list[Block] = [*_findings_over_time(evaluation), intro, *_sides(measures), *map(Plots, plots)]
    rest = [measure for measure in measures if not _SIDE.fullmatch(measure.name)]
    features = [measure for measure in rest if measure.name.startswith("patient_auc_loss[")]
    rest = [measure for measure in rest if measure not in features]
    blocks += measure_tables(rest) + column_tables(rest, "Patients over time")
    blocks += column_tables(features, "Features of patients")
    return Section("over-time", "Patients over time", tuple(blocks))


def _findings_over_time(evaluation: Evaluation) -> list[Block]:
    found = answers(evaluation, *_ASKED)
    return [Bullets(tuple(Sentence(v.sentence, v.internal) for v in found))] if found else []


def _sides(measures: list[Measure]) -> list[Block]:
    """One table of numbers with a value for each table, a line each."""
    lines: dict[tuple[str, str], dict[str, Measure]] = {}
    for measure in measures:
        if match := _SIDE.fullmatch(measure.name):
            lines.setdefault((match["name"], match["of"] or ""), {})[match["side"]] = measure
    if not lines:
        return []
    sides = [
        side for side in ("train", "synthetic", "difference") if any(side in own for own in lines.values())
    ]
    rows = []
    for (name, of), own in lines.items():
        what = own["synthetic"].detail.removesuffix(", synthetic") if "synthetic" in own else name
        # a number that is not defined says why
        lacking = next((measure for measure in own.values() if measure.value is None), None)
        first = Cell(what) if lacking is None else Cell(lacking.detail, internal=lacking.internal)
        if of:
            first = replace(first, text=f"{of[1:-1]}: {first.text}")
        cells = [number_cell(_text(own.get(side)), side in own and own[side].internal) for side in sides]
        rows.append((first, *cells, Cell(f"{name}{of}", quiet=True)))
    words = {"train": "real", "synthetic": "synthetic", "difference": "difference"}
    header = ("what it is", *(words[side] for side in sides), "name")
    return [TableBlock("Rows of patients", header, tuple(rows), folded=len(rows) > 15)]


def _text(measure: Measure | None) -> str:
    if measure is None:
        return ""
    return shown(measure.value) if measure.lower is None else words.shown_with_interval(measure)
