"""The audit that sees tables alone, against generators with a known answer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth.attacks.shadow import audit_table, standing_together
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=0, upper=99),
        Column(name="sex", kind="binary", categories=("f", "m")),
        Column(name="ward", kind="categorical", categories=("a", "b", "c"), missing=True),
    )
)


def base(n=80):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(40, 60, n),
            "sex": rng.choice(["f", "m"], n),
            "ward": rng.choice(np.array(["a", "b", None], dtype=object), n),
        }
    )


ODD = pd.DataFrame({"age": [97], "sex": ["m"], "ward": ["c"]})


def copy(frame, rng):
    return frame


def ignore(frame, rng):
    return base().sample(60, random_state=int(rng.integers(2**31)), ignore_index=True)


def resample(frame, rng):
    return frame.sample(len(frame), replace=True, random_state=int(rng.integers(2**31)), ignore_index=True)


@pytest.mark.slow
def test_a_copy_gives_itself_away():
    """Catches an audit that cannot tell the plainest leak, or contradicts where nothing is proved."""
    found = audit_table(copy, base(), SCHEMA, fits=60, canaries=ODD, delta=1e-5, seed=1)
    assert found.right == found.guesses == 60 and found.epsilon_lower > 2.5 and not found.contradicted
    claimed = audit_table(copy, base(), SCHEMA, fits=60, canaries=ODD, delta=1e-5, epsilon=1.0, seed=1)
    assert claimed.contradicted and all(attempt.internal for attempt in claimed.attempts())


@pytest.mark.slow
def test_of_a_generator_that_ignores_the_data_nothing_is_found():
    """Catches guesses that know their coins: over many audits the bound is above 0 in 5 % at most."""
    found = [
        audit_table(ignore, base(), SCHEMA, fits=20, canaries=ODD, delta=0.0, seed=seed).epsilon_lower
        for seed in range(6)
    ]
    assert sum(bound > 0 for bound in found) <= 2


def test_several_canaries_and_a_leak_that_is_partial():
    """Catches canaries that are compared with each other instead of with themselves."""
    found = audit_table(resample, base(), SCHEMA, fits=60, canaries=4, delta=0.0, seed=2)
    assert found.guesses == 240 and 0.6 < found.right / found.guesses < 1.0 and found.epsilon_lower > 0.3


def test_score_by_hand():
    """Catches pairs that are not counted together, and a missing value that agrees with all."""
    table = pd.DataFrame({"age": [97, 96, 10], "sex": ["m", "f", "m"], "ward": ["c", "c", None]})
    table = SCHEMA.conform(table).frame
    canaries = SCHEMA.conform(ODD).frame
    together = np.array([1, 2, 1])  # age and sex, age and ward, sex and ward
    expected = np.log((together + 0.5) / 4).mean()
    assert standing_together(canaries, table, SCHEMA)[0] == pytest.approx(expected)
