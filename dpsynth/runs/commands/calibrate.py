"""``dpsynth calibrate``: the least noise that meets a target."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from dpsynth.runs.commands import account, console


def print_noise(
    target: Annotated[
        str,
        typer.Option(
            "--target",
            help="epsilon=3, tv=0.1, attack-accuracy=0.6, advantage=0.1@fpr=0.01 or belief=0.9.",
        ),
    ],
    sampling_prob: account.SamplingOption = 1.0,
    steps: account.StepsOption = 1,
    delta: Annotated[float, typer.Option("--delta", help="Probability of failure.")] = account.DELTA,
    adjacency: account.AdjacencyOption = "add/remove",
    prior: account.PriorOption = 0.5,
    fpr: account.FprOption = 0.01,
    ledger: Annotated[
        Path | None,
        typer.Option("--ledger", help="Earlier releases about the same table, which count as well."),
    ] = None,
    as_json: console.JsonFlag = False,
) -> None:
    """Print the smallest noise multiplier of a training run that meets a target, and what the run then costs.

    The multiplier lies on the private side and exceeds the smallest by at most 1e-3 of it. A belief target is
    exceeded with probability at most delta. With --ledger, the target is for everything together.
    """
    from dpsynth.accounting.calibration.target import parse_target
    from dpsynth.runs.commands import cost_text, costs

    aim = parse_target(target, delta=delta, prior=prior)
    earlier = console.read_ledger(ledger) if ledger is not None else None
    cost = costs.calibrated(
        aim, sampling_prob, steps, delta, adjacency=adjacency, prior=prior, fpr=fpr, earlier=earlier
    )
    # up, so that whoever types the printed figure is on the private side too
    shown = math.ceil(cost["noise_multiplier"] * 1e6) / 1e6
    text = f"noise multiplier       {shown:.6f}  for {cost['target']}\n\n{cost_text.to_text(cost)}"
    console.emit(cost, text, as_json=as_json)
