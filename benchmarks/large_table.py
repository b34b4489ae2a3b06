"""Fit and sample a table larger than a worker's memory: 10^7 records x 20 columns on two workers of 2 GB.

    python benchmarks/large_table.py --folder /tmp/large
    python benchmarks/large_table.py --folder /tmp/large --patients 100000

The table is made up, part by part, and kept in the folder. The fit is the default one, with studies. One
worker is ended by SIGKILL in the middle of a pass over the records, and one in the middle of the sample.
Beside the workers, a process of its own reads the whole table into memory and makes the same fit with the
same noise. The two saved models must be equal, but for keys that are drawn at random. The process also draws
the parts of the sample that the ended worker was at: the files must be equal. Writes
benchmarks/results/large_table.md.

With --patients, the table holds 1 to 19 rows of each patient, 10 in the mean, in files of 10,000 patients.
Writes benchmarks/results/large_patients.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import psutil

import dpsynth
from dpsynth.parallel import connected, each
from dpsynth.patients.schema import PatientSchema
from dpsynth.privacy import PartitionedRecords
from dpsynth.privacy.ledger import Ledger
from dpsynth.synthesis.many_tables import PartFile, draw_part, part_files
from dpsynth.table import Column, Schema
from dpsynth.table.parquet import ParquetTable
from dpsynth.table.schema import TableSchema

if TYPE_CHECKING:
    from distributed import Client

RESULTS = Path(__file__).parent / "results"
ROWS_A_FILE, ROW_GROUP = 250_000, 125_000
PATIENTS_A_FILE, MOST_ROWS = 10_000, 20
#: of the noise of both fits, and the statistic during which a worker is ended
SEED, KILLED = 11, "pairwise statistics"
STUDIES = [
    "logistic: died ~ age + sex + log(creatinine)",
    "linear: sodium ~ age + albumin + diabetes",
    {"name": "survival", "model": "cox: (days, died) ~ age + log(crp) + smoker"},
]
PATIENT_STUDIES = ["linear: systolic ~ age + hdl", "logistic: smoker ~ age + sex"]
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


@dataclass(frozen=True)
class Used:
    """What a process used until now: seconds of a processor, and the most memory that it has held, in GB."""

    seconds: float
    peak: float

    @classmethod
    def by(cls, process: int) -> Used:
        times = psutil.Process(process).cpu_times()
        status = Path(f"/proc/{process}/status").read_text()
        peak = int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024 / 1e9  # type: ignore[index]
        return cls(times.user + times.system, peak)


class Workers:
    """The workers of a client, what they have used, and those that were ended."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.ended: list[Used] = []
        self.begin()

    def begin(self) -> None:
        self.start, self.seconds = time.perf_counter(), self.all_seconds()

    def used(self) -> list[Used]:
        return [*map(Used.by, self.client.run(os.getpid).values()), *self.ended]

    def all_seconds(self) -> float:
        return sum(used.seconds for used in [*self.used(), Used.by(os.getpid())])

    def lap(self, name: str) -> str:
        """A line about what was done since `begin`."""
        took, seconds = time.perf_counter() - self.start, self.all_seconds() - self.seconds
        peaks, own = ", ".join(f"{used.peak:.2f} GB" for used in self.used()), Used.by(os.getpid()).peak
        line = f"| {name} | {took:.0f} s | {seconds:.0f} s | {peaks} | {own:.2f} GB |"
        print(line, file=sys.stderr)
        return line

    def end_one(self, parts: int, ready: Callable[[], bool]) -> tuple[str, list[int]]:
        """End a worker when it is ``ready`` and half of the parts are done. Says when, and at which parts."""
        while self.client.status == "running":
            time.sleep(0.02)
            states = [state.status for key, state in [*self.client.futures.items()] if _is_part(key)]
            if not ready() or not 0 < states.count("pending") <= (parts + 1) // 2:
                continue
            at = {where: [*filter(_is_part, keys)] for where, keys in self.client.processing().items()}
            where = next((where for where, keys in at.items() if keys), None)
            if where is None:
                continue
            process = self.client.run(os.getpid, workers=[where])[where]
            self.ended.append(Used.by(process))
            os.kill(process, signal.SIGKILL)
            after, left = time.perf_counter() - self.start, states.count("pending")
            told = f"after {after:.0f} s, with {left} of {parts} parts left"
            print("ended", process, told, file=sys.stderr)
            return told, [int(key.rsplit("-", 1)[1]) for key in at[where]]
        raise CancelledError


def _is_part(key: object) -> bool:
    return str(key).startswith("_apply-")


def fit_in_memory(folder: Path, schema: TableSchema, model: Path) -> tuple[float, Used]:
    """Fit and save the same model without workers. Gives seconds, and what it used."""
    start = time.perf_counter()
    fitted = fit(pd.read_parquet(folder), schema)
    took = time.perf_counter() - start, Used.by(os.getpid())
    fitted.save(model, replace=True)
    return took


