"""WGAN critic steps on a table larger than memory, and steps that two processes share.

    python benchmarks/large_critic.py --folder FOLDER [--rows 1000000 10000000] [--steps 2000]

Makes the tables of `large_table.py` in FOLDER and fits them in parts on two Dask workers of 2 GB, with the
base model alone and critic steps. Tables of at most a million rows are also fitted in one process, whole in
memory. The weights must be equal in every bit. Then one process, one process without XLA, and two processes
in the scope of a MultiWorkerMirroredStrategy make critic steps on 20,000 rows. Every fit is a process of its
own. Peak memory is VmHWM, with pages of files. Held is memory without files after the last step. Writes
benchmarks/results/large_critic.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from growth import peak_of
from large_table import make_table, schema_of

import dpsynth
from dpsynth.cluster import connected
from dpsynth.model.wgan import training
from dpsynth.model.wgan.workers import Workers
from dpsynth.releases import PartitionedRecords
from dpsynth.table.parquet import ParquetTable

RESULTS = Path(__file__).parent / "results" / "large_critic.md"
#: Rows of a table that one process holds as well, at most, and of the one for two processes.
HELD, SHARED = 1_000_000, 20_000


def fit(how: str, n: int, steps: int, folder: Path) -> dict[str, float]:
    """Times and memory of a fit in this process, whose generator is written to the folder."""
    source, schema, first = folder / f"table-rows-{n}", schema_of(n), []
    estimator = dpsynth.DPWGANGP(1.0, training_steps=steps, pairwise_statistics=False, random_state=3)
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
    elif how == "shared":
        import tensorflow as tf

        with tf.distribute.MultiWorkerMirroredStrategy().scope():
            estimator.fit(pd.read_parquet(source), schema=schema, progress=progress)
    else:
        if how == "plain":
            import tensorflow as tf

            alone = Workers(tf.distribute.get_strategy(), 0, 1)
            training.Workers = SimpleNamespace(present=lambda: alone)  # type: ignore[misc,assignment]
        estimator.fit(pd.read_parquet(source), schema=schema, progress=progress)
    told |= {"wall": time.perf_counter() - start, "seconds": time.process_time() - used, "peak": own_peak()}
    # Without the first chunk, which is waited for while the program is compiled.
    told["steps_s"] = first[-1] - first[0]
    weights = np.concatenate([array.ravel() for pair in estimator.model_.weights for array in pair])
    rank = json.loads(os.environ.get("TF_CONFIG", '{"task": {"index": 0}}'))["task"]["index"]
    np.save(folder / f"weights-{how}-{n}-{rank}.npy", weights)
    return told


def own_peak() -> float:
    return peak_of(Path("/proc/self/status").read_text())


def started(how: str, n: int, steps: int, folder: Path, config: str | None = None) -> subprocess.Popen:
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", OMP_NUM_THREADS="1")
    if config is not None:
        environment["TF_CONFIG"] = config
    command = [sys.executable, __file__, "--folder", folder, "--cell", how, str(n), str(steps)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def answer(process: subprocess.Popen) -> dict[str, float]:
    text, _ = process.communicate()
    return json.loads(text.splitlines()[-1])


def weights(how: str, n: int, folder: Path, rank: int = 0) -> np.ndarray:
    return np.load(folder / f"weights-{how}-{n}-{rank}.npy")


def two_processes(steps: int, folder: Path) -> list[dict[str, float]]:
    places = []
    for _ in range(2):
        with socket.socket() as place:
            place.bind(("127.0.0.1", 0))
            places.append(f"127.0.0.1:{place.getsockname()[1]}")
    both = [
        started(
            "shared",
            SHARED,
            steps,
            folder,
            json.dumps({"cluster": {"worker": places}, "task": {"type": "worker", "index": index}}),
        )
        for index in range(2)
    ]
    return [answer(process) for process in both]


def shared_steps(most: int, folder: Path) -> list[str]:
    """Steps of one process, with and without XLA, and of two that share them."""
    make_table(folder / f"table-rows-{SHARED}", SHARED, False, 2)
    lines = [
        "",
        "## Steps that two processes share",
        "",
        f"On {SHARED:,} rows, on the same two cores. Seconds are of all steps but the first chunk's. The two "
        "have equal",
        "weights in every bit. *By XLA* is the largest difference of a weight between one process with and "
        "without XLA.",
        "*By two* is that between one process without XLA and two. Rounding grows alike.",
        "",
        "| steps | one, s | one without XLA, s | two, s | by XLA | by two |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for steps in (40, 200, most):
        one, plain = (answer(started(how, SHARED, steps, folder)) for how in ("memory", "plain"))
        two = two_processes(steps, folder)
        first, second = (weights("shared", SHARED, folder, rank) for rank in range(2))
        assert np.array_equal(first, second)
        other = weights("plain", SHARED, folder)
        gaps = np.abs(other - weights("memory", SHARED, folder)).max(), np.abs(other - first).max()
        times = one["steps_s"], plain["steps_s"], max(told["steps_s"] for told in two)
        lines.append(
            f"| {steps:,} | " + " | ".join(f"{t:.1f}" for t in times) + f" | {gaps[0]:.0e} | {gaps[1]:.0e} |"
        )
        print(lines[-1], flush=True)
    return lines


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
    lines += ["", *equal, *shared_steps(given.steps, given.folder)]
    text = "\n".join(lines) + "\n"
    print(text)
    RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
