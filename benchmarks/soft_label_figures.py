"""Figures 5.2 to 5.12 of the thesis for the experiment in soft_labels.py."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt

from dpsynth.attacks.bayes import Spread, membership_probability
from dpsynth.research.soft_labels.attack import Attacked
from dpsynth.research.soft_labels.targets import LeaveOut, from_logits

SHOWN = ("hard", "soft 0", "soft 0.25", "soft 0.5", "soft 1")
SMOOTHED = ("hard", "soft 1", "smoothed 0.5", "smoothed 0.7", "smoothed 0.9")
COLOURS = dict(zip(SHOWN, ("#222222", "#0072B2", "#56B4E9", "#009E73", "#D55E00"), strict=True))


def draw(
    found: Attacked, spread: Spread, known: LeaveOut, given: np.ndarray, true: np.ndarray, folder: Path
) -> None:
    """Write all figures as SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    plt.rcParams.update({"font.size": 8, "svg.hashsalt": "soft", "axes.spines.top": False})
    plt.rcParams.update({"axes.spines.right": False})
    for name, figure in {
        "membership": membership(found, spread),
        "calibration": calibration(found, spread),
        "low-fpr": low_fpr(found, spread),
        "errors": errors(found),
        "targets": targets(known, given, true),
        "argmax": over_alpha(known, given, true),
        "pareto": pareto(found, spread),
    }.items():
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None}, bbox_inches="tight")
        plt.close(figure)


def membership(found: Attacked, spread: Spread):
    """Figure 5.2: median P_IN of each record, over models with it and without."""
    figure, axes = plt.subplots(len(SHOWN), 1, figsize=(5, 7), sharex=True)
    medians = {name: found.membership(name, spread) for name in SHOWN}
    everything = np.concatenate([part for pair in medians.values() for part in pair])
    bins = np.linspace(*np.quantile(everything, [0.002, 0.998]), 45)
    for axis, name in zip(axes, SHOWN, strict=True):
        inside, outside = medians[name]
        axis.hist(inside, bins, alpha=0.6, color="#D55E00", label=f"in, median {np.median(inside):.3f}")
        axis.hist(outside, bins, alpha=0.6, color="#0072B2", label=f"out, median {np.median(outside):.3f}")
        axis.axvline(0.5, color="black", lw=0.6)
        axis.legend(frameon=False)
        axis.set_title(name, loc="left")
    axes[-1].set_xlabel("median predicted probability of membership, one value a record")
    figure.supylabel("records")
    figure.tight_layout()
    return figure


def calibration(found: Attacked, spread: Spread):
    """Figure 5.3: share of members in 100 groups of nearby predictions, with three standard errors."""
    figure, axes = plt.subplots(1, len(SHOWN), figsize=(11, 2.6), sharey=True, sharex=True)
    for axis, name in zip(axes, SHOWN, strict=True):
        p = membership_probability(found.log_odds(name, spread)).ravel()
        groups = np.array_split(np.argsort(p), 100)
        predicted = np.array([p[group].mean() for group in groups])
        share = np.array([found.members.ravel()[group].mean() for group in groups])
        bars = 3 * np.sqrt(share * (1 - share) / len(groups[0]))
        axis.errorbar(predicted, share, bars, fmt=".", ms=3, lw=0.5, color=COLOURS[name])
        axis.plot([0, 1], [0, 1], color="black", lw=0.6)
        axis.set_title(f"{name}: highest {share.max():.2f}", loc="left")
    axes[0].set_ylabel("share of members")
    figure.supxlabel("predicted probability of membership")
    figure.tight_layout()
    return figure


def low_fpr(found: Attacked, spread: Spread):
    """Figure 5.4: the ROC curve at low false positive rates, all models together."""
    figure, axis = plt.subplots(figsize=(4, 3.4))
    for name in SHOWN:
        gamma = found.log_odds(name, spread)
        others = np.sort(gamma[~found.members])[::-1]
        ours = np.sort(gamma[found.members])
        at = np.unique(np.geomspace(10, len(others) - 1, 200).astype(int))
        tpr = 1.0 - np.searchsorted(ours, others[at], side="right") / len(ours)
        axis.loglog(at / len(others), tpr, color=COLOURS[name], label=name, lw=1.1)
    axis.loglog([1e-3, 1], [1e-3, 1], color="grey", lw=0.6, ls="--", label="guessing")
    axis.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(5e-4, 1), ylim=(5e-4, 1))
    axis.legend(frameon=False)
    return figure


