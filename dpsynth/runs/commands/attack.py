"""``dpsynth attack``: what attackers reach, beside what is proved; one module an attack.

``dpsynth attack audit``: each release of a configuration beside what it declares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsynth.errors import InputError
from dpsynth.runs.commands import attack_synthetic, console

if TYPE_CHECKING:
    from dpsynth.attacks.synthetic.black_box import BlackBox
    from dpsynth.attacks.trials import Audited
    from dpsynth.runs.attack_inputs import ToAudit


#: folders of finished rounds
_WHITE, _BLACK = "releases", "fits"


def audit_releases(
    run: Annotated[Path, typer.Argument(help="Folder of a run, or a configuration's YAML file.")],
    trials: Annotated[int, typer.Option("--trials", help="Of each release.", min=100)] = 10_000,
    steps: Annotated[int, typer.Option("--steps", help="Noisy sums of a run of the critic.", min=1)] = 8,
    white_box: Annotated[
        bool, typer.Option("--white-box", help="Audit the releases, also where --black-box is given.")
    ] = False,
    black_box: Annotated[
        int | None,
        typer.Option("--black-box", help="Fit the whole generator so often, and look at its tables.", min=2),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Releases or fits at a time.", min=1)] = 2,
    seed: Annotated[int, typer.Option("--seed", help="Of canaries and fits of --black-box.", min=0)] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder where finished releases and fits are kept.")
    ] = None,
    as_json: console.JsonFlag = False,
) -> None:
    """Run each release many times on two made-up tables, and print what was found beside what is declared.

    No private record is read, so that the result may be released; --black-box alone reads the training table
    and is internal. With --out the same command goes on after an interruption. The exit status is 1 where
    more was found than is declared, or where the audit sees too little to be one.
    """
    from dpsynth.runs.attack_inputs import to_audit

    audited: tuple[Audited, ...] = ()
    boxed: BlackBox | None = None
    target = to_audit(run)
    with _kept(out):
        if white_box or black_box is None:
            audited = _white(target, trials, steps, jobs, out)
        if black_box is not None:
            folder = None if out is None else out / _BLACK
            boxed = target.audit_tables(
                black_box, seed=seed, jobs=jobs, folder=folder, on_round=_told("fitted")
            )
    failed = [a.name for a in audited if a.failed]
    if boxed is not None and boxed.contradicted:
        failed.append("the table")
    # bounds and categories that were read off the records are in the made-up ones
    internal = bool(target.schema.unreviewed)
    attempts = [replace(attempt, internal=internal) for a in audited for attempt in a.attempts()]
    attempts += [] if boxed is None else list(boxed.attempts())
    record = {
        "releases": [a.to_dict() for a in audited],
        "table": None if boxed is None else boxed.to_dict(),
        "attempts": [attempt.to_dict() for attempt in attempts],
        "failed": failed,
        "internal": internal or boxed is not None,
    }
    console.emit(record, _text(audited, boxed, internal), as_json=as_json)
    if failed:
        raise typer.Exit(1)


def _white(target: ToAudit, trials: int, steps: int, jobs: int, out: Path | None) -> tuple[Audited, ...]:
    from dpsynth.audits.configuration import audit_fit

    return audit_fit(
        target.schema,
        target.options,
        trials=trials,
        steps=steps,
        jobs=jobs,
        folder=None if out is None else out / _WHITE,
        on_round=_told("audited"),
    )


def _told(what: str) -> Callable[[int, int, str, float], None]:
    def tell(done: int, total: int, label: str, seconds: float) -> None:
        console.say(f"{what} {done} of {total} ({label}, {seconds:.1f} s)")

    return tell


@contextmanager
def _kept(out: Path | None) -> Iterator[None]:
    """Make the folder, and say what an interrupt leaves in it."""
    if out is not None:
        if out.exists() and not out.is_dir():
            raise InputError(f"{out} is a file; name a folder")
        strange = (
            [] if not out.exists() else [p.name for p in out.iterdir() if p.name not in (_WHITE, _BLACK)]
        )
        if strange:
            raise InputError(f"{out} holds {strange[0]}, which is no audit's; name another folder")
        out.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except KeyboardInterrupt:
        kept = "nothing is kept without --out" if out is None else f"what is finished is kept in {out}"
        raise console.Interrupted(f"interrupted: {kept}; the same command goes on with the rest") from None


def _text(audited: Sequence[Audited], boxed: BlackBox | None, internal: bool) -> str:
    from dpsynth.attacks.trials import MEANING

    lines: list[str] = []
    if audited:
        level, delta = 100 * audited[0].level, audited[0].declared["delta"]
        lines += [
            f"Lower bounds at {level:g} % beside what is declared (epsilon at delta {delta:g}):",
            f"{'release':<26} {'TV declared':>11} {'found':>6} {'epsilon declared':>17} {'found':>6} "
            f"{'by any law':>10}  {'verdict':<14} {'seconds':>7}",
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
            "Internal: the schema has fields that were read off the records and never reviewed."
            if internal
            else "Made-up records alone were read: this may be released."
        )
    if boxed is not None:
        proved = "nothing" if boxed.epsilon is None else f"{boxed.epsilon:.3g}"
        lines.append(
            f"From the table alone: {boxed.right} of {boxed.guesses} guesses right in {boxed.fits} fits, "
            f"epsilon at least {boxed.epsilon_lower:.2f} of {proved} (internal: real records were read)"
        )
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "inf"


app = typer.Typer(
    help="Attack a model, a training run or a synthetic table, beside what is proved.",
    rich_markup_mode=None,
    add_completion=False,
)


app.command("synthetic")(attack_synthetic.attack_table)
app.command("audit")(audit_releases)
