"""The utility suite: every arm on every table at every epsilon, rounds kept one by one.

Seed 0 of everything comes first. Further seeds follow for whatever took at most :data:`SLOW` seconds and
was not stopped at the time limit; a failure of another kind is tried again with each seed.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

import dpsynth
from benchmarks.peers.arms import ARMS, Arm
from benchmarks.peers.environments import Environments
from benchmarks.peers.measures import MEASURES, measured, real
from benchmarks.peers.processes import run
from benchmarks.peers.tables import as_numbers, from_numbers, public_facts, split
from dpsynth.datasets import Table
from dpsynth.errors import DpsynthError, InputError
from dpsynth.files.storage import carry_out
from dpsynth.table.schema import Schema

FITS = Path(__file__).parent / "fits"
#: an arm whose first fit took more seconds of processor time has one seed
SLOW = 300.0
REAL = "real records"
#: what every round depends on beside its own label; a folder of another protocol is refused
PROTOCOL = {"split": "half, seed 0", "delta": "n_public^-1.5", "cells": 32, "version": 2}


@dataclass(frozen=True)
class Task:
    """One fit: who, on which table, at which epsilon, with which seed."""

    table: str
    arm: Arm | None
    epsilon: float
    seed: int

    @property
    def label(self) -> str:
        """A name for its file."""
        name = REAL if self.arm is None else self.arm.name
        words = f"{self.table} {name} {self.epsilon:g} {self.seed}".replace(":", "").replace(",", "")
        return words.replace(" ", "-")


def suite(
    folder: Path,
    environments: Environments,
    *,
    tables: Sequence[str],
    arms: Sequence[Arm],
    epsilons: Sequence[float],
    seeds: int,
    limit: float,
) -> pd.DataFrame:
    """Carry out what is missing in the folder, and return one row a fit, all that the folder holds.

    Raises
    ------
    InputError
        If the folder holds rounds of another protocol, or of an arm that had other options then.
    """
    work = partial(_round, environments=environments, limit=limit)
    firsts = [Task(table, None, 0.0, 0) for table in tables]
    firsts += [Task(table, arm, epsilon, 0) for table in tables for epsilon in epsilons for arm in arms]
    done = _carried(work, firsts, folder)
    later = [
        Task(task.table, task.arm, task.epsilon, seed)
        for seed in range(1, seeds)
        for task in firsts
        if task.arm is not None and _again(done[task.label])
    ]
    _carried(work, [*firsts, *later], folder)
    return collected(folder)


def collected(folder: Path) -> pd.DataFrame:
    """One row a fit, all that the folder holds."""
    records = [json.loads(path.read_text()) for path in sorted((folder / "rounds").glob("*.json"))]
    frame = pd.DataFrame([{**record, **record.get("measures", {})} for record in records])
    order = {name: number for number, name in enumerate([REAL, *ARMS])}
    keys = frame["arm"].map(lambda name: order.get(name, len(order)))
    return frame.assign(order=keys).sort_values(["table", "epsilon", "order", "seed"]).drop(columns="order")


def _carried(work: Any, tasks: Sequence[Task], folder: Path) -> dict[str, dict[str, Any]]:
    labels = {task.label: task for task in tasks}
    _refuse_other_options(labels, folder)
    return carry_out(work, labels, folder=folder, settings=PROTOCOL, on_round=_told)


def _refuse_other_options(tasks: Mapping[str, Task], folder: Path) -> None:
    for label, task in tasks.items():
        path = folder / "rounds" / f"{label}.json"
        if task.arm is None or not path.is_file():
            continue
        if json.loads(path.read_text())["options"] != json.loads(json.dumps(dict(task.arm.options))):
            raise InputError(f"{path} was made with other options of {task.arm.name!r}; remove it")


def _again(record: Mapping[str, Any]) -> bool:
    stopped = (record["failed"] or "").startswith(("stopped", "no registry", "not installed"))
    return not stopped and (record.get("cpu_seconds") or 0.0) <= SLOW


def _told(done: int, total: int, label: str, seconds: float) -> None:
    print(f"{done}/{total} {label}: {seconds:.0f} s", file=sys.stderr, flush=True)


def _round(task: Task, *, environments: Environments, limit: float) -> dict[str, Any]:
    train, test = split(task.table)
    if task.arm is None:
        return _described(task) | {"measures": real(train, test), "n": len(train.frame)}
    record, synthetic = synthesised(task, train, environments=environments, limit=limit)
    if synthetic is None:
        return record
    try:
        return record | {"measures": measured(synthetic, train, test)}
    except (ValueError, DpsynthError) as problem:
        return record | {"failed": f"its table cannot be evaluated: {problem}"}


def _described(task: Task) -> dict[str, Any]:
    return {
        "table": task.table,
        "arm": REAL if task.arm is None else task.arm.name,
        "epsilon": task.epsilon,
        "seed": task.seed,
        "seconds": None,
        "cpu_seconds": None,
        "peak_mib": None,
        "failed": None,
    }


def synthesised(
    task: Task, train: Table, *, environments: Environments, limit: float
) -> tuple[dict[str, Any], pd.DataFrame | None]:
    """Fit and sample by the task's arm, and return what to keep of it and the synthetic table.

    There is no table where ``failed`` says why. Peers are told the public facts of the columns of ``train``
    and no rules. Our arms have its whole schema.
    """
    assert task.arm is not None
    record = _described(task)
    record |= {"options": dict(task.arm.options), "code": _code(), "day": str(datetime.now(UTC).date())}
    record["machine"] = f"{platform.machine()}, Python {platform.python_version()}"
    environment = environments[task.arm.environment]
    if environment.python is None:
        return record | {"failed": environment.failed}, None
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        write_task(task, train, place)
        command = [environment.python, str(FITS / task.arm.script), name]
        ended = run(command, folder=place, limit=limit, python_path=environment.python_path)
        if ended.failed is not None:
            return record | {"failed": ended.failed, "seconds": ended.seconds}, None
        record |= json.loads((place / "result.json").read_text())
        numbers = pd.read_csv(place / "synthetic.csv")
    try:
        return record, from_numbers(numbers, train.schema)
    except ValueError as problem:
        return record | {"failed": f"its table cannot be evaluated: {problem}"}, None


def write_task(task: Task, train: Table, place: Path) -> None:
    """Write what a fit script reads: ``train.csv`` and ``task.json``, see ``fits/harness.py``."""
    assert task.arm is not None
    n = train.schema.n_public or len(train.frame)
    as_numbers(train.frame, train.schema).to_csv(place / "train.csv", index=False)
    told = {
        "epsilon": task.epsilon,
        "delta": n**-1.5,
        "n": n,
        "rows": len(train.frame),
        "seed": task.seed,
        "options": dict(task.arm.options),
        "columns": public_facts(train.schema),
        "outcome": _short_name(train.schema),
    }
    if task.arm.environment == "ours":
        told["schema"] = train.schema.to_dict()
    (place / "task.json").write_text(json.dumps(told))


def _short_name(schema: Schema) -> str | None:
    facts = zip(schema.names, public_facts(schema), strict=True)
    return next((told["name"] for name, told in facts if name == schema.outcome), None)


def _code() -> str:
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip() or dpsynth.__version__


__all__ = ["MEASURES", "Task", "collected", "suite", "synthesised", "write_task"]
