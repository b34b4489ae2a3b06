"""Write a study's results as files: a text, a page, its tables as CSV, and everything as JSON.

Forest plots of a study: all real records, private and naive estimates of one split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsynth.files.storage import dump_json, make_folder, write_text
from dpsynth.files.text import inert
from dpsynth.report.blocks import (
    Block,
    Bullets,
    Cell,
    Facts,
    Heading,
    Plots,
    Section,
    Sentence,
    TableBlock,
    paragraph,
)
from dpsynth.report.forest import Forest, draw
from dpsynth.report.page import Banner, render_sections
from dpsynth.report.plots import Plot
from dpsynth.report.words import effect_text
from dpsynth.research.replications.arms import HEALTHGAN, Arm
from dpsynth.research.replications.regression_tables import (
    Regression,
    effect_of,
    paper_sheets,
    regression_sheets,
    regressions,
)
from dpsynth.research.replications.results import NOT_PRIVATE, Results
from dpsynth.research.replications.sheets import Sheet, SheetCell
from dpsynth.research.replications.thesis_tables import thesis_sheets
from dpsynth.research.replications.trial import Trial


def forests(results: Results) -> tuple[Plots, ...]:
    """Return the plots of each regression side by side, one for each epsilon.

    They show one split, since medians of estimates have no interval.
    """
    private = [arm for arm in results.arms if arm.whole]
    found = []
    for each in regressions(results):
        fitted = [(arm, trial) for arm in private if (trial := _first(results, arm)) is not None]
        if any(each.real.values()) and fitted:
            found.append(Plots(tuple(_plot(each, arm, trial) for arm, trial in fitted)))
    return tuple(found)


def _first(results: Results, arm: Arm) -> Trial | None:
    """The first fit of the first split in which it was not refused."""
    return next((trials[0] for trials in results.of(arm.name).values() if trials[0].sets), None)


def _plot(each: Regression, arm: Arm, trial: Trial) -> Plot:
    sides = ("declared", "synthetic")
    terms = {
        term: {"real": real} | {side: effect_of(trial, each.number, term, side) for side in sides}
        for term, real in each.real.items()
    }
    told = each.told
    forest = Forest(told.outcome, told.measure, told.level, terms, each.label)
    said = "; ".join(
        f"{term}: all real {effect_text(of['real'])}, declared {effect_text(of['declared'])}, "
        f"naive {effect_text(of['synthetic'])}"
        for term, of in terms.items()
    )
    what = f"{each.label}, {arm.name}, split {trial.task.seed + 1}"
    return Plot(
        lambda: draw(forest),
        f"Forest plot, {what}, {told.measure}. {said}.",
        f"{what}: {told.measure} of each term with its 95 % interval in all real records, as private "
        "estimates, and from a synthetic table (naive: not valid as inference). One split alone; the tables "
        "below have all.",
        internal=True,
    )


_CONFIDENTIAL = (
    "CONFIDENTIAL: do not share.",
    "Nearly everything here was computed from real records without payment, so that no guarantee covers it. "
    "Each private fit has its ε for the training part that it saw, which is not the hospital's table; and "
    "whoever picks a fit by what stands here picks by real records. To share a table or estimates, make one "
    "with dpsynth run on the whole table, with what was decided before.",
)
_BASELINE = (
    f"HealthGAN is {NOT_PRIVATE}.",
    "It adds no noise; its tables are to be treated as the records themselves.",
)


@dataclass(frozen=True)
class SheetGroup:
    """Sheets that answer one question."""

    anchor: str
    title: str
    sheets: tuple[Sheet, ...]


def write_results(results: Results, folder: Path) -> tuple[str, ...]:
    """Write ``study.md``, ``study.html``, ``results.json`` and ``tables/NAME.csv`` into a folder that exists.

    Each file is written wholly or not at all. Tables that an earlier call wrote, and this one does not, are
    removed.

    Notes
    -----
    Privacy: posts no event. Most files were computed from real records: confidential.
    """
    parts = _parts(results)
    sheets = [sheet for part in parts for sheet in part.sheets]
    tables = folder / "tables"
    make_folder(tables)
    written = [f"{sheet.name}.csv" for sheet in sheets]
    for old in tables.glob("*.csv"):
        if old.name not in written:
            old.unlink()
    for sheet, name in zip(sheets, written, strict=True):
        write_text(tables / name, sheet.to_csv())
    write_text(folder / "results.json", dump_json(_record(results, sheets)) + "\n")
    write_text(folder / "study.md", study_markdown(results, parts))
    write_text(folder / "study.html", to_html(results, parts))
    return ("study.md", "study.html", "results.json", *(f"tables/{name}" for name in written))


def _parts(results: Results) -> tuple[SheetGroup, ...]:
    parts = (
        SheetGroup("paper", "What the paper found, and what is found here", paper_sheets(results)),
        SheetGroup("regressions", "The regressions, term by term", regression_sheets(results)),
        SheetGroup("thesis", "Tables in the form of the thesis", thesis_sheets(results)),
    )
    return tuple(part for part in parts if part.sheets)


def study_markdown(results: Results, parts: Sequence[SheetGroup]) -> str:
    """Return the study for people without a browser."""
    protocol = results.protocol
    lines = [f"# {inert(protocol.title)}", ""]
    for first, rest in _warnings(results):
        lines += [f"**{first}** {rest}", ""]
    lines += [inert(protocol.question), "", f"After: {inert(protocol.citation)}", "", "## Procedure", ""]
    lines += [f"- {name}: {inert(text)}" for name, text in _done(results)]
    lines += ["", "How to read the numbers:", "", *(f"- {note}" for note in _reading(results)), ""]
    if results.problems():
        lines += ["## Refused parts", "", *(f"- {inert(text)}" for text in results.problems()), ""]
    for part in parts:
        lines += [f"## {part.title}", "", *(sheet.to_markdown() for sheet in part.sheets)]
    return "\n".join(lines)


def to_html(results: Results, parts: Sequence[SheetGroup]) -> str:
    """Return the study as a page in the looks of a report, see :mod:`dpsynth.report.page`."""
    protocol = results.protocol
    done: list[Block] = [
        paragraph(protocol.question),
        paragraph(f"After: {protocol.citation}"),
        Facts(tuple((name, Sentence(text)) for name, text in _done(results))),
        Heading("How to read the numbers"),
        Bullets(tuple(map(Sentence, _reading(results)))),
    ]
    sections = [Section("done", "Procedure", tuple(done))]
    if results.problems():
        refused = Bullets(tuple(Sentence(text, internal=True) for text in results.problems()))
        sections.append(Section("refused", "Refused parts", (refused,)))
    for part in parts:
        blocks: list[Block] = [] if part.anchor != "regressions" else list(forests(results))
        for sheet in part.sheets:
            blocks += _blocks(sheet)
        sections.append(Section(part.anchor, part.title, tuple(blocks)))
    internal, *others = _warnings(results)
    banners = [Banner("internal", *internal), *(Banner("void", *each) for each in others)]
    return render_sections(protocol.title, sections, banners, mode="internal")


def _blocks(sheet: Sheet) -> list[Block]:
    rows = tuple(
        (Cell(row[0].text), *(Cell(entry.text, number=_is_short(entry)) for entry in row[1:]))
        for row in sheet.rows
    )
    table = TableBlock(f"{sheet.title} (internal)", sheet.header, rows)
    blocks: list[Block] = [table if rows else Heading(sheet.title)]
    if sheet.notes:
        blocks.append(Bullets(tuple(map(Sentence, sheet.notes))))
    return blocks


def _is_short(entry: SheetCell) -> bool:
    """Numbers are kept on one line. With an interval they may break, or the table would be too wide."""
    return bool(entry.numbers) and "(" not in entry.text


def _warnings(results: Results) -> list[tuple[str, str]]:
    return [_CONFIDENTIAL, *([_BASELINE] if any(arm.name == HEALTHGAN for arm in results.arms) else [])]


def _done(results: Results) -> list[tuple[str, str]]:
    """The protocol in words, as far as it was carried out."""
    protocol = results.protocol
    held_out = f"{100 * protocol.test_fraction:g} % held out for testing, stratified by the outcome"
    deltas = sorted({trial.delta for trial in results.trials if trial.delta and trial.task.arm != HEALTHGAN})
    fits = "one fit" if protocol.restarts == 1 else f"{protocol.restarts} fits"
    tables = "one synthetic table" if protocol.sets == 1 else f"{protocol.sets} synthetic tables"
    done = [
        ("Records", f"{results.source}; one row is {results.unit}"),
        ("Splits", f"{results.seeds} of {protocol.seeds} planned seeds; in each {held_out}"),
        ("Privacy", f"ε = {', '.join(f'{epsilon:.12g}' for epsilon in protocol.epsilons)} of one fit"),
        ("Fits", f"of each generator and split {fits}, from each {tables} of the training part's size"),
        ("Classifiers", ", ".join(name.replace("_", " ") for name in protocol.classifiers)),
    ]
    if deltas:
        done[2] = ("Privacy", f"{done[2][1]}, each at δ = {', '.join(f'{delta:.2g}' for delta in deltas)}")
    excluded = _excluded(results)
    if excluded:
        done.append(("Not covered by ε", "; ".join(excluded)))
    if protocol.baseline is not None:
        steps = f"{protocol.baseline.training_steps:,} critic's steps"
        done.append(("HealthGAN", f"{steps} without noise ({NOT_PRIVATE})"))
    if protocol.studies:
        declared = "; ".join(f"{study.label} ({study.model})" for study in protocol.studies)
        done.append(("Regressions", declared))
    if results.remarks:
        done.append(("Changed", " ".join(results.remarks)))
    resamples = len({trial.task.seed for trial in results.trials if trial.task.draw == "resample"})
    if resamples:
        done.append(("Coverage", f"counted over {resamples} resamples of the records"))
    return done


def _excluded(results: Results) -> list[str]:
    """Exclusions of the ledgers of private fits, each once."""
    private = [trial for trial in results.trials if trial.ledger is not None and trial.task.arm != HEALTHGAN]
    return list(dict.fromkeys(what for trial in private for what in trial.excluded))


def _reading(results: Results) -> list[str]:
    """Content of a cell, and how far it can be trusted."""
    seeds = results.seeds
    notes = [
        "Each split is another draw of training and test records from the same table, with fits of its own; "
        "ε is that of one split."
    ]
    if seeds < 2:
        return [*notes, "There is one split, so that nothing says how far a number would vary."]
    chance = 100 * (1 - 2.0 ** (1 - seeds))
    return [
        *notes,
        "A number over seeds is their median, and in parentheses stand the lowest and the highest of "
        f"{seeds}. These hold the median over all splits of this table, with fits of their own, with a "
        f"probability of {chance:.{0 if seeds < 8 else 1}f} %, whatever its distribution. They are no "
        "interval for other patients: how far another table would differ is not in them.",
        "n/a: not defined, or there was no estimate. [k of n seeds]: only in k of them.",
    ]


def _record(results: Results, sheets: Sequence[Sheet]) -> dict[str, Any]:
    """Protocol, each trial's measures, and the sheets. Ledgers stay with the trials."""
    trials = [
        {key: value for key, value in trial.to_dict().items() if key != "ledger"} for trial in results.trials
    ]
    costs = {
        arm.name: [results.cost(arm.name, restarts=restarts) for restarts in (False, True)]
        for arm in results.arms
        if arm.epsilon is not None
    }
    return {
        "internal": True,
        "protocol": results.protocol.to_dict(),
        "source": results.source,
        "unit": results.unit,
        "epsilon": {name: {"one_fit": one, "all_restarts": every} for name, (one, every) in costs.items()},
        "problems": results.problems(),
        "trials": trials,
        "sheets": [sheet.to_dict() for sheet in sheets],
    }
