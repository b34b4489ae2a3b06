"""MOSAICrOWN deliverable D5.3, "Identifiability bounds" (Bernau et al.): belief and advantage.

The adversary A_DI has both tables: D with the record, and D' without it or with another in its place. It sees
every release, and keeps a Bayesian belief in D (Lemma 1). Epsilon bounds the belief (Theorem 2, rho_beta, in
:mod:`dpsynth.privacy.events`). The noise bounds how often it leads to the right guess (Theorem 3,
rho_a). Any number of Gaussian releases is one with ``mu**2 = steps / noise_multiplier**2``, so the advantage
``2 Phi(mu / 2) - 1`` is exact under composition. Sections 2.1 and 4.3 bound both from the Renyi divergence of
the releases, which is looser than the exact curve of
:class:`~dpsynth.privacy.gaussian_loss.GaussianLoss`.

The noise of formula (2.1) is that of Dwork and Roth 2014, Theorem A.1. It is too much for small epsilon and
too little for large ones (beyond 8.8 at delta = 1e-6). :mod:`dpsynth.privacy.gaussian_loss` has the least
noise. Arguments out of range or NaN raise InputError by name.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

from dpsynth.checks import in_range, inside, whole
from dpsynth.privacy.conversions import epsilon_of_belief, posterior_belief, tv_of_mu
from dpsynth.privacy.gaussian_loss import analytic_sigma


class OutOfRangeWarning(UserWarning):
    """A formula was used outside the range for which it is proved."""


def classical_sigma(epsilon: float, delta: float) -> float:
    """Gaussian noise std of formula (2.1): ``sqrt(2 ln(1.25 / delta)) / epsilon``, for sensitivity 1.

    ``epsilon`` may be infinite, ``delta`` lies in [0, 1). At 0 of either no finite noise suffices. Proved for
    epsilon below 1: OutOfRangeWarning for others, where
    :func:`~dpsynth.privacy.gaussian_loss.analytic_sigma` is right.
    """
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf)
    delta = in_range("delta", delta, 0.0, 1.0, high_open=True)
    if epsilon >= 1.0:
        warnings.warn(
            f"classical_sigma is proved for epsilon < 1 only, not {epsilon:g}. Use analytic_sigma",
            OutOfRangeWarning,
            stacklevel=2,
        )
    if delta == 0.0 or epsilon == 0.0:
        return math.inf
    return classical_factor(delta) / epsilon


def classical_factor(delta: float) -> float:
    """Factor ``sqrt(2 ln(1.25 / delta))`` of formula (2.1), for a delta inside (0, 1)."""
    delta = inside("delta", delta, 0.0, 1.0)
    return math.sqrt(2 * (math.log(1.25) - math.log(delta)))  # 1.25 / delta overflows for the least deltas


def advantage(epsilon: float, delta: float) -> float:
    """Advantage rho_a of A_DI against one Gaussian release with the noise of formula (2.1) (Theorem 3).

    It is ``2 Phi(epsilon / (2 sqrt(2 ln(1.25 / delta)))) - 1``: success rate scaled to 0 for guessing, 1 for
    certainty, under equal prior probabilities. It is no bound if only epsilon and delta are known. The bound
    is :func:`exact_advantage`, for the least noise that is (epsilon, delta)-DP.
    """
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf)
    return tv_of_mu(epsilon / classical_factor(delta))


def epsilon_of_advantage(advantage: float, delta: float) -> float:
    """Epsilon at which rho_a is ``advantage``: the inverse of :func:`advantage`, infinite at 1."""
    from scipy.special import erfinv

    advantage = in_range("advantage", advantage, 0.0, 1.0)
    # epsilon = 2 sqrt(2 ln(1.25 / delta)) Phi^-1((rho_a + 1) / 2); the printed inverse lacks the first 2.
    return classical_factor(delta) * math.sqrt(8) * float(erfinv(advantage))


def exact_advantage(epsilon: float, delta: float) -> float:
    """Largest advantage that (epsilon, delta)-DP allows a Gaussian release: Theorem 3, least noise."""
    delta = inside("delta", delta, 0.0, 1.0)
    sigma = analytic_sigma(epsilon, delta)
    return tv_of_mu(1 / sigma if sigma > 0.0 else math.inf)


@dataclass(frozen=True)
class RdpGuarantee:
    """Guarantee of Gaussian releases from one Renyi order.

    ``epsilon``, of (epsilon, delta)-DP, is ``epsilon_rdp + ln(1 / delta) / (order - 1)``. It is least at the
    Renyi order alpha ``order``. ``epsilon_rdp`` is the Renyi divergence of that order over all releases.
    """

    epsilon: float
    delta: float
    order: float
    epsilon_rdp: float

    @property
    def advantage(self) -> float:
        """Advantage rho_a of A_DI: exact, because it depends on the noise alone."""
        return advantage_rdp(self.epsilon_rdp, self.order)

    def belief(self, prior: float = 0.5) -> float:
        """Bound rho_beta on the belief."""
        return posterior_belief(self.epsilon, prior)


def rdp_guarantee(
    noise_multiplier: float, delta: float, steps: int = 1, *, integer_orders: bool = False
) -> RdpGuarantee:
    """Compose ``steps`` Gaussian releases by Renyi differential privacy (section 4.3), from the best order.

    Parameters
    ----------
    noise_multiplier : float
        Noise std over sensitivity in each release, greater than 0 and finite.
    delta : float
        Inside (0, 1), for all releases together.
    steps : int
        At least 1.
    integer_orders : bool
        Whether only whole orders from 2 upwards are tried, as by accountants of the time.
    """
    z = inside("noise_multiplier", noise_multiplier, 0.0, math.inf)
    room = math.sqrt(-math.log(inside("delta", delta, 0.0, 1.0)))
    # Section 2.1: the Renyi divergence is order * c, c = steps / (2 z^2); the root of c does not underflow.
    root = math.sqrt(whole("steps", steps)) / z / math.sqrt(2)
    order = min(1 + room / root, 1e300) if root > 0.0 else 1e300
    if not integer_orders:
        # order * c + ln(1 / delta) / (order - 1) is least at the order 1 + sqrt(ln(1 / delta) / c)
        return RdpGuarantee(root * (root + 2 * room), delta, order, root * (root + room))
    below = max(2.0, float(math.floor(order)))
    # Convex in the order, so that the best whole one is next to the best real one.
    candidates = ((a * root * root + room * room / (a - 1), a) for a in (below, below + 1))
    epsilon, order = min(candidates)
    return RdpGuarantee(epsilon, delta, order, order * root * root)


def advantage_rdp(epsilon_rdp: float, order: float) -> float:
    """Advantage rho_a against Gaussian releases that compose to this Renyi divergence (section 4.3).

    It is ``2 Phi(sqrt(epsilon_rdp / (2 order))) - 1``, which is ``2 Phi(mu / 2) - 1``. ``order`` is at least
    1.
    """
    epsilon_rdp, order = _divergence(epsilon_rdp, order)
    return tv_of_mu(2 * math.sqrt(epsilon_rdp / order / 2))


def _divergence(epsilon_rdp: float, order: float) -> tuple[float, float]:
    epsilon_rdp = in_range("epsilon_rdp", epsilon_rdp, 0.0, math.inf)
    return epsilon_rdp, in_range("order", order, 1.0, math.inf, high_open=True)


def belief_rdp(epsilon_rdp: float, order: float, delta: float, prior: float = 0.5) -> float:
    """Bound rho_beta on the belief from a Renyi divergence over all releases, of any mechanism (section 4.3).

    ``order`` is at least 1 and finite. At 1 there is no bound.
    """
    epsilon_rdp, order = _divergence(epsilon_rdp, order)
    room = -math.log(inside("delta", delta, 0.0, 1.0))
    # (4.8) as printed has the wrong sign before ln(1 / delta) and lacks the 1 / (1 + e^-...) of (4.7).
    return posterior_belief(epsilon_rdp + (room / (order - 1) if order > 1.0 else math.inf), prior)


def noise_for_belief_rdp(
    belief: float, delta: float, steps: int = 1, *, prior: float = 0.5, integer_orders: bool = False
) -> float:
    """Least noise multiplier of ``steps`` Gaussian releases whose Renyi bound on the belief is ``belief``.

    ``belief`` lies between the prior probability, for infinite noise, and 1, for none. Other parameters are
    those of :func:`rdp_guarantee`, which has the bounds that the noise reaches.

    Examples
    --------
    The document's 30 epochs with belief 0.9 at delta 0.01 (advantage 0.2562 there):

    >>> z = noise_for_belief_rdp(0.9, 0.01, 30)
    >>> round(z, 4), round(rdp_guarantee(z, 0.01, 30).advantage, 5)
    (8.3799, 0.25619)
    """
    epsilon = epsilon_of_belief(belief, prior)
    room, steps = math.sqrt(-math.log(inside("delta", delta, 0.0, 1.0))), whole("steps", steps)
    if epsilon == 0.0:
        return math.inf
    if math.isinf(epsilon):
        return 0.0
    # The positive root of c + 2 sqrt(c ln(1 / delta)) = epsilon in sqrt(c), without cancellation.
    root = epsilon / (room + math.sqrt(room * room + epsilon))
    if integer_orders:
        below = max(2.0, float(math.floor(min(1 + room / root, 1e300))))
        root = math.sqrt(max((epsilon - room * room / (a - 1)) / a for a in (below, below + 1)))
    z = math.sqrt(steps) / root / math.sqrt(2)
    while rdp_guarantee(z, delta, steps, integer_orders=integer_orders).epsilon > epsilon:
        z = math.nextafter(z, math.inf)  # rounding must not end on the other side
    return z
