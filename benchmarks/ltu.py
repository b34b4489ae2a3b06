"""The leave-two-unlabeled attacker at the thesis's size (Pedersen 2022, figures 4.2 to 4.4, section 6.2).

    python benchmarks/ltu.py classifiers FOLDER [--dataset support2|digits] [--models sgd ...]
    python benchmarks/ltu.py vectors FOLDER [--dataset support2]
    python benchmarks/ltu.py retrained FOLDER [--dataset support2]
    python benchmarks/ltu.py singles FOLDER [--dataset support2] [--shadows 64]
    python benchmarks/ltu.py critic FOLDER [--dataset support2] [--seeds 5]

`classifiers`: ten scikit-learn classifiers with default parameters, 1,600 records on each side, 100 rounds,
three scenarios of what the attacker knows of order and seed. `vectors`: SVC on pairs without a support
vector. `retrained`: unseeded trainers, trained many times with each candidate. `singles`: one and the same
attack judged on pairs and on single records, and individual scores, drawn to benchmarks/results/ltu.svg.
`critic`: the trained critic of our own synthesizer as a score, beside nearest-neighbour accuracy. Each
prints Markdown; FOLDER keeps rounds, so that an interrupted part goes on. Run it with `nice -n 10`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

SCENARIOS = ("original", "random", "unseeded")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def attacked(name, sides, folder, *, scenario, rounds, retrainings, splits, jobs):
    from dpsynth.research.ltu.experiment import attack_trainer
    from dpsynth.research.ltu.rounds import Design
    from dpsynth.research.ltu.trainers import classifier

    design = Design(scenario=scenario, retrainings=retrainings, splits=splits)
    start = time.perf_counter()
    trainer = classifier(name)
    found = attack_trainer(
        trainer, sides, design, rounds=rounds, name=trainer.description, folder=folder, jobs=jobs
    )
    say(f"{name}, {scenario}: {time.perf_counter() - start:.0f} s")
    return found


def of_table(dataset: str, records: int):
    from dpsynth import datasets
    from dpsynth.research.ltu.trainers import Sides, sides_of_table

    if dataset == "digits":  # scikit-learn's, in place of the thesis's images
        from sklearn.datasets import load_digits

        x, y = load_digits(return_X_y=True)
        chosen = np.random.default_rng(0).permutation(len(x))[: 2 * records]
        return Sides(x[chosen] / 16.0, y[chosen], records)
    return sides_of_table(datasets.load(dataset), records, seed=0)


def classifiers(options) -> None:
    from dpsynth.research.ltu.trainers import classifiers as ten

    sides = of_table(options.dataset, options.records)
    rows = []
    for name in options.models or ten():
        cells, worth, by_score = [], None, None
        for scenario in SCENARIOS:
            start = time.perf_counter()
            found = attacked(
                name,
                sides,
                options.folder / options.dataset / f"{name}-{scenario}",
                scenario=scenario,
                rounds=options.rounds,
                retrainings=1,
                splits=0,
                jobs=options.jobs,
            )
            by = {one.strategy: one for one in found.rounds}
            cells.append((by, time.perf_counter() - start))
            worth, by_score = found.utility, found.strongest_pairs
        rows.append((name, worth, by_score, cells))
    print(f"\n### {options.dataset}: privacy (4.9) by retraining, all predictions compared\n")
    print("| classifier | utility | original | random order | unseeded | best score, all pairs | seconds |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, worth, best, cells in rows:
        hidden = " | ".join(shown(by["retraining_predictions"]) for by, _ in cells)
        pairs = f"{best.pairwise.value:.3f} ({best.pairwise.lower:.3f} to {best.pairwise.upper:.3f})"
        took = sum(seconds for _, seconds in cells)
        print(f"| {name} | {worth.reserved.value:.3f} | {hidden} | {best.strategy} {pairs} | {took:.0f} |")
    print(f"\n### {options.dataset}: right guesses of {options.rounds} by other comparisons, and ties\n")
    print("| classifier | " + " | ".join(f"{s}: pair, parameters" for s in SCENARIOS) + " |")
    print("|---|" + "---:|" * len(SCENARIOS))
    for name, _, _, cells in rows:
        others = []
        for by, _ in cells:
            two, held = by["retraining_pair"], by["retraining_parameters"]
            others.append(f"{two.right} ({two.tied}), {held.right} ({held.tied})")
        print(f"| {name} | " + " | ".join(others) + " |")

    wrong = sum(wrong_without_tie(options.folder / options.dataset / f"{name}-original") for name, *_ in rows)
    print(f"\nWrong guesses in the original scenario that are no ties, all classifiers: {wrong}")


def wrong_without_tie(folder: Path) -> int:
    kept = [json.loads(path.read_text()) for path in (folder / "rounds").glob("round-*.json")]
    guesses = [record["guesses"]["retraining_predictions"] for record in kept]
    return sum(not guess["right"] and not guess["tied"] for guess in guesses)


def vectors(options) -> None:
    """SVC and pairs of which neither record is a support vector: is the model the same after the swap?"""
    from sklearn.svm import SVC

    from dpsynth.research.ltu.retraining import candidate_rows
    from dpsynth.research.ltu.trainers import Trainer

    sides = of_table(options.dataset, options.records)
    n, rows = sides.n_defender, np.arange(sides.n_defender)
    for estimator in (SVC(), SVC(gamma=0.2)):
        trainer, rng = Trainer(estimator), np.random.default_rng(0)
        released = trainer(sides.x[rows], sides.y[rows], 0)
        said, neither, equal = released.decision_function(sides.x), 0, 0
        for _ in range(options.rounds):
            missing, reserve = int(rng.integers(n)), n + int(rng.integers(sides.n_reserve))
            swapped = candidate_rows(n, missing, reserve)
            other = trainer(sides.x[swapped], sides.y[swapped], 0)
            if missing not in released.support_ and missing not in other.support_:
                neither += 1
                equal += bool((other.decision_function(sides.x) == said).all())
        print(f"{estimator}: {equal} models equal of {neither} pairs without a support vector")


def shown(one) -> str:
    ties = f" ({one.tied} ties)" if one.tied else ""
    return f"{one.privacy.value:.2f} ± {one.privacy.error:.2f}{ties}"


#: trainings with each candidate, for trainers that take milliseconds
RETRAININGS = {"sgd": 32, "perceptron": 32}


def retrained(options) -> None:
    """Unseeded trainers: one training with each candidate against many and the Bayes attack (5.8)."""
    sides = of_table(options.dataset, options.records)
    print(f"\n### {options.dataset}, unseeded: more trainings with each candidate\n")
    print("| classifier | trainings each | one training, all predictions | Bayes on the pair |")
    print("|---|---:|---:|---:|")
    for name in options.models or RETRAININGS:
        folder = options.folder / options.dataset / f"{name}-retrained"
        count = RETRAININGS[name]
        found = attacked(
            name,
            sides,
            folder,
            scenario="unseeded",
            rounds=options.rounds,
            retrainings=count,
            splits=0,
            jobs=options.jobs,
        )
        by = {one.strategy: one.accuracy for one in found.rounds}
        cells = estimate(by["retraining_predictions"]), estimate(by["bayes_pair"])
        print(f"| {name} | {count} | {' | '.join(cells)} |")


SINGLES = ("random_forest", "mlp", "nearest_neighbours", "logistic_regression")


def singles(options) -> None:
    sides = of_table(options.dataset, options.records)
    found = {}
    for name in SINGLES:
        folder = options.folder / options.dataset / f"{name}-singles"
        found[name] = attacked(
            name,
            sides,
            folder,
            scenario="unseeded",
            rounds=options.rounds,
            retrainings=0,
            splits=options.shadows // 2,
            jobs=options.jobs,
        )
    print(f"\n### {options.dataset}: one attack, on pairs and on single records\n")
    print("| classifier | attack | pairs | single records | TPR at 10 % FPR | at 1 % | largest gamma |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for name, result in found.items():
        for one in result.pairs:
            if one.strategy not in ("loss", "learned", "bayes_shadow"):
                continue
            low = {rate.fpr: f"{rate.tpr.value:.3f} (chance {rate.chance:.3f})" for rate in one.low_rates}
            gamma = f"{result.loss.largest:.1f}" if one.strategy == "bayes_shadow" else ""
            print(
                f"| {name} | {one.strategy} | {estimate(one.pairwise)} | {estimate(one.per_record)} | "
                f"{low.get(0.1, '')} | {low.get(0.01, '')} | {gamma} |"
            )
    draw({name: found[name] for name in SINGLES[:2]}, Path("benchmarks/results/ltu.svg"))


TITLES = {"random_forest": "random forest", "mlp": "multi-layer perceptron"}


def estimate(one) -> str:
    return f"{one.value:.3f} ({one.lower:.3f} to {one.upper:.3f})"


def draw(found, path: Path) -> None:
    """Histograms of P_IN on both sides (figure 4.3) and of individual privacy scores (figure 4.4)."""
    import matplotlib.pyplot as plt

    from dpsynth.report.plots import COLOURS

    plt.rcParams.update({"svg.hashsalt": "dpsynth", "svg.fonttype": "path", "font.size": 9})
    figure, axes = plt.subplots(len(found), 2, figsize=(7.2, 2.7 * len(found)), squeeze=False)
    for row, (name, result) in zip(axes, found.items(), strict=True):
        (one,) = (one for one in result.pairs if one.strategy == "bayes_shadow")
        p = np.asarray(one.p_in)
        for side, values, colour in (
            ("trained on", p[: result.n_defender], COLOURS[0]),
            ("kept aside", p[result.n_defender :], COLOURS[1]),
        ):
            row[0].hist(values, bins=np.linspace(0, 1, 41), histtype="step", label=side, color=colour, lw=1.5)
        row[0].set(
            xlabel="predicted probability of membership", ylabel="records", title=name.replace("_", " ")
        )
        row[0].legend(frameon=False)
        hidden = np.minimum(2 * (1 - np.asarray(one.individual)), 1.0)
        row[1].hist(hidden, bins=np.linspace(0, 1, 21), color=COLOURS[0])
        pairs, single = one.pairwise.value, one.per_record.value
        row[1].set(
            xlabel="individual privacy of a record trained on",
            ylabel="records",
            title=f"pairs {100 * pairs:.1f} %, single records {100 * single:.1f} %",
        )
    for axis in axes.ravel():
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def synthesizers():
    from dpsynth import DPWGANGP
    from dpsynth.wgan.settings import TrainingSettings

    free = TrainingSettings(critic_constraint="none", penalty="data", average=0.0)
    return {
        "private, epsilon 3, 200 steps": DPWGANGP(epsilon=3.0, delta=1e-5, steps=200),
        "no noise, 200 steps": DPWGANGP(epsilon=None, steps=200),
        "no noise, 4,000 steps": DPWGANGP(epsilon=None, steps=4000),
        "no noise, penalty, 4,000 steps": DPWGANGP(epsilon=None, steps=4000, training=free),
    }


def criticised(task):
    """Train one synthesizer on half of a pool; the critic, distances and neighbours on both halves."""
    from critic_score import CriticTrainer
    from sklearn.neighbors import NearestNeighbors

    from dpsynth import datasets
    from dpsynth.evaluation.neighbours import adversarial_accuracy
    from dpsynth.evaluation.tables import distance_features
    from dpsynth.research.ltu.results import pairs_result

    dataset, name, seed, records = task
    table = datasets.load(dataset)
    chosen = np.random.default_rng(seed).permutation(len(table.frame))[: 2 * records]
    pool = table.frame.iloc[chosen].reset_index(drop=True)
    train, test = pool.iloc[:records], pool.iloc[records:].reset_index(drop=True)
    estimator = synthesizers()[name]
    score = CriticTrainer(estimator, table.schema)(train, seed)
    estimator.model_ = score.model
    made = estimator.sample(records, random_state=seed)
    points = [distance_features(frame, table.schema) for frame in (train, test, made)]
    near = NearestNeighbors(n_neighbors=1).fit(points[2])
    distance = near.kneighbors(np.vstack(points[:2]))[0][:, 0]
    members = np.arange(2 * records) < records
    by_critic = pairs_result("critic", -score(pool), members, seed=seed)
    by_distance = pairs_result("distance", distance, members, seed=seed)
    both = [adversarial_accuracy(side, points[2]).aa for side in points[:2]]
    return {
        "critic": by_critic.pairwise.value,
        "critic_single": by_critic.per_record.value,
        "distance": by_distance.pairwise.value,
        "aa_train": both[0],
        "aa_test": both[1],
    }


def critic(options) -> None:
    from dpsynth.evaluation.estimates import quantile
    from dpsynth.files.storage import carry_out

    tasks = {
        f"{place}-{seed}": (options.dataset, name, seed, options.records)
        for place, name in enumerate(synthesizers())
        for seed in range(options.seeds)
    }

    def on_round(done, total, label, seconds):
        say(f"{done} of {total}: {label}, {seconds:.0f} s")

    settings = {"dataset": options.dataset, "records": options.records}
    folder = options.folder / f"critic-{options.dataset}"
    found = carry_out(criticised, tasks, folder=folder, settings=settings, on_round=on_round)
    print(
        f"\n### {options.dataset}: the critic as a score, {options.records} records, {options.seeds} seeds\n"
    )
    heads = (
        "synthesizer",
        "critic, pairs",
        "critic, single records",
        "distance, pairs",
        "AA train",
        "AA test",
    )
    print(f"| {' | '.join(heads)} | loss |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for place, name in enumerate(synthesizers()):
        rows = [found[f"{place}-{seed}"] for seed in range(options.seeds)]
        columns = {key: [row[key] for row in rows] for key in rows[0]}
        columns["loss"] = [row["aa_test"] - row["aa_train"] for row in rows]
        print(f"| {name} | " + " | ".join(estimate(quantile(v, 0.5)) for v in columns.values()) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("part", choices=("classifiers", "vectors", "retrained", "singles", "critic"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dataset", default="support2")
    parser.add_argument("--records", type=int, default=1600)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--models", nargs="*", help="some of the ten")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--shadows", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    globals()[options.part](options)


if __name__ == "__main__":
    main()
