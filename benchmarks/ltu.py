"""The leave-two-unlabeled attacker at the thesis's size (Pedersen 2022, figures 4.2 to 4.4, section 6.2).

    python benchmarks/ltu.py classifiers FOLDER [--dataset support2] [--rounds 100] [--jobs 1]
    python benchmarks/ltu.py singles FOLDER [--dataset support2] [--shadows 64]
    python benchmarks/ltu.py critic FOLDER [--dataset support2] [--seeds 5]

`classifiers`: ten scikit-learn classifiers with default parameters, 1,600 records on each side, 100 rounds,
three scenarios of what the attacker knows of order and seed. `singles`: one and the same attack judged on
pairs and on single records, and individual scores, drawn to docs/figures/ltu.svg. `critic`: the trained
critic of our own synthesizer as a score, beside nearest-neighbour accuracy. Each prints Markdown; FOLDER keeps
rounds, so that an interrupted part goes on. Run it with `nice -n 10`.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

SCENARIOS = ("original", "random", "unseeded")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def attacked(name, sides, folder, *, scenario, rounds, retrainings, splits, jobs):
    from dpsynth.attacks.ltu.experiment import attack_trainer
    from dpsynth.attacks.ltu.rounds import Design
    from dpsynth.attacks.ltu.trainers import classifier

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
    from dpsynth.attacks.ltu.samples import sides_of_table

    return sides_of_table(datasets.load(dataset), records, seed=0)


def classifiers(options) -> None:
    from dpsynth.attacks.ltu.trainers import classifiers as ten

    sides = of_table(options.dataset, options.records)
    rows = []
    for name in ten():
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


def shown(one) -> str:
    return f"{one.privacy.value:.2f} ± {one.privacy.error:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("part", choices=("classifiers", "singles", "critic"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dataset", default="support2")
    parser.add_argument("--records", type=int, default=1600)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--shadows", type=int, default=64)
    parser.add_argument("--figure", type=Path, default=Path("docs/figures/ltu.svg"))
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    globals()[options.part](options)


if __name__ == "__main__":
    main()
