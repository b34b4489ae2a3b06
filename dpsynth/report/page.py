"""The page, and its Markdown for people without a browser."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from dpsynth.checks import together
from dpsynth.errors import CONFIDENTIAL, InputError
from dpsynth.evaluation.results import Evaluation, plain_cells, shown
from dpsynth.files.storage import write_text
from dpsynth.files.text import code_block, inert
from dpsynth.report import blocks, privacy, quality, training
from dpsynth.report.blocks import Section, column_tables, divided, home, measure_tables
from dpsynth.report.overview import overview_section
from dpsynth.report.run_report import RunReport

if TYPE_CHECKING:
    import pandas as pd
    from jinja2 import Environment
    from markupsafe import Markup


# ------------------------------------------------------------------------------------------------
# One self-contained HTML page: no script, no address outside itself, everything from data escaped.
#
# The frame of HTML around the sections, and the styles, are the same for every page.


@dataclass(frozen=True)
class Banner:
    """A box above a page: its first words in bold, and the rest."""

    kind: Literal["internal", "release", "void", "unknown"]
    first: str
    rest: str


def render_sections(
    title: str, parts: Sequence[Section], banners: Sequence[Banner], *, mode: str, day: str | None = None
) -> str:
    """Return a page of sections as HTML: no script, no address outside itself, everything escaped.

    Examples
    --------
    >>> banner = Banner("void", "NOT PRIVATE.", "")
    >>> page = render_sections("<b>", [Section("a", "A")], [banner], mode="internal")
    >>> "<b>" in page, "<title>&lt;b&gt; (internal)</title>" in page, "<script" in page
    (False, True, False)
    """
    entries = [(part.anchor, part.title) for part in parts]
    values: dict[str, object] = {"folds": [], "bars": [], "more": {}, "day": day}
    values |= {"title": title, "mode": mode, "banners": banners, "parts": parts, "entries": entries}
    return _environment().get_template("page.html").render(**values)


def _breakable(text: str) -> Markup:
    """Escaped text that may break after an underscore: names of measures are long for a phone."""
    from markupsafe import Markup, escape

    return Markup("_<wbr>").join(escape(part) for part in text.split("_"))


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    folder = resources.files("dpsynth.report").joinpath("templates")
    environment = Environment(
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _breakable
    environment.filters["inert"] = lambda text: Markup(inert(text))
    environment.filters["fenced"] = lambda text: Markup("\n".join(code_block(text, "yaml")))
    return environment


Mode = Literal["internal", "release"]
MODES: tuple[Mode, ...] = get_args(Mode)


def render(report: RunReport, mode: Mode) -> str:
    """Return the page of a report as HTML.

    Parameters
    ----------
    report : RunReport
    mode : {"internal", "release"}
        ``internal`` shows everything and marks numbers from real records. ``release`` is made from
        ``report.released()``, which holds nothing internal.

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
    parts, folds = parts_of(report), folds_of(report, internal=internal)
    known = {fold.anchor: fold.title for fold in folds}
    excluded = () if report.guarantee is None else report.guarantee.excluded
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=report.title,
            day=report.day,
            mode=mode,
            records=report.counted,
            state="unknown" if report.guarantee is None else report.guarantee.status,
            excluded=together(excluded) if excluded else "",
            repeated=_repeated(report),
            bars=privacy.bars(report),
            parts=parts,
            more={part.anchor: [(to, known[to]) for to in part.more if to in known] for part in parts},
            folds=folds,
            entries=[(part.anchor, part.title) for part in parts],
        )
    )


def _repeated(report: RunReport) -> str:
    """Files that repeat values of real records by the schema. Empty if nobody knows of any."""
    return report.say("repeated") if report.schema_of_records else ""


def write_page(report: RunReport, path: str | Path, mode: Mode) -> None:
    """Write the page of a report into a folder that exists, wholly or not at all. See :func:`render`."""
    write_text(path, render(report, mode), shared=mode == "release" and not report.undecided)


