"""Audits of our own releases: how close they come to what is declared, and which faults they catch.

    python benchmarks/audit.py --out FOLDER [--trials 100000] [--fits 700] [--black-box 20] [--jobs 2]

writes FOLDER/audit.md. Finished parts stay in the folder; the same command goes on.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "mutants"))

DEMO = ROOT / "configs" / "breast_cancer.yaml"
DELTA = 1e-5
#: made-up records planted in each fit of the black box
CANARIES = 10
#: what each mutant is looked for in
FAULTS = {
    "steps-without-noise": "critic",
    "steps-with-half-the-noise": "critic",
    "record-of-double-weight": "critic",
    "steps-without-projection": "critic",
    "noise-for-half-the-ball": "critic",
    "counts-with-half-the-noise": "tables",
    "tables-as-if-one": "tables",
    "choice-at-twice-its-epsilon": "edges",
}


def demo() -> Any:
    from dpsynth.runs.attack_inputs import to_audit

    return to_audit(DEMO)


def critic(trials: int, noise_multiplier: float | None, steps: int = 8, seed: int = 0) -> dict[str, Any]:
    """The critic of the small table's run, with its own noise or another."""
    from dpsynth.audits.configuration import audit_one, releases_of

    target = demo()
    rng = np.random.default_rng(seed)
    found = releases_of(target.schema, target.options, rng)
    if noise_multiplier is not None:
        found = dataclasses.replace(
            found, plan=dataclasses.replace(found.plan, noise_multiplier=noise_multiplier)
        )
    place = len(found.names) - 1
    return audit_one(found, place, trials=trials, steps=steps, rng=rng).to_dict()


def release(name: str, trials: int, seed: int = 0) -> dict[str, Any]:
    """One release of the demo with its own noise."""
    from dpsynth.audits.configuration import audit_one, releases_of

    target = demo()
    rng = np.random.default_rng(seed)
    found = releases_of(target.schema, target.options, rng)
    return audit_one(found, found.names.index(name), trials=trials, steps=8, rng=rng).to_dict()


def sampled(trials: int) -> dict[str, Any]:
    """The demo's whole training: its own noise, sampling probability and number of steps."""
    from dpsynth.audits.configuration import releases_of
    from dpsynth.audits.critic_training import audit_critic

    target = demo()
    rng = np.random.default_rng(5)
    found = releases_of(target.schema, target.options, rng)
    plan = found.plan
    return audit_critic(
        found.layout,
        found.training,
        plan,
        delta=found.delta,
        trials=trials,
        rng=rng,
        steps=plan.steps,
        sampling_prob=plan.sampling_prob,
    ).to_dict()


def path(trials: int, seed: int) -> dict[str, Any]:
    """The base model's path of the demo's table at epsilon 3."""
    from dpsynth.audits.releases import audit_path

    target = demo()
    return audit_path(target.schema, target.options, trials=trials, rng=np.random.default_rng(seed)).to_dict()


def one_reading(seeds: int) -> dict[str, Any]:
    """The demo's tables and marginals, read once with 1,000 canaries."""
    from dpsynth.audits.configuration import releases_of
    from dpsynth.audits.releases import audit_in_one_run, uniform_records
    from dpsynth.privacy.release import GaussianRelease

    target = demo()
    found = releases_of(target.schema, target.options, np.random.default_rng(0))
    made_up = uniform_records(target.schema, 1000, np.random.default_rng(1))
    shown: dict[str, Any] = {}
    for each in found.releases:
        if isinstance(each, GaussianRelease):
            start = time.perf_counter()
            bounds = [
                audit_in_one_run(each, made_up, delta=DELTA, rng=np.random.default_rng(seed))
                for seed in range(seeds)
            ]
            shown[each.name] = {"bounds": bounds, "seconds": (time.perf_counter() - start) / seeds}
    return shown


def black_box(fits: int, jobs: int, folder: Path) -> dict[str, Any]:
    start = time.perf_counter()
    found = demo().audit_tables(fits, canaries=CANARIES, seed=0, jobs=jobs, folder=folder)
    return {**found.to_dict(), "seconds": time.perf_counter() - start}


def fault(name: str, trials: int) -> dict[str, Any]:
    """One mutant of tests/mutants/audit.toml in a copy of the package, audited by that copy."""
    from catalogue import HERE, read_room

    mutant = next(m for m in read_room(HERE / "audit.toml") if m.name == name)
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "dpsynth"
        shutil.copytree(ROOT / "dpsynth", package, ignore=shutil.ignore_patterns("__pycache__"))
        (Path(folder) / "datasets").symlink_to(ROOT / "datasets")  # the data cards
        (package / mutant.file).write_text(mutant.mutate(ROOT / "dpsynth"), encoding="utf-8")
        return _elsewhere(folder, FAULTS[name], trials)


def _elsewhere(folder: str, what: str, trials: int) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__).resolve()), "--child", what, "--trials", str(trials)]
    environment = os.environ | {"PYTHONPATH": folder}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=folder)
    record: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return record


def child(what: str, trials: int) -> dict[str, Any]:
    if what == "critic":
        return critic(trials, 3.0)
    return release({"tables": "base model tables", "edges": "base model edges"}[what], trials)


