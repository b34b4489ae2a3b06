"""The critic of our own synthesizer as a score of records."""

from __future__ import annotations

import numpy as np
import pytest
from critic_score import CriticTrainer

from dpsynth import DPWGANGP, DPMarginals, TrainingSettings, datasets
from dpsynth.errors import InputError
from dpsynth.research.ltu.generators import attack_scores

TRAINS = {"steps": 20, "training": TrainingSettings()}


def small_table():
    table = datasets.load("breast_cancer")
    names = [*table.schema.names[:4], table.schema.outcome]
    schema = table.schema.select(dict.fromkeys(names))
    return table.frame[list(schema.names)], schema


@pytest.mark.slow
def test_the_synthesizer_that_is_attacked_is_our_own():
    """Catches a critic of other noise, other streams or another cost than DPWGANGP's own fit."""
    frame, schema = small_table()
    frame = frame.iloc[:200].reset_index(drop=True)
    estimator = DPWGANGP(epsilon=3.0, delta=1e-5, **TRAINS)
    score = CriticTrainer(estimator, schema)(frame, 7)
    own = DPWGANGP(epsilon=3.0, delta=1e-5, random_state=7, **TRAINS)
    own.fit(frame, schema=schema.with_n_public(200))
    assert score.ledger.epsilon(1e-5) == pytest.approx(own.ledger_.epsilon(1e-5))
    assert score.ledger.epsilon(1e-5) <= 3.0
    for ours, theirs in zip(score.model.sampler.weights, own.model_.sampler.weights, strict=True):
        np.testing.assert_allclose(ours[0], theirs[0], atol=1e-6)
    assert score(frame).shape == (200,) and np.std(score(frame)) > 0
    np.testing.assert_array_equal(score(frame), score(frame))


@pytest.mark.slow
@pytest.mark.usefixtures("eager_steps")
def test_the_critic_is_attacked():
    """Catches a score of the wrong side or of the wrong records; a private critic must not give them away."""
    frame, schema = small_table()
    trainer = CriticTrainer(DPWGANGP(epsilon=1.0, delta=1e-5, **TRAINS), schema)
    found = attack_scores(trainer, frame, records=250, seeds=1)
    only = found.trainings[0].pairwise
    assert only.lower <= 0.5 + 0.05
    assert len(found.trainings[0].individual) == 250


def test_a_synthesizer_without_a_critic_is_refused():
    """Catches a prior alone that is attacked as a critic."""
    frame, schema = small_table()
    with pytest.raises(InputError, match="DPWGANGP"):
        CriticTrainer(DPMarginals(epsilon=1.0, delta=1e-5), schema)(frame, 0)
