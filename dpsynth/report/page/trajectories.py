"""The section on patients with several rows: paths, rows a patient, gaps, and measures of both tables."""

from __future__ import annotations

import re
from dataclasses import replace

from dpsynth.evaluation.records import Evaluation, Measure
from dpsynth.report.drawing.trajectories import plots_over_time
from dpsynth.report.formats import shown, shown_with_interval
from dpsynth.report.page.blocks import (
    Block,
    Bullets,
    Cell,
    Grid,
    Plots,
    Section,
    Sentence,
    column_tables,
    measure_tables,
    measures_of,
    number,
    paragraph,
)
from dpsynth.report.run_report import RunReport
from dpsynth.report.verdicts import trajectories as rules

_RULES = (rules.whole_patients, rules.over_time, rules.rows_and_gaps, rules.mixed_effects)
#: a number of one table, or the difference of both, of a column or of none
_SIDE = re.compile(r"(?P<name>[^\[]+)_(?P<side>synthetic|train|difference)(?P<of>\[.*\])?", re.DOTALL)


def over_time_section(report: RunReport) -> Section | None:
    """Return the section. None where patients have one row."""
    evaluation = report.measured
    measures = measures_of(evaluation, "patients")
    plots = plots_over_time(evaluation)
    if not measures and not plots:
        return None
    intro = paragraph(
        "A patient has several rows. The other sections describe a patient by levels, such as means. This "
        "section is about the rows themselves.",
    )
    blocks: list[Block] = [*_findings(evaluation), intro, *_sides(measures)]
    paths = tuple(plot for name, plot in plots.items() if name.startswith("paths["))
    others = tuple(plot for name, plot in plots.items() if not name.startswith("paths["))
    blocks += [Plots(drawn) for drawn in (paths, others) if drawn]
    rest = [measure for measure in measures if not _SIDE.fullmatch(measure.name)]
    features = [measure for measure in rest if measure.name.startswith("patient_auc_loss[")]
    rest = [measure for measure in rest if measure not in features]
    blocks += measure_tables(rest) + column_tables(rest, "Patients over time")
    blocks += column_tables(features, "Features of patients")
    return Section("over-time", "Patients over time", tuple(blocks))


def _findings(evaluation: Evaluation) -> list[Block]:
    found = [verdict for rule in _RULES for verdict in rule(evaluation)]
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
        cells = [number(_text(own.get(side)), side in own and own[side].internal) for side in sides]
        rows.append((first, *cells, Cell(f"{name}{of}", quiet=True)))
    words = {"train": "real", "synthetic": "synthetic", "difference": "difference"}
    header = ("what it is", *(words[side] for side in sides), "name")
    return [Grid("Rows of patients", header, tuple(rows), folded=len(rows) > 15)]


def _text(measure: Measure | None) -> str:
    if measure is None:
        return ""
    return shown(measure.value) if measure.lower is None else shown_with_interval(measure)
