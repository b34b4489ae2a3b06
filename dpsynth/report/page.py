"""The page, and its Markdown for people without a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
from dpsynth.privacy.guarantee import NOT_PRIVATE
from dpsynth.report import blocks, checklist, quality, sections, similarity, training
from dpsynth.report.blocks import Section, bars, column_tables, divided, home, measure_tables
from dpsynth.report.run_report import RunReport
from dpsynth.report.sections import over_time_section, subgroup_section
from dpsynth.report.similarity import table_one_section

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
    return _filled(
        title=title,
        day=day,
        mode=mode,
        banners=list(banners),
        parts=list(parts),
        folds=[],
        entries=entries,
        bars=[],
        more={},
    )


def _filled(**values: object) -> str:
    """Return the page with these values. A report's own banners follow from its ``state``, if it is given."""
    return _environment().get_template("page.html").render(**values)


def _breakable(text: str) -> Markup:
    """Escaped text that may break after an underscore: names of measures are long for a phone."""
    from markupsafe import Markup, escape

    return Markup("_<wbr>").join(escape(part) for part in text.split("_"))


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = resources.files("dpsynth.report").joinpath("templates")
    environment = Environment(
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _breakable
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
    return _filled(
        title=report.title,
        day=report.day,
        mode=mode,
        records=report.counted,
        state="unknown" if report.guarantee is None else report.guarantee.status,
        excluded=together(excluded) if excluded else "",
        repeated=_repeated(report),
        bars=bars(report),
        parts=parts,
        more={part.anchor: [(to, known[to]) for to in part.more if to in known] for part in parts},
        folds=folds,
        entries=[(part.anchor, part.title) for part in parts],
    )


def _repeated(report: RunReport) -> str:
    """Files that repeat values of real records by the schema. Empty if nobody knows of any."""
    by_ledger = report.guarantee is not None and report.guarantee.of_schema
    return report.say("repeated") if by_ledger or report.fact("unreviewed") else ""


def write_page(report: RunReport, path: str | Path, mode: Mode) -> None:
    """Write the page of a report into a folder that exists, wholly or not at all. See :func:`render`."""
    write_text(path, render(report, mode), shared=mode == "release" and not report.undecided)


#: the page before the folds, by anchor, and what makes each part
PARTS: dict[str, Callable[[RunReport], Section | None]] = {
    "guarantee": sections.guarantee_section,
    "attempts": checklist.attempts_section,
    "table-one": lambda report: divided(table_one_section(report))[0],
    "utility": quality.uses_section,
    "over-time": lambda report: divided(over_time_section(report))[0],
    "subgroups": lambda report: divided(subgroup_section(report))[0],
    "limits": checklist.limits_section,
}


def parts_of(report: RunReport) -> list[Section]:
    """Return the parts that are seen without unfolding: attacks before anything that compares records.

    Parts and folds do not depend on the mode. A page to share is built from a report that holds nothing
    internal. So no rule in them can let something through.
    """
    parts = [part for make in PARTS.values() if (part := make(report)) is not None]
    return [*parts, checklist.checklist_section(report, [part.anchor for part in parts])]


def folds_of(report: RunReport, *, internal: bool) -> list[Section]:
    """Return the folded parts. Those that the report lacks are left out."""
    folds = (
        sections.ledger_section(report),
        checklist.bounds_section(report),
        checklist.risks_section(report),
        divided(table_one_section(report))[1],
        quality.findings_section(report),
        quality.prediction_section(report),
        divided(over_time_section(report))[1],
        divided(subgroup_section(report))[1],
        quality.replication_section(report),
        similarity.similarity_section(report),
        similarity.closeness_section(report),
        training.training_section(report),
        _others(report.measured),
        sections.card_section(report),
        sections.glossary_section(report, internal=internal),
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
    lines = [f"# {inert(report.title)}", ""]
    records = report.counted
    if report.guarantee is not None and not report.guarantee.private:
        lines += [
            f"> **{NOT_PRIVATE}.** The {records} of this run's training table are not protected. "
            f"Protect everything beside this report as you protect those {records}.",
            "",
        ]
    lines += [
        f"Numbers marked *({CONFIDENTIAL})* were computed from real {records} without noise. The guarantee "
        "does not cover them. Share the synthetic table, the model and the ledger, not this report.",
        "",
    ]
    for section in (*parts_of(report), *folds_of(report, internal=True)):
        lines += section_lines(section)
    return "\n".join(lines)


def section_lines(section: blocks.Section | None) -> list[str]:
    """Return a section of a page as Markdown: its sentences and tables. None gives no line."""
    if section is None:
        return []
    lines = [f"## {inert(section.title)}", ""]
    for block in section.blocks:
        lines += _block_lines(block)
    return lines


def _block_lines(block: blocks.Block) -> list[str]:
    match block:
        case blocks.Paragraph(sentences):
            return [_told(sentences), ""]
        case blocks.Heading(text):
            return [f"### {inert(text)}", ""]
        case blocks.Bullets(items):
            return [*(f"- {_told([item])}" for item in items), ""]
        case blocks.Facts(facts):
            return [*(f"- {inert(name)}: {_told([value])}" for name, value in facts), ""]
        case blocks.Code(label, text):
            return [f"{label}:", "", *code_block(text, "yaml"), ""]
        case blocks.Items(items, heading):
            title = [f"### {inert(heading)}", ""] if heading else []
            return [*title, *map(_item_line, items), ""]
        case blocks.Lists(lists):
            return [line for items in lists for line in _block_lines(items)]
        case blocks.TableBlock():
            return _table_lines(block)
    return []  # plots have no text


def _item_line(item: blocks.Item) -> str:
    said = _told(item.sentences)
    # a finding begins with its title
    title = "" if said.startswith(inert(item.title)) else f"{inert(item.title)}: "
    return f"- {item.label} {title}{said}"


def _table_lines(grid: blocks.TableBlock) -> list[str]:
    right = [cell.number for cell in grid.rows[0]] if grid.rows else [False] * len(grid.header)
    caption = blocks.Sentence(grid.caption, grid.internal)
    lines = [f"### {_told([caption])}", "", f"| {' | '.join(map(inert, grid.header))} |"]
    lines.append("|" + "|".join("---:" if flush else "---" for flush in right) + "|")
    for row in grid.rows:
        cells = (f"{cell.text} {CONFIDENTIAL if cell.internal else ''}".strip() for cell in row)
        lines.append(f"| {' | '.join(map(inert, cells))} |")
    return [*lines, ""]


def _told(sentences: Iterable[blocks.Sentence]) -> str:
    return " ".join(inert(s.text) + (f" *({CONFIDENTIAL})*" if s.internal else "") for s in sentences)
