"""The section on study replication: each regression's forest plot and its table of effects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpsynth.evaluation.records import Detail, Evaluation, shown
from dpsynth.report.drawing.forest import forest
from dpsynth.report.drawing.svg import to_plot
from dpsynth.report.page.blocks import (
    Block,
    Cell,
    Grid,
    Heading,
    Plot,
    Plots,
    Section,
    Sentence,
    number,
    paragraph,
)
from dpsynth.report.page.tables import measures_of, pivots, tables


def replication(evaluation: Evaluation) -> Section | None:
    """Return the section; None where no study was replicated."""
    found = measures_of(evaluation, "replication")
    blocks: list[Block] = []
    for detail in evaluation.of_kind("effects"):
        blocks += _effects(detail)
    blocks += tables(found) + pivots(found, "Replication")
    if not blocks:
        return None
    intro = paragraph(
        "The same regression is fitted to the real and to the synthetic records. A study is replicated where "
        "the effects have the same sign and their intervals overlap."
    )
    return Section("replication", "Does a study come out the same?", (intro, *blocks))


def _effects(detail: Detail) -> list[Block]:
    data = detail.data
    name = f"{str(data.get('model', 'regression')).capitalize()} regression of {data.get('outcome')}"
    measure = str(data.get("measure", "effect"))
    made: list[Block] = [Heading(name)]
    note = str(data.get("note") or "")
    fitted = f"Fitted to {data.get('n_real')} real and {data.get('n_synthetic')} synthetic records."
    made.append(paragraph(Sentence(f"{fitted} {note}".strip(), detail.internal)))
    drawn = _forest(detail)
    made += [Plots((drawn,))] if drawn is not None else []
    if not any(row.get("real") or row.get("synthetic") for row in data.get("rows", ())):
        return made  # the note says why; a table of nothing adds nothing
    rows = tuple(
        (
            Cell(str(row["term"])),
            number(_estimate(row.get("real"))),
            number(_estimate(row.get("synthetic"))),
            Cell({True: "yes", False: "no", None: "n/a"}[row.get("same_sign")]),
            number(shown(row.get("overlap"))),
            number(shown(row.get("standardised_difference"))),
            Cell("", internal=detail.internal),
        )
        for row in data.get("rows", ())
    )
    sizes = (f"real {measure}", f"synthetic {measure}")
    header = ("term", *sizes, "same sign", "overlap", "standardised difference", "status")
    made.append(Grid(f"{name}: effects with intervals ({detail.name})", header, rows, folded=len(rows) > 15))
    return made


def _forest(detail: Detail) -> Plot | None:
    rows = detail.data.get("rows", ())
    measure = detail.data.get("measure", "effect")
    if not any(row.get("real") or row.get("synthetic") for row in rows):
        return None
    said = "; ".join(
        f"{row['term']}: real {_estimate(row.get('real'))}, synthetic {_estimate(row.get('synthetic'))}"
        for row in rows
    )
    caption = f"{str(measure).capitalize()} of each term with its interval, on real and on synthetic records"
    return to_plot(
        lambda: forest(detail.data), f"Forest plot, {measure}. {said}.", caption, internal=detail.internal
    )


def _estimate(effect: Mapping[str, Any] | None) -> str:
    if effect is None or effect.get("estimate") is None:
        return "n/a"
    if effect.get("lower") is None or effect.get("upper") is None:
        return shown(effect["estimate"])
    return f"{shown(effect['estimate'])} ({shown(effect['lower'])} to {shown(effect['upper'])})"
