"""A study that is run in a second: a table that scikit-learn carries, one classifier, no critic."""

from __future__ import annotations

from typing import Any

import pytest

from dpsynth.research.replications.protocol import Protocol

SMALL: dict[str, Any] = {
    "name": "small",
    "title": "Cell nuclei",
    "citation": "nobody",
    "question": "Which nuclei are malignant?",
    "dataset": "breast_cancer",
    "seeds": 1,
    "epsilons": [3.0],
    "model": {"delta": 1e-5, "prior": "tree", "training_steps": 0},
    "classifiers": ["logistic_regression"],
    "studies": ["diagnosis ~ mean_texture + mean_smoothness"],
}


@pytest.fixture
def small() -> Protocol:
    return Protocol.from_dict(SMALL)
