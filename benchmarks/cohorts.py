"""Time and memory of the cohort queries, on MIMIC-III's open demo and on a copy of it as large as MIMIC-III.

    python benchmarks/cohorts.py --demo ../shared/data/mimic3-demo --admissions 58976 --folder /large/scratch

The demo's patients are repeated under new numbers until there are so many admissions (58,976 in MIMIC-III
v1.4), in every table that cohorts read, as .csv.gz like the download; whatever the copies' size, a cohort of
k copies must have k times the rows and outcomes of the demo's, which is checked. Each study runs in a process
of its own; memory is its peak (ru_maxrss). Writes benchmarks/results/cohorts.md. At full size the copy takes
about 7 GB, and minutes to make.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import os
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

from dpsynth.datasets.cohorts.definitions import STUDIES
from dpsynth.datasets.cohorts.tables import COLUMNS, find_tables

RESULTS = Path(__file__).parent / "results" / "cohorts.md"
NUMBERS = ("subject_id", "hadm_id", "icustay_id")
MARK = "\x00"
Results = dict[str, dict[str, Any]]


def template(path: Path) -> tuple[bytes, bytes]:
    """The header, and the lines with a mark before every patient's, admission's and stay's number."""
    opened = gzip.open if path.name.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        header = next(rows)
        places = [i for i, name in enumerate(header) if name.lower() in NUMBERS]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        for row in rows:
            for place in places:
                row[place] = MARK + row[place] if row[place] else ""
            writer.writerow(row)
    return (",".join(header) + "\n").encode(), text.getvalue().encode()


def replicate(demo: Path, folder: Path, copies: int) -> tuple[int, int]:
    """Write the tables so many times over; give their size in bytes, packed and not."""
    folder.mkdir(parents=True, exist_ok=True)
    whole = 0
    for found in find_tables(demo):
        header, lines = template(found.path)
        squeeze = zlib.compressobj(1, wbits=31)
        with open(folder / f"{found.table.upper()}.csv.gz", "wb") as file:
            file.write(squeeze.compress(header))
            for copy in range(1, copies + 1):
                # a number in front keeps numbers of one width apart
                text = lines.replace(MARK.encode(), str(copy).encode())
                whole += len(text)
                file.write(squeeze.compress(text))
            file.write(squeeze.flush())
    return sum(path.stat().st_size for path in folder.glob("*.csv.gz")), whole


def measure(tables: Path, study: str, out: Path) -> dict[str, Any]:
    """Run the command in a process of its own."""
    words = ["--tables", str(tables), "--study", study, "--out", str(out), "--json", "--force"]
    start = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-m", "dpsynth.cli", "cohort", "mimic3", *words], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    told = json.loads(child.stdout.read())
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0, status
    spent = {"seconds": time.perf_counter() - start, "processor": usage.ru_utime + usage.ru_stime}
    rows = int(told["rows"])
    return {
        **spent,
        "memory": usage.ru_maxrss / 2**20,  # kB to GB
        "rows": rows,
        "positive": round(rows * told["positive_rate"]),
        "stays": told["steps"][0]["stays"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--demo", type=Path, required=True)
    parser.add_argument("--admissions", type=int, default=58976)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    _, lines = template(find_tables(options.demo, ["admissions"])[0].path)
    own = lines.count(b"\n")
    copies = -(-options.admissions // own)
    small = {name: measure(options.demo, name, options.folder.parent / "cohort.parquet") for name in STUDIES}
    print(small, flush=True)
    start = time.perf_counter()
    packed, whole = replicate(options.demo, options.folder, copies)
    print(f"{copies} copies in {time.perf_counter() - start:.0f} s, {packed / 1e9:.1f} GB", flush=True)
    large: Results = {}
    for name in STUDIES:
        large[name] = measure(options.folder, name, options.folder.parent / "cohort.parquet")
        print(name, large[name], os.getloadavg(), flush=True)
        for figure in ("rows", "positive", "stays"):
            assert large[name][figure] == copies * small[name][figure], figure
        write(options.admissions, own, copies, (packed, whole), small, large)


def write(
    admissions: int, own: int, copies: int, size: tuple[int, int], small: Results, large: Results
) -> None:
    """Write the figures that there are; a study at full size takes minutes."""
    titles = {f"{own} (demo)": small, f"{copies * own:,}": large}
    table = [
        "| admissions | study | time | of a processor | peak memory | stays | rows |",
        "|---:|---|---:|---:|---:|---:|---:|",
    ]
    for title, results in titles.items():
        for name, got in results.items():
            table.append(
                f"| {title} | {name} | {got['seconds']:.1f} s | {got['processor']:.1f} s "
                f"| {got['memory']:.2f} GB | {got['stays']:,} | {got['rows']:,} |"
            )
    made = f"{len(COLUMNS)} tables, {size[1] / 1e9:.1f} GB as text, {size[0] / 1e9:.1f} GB as .csv.gz"
    lines_of_text = [
        "# Time and memory of the cohort queries",
        "",
        f"Made by `python benchmarks/cohorts.py --admissions {admissions}`: MIMIC-III's open demo",
        f"({own} admissions), and {copies} copies of it under new numbers ({made}).",
        "One command a study, from files to cohort.",
        "",
        *table,
        "",
        f"{os.cpu_count()} cores, which other work shared meanwhile (load {os.getloadavg()[2]:.0f});",
        '"of a processor" is what the command itself took of them. Peak memory is that of its process.',
        f"Of {copies} copies, every cohort has {copies} times the demo's rows and outcomes (asserted).",
        "",
    ]
    RESULTS.write_text("\n".join(lines_of_text), encoding="utf-8")


if __name__ == "__main__":
    main()
