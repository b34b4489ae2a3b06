"""Errors by subgroup: is each group there in its real share, and do predictions hold in it? All internal."""

from __future__ import annotations

from collections.abc import Iterator

from dpsynth.evaluation.details import SubgroupRow, Subgroups, SubgroupScores
from dpsynth.evaluation.estimates import Estimate
from dpsynth.evaluation.records import Detail
from dpsynth.report.formats import between, decimals, in_percent, level_text
from dpsynth.report.page.blocks import Block, Bullets, Cell, Grid, Section, Sentence, paragraph, table
from dpsynth.report.run_report import RunReport


def subgroup_section(report: RunReport) -> Section | None:
    """Return the section. None where no column makes subgroups."""
    found = report.measured.of(Subgroups)
    if not found:
        return None
    detail = found[0]
    data = detail.data
    intro = paragraph(
        "Each subgroup should have its real share of the records.",
        "Predictions should be as good in it as those of a model that learned from real records.",
        "Shares are in percent, and differences in percentage points.",
        f"Intervals are of {level_text(data.level)}.",
    )
    blocks: list[Block] = [intro]
    if worst := tuple(_worst(detail)):
        blocks.append(Bullets(worst))
    blocks.append(_representation(detail))
    if data.note:
        blocks.append(paragraph(data.note))
    if data.event is not None and data.model is not None:
        blocks.append(
            paragraph(
                f"The model ({data.model.replace('_', ' ')}) predicts {data.event}.",
                "It learned from all synthetic records, or from all real training records.",
                "It is tested on held-out real records of the subgroup.",
                f"With fewer than {data.fewest} records with or without the event, a subgroup has too few "
                "records for scores.",
                "AUC 0.5 is blind guessing and 1 is perfect. Calibration is the observed minus the predicted "
                "share of the event, in percentage points. Above 0, too few events were predicted.",
            )
        )
        blocks += [_scores(detail, "AUC"), _scores(detail, "Calibration")]
    return Section("subgroups", "Subgroups", tuple(blocks))


def _worst(detail: Detail[Subgroups]) -> Iterator[Sentence]:
    """The subgroups whose share, and whose AUC, differ most."""
    rows = detail.data.rows
    if rows:
        row = max(rows, key=lambda row: abs(row.difference.value))
        beyond = sum(not row.difference.lower <= 0 <= row.difference.upper for row in rows)
        yield Sentence(
            f"The share of {_name(row)} differs most: {in_percent(row.real.value)} of the training records, "
            f"{in_percent(row.synthetic.value)} of the synthetic ones. The interval of the difference leaves "
            f"out 0 in {beyond} of {len(rows)} subgroups.",
            detail.internal,
        )
    losses = {}
    for place, row in enumerate(rows):
        made, real = (_of(row, arm).auc for arm in ("synthetic", "train"))
        if made is not None and real is not None and made.value < real.value:
            losses[place] = (real.value - made.value, made, real)
    if losses:
        place = max(losses, key=lambda place: losses[place][0])
        _, made, real = losses[place]
        yield Sentence(
            f"The AUC in {_name(rows[place])} loses most: {decimals(made.value)} from synthetic records, "
            f"{decimals(real.value)} from real ones.",
            detail.internal,
        )


def _representation(detail: Detail[Subgroups]) -> Grid:
    rows = (
        (_name(row), _percent(row.real), _percent(row.synthetic), _points(row.difference))
        for row in detail.data.rows
    )
    header = ("subgroup", "real", "synthetic", "difference")
    return table("Subgroups: share of the records", header, rows, status=Cell("", internal=detail.internal))


def _scores(detail: Detail[Subgroups], what: str) -> Grid:
    arms = list(dict.fromkeys(score.trained_on for row in detail.data.rows for score in row.scores))
    rows = (
        (_name(row), f"{row.records:,} ({row.events:,})", *(_score(_of(row, arm), what) for arm in arms))
        for row in detail.data.rows
    )
    learned = {"synthetic": "from synthetic", "train": "from real"}
    header = ("subgroup", "records (events)", *(learned[arm] for arm in arms))
    caption = f"Subgroups: {what} in held-out records"
    return table(caption, header, rows, status=Cell("", internal=detail.internal))


def _score(score: SubgroupScores, what: str) -> str:
    found = score.auc if what == "AUC" else score.calibration
    if score.why or found is None:
        return score.why or "n/a"
    return between(found.value, found.lower, found.upper) if what == "AUC" else _points(found)


def _of(row: SubgroupRow, arm: str) -> SubgroupScores:
    none = SubgroupScores("synthetic", None, None, "n/a")
    return next((score for score in row.scores if score.trained_on == arm), none)


def _name(row: SubgroupRow) -> str:
    return f"{row.column}: {row.name}"


def _percent(share: Estimate) -> str:
    return f"{in_percent(share.value)} ({100 * share.lower:.1f} to {100 * share.upper:.1f})"


def _points(difference: Estimate) -> str:
    ends = (difference.value, difference.lower, difference.upper)
    return "{:z.1f} ({:z.1f} to {:z.1f})".format(*(100 * end for end in ends))
