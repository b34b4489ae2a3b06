"""``dpsynth attack synthetic``: singling out, linkability, inference and membership of a synthetic table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpsynth.errors import InputError
from dpsynth.runs.commands import console
from dpsynth.runs.commands.console import CsvFormat, read_named, reads_tables

if TYPE_CHECKING:
    from dpsynth.attacks.synthetic.shadow import Shadow
    from dpsynth.evaluation.tables import Tables
    from dpsynth.runs.attack_inputs import Attacked

#: what a folder that is written here holds
_MARK, _TEXT, _SHADOW = "attacks.json", "attacks.txt", "shadow"
_CANARIES = 20


@reads_tables
def attack_table(
    run: Annotated[
        Path | None, typer.Argument(help="Folder of a run, to attack its table.", show_default=False)
    ] = None,
    synthetic: Annotated[Path | None, typer.Option("--synthetic", help="Synthetic table.")] = None,
    train: Annotated[Path | None, typer.Option("--train", help="Real records it was made from.")] = None,
    control: Annotated[Path | None, typer.Option("--control", help="Real records held out.")] = None,
    schema: Annotated[Path | None, typer.Option("--schema", help="YAML file of all three.")] = None,
    linked: Annotated[
        str | None,
        typer.Option("--linked", help="Columns of two files to join: age,sex:wbc,crp. Default: every other."),
    ] = None,
    sensitive: Annotated[
        list[str] | None, typer.Option("--sensitive", help="Column to infer; may be repeated. Default: all.")
    ] = None,
    shadow: Annotated[
        int | None,
        typer.Option("--shadow", help="Fit the run's generator so often, with and without canaries.", min=4),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Shadow models at a time.", min=1)] = 1,
    level: Annotated[float, typer.Option("--level", help="Of the confidence intervals.")] = 0.95,
    seed: Annotated[int, typer.Option("--seed", help="Of the attackers' draws.", min=0)] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for attacks.json and attacks.txt.")
    ] = None,
    force: console.ForceFlag = False,
    as_json: console.JsonFlag = False,
    *,
    csv_format: CsvFormat,
) -> None:
    """Attack a synthetic table as European guidance asks: singling out, linkability, inference, membership.

    Each attack is made on the people of the training table, on people held out, and without the table. With
    --shadow the run's generator itself is attacked; with --out the same command goes on after an
    interruption. All results are internal.
    """
    import numpy as np

    from dpsynth.attacks.synthetic.risk import Proved
    from dpsynth.attacks.synthetic.suite import attack_tables, attempts, check_request
    from dpsynth.attacks.synthetic.words import in_words, verdict
    from dpsynth.checks import inside
    from dpsynth.files.atomic import dump_json

    inside("level", level, 0.0, 1.0)
    files = {"--synthetic": synthetic, "--train": train, "--control": control, "--schema": schema}
    _check_given(run, files, shadow)
    parts = None if linked is None else _parts(linked)
    with _writable(out, force=force):
        attacked: Attacked | None = None
        if run is not None:
            from dpsynth.runs.attack_inputs import attacked_run

            attacked = attacked_run(run)
            tables, proved = attacked.tables, attacked.proved
        else:
            tables, proved = _read(files, parts, sensitive, csv_format), Proved()
        check_request(tables.schema, parts, sensitive)
        reached: Shadow | None = None
        with console.stage_bar() as stages:
            risks = attack_tables(
                tables,
                rng=np.random.default_rng(seed),
                linked=parts,
                sensitive=sensitive,
                proved=proved,
                level=level,
                stages=stages,
            )
        if attacked is not None and shadow is not None:
            reached = _shadow(attacked, shadow, seed, level, jobs, out)
        shown = attempts(risks) + (() if reached is None else reached.attempts())
        result = {
            "internal": True,
            "verdict": verdict(risks, reached),
            "attempts": [attempt.to_dict() for attempt in shown],
            "risks": [risk.to_dict() for risk in risks],
            "shadow": None if reached is None else reached.to_dict(),
            "settings": {"level": level, "seed": seed, "linked": parts, "sensitive": sensitive},
        }
        text = in_words(risks, reached)
        if out is not None:
            _write(out, dump_json(result), text)
    console.emit(result, text, as_json=as_json)


def _check_given(run: Path | None, files: dict[str, Path | None], shadow: int | None) -> None:
    """Refuse options that do not go together, before anything is read."""
    if run is not None:
        for name, value in files.items():
            if value is not None:
                raise InputError(f"{name} does not go with the folder of a run, {run}")
        if shadow is not None and shadow % 2:
            raise InputError(f"--shadow must be even, half of the models are learned from, got {shadow}")
        return
    if shadow is not None:
        raise InputError("--shadow needs the folder of a run, whose generator is fitted again")
    for name, value in files.items():
        if value is None:
            raise InputError(f"{name} is needed, or the folder of a run")


def _parts(linked: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Read ``age,sex:wbc,crp``."""
    sides = linked.split(":")
    if len(sides) != 2:
        raise InputError(
            f"--linked needs two sets of columns with a colon between, age,sex:wbc,crp: {linked!r}"
        )
    first, second = (tuple(name.strip() for name in side.split(",") if name.strip()) for side in sides)
    return first, second


