"""A table larger than memory: fitted by its base model and sampled again, on Dask workers of little memory.

    python benchmarks/large_table.py --rows 10000000 --workers 2 --memory 2GB --folder /tmp/large
    python benchmarks/large_table.py --patients 100000 --workers 2 --memory 2GB --folder /tmp/large

Makes a table of 20 mixed columns (numbers with and without steps, counts, stages, codes, an outcome, missing
values that hang together) in Parquet files, fits it at epsilon 1 without critic steps and samples as
many records into parts. Prints times and peak memory (VmHWM of each process, so that what was held for a
pairwise statistic counts). One file is counted in memory as well: every count must be the same. Writes
benchmarks/results/large_table.md.

With --patients, the table holds 1 to 19 rows of each patient, 10 in the mean, in files of 10,000 patients.
The same fit is also made in memory, by a process of its own. Writes benchmarks/results/large_patients.md.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd

import dpsynth
from dpsynth.cluster import connected, each
from dpsynth.releases import PartitionedRecords
from dpsynth.releases.bins import GridAxis
from dpsynth.releases.marginals import make_grids
from dpsynth.releases.records import FrameRecords
from dpsynth.table import Column, Schema
from dpsynth.table.parquet import ParquetTable, Reader
from dpsynth.table.patients import PatientSchema, TableSchema

RESULTS = Path(__file__).parent / "results"
ROWS_A_FILE, ROW_GROUP = 250_000, 125_000
PATIENTS_A_FILE, MOST_ROWS = 10_000, 20
LABS = {
    "sodium": (100, 180, 0, 138, 5),
    "potassium": (1, 9, 1, 4.1, 0.5),
    "albumin": (10, 60, 0, 38, 6),
    "temperature": (30, 43, 1, 36.9, 0.7),
    "heart_rate": (20, 250, 0, 82, 16),
    "systolic": (50, 260, 0, 128, 20),
    "weight": (30, 250, 1, 78, 15),
}
LOGS = {
    "creatinine": (10, 2000, 85),
    "crp": (0.1, 600, 12),
    "ferritin": (1, 5000, 120),
    "bilirubin": (1, 600, 11),
}


def schema_of(n: int) -> Schema:
    return Schema(
        name="made-up admissions",
        n_public=n,
        outcome="died",
        columns=(
            Column(name="age", kind="integer", lower=18, upper=105, unit="years"),
            Column(name="sex", kind="binary", categories=("F", "M")),
            *(
                Column(name=name, kind="continuous", lower=low, upper=high, decimals=decimals, missing=True)
                for name, (low, high, decimals, _, _) in LABS.items()
            ),
            *(
                Column(name=name, kind="continuous", lower=low, upper=high, scale="log", missing=True)
                for name, (low, high, _) in LOGS.items()
            ),
            Column(name="comorbidities", kind="integer", lower=0, upper=20),
            Column(name="days", kind="integer", lower=0, upper=365),
            Column(name="stage", kind="ordinal", categories=("I", "II", "III", "IV"), missing=True),
            Column(name="ward", kind="categorical", categories=tuple(f"ward {i}" for i in range(12))),
            Column(
                name="smoker", kind="categorical", categories=("never", "former", "current"), missing=True
            ),
            Column(name="diabetes", kind="binary", categories=(False, True)),
            Column(name="died", kind="binary", categories=("no", "yes")),
        ),
    )


def made_up(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Records in which everything leans on age and on how ill somebody is."""
    ill = rng.standard_normal(n)
    age = np.clip(62 + 17 * rng.standard_normal(n) + 4 * ill, 18, 105)
    data: dict[str, object] = {"age": age.astype(int), "sex": rng.choice(["F", "M"], n)}
    untested = rng.random(n) < 0.15
    for i, (name, (low, high, decimals, mean, std)) in enumerate(LABS.items()):
        lean = (-1) ** i * 0.5 * ill + 0.2 * (i % 3) * (age - 62) / 17
        values = np.clip(mean + std * (lean + rng.standard_normal(n)), low, high).round(decimals)
        data[name] = np.where(untested | (rng.random(n) < 0.05), np.nan, values)
    for i, (name, (low, high, median)) in enumerate(LOGS.items()):
        values = np.clip(median * np.exp(0.4 * ill + (0.4 + 0.2 * i) * rng.standard_normal(n)), low, high)
        data[name] = np.where(untested | (rng.random(n) < 0.1), np.nan, values)
    data["comorbidities"] = np.minimum(rng.poisson(np.exp(0.4 * ill + (age - 62) / 40)), 20)
    data["days"] = np.minimum(rng.geometric(1 / (4 + 3 * np.exp(0.5 * ill))), 365)
    stage = np.digitize(ill + 0.8 * rng.standard_normal(n), [-0.5, 0.6, 1.5])
    data["stage"] = np.where(
        rng.random(n) < 0.1, None, np.array(["I", "II", "III", "IV"], dtype=object)[stage]
    )
    data["ward"] = np.array([f"ward {i}" for i in range(12)], dtype=object)[rng.binomial(11, 0.4, n)]
    smoker = np.array(["never", "former", "current"], dtype=object)[rng.integers(0, 3, n)]
    data["smoker"] = np.where(rng.random(n) < 0.2, None, smoker)
    data["diabetes"] = rng.random(n) < 0.1 + 0.1 * (ill > 1)
    risk = 1 / (1 + np.exp(-(-2.5 + 0.9 * ill + 0.04 * (age - 62))))
    data["died"] = np.where(rng.random(n) < risk, "yes", "no")
    return pd.DataFrame(data)


