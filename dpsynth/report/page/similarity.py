"""The sections of a page, built from what a source holds.

They know nothing of modes: a page for release is built from a source that holds nothing internal, so that no
rule in here can let something through. What a source lacks is left out, with its section.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dpsynth.evaluation.records import Detail, Evaluation, Measure
from dpsynth.report.drawing import plots
from dpsynth.report.drawing.marginals import marginal
from dpsynth.report.load import ReportSource
from dpsynth.report.page.blocks import (
    Block,
    Cell,
    Grid,
    Heading,
    Plot,
    Plots,
    Section,
    Sentence,
    paragraph,
)
from dpsynth.report.page.column_tables import column_tables
from dpsynth.report.page.privacy import guarantee
from dpsynth.report.page.replication import replication
from dpsynth.report.page.risks import risks
from dpsynth.report.page.tables import OF_COLUMN, home, measures_of, pivots, tables

# Panels of columns that are shown at once; the rest unfolds.
_SHOWN = 9
_ATTACKS = {
    "membership_auc": "attack by distance",
    "membership_auc_calibrated": "by compared distances",
    "dcr_closer_to_train": "nearer to training",
}


def sections(source: ReportSource) -> tuple[Section, ...]:
    """Return the numbered part of a page: guarantee, risks, utility, replication, resemblance, and so on."""
    made: list[Section] = [guarantee(source), risks(source)]
    if source.evaluation is not None:
        builders: tuple[Callable[[Evaluation], Section | None], ...] = (
            _utility,
            replication,
            _resemblance,
            _closeness,
            _others,
        )
        made += [section for build in builders if (section := build(source.evaluation)) is not None]
    return tuple(made)


def _utility(evaluation: Evaluation) -> Section | None:
    found = measures_of(evaluation, "utility")
    blocks: list[Block] = []
    for prefix, reference, label in (("auc", 0.5, "AUC"), ("r2", 0.0, "explained variance")):
        rows = _scores(found, prefix)
        if any(measure.value is not None for _, _, measure in rows):
            caption = f"{label} on held-out real records; the line is blind guessing"
            blocks.append(
                Plots((plots.intervals(rows, what=label, caption=caption, reference=reference,
                                       axis_label=label),))
            )  # fmt: skip
    for kind, heading, draw in (
        ("roc", "Receiver operating characteristic", plots.roc),
        ("calibration", "Calibration", plots.calibration),
    ):
        groups = _by(evaluation.of_kind(kind), "model")
        drawn = tuple(
            draw([d.data for d in details], internal=any(d.internal for d in details)) for details in groups
        )
        blocks += [Heading(heading), Plots(drawn)] if drawn else []
    blocks += tables(found) + pivots(found, "Utility")
    if not blocks:
        return None
    intro = paragraph(
        "Classifiers learn the outcome from the synthetic table and are tested on real records that had no "
        "part in it; beside them, the same classifiers learn from the real training records."
    )
    measured = any(m.internal for m in found)
    if not measured:
        return Section("utility", "The outcome", tuple(blocks))
    return Section("utility", "Is it useful?", (intro, *blocks))


def _scores(found: Sequence[Measure], prefix: str) -> list[tuple[str, str, Measure]]:
    """Scores of one kind: of each model, trained on the synthetic and on the real table."""
    rows = []
    for measure in found:
        kind, _, rest = measure.name.partition("_")
        if kind == prefix and rest and not re.search("difference|delta|loss", rest):
            table = "train" if rest.startswith("real_") else "synthetic"
            rows.append((rest.removeprefix("real_").replace("_", " "), table, measure))
    order = list(dict.fromkeys(label for label, _, _ in rows))
    return sorted(rows, key=lambda row: order.index(row[0]))


def _resemblance(evaluation: Evaluation) -> Section | None:
    found = measures_of(evaluation, "resemblance")
    blocks: list[Block] = tables(found)
    blocks += _marginals(evaluation, found)
    blocks += column_tables(evaluation)
    blocks += _associations(evaluation)
    blocks += pivots(found, "Resemblance")
    if not blocks:
        return None
    both = any(m.internal for m in found) or any(d.internal for d in evaluation.of_kind("marginal"))
    intro = "Distributions of single columns and associations of pairs" + (
        ", synthetic beside real." if both else " in the synthetic table."
    )
    return Section("resemblance", "Does it look like the real table?" if both else "What does it look like?",
                   (paragraph(intro), *blocks))  # fmt: skip


def _marginals(evaluation: Evaluation, found: Sequence[Measure]) -> list[Block]:
    distance = {
        match["column"]: float(measure.value)
        for measure in found
        if measure.value is not None
        and (match := OF_COLUMN.fullmatch(measure.name)) is not None
        and match["name"] == "tvd"
    }
    drawn: list[tuple[float, Plot]] = []
    for details in _by(evaluation.of_kind("marginal"), "column"):
        by_table = {d.data["table"]: d for d in reversed(details)}
        real = by_table.get("train", by_table.get("test"))
        pair = [d for d in (by_table.get("synthetic"), real) if d is not None and d.data["share"]]
        pair = [d for d in pair if _bins(d) == _bins(pair[0])]
        if pair:
            plot = marginal([d.data for d in pair], internal=any(d.internal for d in pair))
            drawn.append((-distance.get(pair[0].data["column"], 0.0), plot))
    if not drawn:
        return []
    if distance:
        drawn.sort(key=lambda entry: entry[0])
    panels = [plot for _, plot in drawn]
    made: list[Block] = [Heading("Column by column")]
    if distance and len(panels) > 1:
        made.append(paragraph(Sentence("The columns that differ most come first.", internal=True)))
    made.append(Plots(tuple(panels[:_SHOWN])))
    if len(panels) > _SHOWN:
        made.append(Plots(tuple(panels[_SHOWN:]), folded=f"The other {len(panels) - _SHOWN} columns"))
    return made


def _bins(detail: Detail) -> Any:
    return detail.data.get("edges") or detail.data.get("labels")


def _associations(evaluation: Evaluation) -> list[Block]:
    details = {
        d.data["table"]: d
        for d in evaluation.of_kind("association")
        if d.data.get("columns") and d.data.get("matrix")
    }
    if not details:
        return []
    made: list[Plot] = []
    for table, words in (("synthetic", "Synthetic table"), ("train", "Real training table")):
        if table in details:
            detail = details[table]
            what = f"Associations of pairs of columns, {words.lower()}"
            made.append(
                plots.heat_map(detail.data["matrix"], detail.data["columns"], what=what, caption=words,
                               internal=detail.internal)
            )  # fmt: skip
    columns = list(next(iter(details.values())).data["columns"])
    pair = [details[table] for table in ("synthetic", "train") if table in details]
    if len(pair) == 2 and pair[0].data["columns"] == pair[1].data["columns"]:
        difference = [
            [None if a is None or b is None else a - b for a, b in zip(*rows, strict=True)]
            for rows in zip(pair[0].data["matrix"], pair[1].data["matrix"], strict=True)
        ]
        made.append(
            plots.heat_map(difference, columns, what="Difference of the associations, synthetic minus real",
                           caption="Difference: synthetic minus real", internal=True, signed=True)
        )  # fmt: skip
    blocks: list[Block] = [
        Heading("Associations"),
        paragraph(
            "Between 0 (none) and 1: |Pearson| of two numbers, Cramér's V of two categories, correlation "
            "ratio of one of each; grey where it is not defined."
        ),
        Plots(tuple(made)),
    ]
    if len(columns) > plots.MOST_NAMES:
        key = tuple((Cell(str(place)), Cell(name)) for place, name in enumerate(columns, start=1))
        blocks.append(Grid("Columns of the heat maps by number", ("number", "column"), key, folded=True))
    return blocks


def _closeness(evaluation: Evaluation) -> Section | None:
    found = measures_of(evaluation, "closeness")
    drawn: list[Plot] = []
    for words, caption, chosen in (
        ("Nearest-neighbour accuracy", "Nearest-neighbour accuracy against 1/2, which is best",
         lambda m: m.name.startswith("nn_accuracy")),
        ("Signs of memory", "Attacks that guess who was in the training table; 1/2 is a coin",
         lambda m: m.name in _ATTACKS),
    ):  # fmt: skip
        rows = [(_label(m.name), "synthetic", m) for m in found if chosen(m)]
        if any(m.value is not None for _, _, m in rows):
            label = "accuracy" if "accuracy" in words else "AUC, or share"
            drawn.append(plots.intervals(rows, what=words, caption=caption, reference=0.5, axis_label=label))
    drawn += [
        plots.distances(d.data, internal=d.internal)
        for d in evaluation.of_kind("distances")
        if d.data["edges"]
    ]
    blocks: list[Block] = [Plots(tuple(drawn))] if drawn else []
    blocks += tables(found) + pivots(found, "Closeness")
    if not blocks:
        return None
    intro = paragraph(
        "A table that remembers its training records lies nearer to them than new real records do. A "
        "nearest-neighbour accuracy of 1/2 means that real and synthetic records mix; towards 0 they are "
        "copies, towards 1 they are strangers."
    )
    if not any(measure.internal for measure in found):
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


def _others(evaluation: Evaluation) -> Section | None:
    left = [measure for measure in evaluation.measures if home(measure.group) is None]
    blocks = tables(left) + pivots(left, "Other measures")
    return Section("others", "Other measures", tuple(blocks)) if blocks else None


def _by(details: Iterable[Detail], key: str) -> list[list[Detail]]:
    groups: dict[Any, list[Detail]] = {}
    for detail in details:
        groups.setdefault(detail.data[key], []).append(detail)
    return list(groups.values())
