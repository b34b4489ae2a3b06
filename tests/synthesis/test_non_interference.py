"""What must not reach what is released: other records, exact numbers, and noise that was drawn before."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from chosen_statistics import dp_marginals

import dpsynth
from dpsynth import DPMarginals
from dpsynth.privacy.release import GaussianRelease
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="lab", kind="continuous", lower=0, upper=10),
        Column(name="dose", kind="continuous", lower=0, upper=500, missing=True),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="died", kind="binary", categories=(0, 1)),
    ),
    outcome="died",
    n_public=400,
)


def cohort(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    lab = rng.uniform(0, 10, n)
    return pd.DataFrame(
        {
            "lab": lab,
            "dose": np.where(rng.random(n) < 0.1, np.nan, 40 * lab + rng.uniform(0, 100, n)),
            "sex": rng.choice(["F", "M"], n),
            "died": (rng.random(n) < lab / 20).astype(int),
        }
    )


def fitted(**options: Any) -> DPMarginals:
    settings = {"epsilon": 3.0, "delta": 1e-5, "pairwise_statistics": True}
    return dp_marginals(**settings | options).fit(cohort(), schema=SCHEMA)


def stored(folder: Path) -> list[np.ndarray]:
    """All arrays of a model's folder, as vectors."""
    arrays: list[np.ndarray] = []
    for path in sorted(folder.rglob("*.np[yz]")):
        found = np.load(path)
        arrays += [found[name] for name in found] if path.suffix == ".npz" else [found]
    return [array.ravel() for array in arrays if array.dtype.kind in "fiu"]


@pytest.mark.slow
def test_a_model_holds_no_value_and_no_exact_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell of a record, or a sum before its noise, that is saved beside what is released."""
    exact: list[np.ndarray] = []
    measure = GaussianRelease.measure

    def watched(self: Any, records: Any, rng: np.random.Generator) -> Any:
        arrays = zip(self.query(records), self.steps, strict=False)
        exact.extend(np.ravel(array) * step for array, step in arrays)
        return measure(self, records, rng)

    monkeypatch.setattr(GaussianRelease, "measure", watched)
    model = fitted()
    model.save(tmp_path / "model")
    saved, frame = stored(tmp_path / "model"), cohort()
    assert sum(map(len, saved)) > 500 and len(exact) > 8
    values = frame[["lab", "dose"]].to_numpy().ravel()
    values = values[~np.isnan(values)]
    for array in saved:
        assert not np.isin(array.astype(np.float64), [*values, *values.astype(np.float32)]).any()
    # shares, as a model has them: counts over the number of records, and means
    numbers = np.sort(
        np.concatenate([array.astype(np.float64) for array in saved if array.dtype.kind == "f"])
    )
    for sums in exact:
        shares = sums[sums != 0] / len(frame)
        if len(shares) > 4:
            near = np.clip(np.searchsorted(numbers, shares - 1e-8), 0, len(numbers) - 1)
            assert (abs(numbers[near] - shares) < 2e-8).mean() < 0.2
    text = "".join(
        path.read_text(encoding="utf-8") for path in (tmp_path / "model").rglob("*") if path.suffix == ".json"
    )
    assert text and not [value for value in values if repr(float(value)) in text]


def noise_of(model: DPMarginals) -> np.ndarray:
    """Released numbers of one table: equal for two fits only if their noise is."""
    return np.concatenate([np.ravel(p) for p in model.model_.encoder.marginals.probabilities])


@pytest.mark.slow
@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
)
def test_copies_of_a_model_draw_noise_of_their_own(copied: Callable[[DPMarginals], DPMarginals]) -> None:
    """A generator that is kept with a model: two copies then draw the same noise for two tables."""
    model = fitted()
    assert b"AESCounter" not in pickle.dumps(model)
    one, two = copied(model), copied(model)
    released = [noise_of(each.fit(cohort(), schema=SCHEMA)) for each in (one, two)]
    assert (released[0] != released[1]).mean() > 0.5


_FORKS = """
import os
from dpsynth.privacy.noise import secure_generator

drawn = {secure_generator().bytes(32)}  # before the forks
for _ in range(4):
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, secure_generator().bytes(32))
        os._exit(0)
    drawn.add(os.read(read, 32))
    os.wait()
print(len(drawn))
"""


def test_forked_processes_draw_noise_of_their_own(tmp_path: Path) -> None:
    """A generator of the whole process: its children then go on with the same stream."""
    home = {**os.environ, "PYTHONPATH": str(Path(dpsynth.__file__).parents[1])}
    # in a process without what stands in for the operating system's randomness in tests
    told = subprocess.run(
        [sys.executable, "-c", _FORKS], env=home, cwd=tmp_path, stdout=subprocess.PIPE, check=True
    )
    assert int(told.stdout) == 5
