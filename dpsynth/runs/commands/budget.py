"""``dpsynth budget``: what all runs of each data set may cost, and have cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from dpsynth.errors import InputError
from dpsynth.runs.commands import console

if TYPE_CHECKING:
    from dpsynth.privacy.budget_file import Standing

app = typer.Typer(
    help="List what all runs of each data set have used of its budget, beyond which runs are refused."
)

FileOption = Annotated[Path, Option("--file", envvar="DPSYNTH_BUDGET", help="The file of budgets.")]
NameArgument = Annotated[str, Argument(help="Name of the data set.")]


@app.callback(invoke_without_command=True)
def list_budgets(
    context: typer.Context,
    file: Annotated[
        Path | None, Option("--file", envvar="DPSYNTH_BUDGET", help="The file of budgets.")
    ] = None,
    as_json: console.JsonFlag = False,
) -> None:
    """Print what each data set has used of its budget, unless a subcommand is named."""
    if context.invoked_subcommand is not None:
        return
    if file is None:
        raise InputError("give --file, or set DPSYNTH_BUDGET")
    from dpsynth.files.text import text_table
    from dpsynth.privacy.budget_file import standings

    found = standings(file)
    header = ("data set", "epsilon used", "of", "delta used", "of", "unit", "runs")
    rows = [(one.name, *_pair(one, 0), *_pair(one, 1), one.who or "", str(len(one.counted))) for one in found]
    text = text_table(header, rows)
    console.emit({"data_sets": [_record(one) for one in found]}, text, as_json=as_json)


@app.command("set")
def set_budget(
    name: NameArgument,
    epsilon: Annotated[float, Option(help="Largest epsilon of all runs together.")],
    delta: Annotated[float, Option(help="Largest delta of all runs together.")],
    file: FileOption,
    as_json: console.JsonFlag = False,
) -> None:
    """Set the largest cost of all runs together, and make the file if need be.

    A smaller budget than before takes nothing back. Further runs are refused then.
    """
    from dpsynth.privacy.budget_file import Budget

    budget = Budget(file, name)
    budget.set(epsilon, delta)
    _show(budget.standing(), as_json=as_json)


@app.command("show")
def show_budget(name: NameArgument, file: FileOption, as_json: console.JsonFlag = False) -> None:
    """Print the history of a data set: each budget that was set, and each run with its cost."""
    from dpsynth.privacy.budget_file import Budget

    _show(Budget(file, name).standing(), as_json=as_json)


def _pair(one: Standing, part: int) -> tuple[str, str]:
    """Epsilon or delta that is used, rounded up, and the largest one."""
    from dpsynth.privacy.guarantee import round_up

    return round_up(one.used[part]), f"{one.cap[part]:g}"


def _show(one: Standing, *, as_json: bool) -> None:
    from dpsynth.files.text import text_table
    from dpsynth.privacy.guarantee import round_up

    header = ("time (UTC)", "epsilon", "delta", "what", "state")
    lines = [(time, f"{epsilon:g}", f"{delta:g}", "budget", "set") for time, epsilon, delta in one.caps]
    for use in one.uses:
        cost = round_up(use.cost.epsilon), round_up(use.cost.delta)
        lines.append((use.time, *cost, use.run, use.state))
    (epsilon, most), (delta, most_delta) = _pair(one, 0), _pair(one, 1)
    who = f", for adding or removing one {one.who}" if one.who else ""
    said = f"{one.name}: epsilon {epsilon} of {most} and delta {delta} of {most_delta} used{who}"
    text = f"{said}\n{text_table(header, sorted(lines, key=lambda line: line[0]))}"
    console.emit(_record(one), text, as_json=as_json)


def _record(one: Standing) -> dict[str, Any]:
    (epsilon, delta), (most, most_delta) = one.used, one.cap
    return {
        "data_set": one.name,
        "epsilon_used": epsilon,
        "epsilon": most,
        "delta_used": delta,
        "delta": most_delta,
        "unit": one.who,
        "budgets": [{"time": time, "epsilon": eps, "delta": part} for time, eps, part in one.caps],
        "runs": [
            {
                "time": use.time,
                "run": use.run,
                "epsilon": use.cost.epsilon,
                "delta": use.cost.delta,
                "unit": use.cost.unit,
                "state": use.state,
            }
            for use in one.uses
        ],
    }
