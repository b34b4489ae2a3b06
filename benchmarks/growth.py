"""How the time of a fit, a sample and an evaluation grows with rows and columns.

    python benchmarks/growth.py --out FOLDER [--rows 10000 100000] [--columns 10 50] [--limit 1800]

Every cell (rows, columns) is a process of its own: a made-up table of that size (half numbers, a fifth
categories, the rest whole numbers and stages, a tenth of the columns with missing values, a binary
outcome), a fit at epsilon 3 of the base model alone, of the default and of base model and 200 critic steps, a
sample of as many rows from each, and an evaluation against rows that were not fitted. Finished cells are kept
in FOLDER, and the same command carries out what is missing; a cell that the limit stopped counts as finished
until its file is removed. Times are processor seconds of all threads, which a loaded machine moves less than
seconds on the wall; both are kept. Writes benchmarks/results/growth.md with exponents (slopes of log time by
least squares) of all cells in FOLDER.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

import dpsynth
from dpsynth.files.rounds import ROUNDS, carry_out
from dpsynth.table import Column, Schema

RESULTS = Path(__file__).parent / "results" / "growth.md"
ARMS: dict[str, dict[str, object]] = {
    "base model alone": {"pairwise_statistics": False, "training_steps": 0},
    "default": {},
    "200 steps": {"pairwise_statistics": False, "training_steps": 200},
}
STAGES = (*(f"{stage}, {arm}" for arm in ARMS for stage in ("fit", "sample")), "evaluate")
SITES = tuple(f"site {i}" for i in range(8))


def made_up(n: int, d: int, seed: int = 0) -> tuple[pd.DataFrame, Schema]:
    """A table of n rows and d columns whose columns hang together by four factors."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n, 4))
    columns, data = [], {}
    for j in range(d - 1):
        loads = np.random.default_rng([7, j]).standard_normal(4)
        value = factors @ loads / 2 + rng.standard_normal(n)
        name, missing = f"x{j}", j % 10 == 3
        if j % 10 < 5:
            columns.append(Column(name=name, kind="continuous", lower=-8, upper=8, missing=missing))
            data[name] = np.where(rng.random(n) < 0.1, np.nan, value) if missing else value
        elif j % 10 < 7:
            columns.append(Column(name=name, kind="categorical", categories=SITES))
            data[name] = np.array(SITES, dtype=object)[np.digitize(value, np.linspace(-2, 2, 7))]
        elif j % 10 < 9:
            columns.append(Column(name=name, kind="integer", lower=0, upper=100))
            data[name] = np.clip(np.rint(50 + 15 * value), 0, 100).astype(int)
        else:
            columns.append(Column(name=name, kind="ordinal", categories=(1, 2, 3, 4)))
            data[name] = np.digitize(value, [-1, 0, 1]) + 1
    columns.append(Column(name="died", kind="binary", categories=(0, 1)))
    data["died"] = (rng.random(n) < 1 / (1 + np.exp(2 - factors[:, 0]))).astype(int)
    schema = Schema(columns=tuple(columns), outcome="died", n_public=n)
    return pd.DataFrame(data), schema