#: the page before the folds, by anchor, and what makes each part
PARTS: dict[str, Callable[[RunReport], Section | None]] = {
    "overview": overview_section,
    "guarantee": privacy.guarantee_section,
    "attempts": privacy.attempts_section,
    "table-one": lambda report: divided(quality.table_one_section(report))[0],
    "utility": quality.uses_section,
    "over-time": lambda report: divided(quality.over_time_section(report))[0],
    "subgroups": lambda report: divided(quality.subgroup_section(report))[0],
    "training": training.training_section,
    "limits": privacy.limits_section,
}


def parts_of(report: RunReport) -> list[Section]:
    """Return the parts that are seen without unfolding: attacks before anything that compares records.

    Parts and folds do not depend on the mode. A page to share is built from a report that holds nothing
    internal. So no rule in them can let something through.
    """
    parts = [part for make in PARTS.values() if (part := make(report)) is not None]
    return [*parts, privacy.checklist_section(report, [part.anchor for part in parts])]


def folds_of(report: RunReport, *, internal: bool) -> list[Section]:
    """Return the folded parts. Those that the report lacks are left out."""
    folds = (
        privacy.ledger_section(report),
        privacy.bounds_section(report),
        privacy.risks_section(report),
        divided(quality.table_one_section(report))[1],
        quality.findings_section(report),
        quality.prediction_section(report),
        divided(quality.over_time_section(report))[1],
        divided(quality.subgroup_section(report))[1],
        quality.replication_section(report),
        quality.similarity_section(report),
        quality.closeness_section(report),
        _others(report.measured),
        privacy.card_section(report),
        privacy.glossary_section(report, internal=internal),
    )
    return [fold for fold in folds if fold is not None and fold.blocks]


#: frames that the sections read; any other is shown as it is
_FRAMES = (
    "association", "calibration", "distances", "effects", "events", "finer_than_declared", "gaps", "lags",
    "marginal", "missing_cells", "outside_bounds", "parts", "paths", "regressions", "roc", "rows_per_patient",
    "single_columns", "subgroup_scores", "subgroups", "table_one", "table_one_differences", "tails",
)  # fmt: skip


def _others(evaluation: Evaluation) -> Section | None:
    """Measures and frames that no section is known for, such as those of another evaluator."""
    left = [measure for measure in evaluation.measures if home(measure.group) is None]
    grids = [_as_it_is(name, frame) for name, frame in evaluation.details.items() if name not in _FRAMES]
    blocks = [*measure_tables(left), *column_tables(left, "Other measures"), *grids]
    return Section("others", "Other measures", tuple(blocks)) if blocks else None


def _as_it_is(name: str, frame: pd.DataFrame) -> blocks.TableBlock:
    """A frame as a table, with a badge at each confidential row."""
    columns = [column for column in frame.columns if column != CONFIDENTIAL]
    cells = [
        [cell if isinstance(cell, str) else shown(cell) for cell in plain_cells(frame[c])] for c in columns
    ]
    marks = (blocks.Cell("", internal=bool(mark)) for mark in frame[CONFIDENTIAL])
    return blocks.table(
        name.replace("_", " "), (*columns, "status"), [*zip(*cells, marks, strict=True)], status=None
    )


# ------------------------------------------------------------------------------------------------
# A report as Markdown, for people without a browser: ``report.md`` has the parts of the page, without plots.
#
# It opens with the guarantee. Without one, NOT PRIVATE comes first.


def to_markdown(report: RunReport) -> str:
    """Return the report of a run for its owner. Without a ledger, it has what is known."""
    void = report.guarantee is not None and not report.guarantee.private
    head = {"title": report.title, "void": void, "records": report.counted}
    return _markdown([*parts_of(report), *folds_of(report, internal=True)], head)


def section_lines(section: Section | None) -> list[str]:
    """Return a section of a page as Markdown: its sentences and tables. None gives no line."""
    return [] if section is None else _markdown([section]).split("\n")


def _markdown(sections: Sequence[Section], head: Mapping[str, object] | None = None) -> str:
    text = _environment().get_template("page.md").render(sections=sections, head=head)
    return text.rstrip("\n") + "\n"
