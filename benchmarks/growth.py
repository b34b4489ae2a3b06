"""How time and memory of a fit, a sample and an evaluation grow with rows and columns, beside MST and AIM.

    python benchmarks/growth.py --out FOLDER [--rows 100000 1000000] [--columns 10 50] [--peers PYTHON]

Every cell is a process of its own with one thread of BLAS. It makes a table of n rows and d columns: half
numbers, a fifth categories, the rest whole numbers and stages, and a binary outcome. A tenth of the columns
has missing values. Then come a fit at epsilon 3 and a sample of n rows, by the base model alone and by the
default, and an evaluation against n / 4 other rows. MST and AIM are those of dpmm, in the Python that
``--peers`` names (pins: benchmarks/peers/environments/dpmm.txt). Each is a process of its own that fits and
samples. Larger tables are left out once it has not ended.

``--limit`` is in seconds of processor time for a process, and ``--memory`` in GB of its address space. A cell
that has reached one is kept with what it finished, until its file is removed. The same command carries out
what is missing in FOLDER, and writes FOLDER/growth.md from all that FOLDER holds.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))

import dpsynth
from benchmarks.peers.processes import run
from benchmarks.peers.tables import as_numbers, public_facts
from dpsynth.files.storage import ROUNDS, carry_out
from dpsynth.synthesis.default_rules import MOST_PRODUCTS, products_of_pairs
from dpsynth.synthesis.generators import options_of, unfitted
from dpsynth.table import Column, Schema

FITS = Path(__file__).parent / "peers" / "fits"
EPSILON = 3.0
ARMS: dict[str, dict[str, object]] = {
    "base model alone": {"statistics": {"pairwise_statistics": False}},
    "default": {},
}
PEERS = {"MST": "mst", "AIM": "aim"}
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


def cell(n: int, d: int) -> None:
    """Print seconds and peak memory of each stage for one size, a line of JSON each."""
    train, schema = made_up(n, d, seed=0)
    test, _ = made_up(max(n // 4, 1000), d, seed=1)

    def timed(name: str, work: Callable[[], Any]) -> Any:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        start, used = time.perf_counter(), time.process_time()
        answer = work()
        seconds = {"wall_s": time.perf_counter() - start, "cpu_s": time.process_time() - used}
        peak = peak_of(Path("/proc/self/status").read_text())
        print(json.dumps({name: seconds | {"peak_gb": peak}}), flush=True)
        return answer

    for name, options in ARMS.items():
        if name == "default" and products_of_pairs(schema) > MOST_PRODUCTS:
            continue  # the default is then the base model alone
        model = unfitted(options_of(epsilon=EPSILON, random_state=0, **options))
        timed(f"fit, {name}", lambda model=model: model.fit(train, schema=schema))
        drawn = timed(f"sample, {name}", lambda model=model: model.sample(n, random_state=0))
    timed("evaluate", lambda: dpsynth.evaluate(drawn, train=train, test=test, schema=schema, seed=0))


def peak_of(text: str) -> float:
    return int(re.search(r"VmHWM:\s+(\d+) kB", text)[1]) * 1024 / 1e9  # type: ignore[index]


def ours(task: tuple[int, int, float, float]) -> dict[str, object]:
    """A cell in a process of its own. What is not done when it is stopped is left out."""
    n, d, limit, memory = task
    command = [sys.executable, __file__, "--cell", str(n), str(d), "--memory", str(memory)]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        ended = run(command, folder=folder, limit=limit, python_path=str(Path(__file__).parents[1]))
        lines = (folder / "stdout.txt").read_text().splitlines()
    stages: dict[str, Any] = {}
    for line in lines:
        stages |= json.loads(line)
    return _record(n, d, "ours", stages, ended.failed)


def peer(task: tuple[int, int, float, str, str]) -> dict[str, object]:
    """Fit and sample by MST or AIM, on public cells' facts as in the comparison of peers."""
    n, d, limit, name, python = task
    frame, schema = made_up(n, d, seed=0)
    told = {"epsilon": EPSILON, "delta": n**-1.5, "n": n, "rows": n, "seed": 0}
    told |= {"options": {"method": PEERS[name]}, "columns": public_facts(schema), "outcome": None}
    stages = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        as_numbers(frame, schema).to_csv(folder / "train.csv", index=False)
        (folder / "task.json").write_text(json.dumps(told))
        ended = run([python, str(FITS / "fit_dpmm.py"), place], folder=folder, limit=limit)
        if ended.failed is None:
            found = json.loads((folder / "result.json").read_text())
            peak = found["peak_mib"] * 2**20 / 1e9
            stages[name] = {"wall_s": found["seconds"], "cpu_s": found["cpu_seconds"], "peak_gb": peak}
    return _record(n, d, name, stages, ended.failed)


