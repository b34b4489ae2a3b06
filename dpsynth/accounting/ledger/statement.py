"""What a ledger says to people: one sentence of guarantee, and the cost of each entry.

The true and false positive rates of the sentence are those of Jia 2023, "Total variation distance privacy":
their difference is at most the total variation of the outputs on neighbouring tables.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsynth.accounting.events.events import describe_event
from dpsynth.accounting.events.normal_form import ADD_REMOVE, normalised
from dpsynth.accounting.profile import Profile
from dpsynth.files.atomic import write_text

if TYPE_CHECKING:
    from dpsynth.accounting.ledger.ledger import Ledger


#: file that stands beside, or in, an output without a guarantee
WARNING = "NOT_PRIVATE.txt"
#: first words of every output of a run whose guarantee is void
NOT_PRIVATE = "NOT PRIVATE"


def is_private(guarantee: str) -> bool:
    """Whether a ledger's sentence promises anything.

    Examples
    --------
    >>> is_private("(3, 1e-05)-differentially private for adding or removing one record: ...")
    True
    >>> is_private("NOT PRIVATE: the table was released without any guarantee.")
    False
    """
    return not guarantee.startswith(NOT_PRIVATE)


def write_warning(path: Path, sentence: str) -> None:
    """Write a void guarantee beside an output: tables and arrays cannot say it themselves."""
    if not is_private(sentence):
        write_text(path, sentence + "\n")


def guarantee(ledger: Ledger, delta: float, profile: Profile | None = None) -> str:
    """Return the guarantee of a ledger in plain words; see :meth:`Ledger.guarantee`."""
    if not ledger.entries:
        return "NOT PRIVATE: nothing is posted in this ledger, so it promises nothing about any table."
    profile = profile or ledger.profile()
    epsilon = profile.epsilon(delta)
    bare = [e.name for e in ledger.entries if not normalised([e.event], ledger.adjacency).private]
    if bare:
        verb = "was" if len(bare) == 1 else "were"
        text = f"NOT PRIVATE: {', '.join(bare)} {verb} released without any guarantee."
    elif math.isinf(epsilon):
        text = f"NOT PRIVATE at delta {delta:.3g}: no finite epsilon holds there."
    else:
        change = "adding or removing" if ledger.adjacency == ADD_REMOVE else "replacing"
        stages = len(ledger.stages)
        summed = f", the sum of {stages} stages" if stages > 1 else ""
        text = (
            f"({round_up(epsilon)}, {round_up(delta)})-differentially private for {change} one record"
            f"{summed}: no test of whether one person's record is in the table has a true positive rate that "
            f"exceeds its false positive rate by more than {round_up(profile.tv())}."
        )
    if ledger.seeded and not bare:
        # No claim about "all others": a seed used twice lets anybody subtract one release from another.
        text = "NOT PRIVATE: the noise was drawn from a caller's seed, and whoever knows it can take it away."
    if ledger.excluded:
        text += f" The guarantee does not cover: {'; '.join(ledger.excluded)}."
    return text


def summary(ledger: Ledger, delta: float) -> dict[str, Any]:
    """Return the cost of a ledger as a whole and entry by entry; see :meth:`Ledger.summary`."""
    profile = ledger.profile()
    epsilon = profile.epsilon(delta)
    failure = ledger.failure_probability
    return {
        "epsilon": epsilon,
        "delta": float(delta),
        "tv": profile.tv(),
        "advantage": profile.advantage(),
        "attack_accuracy_bound": profile.attack_accuracy(),
        "adjacency": ledger.adjacency,
        "unit": "one row",
        "not_private": ledger.not_private,
        "seeded": ledger.seeded,
        "excluded": list(ledger.excluded),
        "failure_probability": failure,
        "overflow_delta": min(1.0, failure * (1 + math.exp(min(epsilon, 700.0)))),
        "guarantee": guarantee(ledger, delta, profile),
        "stages": _stages(ledger),
        "entries": [_line(ledger, i, delta) for i in range(len(ledger.entries))],
    }


def _stages(ledger: Ledger) -> list[dict[str, float]]:
    """What each stage adds to the sum; nothing for a single stage, which has a whole curve."""
    if len(ledger.stages) <= 1:
        return []
    costs = [ledger.cost(number) for number in range(1, len(ledger.stages) + 1)]
    return [dict(zip(("epsilon", "delta", "tv"), cost, strict=True)) for cost in costs]


def _line(ledger: Ledger, index: int, delta: float) -> dict[str, Any]:
    entry = ledger.entries[index]
    return {
        "name": entry.name,
        "stage": entry.stage,
        "event": describe_event(entry.event),
        "sensitivity": entry.sensitivity,
        "detail": entry.detail,
        "epsilon_alone": Profile([entry.event], adjacency=ledger.adjacency).epsilon(delta),
        "epsilon_cumulative": ledger.prefix(index + 1).epsilon(delta),
    }


def round_up(value: float, figures: int = 4) -> str:
    """So many significant figures, never below the value: a guarantee is not rounded in its own favour.

    Examples
    --------
    >>> round_up(1.00041), round_up(1.0049e-05), round_up(-0.0)
    ('1.001', '1.005e-05', '0')
    """
    if value == 0.0 or math.isinf(value):
        return f"{abs(value):.4g}"
    places = figures - 1 - math.floor(math.log10(value))
    text = f"{value:.{figures}g}"
    if float(text) < value * (1 - 1e-13):  # a sum of floats may be off in its last digit
        text = f"{round(value, places) + 10.0**-places:.{figures}g}"
    return text
