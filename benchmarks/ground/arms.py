"""The arms of a comparison, and one run of one arm.

An arm is a mapping of a ``generator`` and its options; what it does not name, ``epsilon`` among it,
comes from the run. The arm "real" has no parameters: real records stand in the place of a synthetic table.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.ground.headroom import WHOLE, measure
from benchmarks.ground.structures import STRUCTURES
from benchmarks.ground.tables import Ground, of_registry, of_structure
from dpsynth.errors import InputError
from dpsynth.files.text import read_yaml
from dpsynth.synthesis.generators import options_of, unfitted

Parameters = Mapping[str, Any]

REAL, NOISE_FREE, PRIOR, DEFAULT = "real", "noise-free base model", "base_model", "default"
#: of every comparison
ARMS: dict[str, Parameters | None] = {
    REAL: None,
    NOISE_FREE: {"epsilon": None, "statistics": {"pairwise_statistics": False}},
    PRIOR: {"statistics": {"pairwise_statistics": False}},
    DEFAULT: {},
}


def read_arms(path: str | Path) -> dict[str, Parameters]:
    """Further arms from a YAML file: a mapping of names to parameters.

    Raises
    ------
    InputError
        If it is no such mapping, a name is one of :data:`ARMS`, or a parameter is wrong.
    """

    def build(data: Any) -> dict[str, Parameters]:
        if not isinstance(data, dict) or not all(isinstance(entry, dict) for entry in data.values()):
            raise InputError("a mapping of arms to mappings of parameters is required")
        for name, parameters in data.items():
            if name in ARMS:
                raise InputError(f"{name!r} is an arm of every comparison; choose another name")
            options_of(**parameters)
        return {str(name): parameters for name, parameters in data.items()}

    return read_yaml(path, build, error=InputError)


@dataclass(frozen=True)
class Run:
    """One arm on one table.

    Parameters
    ----------
    table : str
        Of the proving ground or of the registry.
    n : int or None
        Training records; None for a registry table, which has its own number.
    arm : str
    parameters : mapping or None
        None: real records.
    epsilon : float or None
        None for arms that it does not touch.
    seed : int
        Of the draws of a structure, of the fit and of the measures.
    """

    table: str
    n: int | None
    arm: str
    parameters: Parameters | None
    epsilon: float | None
    seed: int

    @property
    def label(self) -> str:
        """A file name; an arm whose parameters change is another run."""
        text = json.dumps(self.parameters, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:6]
        arm = "".join(c if c.isalnum() else "-" for c in self.arm)
        parts = [self.table, f"n{self.n}" if self.n else "", f"eps{self.epsilon:g}" if self.epsilon else ""]
        return "_".join([part for part in parts if part] + [arm, digest, f"seed{self.seed}"])

    @property
    def ground(self) -> Ground:
        """The table."""
        return of_registry(self.table) if self.n is None else of_structure(self.table, self.n, self.seed)


def runs(
    tables: Iterable[str],
    sizes: Iterable[int],
    epsilons: Iterable[float],
    seeds: int,
    arms: Mapping[str, Parameters | None],
) -> dict[str, Run]:
    """All runs by label, table by table; an arm that says its own epsilon runs once."""
    found = []
    for table in tables:
        for n in sizes if table in STRUCTURES else (None,):
            for seed in range(seeds):
                for arm, parameters in arms.items():
                    free = parameters is None or "epsilon" in parameters
                    for epsilon in (None,) if free else epsilons:
                        found.append(Run(table, n, arm, parameters, epsilon, seed))
    return {run.label: run for run in found}


def carried_out(run: Run) -> dict[str, Any]:
    """One run: its description and its figures."""
    ground = run.ground
    seconds = None
    if run.parameters is None:
        frame = ground.real
    else:
        frame, seconds = generate(ground, run.parameters, epsilon=run.epsilon, seed=run.seed)
    start = time.perf_counter()
    figures = measure(frame, ground, seed=run.seed)
    return {
        "table": run.table,
        "n": len(ground.train),
        "columns": len(ground.schema),
        "epsilon": run.epsilon,
        "arm": run.arm,
        "parameters": run.parameters,
        "seed": run.seed,
        "figures": figures,
        "seconds": seconds,
        "seconds of measuring": time.perf_counter() - start,
    }


def generate(
    ground: Ground, parameters: Parameters, *, epsilon: float | None, seed: int
) -> tuple[pd.DataFrame, float]:
    """A synthetic table, of at most as many records as `measure` reads, and the seconds of its fit."""
    model = unfitted(options_of(**{"epsilon": epsilon, "random_state": seed, **parameters}))
    start = time.perf_counter()
    model.fit(ground.train, schema=ground.schema)
    seconds = time.perf_counter() - start
    return model.sample(min(len(ground.train), WHOLE), random_state=seed), seconds
