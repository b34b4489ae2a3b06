"""Results as plain frozen records, to JSON and Markdown.

Every number says whether it is ``internal``: computed from real records without payment, and so outside the
privacy guarantee of the synthetic table beside it. What is internal helps whoever holds the real records;
releasing it needs a decision of its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpsynth.errors import InputError

#: what stands beside an internal number wherever it is printed
INTERNAL = "internal: not for release"


@dataclass(frozen=True)
class Measure:
    """One number of an evaluation.

    Parameters
    ----------
    group : str
        The question it belongs to, for instance ``"Utility"``.
    name : str
        Unique within an evaluation, for instance ``"auc_mean"``.
    value : float, int or None
        None where the number is not defined; ``detail`` then says why.
    internal : bool
        Whether it was computed from real records without payment.
    detail : str
        What it is, in a few words.
    """

    group: str
    name: str
    value: float | int | None
    internal: bool
    detail: str = ""

    def __post_init__(self) -> None:
        # JSON has no NaN; an undefined number is None everywhere.
        if isinstance(self.value, float) and not math.isfinite(self.value):
            object.__setattr__(self, "value", None)


@dataclass(frozen=True)
class Evaluation:
    """What was measured about a synthetic table.

    Parameters
    ----------
    measures : tuple of Measure
        With unique names.
    settings : dict
        How it was measured: outcome, seed, limits. Public.

    Examples
    --------
    >>> result = Evaluation((Measure("Utility", "auc_mean", 0.81, True, "three classifiers"),))
    >>> result["auc_mean"].value
    0.81
    >>> print(result.to_markdown())
    ### Utility
    <BLANKLINE>
    | measure | value | release | what it is |
    |---|---:|---|---|
    | auc_mean | 0.8100 | internal: not for release | three classifiers |
    <BLANKLINE>
    """

    measures: tuple[Measure, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [measure.name for measure in self.measures]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f"the measure {twice[0]!r} is given twice")

    def __getitem__(self, name: str) -> Measure:
        """Return the measure of that name; raise KeyError naming those there are."""
        for measure in self.measures:
            if measure.name == name:
                return measure
        raise KeyError(f"no measure {name!r}; there are: {', '.join(m.name for m in self.measures)}")

    def __contains__(self, name: object) -> bool:
        return any(measure.name == name for measure in self.measures)

    def released(self) -> Evaluation:
        """Return only what was computed without real records."""
        return Evaluation(tuple(m for m in self.measures if not m.internal), self.settings)

    def to_dict(self) -> dict[str, Any]:
        """Return lists, mappings, text and numbers, ready for JSON."""
        return {
            "settings": dict(self.settings),
            "measures": [
                {
                    "group": m.group,
                    "name": m.name,
                    "value": m.value,
                    "internal": m.internal,
                    "detail": m.detail,
                }
                for m in self.measures
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Evaluation:
        """Build an evaluation from what :meth:`to_dict` gives; raise InputError otherwise."""
        try:
            measures = tuple(Measure(**entry) for entry in data["measures"])
            return cls(measures, dict(data["settings"]))
        except (KeyError, TypeError) as problem:
            raise InputError(f"this is not a saved evaluation: {problem}") from None

    def to_json(self) -> str:
        """Return :meth:`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_markdown(self, *, level: int = 3) -> str:
        """Return one table a group, each under a heading of ``level``."""
        lines: list[str] = []
        for group in dict.fromkeys(measure.group for measure in self.measures):
            lines += [f"{'#' * level} {group}", "", "| measure | value | release | what it is |"]
            lines.append("|---|---:|---|---|")
            for measure in self.measures:
                if measure.group == group:
                    cells = (
                        measure.name,
                        _shown(measure.value),
                        INTERNAL if measure.internal else "released",
                        measure.detail,
                    )
                    lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
            lines.append("")
        return "\n".join(lines)


def _shown(value: float | int | None) -> str:
    if value is None:
        return "n/a"
    return f"{value:.4f}" if isinstance(value, float) else f"{value:,}"


def _cell(text: str) -> str:
    # A column may be called "a|b"; the bar would end its cell.
    return text.replace("|", "\\|").replace("\n", " ")
