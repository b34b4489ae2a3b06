"""One self-contained HTML page: no script, no address outside itself, everything from data escaped."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from dpsynth.errors import InputError
from dpsynth.evaluation.records import Evaluation
from dpsynth.files.atomic import write_text
from dpsynth.report.page import attempts, card, glossary, guarantee, replication, risks, similarity, utility
from dpsynth.report.page.blocks import Section
from dpsynth.report.page.frame import render_template
from dpsynth.report.page.summary import boxes
from dpsynth.report.page.tables import column_tables, home, measure_tables
from dpsynth.report.run_report import RunReport

Mode = Literal["internal", "release"]
MODES: tuple[Mode, ...] = get_args(Mode)


def render(report: RunReport, mode: Mode) -> str:
    """Return the page of a report as HTML.

    Parameters
    ----------
    report : RunReport
    mode : {"internal", "release"}
        ``internal`` shows everything and marks what was computed from real records; ``release`` is made from
        ``report.released()``, so that nothing internal can reach it.

    Returns
    -------
    str
        The same text for the same report.

    Raises
    ------
    InputError
        If the mode is unknown.

    Examples
    --------
    >>> page = render(RunReport(), "release")
    >>> "No guarantee is known" in page, "<script" in page
    (True, False)
    """
    if mode not in MODES:
        raise InputError(f"mode must be one of {', '.join(MODES)}, got {mode!r}")
    internal = mode == "internal"
    if not internal:
        report = report.released()
    words = glossary.section(internal=internal, studies=bool(report.studies))
    parts = [*_sections(report), card.section(report), words]
    return render_template(
        "report.html",
        title=report.title,
        day=report.day,
        mode=mode,
        state="unknown" if report.guarantee is None else report.guarantee.status,
        excluded="" if report.guarantee is None else "; ".join(report.guarantee.excluded),
        boxes=boxes(report),
        parts=parts,
        entries=[("summary", "In plain words"), *((part.anchor, part.title) for part in parts)],
    )


def write_page(report: RunReport, path: str | Path, mode: Mode) -> None:
    """Write the page of a report into a folder that exists, wholly or not at all; see :func:`render`."""
    write_text(path, render(report, mode))


def _sections(report: RunReport) -> list[Section]:
    """The numbered part of a page; what the report lacks is left out, with its section.

    They know nothing of modes: a page for release is built from a report that holds nothing internal, so that
    no rule in them can let something through.
    """
    measured = report.measured
    parts = (
        attempts.section(report),
        utility.section(measured),
        replication.section(report),
        similarity.section(measured),
        similarity.closeness_section(measured),
        _others(measured),
    )
    return [guarantee.section(report), risks.section(report), *filter(None, parts)]


def _others(evaluation: Evaluation) -> Section | None:
    """Measures that no section is known for, such as those of a later version."""
    left = [measure for measure in evaluation.measures if home(measure.group) is None]
    blocks = measure_tables(left) + column_tables(left, "Other measures")
    return Section("others", "Other measures", tuple(blocks)) if blocks else None
