"""What the paper concluded and reported, beside what is found here in real and in synthetic records."""

from __future__ import annotations

from collections.abc import Mapping

from dpsynth.evaluation.details import Effect
from dpsynth.research.replications.arms import HEALTHGAN, REAL
from dpsynth.research.replications.effects import Regression, Source, over_trials, regressions, sources
from dpsynth.research.replications.protocol import Finding
from dpsynth.research.replications.results import OverSeeds, Results
from dpsynth.research.replications.selected_tables import NOT_PRIVATE
from dpsynth.research.replications.sheets import (
    Entry,
    Sheet,
    counted,
    decimals,
    effect,
    effects_over_seeds,
    over_seeds,
)


def paper_sheets(results: Results) -> tuple[Sheet, ...]:
    """Return the sheets of the paper's findings and of its areas under the curve."""
    found = {each.label: each for each in regressions(results)}
    sheets = []
    if results.protocol.findings and found:
        sheets.append(_findings(results, found))
    if results.protocol.aucs:
        sheets.append(_aucs(results))
    return tuple(sheets)


def told(results: Results) -> list[str]:
    """Return the findings as lines for a terminal: what was concluded, and kept in how many seeds."""
    lines = []
    for sheet in paper_sheets(results):
        if sheet.name != "findings":
            continue
        for finding, reported, real, *sources_ in sheet.rows:
            kept = (
                f"{name} {entry.text.partition(';')[0]}"
                for name, entry in zip(sheet.header[3:], sources_, strict=True)
            )
            lines += [
                finding.text,
                f"  reported {reported.text}; all real records {real.text}",
                f"  kept: {', '.join(kept)}",
            ]
    return lines


def _findings(results: Results, found: Mapping[str, Regression]) -> Sheet:
    """For each finding the paper's number, that of all real records, and how often each source keeps it."""
    compared = [source for source in sources(results) if source.arm not in (REAL, HEALTHGAN)]
    rows = []
    for finding in results.protocol.findings:
        each = found[finding.study]
        real = each.real.get(finding.term)
        kept = "no estimate" if real is None else "kept" if _kept(each, finding, real) else "lost"
        rows.append(
            (
                Entry(_concluded(finding, each)),
                _reported(finding),
                Entry(kept) if real is None else effect(real, f", {kept}"),
                *(_kept_in(results, each, finding, source) for source in compared),
            )
        )
    return Sheet(
        "findings",
        "What the paper concluded, and in how many seeds it is still concluded",
        ("finding", "reported", "all real records here", *(source.label for source in compared)),
        tuple(rows),
        (
            "Kept: the 95 % interval says what the paper concluded, above or below no effect, or, for a "
            "finding of none, that none is shown. A wide interval keeps a finding of none without showing "
            "anything. Estimates that are lacking and fits that were refused count as lost.",
            "Each source: in how many seeds the finding is kept; then the median estimate, with the lowest "
            "and the highest.",
            "What is lost in all real records as well is no fault of a synthetic table.",
        ),
    )


def _concluded(finding: Finding, each: Regression) -> str:
    none = "1" if each.ratio else "0"
    where = f"{finding.effect} {none}" if finding.effect != "none" else f"{none} not excluded"
    return f"{finding.text} [{finding.term}: {where}]"


def _reported(finding: Finding) -> Entry:
    reported = finding.reported
    if reported is None:
        return Entry("no number")
    numbers = {"value": reported.value}
    text = f"{reported.value:g}"
    if reported.lower is not None and reported.upper is not None:
        text += f" ({reported.lower:g} to {reported.upper:g})"
        numbers |= {"lower": reported.lower, "upper": reported.upper}
    return Entry(f"{text}, {reported.where}", numbers)


def _kept(each: Regression, finding: Finding, told: Effect | None) -> bool:
    return told is not None and each.conclusion(told) == finding.effect


def _kept_in(results: Results, each: Regression, finding: Finding, source: Source) -> Entry:
    told = over_trials(results, each, finding.term, source)
    count = counted(sum(_kept(each, finding, one) for one in told), len(told))
    estimates = effects_over_seeds(OverSeeds.of(one.estimate for one in told if one), len(told))
    if not told:
        return Entry("no fit")
    return Entry(f"{count.text}; {estimates.text}", {**count.numbers, **estimates.numbers})


def _aucs(results: Results) -> Sheet:
    """Reported by the paper, of real data here, and of synthetic tables."""
    classifiers = results.protocol.classifiers
    blank = [Entry("")] * (len(classifiers) + 1)
    rows = [
        (
            Entry(f"paper: {reported.model}, {reported.where}"),
            _reported_auc(reported.value, reported.lower, reported.upper),
            *blank,
        )
        for reported in results.protocol.aucs
    ]
    for arm in results.arms:
        if arm.shared:
            continue
        chosen = results.first(arm.name)
        label = "real training records" if arm.name == REAL else arm.name
        found = (
            over_seeds(results.over_seeds(chosen, f"auc_{name}"), decimals, results.seeds)
            for name in ("mean", *classifiers)
        )
        rows.append(
            (Entry(f"{label} ({NOT_PRIVATE})" if arm.name == HEALTHGAN else label), Entry(""), *found)
        )
    return Sheet(
        "aucs",
        "Areas under the ROC curve: reported, with real records here, and with synthetic ones",
        ("trained on", "reported", "mean here", *(name.replace("_", " ") for name in classifiers)),
        tuple(rows),
        (
            "What is trained here predicts from all columns, and is tested on real records that were held "
            "out.",
        ),
    )


def _reported_auc(value: float, lower: float | None, upper: float | None) -> Entry:
    if lower is None or upper is None:
        return Entry(f"{value:g}", {"value": value})
    return Entry(f"{value:g} ({lower:g} to {upper:g})", {"value": value, "lower": lower, "upper": upper})
