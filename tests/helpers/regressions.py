"""What an evaluator found about a regression, as one record that a test reads term by term."""

from __future__ import annotations

from typing import Any

from dpsynth.evaluation.effects import COMPARISONS, regressions_of
from dpsynth.evaluation.results import Evaluation, Findings


def told(found: Findings, place: int = 0) -> dict[str, Any]:
    """The regression at a place: its facts, and ``rows`` with the effects of each term by side, or None.

    A row has the comparisons of the synthetic side.
    """
    each = regressions_of(Evaluation((), {}, found.details))[place]
    rows = []
    for term, sides in each.terms.items():
        effects = {side: None if effect is None else vars(effect) for side, effect in sides.items()}
        compared = effects["synthetic"] or dict.fromkeys(COMPARISONS)
        rows.append({"term": term, **effects, **{name: compared[name] for name in COMPARISONS}})
    return {**vars(each), "rows": rows}
