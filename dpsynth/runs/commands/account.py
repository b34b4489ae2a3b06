"""``dpsynth account``: what a training run, a mechanism or a ledger gives away, in every measure.

``dpsynth calibrate``: the least noise that meets a target.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from dpsynth.attacks import closed_forms
from dpsynth.checks import inside, one_of
from dpsynth.errors import InputError, PrivacyError
from dpsynth.privacy.calibration import TargetAfter, calibrate_training
from dpsynth.privacy.events import (
    approx_tv_event,
    describe_event,
    epsilon_delta_event,
    gaussian_event,
    laplace_event,
    training_event,
)
from dpsynth.privacy.guarantee import is_of_patients, round_up
from dpsynth.privacy.loss import ADD_REMOVE
from dpsynth.privacy.profile import Measures, Profile, from_parameters, meanings, measures_of
from dpsynth.runs.commands import console

if TYPE_CHECKING:
    from dpsynth.privacy.calibration import Target
    from dpsynth.privacy.ledger import Ledger


# ------------------------------------------------------------------------------------------------
# Privacy cost of a run, a mechanism or a ledger: exact numbers, with the papers' closed forms.
#
# These are the records that ``dpsynth account`` and ``dpsynth calibrate`` print, and their words.

_NEEDS = {
    "gaussian": ({"noise_multiplier"},),
    "laplace": ({"noise_multiplier"}, {"epsilon"}),
    "staircase": ({"epsilon", "gamma"},),
    "exponential": ({"epsilon"},),
}
_SEEDED = (
    "NOT PRIVATE: noise in the ledger follows a seed. The numbers count that noise. They do not hold against "
    "anyone who knows the seed."
)


#: :data:`~dpsynth.privacy.profile.Measures`, and what else is known of what they are about
Cost = dict[str, Any]


def of_training(
    noise_multiplier: float,
    sampling_prob: float,
    steps: int,
    delta: float,
    *,
    adjacency: str = ADD_REMOVE,
    prior: float = 0.5,
    fpr: float = 0.01,
) -> Cost:
    """Measures of a training run, with Jia's closed form of its total variation.

    Parameters are those of :func:`~dpsynth.privacy.profile.from_parameters`.
    """
    cost = from_parameters(
        noise_multiplier, sampling_prob, steps, delta, adjacency=adjacency, prior=prior, fpr=fpr
    )
    # Jia's sampled-Gaussian divergence is about one record more or less.
    closed = adjacency == ADD_REMOVE
    tv = closed_forms.sampled_gaussian_tv(noise_multiplier, sampling_prob, steps) if closed else cost["tv"]
    return {**cost, "closed_forms": _closed_forms(cost, tv)}


def of_mechanism(
    name: str,
    given: Mapping[str, float],
    count: int,
    delta: float,
    *,
    adjacency: str = ADD_REMOVE,
    prior: float = 0.5,
    fpr: float = 0.01,
) -> Cost:
    """Measures of ``count`` releases of one mechanism.

    Gaussian: std over L2 sensitivity. Laplace: scale over L1 sensitivity, which is 1 / epsilon. Staircase
    (Geng and Viswanath 2014): ``gamma`` is the width of the upper step as a share of the sensitivity, in [0,
    1]. The exponential mechanism has epsilon alone.
    """
    one_of("mechanism", name, _NEEDS)
    if set(given) not in _NEEDS[name]:
        wanted = " or ".join(" and ".join(sorted(needs)) for needs in _NEEDS[name])
        raise InputError(
            f"mechanism {name} takes {wanted}. Got {', '.join(sorted(given)) or 'neither noise nor epsilon'}"
        )
    epsilon = inside("epsilon", given["epsilon"], 0.0, math.inf) if "epsilon" in given else math.inf
    if name == "gaussian":
        event = gaussian_event(given["noise_multiplier"], count)
    elif name == "laplace":
        event = laplace_event(given.get("noise_multiplier", 1 / epsilon), count)
    elif name == "staircase":
        event = approx_tv_event(epsilon, closed_forms.staircase_tv(epsilon, given["gamma"]), count=count)
    else:
        event = epsilon_delta_event(epsilon, count=count)
    cost = measures_of(Profile([event], adjacency=adjacency), delta, prior=prior, fpr=fpr)
    return {"event": describe_event(event), **cost, "closed_forms": _closed_forms(cost, cost["tv"])}


def of_ledger(ledger: Ledger, delta: float | None = None, *, prior: float = 0.5, fpr: float = 0.01) -> Cost:
    """Measures of everything in a ledger, at its own delta by default, with its :meth:`Ledger.summary`."""
    summary = ledger.summary(delta)
    cost = measures_of(ledger.profile(), summary["delta"], prior=prior, fpr=fpr)
    return {**summary, **cost, "caveats": _caveats(ledger)}


def calibrated(
    target: Target,
    sampling_prob: float,
    steps: int,
    delta: float,
    *,
    adjacency: str = ADD_REMOVE,
    prior: float = 0.5,
    fpr: float = 0.01,
    earlier: Ledger | None = None,
) -> Cost:
    """Smallest noise multiplier of a training run that meets a target, and the run's measures.

    The target is for the run and everything in ``earlier`` together. The run is a stage of its own, since its
    plan may depend on these releases. A ledger that names no delta is counted at half of this one.
    """
    before = earlier.profile() if earlier is not None and earlier.entries else None
    if earlier is not None and before is not None:
        if earlier.adjacency != adjacency:
            raise PrivacyError(
                f"the ledger is {earlier.adjacency}, the run {adjacency}: they cannot be summed"
            )
        spent = earlier.delta if earlier.delta is not None else delta / 2
        target = TargetAfter(target, before.epsilon(spent), spent, before.tv(), delta)
    z = calibrate_training(target, sampling_prob, steps, adjacency=adjacency)
    profile = Profile([training_event(z, sampling_prob, steps)], adjacency=adjacency)
    if isinstance(target, TargetAfter):
        profile = target.whole(profile)
    return {
        "target": str(target),
        "noise_multiplier": z,
        "sampling_prob": float(sampling_prob),
        "steps": int(steps),
        **measures_of(profile, delta, prior=prior, fpr=fpr),
        "caveats": _caveats(earlier) if earlier is not None and before is not None else [],
    }


def _caveats(ledger: Ledger) -> list[str]:
    """Limits of the numbers of a ledger."""
    excluded = [f"The numbers do not cover: {reason}." for reason in ledger.excluded]
    return [_SEEDED, *excluded] if ledger.seeded else excluded


def _closed_forms(cost: Measures, tv: float) -> dict[str, Any]:
    """Formulas of epsilon (if it is finite), delta and total variation that bound the exact numbers."""
    epsilon, delta, prior, fpr = cost["epsilon"], cost["delta"], cost["prior"], cost["fpr"]
    by_tv = {"tv": tv, "attack_accuracy_tv": closed_forms.tv_accuracy(tv, prior)}
    if math.isinf(epsilon):
        return by_tv
    return {
        "tv": tv,
        "attack_accuracy_dp": closed_forms.dp_accuracy(epsilon, delta, prior),
        **by_tv,
        "advantage_at_fpr_dp": float(closed_forms.dp_advantage(fpr, epsilon, delta)),
        "advantage_at_fpr_tv": float(closed_forms.tv_advantage(fpr, tv)),
        "tv_sharper_between_fprs": closed_forms.tv_sharper_interval(epsilon, delta, tv),
    }


def to_text(cost: Cost) -> str:
    """A readable list of a cost, with a sentence on what each number means for one record."""
    lines = [cost["guarantee"], ""] if "guarantee" in cost else []
    lines += [*cost["caveats"], ""] if cost.get("caveats") else []
    if "event" in cost:
        lines.append(f"event                  {cost['event']}")
    lines.append(f"neighbouring datasets  {cost['adjacency']}")
    who = "record" if "unit" not in cost else "patient" if is_of_patients(cost["unit"]) else "row"
    for name, value, meaning in meanings(cost, who):
        lines += [f"{name:<22} {value}", f"    {meaning}"]
    if "closed_forms" in cost:
        lines.append(
            "closed forms           (bounds on the numbers above, and the range where that by TV is sharper)"
        )
        lines += [f"    {name:<24} {_shown(value)}" for name, value in cost["closed_forms"].items()]
    for number, stage in enumerate(cost.get("stages", ()), 1):
        lines.append(
            f"  stage {number}: epsilon {round_up(stage['epsilon'])} at delta {round_up(stage['delta'])}, "
            f"total variation {round_up(stage['tv'])}"
        )
    for entry in cost.get("entries", ()):
        lines.append(
            f"  {entry['name']}: {entry['event']}, sensitivity {entry['sensitivity']}, "
            f"epsilon {round_up(entry['epsilon_alone'])} alone, "
            f"{round_up(entry['epsilon_cumulative'])} so far"
        )
    return "\n".join(lines)


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return " to ".join(f"{end:.4g}" for end in value)
    return round_up(value, 6) if isinstance(value, float) else "nowhere"


DELTA = 1e-5

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


def print_cost(
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
) -> None:
    """Print the privacy cost of a training run, a mechanism or a ledger.

    It is exact, from the privacy-loss distribution. --noise-multiplier, --sampling-prob and --steps describe
    a training run.
    """
    if ledger is not None:
        others = (noise_multiplier, mechanism, epsilon, gamma)
        if any(value is not None for value in others) or (sampling_prob, steps) != (1.0, 1):
            raise InputError(
                "--ledger holds its own events: no other option of a run or mechanism goes with it"
            )
        if adjacency != "add/remove":
            raise InputError("--adjacency does not go with --ledger, which holds its own")
        cost = of_ledger(*_ledger_at(ledger, delta), prior=prior, fpr=fpr)
    elif mechanism is not None:
        if sampling_prob != 1.0:
            raise InputError("--sampling-prob does not go with --mechanism")
        named = {"noise_multiplier": noise_multiplier, "epsilon": epsilon, "gamma": gamma}
        given = {name: value for name, value in named.items() if value is not None}
        cost = of_mechanism(mechanism, given, steps, _given(delta), adjacency=adjacency, prior=prior, fpr=fpr)
    elif noise_multiplier is not None:
        if epsilon is not None or gamma is not None:
            raise InputError("--epsilon and --gamma describe a --mechanism")
        cost = of_training(
            noise_multiplier, sampling_prob, steps, _given(delta), adjacency=adjacency, prior=prior, fpr=fpr
        )
    else:
        raise InputError("give --noise-multiplier, --mechanism or --ledger")
    console.emit(cost, to_text(cost))


def _given(delta: float | None) -> float:
    return DELTA if delta is None else delta


def _ledger_at(path: Path, delta: float | None) -> tuple[Ledger, float]:
    """A ledger, and the delta asked for, or its own, or 1e-5 where it names none."""
    from dpsynth.runs.folder import read_ledger

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
    ledger: Annotated[
        Path | None, Option(help="Ledger of earlier noisy statistics of the same table, which count as well.")
    ] = None,
) -> None:
    """Print the smallest noise multiplier of a training run that meets a target, and what the run then costs.

    The multiplier lies on the private side and exceeds the smallest by at most 1e-3 of it. A belief target is
    exceeded with probability at most delta. With --ledger, the target is for everything together.
    """
    from dpsynth.privacy.calibration import parse_target
    from dpsynth.runs.folder import read_ledger

    aim = parse_target(target, delta=delta, prior=prior)
    earlier = read_ledger(ledger) if ledger is not None else None
    cost = calibrated(aim, sampling_prob, steps, delta, adjacency=adjacency, prior=prior, earlier=earlier)
    # up, so that whoever types the printed figure is on the private side too
    shown = math.ceil(cost["noise_multiplier"] * 1e6) / 1e6
    text = f"noise multiplier       {shown:.6f}  for {cost['target']}\n\n{to_text(cost)}"
    console.emit(cost, text)
