"""Usefulness in short, models that learn from the table, and study replication.

Estimates of pre-specified regressions are covered by the guarantee. They stand on top, on a page to share
too. Comparisons with real records are internal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dpsynth.checks import Counted, together
from dpsynth.evaluation.effects import regressions_of
from dpsynth.report.blocks import (
    MARK,
    Block,
    Bullets,
    Cell,
    Heading,
    Item,
    Items,
    Plots,
    Section,
    Sentence,
    column_tables,
    items,
    measure_tables,
    paragraph,
    section_measures,
    table,
)
from dpsynth.report.intervals import plot_effects, plot_estimates, plot_intervals
from dpsynth.report.plots import plot_survival, plots_of_frames
from dpsynth.report.run_report import RunReport, score_rows
from dpsynth.report.verdicts.utility import judged
from dpsynth.report.verdicts.verdict import get
from dpsynth.report.words import (
    LEVEL,
    PAID,
    described,
    effect_text,
    level_text,
    measured,
    rows,
    shown,
    surviving,
)
from dpsynth.studies.study import Estimates


def uses_section(report: RunReport) -> Section:
    """Return possible uses of the table, in short."""
    said = (*_studies(report), *_prediction(report))
    found = _findings(report)
    blocks: list[Block] = [paragraph(*(said or (_unmeasured(report),)))]
    blocks += [Items(found[:_WORST])] if found else []
    return Section("utility", "Is it useful?", tuple(blocks), FOLDS)


def findings_section(report: RunReport) -> Section | None:
    """Return the findings for which the page before the folds has no room. None if it has all."""
    found = _findings(report)[_WORST:]
    return Section("findings", "More findings", (Items(found),)) if found else None


def _findings(report: RunReport) -> tuple[Item, ...]:
    return items(verdict for verdict in report.findings if verdict.about == "trust")


#: findings that are seen before the folds, the worst
_WORST = 5
#: folded parts on quality
FOLDS = ("findings", "prediction", "replication", "resemblance", "closeness")


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
    evaluation, counted = report.measured, report.counted
    scores = section_measures(evaluation, "utility")
    blocks: list[Block] = []
    for prefix, reference, label in (("auc", 0.5, "AUC"), ("r2", 0.0, "explained variance")):
        rows = score_rows(scores, prefix)
        if any(measure.value is not None for _, _, measure in rows):
            caption = f"{label} on held-out real {counted} (line: blind guessing)"
            plot = plot_intervals(
                rows, counted, what=label, caption=caption, reference=reference, axis_label=label
            )
            blocks.append(Plots((plot,)))
    for name, heading in (("roc", "Receiver operating characteristic"), ("calibration", "Calibration")):
        curves = plots_of_frames(evaluation, name)
        blocks += [Heading(heading), Plots(tuple(curves.values()))] if curves else []
    blocks += measure_tables(scores) + column_tables(scores, "Utility")
    if not blocks:
        return None
    intro = paragraph(report.say("prediction"))
    if not any(measure.internal for measure in scores):
        return Section("prediction", "The outcome", tuple(blocks))
    return Section("prediction", "Prediction", (intro, *blocks))


def replication_section(report: RunReport) -> Section | None:
    """Return the section on study replication. None where no study was pre-specified or replicated."""
    evaluation = report.measured
    measures = section_measures(evaluation, "replication")
    compared: list[Block] = []
    for each in regressions_of(evaluation):
        compared += _compared(each, report.counted)
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
        blocks += _estimates(estimates, internal)
    return blocks


def _guidance(report: RunReport) -> list[str]:
    """How an analyst uses the estimates, or why they may not be shared, and what no guarantee covers."""
    if report.withheld:
        return [report.withheld]
    guide = report.say("guide").splitlines()
    if report.guarantee is not None and report.guarantee.excluded:
        guide.append(report.say("excluded estimates", reasons=together(report.guarantee.excluded)))
    return guide


def _estimates(estimates: Estimates, internal: bool) -> list[Block]:
    status = MARK if internal else Cell(PAID)
    header = ("term", estimates.measure, f"{level_text(LEVEL)} interval", "p")
    caption = f"Pre-specified regression {estimates.study}: private estimates"
    effects = estimates.no_effect is not None
    return [
        Heading(f"Pre-specified regression: {estimates.study}"),
        paragraph(Sentence(described(estimates), internal)),
        *([Plots((plot_estimates(estimates, LEVEL, internal=internal),))] if effects else []),
        table(caption, header, rows(estimates), status=status),
        *_survival(estimates, internal, status),
    ]


def _survival(estimates: Estimates, internal: bool, status: Cell) -> list[Block]:
    """Survival at the ends of the intervals of time."""
    curve = estimates.survival
    if curve is None:
        return []
    header = ("time", "survival", f"{level_text(curve.level)} band")
    caption = f"Pre-specified regression {estimates.study}: survival"
    return [
        paragraph(Sentence(surviving(curve), internal)),
        Plots((plot_survival(curve, estimates.study, internal=internal),)),
        table(caption, header, curve.rows(), status=status),
    ]


def _compared(each: Any, counted: Counted) -> list[Block]:
    """One regression (:func:`~dpsynth.evaluation.effects.regressions_of`): its fits, a plot and its terms."""
    name = f"{each.model.capitalize()} regression of {each.outcome}"
    title = name if each.study is None else f"{name}, pre-specified as {each.study}"
    fitted = f"Fitted to {each.n_real} real and {each.n_synthetic} synthetic {counted}."
    note = Sentence(f"{fitted} {each.note}".strip(), each.confidential)
    blocks: list[Block] = [Heading(title), paragraph(note)]
    if not any(effect for sides in each.terms.values() for effect in sides.values()):
        return blocks  # the note says why; a table of nothing adds nothing
    blocks.append(Plots((plot_effects(each, counted),)))
    status = Cell("", internal=each.confidential)
    tables = _three_sides(each, name, counted) if each.study is not None else _two_sides(each, name)
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
