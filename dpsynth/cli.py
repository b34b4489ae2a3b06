"""The command line: ``dpsynth run | fit | sample | evaluate | report | plan | attack | schema | ...``.

Results go to stdout, one JSON object with ``--json`` at any place. Progress, logs and errors go to stderr.
Exit status: 0 success, 1 a run that failed, 2 bad input or a refused guarantee, 130 Ctrl-C. An error is one
line. Each command imports the heavy modules that it needs.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from dpsynth.errors import DpsynthError, InputError, PrivacyError
from dpsynth.runs.commands import account, attack, console, data, evaluate, ledger, models, run
from dpsynth.runs.commands.own_options import GeneratorCommand

app = typer.Typer(
    name="dpsynth",
    help="Differentially private synthetic tables, with a ledger of what they cost.",
    rich_markup_mode=None,
    add_completion=True,
    pretty_exceptions_enable=False,
)
#: Functions, and groups of them, in the order of the help.
_COMMANDS: dict[str, Callable[..., None] | typer.Typer] = {
    "run": run.run_configuration,
    "fit": models.fit,
    "sample": models.sample,
    "evaluate": evaluate.evaluate_table,
    "report": evaluate.draw_report,
    "plan": run.plan_run,
    "attack": attack.app,
    "schema": data.schema_app,
    "account": account.print_cost,
    "calibrate": account.print_noise,
    "ledger": ledger.show,
    "data": data.show_cards,
    "cohort": data.make_cohort,
}
#: Commands that take the options of a generator too.
_GENERATING = (run.run_configuration, models.fit)


def _add_commands() -> None:
    """Add all commands, and those of `dpsynth.research` where that room is installed."""
    if importlib.util.find_spec("dpsynth.research") is not None:
        _COMMANDS.update(importlib.import_module("dpsynth.research.commands").COMMANDS)
    for name, command in _COMMANDS.items():
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name, cls=GeneratorCommand if command in _GENERATING else None)(command)


_add_commands()


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object. It may also follow the command.")
    ] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    console.AS_JSON.set(as_json)
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
    words = sys.argv[1:] if arguments is None else arguments
    plain = [word for word in words if word != "--json"]
    try:
        with console.owner_warnings():
            status = app(
                args=plain if len(plain) == len(words) else ["--json", *plain],
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
