"""The pair of mixtures of a replaced record: against quadrature, another library, and other neighbours."""

import json
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.accounting import REPLACE_ONE, Profile
from dpsynth.accounting.atoms import ReplacedGaussianAtom
from dpsynth.accounting.events import training_event

STORED = json.loads((Path(__file__).parent / "replace_one_values.json").read_text())


def mixture(x, z, q, mean):
    return (1 - q) * mpmath.npdf(x, 0, z) + q * mpmath.npdf(x, mean, z)


@pytest.mark.parametrize(("z", "q"), [(1.1, 0.01), (0.4, 0.3), (3.0, 0.9)])
def test_divergence_by_quadrature(z, q):
    """A sign, a direction or the sampling lost in the closed form of delta or of the inverse loss."""
    atom = ReplacedGaussianAtom(z, q)
    for epsilon in (-0.5, 0.0, 0.02, 0.7):
        start = float(atom.output(np.array(epsilon)))
        exact = mpmath.quad(
            lambda x, e=epsilon: mixture(x, z, q, 1) - mpmath.exp(e) * mixture(x, z, q, -1),
            [start, start + z, start + 4 * z, start + 12 * z, start + 40 * z],
        )
        assert float(atom.deltas(np.array(epsilon))) == pytest.approx(float(exact), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("row", STORED["values"], ids=lambda r: f"z{r['noise_multiplier']}-T{r['steps']}")
def test_agrees_with_a_library_that_knows_replacement(row):
    """The add/remove figure under replace-one, as in dp_accounting 0.4 (google/differential-privacy#378)."""
    event = training_event(row["noise_multiplier"], row["sampling_prob"], row["steps"])
    profile = Profile([event], adjacency=REPLACE_ONE)
    assert profile.tv() == pytest.approx(row["tv"], rel=1e-4)
    assert profile.delta(0.5) == pytest.approx(row["delta_at_half"], rel=1e-4)
    assert profile.epsilon(1e-5) == pytest.approx(row["epsilon_at_1e-5"], rel=1e-4)
    assert profile.tv() > 1.2 * Profile([event]).tv()


@settings(max_examples=25, deadline=None)
@given(
    z=st.floats(0.3, 3.0),
    q=st.floats(0.01, 0.95),
    length=st.floats(0.0, 1.0),
    other=st.floats(0.0, 1.0),
    angle=st.floats(0.0, math.pi),
    epsilon=st.floats(0.0, 1.5),
)
def test_no_other_pair_of_records_is_worse(z, q, length, other, angle, epsilon):
    """A pair that does not dominate: any g, g' in the unit disc, by two-dimensional quadrature."""
    g = np.array([length, 0.0])
    h = other * np.array([math.cos(angle), math.sin(angle)])
    axis = np.linspace(-8 * z - 1, 8 * z + 1, 601)
    x = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    area = (axis[1] - axis[0]) ** 2 / (2 * math.pi * z**2)

    def density(mean):
        return np.exp(-((x - mean) ** 2).sum(axis=-1) / (2 * z**2)) * area

    gap = (1 - q) * density(np.zeros(2)) * (1 - math.exp(epsilon)) + q * (
        density(g) - math.exp(epsilon) * density(h)
    )
    worst = float(ReplacedGaussianAtom(z, q).deltas(np.array(epsilon)))
    assert np.maximum(gap, 0.0).sum() <= worst + 1e-5


@settings(max_examples=60, deadline=None)
@given(z=st.floats(0.05, 500.0), q=st.floats(1e-6, 0.999), loss=st.floats(0.0, 50.0))
def test_loss_and_its_inverse(z, q, loss):
    """Overflow at little noise, or a wrong branch of the inverse."""
    atom = ReplacedGaussianAtom(z, q)
    x = atom.output(np.array([loss, -loss]))
    assert np.all(np.isfinite(x)) and x[1] == -x[0]
    assert atom.loss(x)[0] == pytest.approx(loss, rel=1e-6, abs=1e-9)


@pytest.mark.slow
def test_extremes_are_ordered():
    """A grid that breaks at almost no noise or almost no sampling."""
    costs = [
        Profile([training_event(z, 0.01, 100)], adjacency=REPLACE_ONE).epsilon(1e-6)
        for z in (0.2, 0.5, 1.0, 10.0, 1000.0)
    ]
    assert all(np.isfinite(costs)) and costs == sorted(costs, reverse=True)
    nearly_all = Profile([training_event(1.0, 0.999999, 4)], adjacency=REPLACE_ONE)
    assert nearly_all.tv() == pytest.approx(
        Profile([training_event(1.0, 1.0, 4)], adjacency=REPLACE_ONE).tv(), rel=1e-4
    )
