"""What it gives to choose statistics by the noisy count, where the number of records is private.

    python benchmarks/private_count.py --out DIR [--table support2 flchain] [--sizes 1000 3000] [--seeds 3]

Cuts of tables are those of `benchmarks/parts.py`, without a public number of records. One fit releases all
statistics. The other chooses them by its noisy count. Both have one seed, so they have the same count, and
noise that differs in scale alone until their models differ. DIR/private_count.md has all rounds in DIR.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.parts import DRAWN, TABLES, Round, cut, figures, tell
from dpsynth import DPWGANGP
from dpsynth.files.atomic import read_json, write_text
from dpsynth.files.rounds import ROUNDS, carry_out

#: options of each fit
FITS: dict[str, dict[str, Any]] = {
    "all": {"pairwise_statistics": True, "neighbour_histogram": True},
    "chosen": {},
}
STATISTICS = ("pairwise statistics", "nearest-neighbour histogram")


def carried_out(task: Round) -> dict[str, Any]:
    """Figures of both fits, the noisy count and which statistics it chose."""
    train, test, schema = cut(task)
    found: dict[str, Any] = {**vars(task)}
    for name, given in FITS.items():
        model = DPWGANGP(task.epsilon, random_state=task.seed, **given)
        model.fit(train, schema=schema.with_n_public(None))
        made = model.sample(DRAWN, random_state=task.seed)
        found[name] = figures(made, test, schema, task.seed, np.random.default_rng(task.seed))
        released = [entry.name for entry in model.ledger_.entries]
    return {**found, "count": model.n_, "bought": [each in released for each in STATISTICS]}


def markdown(records: list[dict[str, Any]]) -> str:
    """Mean differences of the two fits by cut, with standard errors over seeds."""
    rows = [
        "| table | n | ε | fits | noisy count | with pairwise statistics | with histogram | AUC: all "
        "| chosen | difference | correlation error | discriminator |",
        "|---|" + "---:|" * 11,
    ]
    seeds = pd.json_normalize(records)
    seeds[list(STATISTICS)] = list(seeds["bought"])
    for (table, n, epsilon), each in seeds.groupby(["table", "n", "epsilon"], sort=False):
        count = f"{each['count'].min():,.0f} to {each['count'].max():,.0f}"
        used = " | ".join(str(each[name].sum()) for name in STATISTICS)
        levels = " | ".join(f"{each[f'{name}.AUC'].mean():.3f}" for name in FITS)
        changes = []
        for figure in ("AUC", "correlation error", "discriminator"):
            change = each[f"chosen.{figure}"] - each[f"all.{figure}"]
            changes.append(f"{change.mean():+.3f} ± {change.std() / np.sqrt(len(each)):.3f}")
        told = f"{table} | {n:,} | {epsilon:g} | {len(each)} | {count} | {used} | {levels}"
        rows.append(f"| {told} | {' | '.join(changes)} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", nargs="+", choices=TABLES, default=list(TABLES), metavar="NAME")
    parser.add_argument("--sizes", nargs="+", type=int, default=[1000, 3000], metavar="N")
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    tasks = {
        f"{table}-{n}-{epsilon:g}-{seed}": Round(table, n, epsilon, seed)
        for seed in range(given.seeds)
        for table in given.table
        for n in given.sizes
        for epsilon in given.epsilon
    }
    carry_out(carried_out, tasks, folder=given.out, settings={"version": 1}, on_round=tell)
    records = [read_json(path) for path in sorted((given.out / ROUNDS).glob("*.json"))]
    records.sort(key=lambda record: (TABLES.index(record["table"]), record["n"], record["epsilon"]))
    write_text(given.out / "private_count.md", markdown(records) + "\n")
    print(given.out / "private_count.md")


if __name__ == "__main__":
    main()
