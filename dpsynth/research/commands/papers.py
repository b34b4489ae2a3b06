"""``dpsynth account figures`` and ``verify``: what the papers print, computed again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsynth.runs.commands import console


def draw_figures(
    out: Annotated[Path, typer.Option("--out", help="Folder to write into.")],
    names: Annotated[list[str] | None, typer.Option("--only", help="Beginning of a figure's name.")] = None,
    as_json: console.JsonFlag = False,
) -> None:
    """Draw the figures of the papers behind the accounting, as SVG, from this package's own functions."""
    from dpsynth.research.papers import figures as drawings

    written = drawings.write(out, names or (), progress=console.say)
    record = {"out": str(out), "files": [path.name for path in written]}
    console.emit(record, f"{len(written)} files in {out}", as_json=as_json)


def verify_golden(as_json: console.JsonFlag = False) -> None:
    """Compute every published or independently computed golden value again, and print the deviations."""
    from dpsynth.research.papers import golden

    checks = golden.check()
    failed = [check.name for check in checks if not check.holds]
    record = {"values": [check.to_dict() for check in checks], "failed": failed}
    console.emit(record, golden.to_table(checks), as_json=as_json)
    if failed:
        raise typer.Exit(1)
