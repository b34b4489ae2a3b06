"""``dpsynth attack``: what attackers reach, beside what is proved.

``synthetic``: singling out, linkability, inference and membership of a synthetic table. ``audit``: each
release of a configuration beside what it declares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from dpsynth import progress
from dpsynth.errors import InputError
from dpsynth.runs.commands import console
from dpsynth.runs.commands.console import read_named
from dpsynth.table.csv_format import CsvFormat

if TYPE_CHECKING:
    from dpsynth.attacks.shadow import BlackBox, Shadow
    from dpsynth.audits.trials import Audited
    from dpsynth.checks import Counted
    from dpsynth.evaluation.tables import Tables
    from dpsynth.runs.attack_inputs import AttackedRun


#: what a folder that is written here holds
_MARK, _TEXT, _SHADOW = "attacks.json", "attacks.txt", "shadow"
_CANARIES = 20
#: level of the confidence intervals
_LEVEL = 0.95


def attack_table(
    run: Annotated[Path | None, Argument(help="Folder of a run, to attack its table.")] = None,
    synthetic: Annotated[Path | None, Option(help="Synthetic table.")] = None,
    train: Annotated[Path | None, Option(help="Real records it was made from.")] = None,
    control: Annotated[Path | None, Option(help="Real records held out.")] = None,
    schema: Annotated[Path | None, Option(help="YAML file of all three.")] = None,
    linked: Annotated[
        str | None, Option(help="Columns of two files to join: age,sex:wbc,crp. Default: every other.")
    ] = None,
    sensitive: Annotated[list[str] | None, Option(help="Column to infer. Repeatable. Default: all.")] = None,
    shadow: Annotated[
        int | None, Option(help="Fit the run's generator so often, with and without canaries.", min=4)
    ] = None,
    jobs: Annotated[int, Option(help="Shadow models at a time.", min=1)] = 1,
    seed: Annotated[int, Option(help="Seed of the attackers' random choices.", min=0)] = 0,
    out: Annotated[Path | None, Option(help="Folder for attacks.json and attacks.txt.")] = None,
    force: console.ForceFlag = False,
) -> None:
    """Attack a synthetic table as European guidance asks: singling out, linkability, inference, membership.

    Each attack targets people of the training table and people held out. It is repeated without the table as
    a control. With --shadow the run's generator itself is attacked. With --out the same command continues
    after an interruption. All results are confidential.
    """
    import numpy as np

    from dpsynth.attacks.risk import Proved
    from dpsynth.attacks.suite import attack_tables, attempts, check_request, in_words, verdict
    from dpsynth.files.storage import dump_json

    files = {"--synthetic": synthetic, "--train": train, "--control": control, "--schema": schema}
    _check_given(run, files, shadow)
    parts = None if linked is None else _parts(linked)
    with _writable(out, force=force):
        attacked: AttackedRun | None = None
        if run is not None:
            from dpsynth.runs.attack_inputs import attacked_run

            attacked = attacked_run(run)
            tables, proved = attacked.tables, attacked.proved
        else:
            tables, proved = _read(files, parts, sensitive), Proved()
        check_request(tables.schema, parts, sensitive)
        reached: Shadow | None = None
        with progress.stage_bar() as stages:
            risks = attack_tables(
                tables,
                rng=np.random.default_rng(seed),
                linked=parts,
                sensitive=sensitive,
                proved=proved,
                level=_LEVEL,
                stages=stages,
            )
        if attacked is not None and shadow is not None:
            reached = _shadow(attacked, shadow, seed, jobs, out)
        shown = attempts(risks) + (() if reached is None else reached.attempts())
        result = {
            "internal": True,
            "verdict": verdict(risks, reached),
            "attempts": [attempt.to_dict() for attempt in shown],
            "risks": [risk.to_dict() for risk in risks],
            "shadow": None if reached is None else reached.to_dict(),
            "settings": {"level": _LEVEL, "seed": seed, "linked": parts, "sensitive": sensitive},
        }
        text = in_words(risks, reached)
        if tables.patients is not None:
            text += " Columns are levels of patients, which the rows of a patient determine."
        if out is not None:
            _write(out, dump_json(result), text)
    console.emit(result, text)


def _check_given(run: Path | None, files: dict[str, Path | None], shadow: int | None) -> None:
    """Refuse options that do not go together, before anything is read."""
    if run is not None:
        console.refuse(files, f"the folder of a run, {run}")
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


def _read(files: dict[str, Path | None], parts: Any, sensitive: list[str] | None) -> Tables:
    """Read the three tables. Wrong columns are found before, in the schema."""
    from dpsynth.attacks.suite import check_request
    from dpsynth.evaluation.tables import Tables
    from dpsynth.patients.schema import read_schema

    path = files["--schema"]
    assert path is not None
    schema = read_schema(path)
    check_request(schema.levels, parts, sensitive)
    made, real, held_out = (
        read_named(Path(str(files[name])), schema, written)
        for name, written in (
            ("--synthetic", CsvFormat()),
            ("--train", schema.csv),
            ("--control", schema.csv),
        )
    )
    return Tables.of(made, train=real, test=held_out, schema=schema)


def _shadow(attacked: AttackedRun, rounds: int, seed: int, jobs: int, out: Path | None) -> Shadow:
    from dpsynth.attacks.shadow import shadow_attack
    from dpsynth.files.storage import make_folder

    def told(done: int, total: int, label: str, seconds: float) -> None:
        console.say(f"shadow models: {done} of {total} ({label}, {seconds:.0f} s)")

    if out is not None:
        make_folder(out)
    try:
        return shadow_attack(
            attacked.generator,
            attacked.base,
            attacked.generator.schema,
            rounds=rounds,
            canaries=_CANARIES,
            seed=seed,
            proved=attacked.proved,
            level=_LEVEL,
            folder=out and out / _SHADOW,
            settings=attacked.identity,
            jobs=jobs,
            on_round=told,
        )
    except KeyboardInterrupt:
        kept = "nothing is kept without --out" if out is None else f"finished models are kept in {out}"
        raise console.InterruptedCommand(
            f"interrupted: {kept}. The same command goes on with the others"
        ) from None


@contextmanager
def _writable(out: Path | None, *, force: bool) -> Iterator[None]:
    """Hold the folder to write. Shadow models that an interrupted command left there are used."""
    from dpsynth.files.storage import locked, parents_made, require_free_folder

    if out is None:
        yield
        return
    unfinished = (out / _SHADOW).is_dir() and not (out / _MARK).exists()
    if not unfinished:
        require_free_folder(out, force=force, mark=_MARK)
    with parents_made(out), locked(out):
        yield


def _write(out: Path, record: str, text: str) -> None:
    from dpsynth.files.storage import make_folder, write_text

    make_folder(out)
    write_text(out / _TEXT, text + "\n")
    write_text(out / _MARK, record + "\n")


#: folders of finished rounds
_WHITE, _BLACK = "releases", "fits"


def audit_releases(
    run: Annotated[Path, Argument(help="Folder of a run, or a configuration's YAML file.")],
    trials: Annotated[int, Option(help="Number of trials for each noisy statistic.", min=100)] = 10_000,
    black_box: Annotated[
        int | None,
        Option(help="In place of that, fit the whole generator so often, and look at its tables.", min=2),
    ] = None,
    jobs: Annotated[int, Option(help="Noisy statistics or fits at a time.", min=1)] = 2,
    out: Annotated[Path | None, Option(help="Folder where finished audits and fits are kept.")] = None,
) -> None:
    """Run each noisy statistic many times on two simulated tables, and compare it with its stated cost.

    No private record is read. The result may be shared unless the schema has fields or lists that nobody
    confirmed. Only --black-box reads the training table. Its result is confidential. With --out the same
    command continues after an interruption. The exit status is 1 if the audit finds more than the stated
    cost, or has too little power.
    """
    from dpsynth.audits.configuration import audit_fit
    from dpsynth.runs.attack_inputs import to_audit

    audited: tuple[Audited, ...] = ()
    boxed: BlackBox | None = None
    target = to_audit(run)
    with _kept(out):
        if black_box is None:
            audited = audit_fit(
                target.schema,
                target.options,
                also=target.config.also,
                trials=trials,
                jobs=jobs,
                folder=out and out / _WHITE,
                on_round=_told("audited"),
            )
        else:
            folder = out and out / _BLACK
            boxed = target.audit_tables(black_box, seed=0, jobs=jobs, folder=folder, on_round=_told("fitted"))
    failed = [a.name for a in audited if a.failed]
    if boxed is not None and boxed.contradicted:
        failed.append("the table")
    # bounds and categories that may be those of records are in the made-up ones
    internal = bool(target.schema.undecided)
    attempts = [replace(attempt, internal=internal) for a in audited for attempt in a.attempts()]
    attempts += [] if boxed is None else list(boxed.attempts())
    record = {
        "releases": [a.to_dict() for a in audited],
        "table": None if boxed is None else boxed.to_dict(),
        "attempts": [attempt.to_dict() for attempt in attempts],
        "failed": failed,
        "internal": internal or boxed is not None,
    }
    console.emit(record, _text(audited, boxed, target.schema.counted, internal=internal))
    if failed:
        raise typer.Exit(1)


def _told(what: str) -> Callable[[int, int, str, float], None]:
    def tell(done: int, total: int, label: str, seconds: float) -> None:
        console.say(f"{what} {done} of {total} ({label}, {seconds:.1f} s)")

    return tell


@contextmanager
def _kept(out: Path | None) -> Iterator[None]:
    """Make the folder, and say what an interrupt leaves in it."""
    from dpsynth.files.storage import make_folder

    if out is not None:
        if out.exists() and not out.is_dir():
            raise InputError(f"{out} is a file. Name a folder")
        out.parent.mkdir(parents=True, exist_ok=True)
        make_folder(out)
        strange = next((entry.name for entry in out.iterdir() if entry.name not in (_WHITE, _BLACK)), None)
        if strange is not None:
            raise InputError(f"{out} holds {strange}, which is no audit's. Name another folder")
    try:
        yield
    except KeyboardInterrupt:
        kept = "nothing is kept without --out" if out is None else f"what is finished is kept in {out}"
        raise console.InterruptedCommand(
            f"interrupted: {kept}. The same command goes on with the rest"
        ) from None


def _text(audited: Sequence[Audited], boxed: BlackBox | None, counted: Counted, *, internal: bool) -> str:
    from dpsynth.audits.trials import MEANING

    lines: list[str] = []
    if audited:
        level, delta = 100 * audited[0].level, audited[0].declared["delta"]
        lines += [
            f"Lower bounds at {level:g} % beside the declared values (epsilon at delta {delta:g}):",
            f"{'noisy statistic':<26} {'TV declared':>11} {'found':>6} {'epsilon declared':>17} {'found':>6} "
            f"{'any shape':>10}  {'verdict':<14} {'seconds':>7}",
        ]
        for a in audited:
            free = max(a.epsilon.lower, a.guessed)
            lines.append(
                f"{a.name:<26} {a.declared['tv']:>11.3f} {a.tv.lower:>6.3f} {a.declared['epsilon']:>17.3g} "
                f"{_number(a.lower):>6} {_number(free):>10}  {a.verdict:<14} {a.seconds:>7.1f}"
            )
        lines += [f"  {a.name}: {a.about}" for a in audited]
        seen = sorted({a.verdict for a in audited})
        lines += [f"{verdict}: {MEANING[verdict]}" for verdict in seen]
        lines.append(
            "Confidential: the schema has fields or lists that nobody confirmed as public."
            if internal
            else f"Only simulated {counted} were read: this may be shared."
        )
    if boxed is not None:
        proved = "nothing" if boxed.epsilon is None else f"{boxed.epsilon:.3g}"
        lines.append(
            f"From the table alone: {boxed.right} of {boxed.guesses} guesses right in {boxed.fits} fits, "
            f"epsilon at least {boxed.epsilon_lower:.2f} of {proved} (confidential: real {counted} were read)"
        )
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "inf"


app = typer.Typer(help="Attack a model, a training run or a synthetic table, beside what is proved.")


app.command("synthetic")(attack_table)
app.command("audit")(audit_releases)
