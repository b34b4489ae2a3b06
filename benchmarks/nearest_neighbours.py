"""Nearest-neighbour accuracy of two tables: ours against a plain scikit-learn loop, time and peak memory.

    python benchmarks/nearest_neighbours.py 10000 100000 [--columns 50] [--kinds binary] [--metric gower]

scikit-learn searches brute force for the nearest two in both tables of both (four searches, its own threads);
that gives the distances but neither exact ties nor unequal sizes. Each measurement is a process of its own,
stopped after --limit seconds. Metrics work on the drawn values as they are: "gower" means city-block
distances, "hamming" shares of differing columns. Peak memory is of that process, data (8 bytes a cell) and
libraries included; CPU seconds are of all its threads, and say more than the clock on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time

import numpy as np


def draw(kind: str, n: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    if kind == "normal":
        return rng.normal(size=(n, columns)), rng.normal(size=(n, columns))
    return tuple(rng.integers(0, 2, (n, columns)).astype(float) for _ in range(2))


def ours(real: np.ndarray, synthetic: np.ndarray, metric: str) -> float:
    from dpsynth.evaluation.neighbours import adversarial_accuracy

    return adversarial_accuracy(real, synthetic, metric=metric).aa


def ours_with_intervals(real: np.ndarray, synthetic: np.ndarray, metric: str) -> float:
    from dpsynth.evaluation.neighbour_inference import accuracy_intervals

    return accuracy_intervals(real, synthetic, rng=np.random.default_rng(0), metric=metric).both.value


def scikit_learn(real: np.ndarray, synthetic: np.ndarray, metric: str) -> float:
    from sklearn.neighbors import NearestNeighbors

    how = {"algorithm": "brute", "n_jobs": -1, "metric": {"gower": "manhattan"}.get(metric, metric)}
    values = []
    for own, other in ((real, synthetic), (synthetic, real)):
        # Without an argument kneighbors leaves each point out of its own neighbours.
        near = NearestNeighbors(n_neighbors=1, **how).fit(own).kneighbors()[0][:, 0]
        far = NearestNeighbors(n_neighbors=2, **how).fit(other).kneighbors(own)[0]
        # One other record left out, as ours does, with ties as its rounding leaves them.
        n = len(other)
        closer, tied = (far < near[:, None]).sum(axis=1), (far <= near[:, None]).sum(axis=1)
        by_count = np.array([1.0, 1.0 / n, 0.0])
        values.append(0.5 * (by_count[closer] + by_count[tied]).mean())
    return float(np.mean(values))


RUNS = {"ours": ours, "ours, intervals": ours_with_intervals, "scikit-learn": scikit_learn}


def measure(name: str, kind: str, n: int, columns: int, metric: str) -> None:
    real, synthetic = draw(kind, n, columns)
    start, busy = time.perf_counter(), time.process_time()
    value = RUNS[name](real, synthetic, metric)
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"seconds": seconds, "busy": busy, "peak": peak, "value": value}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("records", nargs="*", type=int, default=[10_000, 100_000])
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--kinds", nargs="+", choices=["normal", "binary"], default=["normal", "binary"])
    parser.add_argument("--runs", nargs="+", choices=sorted(RUNS), default=list(RUNS))
    parser.add_argument("--metric", choices=["euclidean", "gower", "hamming"], default="euclidean")
    parser.add_argument("--limit", type=float, default=1800.0)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        measure(*args.one, args.records[0], args.columns, args.metric)
        return
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start", flush=True)
    print(
        f"{'records':>9} {'columns':>7} {'kind':7} {'what':16} {'seconds':>8} {'CPU s':>8} {'peak GiB':>8} "
        f"{'accuracy':>9}  load"
    )
    for n in args.records:
        for kind in args.kinds:
            for name in args.runs:
                command = [
                    sys.executable,
                    __file__,
                    str(n),
                    "--columns",
                    str(args.columns),
                    "--metric",
                    args.metric,
                    "--one",
                    name,
                    kind,
                ]
                try:
                    done = subprocess.run(
                        command, stdout=subprocess.PIPE, text=True, timeout=args.limit, check=True
                    )
                    row = json.loads(done.stdout)
                    shown = f"{row['seconds']:8.1f} {row['busy']:8.1f} {row['peak']:8.2f} {row['value']:9.6f}"
                except subprocess.TimeoutExpired:
                    shown = f"{'more than':>8} {args.limit:.0f} s"
                print(
                    f"{n:9} {args.columns:7} {kind:7} {name:16} {shown}  {os.getloadavg()[0]:.1f}", flush=True
                )


if __name__ == "__main__":
    main()
