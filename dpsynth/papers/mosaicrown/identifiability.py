"""What epsilon means to the one who wants to tell whether a record is there: belief and advantage.

MOSAICrOWN deliverable D5.3, "Identifiability bounds", chapters 3 and 4 (Bernau et al.). The adversary A_DI
knows both tables, D with the record and D' without it or with another in its place, sees every release, and
keeps a Bayesian belief in D (Lemma 1). The belief is bounded by epsilon (Theorem 2); how often it leads to
the right guess, by the noise (Theorem 3). Any number of Gaussian releases is one with
``mu**2 = steps / noise_multiplier**2``, so the advantage ``2 Phi(mu / 2) - 1`` is exact under composition.

Renyi bounds on both are in :mod:`dpsynth.papers.mosaicrown.rdp`, the noise that an epsilon and a delta ask
for in :mod:`dpsynth.accounting.calibration.gaussian_noise`. Arguments out of range or NaN raise InputError by
name.
"""

from __future__ import annotations

import math

from dpsynth.accounting.calibration.gaussian_noise import analytic_sigma, classical_factor
from dpsynth.accounting.loss.gaussian import GaussianLoss
from dpsynth.checks import in_range
from dpsynth.errors import InputError


def posterior_belief(epsilon: float, prior: float = 0.5) -> float:
    """Largest belief in a record that ``epsilon`` allows, rho_beta (Theorem 2).

    Parameters
    ----------
    epsilon : float
        Total over all releases, at least 0; may be infinite.
    prior : float
        Belief before the first release, in [0, 1]. The document has 1/2.

    Returns
    -------
    float
        ``1 / (1 + e^-epsilon (1 - prior) / prior)``. Under (epsilon, delta)-DP with delta > 0 it can be
        exceeded, and with a probability that can be larger than delta, see :func:`exceedance`.

    Examples
    --------
    >>> round(posterior_belief(2.19722), 5), round(posterior_belief(1.0, prior=0.1), 5)
    (0.9, 0.23197)
    """
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf)
    prior = in_range("prior", prior, 0.0, 1.0)
    if prior in (0.0, 1.0):
        return prior  # no release moves an adversary who is certain
    odds = epsilon + _logit(prior)
    return 1 / (1 + math.exp(-odds)) if odds >= 0.0 else math.exp(odds) / (1 + math.exp(odds))


def epsilon_of_belief(belief: float, prior: float = 0.5) -> float:
    """Epsilon at which the belief is bounded by ``belief``: the inverse of :func:`posterior_belief`.

    Parameters
    ----------
    belief : float
        In [prior, 1]; at 1, epsilon is infinite.
    prior : float
        Inside (0, 1).

    Raises
    ------
    InputError
        If the belief is less than the prior: epsilon bounds no loss of belief.

    Examples
    --------
    >>> round(epsilon_of_belief(0.9), 5)
    2.19722
    """
    prior = in_range("prior", prior, 0.0, 1.0, low_open=True, high_open=True)
    belief = in_range("belief", belief, 0.0, 1.0)
    if belief < prior:
        raise InputError(f"belief must be at least the prior, {prior:g}, not {belief:g}")
    return math.inf if belief == 1.0 else max(0.0, _logit(belief) - _logit(prior))


def gaussian_advantage(mu: float) -> float:
    """Advantage of A_DI against Gaussian releases that together are mu-GDP: 2 Phi(mu / 2) - 1 (Theorem 3).

    Parameters
    ----------
    mu : float
        ``sqrt(steps) / noise_multiplier``, at least 0; may be infinite.

    Examples
    --------
    >>> round(gaussian_advantage(1.0), 5)
    0.38292
    """
    mu = in_range("mu", mu, 0.0, math.inf)
    return math.erf(mu / math.sqrt(8))  # 2 Phi(mu / 2) - 1 = erf(mu / sqrt(8)), without cancellation


