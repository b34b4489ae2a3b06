"""``dpsynth account``: what a training run, or a ledger, costs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from dpsynth.commands import console
from dpsynth.errors import InputError

_DELTA = 1e-5


def account(
    noise_multiplier: Annotated[
        float | None, typer.Option("--noise-multiplier", help="Noise std over sensitivity.")
    ] = None,
    sampling_prob: Annotated[
        float, typer.Option("--sampling-prob", help="Poisson sampling probability.")
    ] = 1.0,
    steps: Annotated[int, typer.Option("--steps", help="Number of noisy sums.")] = 1,
    delta: Annotated[float, typer.Option("--delta", help="Probability of failure.")] = _DELTA,
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="ledger.json, or the folder of a run or a model.")
    ] = None,
    as_json: console.JsonFlag = False,
) -> None:
    """Print epsilon, total variation and attack bounds, exact from the privacy-loss distribution.

    Either of a training run (--noise-multiplier, --sampling-prob, --steps) or of everything in a ledger.
    Adjacency: add or remove one record.
    """
    if (noise_multiplier is None) == (ledger is None):
        raise InputError("give either --noise-multiplier or --ledger")
    if ledger is not None:
        if sampling_prob != 1.0 or steps != 1:
            raise InputError("--sampling-prob and --steps do not go with --ledger, which holds its own")
        cost = _ledger_cost(ledger, delta)
    else:
        from dpsynth.accounting import from_parameters

        cost = from_parameters(float(noise_multiplier or 0.0), sampling_prob, steps, delta)
    console.emit(cost, _text(cost), as_json=as_json)


def _ledger_cost(path: Path, delta: float) -> dict[str, Any]:
    from dpsynth.accounting.ledger import Ledger

    if not path.is_dir():
        return Ledger.load(path).summary(delta)
    if (path / "ledger.json").exists():
        return Ledger.load(path / "ledger.json").summary(delta)
    from dpsynth.synthesizer import DPWGANGP

    return DPWGANGP.load(path).ledger_.summary(delta)


def _text(cost: Mapping[str, Any]) -> str:
    from dpsynth.accounting.statement import round_up

    lines = [
        f"epsilon                {round_up(cost['epsilon'], 6)}  at delta {round_up(cost['delta'])}",
        f"total variation        {round_up(cost['tv'], 6)}",
        f"attack advantage       {round_up(cost['advantage'], 6)}  at most",
        f"attack accuracy        {round_up(cost['attack_accuracy_bound'], 6)}  at most, from even odds",
        f"adjacency              {cost['adjacency']}",
    ]
    for entry in cost.get("entries", ()):
        lines.append(
            f"  {entry['name']}: {entry['event']}, sensitivity {entry['sensitivity']}; "
            f"epsilon {round_up(entry['epsilon_alone'])} alone, "
            f"{round_up(entry['epsilon_cumulative'])} so far"
        )
    if "guarantee" in cost:
        lines.append(str(cost["guarantee"]))
    return "\n".join(lines)
