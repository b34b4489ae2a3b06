"""``dpsynth report``: the page of a finished run or evaluation, for its owner or for everybody."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dpsynth.errors import DataError, InputError
from dpsynth.files.targets import require_free_file
from dpsynth.runs.commands import console


class Mode(StrEnum):
    """Who may read the page."""

    INTERNAL = "internal"
    RELEASE = "release"


def draw_report(
    folder: Annotated[
        Path, typer.Argument(help="What `dpsynth run` or `dpsynth evaluate --out` wrote.", show_default=False)
    ],
    mode: Annotated[
        Mode, typer.Option("--mode", help="internal: everything; release: only what may be shared.")
    ] = Mode.INTERNAL,
    out: Annotated[
        Path | None, typer.Option("--out", help="HTML file; FOLDER/report.html or FOLDER/release.html.")
    ] = None,
    force: console.ForceFlag = False,
    as_json: console.JsonFlag = False,
) -> None:
    """One self-contained HTML page: guarantee, cost, worth, plots and model card.

    It reads records of results only, never a table. In release mode nothing that was computed from real
    records without payment is on the page.
    """
    from dpsynth.report.folder import REPORT_HTML, load
    from dpsynth.report.page.html import write_page

    name = REPORT_HTML if mode is Mode.INTERNAL else "release.html"
    path = out if out is not None else folder / name
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path}: the page is HTML; name a file that ends with .html")
    record = load(folder)
    require_free_file(path, force=force)
    try:
        write_page(record, path, mode.value)
    except OSError as problem:
        raise InputError(f"{path} cannot be written ({problem.strerror or problem})") from None
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as problem:
        if isinstance(problem, InputError):
            raise
        raise DataError(f"{folder}: a detail of its evaluation is damaged ({problem!r})") from None
    size = path.stat().st_size
    result = {"path": str(path), "mode": mode.value, "bytes": size}
    console.emit(result, f"wrote {path} ({size / 1e6:.1f} MB, {mode.value})", as_json=as_json)
