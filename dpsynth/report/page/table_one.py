"""Table 1 as clinicians publish it: the real and the synthetic records, column by column.

A page for release has the synthetic records alone. Its evaluation holds no internal details.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpsynth.evaluation.details import Differences, TableOne, TableOneRow
from dpsynth.evaluation.records import Detail, Evaluation
from dpsynth.report.formats import column_value, decimals
from dpsynth.report.page.blocks import MARK, Block, Grid, Section, Sentence, paragraph, table
from dpsynth.report.run_report import RunReport
from dpsynth.table.dates import SECONDS

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


def _grid(evaluation: Evaluation, group: str | None) -> Grid:
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
    is_date = row.unit in SECONDS
    name = f"{row.column} ({row.unit})" if row.unit and not is_date else row.column
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
    if row.unit in SECONDS:
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
