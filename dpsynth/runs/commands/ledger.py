"""``dpsynth ledger``: what all runs of a data set have cost, and a cap that they may not pass."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from dpsynth.errors import InputError
from dpsynth.runs.commands import console

if TYPE_CHECKING:
    from dpsynth.privacy.ledger_file import History


def show(
    file: Annotated[
        Path | None, Argument(help="File of the ledger, or the folder of a run.", envvar="DPSYNTH_LEDGER")
    ] = None,
    epsilon: Annotated[float | None, Option(help="Set the largest epsilon of all runs together.")] = None,
    delta: Annotated[float | None, Option(help="Set the largest delta of all runs together.")] = None,
) -> None:
    """Print what all runs of a data set have cost, or set a cap that they may not pass.

    --epsilon and --delta set the cap, and make the file if need be. A smaller cap than before takes nothing
    back. Further runs are refused then.
    """
    from dpsynth.files.text import text_table
    from dpsynth.privacy.guarantee import round_up
    from dpsynth.privacy.ledger_file import LedgerFile
    from dpsynth.runs.spending import ledger_beside

    if file is None:
        raise InputError("give the file of the ledger, or set DPSYNTH_LEDGER")
    path = ledger_beside(file) if file.is_dir() else file
    if epsilon is not None and delta is not None:
        LedgerFile(path).set_cap(epsilon, delta)
    elif epsilon is not None or delta is not None:
        raise InputError(
            f"a cap needs --epsilon and --delta. {'--epsilon' if epsilon is None else '--delta'} is absent"
        )
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
    spent, spent_delta = map(round_up, history.used)
    said = f"{path}: epsilon {spent} and delta {spent_delta} used"
    if history.cap is not None:
        most, most_delta = history.cap
        said = f"{path}: epsilon {spent} of {most:g} and delta {spent_delta} of {most_delta:g} used"
    who = f", for adding or removing one {history.who}" if history.who else ""
    text = f"{said}{who}\n{text_table(header, sorted(lines, key=lambda line: line[0]))}"
    console.emit(_record(history), text)


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
