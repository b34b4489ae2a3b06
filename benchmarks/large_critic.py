"""WGAN critic steps on a table larger than memory.

    python benchmarks/large_critic.py --folder FOLDER [--rows 1000000 10000000] [--steps 2000]

Makes the tables of `large_table.py` in FOLDER and fits them in parts on two Dask workers of 2 GB, with the
base model alone and critic steps. Tables of at most a million rows are also fitted in one process, whole in
memory. The weights must be equal in every bit. Every fit is a process of its own. Peak memory is VmHWM, with
pages of files. Held is memory without files after the last step. Writes benchmarks/results/large_critic.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from growth import peak_of
from large_table import make_table, schema_of

import dpsynth
from dpsynth.parallel import connected
from dpsynth.privacy import PartitionedRecords
from dpsynth.table.parquet import ParquetTable

RESULTS = Path(__file__).parent / "results" / "large_critic.md"
#: Rows of a table that one process holds as well, at most.
HELD = 1_000_000


def fit(how: str, n: int, steps: int, folder: Path) -> dict[str, float]:
    """Times and memory of a fit in this process, whose generator is written to the folder."""
    source, schema, first = folder / f"table-rows-{n}", schema_of(n), []
    estimator = dpsynth.DPWGANGP(1.0, steps=steps, training=dpsynth.TrainingSettings(), random_state=3)
    start, used = time.perf_counter(), time.process_time()
    told: dict[str, float] = {}

    def progress(_: object) -> None:
        first.append(time.perf_counter())
        held = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
        told["held"] = int(held[1]) * 1024 / 1e9  # type: ignore[index]

    if how == "parts":
        with connected(workers=2, memory="2GB") as client:
            records = PartitionedRecords(ParquetTable(source), schema, client)
            estimator.fit(records, schema=schema, progress=progress)
            told["workers"] = sum(client.run(time.process_time).values())
            told["worker_peak"] = max(client.run(own_peak).values())
    else:
        estimator.fit(pd.read_parquet(source), schema=schema, progress=progress)
    told |= {"wall": time.perf_counter() - start, "seconds": time.process_time() - used, "peak": own_peak()}
    # Without the first chunk, which is waited for while the program is compiled.
    told["steps_s"] = first[-1] - first[0]
    weights = np.concatenate([array.ravel() for pair in estimator.model_.sampler.weights for array in pair])
    np.save(folder / f"weights-{how}-{n}.npy", weights)
    return told


def own_peak() -> float:
    return peak_of(Path("/proc/self/status").read_text())


def started(how: str, n: int, steps: int, folder: Path) -> subprocess.Popen:
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", OMP_NUM_THREADS="1")
    command = [sys.executable, __file__, "--folder", folder, "--cell", how, str(n), str(steps)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def answer(process: subprocess.Popen) -> dict[str, float]:
    text, _ = process.communicate()
    return json.loads(text.splitlines()[-1])


def weights(how: str, n: int, folder: Path) -> np.ndarray:
    return np.load(folder / f"weights-{how}-{n}.npy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 10_000_000])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--cell", nargs=3, help="make this fit only")
    given = parser.parse_args()
    if given.cell:
        how, n, steps = given.cell
        print(json.dumps(fit(how, int(n), int(steps), given.folder)))
        return
    lines = [
        "# WGAN critic steps on tables larger than memory",
        "",
        f"Made by `python benchmarks/large_critic.py --rows {' '.join(map(str, given.rows))} --steps "
        f"{given.steps}`: 20 columns,",
        f"base model alone and {given.steps:,} critic steps, two Dask workers of 2 GB. Other work shared the "
        "two cores.",
        "",
        "| rows | fit | wall, s | processor, s | of workers | peak, GB | held, GB | peak of a worker |",
        "|---:|---|---:|---:|---:|---:|---:|---:|",
    ]
    equal = []
    for n in given.rows:
        make_table(given.folder / f"table-rows-{n}", n, False, 2)
        for how in ("parts", "memory") if n <= HELD else ("parts",):
            told = answer(started(how, n, given.steps, given.folder))
            workers = f"{told['workers']:.0f}" if "workers" in told else ""
            worker_peak = f"{told['worker_peak']:.2f}" if "worker_peak" in told else ""
            line = f"| {n:,} | {how} | {told['wall']:.0f} | {told['seconds']:.0f} | {workers} "
            line += f"| {told['peak']:.2f} | {told['held']:.2f} | {worker_peak} |"
            print(line, flush=True)
            lines.append(line)
        if n <= HELD:
            one, other = (weights(how, n, given.folder) for how in ("parts", "memory"))
            assert np.array_equal(one, other)
            equal.append(f"{len(one):,} weights of the fits of {n:,} rows are equal in every bit.")
    lines += ["", *equal]
    text = "\n".join(lines) + "\n"
    print(text)
    RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
