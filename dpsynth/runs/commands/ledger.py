"""``dpsynth ledger``: what all runs of a data set may cost together, and have cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from dpsynth.errors import InputError
from dpsynth.runs.commands import console

if TYPE_CHECKING:
    from dpsynth.privacy.ledger_file import History

app = typer.Typer(help="Show what all runs of a data set have cost, or set a cap that they may not pass.")

FileArgument = Annotated[
    Path | None, Argument(help="File of the ledger, or the folder of a run.", envvar="DPSYNTH_LEDGER")
]


@app.command("show")
def show(file: FileArgument = None, as_json: console.JsonFlag = False) -> None:
    """Print the history of a ledger: each cap that was set, and each run with its cost and its statistics."""
    _show(_path(file), as_json=as_json)


@app.command("cap")
def cap(
    epsilon: Annotated[float, Option(help="Largest epsilon of all runs together.")],
    delta: Annotated[float, Option(help="Largest delta of all runs together.")],
    file: FileArgument = None,
    as_json: console.JsonFlag = False,
) -> None:
    """Set the largest cost of all runs together, and make the file if need be.

    A smaller cap than before takes nothing back. Further runs are refused then.
    """
    from dpsynth.privacy.ledger_file import LedgerFile

    path = _path(file)
    LedgerFile(path).set_cap(epsilon, delta)
    _show(path, as_json=as_json)


def _path(file: Path | None) -> Path:
    """The file, or that beside a run's folder."""
    from dpsynth.runs.spending import ledger_beside

    if file is None:
        raise InputError("give the file of the ledger, or set DPSYNTH_LEDGER")
    return ledger_beside(file) if file.is_dir() else file


def _show(path: Path, *, as_json: bool) -> None:
    from dpsynth.files.text import text_table
    from dpsynth.privacy.guarantee import round_up
    from dpsynth.privacy.ledger_file import LedgerFile

    history = LedgerFile(path).history()
    header = ("time (UTC)", "epsilon", "delta", "statistics", "what", "process", "state")
    lines = [(time, f"{most:g}", f"{part:g}", "", "cap", "", "set") for time, most, part in history.caps]
    lines += [
        (
            run.time,
            round_up(run.cost.epsilon),
            round_up(run.cost.delta),
            str(len(run.entries.entries)),
            run.folder,
            run.process,
            run.state,
        )
        for run in history.runs
    ]
    epsilon, delta = map(round_up, history.used)
    said = f"{path}: epsilon {epsilon} and delta {delta} used"
    if history.cap is not None:
        most, most_delta = history.cap
        said = f"{path}: epsilon {epsilon} of {most:g} and delta {delta} of {most_delta:g} used"
    who = f", for adding or removing one {history.who}" if history.who else ""
    text = f"{said}{who}\n{text_table(header, sorted(lines, key=lambda line: line[0]))}"
    console.emit(_record(history), text, as_json=as_json)


def _record(history: History) -> dict[str, Any]:
    from dpsynth.privacy.stages import to_record

    (epsilon, delta), (most, most_delta) = history.used, history.cap or (None, None)
    return {
        "ledger": str(history.path),
        "epsilon_used": epsilon,
        "epsilon": most,
        "delta_used": delta,
        "delta": most_delta,
        "unit": history.who,
        "caps": [{"time": time, "epsilon": eps, "delta": part} for time, eps, part in history.caps],
        "runs": [
            {
                "time": run.time,
                "folder": run.folder,
                "process": run.process,
                "epsilon": run.cost.epsilon,
                "delta": run.cost.delta,
                "unit": run.cost.unit,
                "state": run.state,
                "entries": to_record(run.entries, total=False)["entries"],
            }
            for run in history.runs
        ],
    }