def schema_of_patients(n: int) -> PatientSchema:
    return PatientSchema(
        name="made-up visits",
        n_public=n,
        unit="patient",
        order="day",
        most=MOST_ROWS,
        per_patient=("age", "sex"),
        columns=(
            Column(name="day", kind="integer", lower=0, upper=4000),
            Column(name="age", kind="integer", lower=18, upper=105),
            Column(name="sex", kind="binary", categories=("F", "M")),
            Column(name="hdl", kind="integer", lower=5, upper=150, missing=True),
            Column(name="systolic", kind="integer", lower=60, upper=260, missing=True),
            Column(name="weight", kind="continuous", lower=30, upper=250, decimals=1),
            Column(name="ward", kind="categorical", categories=tuple(f"ward {i}" for i in range(6))),
            Column(name="smoker", kind="binary", categories=("no", "yes")),
        ),
    )


def made_up_visits(n: int, rng: np.random.Generator, first: int) -> pd.DataFrame:
    """Visits of patients with these numbers, around levels of their own."""
    who = np.repeat(np.arange(n), rng.integers(1, MOST_ROWS, n))
    m = len(who)
    ill, age = rng.standard_normal(n), rng.integers(18, 96, n)
    ward = (rng.integers(0, 6, n)[who] + (rng.random(m) < 0.2)) % 6
    return pd.DataFrame(
        {
            "patient": first + who,
            "day": rng.integers(0, 4001, m),
            "age": age[who],
            "sex": rng.choice(["F", "M"], n)[who],
            "hdl": np.where(
                rng.random(m) < 0.2, np.nan, (52 - 6 * ill[who] + 6 * rng.standard_normal(m)).round()
            ),
            "systolic": np.where(
                rng.random(m) < 0.1,
                np.nan,
                (110 + age[who] / 4 + 6 * ill[who] + 9 * rng.standard_normal(m)).round(),
            ),
            "weight": (78 + 9 * rng.standard_normal(n)[who] + 2 * rng.standard_normal(m)).round(1),
            "ward": np.array([f"ward {i}" for i in range(6)], dtype=object)[ward],
            "smoker": np.where(rng.random(m) < 0.05 + 0.5 * (ill > 0.8)[who], "yes", "no"),
        }
    )


def write_file(number: int, folder: Path, n: int, patients: bool) -> None:
    size = PATIENTS_A_FILE if patients else ROWS_A_FILE
    own, rng = min(size, n - number * size), np.random.default_rng([11, number])
    frame = made_up_visits(own, rng, number * size) if patients else made_up(own, rng)
    frame.to_parquet(folder / f"{number:05d}.parquet", index=False, row_group_size=ROW_GROUP)


