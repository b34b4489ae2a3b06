"""Conversions between epsilon, delta, total variation (TV), Gaussian mu and belief: one formula each.

Arguments out of range or NaN raise InputError by name.
"""

from __future__ import annotations

import math

from dpsynth.checks import in_range, inside
from dpsynth.errors import InputError


def largest_tv(epsilon: float, delta: float = 0.0) -> float:
    """Largest TV of an (epsilon, delta)-DP mechanism: (e^epsilon - 1 + 2 delta) / (e^epsilon + 1).

    Ghazi and Issa 2024, "Total variation meets differential privacy", Remark 1.

    ``epsilon`` is at least 0 and may be infinite, ``delta`` is in [0, 1].
    """
    epsilon, delta = in_range("epsilon", epsilon, 0.0, math.inf), in_range("delta", delta, 0.0, 1.0)
    return delta + (1 - delta) * math.tanh(epsilon / 2)  # the same, without overflow


def tv_of_mu(mu: float) -> float:
    """TV of Gaussian mechanisms that together are mu-GDP: 2 Phi(mu / 2) - 1.

    Jia 2023, "Total variation distance privacy", Theorems 12 and 13. In MOSAICrOWN D5.3, Theorem 3, it is the
    advantage of the adversary A_DI.

    ``mu`` is sensitivity over noise std of the joint mechanism, at least 0. It may be infinite.
    """
    mu = in_range("mu", mu, 0.0, math.inf)
    return math.erf(mu / math.sqrt(8))  # 2 Phi(x) - 1 = erf(x / sqrt(2)), without cancellation


def amplified(epsilon: float, sampling_prob: float) -> float:
    """Epsilon of an epsilon-DP mechanism on a Poisson sample: log(1 + q (e^epsilon - 1)).

    Balle, Barthe and Gaboardi 2018, "Privacy amplification by subsampling", Theorem 8. Delta and the TV are
    multiplied by ``sampling_prob`` (Ghazi and Issa 2024, Proposition 1).

    ``epsilon`` is at least 0 and finite, ``sampling_prob`` in [0, 1].
    """
    if sampling_prob == 1.0:
        return epsilon
    if epsilon > 700.0:
        # e^-epsilon keeps the result from falling below 0 where the probability is as small
        return min(epsilon, epsilon + math.log(sampling_prob + math.exp(-epsilon)) + 1e-12)
    return math.log1p(sampling_prob * math.expm1(epsilon))


def posterior_belief(epsilon: float, prior: float = 0.5) -> float:
    """Largest belief in a record that ``epsilon`` allows, rho_beta (MOSAICrOWN D5.3, Theorem 2).

    It is ``1 / (1 + e^-epsilon (1 - prior) / prior)``. ``epsilon`` is the total over all noisy statistics and
    may be infinite. ``prior`` is the belief before the first one, in [0, 1] (the document has 1/2). Under
    (epsilon, delta)-DP with delta > 0 it can be exceeded. The probability of this can be larger than delta,
    see :meth:`~dpsynth.privacy.profile.Profile.exceedance`.
    """
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf)
    prior = in_range("prior", prior, 0.0, 1.0)
    if prior in (0.0, 1.0):
        return prior  # no release moves an adversary who is certain
    odds = epsilon + _logit(prior)
    return 1 / (1 + math.exp(-odds)) if odds >= 0.0 else math.exp(odds) / (1 + math.exp(odds))


def epsilon_of_belief(belief: float, prior: float = 0.5) -> float:
    """Epsilon at which the belief is bounded by ``belief``: the inverse of :func:`posterior_belief`.

    ``belief`` is in ``[prior, 1]``, and at 1 epsilon is infinite. ``prior`` lies inside (0, 1).
    """
    prior = inside("prior", prior, 0.0, 1.0)
    belief = in_range("belief", belief, 0.0, 1.0)
    if belief < prior:
        raise InputError(f"belief must be at least the prior probability, {prior:g}, not {belief:g}")
    return math.inf if belief == 1.0 else max(0.0, _logit(belief) - _logit(prior))


def _logit(probability: float) -> float:
    return math.log(probability) - math.log1p(-probability)
