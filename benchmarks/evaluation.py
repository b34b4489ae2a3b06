"""How long a whole evaluation takes and how much memory, by number of records.

    python benchmarks/evaluation.py [--rows 10000 100000] [--dataset breast_cancer]

Three tables of the same size (train, test, synthetic) are drawn from one generator fitted to the data set, so
that they have its columns and one distribution; each size is evaluated in a process of its own, with the
default limits on what the slow parts read. Prints seconds by stage, in all, and the peak resident memory
over that of the three tables.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import time
import warnings

from chosen_statistics import dp_marginals

import dpsynth


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # Linux counts in kB


def measure(dataset: str, rows: int) -> None:
    table = dpsynth.datasets.load(dataset)
    model = dp_marginals(epsilon=10.0, delta=1e-5, base_model="tree", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a seed is not private; this is a benchmark
        model.fit(table.frame, schema=table.schema)
    train, test, made = (model.sample(rows) for _ in range(3))
    before = _peak()
    stages: dict[str, float] = {}
    last: list[tuple[str, float]] = []

    def progress(stage: str, done: float) -> None:
        now = time.perf_counter()
        if not last or last[-1][0] != stage:
            if last:
                stages[last[-1][0]] = round(now - last[-1][1], 2)
            last.append((stage, now))

    start = time.perf_counter()
    dpsynth.evaluate(made, train=train, test=test, schema=table.schema, seed=0, progress=progress)
    end = time.perf_counter()
    stages[last[-1][0]] = round(end - last[-1][1], 2)
    print(
        json.dumps(
            {
                "dataset": dataset,
                "columns": len(table.schema),
                "rows": rows,
                "seconds": round(end - start, 1),
                "peak_mb": round(_peak()),
                "tables_mb": round(before),
                "stages": stages,
            }
        ),
        flush=True,
    )


def main() -> None:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--dataset", default="breast_cancer")
    arguments = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    for rows in arguments.rows:
        process = context.Process(target=measure, args=(arguments.dataset, rows))
        process.start()
        process.join()
        if process.exitcode:
            raise SystemExit(process.exitcode)


if __name__ == "__main__":
    main()
