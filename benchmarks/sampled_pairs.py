"""What the evaluation of associations costs and errs by, with all pairs of columns and with a part of them.

    python benchmarks/sampled_pairs.py [--columns 200 300 500] [--rows 10000] [--seeds 10]

The real table is that of growth.py. In the synthetic one, each column has a random part of its values
shuffled, so that associations are lost to different degrees. Up to 200 columns all pairs are scored in both
cases. Times are processor seconds for two tables. Writes benchmarks/results/sampled_pairs.md.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from growth import made_up

from dpsynth.evaluation.associations import association_blocks, association_findings
from dpsynth.evaluation.results import Findings

RESULTS = Path(__file__).parent / "results" / "sampled_pairs.md"
NAMES = ("association_error", "association_lost", "correlation_error")


def shuffled(real: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Each column with a random part of its values, 0 to 60 %, in another order."""
    made = real.copy()
    for name in made:
        rows = np.flatnonzero(rng.random(len(made)) < 0.6 * rng.random())
        made[name] = made[name].to_numpy(copy=True)
        made.iloc[rows, made.columns.get_loc(name)] = made[name].to_numpy()[rng.permutation(rows)]
    return made


def rows_of(n: int, d: int, seeds: int) -> list[str]:
    real, schema = made_up(n, d)
    made = shuffled(real, np.random.default_rng(1))
    made, real = (schema.conform(frame).frame for frame in (made, real))

    def timed(seed: int | None) -> tuple[float, Findings]:
        scored = None if seed is None else association_blocks(d, np.random.default_rng(seed))
        begun = time.process_time()
        found = association_findings(made, real, None, schema, scored, group="pairs")
        return time.process_time() - begun, found

    seconds, exact = timed(None)
    parts = [timed(seed) for seed in range(seeds)]
    faster = f"{seconds:.1f} | {np.median([took for took, _ in parts]):.1f}"
    share = [part.used / part.total for part in parts[0][1].parts]
    lines = []
    for name in NAMES:
        of = [next(m for m in found.measures if m.name == name) for found in (exact, *(f for _, f in parts))]
        whole, values = float(of[0].value), np.array([float(m.value) for m in of[1:]])
        errors = [float(m.detail.rpartition("standard error of ")[2]) for m in of[1:]] if share else [0.0]
        missed = float(np.sqrt(np.mean((values - whole) ** 2)))
        lines.append(
            f"| {d} | {share[0] if share else 1:.0%} | {faster} | `{name}` | {whole:.4f} | {missed:.5f} | "
            f"{np.mean(errors):.5f} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--columns", type=int, nargs="+", default=[200, 300, 500])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    lines = [
        "# All pairs of columns, or a part of them",
        "",
        f"Made by `python benchmarks/sampled_pairs.py`: two tables of {given.rows:,} rows, and {given.seeds}",
        "random parts. *Missed by* is the root of the mean squared difference from all pairs. *Stated* is",
        "the mean standard error that the evaluation states. Seconds of processor time are for both tables.",
        "",
        "| columns | pairs scored | all pairs, s | a part, s | measure | all pairs | missed by | stated |",
        "|---:|---:|---:|---:|---|---:|---:|---:|",
    ]
    for d in given.columns:
        lines += rows_of(given.rows, d, given.seeds)
        print("\n".join(lines[-3:]), flush=True)
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
