"""``dpsynth registry``: the public record of a synthetic table, for a registry of deployments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from dpsynth.files.atomic import dump_json, write_text
from dpsynth.files.storage import require_free_file
from dpsynth.runs.commands import console


def print_record(
    folder: Annotated[Path, Argument(help="Folder of a run.")],
    contact: Annotated[
        str, Option(help="Whom readers may ask: a name, an address or both. Default: as in the run.")
    ] = "",
    curator: Annotated[
        list[str] | None,
        Option(
            help="Person or organisation that holds the real records. Repeatable. Default: as in the run."
        ),
    ] = None,
    use: Annotated[str, Option(help="Intended use of the synthetic table.")] = "",
    region: Annotated[str, Option(help="Country or region that the table is about.")] = "",
    out: Annotated[Path | None, Option(help="JSON file to write. By default the record is printed.")] = None,
    force: console.ForceFlag = False,
) -> None:
    """Public record of a synthetic table as JSON, after the Differential Privacy Deployments Registry.

    Privacy unit, neighbouring datasets, epsilon, delta, total variation, noisy statistics and software. No
    table of real records is read. The record names the fields that are left to complete.
    """
    from dpsynth.report.registry import registry_record
    from dpsynth.runs.run_folder import RunFolder

    report = RunFolder.of_run(folder).read_report()
    record = registry_record(report, contact, curators=curator or (), use=use, region=region)
    if out is None:
        console.emit(record, "", as_json=True)
        return
    require_free_file(out, force=force)
    write_text(out, dump_json(record) + "\n", shared=not report.undecided)
    lines = [f"wrote {out}"]
    lines += [f"to complete: {', '.join(record['to_complete'])}"] if record["to_complete"] else []
    console.emit({}, "\n".join(lines), as_json=False)
