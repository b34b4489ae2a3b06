"""The section on utility: what models that learn from the synthetic table are worth on real records."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dpsynth.evaluation.details import Calibration, Roc
from dpsynth.evaluation.records import Evaluation, Measure
from dpsynth.report.drawing.intervals import plot_intervals
from dpsynth.report.drawing.prediction_curves import plot_calibration, plot_roc
from dpsynth.report.page.blocks import Block, Heading, Plots, Section, paragraph
from dpsynth.report.page.tables import by, column_tables, measure_tables, measures_of


def section(evaluation: Evaluation) -> Section | None:
    """Return the section; None where nothing was measured."""
    scores = measures_of(evaluation, "utility")
    blocks: list[Block] = []
    for prefix, reference, label in (("auc", 0.5, "AUC"), ("r2", 0.0, "explained variance")):
        rows = _scores(scores, prefix)
        if any(measure.value is not None for _, _, measure in rows):
            caption = f"{label} on held-out real records; the line is blind guessing"
            plot = plot_intervals(rows, what=label, caption=caption, reference=reference, axis_label=label)
            blocks.append(Plots((plot,)))
    rocs = tuple(map(plot_roc, by(evaluation.of(Roc), "model")))
    blocks += [Heading("Receiver operating characteristic"), Plots(rocs)] if rocs else []
    calibrations = tuple(map(plot_calibration, by(evaluation.of(Calibration), "model")))
    blocks += [Heading("Calibration"), Plots(calibrations)] if calibrations else []
    blocks += measure_tables(scores) + column_tables(scores, "Utility")
    if not blocks:
        return None
    intro = paragraph(
        "Classifiers learn the outcome from the synthetic table and are tested on real records that had no "
        "part in it; beside them, the same classifiers learn from the real training records."
    )
    if not any(measure.internal for measure in scores):
        return Section("utility", "The outcome", tuple(blocks))
    return Section("utility", "Is it useful?", (intro, *blocks))


def _scores(measures: Sequence[Measure], prefix: str) -> list[tuple[str, str, Measure]]:
    """Scores of one kind: of each model, trained on the synthetic and on the real table."""
    rows = []
    for measure in measures:
        kind, _, rest = measure.name.partition("_")
        if kind == prefix and rest and not re.search("difference|delta|loss", rest):
            table = "train" if rest.startswith("real_") else "synthetic"
            rows.append((rest.removeprefix("real_").replace("_", " "), table, measure))
    order = list(dict.fromkeys(label for label, _, _ in rows))
    return sorted(rows, key=lambda row: order.index(row[0]))