class Kept:
    """Parts of the benchmark, each in a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        file = self.folder / f"{name}.json"
        if not file.exists():
            start = time.perf_counter()
            file.write_text(json.dumps(make(), indent=1))
            print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
        record: dict[str, Any] = json.loads(file.read_text())
        return record


def number(value: float | None, digits: int = 2) -> str:
    return "inf" if value is None else f"{value:.{digits}f}"


def row(title: str, r: dict[str, Any]) -> str:
    gaussian = r["gaussian_epsilon"]
    free = max(r["epsilon"]["lower"], r["epsilon_by_guesses"])
    return (
        f"| {title} | {r['trials']:,} | {number(r['tv']['value'], 3)} ({number(r['tv']['lower'], 3)}) of "
        f"{number(r['declared']['tv'], 3)} | {number(r['epsilon']['lower'])} | "
        f"{number(r['epsilon_by_guesses'])} | {'' if gaussian is None else number(gaussian['lower'])} | "
        f"{number(r['declared']['epsilon'])} | {number(free)} | {r['verdict']} | {r['seconds']:.0f} |"
    )


HEAD = [
    "| what | trials | TV found (at least) of declared | ε at least, rates | ε at least, guesses | "
    "ε at least, Gaussian curve | ε declared | best without assumption | verdict | seconds |",
    "|---|---:|---|---:|---:|---:|---:|---:|---|---:|",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--fits", type=int, default=700)
    parser.add_argument("--black-box", type=int, default=20)
    parser.add_argument("--sampled", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=3, help="of the critic's short audits")
    parser.add_argument("--paths", type=int, default=3, help="seeds of the base model's path")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--child")
    args = parser.parse_args()
    if args.child:
        print(json.dumps(child(args.child, args.trials)))
        return
    from dpsynth.lazy import load_tensorflow_quietly

    load_tensorflow_quietly()
    kept = Kept(args.out)
    names = ("single-column counts", "base model edges", "base model tables")
    lines = [
        "# Audits of our own releases",
        "",
        f"{date.today().isoformat()}, dpsynth {version('dpsynth')}, TensorFlow {version('tensorflow')}, "
        f"numpy {version('numpy')}, scipy {version('scipy')}; two shared cores, on which other work ran at "
        "the same time, so that seconds are upper ends. `python benchmarks/audit.py` wrote this page.",
        "",
        "All bounds are at 95 %, δ = 1e-5. *Rates* are Clopper and Pearson's on the error rates at a "
        "threshold fixed in advance, *guesses* the bound of Steinke et al. (2023) on the same trials; both "
        "hold for every mechanism. *Gaussian curve* is the bound by the Gaussian trade-off curve through the "
        "rates (Nasr et al. 2023), which holds for mechanisms whose curve is Gaussian, as all of these but "
        "the edges are declared to be.",
        "",
        "## The demo's releases (configs/breast_cancer.yaml, ε = 3), its own noise, white box",
        "",
        *HEAD,
    ]
    for trials in (10_000, args.trials):
        for name in names:
            found = kept(f"{name} {trials}", lambda n=name, t=trials: release(n, t))
            lines.append(row(name, found))
        found = kept(f"critic own {trials}", lambda t=trials: critic(t, None))
        lines.append(row("critic, 8 steps, q = 1", found))
    found = kept(f"critic sampled {args.sampled}", lambda: sampled(args.sampled))
    lines.append(row("critic, all its 200 steps, its own q", found))
    lines += [
        "",
        "Edges are audited at ε = 1 a choice: at the demo's own .03 no number of trials shows anything.",
        "",
        "## Beside an outside audit of the same code",
        "",
        "It had, with 700 fits: base model path at ε = 3, lower bound .61, TV .280 of .281; critic steps "
        "q = 1, z = 3, T = 8: .97 of 4.09.",
        "",
        *HEAD,
    ]
    for seed in range(args.paths):
        found = kept(f"path {args.fits} {seed}", lambda s=seed: path(args.fits, s))
        lines.append(row(f"base model path, seed {seed}", found))
    for trials, seeds in ((700, args.seeds), (10_000, 1), (args.trials, 1)):
        for seed in range(seeds):
            found = kept(f"critic z3 {trials} {seed}", lambda t=trials, s=seed: critic(t, 3.0, seed=s))
            title = f"critic, q = 1, z = 3, T = 8, seed {seed}, canary {found['attained']:.3f} of the bound"
            lines.append(row(title, found))
    lines += ["", "## Faults put into the code (tests/mutants/audit.toml), 10,000 trials each", "", *HEAD]
    for name in FAULTS:
        lines.append(row(name, kept(f"fault {name}", lambda n=name: fault(n, 10_000))))
    shown = kept("one reading", lambda: one_reading(9))
    lines += ["", "## One reading of one table with 1,000 canaries (Steinke et al. 2023)", ""]
    lines += ["| release | ε at least: median of 9 readings, smallest, largest | seconds |", "|---|---|---:|"]
    for name, record in shown.items():
        low, middle, high = np.quantile(record["bounds"], [0, 0.5, 1])
        lines.append(f"| {name} | {middle:.2f}, {low:.2f}, {high:.2f} | {record['seconds']:.0f} |")
    if args.black_box:
        folder = args.out / "black box"
        boxed = kept(f"black box {args.black_box}", lambda: black_box(args.black_box, args.jobs, folder))
        lines += [
            "",
            "## The demo's tables alone (black box, no pass mark)",
            "",
            f"{boxed['right']} of {boxed['guesses']} guesses right in {boxed['fits']} fits of the whole "
            f"generator with {boxed['canaries']} canaries: ε at least {boxed['epsilon_lower']:.2f} of "
            f"{boxed['epsilon']:.2f}, in {boxed['seconds'] / 60:.0f} minutes.",
        ]
    (args.out / "audit.md").write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
