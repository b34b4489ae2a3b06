"""Optimally soft labels: utility and privacy of each scheme, by the Bayes attack on the whole procedure.

    python benchmarks/soft_labels.py [--rounds 25] [--splits 25] [--jobs 2] [--only PART]

The thesis's experiment (Pedersen 2022, sections 5.4 and 5.5) on tables of the registry: balanced records, 20
% of labels exchanged in pairs, half of them train and half test. Each round trains both halves, so 25 rounds
are 50 models; every one is attacked with the models of the other rounds as shadows. Features are scaled by
the records that have no part in the experiment. The network is TensorFlow Privacy's with the thesis's
settings; the grid of scikit-learn classifiers and the recursive labels are quick. Rounds are kept in the
folder: the same command goes on after an interruption. Prints the tables of benchmarks/results/soft_labels.md
and writes the figures beside it.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
from scipy.stats import median_test
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from soft_label_figures import draw

import dpsynth
from dpsynth.attacks.bayes import tpr_at_fpr
from dpsynth.evaluation.estimates import auc, quantile
from dpsynth.evaluation.tables import ClassifierEncoding
from dpsynth.files.storage import carry_out
from dpsynth.research.soft_labels.attack import Attacked, LabelledFeatures, attack_procedure
from dpsynth.research.soft_labels.dp_sgd import DPSGDNetwork, reference_ledger
from dpsynth.research.soft_labels.estimators import SoftTargetRegressor
from dpsynth.research.soft_labels.procedure import LeaveOut, Procedure, WeightedCopies, leave_out
from dpsynth.research.soft_labels.targets import (
    Hard,
    Interpolated,
    OptimallySoft,
    PerRecord,
    Scheme,
    Smoothed,
    hard_targets,
)

HERE = Path(__file__).parent / "results"
SOFT = [OptimallySoft(alpha) for alpha in (0.0, 0.25, 0.5, 1.0)]
MAIN: list[Scheme] = [
    Hard(),
    *SOFT,
    PerRecord(1.0),
    Interpolated(0.5),
    *(Smoothed(amount) for amount in (0.5, 0.7, 0.9)),
]
GRID: list[Scheme] = [Hard(), *SOFT, Smoothed(0.5)]
#: records of each table: half of them train
SIZES = {"support2": 800, "breast_cancer": 320}
CLASSIFIERS = {
    "logistic regression": LogisticRegression(C=10.0, max_iter=300),
    "decision tree": DecisionTreeClassifier(min_samples_leaf=5),
    "random forest": RandomForestClassifier(40),
    "MLP 64": MLPClassifier((64,), max_iter=40),
}
#: the attack fits one standard deviation for all records: the stronger one with 24 shadow models of each
SPREAD = "pooled"


def experiment(name: str, seed: int = 0) -> tuple[LabelledFeatures, LabelledFeatures]:
    """Balanced records with 20 % of labels exchanged in pairs, and others to validate with."""
    table = dpsynth.datasets.load(name)
    assert table.outcome is not None
    rng, size = np.random.default_rng(seed), SIZES[name]
    codes = np.unique(table.frame[table.outcome].astype(str), return_inverse=True)[1]
    by_class = [rng.permutation(np.flatnonzero(codes == c)) for c in (0, 1)]
    pool = rng.permutation(np.concatenate([rows[: size // 2] for rows in by_class]))
    left = min(len(rows) for rows in by_class) - size // 2
    held = np.concatenate([rows[size // 2 :][: min(left, size // 4)] for rows in by_class])
    others = table.frame.drop(index=table.frame.index[pool])
    encoding = ClassifierEncoding.fit(others, table.schema, table.outcome)
    outside, X = encoding.transform(others, impute=True), encoding.transform(table.frame, impute=True)
    X = (X - outside.mean(axis=0)) / np.where(outside.std(axis=0) > 0, outside.std(axis=0), 1.0)
    parts = []
    for rows in (pool, held):
        given = codes[rows].copy()
        pairs = round(0.1 * len(rows))  # of two records each: a fifth of all
        for c in (0, 1):
            given[rng.permutation(np.flatnonzero(codes[rows] == c))[:pairs]] = 1 - c
        parts.append(LabelledFeatures(X[rows], given, codes[rows]))
    return parts[0], parts[1]


def told(start: float, what: str) -> Callable[[int, int, str, float], None]:
    def tell(done: int, total: int, label: str, seconds: float) -> None:
        print(f"{what}: {done}/{total}, {time.perf_counter() - start:.0f} s", file=sys.stderr)

    return tell


def attacked(
    name: str, procedure: Procedure, schemes: Sequence[Scheme], what: str, options: argparse.Namespace
) -> tuple[Attacked, float]:
    """The attack on a table, and the seconds of the rounds that were carried out now."""
    records, validation = experiment(name)
    start = time.perf_counter()
    found = attack_procedure(
        procedure,
        schemes,
        records,
        classes=2,
        validation=validation,
        rounds=options.rounds,
        folder=options.folder / f"{what} {name}".replace(" ", "-"),
        jobs=options.jobs,
        on_round=told(start, f"{what}, {name}"),
    )
    return found, time.perf_counter() - start


def percent(values: np.ndarray) -> str:
    found = quantile(values, 0.5)
    return f"{100 * found.value:.1f} ({100 * found.lower:.1f}–{100 * found.upper:.1f})"


def decimal(values: np.ndarray) -> str:
    found = quantile(values, 0.5)
    return f"{found.value:.3f} ({found.lower:.3f}–{found.upper:.3f})"


def full_table(found: Attacked, names: Sequence[str]) -> list[str]:
    """One line a scheme: errors, the attack, and Mood's test of P_IN against hard labels."""
    lines = [
        "| labels | test error, labels as given % | against true labels % | AUROC of the attack | "
        "P_IN of members | Mood's p | γ of the top 5 % | TPR at FPR 1 % |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    hard_in = found.membership("hard", SPREAD)[0]
    for name in names:
        inside = found.membership(name, SPREAD)[0]
        gamma = found.log_odds(name, SPREAD)
        low = tpr_at_fpr(gamma[found.members], gamma[~found.members], 0.01).tpr.value
        exposed = np.quantile(np.nanmedian(np.where(found.members, gamma, np.nan), axis=0), 0.95)
        p = "" if name == "hard" else f"{mood(inside, hard_in):.2g}"
        lines.append(
            f"| {name} | {percent(found.errors[name]['test'])} | "
            f"{percent(found.errors[name]['test true'])} | "
            f"{decimal(found.aucs(name, SPREAD))} | {decimal(inside)} | {p} | "
            f"{exposed:.2f} | {100 * low:.1f} % |"
        )
    return lines


def mood(first: np.ndarray, second: np.ndarray) -> float:
    """Mood's median test; 1 where all values are the same, which scipy refuses."""
    if np.ptp(np.concatenate([first, second])) == 0:
        return 1.0
    return float(median_test(first, second).pvalue)


def verdict(found: Attacked, names: Sequence[str]) -> list[str]:
    """Paired differences to hard labels over models, and whether a scheme is better in both."""
    hard_error, hard_auc = found.errors["hard"]["test"], found.aucs("hard", SPREAD)
    lines = [
        "| labels | test error less that of hard labels, points | AUROC less that of hard ones | better in |",
        "|---|---:|---:|---|",
    ]
    for name in names:
        if name == "hard":
            continue
        error = 100 * (found.errors[name]["test"] - hard_error)
        attack = found.aucs(name, SPREAD) - hard_auc
        cells, better = [], []
        for values, digits, what in ((error, 1, "utility"), (attack, 3, "privacy")):
            d = quantile(values, 0.5)
            cells.append(f"{d.value:+.{digits}f} ({d.lower:+.{digits}f} to {d.upper:+.{digits}f})")
            better += [what] if d.upper < 0 else [f"*worse {what}*"] if d.lower > 0 else []
        lines.append(f"| {name} | {cells[0]} | {cells[1]} | {' and '.join(better) or 'neither, clearly'} |")
    return lines


def wide(options: argparse.Namespace) -> list[str]:
    """Quick classifiers that overfit more, with 12 rounds of 10 splits at most."""
    options = argparse.Namespace(**vars(options) | {"rounds": min(options.rounds, 12)})
    lines = [
        "| table | classifier | labels | test error, labels as given % | against true labels % | AUROC |",
        "|---|---|---|---:|---:|---:|",
    ]
    for table in options.tables:
        for title, model in CLASSIFIERS.items():
            procedure = Procedure(WeightedCopies(model), splits=min(options.splits, 10))
            found, _ = attacked(table, procedure, GRID, title, options)
            for name in found.logits:
                errors = found.errors[name]
                lines.append(
                    f"| {table} | {title} | {name} | {percent(errors['test'])} | "
                    f"{percent(errors['test true'])} | {decimal(found.aucs(name, SPREAD))} |"
                )
    return lines


def recursive(options: argparse.Namespace) -> list[str]:
    """Labels computed again from models that were trained on the soft labels before."""
    options = argparse.Namespace(**vars(options) | {"rounds": min(options.rounds, 12)})
    lines = ["| recursions | labels | test error % | AUROC |", "|---:|---|---:|---:|"]
    schemes = [OptimallySoft(0.0), OptimallySoft(1.0)]
    for recursions in (1, 2, 4):
        model = WeightedCopies(CLASSIFIERS["logistic regression"])
        procedure = Procedure(model, splits=10, recursions=recursions)
        found, _ = attacked("support2", procedure, schemes, f"recursive {recursions}", options)
        for name in found.logits:
            lines.append(
                f"| {recursions} | {name} | {percent(found.errors[name]['test'])} | "
                f"{decimal(found.aucs(name, SPREAD))} |"
            )
    return lines


def regression() -> list[str]:
    """Soft targets for numbers on scikit-learn's diabetes records; the attack is the loss alone."""
    X, y = load_diabetes(return_X_y=True)
    tree = DecisionTreeRegressor(min_samples_leaf=3, random_state=0)
    kinds: dict[str, object] = {"values": tree}
    kinds |= {
        f"soft {alpha:g}": SoftTargetRegressor(tree, alpha=alpha, random_state=0)
        for alpha in (0.0, 0.5, 1.0, 2.0)
    }
    lines = ["| targets | R² on new records | AUROC of the loss |", "|---|---:|---:|"]
    for name, model in kinds.items():
        scores, attacks = [], []
        for seed in range(20):
            order = np.random.default_rng(seed).permutation(len(y))
            mine, others = order[: len(y) // 2], order[len(y) // 2 :]
            model.fit(X[mine], y[mine])
            scores.append(model.score(X[others], y[others]))
            loss = np.abs(model.predict(X) - y)
            attacks.append(auc(-loss[mine], -loss[others]).value)
        lines.append(f"| {name} | {decimal(np.array(scores))} | {decimal(np.array(attacks))} |")
    return lines


def label_statistics(options: argparse.Namespace) -> tuple[LeaveOut, np.ndarray, np.ndarray]:
    """What the label models of one half say, for the figures about targets; its labels, given and true."""
    records, _ = experiment("support2")
    half = np.random.default_rng(1).permutation(len(records.labels))[: len(records.labels) // 2]
    X, given = records.X[half], records.labels[half]
    task = {"half": (DPSGDNetwork(epochs=12), X, given, options.splits)}
    kept = carry_out(statistics_of, task, folder=options.folder / "targets", settings={})["half"]
    arrays = {key: np.array(value) for key, value in kept.items()}
    assert records.true_labels is not None
    return LeaveOut(**arrays), given, records.true_labels[half]


def statistics_of(task: tuple) -> dict[str, object]:
    classifier, X, labels, splits = task
    found = leave_out(classifier, X, hard_targets(labels, 2), labels, splits=splits, seed=1)
    names = ("mean", "std", "mean_probability", "exposure")
    return {name: getattr(found, name).tolist() for name in names}


def costs() -> list[str]:
    """What DP-SGD's settings would promise."""
    final, label = DPSGDNetwork(), DPSGDNetwork(epochs=12)
    lines = ["| what is trained | δ | ε, batches drawn anew |", "|---|---:|---:|"]
    for title, ledger in (
        ("hard labels, 6 epochs", reference_ledger(final, 400)),
        ("soft labels: 25 splits of 12 epochs, then 6", reference_ledger(final, 400, label)),
    ):
        lines.append(f"| {title} | 1e-3 | {ledger.epsilon(1e-3):.1f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--splits", type=int, default=25)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("runs/soft_labels"))
    parser.add_argument("--tables", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--only", choices=("network", "wide", "recursive", "regression"))
    options = parser.parse_args()
    start = time.perf_counter()
    text, network = [__doc__.split("\n")[0], ""], Procedure(DPSGDNetwork(), DPSGDNetwork(epochs=12))
    network = Procedure(network.classifier, network.label_classifier, options.splits)
    if options.only in (None, "network"):
        for table in options.tables:
            found, seconds = attacked(table, network, MAIN, "network", options)
            soft = [scheme.name for scheme in SOFT]
            found = found.chosen_by_validation(soft, "soft, chosen")
            names = list(found.logits)
            text += [f"## {table}", "", f"{seconds:.0f} s", "", *full_table(found, names), ""]
            text += [*verdict(found, names), ""]
            if table == "support2":
                draw(found, SPREAD, *label_statistics(options), HERE / "soft_labels")
        text += costs()
    if options.only in (None, "wide"):
        text += ["", *wide(options)]
    if options.only in (None, "recursive"):
        text += ["", *recursive(options)]
    if options.only in (None, "regression"):
        text += ["", *regression()]
    packages = ("numpy", "scikit-learn", "tensorflow", "tensorflow-privacy", "tf-keras")
    text += ["", f"{datetime.date.today()}, Python {platform.python_version()}, two shared cores"]
    text += [", ".join(f"{p} {version(p)}" for p in packages), f"{time.perf_counter() - start:.0f} s"]
    print("\n".join(text))


if __name__ == "__main__":
    main()