def cell(n: int, d: int) -> dict[str, dict[str, float]]:
    """Times of all stages for one size."""
    train, schema = made_up(n, d, seed=0)
    test, _ = made_up(max(n // 4, 1000), d, seed=1)
    found: dict[str, dict[str, float]] = {}

    def timed(name: str, work):
        start, used = time.perf_counter(), time.process_time()
        answer = work()
        found[name] = {"wall_s": time.perf_counter() - start, "cpu_s": time.process_time() - used}
        print(json.dumps({name: found[name]}), file=sys.stderr, flush=True)
        return answer

    for name, options in ARMS.items():
        model = dpsynth.DPWGANGP(3.0, **options, random_state=0)
        timed(f"fit, {name}", lambda model=model: model.fit(train, schema=schema))
        drawn = timed(f"sample, {name}", lambda model=model: model.sample(n, random_state=0))
    timed("evaluate", lambda: dpsynth.evaluate(drawn, train=train, test=test, schema=schema, seed=0))
    return found


def peak_of(text: str) -> float:
    return int(re.search(r"VmHWM:\s+(\d+) kB", text)[1]) * 1024 / 1e9  # type: ignore[index]


def in_own_process(task: tuple[int, int, float]) -> dict[str, object]:
    """A cell in a process of its own; what is not done when the limit has passed is left out."""
    n, d, limit = task
    command = [sys.executable, __file__, "--cell", str(n), str(d)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired as late:
        said = late.stderr if isinstance(late.stderr, str) else (late.stderr or b"").decode()
        return {"n": n, "d": d, "stages": stages_in(said), "stopped": f"after {limit:.0f} s"}
    record: dict[str, object] = {"n": n, "d": d, "stages": stages_in(done.stderr)}
    if done.returncode:
        record["stopped"] = done.stderr.strip().splitlines()[-1][:200]
    else:
        record["peak_gb"] = float(done.stdout.split()[-1])
    return record


def stages_in(text: str) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for line in text.splitlines():
        if line.startswith('{"'):
            found |= json.loads(line)
    return found


def slope(sizes: list[int], times: list[float]) -> str:
    """Exponent of the growth; a dash for fewer than two sizes."""
    if len(sizes) < 2:
        return "–"
    return f"{np.polyfit(np.log(sizes), np.log(times), 1)[0]:.2f}"


def page(records: list[dict]) -> str:
    """The Markdown page of all cells."""
    rows, columns = sorted({r["n"] for r in records}), sorted({r["d"] for r in records})
    by_size = {(r["n"], r["d"]): r for r in records}

    def seconds(stage: str, n: int, d: int) -> float | None:
        return by_size.get((n, d), {}).get("stages", {}).get(stage, {}).get("cpu_s")

    lines = [
        "# Growth of time with rows and columns",
        "",
        "Made by `python benchmarks/growth.py` (one process a cell; processor seconds of all threads, and",
        "seconds on the wall in brackets; the machine was shared, so the former are the ones to compare).",
        "Exponents are slopes of log processor time by least squares; a fit's fixed part (compiling the",
        "program, choosing noise) makes them small where tables are small.",
    ]
    for stage in STAGES:
        lines += ["", f"## {stage}", ""]
        lines.append("| columns | " + " | ".join(f"n = {n:,}" for n in rows) + " | exponent in n |")
        lines.append("|---:|" + "---:|" * (len(rows) + 1))
        for d in columns:
            cells, sizes, times = [], [], []
            for n in rows:
                used = seconds(stage, n, d)
                if used is None:
                    cells.append(by_size.get((n, d), {}).get("stopped", "not run"))
                    continue
                cells.append(f"{used:.1f} ({by_size[n, d]['stages'][stage]['wall_s']:.1f})")
                sizes.append(n)
                times.append(used)
            lines.append(f"| {d} | " + " | ".join(cells) + f" | {slope(sizes, times)} |")
        across = []
        for n in rows:
            pairs = [(d, used) for d in columns if (used := seconds(stage, n, d)) is not None]
            across.append(slope([d for d, _ in pairs], [used for _, used in pairs]))
        lines.append("| exponent in columns | " + " | ".join(across) + " | |")
    peaks = [f"n = {r['n']:,}, d = {r['d']}: {r['peak_gb']:.1f} GB" for r in records if "peak_gb" in r]
    lines += ["", f"Peak memory of the process: {'; '.join(peaks)}."]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="folder of finished cells")
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--columns", type=int, nargs="+", default=[10, 50, 200])
    parser.add_argument("--limit", type=float, default=3600, help="seconds a cell may take")
    parser.add_argument("--cell", type=int, nargs=2, help="measure this one only, and print it")
    parser.add_argument("--no-write", action="store_true", help="print the page only")
    given = parser.parse_args()
    if given.cell:
        cell(*given.cell)
        print(peak_of(Path("/proc/self/status").read_text()))
        return
    if given.out is None:
        parser.error("--out must name a folder for finished cells")
    sizes = sorted(((n, d) for n in given.rows for d in given.columns), key=lambda size: size[0] * size[1])
    tasks = {f"{n}x{d}": (n, d, given.limit) for n, d in sizes}
    carry_out(
        in_own_process,
        tasks,
        folder=given.out,
        settings={"benchmark": "growth"},
        on_round=lambda done, total, label, took: print(f"{done}/{total} {label} {took:.0f} s", flush=True),
    )
    kept = sorted((given.out / ROUNDS).glob("*.json"))
    text = page([json.loads(path.read_text()) for path in kept])
    print(text)
    if not given.no_write:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
