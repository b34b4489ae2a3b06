"""The entry: which measures there are, what they say of copies, and that no odd table stops it."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from compared import conformed

from dpsynth.evaluation import neighbour_inference as evaluator
from dpsynth.evaluation.neighbour_inference import neighbours
from dpsynth.evaluation.neighbours import METRICS, adversarial_accuracy
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import Progress, distance_features, silent
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=0, upper=100),
        Column(name="crea", kind="continuous", lower=0, upper=10, missing=True),
        Column(name="sex", kind="binary", categories=("F", "M")),
    )
)


def table(n: int, rng: np.random.Generator) -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "age": rng.integers(0, 101, n),
            "crea": np.where(rng.random(n) < 0.2, np.nan, rng.random(n) * 10),
            "sex": rng.choice(["F", "M"], n),
        }
    )
    return SCHEMA.conform(frame).frame


def values(
    frames: tuple[pd.DataFrame | None, ...],
    seed: int = 0,
    progress: Progress = silent,
    **settings: object,
) -> dict[str, float]:
    tables = conformed(*frames, SCHEMA)
    found = neighbours(tables, Settings.of(**settings), np.random.default_rng(seed), progress)
    for measure in found.measures:
        assert measure.internal and measure.group == "Nearest neighbours" and measure.detail
        assert measure.value is None or type(measure.value) is float
    json.dumps([asdict(measure) for measure in found.measures], allow_nan=False)
    return {measure.name: measure for measure in found.measures}


def test_the_measures_and_their_values() -> None:
    """Would catch a renamed measure, exchanged tables, or the wrong sign of the privacy loss."""
    rng = np.random.default_rng(0)
    made, train, test = (table(60, rng) for _ in range(3))
    found = values((made, train, test))
    sides = [f"nn_accuracy_{t}{side}" for t in ("train", "test") for side in ("", "_real", "_synthetic")]
    tests = ["nn_same_distribution_p", "nn_apart_p", "nn_copies_p", "nn_train_test_p"]
    assert list(found) == [*sides, "privacy_loss", *tests]
    points = [distance_features(frame, SCHEMA) for frame in (made, train, test)]
    direct = {
        "train": adversarial_accuracy(points[1], points[0]),
        "test": adversarial_accuracy(points[2], points[0]),
    }
    for name, result in direct.items():
        assert found[f"nn_accuracy_{name}"].value == pytest.approx(result.aa, abs=1e-12)
        assert found[f"nn_accuracy_{name}_real"].value == pytest.approx(result.aa_real, abs=1e-12)
        assert found[f"nn_accuracy_{name}_synthetic"].value == pytest.approx(result.aa_synthetic, abs=1e-12)
    loss = found["privacy_loss"]
    assert loss.value == pytest.approx(direct["test"].aa - direct["train"].aa, abs=1e-12)
    assert loss.lower < loss.value < loss.upper
    assert "60 test" in found["nn_same_distribution_p"].detail
    assert "60 training" in found["nn_copies_p"].detail


def test_copies_are_caught() -> None:
    """Would catch a bootstrap of the training table passing for a synthetic one."""
    rng = np.random.default_rng(1)
    train, test = table(150, rng), table(150, rng)
    made = train.sample(150, replace=True, random_state=0)
    found = values((made, train, test))
    assert found["privacy_loss"].lower > 0.1
    assert found["nn_copies_p"].value == 1 / 201
    assert found["nn_accuracy_train"].upper < 0.5 < found["nn_accuracy_test"].upper


def test_without_test_records() -> None:
    """Would catch a privacy loss without test records, or a test that does not say against what."""
    rng = np.random.default_rng(2)
    found = values((table(40, rng), table(50, rng), None))
    assert "privacy_loss" not in found and "nn_accuracy_test" not in found
    assert "40 training" in found["nn_same_distribution_p"].detail


def test_sizes_are_equal_and_limited() -> None:
    """Would catch unequal parts, or a privacy loss between accuracies at different sizes."""
    rng = np.random.default_rng(3)
    made, train, test = table(50, rng), table(90, rng), table(20, rng)
    found = values((made, train, test))
    assert "against 50 training" in found["nn_accuracy_train"].detail
    assert "against 20 test" in found["nn_accuracy_test"].detail
    assert "against 20 test minus against 20 training" in found["privacy_loss"].detail
    small = values((made, train, test), records=10)
    assert all("10 t" in measure.detail for measure in small.values())


@pytest.mark.parametrize("metric", list(METRICS))
def test_every_metric(metric: str) -> None:
    """Would catch a metric that does not reach the distances."""
    rng = np.random.default_rng(4)
    made, train = table(40, rng), table(40, rng)
    chosen = METRICS[metric]
    direct = adversarial_accuracy(chosen.encode(train, SCHEMA), chosen.encode(made, SCHEMA), metric=chosen)
    found = values((made, train, None), metric=metric)
    assert found["nn_accuracy_train"].value == pytest.approx(direct.aa, abs=1e-12)


@pytest.fixture
def few_permutations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluator, "PERMUTATIONS", 5)


@pytest.mark.usefixtures("few_permutations")
@pytest.mark.parametrize("n", [2, 3, 7, 20])
@pytest.mark.parametrize("metric", list(METRICS))
def test_odd_tables_give_numbers_or_reasons(n: int, metric: str) -> None:
    """Would catch a traceback or NaN on tiny, constant, all-missing or equal tables."""
    rng = np.random.default_rng(n)
    usual = table(n, rng)
    constant = usual.assign(age=50, crea=1.0, sex="F")
    empty = usual.assign(crea=np.nan)
    for frames in (
        (usual, usual, usual),
        (constant, constant, usual),
        (empty, empty, None),
        (constant, usual, empty),
    ):
        frames = tuple(None if frame is None else SCHEMA.conform(frame).frame for frame in frames)
        found = values(frames, metric=metric)
        measure = found["nn_accuracy_train"]
        assert 0.0 <= measure.value <= 1.0
        assert (measure.lower is None) == (n < 8)
        assert ("No interval" in measure.detail) == (n < 8)


def test_the_seed_decides_and_progress_ends() -> None:
    """Would catch hidden randomness, or a bar that never reaches its end."""
    rng = np.random.default_rng(5)
    frames = table(60, rng), table(60, rng), table(30, rng)
    told: list[float] = []
    first = values(frames, seed=7, records=25, progress=told.append)
    assert first == values(frames, seed=7, records=25) != values(frames, seed=8, records=25)
    assert told == sorted(told) and 0.6 < told[-1] <= 1.0
