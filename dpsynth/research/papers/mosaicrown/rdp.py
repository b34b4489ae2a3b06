"""Belief and advantage of the adversary A_DI from the Renyi divergence of the releases.

MOSAICrOWN deliverable D5.3, "Identifiability bounds", sections 2.1 and 4.3 (Bernau et al.); the adversary is
that of :mod:`dpsynth.research.papers.mosaicrown.identifiability`. Renyi composition is looser than the exact
curve of :class:`~dpsynth.accounting.gaussian.GaussianLoss`. Arguments out of range or NaN raise
InputError by name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpsynth.accounting.conversions import epsilon_of_belief, posterior_belief, tv_of_mu
from dpsynth.checks import in_range, inside, whole


@dataclass(frozen=True)
class RdpGuarantee:
    """Guarantee of Gaussian releases from one Renyi order.

    ``epsilon``, of (epsilon, delta)-DP, is ``epsilon_rdp + ln(1 / delta) / (order - 1)``; ``order`` is the
    order alpha that makes it least, and ``epsilon_rdp`` the Renyi divergence of that order over all releases.
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
    """Compose ``steps`` Gaussian releases by Renyi differential privacy (section 4.3).

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

    Returns
    -------
    RdpGuarantee
        From the best order. Looser than the exact curve, ``GaussianLoss(mu).epsilon(delta)``.
    """
    z = inside("noise_multiplier", noise_multiplier, 0.0, math.inf)
    room = math.sqrt(-math.log(_inner_delta(delta)))
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
    """Advantage rho_a of A_DI against Gaussian releases that compose to a Renyi divergence (section 4.3).

    It is ``2 Phi(sqrt(epsilon_rdp / (2 order))) - 1``, which is ``2 Phi(mu / 2) - 1``. ``epsilon_rdp`` is the
    divergence over all releases and may be infinite; ``order`` is at least 1 and finite.
    """
    epsilon_rdp = in_range("epsilon_rdp", epsilon_rdp, 0.0, math.inf)
    return tv_of_mu(2 * math.sqrt(epsilon_rdp / _order(order) / 2))


def belief_rdp(epsilon_rdp: float, order: float, delta: float, prior: float = 0.5) -> float:
    """Bound rho_beta on the belief from a Renyi divergence over all releases, of any mechanism (section 4.3).

    Parameters
    ----------
    epsilon_rdp : float
        At least 0; may be infinite.
    order : float
        At least 1 and finite; at 1 there is no bound.
    delta : float
        Inside (0, 1), for all releases together.
    prior : float
        In [0, 1].
    """
    epsilon_rdp, order = in_range("epsilon_rdp", epsilon_rdp, 0.0, math.inf), _order(order)
    room = -math.log(_inner_delta(delta))
    # (4.8) as printed has the wrong sign before ln(1 / delta) and lacks the 1 / (1 + e^-...) of (4.7).
    return posterior_belief(epsilon_rdp + (room / (order - 1) if order > 1.0 else math.inf), prior)


def noise_for_belief_rdp(
    belief: float, delta: float, steps: int = 1, *, prior: float = 0.5, integer_orders: bool = False
) -> float:
    """Least noise multiplier of ``steps`` Gaussian releases whose Renyi bound on the belief is ``belief``.

    Parameters
    ----------
    belief : float
        In [prior, 1]; at the prior the noise is infinite, at 1 it is 0.
    delta : float
        Inside (0, 1), for all releases together.
    steps : int
        At least 1.
    prior : float
        Inside (0, 1).
    integer_orders : bool
        As in :func:`rdp_guarantee`.

    Returns
    -------
    float
        Noise std over sensitivity; :func:`rdp_guarantee` has the bounds that it reaches.

    Examples
    --------
    The document's 30 epochs with belief 0.9 at delta 0.01 (advantage 0.2562 there):

    >>> z = noise_for_belief_rdp(0.9, 0.01, 30)
    >>> round(z, 4), round(rdp_guarantee(z, 0.01, 30).advantage, 5)
    (8.3799, 0.25619)
    """
    epsilon = epsilon_of_belief(belief, prior)
    room, steps = math.sqrt(-math.log(_inner_delta(delta))), whole("steps", steps)
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


def _order(order: object) -> float:
    return in_range("order", order, 1.0, math.inf, high_open=True)


def _inner_delta(delta: object) -> float:
    return inside("delta", delta, 0.0, 1.0)
