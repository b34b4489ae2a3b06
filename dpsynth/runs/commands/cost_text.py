"""The records of :mod:`dpsynth.runs.commands.costs` in words: a list with what each number means, and a
table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from dpsynth.accounting.explain import meanings
from dpsynth.accounting.ledger.guarantee import round_up
from dpsynth.runs.commands.costs import Cost

_Column = Literal[
    "epsilon",
    "tv",
    "attack_accuracy_bound",
    "tpr_at_fpr",
    "ppv_at_fpr",
    "belief_bound",
    "belief_exceedance",
    "mu",
]
_COLUMNS: dict[_Column, str] = {
    "epsilon": "epsilon",
    "tv": "TV",
    "attack_accuracy_bound": "accuracy",
    "tpr_at_fpr": "TPR at FPR",
    "ppv_at_fpr": "precision",
    "belief_bound": "belief",
    "belief_exceedance": "exceeded",
    "mu": "mu",
}


def to_text(cost: Cost) -> str:
    """A readable list of a cost, with a sentence on what each number means for one patient."""
    lines = [cost["guarantee"], ""] if "guarantee" in cost else []
    lines += [*cost["caveats"], ""] if cost.get("caveats") else []
    if "event" in cost:
        lines.append(f"what                   {cost['event']}")
    lines.append(f"adjacency              {cost['adjacency']}")
    for name, value, meaning in meanings(cost):
        lines += [f"{name:<22} {value}", f"    {meaning}"]
    if "closed_forms" in cost:
        lines.append(
            "closed forms           (bounds on the exact numbers above, and where that by TV is the sharper)"
        )
        lines += [f"    {name:<24} {_shown(value)}" for name, value in cost["closed_forms"].items()]
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


def to_table(rows: Sequence[Cost]) -> str:
    """A table of costs, one line for each plan; values are rounded up."""
    width = max(4, *(len(row["plan"]) for row in rows))
    first = rows[0]
    deltas = dict.fromkeys(round_up(row["delta"]) for row in rows)
    lines = [
        f"delta {', '.join(deltas)}, FPR {first['fpr']:g}, prior {first['prior']:g}",
        "plan".ljust(width) + "".join(label.rjust(12) for label in _COLUMNS.values()) + "  adjacency",
    ]
    for row in rows:
        cells = "".join(round_up(row[key]).rjust(12) for key in _COLUMNS)
        at = f" at delta {round_up(row['delta'])}" if len(deltas) > 1 else ""
        lines.append(row["plan"].ljust(width) + cells + f"  {row['adjacency']}{at}")
    for row in rows:
        lines += [f"{row['plan']}: {caveat}" for caveat in row.get("caveats", ())]
    return "\n".join(lines)


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return " to ".join(f"{end:.4g}" for end in value)
    return round_up(value, 6) if isinstance(value, float) else "nowhere"
