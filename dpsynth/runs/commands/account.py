"""``dpsynth account``: what a training run, a mechanism or a ledger gives away, in every measure.

``dpsynth calibrate``: the least noise that meets a target.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from dpsynth.errors import InputError
from dpsynth.runs.commands import console

if TYPE_CHECKING:
    from dpsynth.accounting.ledger import Ledger


DELTA = 1e-5

app = typer.Typer(
    help="Print the privacy cost of a training run (--noise-multiplier, --sampling-prob, --steps), a "
    "mechanism (--mechanism) or a ledger (--ledger), exact from the privacy-loss distribution."
)

NoiseOption = Annotated[
    float | None, Option("--noise-multiplier", help="Noise std (Laplace: scale) over sensitivity.")
]
SamplingOption = Annotated[float, Option("--sampling-prob", help="Poisson sampling probability.")]
StepsOption = Annotated[int, Option("--steps", help="Number of noisy sums, or of noisy statistics.")]
DeltaOption = Annotated[
    float | None, Option("--delta", help="Probability of failure. By default the ledger's own, else 1e-5.")
]
AdjacencyOption = Annotated[str, Option("--adjacency", help="add/remove or replace-one.")]
PriorOption = Annotated[float, Option("--prior", help="An attacker's belief beforehand.")]
FprOption = Annotated[float, Option("--fpr", help="False positive rate of a membership test.")]


@app.callback(invoke_without_command=True)
def print_cost(
    context: typer.Context,
    noise_multiplier: NoiseOption = None,
    sampling_prob: SamplingOption = 1.0,
    steps: StepsOption = 1,
    delta: DeltaOption = None,
    ledger: Annotated[Path | None, Option(help="ledger.json, or the folder of a run or a model.")] = None,
    mechanism: Annotated[str | None, Option(help="gaussian, laplace, staircase or exponential.")] = None,
    epsilon: Annotated[float | None, Option(help="Epsilon of one use of the mechanism.")] = None,
    gamma: Annotated[float | None, Option(help="Width of the staircase's upper step.")] = None,
    adjacency: AdjacencyOption = "add/remove",
    prior: PriorOption = 0.5,
    fpr: FprOption = 0.01,
    as_json: console.JsonFlag = False,
) -> None:
    """Print what was asked for, unless a subcommand does."""
    if context.invoked_subcommand is not None:
        return
    from dpsynth.runs.commands import costs

    if ledger is not None:
        others = (noise_multiplier, mechanism, epsilon, gamma)
        if any(value is not None for value in others) or (sampling_prob, steps) != (1.0, 1):
            raise InputError(
                "--ledger holds its own events: no other option of a run or mechanism goes with it"
            )
        if adjacency != "add/remove":
            raise InputError("--adjacency does not go with --ledger, which holds its own")
        cost = costs.of_ledger(*_ledger_at(ledger, delta), prior=prior, fpr=fpr)
    elif mechanism is not None:
        if sampling_prob != 1.0:
            raise InputError("--sampling-prob does not go with --mechanism")
        named = {"noise_multiplier": noise_multiplier, "epsilon": epsilon, "gamma": gamma}
        given = {name: value for name, value in named.items() if value is not None}
        cost = costs.of_mechanism(
            mechanism, given, steps, _given(delta), adjacency=adjacency, prior=prior, fpr=fpr
        )
    elif noise_multiplier is not None:
        if epsilon is not None or gamma is not None:
            raise InputError("--epsilon and --gamma describe a --mechanism")
        cost = costs.of_training(
            noise_multiplier, sampling_prob, steps, _given(delta), adjacency=adjacency, prior=prior, fpr=fpr
        )
    else:
        raise InputError("give --noise-multiplier, --mechanism or --ledger")
    console.emit(cost, costs.to_text(cost), as_json=as_json)


def _given(delta: float | None) -> float:
    return DELTA if delta is None else delta


def _ledger_at(path: Path, delta: float | None) -> tuple[Ledger, float]:
    """A ledger, and the delta asked for, or its own, or 1e-5 where it names none."""
    from dpsynth.runs.run_folder import read_ledger

    ledger = read_ledger(path)
    return ledger, _given(ledger.delta if delta is None else delta)


def print_noise(
    target: Annotated[
        str, Option(help="epsilon=3, tv=0.1, attack-accuracy=0.6, advantage=0.1@fpr=0.01 or belief=0.9.")
    ],
    sampling_prob: SamplingOption = 1.0,
    steps: StepsOption = 1,
    delta: Annotated[float, Option(help="Probability of failure.")] = DELTA,
    adjacency: AdjacencyOption = "add/remove",
    prior: PriorOption = 0.5,
    fpr: FprOption = 0.01,
    ledger: Annotated[
        Path | None, Option(help="Ledger of earlier noisy statistics of the same table, which count as well.")
    ] = None,
    as_json: console.JsonFlag = False,
) -> None:
    """Print the smallest noise multiplier of a training run that meets a target, and what the run then costs.

    The multiplier lies on the private side and exceeds the smallest by at most 1e-3 of it. A belief target is
    exceeded with probability at most delta. With --ledger, the target is for everything together.
    """
    from dpsynth.accounting.calibration import parse_target
    from dpsynth.runs.commands import costs
    from dpsynth.runs.run_folder import read_ledger

    aim = parse_target(target, delta=delta, prior=prior)
    earlier = read_ledger(ledger) if ledger is not None else None
    cost = costs.calibrated(
        aim, sampling_prob, steps, delta, adjacency=adjacency, prior=prior, fpr=fpr, earlier=earlier
    )
    # up, so that whoever types the printed figure is on the private side too
    shown = math.ceil(cost["noise_multiplier"] * 1e6) / 1e6
    text = f"noise multiplier       {shown:.6f}  for {cost['target']}\n\n{costs.to_text(cost)}"
    console.emit(cost, text, as_json=as_json)
