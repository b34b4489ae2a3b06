"""The report of one run: what was promised, what it cost, what came out and how it measures up.

The same record becomes ``report.json`` and ``report.md``. It opens with the guarantee, since every number
after it is read in its light, and says NOT PRIVATE first where there is none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dpsynth.accounting.ledger.guarantee import NOT_PRIVATE, Guarantee, round_up
from dpsynth.evaluation.records import INTERNAL, Evaluation
from dpsynth.files.markdown import code_block, inert
from dpsynth.files.yaml_text import dump_yaml


@dataclass(frozen=True)
class RunReport:
    """What one run did.

    Parameters
    ----------
    guarantee : Guarantee
    ledger : dict
        ``Ledger.summary(delta)``.
    table : dict
        Public facts about the synthetic table: name of the data, number of records, digest of the schema.
    config : dict
        The whole configuration.
    evaluation : Evaluation, optional
        Most of its numbers are internal.
    versions : dict of str to str
        Of Python and of the packages that decide the result.
    seconds : dict of str to float
        Wall time of each stage.
    created : str
        ISO date of the run.
    """

    guarantee: Guarantee
    ledger: Mapping[str, Any]
    table: Mapping[str, Any]
    config: Mapping[str, Any]
    evaluation: Evaluation | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    created: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what ``report.json`` holds; an infinite epsilon is null."""
        return {
            "guarantee": str(self.guarantee),
            "private": self.guarantee.status == "private",
            "created": self.created,
            "release": False,  # the report holds internal numbers; the table, model and ledger may be shared
            "ledger": finite(self.ledger),
            "table": finite(self.table),
            "evaluation": self.evaluation.to_dict() if self.evaluation is not None else None,
            "config": finite(self.config),
            "versions": dict(self.versions),
            "seconds": {stage: round(value, 3) for stage, value in self.seconds.items()},
        }

    def to_json(self) -> str:
        """Return :meth:`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def to_markdown(self) -> str:
        """Return the report for people."""
        lines = [f"# Synthetic table: {inert(str(self.table.get('name', 'unnamed')))}", ""]
        if not self.guarantee.private:
            lines += [
                f"> **{NOT_PRIVATE}.** The records of this run's training table are not protected. "
                "Treat everything beside this report as you would treat them.",
                "",
            ]
        lines += ["## What is guaranteed", "", inert(str(self.guarantee)), ""]
        lines += _excluded(self.ledger.get("excluded", ()))
        lines += ["## What it cost", "", *_ledger_table(self.ledger)]
        if self.evaluation is not None:
            lines += [
                "## What it is worth",
                "",
                f"Numbers marked *{INTERNAL}* were computed from real records without payment: the guarantee "
                "does not cover them. Share the synthetic table, the model and the ledger, not this report.",
                "",
                self.evaluation.to_markdown(level=3),
            ]
        lines += ["## How it was made", "", *_facts(self.table), ""]
        lines += [*code_block(dump_yaml(dict(self.config)).rstrip("\n"), "yaml"), ""]
        lines.append(_joined("Versions", self.versions))
        times = {stage: f"{value:.1f} s" for stage, value in self.seconds.items()}
        lines += ["", _joined("Wall time (internal)", times), ""]
        return "\n".join(lines)


def finite(value: Any) -> Any:
    """Replace numbers that JSON cannot hold by None, however deep.

    Examples
    --------
    >>> finite({"epsilon": float("inf"), "entries": (1, 2.5)})
    {'epsilon': None, 'entries': [1, 2.5]}
    """
    if isinstance(value, Mapping):
        return {str(key): finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _excluded(reasons: Sequence[str]) -> list[str]:
    if not reasons:
        return []
    return ["The guarantee does **not** cover:", "", *(f"- {inert(reason)}" for reason in reasons), ""]


def _ledger_table(summary: Mapping[str, Any]) -> list[str]:
    lines = [
        "| reading of the private table | event | sensitivity | ε alone | ε so far |",
        "|---|---|---|---:|---:|",
    ]
    for entry in summary.get("entries", ()):
        what = entry["name"] + (f" ({entry['detail']})" if entry.get("detail") else "")
        cells = (
            what,
            entry["event"],
            entry["sensitivity"],
            _number(entry["epsilon_alone"]),
            _number(entry["epsilon_cumulative"]),
        )
        lines.append("| " + " | ".join(inert(cell) for cell in cells) + " |")
    lines += [
        "",
        f"In all: ε = {_number(summary['epsilon'])} at δ = {round_up(summary['delta'])}; total variation "
        f"{_number(summary['tv'])}, attack advantage at most {_number(summary['advantage'])}, attack "
        f"accuracy at most {_number(summary['attack_accuracy_bound'])}; adjacency: {summary['adjacency']}.",
        "",
    ]
    return lines


def _facts(table: Mapping[str, Any]) -> list[str]:
    return [f"- {key.replace('_', ' ')}: {inert(str(value))}" for key, value in table.items()]


def _joined(label: str, values: Mapping[str, str]) -> str:
    return f"{label}: " + ", ".join(f"{name} {value}" for name, value in values.items()) + "."


def _number(value: float | None) -> str:
    return "∞" if value is None or math.isinf(value) else round_up(value)
