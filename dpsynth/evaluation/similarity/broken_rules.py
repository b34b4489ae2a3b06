"""How many rows break each rule: declared ones, those asked of an evaluation, and those that names suggest.

Counts of the synthetic table need no real record, so they may be shared with it. Those of the real table are
confidential. They do not decide which suggestions are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pandas as pd

from dpsynth.evaluation.estimates import share
from dpsynth.evaluation.records import Measure
from dpsynth.table.rule_counts import RuleCount

GROUP = "Constraints"


def violations(
    count: Callable[[pd.DataFrame], Sequence[RuleCount]],
    synthetic: pd.DataFrame,
    train: pd.DataFrame,
    *,
    units: int,
    level: float,
    what: str = "records",
) -> Iterator[Measure]:
    """Yield the share of synthetic and of training rows, conformed, that break each rule and formula.

    ``count`` counts them in a frame. If several formulas are suggested for one column, such as for other
    units, only the one that fewest synthetic rows break is kept. ``units`` is the number of training rows, or
    of patients if they have several. Rows of one patient are not independent, and the intervals allow for it.
    """
    made, real = count(synthetic), count(train)
    for place in _kept(made):
        name = "constraint_violations" if made[place].declared else "suggestion_violations"
        text, broken, of_train = made[place].text, made[place].broken, real[place].broken
        said = f"share of synthetic {what} that break it, {broken:,} of {len(synthetic):,}"
        yield Measure(GROUP, f"{name}_synthetic[{text}]", broken / len(synthetic), False, said)
        part = of_train / len(train)
        ends = share(round(part * units), units, level)
        said = f"share of train {what} that break it, {of_train:,} of {len(train):,}"
        yield Measure(GROUP, f"{name}_train[{text}]", part, True, said, ends.lower, ends.upper)


def _kept(made: Sequence[RuleCount]) -> list[int]:
    """Positions of all counts, but only the best one of formulas suggested for the same column."""
    best: dict[str, int] = {}
    for place, count in enumerate(made):
        key = count.text if count.declared or count.column is None else count.column
        if key not in best or count.broken < made[best[key]].broken:
            best[key] = place
    return sorted(best.values())
