"""The section on closeness: nearest neighbours, and attacks that ask whether the table remembers anyone."""

from __future__ import annotations

from dpsynth.evaluation.records import Evaluation
from dpsynth.report.details import DISTANCES
from dpsynth.report.drawing.histograms import plot_distances
from dpsynth.report.drawing.intervals import plot_intervals
from dpsynth.report.drawing.svg import Plot
from dpsynth.report.page.blocks import Block, Plots, Section, paragraph
from dpsynth.report.page.tables import column_tables, measure_tables, measures_of

_ATTACKS = {
    "membership_auc": "attack by distance",
    "membership_auc_calibrated": "by compared distances",
    "dcr_closer_to_train": "nearer to training",
}


def section(evaluation: Evaluation) -> Section | None:
    """Return the section; None where nothing was measured."""
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
    drawn += [plot_distances(detail) for detail in DISTANCES.of(evaluation) if detail.data["edges"]]
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