def _read(
    files: dict[str, Path | None], parts: Any, sensitive: list[str] | None, csv_format: CsvFormat
) -> Tables:
    """Read the three tables; what is wrong with columns is found before them, in the schema."""
    from dpsynth.attacks.synthetic.suite import check_request
    from dpsynth.evaluation.tables import Tables
    from dpsynth.table.schema import Schema

    path = files["--schema"]
    assert path is not None
    schema = Schema.from_yaml(path)
    check_request(schema, parts, sensitive)
    made, real, held_out = (
        read_named(Path(str(files[name])), schema, written)
        for name, written in (
            ("--synthetic", CsvFormat()),
            ("--train", csv_format),
            ("--control", csv_format),
        )
    )
    return Tables.of(made, train=real, test=held_out, schema=schema)


def _shadow(attacked: Attacked, rounds: int, seed: int, level: float, jobs: int, out: Path | None) -> Shadow:
    from dpsynth.attacks.synthetic.shadow import shadow_attack

    def told(done: int, total: int, label: str, seconds: float) -> None:
        console.say(f"shadow models: {done} of {total} ({label}, {seconds:.0f} s)")

    try:
        return shadow_attack(
            attacked.generator,
            attacked.tables.train,
            attacked.tables.schema,
            rounds=rounds,
            canaries=_CANARIES,
            seed=seed,
            proved=attacked.proved,
            level=level,
            folder=None if out is None else out / _SHADOW,
            settings=attacked.identity,
            jobs=jobs,
            on_round=told,
        )
    except KeyboardInterrupt:
        kept = "nothing is kept without --out" if out is None else f"finished models are kept in {out}"
        raise console.Interrupted(f"interrupted: {kept}; the same command goes on with the others") from None


@contextmanager
def _writable(out: Path | None, *, force: bool) -> Iterator[None]:
    """Hold the folder to write; one that an interrupted command left with shadow models is gone on with."""
    from dpsynth.files.atomic import locked
    from dpsynth.files.storage import parents_made, require_free_folder

    if out is None:
        yield
        return
    unfinished = (out / _SHADOW).is_dir() and not (out / _MARK).exists()
    if not unfinished:
        require_free_folder(out, force=force, mark=_MARK)
    with parents_made(out), locked(out):
        yield


def _write(out: Path, record: str, text: str) -> None:
    from dpsynth.files.atomic import write_text

    out.mkdir(exist_ok=True)
    write_text(out / _TEXT, text + "\n")
    write_text(out / _MARK, record + "\n")
