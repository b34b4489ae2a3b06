"""The section on similarity: distributions of single columns, and associations of pairs."""

from __future__ import annotations

from collections.abc import Sequence

from dpsynth.evaluation.records import Evaluation, Measure
from dpsynth.report.details import ASSOCIATION, MARGINAL, Associations, Marginal, Of, any_internal
from dpsynth.report.drawing.heat_map import MOST_NAMES, plot_matrix
from dpsynth.report.drawing.histograms import plot_marginals
from dpsynth.report.drawing.svg import Plot
from dpsynth.report.page.blocks import Block, Cell, Grid, Heading, Plots, Section, Sentence, paragraph
from dpsynth.report.page.columns import column_blocks
from dpsynth.report.page.tables import OF_COLUMN, column_tables, measure_tables, measures_of

# Panels of columns that are shown at once; the rest unfolds.
_SHOWN = 9


def section(evaluation: Evaluation) -> Section | None:
    """Return the section; None where nothing was measured."""
    measures = measures_of(evaluation, "similarity")
    blocks: list[Block] = measure_tables(measures)
    blocks += _marginals(evaluation, measures)
    blocks += column_blocks(evaluation)
    blocks += _associations(evaluation)
    blocks += column_tables(measures, "Resemblance")
    if not blocks:
        return None
    both = any(m.internal for m in measures) or any_internal(MARGINAL.of(evaluation))
    intro = "Distributions of single columns and associations of pairs" + (
        ", synthetic beside real." if both else " in the synthetic table."
    )
    title = "Does it look like the real table?" if both else "What does it look like?"
    return Section("resemblance", title, (paragraph(intro), *blocks))


def _marginals(evaluation: Evaluation, measures: Sequence[Measure]) -> list[Block]:
    distance = {
        match["column"]: float(measure.value)
        for measure in measures
        if measure.value is not None
        and (match := OF_COLUMN.fullmatch(measure.name)) is not None
        and match["name"] == "tvd"
    }
    drawn: list[tuple[float, Plot]] = []
    for details in MARGINAL.by(evaluation, "column"):
        by_table = {d.data["table"]: d for d in reversed(details)}
        real = by_table.get("train", by_table.get("test"))
        pair = [d for d in (by_table.get("synthetic"), real) if d is not None and d.data["share"]]
        pair = [d for d in pair if _bins(d.data) == _bins(pair[0].data)]
        if pair:
            drawn.append((-distance.get(pair[0].data["column"], 0.0), plot_marginals(pair)))
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


def _bins(data: Marginal) -> Sequence[object] | None:
    return data.get("edges") or data.get("labels")


def _associations(evaluation: Evaluation) -> list[Block]:
    known = (d for d in ASSOCIATION.of(evaluation) if d.data["columns"] and d.data["matrix"])
    details: dict[str, Of[Associations]] = {detail.data["table"]: detail for detail in known}
    if not details:
        return []
    plots: list[Plot] = []
    for table, words in (("synthetic", "Synthetic table"), ("train", "Real training table")):
        if (detail := details.get(table)) is not None:
            what = f"Associations of pairs of columns, {words.lower()}"
            plots.append(_heat_map(detail.data, what, words, internal=detail.internal))
    if "synthetic" in details and "train" in details:
        synthetic, real = details["synthetic"].data, details["train"].data
        if synthetic["columns"] == real["columns"]:
            what = "Difference of the associations, synthetic minus real"
            caption = "Difference: synthetic minus real"
            plots.append(_heat_map(_difference(synthetic, real), what, caption, internal=True, signed=True))
    blocks: list[Block] = [
        Heading("Associations"),
        paragraph(
            "Between 0 (none) and 1: |Pearson| of two numbers, Cramér's V of two categories, correlation "
            "ratio of one of each; grey where it is not defined."
        ),
        Plots(tuple(plots)),
    ]
    columns = next(iter(details.values())).data["columns"]
    if len(columns) > MOST_NAMES:
        key = tuple((Cell(str(place)), Cell(name)) for place, name in enumerate(columns, start=1))
        blocks.append(Grid("Columns of the heat maps by number", ("number", "column"), key, folded=True))
    return blocks


def _heat_map(data: Associations, what: str, caption: str, *, internal: bool, signed: bool = False) -> Plot:
    matrix = data["matrix"] or ()
    return plot_matrix(matrix, data["columns"], what=what, caption=caption, internal=internal, signed=signed)


def _difference(synthetic: Associations, real: Associations) -> Associations:
    matrix = [
        [None if a is None or b is None else a - b for a, b in zip(*rows, strict=True)]
        for rows in zip(synthetic["matrix"] or (), real["matrix"] or (), strict=True)
    ]
    return {**synthetic, "matrix": matrix}
