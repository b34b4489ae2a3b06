"""Ours beside its peers: utility and accounting.

    python -m benchmarks peers --suite utility --out DIR [--data flchain support2] [--epsilon 3] [--seeds 5]
    python -m benchmarks peers --suite utility --out DIR --data xor rings  # known structure

Each peer runs in a virtual environment of its own, made under --environments from its file of pins.
The same command on the same folder goes on where it was.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from benchmarks.ground.structures import STRUCTURES
from benchmarks.peers.arms import ARMS
from benchmarks.peers.environments import Environments

DATA = (
    "flchain",
    "breast_cancer",
    "support2",
    "physionet2012",
    "mimic3_heart_failure",
    "diabetes130_any",
)
SUITES = ("utility", "accounting")


def main(argv: Sequence[str] | None = None) -> None:
    args = _parser().parse_args(argv)
    # so that a fit does not go on when this is ended
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended; the same command goes on from here"))
    args.out.mkdir(parents=True, exist_ok=True)
    pythons = dict(pair.split("=", 1) for pair in args.python)
    environments = Environments(args.environments.resolve(), pythons)
    if args.suite == "utility":
        _utility(args, environments)
    else:
        from benchmarks.peers import accounting

        accounting.suite(args.out, environments, head())


def head() -> list[str]:
    """Date, versions and class of the machine."""
    versions = [
        f"{name} {metadata.version(name)}" for name in ("dpsynth-health", "numpy", "pandas", "tensorflow")
    ]
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    return [
        f"{datetime.now(UTC).date()}; {machine}, {', '.join(versions)}.",
        "",
        "Cores were shared with other work: times compare arms of one run, roughly, and no machines.",
    ]


def _utility(args: argparse.Namespace, environments: Environments) -> None:
    from benchmarks.peers import summaries, utility

    arms = [ARMS[name] for name in args.what]
    options = {"tables": args.data, "arms": arms, "epsilons": args.epsilon}
    rounds = args.out / "rounds"
    if args.tables_only:
        rows = utility.collected(rounds)
    else:
        rows = utility.suite(rounds, environments, **options, seeds=args.seeds, limit=args.limit)
    notes = [
        *head(),
        "",
        "Half of each table trains, half tests (stratified by outcome, split seed 0); δ = n^-1.5; public "
        "bounds, categories and steps are the same for all. Numbers are medians over seeds, in brackets the "
        "smallest and the largest (five seeds: a 94 % interval of the median). A fit is stopped after "
        f"{args.limit:g} s of processor time; an arm whose first fit took more than {utility.SLOW:g} s has "
        "one seed. CPU s are seconds of processor time of the fit and the draw, compiling included, imports "
        "not, over all threads (`fits.csv` has seconds by the clock); MiB is the process's peak memory.",
        "",
        "A table of known structure has 20,000 training records and 20,000 fresh ones to be measured by. "
        "Its auc is the better of logistic regression and boosting, and its nn is against fresh records.",
        "",
        "Cells of numbers: ours by public histogram cells; dpmm its own priv-tree (a tenth of ε); google "
        "its own private quantiles (32); SmartNoise's MST and AIM 32 public cells of equal width on the "
        "declared scale; its GANs take numbers. SmartNoise rows are drawn independently (see "
        "`fits/fit_smartnoise.py`).",
    ]
    summaries.write(args.out, rows, "Utility beside peers", notes)
    print((args.out / "README.md").read_text())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--suite", choices=SUITES, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--environments", type=Path, default=Path("peer-environments"), help="made if not there; gigabytes"
    )
    parser.add_argument(
        "--python", action="append", default=[], metavar="NAME=PATH", help="an environment that is there"
    )
    of_utility = parser.add_argument_group("utility")
    of_utility.add_argument(
        "--data",
        nargs="+",
        choices=[*DATA, *STRUCTURES],
        default=list(DATA),
        metavar="NAME",
    )
    of_utility.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 3.0, 10.0])
    of_utility.add_argument("--seeds", type=int, default=5)
    of_utility.add_argument("--what", nargs="+", choices=list(ARMS), default=list(ARMS), metavar="ARM")
    of_utility.add_argument("--limit", type=float, default=900.0, help="seconds of processor time for a fit")
    of_utility.add_argument("--tables-only", action="store_true", help="write tables of the rounds there are")
    return parser
