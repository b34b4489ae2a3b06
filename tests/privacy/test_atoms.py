"""The privacy loss of mechanisms of bounded range, against enumeration and the mechanism itself.

The pair of mixtures of a replaced record: against quadrature, another library, and other neighbours.
"""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import dp_accounting
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import InputError
from dpsynth.privacy import (
    REPLACE_ONE,
    Profile,
    epsilon_delta_event,
    exponential_mechanism_event,
    gaussian_event,
)
from dpsynth.privacy.atoms import BoundedRangeAtom, ReplacedGaussianAtom
from dpsynth.privacy.events import training_event


def two_ends(epsilon: float, t: float) -> list[tuple[float, float]]:
    """Probabilities (P, Q) of the two outputs of losses t and t - epsilon."""
    likely = (1 - math.exp(t - epsilon)) / (math.exp(t) - math.exp(t - epsilon))
    return [(math.exp(t) * likely, likely), (math.exp(t - epsilon) * (1 - likely), 1 - likely)]


def divergence(pairs: list[list[tuple[float, float]]], x: float) -> float:
    """Of the product of such mechanisms, by enumeration."""
    return sum(
        max(0.0, math.prod(p for p, _ in drawn) - math.exp(x) * math.prod(q for _, q in drawn))
        for drawn in itertools.product(*pairs)
    )


@pytest.mark.parametrize("epsilon", [1e-3, 0.05, 0.8, 6.0])
def test_one_mechanism_is_the_worst_of_all_shifts(epsilon):
    """The wrong shift taken for the worst, or a divergence below that of some mechanism of this range."""
    atom = BoundedRangeAtom(epsilon)
    for x in np.linspace(-1.5, 0.99, 12) * epsilon:
        shifts = np.linspace(0.0, epsilon, 4001)[1:-1]
        worst = max(divergence([two_ends(epsilon, t)], x) for t in shifts)
        # at both ends only one output is possible
        worst = max(worst, -math.expm1(min(x, 0.0)))
        found = float(atom.deltas(np.array([x]))[0])
        assert found >= worst * (1 - 1e-9)
        assert found == pytest.approx(worst, rel=1e-3, abs=1e-9 * epsilon)


@pytest.mark.parametrize(("epsilon", "count"), [(0.5, 4), (1.2, 3), (0.1, 6)])
def test_bounds_every_composition_and_is_no_larger_than_its_density_says(epsilon, count):
    """A composition that a mechanism with shifts of its own in each round exceeds, or a loss of another law.

    From below, random shifts by enumeration; from above, the density of the loss, whose sums are simulated.
    """
    profile = Profile([exponential_mechanism_event(epsilon, count=count)])
    rng = np.random.default_rng(3)
    c = -math.expm1(-epsilon)
    uniform = rng.random((400_000, count))
    losses = (epsilon + 2 * np.log(1 - c * (1 - uniform))).sum(axis=1)
    for x in np.array([0.0, 0.3, 1.1]) * epsilon:
        shifts = rng.uniform(0.0, epsilon, size=(60, count))
        same = np.linspace(0.05, 0.95, 19)[:, None] * epsilon * np.ones(count)
        worst = max(divergence([two_ends(epsilon, t) for t in ts], x) for ts in [*shifts, *same])
        found = profile.delta(x)
        simulated = np.maximum(0.0, -np.expm1(x - losses)).mean()
        assert worst <= found
        assert found == pytest.approx(simulated, rel=2e-2)


def test_an_adversary_who_shifts_after_what_was_seen_gains_nothing():
    """A bound that holds for shifts fixed beforehand only: the second is chosen by the first output."""
    epsilon = 1.0
    profile = Profile([exponential_mechanism_event(epsilon, count=2)])
    grid = np.linspace(0.02, 0.98, 25) * epsilon
    for x in (0.0, 0.2, 0.6, 1.2):
        worst = 0.0
        for first in grid:
            total = 0.0
            for p, q in two_ends(epsilon, first):
                then = [
                    sum(max(0.0, p * a - math.exp(x) * q * b) for a, b in two_ends(epsilon, t)) for t in grid
                ]
                total += max(then)
            worst = max(worst, total)
        assert worst <= profile.delta(x)


def test_the_exponential_mechanism_is_one():
    """Scores of sensitivity 1 whose choice exceeds the bound: the wrong scale of epsilon."""
    rng = np.random.default_rng(1)
    epsilon = 1.4
    atom = BoundedRangeAtom(epsilon)
    closest = 0.0
    for _ in range(300):
        scores = rng.normal(scale=4.0, size=6)
        moved = scores + rng.choice([-1.0, 1.0], size=6)
        p, q = (np.exp(epsilon * s / 2) / np.exp(epsilon * s / 2).sum() for s in (scores, moved))
        for x in (-0.5, 0.0, 0.4, 0.9):
            found = np.maximum(p - math.exp(x) * q, 0.0).sum()
            bound = float(atom.deltas(np.array([x]))[0])
            closest = max(closest, found / bound)
            assert found <= bound * (1 + 1e-12)
    assert closest > 0.9


def test_costs_a_third_where_many_are_composed():
    """Exponential mechanisms accounted as any (epsilon, 0) mechanism, or below the Gaussian limit."""
    profile = Profile([exponential_mechanism_event(0.02, count=300)])
    limit = Profile([gaussian_event(math.sqrt(3 / 300) / 0.02)])
    assert profile.epsilon(1e-6) == pytest.approx(limit.epsilon(1e-6), rel=5e-3)
    assert profile.epsilon(1e-6) < 0.6 * Profile([epsilon_delta_event(0.02, count=300)]).epsilon(1e-6)


def test_other_adjacency_samples_and_extremes():
    """Replace-one read as add/remove; sampling ignored; a crash at the ends of epsilon."""
    one = exponential_mechanism_event(0.5)
    replaced, twice = Profile([one], adjacency=REPLACE_ONE), Profile([exponential_mechanism_event(1.0)])
    assert replaced.delta(0.3) == pytest.approx(twice.delta(0.3))
    sampled = Profile([dp_accounting.PoissonSampledDpEvent(0.1, one)])
    assert sampled.tv() == pytest.approx(0.1 * math.tanh(0.125))
    assert Profile([exponential_mechanism_event(0.25, count=8)]).epsilon(0.0) == pytest.approx(2.0)
    assert (
        Profile([exponential_mechanism_event(0.0), gaussian_event(2.0)]).tv()
        == Profile([gaussian_event(2.0)]).tv()
    )
    for epsilon in (1e-12, 1e-6, 40.0, 600.0):
        assert 0.0 <= Profile([exponential_mechanism_event(epsilon)]).delta(epsilon / 2) <= 1.0
    with pytest.raises(InputError, match="epsilon"):
        exponential_mechanism_event(math.inf)


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


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, marks=[pytest.mark.slow] if row["noise_multiplier"] < 1 else [])
        for row in STORED["values"]
    ],
    ids=lambda r: f"z{r['noise_multiplier']}-T{r['steps']}",
)
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