def errors(found: Attacked):
    """Figures 5.5, 5.6 and 5.9: errors of all models, labels as given."""
    figure, axes = plt.subplots(1, 3, figsize=(10, 2.8), sharey=True)
    for axis, names, kind in zip(axes, (SHOWN, SHOWN, SMOOTHED), ("validation", "test", "test"), strict=True):
        axis.boxplot([100 * found.errors[name][kind] for name in names], tick_labels=names)
        axis.set_title(f"{kind} error, %", loc="left")
        axis.tick_params(axis="x", rotation=25)
    figure.tight_layout()
    return figure


def targets(known: LeaveOut, given: np.ndarray, true: np.ndarray):
    """Figures 5.7 and 5.8: target probabilities of the labelled and of the true class."""
    figure, axes = plt.subplots(2, 4, figsize=(10, 4), sharex=True)
    flipped, row = given != true, np.arange(len(given))
    for column, alpha in ((0, 0.0), (2, 1.0)):
        soft = from_logits(known.mean, known.std, given, alpha)
        for offset, (labels, what) in enumerate(((given, "label given"), (true, "true class"))):
            for line, chosen in enumerate((np.ones(len(given), dtype=bool), flipped)):
                axis, p = axes[line, column + offset], soft[row, labels][chosen]
                axis.hist(p, np.linspace(0, 1, 31), color="#0072B2" if alpha == 0 else "#D55E00")
                axis.axvline(np.median(p), color="black", lw=0.8)
                who = "exchanged labels" if line else "all records"
                axis.set_title(f"α = {alpha:g}, {what}\n{who}, median {np.median(p):.3f}", loc="left")
    figure.supxlabel("target probability")
    figure.supylabel("records")
    figure.tight_layout()
    return figure


def over_alpha(known: LeaveOut, given: np.ndarray, true: np.ndarray):
    """Figures 5.10 and 5.11: how the targets agree with given and true labels, over alpha."""
    figure, axes = plt.subplots(1, 2, figsize=(8, 2.8))
    alphas, row = np.linspace(0, 5, 101), np.arange(len(given))
    for labels, what, colour in ((given, "given", "#D55E00"), (true, "true", "#0072B2")):
        match, entropy = [], []
        for alpha in alphas:
            soft = from_logits(known.mean, known.std, given, alpha)
            match.append(100 * (soft.argmax(axis=1) == labels).mean())
            entropy.append(-np.log(np.maximum(soft[row, labels], 1e-300)).mean())
        best = alphas[np.argmax(match)], alphas[np.argmin(entropy)]
        axes[0].plot(alphas, match, color=colour, label=f"{what} labels, most at α = {best[0]:.2f}")
        axes[1].plot(alphas, entropy, color=colour, label=f"{what} labels, least at α = {best[1]:.2f}")
    axes[0].set_ylabel("targets whose argmax matches, %")
    axes[1].set_ylabel("cross-entropy, nats")
    for axis, place in zip(axes, ("lower right", "upper center"), strict=True):
        axis.set_xlabel("α")
        axis.legend(frameon=False, loc=place)
    figure.tight_layout()
    return figure


def pareto(found: Attacked, spread: Spread):
    """Figure 5.12: privacy 2 (1 - A), (4.9), against accuracy, averages over models with standard errors."""
    figure, axis = plt.subplots(figsize=(5.6, 4.2))
    for name in [*SHOWN, *SMOOTHED[2:], "per record 1", "interpolated 0.5"]:
        accuracy = 100 * (1 - found.errors[name]["test"])
        privacy = np.minimum(2 * (1 - found.aucs(name, spread)), 1.0)
        half = np.sqrt(len(accuracy))
        axis.errorbar(
            accuracy.mean(),
            privacy.mean(),
            privacy.std(ddof=1) / half,
            accuracy.std(ddof=1) / half,
            fmt="o" if name in SHOWN else "s",
            color=COLOURS.get(name, "#999999"),
            ms=4,
            lw=0.8,
        )
        offset = (4, -9) if name in ("soft 0.25", "smoothed 0.5") else (4, 3)
        axis.annotate(name, (accuracy.mean(), privacy.mean()), xytext=offset, textcoords="offset points")
    axis.set(xlabel="test accuracy, labels as given, %", ylabel="privacy, 2 (1 − A) on pairs")
    return figure
