"""The command line: ``dpsynth plan | run | fit | sample | study | evaluate | report | registry | ...``.

Results go to stdout, one JSON object with ``--json``. Progress, logs and errors go to stderr. Exit status: 0
success, 1 a run that failed, 2 bad input or a refused guarantee, 130 Ctrl-C. An error is one line. Each
command imports the heavy modules that it needs.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from dpsynth.errors import DpsynthError, InputError, PrivacyError
from dpsynth.runs.commands import account, attack, console, data, evaluate, ledger, models, run
from dpsynth.runs.commands import evaluate as registry
from dpsynth.runs.commands import run as plan

app = typer.Typer(
    name="dpsynth",
    help="Differentially private synthetic tables, with a ledger of what they cost.",
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("run")(run.run_configuration)
app.command("plan")(plan.plan_run)
app.command("fit")(models.fit)
app.command("sample")(models.sample)
app.command("evaluate")(evaluate.evaluate_table)
app.command("report")(evaluate.draw_report)
app.command("registry")(registry.print_record)
app.command("calibrate")(account.print_noise)
_GROUPS = {
    "account": account.app,
    "attack": attack.app,
    "data": data.app,
    "cohort": data.cohort_app,
    "schema": data.schema_app,
    "ledger": ledger.app,
    "study": models.study_app,
}


def _add_groups() -> None:
    """Add the groups of commands, with those of `dpsynth.research` where that room is installed."""
    if importlib.util.find_spec("dpsynth.research") is not None:
        _GROUPS["replication"] = typer.Typer(help="Repeat published studies on synthetic records.")
        research = importlib.import_module("dpsynth.research.commands")
        for (group, name), function in research.COMMANDS.items():
            _GROUPS[group].command(name)(function)
    for group, commands in _GROUPS.items():
        app.add_typer(commands, name=group)


_add_groups()


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from dpsynth.version import __version__

        print(f"dpsynth {__version__}")
        raise typer.Exit()
    if context.invoked_subcommand is None:
        print(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with these arguments, by default those of the process. Return the exit status.

    Examples
    --------
    >>> main(["account", "--noise-multiplier", "2", "--steps", "4", "--delta", "1e-5"])
    neighbouring datasets  add/remove
    epsilon                4.37718 at delta 1e-05
        Any event is at most 79.62 times as probable with this record as without, plus at most 1e-05.
    ...
    0
    """
    try:
        with console.owner_warnings():
            status = app(
                args=list(arguments) if arguments is not None else None,
                prog_name="dpsynth",
                standalone_mode=False,
            )
    except console.InterruptedCommand as problem:
        return _fail(str(problem), 130)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", 130)
    except (InputError, PrivacyError) as problem:
        return _fail(str(problem), 2)
    except DpsynthError as problem:
        return _fail(str(problem), 1)
    except Exception as problem:
        if _is_usage_error(problem):
            return _fail(f"{problem.format_message()} (see dpsynth --help)", 2)  # type: ignore[attr-defined]
        if os.environ.get("DPSYNTH_TRACEBACK"):
            raise
        if isinstance(problem, OSError) and problem.filename and problem.strerror:
            return _fail(f"{problem.filename}: {problem.strerror}. Correct this and repeat the command", 1)
        what = f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__
        return _fail(f"failed: {what} (set DPSYNTH_TRACEBACK=1 to see where)", 1)
    if status == 130:  # newer versions of typer turn Ctrl-C into this status themselves
        return _fail("interrupted", 130)
    return status if isinstance(status, int) else 0


def _is_usage_error(problem: Exception) -> bool:
    # Depending on its version typer raises click's exceptions or its own copy of them.
    return hasattr(problem, "format_message") and getattr(problem, "exit_code", None) == 2


def _fail(message: str, status: int) -> int:
    print(f"dpsynth: {' '.join(message.split())}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
