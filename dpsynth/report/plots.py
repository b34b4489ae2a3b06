"""The plots of a report by name, each made from records and drawn when it is first asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dpsynth.accounting.profile import Profile
from dpsynth.accounting.record import Summary
from dpsynth.attacks.attempt import Attempt
from dpsynth.evaluation.details import Associations, Calibration, Distances, Effects, Marginal, Roc
from dpsynth.evaluation.records import Detail, Evaluation, Measure, Record
from dpsynth.report.drawing.attempts import plot_attempts
from dpsynth.report.drawing.curves import (
    plot_calibration,
    plot_costs,
    plot_curves,
    plot_intervals,
    plot_roc,
    plot_survival,
)
from dpsynth.report.drawing.distributions import plot_distances, plot_marginals, plot_matrix
from dpsynth.report.drawing.forest import plot_effects, plot_estimates
from dpsynth.report.drawing.style import Plot
from dpsynth.report.drawing.trajectories import plots_over_time
from dpsynth.report.wording import WORDS, grouped
from dpsynth.studies.estimates import Estimates

_LEVEL = 0.95
_GUARANTEE = ("trade_off", "roc_bound", "advantage", "privacy_profile")
#: marginal distributions that stand in a notebook's summary, the worst first
_SHOWN = 4


def plots_of_guarantee(profile: Profile, summary: Summary) -> dict[str, Plot]:
    """Costs of the noisy statistics, and what they allow an attacker."""
    costs = _numbered("costs", plot_costs(summary["entries"], summary["delta"]))
    return costs | dict(zip(_GUARANTEE, plot_curves(profile, summary["delta"]), strict=False))


def plots_of_attempts(attempts: Sequence[Attempt]) -> dict[str, Plot]:
    """Attacks beside their baselines and bounds, a plot for each measure."""
    return {
        f"attempts[{measure}]": plot_attempts(group, WORDS[measure][0])
        for measure, group in grouped(attempts)
    }


def plots_of_studies(studies: Sequence[Estimates], *, internal: bool) -> dict[str, Plot]:
    """Private estimates of pre-specified regressions, and survival curves."""
    drawn = {f"estimates[{told.study}]": plot_estimates(told, _LEVEL, internal=internal) for told in studies}
    return drawn | {
        f"survival[{told.study}]": plot_survival(told.survival, told.study, internal=internal)
        for told in studies
        if told.survival is not None
    }


def plots_of_evaluation(evaluation: Evaluation) -> dict[str, Plot]:
    """Results of an evaluation. Columns that differ most come first."""
    drawn: dict[str, Plot] = {}
    for name, reference, words in (
        ("auc", 0.5, "AUC on held-out real records"),
        ("r2", 0.0, "explained variance on held-out real records"),
        ("nn_accuracy", 0.5, "nearest-neighbour accuracy"),
    ):
        rows = [row for row in score_rows(evaluation.measures, name) if row[2].value is not None]
        if rows:
            drawn[name] = plot_intervals(
                rows, what=words, caption=words, reference=reference, axis_label=words.split(" on ")[0]
            )
    drawn |= {f"roc[{group[0].data.model}]": plot_roc(group) for group in by(evaluation.of(Roc), "model")}
    drawn |= {
        f"calibration[{group[0].data.model}]": plot_calibration(group)
        for group in by(evaluation.of(Calibration), "model")
    }
    drawn |= {detail.name: plot_effects(detail) for detail in evaluation.of(Effects) if detail.data.rows}
    drawn |= _marginals(evaluation)
    for detail in evaluation.of(Associations):
        if detail.data.columns and detail.data.matrix:
            what = f"Associations of pairs of columns, {detail.data.table} table"
            drawn[f"associations[{detail.data.table}]"] = plot_matrix(
                detail.data.matrix, detail.data.columns, what=what, caption=what, internal=detail.internal
            )
    found = [plot_distances(detail) for detail in evaluation.of(Distances) if detail.data.edges]
    return drawn | _numbered("distances", found) | plots_over_time(evaluation)


def summarised(names: Iterable[str]) -> list[str]:
    """Names of the plots that a notebook shows with the summary."""
    names = list(names)
    first = [name for name in ("costs", "auc", "r2") if name in names]
    columns = [name for name in names if name.startswith("marginal[")][:_SHOWN]
    return first + columns + [name for name in names if name.startswith("associations[")]


def _numbered(name: str, plots: Iterable[Plot]) -> dict[str, Plot]:
    """Plots of one name: ``costs``, ``costs[2]`` and so on."""
    return {f"{name}[{part}]" if part > 1 else name: plot for part, plot in enumerate(plots, start=1)}


def score_rows(measures: Sequence[Measure], prefix: str) -> list[tuple[str, str, Measure]]:
    """Scores of one kind, such as ``auc``: label, table and measure, both tables of a model together."""
    rows = []
    for measure in measures:
        rest = measure.name.removeprefix(f"{prefix}_")
        if rest and rest != measure.name and not re.search("difference|delta|loss", rest):
            table = "train" if rest.startswith("real_") else "synthetic"
            rows.append((rest.removeprefix("real_").replace("_", " "), table, measure))
    order = list(dict.fromkeys(label for label, _, _ in rows))
    return sorted(rows, key=lambda row: order.index(row[0]))


def marginal_pairs(evaluation: Evaluation) -> list[list[Detail[Marginal]]]:
    """Distributions of each column, synthetic and real, if both have the same bins."""
    pairs = []
    for details in by(evaluation.of(Marginal), "column"):
        tables = {detail.data.table: detail for detail in reversed(details)}
        chosen = [tables.get("synthetic"), tables.get("train", tables.get("test"))]
        pair = [detail for detail in chosen if detail is not None and detail.data.share]
        bins = [detail.data.edges or detail.data.labels for detail in pair]
        pairs.append([detail for detail, own in zip(pair, bins, strict=True) if own == bins[0]])
    return [pair for pair in pairs if pair]


def _marginals(evaluation: Evaluation) -> dict[str, Plot]:
    distances = {m.name: float(m.value) for m in evaluation.measures if m.value is not None}
    pairs = {pair[0].data.column: pair for pair in marginal_pairs(evaluation)}
    worst = sorted(pairs, key=lambda column: -distances.get(f"tvd[{column}]", 0.0))
    return {f"marginal[{column}]": plot_marginals(pairs[column]) for column in worst}


def by(details: Iterable[Detail[Record]], name: str) -> list[list[Detail[Record]]]:
    """Return details with those of one column, or of one model, together."""
    groups: dict[object, list[Detail[Record]]] = {}
    for detail in details:
        groups.setdefault(getattr(detail.data, name), []).append(detail)
    return list(groups.values())
