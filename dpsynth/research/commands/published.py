"""``dpsynth replication``: published studies. ``dpsynth account verify``: golden values of papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsynth.runs.commands import console
from dpsynth.runs.commands.console import CsvFormat, reads_tables


def list_protocols(as_json: console.JsonFlag = False) -> None:
    """List the published studies that `dpsynth replication run` knows."""
    from dpsynth.research.replications.protocol import find_protocol, protocol_names

    known = [find_protocol(name) for name in protocol_names()]
    result = {"studies": [{"name": each.name, "title": each.title, "on": each.records} for each in known]}
    wide = max((len(each.name) for each in known), default=0)
    lines = [f"{each.name:{wide}}  {each.title} ({each.records})" for each in known]
    console.emit(result, "\n".join(lines), as_json=as_json)


@reads_tables
def run_protocol(
    name: Annotated[
        str,
        typer.Argument(
            help="Name in `dpsynth replication list`, or the YAML file of a protocol.", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder to write.", show_default=False)],
    tables: Annotated[
        Path | None, typer.Option("--tables", help="Folder of MIMIC-III's CSV or CSV.gz files.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="Table that `dpsynth cohort mimic3` made of them.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", help="Splits, in place of the protocol's.", min=1)
    ] = None,
    epsilon: Annotated[
        list[float] | None,
        typer.Option("--epsilon", help="Epsilon in place of the protocol's. Repeatable."),
    ] = None,
    coverage: Annotated[
        int | None,
        typer.Option("--coverage", help="Number of resamples in place of the protocol's. 0 for none.", min=0),
    ] = None,
    baseline_steps: Annotated[
        int | None,
        typer.Option(
            "--baseline-steps",
            help="Steps of HealthGAN, in place of the protocol's. 0 for none.",
            min=0,
        ),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Trials at a time.", min=1)] = 1,
    force: console.ForceFlag = False,
    as_json: console.JsonFlag = False,
    *,
    csv_format: CsvFormat,
) -> None:
    """Run a published study on real and on synthetic records, and put both beside what the paper says.

    Each generator is fitted to several splits of the records. Writes study.html, study.md, results.json and
    tables/. All are confidential. The same command continues after an interruption or with more seeds.
    """
    from dpsynth.research.replications.protocol import find_protocol
    from dpsynth.research.replications.regression_tables import finding_lines
    from dpsynth.research.replications.running import Source, run_study

    protocol = find_protocol(name).changed(
        seeds=seeds, epsilons=epsilon, coverage=coverage, baseline_steps=baseline_steps
    )
    try:
        source = Source(tables, data, csv_format)
        done = run_study(protocol, out, source=source, jobs=jobs, force=force, log=console.say)
    except KeyboardInterrupt:
        raise console.InterruptedCommand(
            f"interrupted: complete trials are kept in {out}. The same command goes on with the others"
        ) from None
    result = {
        "out": str(done.out),
        "files": list(done.files),
        "trials": {"carried_out": done.carried_out, "kept": done.kept},
        "problems": done.results.problems(),
        "internal": True,
    }
    lines = [
        f"{protocol.title}: {done.carried_out} trials carried out, {done.kept} kept from before",
        *finding_lines(done.results),
        *done.results.problems(),
        f"wrote {', '.join(done.files)} to {done.out}",
        "These results are confidential.",
    ]
    console.emit(result, "\n".join(lines), as_json=as_json)


def verify_golden(as_json: console.JsonFlag = False) -> None:
    """Compute every published or independently computed golden value again, and print the deviations."""
    from dpsynth.research.papers import golden

    checks = golden.check_golden_values()
    failed = [check.name for check in checks if not check.holds]
    record = {"values": [check.to_dict() for check in checks], "failed": failed}
    console.emit(record, golden.to_table(checks), as_json=as_json)
    if failed:
        raise typer.Exit(1)