def draw_again(model: Path, parts: list[PartFile], folder: Path) -> None:
    """Draw parts of a sample without workers."""
    folder.mkdir(exist_ok=True)
    fitted = dpsynth.load(model)
    for part in parts:
        draw_part(part, fitted.model_, folder, None)


def fit(records: Any, schema: TableSchema, ledger: Ledger | None = None) -> dpsynth.DPMarginals:
    studies = dpsynth.Studies(PATIENT_STUDIES if isinstance(schema, PatientSchema) else STUDIES)
    model = dpsynth.DPMarginals(1.0, random_state=SEED)
    return model.fit(records, schema=schema, ledger=ledger, also=[studies])


def equal_models(one: Path, other: Path) -> str:
    """How much of two saved models was compared. Raises AssertionError if they differ."""
    texts = [(folder / "model.json").read_text() for folder in (one, other)]
    # keys are drawn at random, and the record's checksum is of them too
    without = [re.sub(r'"[0-9a-f]{16}"|"sha256": "[0-9a-f]{64}"', "", text) for text in texts]
    assert without[0] == without[1], "the models' records differ"
    with np.load(one / "model.npz") as arrays, np.load(other / "model.npz") as others:
        assert arrays.files == others.files
        assert all(arrays[name].tobytes() == others[name].tobytes() for name in arrays.files)
        numbers = sum(arrays[name].size for name in arrays.files)
        entries = len(json.loads(texts[0])["ledger"]["entries"])
        return f"{len(arrays.files)} arrays of {numbers:,} numbers, {entries} ledger entries and all settings"


def size_of(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.iterdir()) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--patients", type=int, help="patients with several rows, in place of --rows")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--folder", type=Path, required=True, help="for the table, the models and the sample")
    parser.add_argument("--no-write", action="store_true", help="print the table only")
    given = parser.parse_args()
    several, n = given.patients is not None, given.patients or given.rows
    schema: TableSchema = schema_of_patients(n) if several else schema_of(n)
    kind = "patients" if several else "rows"
    source, sample, again, model, alone = (
        given.folder / f"{name}-{kind}-{n}" for name in ("table", "sample", "again", "model", "alone")
    )
    files = make_table(source, n, several, given.workers)
    ledger, lines, ended = Ledger(), [], []
    with (
        ProcessPoolExecutor(1, get_context("spawn")) as process,
        ThreadPoolExecutor(1) as side,
        connected(workers=given.workers, memory=given.memory) as client,
    ):
        records = PartitionedRecords(ParquetTable(source), schema, client)
        workers, parts = Workers(client), files if several else len(records.table.parts)
        told = side.submit(
            workers.end_one, parts, lambda: any(entry.name == KILLED for entry in ledger.entries)
        )
        in_memory = process.submit(fit_in_memory, source, schema, alone)
        fitted = fit(records, schema, ledger)
        lines.append(workers.lap("fit"))
        ended.append(f"In the fit, during the {KILLED}, {told.result()[0]}.")
        fitted.save(model, replace=True)
        took, used = in_memory.result()
        compared = equal_models(model, alone)
        alone_line = f"| fit in one process | {took:.0f} s | {used.seconds:.0f} s | | {used.peak:.2f} GB |"
        print(alone_line, compared, file=sys.stderr)
        workers.begin()
        told = side.submit(workers.end_one, files, lambda: True)
        fitted.sample_to_parts(sample, n, client=client, partitions=files, random_state=SEED, replace=True)
        lines += [workers.lap("sample"), alone_line]
        ended.append(f"In the sample, {told.result()[0]}.")
        drawn = [part for i, part in enumerate(part_files(n, files, SEED)) if i in told.result()[1]]
        process.submit(draw_again, alone, drawn, again).result()
        for part in drawn:
            assert (sample / part.name).read_bytes() == (again / part.name).read_bytes(), part.name
        assert PartitionedRecords(ParquetTable(sample), schema, client).check() == n
    names = ", ".join(dict.fromkeys(entry.name for entry in ledger.entries))
    text = f"""\
# {n:,} {kind} × {len(schema)} columns on {given.workers} workers of {given.memory}

Made by `python benchmarks/large_table.py --{kind} {n} --workers {given.workers} --memory {given.memory}`, one
thread a worker. The table has {ParquetTable(source).rows:,} rows in {files} files of {size_of(source):.2f} GB
together, the sample as many files of {size_of(sample):.2f} GB. Noisy statistics: {names}.

| | time | of a processor, all together | peak memory of each worker, ended ones last | of the driver |
|---|---:|---:|---|---:|
{chr(10).join(lines)}

Peaks are since a process started. Two workers were ended by SIGKILL, and Dask started others.
{" ".join(ended)}

The one process fitted beside the workers, with the whole table in memory and the same noise. Its model is
equal in every bit: {compared}. Keys drawn at random were left out.
It also drew the parts of the sample that the ended worker was at: {", ".join(part.name for part in drawn)}.
These files are equal in every bit.
"""
    print(text)
    if not given.no_write:
        (RESULTS / f"large_{'patients' if several else 'table'}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
