"""Tables with known structure, what a base model lacks on them, and what refinements win.

    python -m benchmarks ground --table xor dense20 --n 4000 20000 --epsilon 1 3 10 --seeds 3 --out DIR
    python -m benchmarks ground --table flchain support2 --arms arms.yaml --out DIR

Tables are those of the proving ground (all by default) or of the registry, whose own number of records
counts. ``arms.yaml`` holds further arms, each a mapping of a generator and its options:

    4000 steps: {generator: wgan-gp, steps: 4000, training: {critic_hidden: [64, 64]}}

Each run is kept in DIR as soon as it is there; the same command goes on after an interruption, and with more
tables, sizes, seeds or arms it carries out what is new. What is in DIR is written to DIR/ground.md and
DIR/ground.csv, all runs of earlier commands too: name another folder after the package was changed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import dpsynth
from benchmarks.ground import report
from benchmarks.ground.arms import ARMS, carried_out, read_arms, runs
from benchmarks.ground.headroom import APART, LEARNING, WHOLE
from benchmarks.ground.structures import STRUCTURES
from dpsynth.errors import DpsynthError
from dpsynth.files.storage import ROUNDS, carry_out, read_json, write_text


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks ground",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = [*STRUCTURES, *dpsynth.datasets.names()]
    parser.add_argument("--table", nargs="+", choices=known, default=list(STRUCTURES), metavar="NAME")
    parser.add_argument("--n", nargs="+", type=int, default=[4_000, 20_000], help="records of a structure")
    parser.add_argument("--epsilon", nargs="+", type=float, default=[3.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--arms", type=Path, help="YAML file of further arms")
    parser.add_argument("--only", nargs="+", metavar="ARM", help="of all arms, these")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(argv)
    try:
        arms = {**ARMS, **(read_arms(given.arms) if given.arms else {})}
        if given.only:
            unknown = [arm for arm in given.only if arm not in arms]
            if unknown:
                parser.error(f"--only {unknown[0]!r} is no arm (arms: {', '.join(arms)})")
            arms = {arm: arms[arm] for arm in given.only}
        tasks = runs(given.table, given.n, given.epsilon, given.seeds, arms)
        carry_out(
            carried_out,
            tasks,
            folder=given.out,
            settings={"parts": [APART, LEARNING, WHOLE]},
            on_round=_tell,
        )
    except DpsynthError as problem:
        sys.exit(str(problem))
    records = [read_json(path) for path in sorted((given.out / ROUNDS).glob("*.json"))]
    write_text(given.out / "ground.md", report.markdown(records, _made_by()))
    write_text(given.out / "ground.csv", report.rows(records).to_csv(index=False))
    print(given.out / "ground.md")


def _made_by() -> str:
    return (
        f"Made by `python -m benchmarks ground`, {date.today().isoformat()}, dpsynth {dpsynth.__version__}, "
        f"{os.cpu_count()} cores. Other work shared them: compare seconds within a row, if at all."
    )


def _tell(done: int, total: int, label: str, seconds: float) -> None:
    print(f"{done}/{total} {label}: {seconds:.1f} s", file=sys.stderr, flush=True)
