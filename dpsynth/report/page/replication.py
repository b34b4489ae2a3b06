"""The section on study replication: each regression's forest plot and its table of effects."""

from __future__ import annotations

from dpsynth.evaluation.records import Evaluation, shown
from dpsynth.report.details import EFFECTS, Effects, Of
from dpsynth.report.drawing.forest import in_words, plot_effects
from dpsynth.report.page.blocks import Block, Cell, Grid, Heading, Plots, Section, Sentence, number, paragraph
from dpsynth.report.page.tables import column_tables, measure_tables, measures_of


def section(evaluation: Evaluation) -> Section | None:
    """Return the section; None where no study was replicated."""
    measures = measures_of(evaluation, "replication")
    blocks: list[Block] = []
    for detail in EFFECTS.of(evaluation):
        blocks += _effects(detail)
    blocks += measure_tables(measures) + column_tables(measures, "Replication")
    if not blocks:
        return None
    intro = paragraph(
        "The same regression is fitted to the real and to the synthetic records. A study is replicated where "
        "the effects have the same sign and their intervals overlap."
    )
    return Section("replication", "Does a study come out the same?", (intro, *blocks))


def _effects(detail: Of[Effects]) -> list[Block]:
    data, rows = detail.data, detail.data["rows"]
    name = f"{data['model'].capitalize()} regression of {data['outcome']}"
    fitted = f"Fitted to {data['n_real']} real and {data['n_synthetic']} synthetic records."
    note = Sentence(f"{fitted} {data.get('note', '')}".strip(), detail.internal)
    blocks: list[Block] = [Heading(name), paragraph(note)]
    if not any(row["real"] or row["synthetic"] for row in rows):
        return blocks  # the note says why; a table of nothing adds nothing
    cells = tuple(
        (
            Cell(row["term"]),
            number(in_words(row["real"])),
            number(in_words(row["synthetic"])),
            Cell("n/a" if row["same_sign"] is None else "yes" if row["same_sign"] else "no"),
            number(shown(row["overlap"])),
            number(shown(row["standardised_difference"])),
            Cell("", internal=detail.internal),
        )
        for row in rows
    )
    sizes = (f"real {data['measure']}", f"synthetic {data['measure']}")
    header = ("term", *sizes, "same sign", "overlap", "standardised difference", "status")
    caption = f"{name}: effects with intervals ({detail.name})"
    return [*blocks, Plots((plot_effects(detail),)), Grid(caption, header, cells, folded=len(cells) > 15)]
