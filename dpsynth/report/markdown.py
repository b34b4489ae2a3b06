"""A report as Markdown, for people without a browser: ``report.md``.

It opens with the guarantee. Without one, NOT PRIVATE comes first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpsynth.accounting.guarantee import NOT_PRIVATE
from dpsynth.accounting.record import Summary
from dpsynth.errors import CONFIDENTIAL
from dpsynth.files.markdown import code_block, inert
from dpsynth.files.yaml_text import dump_yaml
from dpsynth.report.formats import bound, levels_text, round_up, seconds_text
from dpsynth.report.page.blocks import Bullets, Grid, Paragraph, Section, Sentence
from dpsynth.report.page.subgroups import subgroup_section
from dpsynth.report.page.table_one import table_one_section
from dpsynth.report.run_report import RunReport
from dpsynth.report.wording import (
    HEADER,
    PAID,
    WORDS,
    cells,
    closers,
    described,
    grouped,
    guidance,
    rows,
    surviving,
)


def to_markdown(report: RunReport) -> str:
    """Return the report of a run. Without a ledger, it has what is known."""
    lines = [f"# Synthetic table: {inert(str(report.table.get('name', 'unnamed')))}", ""]
    if report.guarantee is not None and report.summary is not None:
        if not report.guarantee.private:
            lines += [
                f"> **{NOT_PRIVATE}.** The records of this run's training table are not protected. "
                "Protect everything beside this report as you protect those records.",
                "",
            ]
        lines += ["## Guarantee", "", inert(str(report.guarantee)), ""]
        lines += _excluded(report.guarantee.excluded)
        lines += ["## Cost", "", *_ledger_table(report.summary)]
    lines += _attempts(report)
    lines += section_lines(table_one_section(report))
    lines += _studies(report)
    if report.evaluation is not None:
        lines += [
            "## Similarity and usefulness",
            "",
            f"Numbers marked *{CONFIDENTIAL}* were computed from real records without noise. The guarantee "
            "does not cover them. Share the synthetic table, the model and the ledger, not this report.",
            "",
            report.evaluation.to_markdown(level=3),
            *section_lines(subgroup_section(report)),
        ]
    lines += ["## How it was made", "", *_facts(report.table), ""]
    lines += [*code_block(dump_yaml(dict(report.config)).rstrip("\n"), "yaml"), ""]
    lines.append(_joined("Versions", report.versions))
    lines += ["", f"Wall time ({CONFIDENTIAL}): {seconds_text(report.seconds)}.", ""]
    return "\n".join(lines)


def section_lines(section: Section | None) -> list[str]:
    """Return a section of a page as Markdown: its sentences and tables. None gives no line."""
    if section is None:
        return []
    lines = [f"## {inert(section.title)}", ""]
    for block in section.blocks:
        if isinstance(block, Paragraph):
            lines += [" ".join(map(_told, block.sentences)), ""]
        elif isinstance(block, Bullets):
            lines += [*(f"- {_told(item)}" for item in block.items), ""]
        elif isinstance(block, Grid):
            lines += [f"### {inert(block.caption)}", "", f"| {' | '.join(map(inert, block.header))} |"]
            numbers = [cell.number for cell in block.rows[0]] if block.rows else [False] * len(block.header)
            lines.append("|" + "|".join("---:" if right else "---" for right in numbers) + "|")
            for row in block.rows:
                cells = (f"{cell.text} {CONFIDENTIAL if cell.internal else ''}".strip() for cell in row)
                lines.append(f"| {' | '.join(map(inert, cells))} |")
            lines.append("")
    return lines


def _told(sentence: Sentence) -> str:
    return inert(sentence.text) + (f" *({CONFIDENTIAL})*" if sentence.internal else "")


def _studies(report: RunReport) -> list[str]:
    if not report.studies:
        return []
    lines = ["## Pre-specified regressions", "", inert(" ".join(guidance(report))), ""]
    status = CONFIDENTIAL if report.withheld else PAID
    for told in report.studies:
        lines += [f"### {inert(told.study)}", "", inert(described(told)), ""]
        lines += [f"| term | {told.measure} | 95 % interval | p | status |", "|---|---:|---|---:|---|"]
        lines += ["| " + " | ".join(inert(cell) for cell in (*cells, status)) + " |" for cells in rows(told)]
        lines.append("")
        if told.survival is not None:
            lines += [inert(surviving(told.survival)), ""]
            lines += ["| time | survival | band | status |", "|---:|---:|---|---|"]
            lines += [f"| {' | '.join((*cells, status))} |" for cells in told.survival.rows()]
            lines.append("")
    return lines


def _attempts(report: RunReport) -> list[str]:
    if not report.attempts:
        return []
    levels = levels_text(attempt.level for attempt in report.attempts)
    lines = [
        "## Attacks beside proved bounds",
        "",
        f"Intervals are of {levels}. An attack below its bound proves nothing. An attack above "
        "it shows that the proof or the code is wrong.",
        "",
    ]
    for measure, attempts in grouped(report.attempts):
        name, meaning = WORDS[measure]
        lines += [f"### {name}", "", f"{meaning[:1].upper()}{meaning[1:]}.", ""]
        lines += [f"| {' | '.join(HEADER)} | status |", "|---|---:|---:|---:|---|---|"]
        for attempt in attempts:
            status = CONFIDENTIAL if attempt.internal else "may be shared"
            lines.append("| " + " | ".join(inert(cell) for cell in (*cells(attempt), status)) + " |")
        lines += ["", *(inert(told) for told, _ in closers(attempts)), ""]
    return lines


def _excluded(reasons: Sequence[str]) -> list[str]:
    if not reasons:
        return []
    return ["The guarantee does **not** cover:", "", *(f"- {inert(reason)}" for reason in reasons), ""]


def _ledger_table(summary: Summary) -> list[str]:
    lines = [
        "| noisy statistic | event | sensitivity | ε alone | ε so far |",
        "|---|---|---|---:|---:|",
    ]
    for entry in summary["entries"]:
        cells = (
            entry["name"] + (f" ({entry['detail']})" if entry["detail"] else ""),
            entry["event"],
            entry["sensitivity"],
            bound(entry["epsilon_alone"]),
            bound(entry["epsilon_cumulative"]),
        )
        lines.append("| " + " | ".join(inert(cell) for cell in cells) + " |")
    lines += [
        "",
        f"In all: ε = {bound(summary['epsilon'])} at δ = {round_up(summary['delta'])}, total variation "
        f"{bound(summary['tv'])}, attack advantage at most {bound(summary['advantage'])} and attack "
        f"accuracy at most {bound(summary['attack_accuracy_bound'])}. Neighbouring datasets: "
        f"{summary['adjacency']}.",
        "",
    ]
    return lines


def _facts(table: Mapping[str, object]) -> list[str]:
    return [f"- {key.replace('_', ' ')}: {inert(str(value))}" for key, value in table.items()]


def _joined(label: str, values: Mapping[str, str]) -> str:
    return f"{label}: " + ", ".join(f"{name} {value}" for name, value in values.items()) + "."
