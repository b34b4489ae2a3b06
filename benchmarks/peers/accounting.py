"""The accounting suite: our epsilon, delta, advantage and error rates beside other accountants'."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.peers.environments import Environments
from benchmarks.peers.processes import run
from dpsynth.files.storage import write_text
from dpsynth.files.text import inert

SCRIPT = Path(__file__).parent / "fits" / "account.py"
#: by name: parts under add/remove; ["gaussian", noise, count], ["training", noise, sampling_prob, steps]
CASES: dict[str, list[list[Any]]] = {
    "one Gaussian release, noise 2": [["gaussian", 2.0, 1]],
    "40 Gaussian releases, noise 20": [["gaussian", 20.0, 40]],
    "one Laplace release, scale 1": [["laplace", 1.0, 1]],
    "200 sampled steps, noise 1.5, q = 0.05": [["training", 1.5, 0.05, 200]],
    "4,000 sampled steps, noise 0.8, q = 0.0025": [["training", 0.8, 0.0025, 4000]],
    "20 of noise 20, Laplace of scale 2, 200 sampled steps of noise 2, q = 0.05": [
        ["gaussian", 20.0, 20],
        ["laplace", 2.0, 1],
        ["training", 2.0, 0.05, 200],
    ],
}
#: library and environment; dp_accounting runs beside riskcal, in a newer version than ours may have
LIBRARIES = (("ours", "ours"), ("dp_accounting", "riskcal"), ("riskcal", "riskcal"), ("autodp", "autodp"))
ASKED = {
    "epsilon": "ε at δ = 1e-5",
    "delta": "δ at ε = 1",
    "advantage": "advantage (TV)",
    "misses": "misses at 10 % false alarms",
    "accuracy": "best accuracy, 3 in 10 members",
    "seconds": "seconds",
}
LIMIT = 900.0


def suite(out: Path, environments: Environments, head: list[str]) -> None:
    """Write ``README.md`` and ``answers.csv``, and print the former."""
    rows = []
    for library, name in LIBRARIES:
        rows += [
            {"case": case, "library": library, **found}
            for case, found in _asked(library, name, environments, out)
        ]
    frame = pd.DataFrame(rows)
    write_text(out / "answers.csv", frame.to_csv(index=False))
    explained = (
        "The same events under add/remove of one record; figures as each library gives them, an empty cell "
        "where it offers none. Ours, dp_accounting and riskcal compose privacy-loss distributions, autodp "
        "Rényi divergences. dp_accounting's accuracy is its curve of deltas read at log(0.7 / 0.3)."
    )
    lines = ["# Accounting beside other libraries", "", *head, "", explained, *as_markdown(frame)]
    write_text(out / "README.md", "\n".join(lines) + "\n")
    print("\n".join(lines))


def as_markdown(frame: pd.DataFrame) -> list[str]:
    """A table for each case, a row a library."""
    lines = []
    for case, part in frame.groupby("case", sort=False):
        lines += [
            "",
            f"## {case}",
            "",
            f"| library | {' | '.join(ASKED.values())} |",
            "|---|" + "---:|" * len(ASKED),
        ]
        for _, row in part.iterrows():
            cells = ["" if pd.isna(row.get(name)) else f"{row[name]:.6g}" for name in ASKED]
            lines.append(f"| {row['library']} | {' | '.join(cells)} |")
        failed = part[part["failed"].notna()] if "failed" in part else part[:0]
        lines += [f"- {row['library']}: {inert(row['failed'])}" for _, row in failed.iterrows()]
    return lines


def _asked(
    library: str, name: str, environments: Environments, out: Path
) -> list[tuple[str, dict[str, Any]]]:
    environment = environments[name]
    failed = environment.failed
    if environment.python is not None:
        place = out / "work"
        place.mkdir(exist_ok=True)
        (place / "cases.json").write_text(json.dumps(CASES))
        command = [environment.python, str(SCRIPT), library, "cases.json"]
        ended = run(command, folder=place, limit=LIMIT, python_path=environment.python_path)
        if ended.failed is None:
            return list(json.loads(ended.stdout.splitlines()[-1]).items())
        failed = ended.failed
    return [(case, {"failed": failed}) for case in CASES]