def _record(n: int, d: int, who: str, stages: dict[str, Any], stopped: str | None) -> dict[str, object]:
    record = {"n": n, "d": d, "who": who, "stages": stages, "version": dpsynth.__version__}
    return record if stopped is None else record | {"stopped": stopped}


def slope(sizes: list[int], times: list[float]) -> str:
    """Exponent of the growth; a dash for fewer than two sizes."""
    if len(sizes) < 2:
        return "–"
    return f"{np.polyfit(np.log(sizes), np.log(times), 1)[0]:.2f}"


def page(records: list[dict[str, Any]]) -> str:
    """The Markdown page of all cells."""
    versions = ", ".join(sorted({record["version"] for record in records}))
    lines = [
        "# Growth of time and memory with rows and columns",
        "",
        f"Made by `python benchmarks/growth.py` (dpsynth {versions}, epsilon {EPSILON:g}, one thread of",
        "BLAS). Entries are seconds of processor time and the stage's peak memory in GB, tables included.",
        "Other work shared the machine, so time on the wall is left out. Exponents are slopes of log time by",
        "least squares. Fixed parts, such as choosing the noise, make them small where tables are small.",
        "",
        f"The default equals the base model alone if columns have more than {MOST_PRODUCTS:,} products.",
        "Slow steps of an evaluation read a random part of a large table.",
    ]
    for stage in STAGES:
        lines += ["", f"## {stage}", "", *_table(stage, [r for r in records if r["who"] == "ours"])]
    lines += ["", "## Peers: fit and sample together", ""]
    lines += ["MST and AIM of dpmm, on the same tables."]
    for name in PEERS:
        lines += ["", f"### {name}", "", *_table(name, [r for r in records if r["who"] == name])]
    return "\n".join(lines) + "\n"


def _table(stage: str, records: list[dict[str, Any]]) -> Iterator[str]:
    rows, columns = sorted({r["n"] for r in records}), sorted({r["d"] for r in records})
    found = {(r["n"], r["d"]): r for r in records}
    times = {size: r["stages"][stage]["cpu_s"] for size, r in found.items() if stage in r["stages"]}

    def entry(n: int, d: int) -> str:
        if (n, d) not in found:
            return "not run"
        if (n, d) in times:
            return f"{times[n, d]:,.1f} s, {found[n, d]['stages'][stage]['peak_gb']:.1f} GB"
        return str(found[n, d].get("stopped", "–"))

    yield "| columns | " + " | ".join(f"n = {n:,}" for n in rows) + " | exponent in n |"
    yield "|---:|" + "---:|" * (len(rows) + 1)
    for d in columns:
        known = [n for n in rows if (n, d) in times]
        exponent = slope(known, [times[n, d] for n in known])
        yield f"| {d} | " + " | ".join(entry(n, d) for n in rows) + f" | {exponent} |"
    across = []
    for n in rows:
        known = [d for d in columns if (n, d) in times]
        across.append(slope(known, [times[n, d] for d in known]))
    yield "| exponent in columns | " + " | ".join(across) + " | |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="folder of finished cells")
    parser.add_argument("--rows", type=int, nargs="*", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--columns", type=int, nargs="+", default=[10, 50, 200])
    parser.add_argument("--peers", help="Python of an environment with dpmm; without it, no peers")
    parser.add_argument("--limit", type=float, default=3600, help="processor seconds a process may take")
    parser.add_argument("--memory", type=float, default=16, help="GB of address space of one of our cells")
    parser.add_argument("--cell", type=int, nargs=2, help="measure this one only, and print it")
    given = parser.parse_args()
    if given.cell:
        most = int(given.memory * 1e9)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        cell(*given.cell)
        return
    if given.out is None:
        parser.error("--out must name a folder for finished cells")
    sizes = sorted(((n, d) for n in given.rows for d in given.columns), key=lambda size: size[0] * size[1])
    for n, d in sizes:
        _carried(given.out, ours, f"ours-{n}x{d}", (n, d, given.limit, given.memory))
        for name in PEERS if given.peers else ():
            if not any(r["who"] == name and "stopped" in r for r in _kept(given.out)):
                _carried(given.out, peer, f"{name}-{n}x{d}", (n, d, given.limit, name, given.peers))
    text = page(_kept(given.out))
    print(text)
    (given.out / "growth.md").write_text(text, encoding="utf-8")


def _carried(out: Path, work: Callable[[Any], dict[str, object]], label: str, task: Any) -> None:
    def told(done: int, total: int, label: str, took: float) -> None:
        print(f"{label} {took:.0f} s", flush=True)

    carry_out(work, {label: task}, folder=out, settings={"benchmark": "growth"}, on_round=told)


def _kept(out: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((out / ROUNDS).glob("*.json"))]


if __name__ == "__main__":
    main()
