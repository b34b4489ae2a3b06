"""``dpsynth run``: a configuration in, a folder with the synthetic table and its ledger out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsynth.commands import console
from dpsynth.errors import RunError

if TYPE_CHECKING:
    from dpsynth.pipeline import Finished


def run(
    config: Annotated[Path, typer.Argument(help="YAML file of the run.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="Folder to write.", show_default=False)],
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run.")] = False,
    ledger: console.LedgerOption = None,
    force: console.ForceFlag = False,
    as_json: console.JsonFlag = False,
) -> None:
    """Fit, sample, evaluate and report, as a configuration says.

    Writes synthetic.csv, model/, ledger.json, report.json, report.md and report.html, all of them or none.
    """
    from dpsynth import pipeline
    from dpsynth.config import RunConfig

    settings = RunConfig.from_yaml(config)
    try:
        with console.run_bars() as (draw, stages):
            done = pipeline.run(
                settings,
                out,
                force=force,
                resume=resume,
                ledger=ledger,
                progress=draw,
                stages=stages,
                log=console.say,
            )
    except KeyboardInterrupt:
        checkpoint = pipeline.checkpoint_folder(out)
        if (checkpoint / "checkpoint.json").exists():
            left = f"a private checkpoint is in {checkpoint}; go on with --resume"
        else:
            left = "nothing was written"
        raise console.Interrupted(f"interrupted: {left}") from None
    result = {"out": str(done.out), "files": list(done.files), **done.report.to_dict()}
    console.emit(result, _text(done), as_json=as_json)
    if done.problem is not None:
        table = "the table, " if "synthetic.csv" in done.files else ""
        raise RunError(f"{done.problem}; {table}the model and the ledger are in {done.out}")


def _text(done: Finished) -> str:
    lines = [done.report.guarantee]
    evaluation = done.report.evaluation
    if evaluation is not None:
        wanted = (
            ("auc_mean", "AUC, trained on synthetic"),
            ("auc_real_mean", "AUC, trained on real"),
            ("nn_accuracy_train", "nearest-neighbour accuracy (0.5 is best)"),
            ("tvd_mean", "one-way TVD"),
            ("correlation_error", "correlation error"),
        )
        numbers = [
            f"{label} {value:.3f}"
            for name, label in wanted
            if name in evaluation and (value := evaluation[name].value) is not None
        ]
        lines.append(f"{'; '.join(numbers)} (internal: not for release)")
    lines.append(f"wrote {', '.join(done.files)} to {done.out}")
    return "\n".join(lines)
