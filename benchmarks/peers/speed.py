"""The speed suite: a critic step of ours with and without privacy, beside Opacus's, in one run.

Critic 20-64-128-256-1. Ours is `benchmarks/step_time.py`; both take turns over the rounds, so that what else
the machine does falls on both. Ratios can be compared, milliseconds of a shared machine cannot.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.peers.environments import Environments
from benchmarks.peers.processes import run
from dpsynth.files.storage import carry_out, write_text

HERE = Path(__file__).parent
BATCHES, WIDTHS, ROUNDS = (208, 2048), "20,64,128,256,1", 3
#: steps of one repeat: fewer of the larger batch
STEPS = {208: 200, 2048: 20}
REPEATS, LIMIT = 3, 900.0
#: against what each is given as a ratio
OURS, PLAIN = "ours: spectral, optimal noise", "ours: without privacy"


def suite(out: Path, environments: Environments, head: list[str]) -> None:
    """Write ``README.md`` and ``steps.csv``, and print the former."""
    work = out.resolve() / "work"
    work.mkdir(exist_ok=True)
    tasks = {
        f"round-{number}-batch-{batch}-{arm}": (number, batch, arm)
        for number in range(ROUNDS)
        for batch in BATCHES
        for arm in ("ours", "opacus")
    }
    one = partial(_round, environments=environments, work=work)
    settings = {"widths": WIDTHS, "repeats": REPEATS, "steps": {str(b): n for b, n in STEPS.items()}}
    done = carry_out(one, tasks, folder=out / "rounds", settings=settings)
    rows, failures = [], []
    for label, (number, batch, arm) in tasks.items():
        found = done[label]
        if found["failed"]:
            failures.append(f"{arm}, batch {batch}, round {number + 1}: {found['failed']}")
        for kind, milliseconds in found["ms"].items():
            rows.append({"batch": batch, "round": number, "what": f"{arm}: {kind}", "ms": milliseconds})
    frame = pd.DataFrame(rows)
    write_text(out / "steps.csv", frame.to_csv(index=False, float_format="%.5g"))
    lines = ["# Time of a critic step beside Opacus", "", *head, "", *_explained(), *as_markdown(frame)]
    lines += ["", *(f"- failed: {line}" for line in failures)] if failures else []
    write_text(out / "README.md", "\n".join(lines) + "\n")
    print("\n".join(lines))


def as_markdown(frame: pd.DataFrame) -> list[str]:
    """Medians over the rounds; ratios are taken within a round, then their median, smallest and largest."""
    lines = []
    for batch, part in frame.groupby("batch"):
        wide = part.pivot_table(index="round", columns="what", values="ms")
        lines += ["", f"## Batch {batch:,}", "", "| step | ms | × ours, private | × ours, not private |"]
        lines += ["|---|---:|---:|---:|"]
        for what in part["what"].unique():
            cells = [f"{wide[what].median():.3g}", _ratio(wide, what, OURS), _ratio(wide, what, PLAIN)]
            lines.append(f"| {what} | {' | '.join(cells)} |")
    return lines


def _ratio(wide: pd.DataFrame, what: str, base: str) -> str:
    if base not in wide:
        return ""
    ratios = wide[what] / wide[base]
    return f"{ratios.median():.2f} ({ratios.min():.2f} to {ratios.max():.2f})"


def _round(task: tuple[int, int, str], *, environments: Environments, work: Path) -> dict[str, Any]:
    """Milliseconds a step by kind, or why there are none."""
    _, batch, arm = task
    environment = environments[arm]
    if environment.python is None:
        return {"failed": environment.failed, "ms": {}}
    sizes = WIDTHS.split(",")
    if arm == "ours":
        hidden = ",".join(sizes[1:-1])
        options = {"repeats": REPEATS, "steps": STEPS[batch], "batch": batch}
        options |= {"dim": sizes[0], "hidden": hidden}
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        command = [environment.python, str(HERE.parent / "step_time.py"), *words]
    else:
        words = [str(batch), WIDTHS, str(REPEATS), str(STEPS[batch])]
        command = [environment.python, str(HERE / "fits" / "step_opacus.py"), *words]
    ended = run(command, folder=work, limit=LIMIT, python_path=environment.python_path)
    return {"failed": ended.failed, "ms": {} if ended.failed else _medians(arm, ended.stdout)}


def _medians(arm: str, stdout: str) -> dict[str, float]:
    found: dict[str, Any] = json.loads(stdout[stdout.index("{") :])
    if arm == "ours":
        return {kind: row["median_ms"] for kind, row in found.items()}
    return {kind: float(pd.Series(times).median()) for kind, times in found.items()}


def _explained() -> list[str]:
    widths = WIDTHS.replace(",", "-")
    steps = " or ".join(f"{count} (batch {batch:,})" for batch, count in STEPS.items())
    return [
        f"Critic {widths}, LeakyReLU, Adam, float32, one thread of BLAS; {ROUNDS} rounds in which ours and "
        f"Opacus take turns, {REPEATS} repeats of {steps} steps in each; compiling left out. Ratios are "
        "taken within a round: their median, in brackets the smallest and the largest. Ours draws a Poisson "
        "sample and a generated batch and takes a generator step every five (`benchmarks/step_time.py`); "
        "Opacus's steps are on the records' batch alone, which is less work.",
    ]
