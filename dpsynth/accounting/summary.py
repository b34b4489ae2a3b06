"""Summaries: what a run, a mechanism, a plan or a ledger gives away, exact numbers beside closed forms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpsynth.accounting.calibration.search import calibrate_training
from dpsynth.accounting.calibration.target import TargetAfter
from dpsynth.accounting.events.events import describe_event, training_event
from dpsynth.accounting.events.mechanisms import mechanism_event
from dpsynth.accounting.events.normal_form import ADD_REMOVE
from dpsynth.accounting.explain import explain
from dpsynth.accounting.ledger.guarantee import round_up
from dpsynth.accounting.measures import from_parameters, measures
from dpsynth.accounting.profile import Profile
from dpsynth.errors import InputError, PrivacyError
from dpsynth.papers.jia import membership, tvd

if TYPE_CHECKING:
    from dpsynth.accounting.calibration.target import Target
    from dpsynth.accounting.ledger.ledger import Ledger

_COLUMNS = (
    ("epsilon", "epsilon"),
    ("tv", "TV"),
    ("attack_accuracy_bound", "accuracy"),
    ("tpr_at_fpr", "TPR at FPR"),
    ("ppv_at_fpr", "precision"),
    ("belief_bound", "belief"),
    ("belief_exceedance", "exceeded"),
    ("mu", "mu"),
)


def of_training(
    noise_multiplier: float, sampling_prob: float, steps: int, delta: float, **options: Any
) -> dict[str, Any]:
    """Measures of a training run, with Jia's closed form of its total variation.

    Parameters and ``options`` (adjacency, prior, fpr) are those of
    :func:`~dpsynth.accounting.measures.from_parameters`.

    Examples
    --------
    >>> cost = of_training(1.0, 0.01, 1000, 1e-5)
    >>> round(cost["tv"], 4), round(cost["closed_forms"]["tv"], 4)
    (0.161, 0.2023)
    """
    cost: dict[str, Any] = from_parameters(noise_multiplier, sampling_prob, steps, delta, **options)
    # Jia's sampled-Gaussian divergence is about one record more or less.
    bound = (
        tvd.sampled_gaussian_tv(noise_multiplier, sampling_prob, steps)
        if cost["adjacency"] == ADD_REMOVE
        else None
    )
    return cost | {"closed_forms": _closed_forms(cost, bound)}


def of_mechanism(
    name: str,
    *,
    delta: float,
    adjacency: str = ADD_REMOVE,
    prior: float = 0.5,
    fpr: float = 0.01,
    **parameters: Any,
) -> dict[str, Any]:
    """Measures of releases of one mechanism; ``parameters`` as in :func:`mechanism_event`.

    Examples
    --------
    >>> cost = of_mechanism("laplace", epsilon=1.0, delta=0.0)
    >>> round(cost["tv"], 5), round(cost["epsilon"], 5)
    (0.39347, 1.0)
    """
    event = mechanism_event(name, **parameters)
    cost = measures(Profile([event], adjacency=adjacency), delta, prior=prior, fpr=fpr)
    return {"event": describe_event(event)} | cost | {"closed_forms": _closed_forms(cost, None)}


def of_plan(plan: str, delta: float, **options: Any) -> dict[str, Any]:
    """Measures of a plan written as ``z=1.1,q=256/60000,steps=3525``; ``q`` and ``steps`` are 1 if left out.

    Raises
    ------
    InputError
        If the plan has another key, lacks z, or a number cannot be read.
    """
    values: dict[str, float] = {"q": 1.0, "steps": 1}
    given: set[str] = set()
    for part in plan.split(","):
        key, _, number = part.partition("=")
        key = key.strip()
        if key not in ("z", "q", "steps"):
            raise InputError(f"plan {plan!r}: {key!r} is not one of z, q, steps")
        if key in given:
            raise InputError(f"plan {plan!r} gives {key} twice")
        given.add(key)
        try:
            values[key] = int(number) if key == "steps" else float(Fraction(number.strip()))
        except (ValueError, ZeroDivisionError, OverflowError):
            raise InputError(f"plan {plan!r}: {key} must be a number, not {number!r}") from None
    if "z" not in values:
        raise InputError(f"plan {plan!r} lacks z, the noise multiplier")
    return of_training(values["z"], values["q"], int(values["steps"]), delta, **options)


def of_ledger(
    ledger: Ledger, delta: float | None = None, *, prior: float = 0.5, fpr: float = 0.01
) -> dict[str, Any]:
    """Measures of everything in a ledger, at its own delta by default, with its :meth:`Ledger.summary`."""
    cost = ledger.summary(delta)
    exact = measures(ledger.profile(), cost["delta"], prior=prior, fpr=fpr)
    return {**cost, **exact, "caveats": _caveats(ledger)}


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
) -> dict[str, Any]:
    """Smallest noise multiplier of a training run that meets a target, and the run's measures.

    Parameters
    ----------
    target : Target
        For the run and everything in ``earlier`` together.
    earlier : Ledger, optional
        Releases about the same table. The run is a stage of its own, since its plan may depend on them. A
        ledger that names no delta is counted at half of this one.

    Other parameters are those of :func:`of_training`; the rest of the record too, with ``target`` in words.

    Examples
    --------
    >>> from dpsynth.accounting.calibration.target import TvTarget
    >>> cost = calibrated(TvTarget(0.1), 0.002, 10_000, 1e-5)
    >>> round(cost["noise_multiplier"], 3), cost["tv"] <= 0.1
    (1.025, True)
    """
    run = {"sampling_prob": float(sampling_prob), "steps": int(steps)}
    if earlier is None or not earlier.entries:
        z = calibrate_training(target, sampling_prob, steps, adjacency=adjacency)
        profile, caveats = Profile([training_event(z, sampling_prob, steps)], adjacency=adjacency), []
    else:
        if earlier.adjacency != adjacency:
            raise PrivacyError(
                f"the ledger is {earlier.adjacency}, the run {adjacency}: they cannot be summed"
            )
        spent, before = earlier.delta if earlier.delta is not None else delta / 2, earlier.profile()
        target = TargetAfter(target, before.epsilon(spent), spent, before.tv(), delta)
        z = calibrate_training(target, sampling_prob, steps, adjacency=adjacency)
        alone = Profile([training_event(z, sampling_prob, steps)], adjacency=adjacency)
        profile, caveats = target.whole(alone), _caveats(earlier)
    said = {"target": target.describe(), "noise_multiplier": z}
    return said | run | measures(profile, delta, prior=prior, fpr=fpr) | {"caveats": caveats}


def _caveats(ledger: Ledger) -> list[str]:
    """What makes the numbers of a ledger worth less than they say, in one sentence each."""
    found = []
    if ledger.seeded:
        found.append(
            "NOT PRIVATE: noise in the ledger was drawn from a caller's seed; the numbers count that noise "
            "and bind nobody who knows the seed."
        )
    return found + [f"The numbers do not cover: {reason}." for reason in ledger.excluded]


def _closed_forms(cost: Mapping[str, Any], tv: float | None) -> dict[str, Any]:
    """What formulas of epsilon, delta and total variation say where the exact number is not at hand."""
    epsilon, delta, prior, fpr = (cost[key] for key in ("epsilon", "delta", "prior", "fpr"))
    tv = cost["tv"] if tv is None else tv
    if math.isinf(epsilon):
        return {"tv": tv, "attack_accuracy_tv": membership.tv_accuracy(tv, prior)}
    return {
        "tv": tv,
        "attack_accuracy_dp": membership.dp_accuracy(epsilon, delta, prior),
        "attack_accuracy_tv": membership.tv_accuracy(tv, prior),
        "advantage_at_fpr_dp": float(membership.dp_advantage(fpr, epsilon, delta)),
        "advantage_at_fpr_tv": float(membership.tv_advantage(fpr, tv)),
        "tv_sharper_between_fprs": membership.tv_sharper_interval(epsilon, delta, tv),
    }


def to_text(cost: Mapping[str, Any]) -> str:
    """A readable table of a summary, with a sentence on what each number means for one patient."""
    lines = [str(cost["guarantee"]), ""] if "guarantee" in cost else []
    lines += [*cost["caveats"], ""] if cost.get("caveats") else []
    if "event" in cost:
        lines.append(f"what                   {cost['event']}")
    lines.append(f"adjacency              {cost['adjacency']}")
    for name, value, meaning in explain(cost):
        lines += [f"{name:<22} {value}", f"    {meaning}"]
    forms = cost.get("closed_forms")
    if forms:
        lines.append(
            "closed forms           (bounds on the exact numbers above, and where that by TV is the sharper)"
        )
        lines += [f"    {name:<24} {_shown(value)}" for name, value in forms.items()]
    for number, stage in enumerate(cost.get("stages", ()), 1):
        lines.append(
            f"  stage {number}: epsilon {round_up(stage['epsilon'])} at delta {round_up(stage['delta'])}, "
            f"total variation {round_up(stage['tv'])}"
        )
    for entry in cost.get("entries", ()):
        lines.append(
            f"  {entry['name']}: {entry['event']}, sensitivity {entry['sensitivity']}; "
            f"epsilon {round_up(entry['epsilon_alone'])} alone, "
            f"{round_up(entry['epsilon_cumulative'])} so far"
        )
    return "\n".join(lines)


def to_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table of measures, one line for each plan; values are rounded up."""
    width = max(4, *(len(row["plan"]) for row in rows))
    first = rows[0]
    deltas = dict.fromkeys(round_up(row["delta"]) for row in rows)
    lines = [
        f"delta {', '.join(deltas)}, FPR {first['fpr']:g}, prior {first['prior']:g}",
        "plan".ljust(width) + "".join(label.rjust(12) for _, label in _COLUMNS) + "  adjacency",
    ]
    for row in rows:
        cells = "".join(round_up(row[key]).rjust(12) for key, _ in _COLUMNS)
        at = f" at delta {round_up(row['delta'])}" if len(deltas) > 1 else ""
        lines.append(row["plan"].ljust(width) + cells + f"  {row['adjacency']}{at}")
    for row in rows:
        lines += [f"{row['plan']}: {caveat}" for caveat in row.get("caveats", ())]
    return "\n".join(lines)


def _shown(value: Any) -> str:
    if value is None:
        return "nowhere"
    if isinstance(value, tuple):
        return " to ".join(f"{end:.4g}" for end in value)
    return round_up(value, 6)
