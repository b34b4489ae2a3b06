"""A study that is run in a moment: four columns of a table, one classifier, no critic."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpsynth import datasets
from dpsynth.evaluation.records import Findings
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
    "model": {"delta": 1e-5, "base_model": "tree", "pairwise_statistics": False, "training_steps": 0},
    "classifiers": ["logistic_regression"],
    "studies": ["diagnosis ~ mean_texture + mean_smoothness"],
}
COLUMNS = ("mean_texture", "mean_smoothness", "worst_area", "diagnosis")


@pytest.fixture(scope="module", autouse=True)
def _few_columns() -> Iterator[None]:
    """Thirty columns take seconds a fit, and no test here is about them."""
    card, load = datasets.card, datasets.load

    def narrow_card(name: str) -> Any:
        found = card(name)
        return (
            found.model_copy(update={"table": found.table.select(COLUMNS)})
            if name == "breast_cancer"
            else found
        )

    def narrow(name: str) -> datasets.Table:
        table = load(name)
        if name != "breast_cancer":
            return table
        return replace(table, frame=table.frame[list(COLUMNS)].copy(), schema=table.schema.select(COLUMNS))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets, "card", narrow_card)
        patch.setattr(datasets, "load", narrow)
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
def _finished(_few_columns: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("finished") / "study"
    run_study(Protocol.from_dict(SMALL), out)
    return out


@pytest.fixture
def finished(_finished: Path, tmp_path: Path) -> Path:
    """The folder of a study that was run, of which nothing is missing."""
    return Path(shutil.copytree(_finished, tmp_path / "study"))
