"""``dpsynth replication``: published studies of records, and published attacks on trainings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dpsynth.errors import ConfigError, InputError
from dpsynth.files.text import read_yaml
from dpsynth.runs.commands import console


def run_replication(
    name: Annotated[
        str | None,
        typer.Argument(help="Study of the list, or YAML file of a study or an attack. Default: the list."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder to write. Studies need one.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", help="Folder of MIMIC-III's files, or table that `dpsynth cohort` made of them."
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", help="Splits, in place of the study's.", min=1)
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Trials or rounds at a time.", min=1)] = 1,
    force: console.ForceFlag = False,
) -> None:
    """Run a published study on real and on synthetic records, or a published attack on trainings.

    A study fits each generator to several splits of the records, and puts results beside what the paper
    says. A YAML file with the key `attacker` is an attack. Both write results.html, results.md, results.json
    and tables/. All results are confidential. The same command continues after an interruption.
    """
    attack = _attack(name)
    if name is None:
        _list()
    elif attack is not None:
        console.refuse({"--data": data, "--seeds": seeds, "--force": force or None}, f"the attack of {name}")
        attack.run(out, jobs)
    else:
        _study(name, out, data, seeds, jobs, force=force)


def _attack(name: str | None) -> Any:
    """The attack that a YAML file describes, None if it is another one."""
    if name is None or not name.endswith(".yaml") or not Path(name).is_file():
        return None
    from dpsynth.research.commands.attacks import attack_of

    return read_yaml(name, lambda record: attack_of(record, Path(name).parent), error=ConfigError)


def _list() -> None:
    from dpsynth.research.replications.protocol import find_protocol, protocol_names

    known = [find_protocol(name) for name in protocol_names()]
    result = {"studies": [{"name": each.name, "title": each.title, "on": each.records} for each in known]}
    wide = max((len(each.name) for each in known), default=0)
    lines = [f"{each.name:{wide}}  {each.title} ({each.records})" for each in known]
    console.emit(result, "\n".join(lines))


def _study(
    name: str, out: Path | None, data: Path | None, seeds: int | None, jobs: int, *, force: bool
) -> None:
    from dpsynth.research.replications.protocol import find_protocol
    from dpsynth.research.replications.regression_tables import finding_lines
    from dpsynth.research.replications.running import run_study

    protocol = find_protocol(name).changed(seeds=seeds)
    if out is None:
        raise InputError(f"--out is needed: the folder that the study {name} writes")
    try:
        done = run_study(protocol, out, data=data, jobs=jobs, force=force, log=console.say)
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
    console.emit(result, "\n".join(lines))
