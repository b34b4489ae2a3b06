"""Figures of a table of known structure."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.ground.measure import measure
from benchmarks.ground.tables import Ground, of_structure
from dpsynth.evaluation.discriminator import discriminate


@pytest.fixture(scope="module")
def ground() -> Ground:
    return of_structure("xor", 3000, 0)


@pytest.mark.slow
def test_real_records_are_measured_as_real(ground):
    """A test table that is not of the population, or an AUC of the wrong class."""
    found = measure(ground.real, ground, parts=1500)
    assert not [name for name, value in found.items() if not np.isfinite(value)]
    assert found["structure"] > 0.95 and found["AUC (boosting)"] > 0.8
    assert 0.45 < found["AUC (logistic)"] < 0.55 and 0.45 < found["discriminator"] < 0.55
    assert 0.45 < found["NN accuracy"] < 0.55 and max(found["TVD"], found["correlation error"]) < 0.03
    assert found["outcome error"] < 0.04
    assert found == measure(ground.real, ground, parts=1500)


@pytest.mark.slow
def test_a_table_of_independent_columns_is_measured_as_such(ground):
    """Figures that do not see what is lacking."""
    rng = np.random.default_rng(0)
    made = ground.real.apply(lambda column: rng.permutation(column))
    made["outcome"] = np.where(rng.random(len(made)) < 0.8, "yes", "no")
    found = measure(made, ground, parts=1500)
    assert abs(found["structure"]) < 0.1 and 0.4 < found["AUC (boosting)"] < 0.6
    assert found["discriminator"] > 0.7 and found["NN accuracy"] > 0.55
    assert found["correlation error"] > 0.04
    assert found["outcome error"] == pytest.approx(0.3, abs=0.03)


@pytest.mark.slow
def test_the_discriminator_is_that_of_the_package(ground):
    """Another classifier, or categories that it takes for numbers."""
    made = ground.real.assign(distractor_5=ground.real["distractor_5"].iloc[::-1].to_numpy())
    mine = measure(made, ground, parts=3000)["discriminator"]
    theirs = discriminate(ground.test, made, ground.schema, rng=np.random.default_rng(1), limit=3000)
    assert theirs.auc["hist_gradient_boosting"].value > 0.6
    assert mine == pytest.approx(theirs.auc["hist_gradient_boosting"].value, abs=0.03)


def test_draws_of_a_structure_are_independent_and_repeatable(ground):
    """A test table that holds training records, or another one for each arm."""
    assert not ground.train.head(50).equals(ground.real.head(50))
    assert not ground.train.head(50).equals(ground.test.head(50))
    assert ground.train.equals(of_structure("xor", 3000, 0).train)
    assert ground.schema.n_public == len(ground.train) == len(ground.real) == 3000
