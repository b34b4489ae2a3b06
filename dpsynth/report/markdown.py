"""A report as Markdown, for people without a browser: ``report.md`` has the parts of the page, without plots.

It opens with the guarantee. Without one, NOT PRIVATE comes first.
"""

from __future__ import annotations

from collections.abc import Iterable

from dpsynth.accounting.guarantee import NOT_PRIVATE
from dpsynth.errors import CONFIDENTIAL
from dpsynth.files.markdown import code_block, inert
from dpsynth.report.page import blocks
from dpsynth.report.page.html import folds_of, parts_of
from dpsynth.report.run_report import RunReport


def to_markdown(report: RunReport) -> str:
    """Return the report of a run for its owner. Without a ledger, it has what is known."""
    lines = [f"# {inert(report.title)}", ""]
    records = "patients" if report.of_patients else "records"
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
        case blocks.Columns(lists):
            return [line for items in lists for line in _block_lines(items)]
        case blocks.Grid():
            return _table_lines(block)
    return []  # plots have no text


def _item_line(item: blocks.Item) -> str:
    said = _told(item.sentences)
    # a finding begins with its title
    title = "" if said.startswith(inert(item.title)) else f"{inert(item.title)}: "
    return f"- {item.label} {title}{said}"


def _table_lines(grid: blocks.Grid) -> list[str]:
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
