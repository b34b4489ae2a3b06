"""``dpsynth cohort mimic3``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsynth.runs.commands import console

if TYPE_CHECKING:
    from dpsynth.datasets.cohorts.extraction import Cohort

app = typer.Typer(
    help="Make a study's table out of a hospital database.", rich_markup_mode=None, add_completion=False
)


@app.callback()
def _root() -> None:
    """Make a study's table out of a hospital database."""


@app.command()
def mimic3(
    tables: Annotated[
        Path, typer.Option("--tables", help="Folder of MIMIC-III's CSV or CSV.gz files.", show_default=False)
    ],
    study: Annotated[
        str,
        typer.Option(
            "--study", help="diabetes-mortality, aki-mortality or icu-readmission.", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Table to write, .parquet or .csv.", show_default=False)],
    force: console.ForceFlag = False,
    as_json: console.JsonFlag = False,
) -> None:
    """Make one of the thesis's three tables out of MIMIC-III: one row a patient, its schema beside it.

    The table is private. So is what is printed: rows, share with the outcome, and what each step left.
    """
    from dpsynth.datasets.cohorts.extraction import extract, require_free_target, save, schema_path
    from dpsynth.datasets.cohorts.studies import find_study

    chosen = find_study(study)
    require_free_target(out, force=force)
    cohort = extract(chosen, tables, scratch=out.parent)
    save(cohort, out)
    rows, rate = len(cohort.frame), cohort.positive_rate
    result = {
        "study": study,
        "out": str(out),
        "schema": str(schema_path(out)),
        "rows": rows,
        "positive_rate": rate if rows else None,
        "steps": [asdict(step) for step in cohort.steps],
        "internal": ["rows", "positive_rate", "steps"],
    }
    console.emit(result, "\n".join(_told(cohort, out, schema_path(out))), as_json=as_json)


def _told(cohort: Cohort, out: Path, schema: Path) -> list[str]:
    study, rows = cohort.study, len(cohort.frame)
    lines = [f"{study.title} (after {study.source})", f"{'stays':>10} {'patients':>10}  excluded stays"]
    before = cohort.steps[0].stays
    for step in cohort.steps:
        gone = f"{before - step.stays:,}" if before != step.stays else "0"
        lines.append(f"{step.stays:>10,} {step.patients:>10,}  {gone:>8}  {step.step}")
        before = step.stays
    outcome = study.schema.outcome
    positive = int(cohort.frame[outcome].astype(int).sum())
    share = f" ({100 * cohort.positive_rate:.1f} %)" if rows else ""
    return [
        *lines,
        f"{rows:,} rows, one a patient; {outcome} in {positive:,}{share}",
        "These counts are internal: not for release.",
        f"wrote {out} and {schema}",
    ]
