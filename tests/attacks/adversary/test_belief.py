"""Log-odds and belief against Algorithm 1 as it is printed, and against dp_accounting's privacy loss."""

from __future__ import annotations

import functools

import mpmath
import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import norm

from dpsynth.attacks.adversary.belief import beliefs, chooses_first, log_odds, log_ratios, shifts
from dpsynth.audits.adversary.quick import run_at_the_bound
from dpsynth.errors import InputError
from dpsynth.releases.critic import Transcript


def transcript(seed, q, replaced, steps=8, width=5, world=0):
    rng = np.random.default_rng(seed)
    others, stds = rng.normal(size=(steps, width)), rng.uniform(0.5, 3.0, (steps, width))
    records = rng.normal(size=(2, steps, width))
    if not replaced:
        records[1] = 0.0
    taken = rng.random((steps, 1)) < q
    released = others + taken * records[world] + stds * rng.normal(size=others.shape)
    return Transcript(released, others, records, stds, q)


def algorithm_1(seen, prior=0.5):
    """Lines 10 and 11 with products of densities, in 60 digits."""
    with mpmath.workdps(60):
        belief = [mpmath.mpf(prior)]
        for t in range(seen.steps):

            def density(record, t=t):
                return mpmath.fprod(
                    mpmath.npdf(*map(float, entry))
                    for entry in zip(seen.released[t], seen.others[t] + record, seen.stds[t], strict=True)
                )

            under = [
                (1 - mpmath.mpf(seen.sampling_prob)) * density(0.0)
                + mpmath.mpf(seen.sampling_prob) * density(record[t])
                for record in seen.records
            ]
            numerator = belief[-1] * under[0]
            belief.append(numerator / (numerator + (1 - belief[-1]) * under[1]))
        return [float(b) for b in belief]


@pytest.mark.parametrize("q", [1.0, 0.3])
@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("world", [0, 1])
def test_belief_is_algorithm_1(q, replaced, world):
    """Catches a wrong sign, a sampling probability left out, a lost half of a square, another prior."""
    seen = transcript(3, q, replaced, world=world)
    np.testing.assert_allclose(beliefs(seen, 0.3), algorithm_1(seen, 0.3), rtol=1e-10)


def test_belief_does_not_underflow():
    """Catches densities that are multiplied: 400 numbers a step, standard deviations of a hundred."""
    rng = np.random.default_rng(0)
    others = np.zeros((30, 400))
    records = np.stack([others + 10.0, others])
    stds = others + 100.0
    seen = Transcript(records[0] + stds * rng.normal(size=others.shape), others, records, stds, 1.0)
    # the log-odds of one normal number with mu^2 = 30 * 400 * (10 / 100)^2 = 120
    expected = (seen.released.sum() * 10 - 30 * 400 * 50) / 1e4
    assert log_odds(seen)[-1] == pytest.approx(expected, rel=1e-9)
    assert beliefs(seen)[-1] > 1 - 1e-9 and np.isfinite(log_odds(seen)).all()


def test_exchanged_tables_exchange_the_belief():
    """Catches a belief that favours one table."""
    seen = transcript(1, 0.4, True)
    other = Transcript(seen.released, seen.others, seen.records[::-1], seen.stds, 0.4)
    np.testing.assert_allclose(log_odds(seen), -log_odds(other), atol=1e-12)
    assert chooses_first(seen) != chooses_first(other)


def test_a_record_that_adds_nothing_leaves_the_belief():
    """Catches a belief that moves by the noise alone."""
    seen = transcript(1, 0.4, False)
    nothing = Transcript(seen.released, seen.others, 0.0 * seen.records, seen.stds, 0.4)
    assert (np.abs(log_ratios(nothing)) < 1e-12).all() and (shifts(nothing) == 0.0).all()


@pytest.mark.parametrize("prior", [0.0, 1.0, np.nan])
def test_a_certain_adversary_is_refused(prior):
    """Catches infinite log-odds from a prior that nothing can move."""
    with pytest.raises(InputError, match="prior"):
        log_odds(transcript(0, 1.0, False), prior)


def by_dp_accounting(noise, q):
    from dp_accounting import NeighboringRelation, dp_event
    from dp_accounting.pld import PLDAccountant

    event = dp_event.PoissonSampledDpEvent(q, dp_event.GaussianDpEvent(noise))
    return PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE).compose(event).get_delta


def by_quadrature(noise, q, epsilon):
    """Of two mixtures, (1 - q) N(0) + q N(1) and (1 - q) N(0) + q N(-1), which dp_accounting refuses."""
    points = np.linspace(-12 * noise, 12 * noise, 200_001)
    under = [(1 - q) * norm.pdf(points, 0, noise) + q * norm.pdf(points, m, noise) for m in (1, -1)]
    return float(trapezoid(np.maximum(under[0] - np.exp(epsilon) * under[1], 0.0), points))


@pytest.mark.parametrize(
    ("q", "adjacency"), [(0.2, "add/remove"), (1.0, "add/remove"), (0.2, "replace-one"), (1.0, "replace-one")]
)
def test_log_ratios_have_the_delta_of_others(q, adjacency):
    """Catches log-odds of another law than the accounting's: delta(epsilon) = E(1 - e^(epsilon - L))+."""
    noise, count = 1.5, 100_000
    # one run of many steps is many runs of one step
    losses = []
    for world, sign in ((0, 1.0), (1, -1.0)):
        rng = np.random.default_rng([7, world])
        losses.append(sign * log_ratios(run_at_the_bound(noise, q, count, world, rng, adjacency=adjacency)))
    replaced = adjacency == "replace-one"
    exact = functools.partial(by_quadrature, noise, q) if replaced else by_dp_accounting(noise, q)
    for epsilon in (0.0, 0.1, 0.4):
        gains = [np.maximum(-np.expm1(epsilon - loss), 0.0) for loss in losses]
        found = max(gain.mean() for gain in gains)
        error = max(gain.std() for gain in gains) / np.sqrt(count)
        assert abs(found - exact(epsilon)) < 4 * error + 1e-5
