"""Time and memory of samples by the default, of this version and of an earlier one.

    python benchmarks/sampling.py --out FOLDER --before CHECKOUT [--rows 10000 100000 1000000]

Each version fits the default to the made-up tables of `growth.py`, with 50 columns, and keeps its models in
FOLDER. Then each model writes as many rows as it was fitted to. The largest model also writes fewer. Both
versions take turns, each in a process of its own. CHECKOUT is a folder of the earlier version. Processor
seconds are those of all threads. Peak memory is VmHWM of the process, with the packages that it loads.
Writes benchmarks/results/sampling.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from growth import made_up, peak_of, slope

RESULTS = Path(__file__).parent / "results" / "sampling.md"
COLUMNS = 50
#: Kept beside the numbers: what was tried, on the same machine.
NOTES = """
Not all is measured in turns. Both versions of the models of 10,000 and 100,000 rows ran ten minutes apart.
Those of before were fitted by an earlier version still. CSV and more threads of BLAS were not run again.
On two idle cores, drawing 1,000,000 rows took 45 and 41 s by the clock in two runs, and 74 and 70 processor
seconds. Writing them took 1.3 s as Parquet and 22 s as CSV.

## Where the time goes

The model of 1,000,000 rows drew 2.9 records for each that it kept. Factors that keep the single-column counts
caused most of that. They are estimated from 60,000 samples, and 50 factors of 3 % each multiply. Sweeps now
draw with these factors. Groups alone are left to choose by, and 1.6 records are drawn for each that is kept.
Samples of both kinds differ no more than two samples of one kind: mean squared deviations of 60,000 samples
are 1.00 for pairwise statistics (0.95 between two of one kind), and 0.99 and 1.07 for groups (1.00).

Whole fits at ε = 3, three seeds, before and after. The lost AUC is .0065 and .0085 ± .0033 on flchain, .0160
and .0120 ± .0029 on support2, .0055 and .0067 ± .0015 on breast_cancer. The mean error of associations is
.0473 and .0467, .0214 and .0226, .1355 and .1330.

- One product of matrices serves ten columns of a sweep. Products with columns drawn meanwhile are corrected.
  Bins are counted in 25 calls of NumPy instead of 70, for 24 bins. Both take 4 % off a sweep under load.
- Branches of the tables without counted missing values need no draw of their number: 1.5 instead of 3.3 µs a
  record.
- Numbers of bins are looked up column by column: 0.1 instead of 0.5 µs a record.
- Columns are labelled and placed on all cores. One thread did that for 0.35 s per 100,000 rows, and now for
  0.12 s.

Before that, one draw of a column in a sweep took 160 ns, and then 107 ns, in turns on the same cores. Samples
of 1,000,000 rows took 179 and 119 processor seconds. That came of these changes:

- Products with few rows are made row by row: 5 ns a row. BLAS takes 46 ns for two rows together.
- Log conditionals are looked up by rows of bins: 1.5 ns a record instead of 12 ns, for 24 bins.
- Weights come from one matrix product instead of 50 sums of 1,000 numbers: 3.7 and 7.2 µs a record.
- Threads of BLAS wait for each other at full load. One thread in each of ours is enough.

## Tried and left out