def make_table(folder: Path, n: int, patients: bool, workers: int) -> int:
    """Write the table if it is not there yet. Gives the number of its files."""
    files = -(-n // (PATIENTS_A_FILE if patients else ROWS_A_FILE))
    if len(list(folder.glob("*.parquet"))) == files:
        return files
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with connected(workers=workers) as client:
        for _ in each(client, partial(write_file, folder=folder, n=n, patients=patients), range(files)):
            pass
    return files


def fit_in_memory(folder: Path, schema: TableSchema) -> tuple[float, float, float]:
    """Seconds by the clock and of a processor, and the peak of memory, of the same fit without workers."""
    start, used = time.perf_counter(), time.process_time()
    dpsynth.DPWGANGP(1.0, training_steps=0).fit(pd.read_parquet(folder), schema=schema)
    return time.perf_counter() - start, time.process_time() - used, peak()


def peak() -> float:
    """The most memory that this process has held, in GB."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024 / 1e9  # type: ignore[index]


def same_counts(folder: Path, schema: TableSchema, client: object) -> tuple[int, int]:
    """Tables and cells of one file that were compared with the counts of the same file in memory."""
    file = sorted(folder.glob("*.parquet"))[0]
    axes = [GridAxis(grid) for grid in make_grids(schema.levels)]
    tables = [*((axis,) for axis in axes), *combinations(axes[:6], 2)]
    answers = []
    for records in (
        PartitionedRecords(ParquetTable(file), schema, client),
        FrameRecords(Reader(schema).records(pd.read_parquet(file))),
    ):
        with records.opened():
            answers.append(records.counts(tables))
    for one, other in zip(*answers, strict=True):
        assert np.array_equal(one, other)
    return len(tables), sum(table.size for table in answers[0])


def size_of(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.iterdir()) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--patients", type=int, help="patients with several rows, in place of --rows")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--folder", type=Path, required=True, help="for the table and the sample")
    parser.add_argument("--no-write", action="store_true", help="print the table only")
    given = parser.parse_args()
    several, n = given.patients is not None, given.patients or given.rows
    schema: TableSchema = schema_of_patients(n) if several else schema_of(n)
    kind = "patients" if several else "rows"
    source, sample = given.folder / f"{kind}-{n}", given.folder / f"sample-{kind}-{n}"
    files = make_table(source, n, several, given.workers)
    took: dict[str, float] = {}
    busy: dict[str, float] = {}
    peaks: dict[str, list[float]] = {}
    start, used = 0.0, 0.0

    def processor() -> float:
        return sum(client.run(time.process_time).values()) + time.process_time()

    def lap(name: str) -> None:
        nonlocal start, used
        took[name], busy[name] = time.perf_counter() - start, processor() - used
        peaks[name] = [*sorted(client.run(peak).values()), peak()]
        print(name, took[name], busy[name], peaks[name], file=sys.stderr)
        start, used = time.perf_counter(), processor()

    with connected(workers=given.workers, memory=given.memory) as client:
        records = PartitionedRecords(ParquetTable(source), schema, client)
        start, used = time.perf_counter(), processor()
        model = dpsynth.DPWGANGP(1.0, training_steps=0).fit(records, schema=schema)
        lap("fit")
        model.sample_to_parts(sample, n, client=client, partitions=files, replace=True)
        lap("sample")
        tables, cells = same_counts(source, schema, client)
        assert PartitionedRecords(ParquetTable(sample), schema, client).check() == n
    names = ", ".join(dict.fromkeys(entry.name for entry in model.ledger_.entries))
    lines = [
        f"# {n:,} {kind} × {len(schema)} columns on {given.workers} workers of {given.memory}",
        "",
        f"Made by `python benchmarks/large_table.py --{kind} {n} --workers {given.workers} "
        f"--memory {given.memory}`: one thread a worker, {names}. {model.guarantee()}",
        "",
        "| | time | of a processor, all together | peak memory of each worker | of the driver | files |",
        "|---|---:|---:|---|---:|---|",
    ]
    for name, folder in (("fit", source), ("sample", sample)):
        *workers, driver = peaks[name]
        shown = ", ".join(f"{p:.2f} GB" for p in workers)
        files = f"{len(list(folder.iterdir()))} of {size_of(folder):.2f} GB together"
        lines.append(
            f"| {name} | {took[name]:.0f} s | {busy[name]:.0f} s | {shown} | {driver:.2f} GB | {files} |"
        )
    if several:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            took_alone, busy_alone, held = pool.submit(fit_in_memory, source, schema).result()
        lines.append(f"| fit in memory | {took_alone:.0f} s | {busy_alone:.0f} s | | {held:.2f} GB | |")
        lines += ["", f"The table has {ParquetTable(source).rows:,} rows."]
    lines += [
        "",
        f"Peaks are since the process started. Of the first file, {tables} tables with {cells:,} cells were "
        "counted in memory too: equal in every cell.",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if not given.no_write:
        (RESULTS / f"large_{'patients' if several else 'table'}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
