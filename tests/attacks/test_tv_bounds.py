import math

import mpmath
import pytest
from distributions import distance, pairs_of_distributions
from hypothesis import given, settings

from dpsynth.attacks.closed_forms import (
    bretagnolle_huber,
    kl_tv,
    pinsker,
    sampled_gaussian_kl,
    sampled_gaussian_tv,
)
from dpsynth.privacy.events import training_event
from dpsynth.privacy.profile import Profile

# KL divergence of a sampled Gaussian


def naive_kl(z, q):
    """Both divergences by adaptive quadrature with 32 digits; panels end where the integrands bend."""
    with mpmath.workdps(32):
        z, q = mpmath.mpf(z), mpmath.mpf(q)
        bend = 0.5 + z**2 * mpmath.log((1 - q) / q) if q < 1 else mpmath.mpf(0)
        points = {c + d * z for c in (0, 1) for d in (-30, -10, -3, 0, 3, 10, 30)} | {2 + 30 * z}
        points |= {bend + d * z**2 for d in (-10, -3, 0, 3, 10) if -30 * z < bend + d * z**2 < 2 + 30 * z}

        def absent(x):
            return mpmath.npdf(x, 0, z)

        def present(x):
            return (1 - q) * mpmath.npdf(x, 0, z) + q * mpmath.npdf(x, 1, z)

        def loss(x):
            exponent = (2 * x - 1) / (2 * z**2)
            return exponent if q == 1 else mpmath.log1p(q * mpmath.expm1(exponent))

        return (
            float(mpmath.quad(lambda x: present(x) * loss(x), sorted(points))),
            float(mpmath.quad(lambda x: -absent(x) * loss(x), sorted(points))),
        )


CORNERS = [
    (0.1, 1e-6),
    (1.1, 256 / 60000),
    (1000.0, 0.9),
    *(pytest.param(*corner, marks=pytest.mark.slow) for corner in ((0.3, 0.01), (1.0, 1e-6), (1000.0, 1e-6))),
]


@pytest.mark.parametrize(("z", "q"), CORNERS)
def test_kl_agrees_with_quadrature(z, q):
    """Too few nodes at small noise, cancellation at small sampling, or the two directions exchanged."""
    kl = sampled_gaussian_kl(z, q)
    present_absent, absent_present = naive_kl(z, q)
    assert kl.present_absent == pytest.approx(present_absent, rel=1e-10)
    assert kl.absent_present == pytest.approx(absent_present, rel=1e-10)


@pytest.mark.parametrize(
    ("z", "q", "steps", "bound"),
    [(1.1, 256 / 60000, 3525, 0.14304), (1.0, 0.01, 1000, 0.20471), (0.8, 0.005, 1000, 0.15077)],
)
def test_golden_values_of_a_training_run(z, q, steps, bound):
    """The wrong direction (the paper takes the larger), or a bound below the exact value."""
    kl = sampled_gaussian_kl(z, q)
    assert pinsker(steps * max(kl)) == pytest.approx(bound, abs=6e-6)
    assert sampled_gaussian_tv(z, q, steps, direction="largest") == pytest.approx(bound, abs=6e-6)
    exact = Profile([training_event(z, q, steps)]).tv()
    assert exact < sampled_gaussian_tv(z, q, steps) < bound
    if steps == 3525:
        assert (min(kl), max(kl)) == pytest.approx((1.15227e-5, 1.16091e-5), rel=1e-5)
        assert max(kl) == kl.present_absent


def test_without_sampling_kl_is_the_gaussians_own():
    """A special case at q = 1 that does not continue the quadrature below it."""
    for z in (0.1, 1.0, 50.0):
        whole, nearly = sampled_gaussian_kl(z, 1.0), sampled_gaussian_kl(z, 1 - 2**-53)
        assert min(whole) == max(whole) == pytest.approx(1 / (2 * z**2), rel=1e-14)
        assert nearly.present_absent == pytest.approx(max(whole), rel=1e-10)


@pytest.mark.parametrize("q", [1e-300, 1e-6, 0.3, 1 - 1e-16])
def test_kl_is_continuous_where_the_gaussians_separate(q):
    """A limit for tiny noise that does not meet the quadrature at the switch, z = 0.01."""
    limit, quadrature = sampled_gaussian_kl(0.01, q), sampled_gaussian_kl(math.nextafter(0.01, 1.0), q)
    assert limit.present_absent == pytest.approx(quadrature.present_absent, rel=1e-11)
    assert limit.absent_present == pytest.approx(quadrature.absent_present, rel=1e-11)


@settings(max_examples=40, deadline=None)
@given(pair=pairs_of_distributions(5))
def test_kl_in_either_direction_bounds_the_distance(pair):
    """A bound below the truth: a lost factor, or one that holds in one direction only."""
    for p, q in (pair, pair[::-1]):
        kl = max(0.0, math.fsum(a * math.log(a / b) for a, b in zip(p, q, strict=True)))
        assert distance(p, q) <= min(pinsker(kl), bretagnolle_huber(kl)) + 1e-7
        assert kl_tv(kl) == min(pinsker(kl), bretagnolle_huber(kl))


def test_kl_bounds_cross_at_1594():
    """Pinsker where Bretagnolle-Huber is smaller (the paper waits until 2), or a bound above 1."""
    assert pinsker(1.593) < bretagnolle_huber(1.593) and pinsker(1.594) > bretagnolle_huber(1.594)
    assert kl_tv(1.8) == bretagnolle_huber(1.8) < pinsker(1.8)
    assert pinsker(10.0) > 1.0 == kl_tv(1e9) == kl_tv(math.inf)
    assert kl_tv(1e-30) == pytest.approx(math.sqrt(5e-31), rel=1e-14)
