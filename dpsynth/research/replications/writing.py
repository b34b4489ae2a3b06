"""A study's results as a page: what was done, the tables, and forest plots of its regressions."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dpsynth.evaluation.results import frame_rows
from dpsynth.report.blocks import Plots
from dpsynth.report.plots import Forest, Plot, draw_forest
from dpsynth.report.words import effect_text
from dpsynth.research.replications.arms import HEALTHGAN, Arm
from dpsynth.research.replications.regression_tables import (
    Regression,
    paper_sheets,
    regression_sheets,
    regressions,
)
from dpsynth.research.replications.results import NOT_PRIVATE, Results
from dpsynth.research.replications.thesis_tables import thesis_sheets
from dpsynth.research.writing import ResultsPage, SheetGroup

_CONFIDENTIAL = (
    "Nearly everything here was computed from real records without payment, so that no guarantee covers it. "
    "Each private fit has its ε for the training part that it saw, which is not the hospital's table; and "
    "whoever picks a fit by what stands here picks by real records. To share a table or estimates, make one "
    "with dpsynth run on the whole table, with what was decided before."
)
_BASELINE = (
    f"HealthGAN is {NOT_PRIVATE}.",
    "It adds no noise; its tables are to be treated as the records themselves.",
)


def study_page(results: Results) -> ResultsPage:
    """Return all results of a study. Ledgers stay with the trials."""
    protocol = results.protocol
    groups = (
        SheetGroup("paper", "What the paper found, and what is found here", paper_sheets(results)),
        SheetGroup(
            "regressions", "The regressions, term by term", regression_sheets(results), forests(results)
        ),
        SheetGroup("thesis", "Tables in the form of the thesis", thesis_sheets(results)),
    )
    return ResultsPage(
        title=protocol.title,
        said=(protocol.question, f"After: {protocol.citation}"),
        facts=tuple(_done(results).items()),
        reading=tuple(_reading(results.seeds)),
        problems=tuple(results.problems()),
        groups=tuple(group for group in groups if group.sheets),
        record=_record(results),
        private=_CONFIDENTIAL,
        warnings=(_BASELINE,) if any(arm.name == HEALTHGAN for arm in results.arms) else (),
    )


def forests(results: Results) -> tuple[Plots, ...]:
    """Return the plots of each regression side by side, one for each epsilon.

    They show the first split whose first fit was not refused, since medians of estimates have no interval.
    """
    found = []
    for each in regressions(results):
        plots = []
        for arm in (arm for arm in results.arms if arm.whole):
            seeds = [seed for seed, trials in results.of(arm.name).items() if trials[0].sets]
            plots += [_plot(each, arm, seed) for seed in seeds[:1]]
        if plots and each.real["estimate"].notna().any():
            found.append(Plots(tuple(plots)))
    return tuple(found)


def _plot(each: Regression, arm: Arm, seed: int) -> Plot:
    fitted = each.estimates.query("arm == @arm.name and draw == 'split' and seed == @seed")
    terms = _by_term(each.real.rename_axis("term").reset_index().assign(side="real"))
    for term, sides in _by_term(fitted[fitted["side"] != "real"]).items():
        terms[term] |= sides
    told = each.told
    forest = Forest(told["outcome"], told["measure"], told["level"], terms, each.label)
    said = "; ".join(
        f"{term}: all real {effect_text(of['real'])}, declared {effect_text(of['declared'])}, "
        f"naive {effect_text(of['synthetic'])}"
        for term, of in terms.items()
    )
    what = f"{each.label}, {arm.name}, split {seed + 1}"
    return Plot(
        lambda: draw_forest(forest),
        f"Forest plot, {what}, {forest.measure}. {said}.",
        f"{what}: {forest.measure} of each term with its 95 % interval in all real records, as private "
        "estimates, and from a synthetic table (naive: not valid as inference). One split alone; the tables "
        "below have all.",
        internal=True,
    )


def _by_term(effects: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Effects with their intervals by term and side, None where there is none."""
    found: dict[str, dict[str, Any]] = {}
    for row in frame_rows(effects):
        found.setdefault(row.term, {})[row.side] = None if row.estimate is None else row
    return found


def _done(results: Results) -> dict[str, str]:
    """The protocol in words, as far as it was carried out."""
    protocol = results.protocol
    held_out = f"{100 * protocol.test_fraction:g} % held out for testing, stratified by the outcome"
    private = [trial for trial in results.trials if trial.ledger is not None and trial.task.arm != HEALTHGAN]
    deltas = ", ".join(f"{delta:.2g}" for delta in sorted({trial.delta or 0.0 for trial in private} - {0.0}))
    epsilons = ", ".join(f"{epsilon:.12g}" for epsilon in protocol.epsilons)
    fits = "one fit" if protocol.restarts == 1 else f"{protocol.restarts} fits"
    tables = "one synthetic table" if protocol.sets == 1 else f"{protocol.sets} synthetic tables"
    steps = 0 if protocol.baseline is None else protocol.baseline.training_steps
    resamples = len({trial.task.seed for trial in results.trials if trial.task.draw == "resample"})
    found = {
        "Records": f"{results.source}; one row is {results.unit}",
        "Splits": f"{results.seeds} of {protocol.seeds} planned seeds; in each {held_out}",
        "Privacy": f"ε = {epsilons} of one fit{f', each at δ = {deltas}' if deltas else ''}",
        "Fits": f"of each generator and split {fits}, from each {tables} of the training part's size",
        "Classifiers": ", ".join(name.replace("_", " ") for name in protocol.classifiers),
        # exclusions of the ledgers of private fits, each once
        "Not covered by ε": "; ".join(dict.fromkeys(what for trial in private for what in trial.excluded)),
        "HealthGAN": f"{steps:,} critic's steps without noise ({NOT_PRIVATE})" if steps else "",
        "Regressions": "; ".join(f"{study.label} ({study.model})" for study in protocol.studies),
        "Changed": " ".join(results.remarks),
        "Coverage": f"counted over {resamples} resamples of the records" if resamples else "",
    }
    return {name: text for name, text in found.items() if text}


def _reading(seeds: int) -> list[str]:
    """Content of a cell, and how far it can be trusted."""
    notes = [
        "Each split is another draw of training and test records from the same table, with fits of its own; "
        "ε is that of one split."
    ]
    if seeds < 2:
        return [*notes, "There is one split, so that nothing says how far a number would vary."]
    chance = 100 * (1 - 2.0 ** (1 - seeds))
    return [
        *notes,
        "A number over seeds is their median, and in parentheses stand the lowest and the highest of "
        f"{seeds}. These hold the median over all splits of this table, with fits of their own, with a "
        f"probability of {chance:.{0 if seeds < 8 else 1}f} %, whatever its distribution. They are no "
        "interval for other patients: how far another table would differ is not in them.",
        "n/a: not defined, or there was no estimate. [k of n seeds]: only in k of them.",
    ]


def _record(results: Results) -> dict[str, Any]:
    """Protocol and each trial's measures as plain data."""
    costs = {
        arm.name: {
            "one_fit": results.cost(arm.name, restarts=False),
            "all_restarts": results.cost(arm.name, restarts=True),
        }
        for arm in results.arms
        if arm.epsilon is not None
    }
    trials = [trial.to_dict() for trial in results.trials]
    return {
        "protocol": results.protocol.to_dict(),
        "source": results.source,
        "unit": results.unit,
        "epsilon": costs,
        "problems": results.problems(),
        "trials": [{name: value for name, value in each.items() if name != "ledger"} for each in trials],
    }
