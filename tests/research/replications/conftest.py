"""A study that is run in a moment: four columns of a table, one classifier, no critic."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from few_columns import few_columns

from dpsynth.evaluation.results import Findings
from dpsynth.research.replications import trial
from dpsynth.research.replications.protocol import Protocol
from dpsynth.research.replications.running import run_study

SMALL: dict[str, Any] = {
    "name": "small",
    "title": "Cell nuclei",
    "citation": "nobody",
    "question": "Which nuclei are malignant?",
    "dataset": "breast_cancer",
    "seeds": 1,
    "epsilons": [3.0],
    "model": {
        "delta": 1e-5,
    },
    "classifiers": ["logistic_regression"],
    "studies": ["diagnosis ~ mean_texture + mean_smoothness"],
}


@pytest.fixture(scope="module", autouse=True)
def _narrow() -> Iterator[None]:
    with few_columns():
        yield


@pytest.fixture(autouse=True)
def _no_neighbours(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearest neighbours take a second a table; the finished study has them."""
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.setattr(trial, "neighbours", lambda *given: Findings())


@pytest.fixture
def small() -> Protocol:
    return Protocol.from_dict(SMALL)


@pytest.fixture(scope="module")
def _finished(_narrow: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("finished") / "study"
    run_study(Protocol.from_dict(SMALL), out)
    return out


@pytest.fixture
def finished(_finished: Path, tmp_path: Path) -> Path:
    """The folder of a study that was run, of which nothing is missing."""
    return Path(shutil.copytree(_finished, tmp_path / "study"))
