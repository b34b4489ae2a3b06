"""Two sections: similarity of columns and of pairs, and closeness of synthetic to real records.

The section on closeness: nearest neighbours, and attacks that ask whether the table remembers anyone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpsynth.evaluation.details import Associations, Distances, Marginal
from dpsynth.evaluation.records import Detail, Evaluation, Measure, any_internal
from dpsynth.report.drawing.heat_map import MOST_NAMES, plot_matrix
from dpsynth.report.drawing.histograms import plot_distances, plot_marginals
from dpsynth.report.drawing.intervals import plot_intervals
from dpsynth.report.drawing.svg import Plot
from dpsynth.report.page.blocks import Block, Cell, Grid, Heading, Plots, Section, Sentence, paragraph
from dpsynth.report.page.columns import column_blocks
from dpsynth.report.page.tables import OF_COLUMN, by, column_tables, measure_tables, measures_of

_ATTACKS = {
    "membership_auc": "attack by distance",
    "membership_auc_calibrated": "by compared distances",
    "dcr_closer_to_train": "nearer to training",
}


def closeness_section(evaluation: Evaluation) -> Section | None:
    """Return the section on repeated records and memorisation; None where nothing was measured."""
    measures = measures_of(evaluation, "closeness")
    accuracies = [measure for measure in measures if measure.name.startswith("nn_accuracy")]
    attacks = [measure for measure in measures if measure.name in _ATTACKS]
    drawn: list[Plot] = []
    for words, caption, label, chosen in (
        ("Nearest-neighbour accuracy", "Nearest-neighbour accuracy against 1/2, which is best", "accuracy",
         accuracies),
        ("Signs of memory", "Attacks that guess who was in the training table; 1/2 is a coin",
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
    intro = paragraph(
        "A table that remembers its training records lies nearer to them than new real records do. A "
        "nearest-neighbour accuracy of 1/2 means that real and synthetic records mix; towards 0 they are "
        "copies, towards 1 they are strangers."
    )
    if not any(measure.internal for measure in measures):
        return Section("closeness", "Repeated records", tuple(blocks))
    return Section("closeness", "Does it remember anyone?", (intro, *blocks))


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
    both = any(m.internal for m in measures) or any_internal(evaluation.of(Marginal))
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
    for details in by(evaluation.of(Marginal), "column"):
        by_table = {d.data.table: d for d in reversed(details)}
        real = by_table.get("train", by_table.get("test"))
        pair = [d for d in (by_table.get("synthetic"), real) if d is not None and d.data.share]
        pair = [d for d in pair if _bins(d.data) == _bins(pair[0].data)]
        if pair:
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


def _bins(data: Marginal) -> Sequence[object] | None:
    return data.edges or data.labels


def _associations(evaluation: Evaluation) -> list[Block]:
    known = (d for d in evaluation.of(Associations) if d.data.columns and d.data.matrix)
    details: dict[str, Detail[Associations]] = {detail.data.table: detail for detail in known}
    if not details:
        return []
    plots: list[Plot] = []
    for table, words in (("synthetic", "Synthetic table"), ("train", "Real training table")):
        if (detail := details.get(table)) is not None:
            what = f"Associations of pairs of columns, {words.lower()}"
            plots.append(_heat_map(detail.data, what, words, internal=detail.internal))
    if "synthetic" in details and "train" in details:
        synthetic, real = details["synthetic"].data, details["train"].data
        if synthetic.columns == real.columns:
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
    columns = next(iter(details.values())).data.columns
    if len(columns) > MOST_NAMES:
        key = tuple((Cell(str(place)), Cell(name)) for place, name in enumerate(columns, start=1))
        blocks.append(Grid("Columns of the heat maps by number", ("number", "column"), key, folded=True))
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
