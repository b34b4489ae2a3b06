"""Forest plots of a study: all real records, private and naive estimates of one split."""

from __future__ import annotations

from dpsynth.report.details import Comparison, DeclaredEffect, EffectRow, Effects
from dpsynth.report.drawing.forest import draw, in_words
from dpsynth.report.drawing.svg import Plot, to_plot
from dpsynth.report.page.blocks import Plots
from dpsynth.research.replications.arms import Arm
from dpsynth.research.replications.effects import Regression, effect_of, regressions
from dpsynth.research.replications.results import Results
from dpsynth.research.replications.trial import Trial

_UNCOMPARED: Comparison = {"same_sign": None, "overlap": None, "standardised_difference": None}


def forests(results: Results) -> tuple[Plots, ...]:
    """Return the plots of each regression side by side, one for each epsilon.

    They show one split, since medians of estimates have no interval.
    """
    private = [arm for arm in results.arms if arm.whole]
    found = []
    for each in regressions(results):
        fitted = [(arm, trial) for arm in private if (trial := _first(results, arm)) is not None]
        if any(each.real.values()) and fitted:
            found.append(Plots(tuple(_plot(each, arm, trial) for arm, trial in fitted)))
    return tuple(found)


def _first(results: Results, arm: Arm) -> Trial | None:
    """The first fit of the first split in which it was not refused."""
    return next((trials[0] for trials in results.of(arm.name).values() if trials[0].sets), None)


def _plot(each: Regression, arm: Arm, trial: Trial) -> Plot:
    rows: list[EffectRow] = []
    for term, real in each.real.items():
        private = effect_of(trial, each.number, term, "declared")
        declared: DeclaredEffect | None = None
        if private is not None:
            declared = {
                "estimate": private["estimate"],
                "lower": private["lower"],
                "upper": private["upper"],
                **_UNCOMPARED,
            }
        naive = effect_of(trial, each.number, term, "synthetic")
        rows.append({"term": term, "real": real, "declared": declared, "synthetic": naive, **_UNCOMPARED})
    told = each.told
    data: Effects = {
        "model": told["model"],
        "outcome": told["outcome"],
        "measure": told["measure"],
        "rows": rows,
        "n_real": told["n_real"],
        "n_synthetic": trial.records,
        "level": told.get("level", 0.95),
        "study": each.label,
    }
    said = "; ".join(
        f"{row['term']}: all real {in_words(row['real'])}, declared {in_words(row['declared'])}, "
        f"naive {in_words(row['synthetic'])}"
        for row in rows
    )
    what = f"{each.label}, {arm.name}, split {trial.task.seed + 1}"
    return to_plot(
        lambda: draw(data),
        f"Forest plot, {what}, {told['measure']}. {said}.",
        f"{what}: {told['measure']} of each term with its 95 % interval in all real records, as private "
        "estimates, and from a synthetic table (naive: not valid as inference). One split alone; the tables "
        "below have all.",
        internal=True,
    )
