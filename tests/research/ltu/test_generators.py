"""Generators attacked through a score."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from dpsynth.errors import DataError, RunError
from dpsynth.research.ltu.generators import attack_scores


def frame(n=60):
    return pd.DataFrame({"x": np.random.default_rng(0).normal(size=n)})


def remembers(train, seed):
    return lambda asked: asked["x"].isin(train["x"]).astype(float)


def knows_nothing(train, seed):
    return lambda asked: np.zeros(len(asked))


def forgets(train, seed):
    return lambda asked: -asked["x"].isin(train["x"]).astype(float)


def test_a_score_that_remembers():
    """Catches a score that is taken for larger on the reserved side: 1, 1/2 and 0."""
    found = [attack_scores(t, frame(), records=30, seeds=2) for t in (remembers, knows_nothing, forgets)]
    assert [one.accuracy.value for one in found] == [1.0, 0.5, 0.0]
    assert found[0].trainings[0].per_record.value == 1.0
    (attempt,) = found[0].attempts()
    assert attempt.internal and attempt.found.value == 1.0
    json.dumps(found[0].to_dict())


def test_each_training_has_other_records():
    """Catches seeds that all train on the same half, whose median says nothing of other halves."""
    seen = []

    def trainer(train, seed):
        seen.append(frozenset(train["x"]))
        return remembers(train, seed)

    attack_scores(trainer, frame(), records=20, seeds=3)
    assert len(set(seen)) == 3 and all(len(one) == 20 for one in seen)


def test_trainings_are_kept(tmp_path):
    """Catches trainings that are repeated, or that come back otherwise than they were."""
    first = attack_scores(remembers, frame(), records=20, seeds=2, folder=tmp_path / "x")

    def never(train, seed):
        raise AssertionError

    again = attack_scores(never, frame(), records=20, seeds=2, folder=tmp_path / "x")
    assert again == first


def test_a_proved_bound_is_set_beside():
    """Catches an attempt that does not contradict a bound which it passes."""
    found = attack_scores(remembers, frame(), records=30, seeds=2, proved=0.6)
    assert found.attempts()[0].contradicts


def test_bad_scores_are_told():
    """Catches a score of another length, or NaN, that is counted."""
    with pytest.raises(RunError, match="one number a record"):
        attack_scores(lambda train, seed: lambda asked: [1.0], frame(), records=20, seeds=1)
    with pytest.raises(DataError, match="at most 30"):
        attack_scores(remembers, frame(), records=31)
