"""Tables of tails, point masses and single columns; folded where the rules find nothing wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from dpsynth.evaluation.details import SingleColumnRow, SingleColumns, Tails, TailsRow
from dpsynth.evaluation.estimates import Estimate
from dpsynth.evaluation.records import Evaluation
from dpsynth.evaluation.similarity.tails import Percentile
from dpsynth.report.formats import column_value, decimals, estimate_text
from dpsynth.report.page.blocks import Block, Cell, Grid, Heading, Sentence, number, paragraph
from dpsynth.report.page.tables import OF_COLUMN, measure_grid, measures_of
from dpsynth.report.verdicts import columns
from dpsynth.report.verdicts.verdict import Verdict

#: rows that are shown of a table in which something is wrong; the worst come first
_SHOWN = 12

Rule = Callable[[Evaluation], Iterable[Verdict]]


def column_blocks(evaluation: Evaluation) -> list[Block]:
    """Return the tables of single columns under a heading; empty where nothing was measured."""
    plain = [m for m in measures_of(evaluation, "columns") if OF_COLUMN.fullmatch(m.name) is None]
    tails = [row for detail in evaluation.of(Tails) for row in detail.data.rows]
    single = [row for detail in evaluation.of(SingleColumns) for row in detail.data.rows]
    grids = [
        _tails(tails, _well(evaluation, columns.tails)),
        _masses(tails, _well(evaluation, columns.point_masses)),
        _single(single, _well(evaluation, columns.single_columns)),
    ]
    blocks = [part for grid in grids if grid.rows for part in _cut(grid)]
    if plain:
        blocks.append(measure_grid("Tails, point masses, single columns: measures", plain, folded=True))
    if not blocks:
        return []
    intro = paragraph(
        Sentence(
            "Averages hardly see one record in a hundred that nobody who knows patients would believe, zeros "
            "that are spread around zero, or last digits that nobody writes down: here they are, column by "
            "column. “Held out” is what real records that had no part in the table give by chance.",
        )
    )
    return [Heading("Tails, point masses and habits of recording"), intro, *blocks]


def _cut(grid: Grid) -> list[Grid]:
    """Return a table that is shown as its first rows and, on demand, the others."""
    more = len(grid.rows) - _SHOWN
    if grid.folded or more <= 0:
        return [grid]
    return [
        replace(grid, rows=grid.rows[:_SHOWN]),
        replace(grid, rows=grid.rows[_SHOWN:], caption=f"{grid.caption}: the other {more}", folded=True),
    ]


def _well(evaluation: Evaluation, rule: Rule) -> bool:
    return all(verdict.severity == "good" for verdict in rule(evaluation))


def _tails(rows: Sequence[TailsRow], folded: bool) -> Grid:
    cells = []
    for row in sorted(rows, key=lambda row: -row.surely):
        if row.spread is None:
            continue
        unit = f" ({row.unit})" if row.unit else ""
        held_out = (row.spread_baseline, row.low_baseline, row.high_baseline)
        cells.append(
            (
                Cell(f"{row.column}{unit}"),
                _change(row.deviation_real, row.deviation_synthetic),
                _estimate(row.spread, 2),
                *(cell for end in (row.low, row.high) if end for cell in _percentile(end)),
                number(", ".join(decimals(value, 2) for value in held_out if value is not None)),
                Cell("", internal=True),
            )
        )
    header = (
        "column",
        "standard deviation",
        "spread_ratio",
        "1st percentile",
        "percentile_1_error",
        "99th percentile",
        "percentile_99_error",
        "held out: ratio, errors",
        "status",
    )
    caption = (
        "Spread and tails of numbers, real → synthetic; errors in standard deviations of the real column"
    )
    return Grid(caption, header, tuple(cells), folded)


def _masses(rows: Sequence[TailsRow], folded: bool) -> Grid:
    masses = [(row.column, mass) for row in rows for mass in row.masses]
    masses.sort(key=lambda entry: -abs(entry[1].difference.value))
    cells = tuple(
        (
            Cell(name),
            Cell(str(mass.value)),
            _share(mass.real),
            _share(mass.synthetic),
            _estimate(mass.difference),
            Cell("", internal=True),
        )
        for name, mass in masses
    )
    header = ("column", "value", "share, real", "synthetic", "point_mass_error", "status")
    caption = "Values that hold more than 5 % of a column; errors are differences of shares"
    return Grid(caption, header, cells, folded)


def _single(rows: Sequence[SingleColumnRow], folded: bool) -> Grid:
    cells = tuple(
        (
            Cell(row.column),
            _estimate(row.auc),
            _share(row.last_digits),
            _share(row.baseline),
            Cell("", internal=True),
        )
        for row in sorted(rows, key=lambda row: -row.auc.value)
    )
    header = ("column", "single_column_auc", "of its last digits alone", "held out", "status")
    return Grid("Synthetic told from real records by one column alone", header, cells, folded)


def _percentile(end: Percentile) -> tuple[Cell, Cell]:
    return _change(end.real, end.synthetic), number("") if end.error is None else _estimate(end.error, 2)


def _change(real: float | None, synthetic: float | None) -> Cell:
    return number(f"{column_value(real)} → {column_value(synthetic)}")


def _share(value: float | None) -> Cell:
    return number("" if value is None else decimals(value))


def _estimate(estimate: Estimate, digits: int = 3) -> Cell:
    return number(estimate_text(estimate, digits))