A compiled loop (numba 0.68) of the whole sweep took 100 ns a draw with little tuning. A smaller one, of
logits and draws alone, took 31 ns where NumPy takes some 60 of the 107 ns. By that sum, it would save about a
quarter of a sample's time. It needs 208 MB of packages, a limit on NumPy's version, 3 s to compile and a
second version of the same code. Blocks of fewer than 8,192 records lose more by calls than caches give. One
lookup for several tables of a column, and exponentials without the largest logarithm taken off, made no
measurable difference.
"""
#: Repetitions of fewer rows than this.
REPEATED, TIMES = 1_000_000, 3


def fit(home: str, n: int) -> None:
    """Fit a model to n rows and save it in this folder."""
    import dpsynth

    train, schema = made_up(n, COLUMNS)
    dpsynth.DPMarginals(3.0, random_state=0).fit(train, schema=schema).save(home)


def measure(model: str, n: int, out: str) -> dict[str, float]:
    """Sample n rows into a file, and tell drawing from writing."""
    import numpy as np

    import dpsynth
    from dpsynth.table.files import write_table

    fit = dpsynth.load(model)
    spent = [0.0, 0.0]

    def drawn() -> Iterator[pd.DataFrame]:
        blocks = fit.model_.blocks(n, np.random.default_rng(0))
        while True:
            wall, used = time.perf_counter(), time.process_time()
            block = next(blocks, None)
            spent[0] += time.perf_counter() - wall
            spent[1] += time.process_time() - used
            if block is None:
                return
            yield block

    used = time.process_time()
    write_table(drawn(), out)
    used = time.process_time() - used
    peak = peak_of(Path("/proc/self/status").read_text())
    return {"wall_s": spent[0], "cpu_s": spent[1], "write_s": used - spent[1], "peak_gb": peak}


def in_own_process(checkout: Path, threads: str, *arguments: object) -> str:
    environment = dict(os.environ, PYTHONPATH=str(checkout))
    environment.pop("OMP_NUM_THREADS", None)
    if threads == "1":
        environment["OMP_NUM_THREADS"] = "1"
    command = [sys.executable, __file__, *map(str, arguments)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True).stdout


def page(records: list[dict]) -> str:
    frame = pd.DataFrame(records)
    keys = ["fitted", "rows", "suffix", "threads", "version"]
    found = frame.groupby(keys)[["cpu_s", "wall_s", "write_s", "peak_gb"]].median()
    lines = [
        f"# Samples by the default, {COLUMNS} columns",
        "",
        "Made by `python benchmarks/sampling.py`. Each run is a process of its own. Versions took turns.",
        f"Each version fitted its models. Medians of {TIMES} runs up to 100,000 rows, one run of more. Other",
        "work shared the two cores, so compare processor seconds. `BLAS` is its number of threads: one, or",
        "the default.",
        "",
        "| fitted to | rows | file | BLAS | version | drawing, processor s | wall s | writing | peak, GB |",
        "|---:|---:|---|---|---|---:|---:|---:|---:|",
    ]
    for (fit, rows, suffix, threads, version), cell in found.iterrows():
        lines.append(
            f"| {fit:,} | {rows:,} | {suffix} | {threads} | {version} | {cell.cpu_s:.1f} | {cell.wall_s:.1f} "
            f"| {cell.write_s:.1f} | {cell.peak_gb:.2f} |"
        )
    lines.append("")
    largest = frame.fitted.max()
    for version in sorted(set(frame.version), reverse=True):
        part = found.xs((".parquet", "1", version), level=["suffix", "threads", "version"]).cpu_s
        own = part[[fit == rows for fit, rows in part.index]]
        one = part.xs(largest, level="fitted")
        exponents = slope([rows for _, rows in own.index], list(own)), slope(list(one.index), list(one))
        lines.append(
            f"Exponent in rows, {version}: {exponents[0]} if each sample has as many rows as its model was "
            f"fitted to, {exponents[1]} for the model of {largest:,} rows."
        )
    return "\n".join(lines) + "\n" + NOTES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="folder of models and of what was measured")
    parser.add_argument("--before", type=Path, help="checkout of the earlier version")
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--fit", nargs=2, help="fit this model only")
    parser.add_argument("--cell", nargs=3, help="measure this one only, and print it")
    given = parser.parse_args()
    if given.fit:
        fit(given.fit[0], int(given.fit[1]))
        return
    if given.cell:
        model, n, out = given.cell
        print(json.dumps(measure(model, int(n), out)))
        return
    if given.out is None or given.before is None:
        parser.error("--out and --before must name folders")
    given.out.mkdir(parents=True, exist_ok=True)
    kept = given.out / "measured.jsonl"
    done = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    versions = {"before": given.before, "after": Path(__file__).parent.parent}
    most, middle = max(given.rows), sorted(given.rows)[len(given.rows) // 2]
    cells = [(n, n, ".parquet", "1") for n in given.rows]
    cells += [(most, n, ".parquet", "1") for n in given.rows if n < most]
    cells += [(middle, middle, ".parquet", "default"), (most, most, ".csv", "1")]
    for size, rows, suffix, threads in cells:
        for turn in range(TIMES if rows < REPEATED else 1):
            for version, checkout in versions.items():
                key = {"fitted": size, "rows": rows, "suffix": suffix, "threads": threads, "version": version}
                if any(
                    key | {"turn": turn} == {name: past[name] for name in [*key, "turn"]} for past in done
                ):
                    continue
                if suffix == ".csv" and version == "before":
                    continue
                model, out = given.out / version / f"model-{size}", given.out / f"sample{suffix}"
                if not model.exists():
                    in_own_process(checkout, "1", "--fit", model, size)
                printed = in_own_process(checkout, threads, "--cell", model, rows, out)
                record = key | {"turn": turn} | json.loads(printed.splitlines()[-1])
                print(record, flush=True)
                done.append(record)
                with kept.open("a") as file:
                    file.write(json.dumps(record) + "\n")
    RESULTS.write_text(page(done), encoding="utf-8")


if __name__ == "__main__":
    main()