def advantage(epsilon: float, delta: float) -> float:
    """Advantage rho_a of A_DI against one Gaussian release with the noise of formula (2.1) (Theorem 3).

    The noise std is :func:`~dpsynth.accounting.calibration.gaussian_noise.classical_sigma`: too much for
    small epsilon, so that rho_a is no bound for a mechanism of which only epsilon and delta are known, and
    too little for large ones. :func:`exact_advantage` is for the least noise that is (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : float
        At least 0; may be infinite.
    delta : float
        Inside (0, 1).

    Returns
    -------
    float
        ``2 Phi(epsilon / (2 sqrt(2 ln(1.25 / delta)))) - 1``: success rate scaled to 0 for guessing, 1 for
        certainty, under equal priors.

    Examples
    --------
    >>> round(advantage(2.19722, 0.01), 5)
    0.27631
    """
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf)
    return gaussian_advantage(epsilon / classical_factor(delta))


def epsilon_of_advantage(advantage: float, delta: float) -> float:
    """Epsilon at which rho_a is ``advantage``: the inverse of :func:`advantage`.

    Parameters
    ----------
    advantage : float
        In [0, 1]; at 1, epsilon is infinite.
    delta : float
        Inside (0, 1).

    Examples
    --------
    >>> round(epsilon_of_advantage(0.27631, 0.01), 4)
    2.1972
    """
    from scipy.special import erfinv

    advantage = in_range("advantage", advantage, 0.0, 1.0)
    # epsilon = 2 sqrt(2 ln(1.25 / delta)) Phi^-1((rho_a + 1) / 2); the printed inverse lacks the first 2.
    return classical_factor(delta) * math.sqrt(8) * float(erfinv(advantage))


def exact_advantage(epsilon: float, delta: float) -> float:
    """Advantage of A_DI against one Gaussian release with the least noise that is (epsilon, delta)-DP.

    It is what Theorem 3 would say with :func:`~dpsynth.accounting.calibration.gaussian_noise.analytic_sigma`
    in place of formula (2.1): the largest advantage that (epsilon, delta)-DP allows a Gaussian release.

    Parameters
    ----------
    epsilon : float
        At least 0; may be infinite.
    delta : float
        Inside (0, 1).

    Examples
    --------
    >>> round(exact_advantage(2.19722, 0.01), 5)
    0.36913
    """
    delta = in_range("delta", delta, 0.0, 1.0, low_open=True, high_open=True)
    sigma = analytic_sigma(epsilon, delta)
    return gaussian_advantage(1 / sigma if sigma > 0.0 else math.inf)


def exceedance(epsilon: float, mu: float) -> float:
    """Probability that the belief in a record that is there exceeds its bound, for mu-GDP Gaussian releases.

    The privacy loss is then normal with mean ``mu**2 / 2`` and std ``mu``, and the belief passes
    ``posterior_belief(epsilon, prior)`` where the loss passes epsilon, whatever the prior. Theorem 2 (ii)
    says that this happens with probability at most delta. With the least noise it happens more often:
    delta(epsilon) is the mean of ``max(0, 1 - e^(epsilon - loss))``, which is smaller than the probability
    that the loss exceeds epsilon. (Formula (2.1) has noise enough while epsilon is small: its proof bounds
    that very probability.)

    Parameters
    ----------
    epsilon : float
        At least 0; may be infinite.
    mu : float
        ``sqrt(steps) / noise_multiplier``, at least 0; may be infinite.

    Returns
    -------
    float
        ``Phi(mu / 2 - epsilon / mu)``. ``Profile.exceedance`` has it for other releases.

    Examples
    --------
    >>> mu = 1 / analytic_sigma(1.0, 1e-5)
    >>> f"{exceedance(1.0, mu):.3e}, not 1e-05"
    '1.612e-04, not 1e-05'
    """
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf)
    return GaussianLoss(in_range("mu", mu, 0.0, math.inf)).exceedance(epsilon)


def _logit(probability: float) -> float:
    return math.log(probability) - math.log1p(-probability)
