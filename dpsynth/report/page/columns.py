"""Tables of tails, point masses and single columns; folded where the rules find nothing wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpsynth.evaluation.records import Evaluation
from dpsynth.report.findings import believable
from dpsynth.report.findings.believable import number as in_words
from dpsynth.report.findings.verdict import Verdict
from dpsynth.report.page.blocks import Block, Cell, Grid, Heading, Sentence, measure_grid, number, paragraph
from dpsynth.report.page.tables import OF_COLUMN, measures_of

#: rows that are shown of a table in which something is wrong; the worst come first
_SHOWN = 12

Rule = Callable[[Evaluation], Iterable[Verdict]]


def column_tables(evaluation: Evaluation) -> list[Block]:
    """Return the tables of single columns under a heading; empty where nothing was measured."""
    plain = [m for m in measures_of(evaluation, "columns") if OF_COLUMN.fullmatch(m.name) is None]
    tails = [row for detail in evaluation.of_kind("tails") for row in detail.data["rows"]]
    single = [row for detail in evaluation.of_kind("single_columns") for row in detail.data["rows"]]
    grids = [
        _tails([row for row in tails if row["spread"] is not None], _well(evaluation, believable.tails)),
        _masses(tails, _well(evaluation, believable.point_masses)),
        _single(single, _well(evaluation, believable.single_columns)),
    ]
    made: list[Block] = [part for grid in grids if grid.rows for part in _cut(grid)]
    if plain:
        made.append(measure_grid("Tails, point masses, single columns: measures", plain, folded=True))
    if not made:
        return []
    intro = paragraph(
        Sentence(
            "Averages hardly see one record in a hundred that nobody who knows patients would believe, zeros "
            "that are spread around zero, or last digits that nobody writes down: here they are, column by "
            "column. “Held out” is what real records that had no part in the table give by chance.",
        )
    )
    return [Heading("Tails, point masses and habits of recording"), intro, *made]


def _cut(grid: Grid) -> list[Block]:
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


def _tails(rows: Sequence[Mapping[str, Any]], folded: bool) -> Grid:
    made = []
    for row in sorted(rows, key=lambda row: -row["surely"]):
        unit = f" ({row['unit']})" if row["unit"] else ""
        held_out = [row[f"{name}_baseline"] for name in ("spread", "low", "high")]
        made.append(
            (
                Cell(f"{row['column']}{unit}"),
                _change(row["deviation_real"], row["deviation_synthetic"]),
                _estimate(row["spread"], 2),
                _change(row["low"]["real"], row["low"]["synthetic"]),
                _estimate(row["low"]["error"], 2),
                _change(row["high"]["real"], row["high"]["synthetic"]),
                _estimate(row["high"]["error"], 2),
                # adding 0 turns -0.00 into 0.00
                number(", ".join(f"{round(value, 2) + 0.0:.2f}" for value in held_out if value is not None)),
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
    return Grid(caption, header, tuple(made), folded)


def _masses(rows: Sequence[Mapping[str, Any]], folded: bool) -> Grid:
    found = [(row["column"], mass) for row in rows for mass in row["masses"]]
    found.sort(key=lambda entry: -abs(entry[1]["difference"]["value"]))
    made = tuple(
        (
            Cell(name),
            Cell(str(mass["value"])),
            _share(mass["real"]),
            _share(mass["synthetic"]),
            _estimate(mass["difference"]),
            Cell("", internal=True),
        )
        for name, mass in found
    )
    header = ("column", "value", "share, real", "synthetic", "point_mass_error", "status")
    return Grid(
        "Values that hold more than 5 % of a column; errors are differences of shares", header, made, folded
    )


def _single(rows: Sequence[Mapping[str, Any]], folded: bool) -> Grid:
    made = tuple(
        (
            Cell(row["column"]),
            _estimate(row["auc"]),
            _share(row["last_digits"]),
            _share(row["baseline"]),
            Cell("", internal=True),
        )
        for row in sorted(rows, key=lambda row: -row["auc"]["value"])
    )
    header = ("column", "single_column_auc", "of its last digits alone", "held out", "status")
    return Grid("Synthetic told from real records by one column alone", header, made, folded)


def _change(real: float, synthetic: float) -> Cell:
    return number(f"{in_words(real)} → {in_words(synthetic)}")


def _share(value: float | None) -> Cell:
    return number("" if value is None else f"{value:.3f}")


def _estimate(estimate: Mapping[str, float], digits: int = 3) -> Cell:
    value, lower, upper = (f"{estimate[end]:.{digits}f}" for end in ("value", "lower", "upper"))
    return number(f"{value} ({lower} to {upper})")
