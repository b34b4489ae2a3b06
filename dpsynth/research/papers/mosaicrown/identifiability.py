"""What epsilon means to the one who wants to tell whether a record is there: belief and advantage.

MOSAICrOWN deliverable D5.3, "Identifiability bounds", chapters 3 and 4 (Bernau et al.). The adversary A_DI
knows both tables, D with the record and D' without it or with another in its place, sees every release, and
keeps a Bayesian belief in D (Lemma 1). The belief is bounded by epsilon (Theorem 2); how often it leads to
the right guess, by the noise (Theorem 3). Any number of Gaussian releases is one with
``mu**2 = steps / noise_multiplier**2``, so the advantage ``2 Phi(mu / 2) - 1`` is exact under composition.

Renyi bounds on both are in :mod:`dpsynth.research.papers.mosaicrown.rdp`, the noise that an epsilon and a
delta ask for in :mod:`dpsynth.accounting.gaussian`. Arguments out of range or NaN raise
InputError by name.

The classical formula for Gaussian noise, (2.1) of MOSAICrOWN deliverable D5.3, "Identifiability bounds".

Dwork and Roth 2014, Theorem A.1. It adds too much noise for small epsilon and too little for large ones
(beyond 8.8 at delta = 1e-6); :mod:`dpsynth.accounting.gaussian` has the least noise.
Arguments out of range or NaN raise InputError by name.
"""

from __future__ import annotations

import math
import warnings

from dpsynth.accounting.conversions import tv_of_mu
from dpsynth.accounting.gaussian import analytic_sigma
from dpsynth.checks import in_range, inside


class OutOfRangeWarning(UserWarning):
    """A formula was used outside the range for which it is proved."""


def classical_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Gaussian noise std of formula (2.1): ``sqrt(2 ln(1.25 / delta)) sensitivity / epsilon``.

    Parameters
    ----------
    epsilon : float
        At least 0, may be infinite; at 0 no finite noise suffices. Proved for less than 1 (Dwork and Roth
        2014, Theorem A.1).
    delta : float
        In [0, 1); at 0 no finite noise suffices.
    sensitivity : float
        L2 sensitivity, greater than 0 and finite.

    Warns
    -----
    OutOfRangeWarning
        If epsilon is 1 or more: too little noise for large epsilon, see
        :func:`~dpsynth.accounting.gaussian.analytic_sigma`.

    Examples
    --------
    >>> from dpsynth.accounting.gaussian import analytic_sigma
    >>> round(classical_sigma(0.5, 1e-5), 4), round(analytic_sigma(0.5, 1e-5), 4)
    (9.6896, 7.0318)
    """
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf)
    delta = in_range("delta", delta, 0.0, 1.0, high_open=True)
    sensitivity = inside("sensitivity", sensitivity, 0.0, math.inf)
    if epsilon >= 1.0:
        warnings.warn(
            f"classical_sigma is proved for epsilon < 1 only, not {epsilon:g}; analytic_sigma is for all",
            OutOfRangeWarning,
            stacklevel=2,
        )
    if delta == 0.0 or epsilon == 0.0:
        return math.inf
    return classical_factor(delta) * sensitivity / epsilon


def classical_factor(delta: float) -> float:
    """Factor ``sqrt(2 ln(1.25 / delta))`` of formula (2.1), for a delta inside (0, 1)."""
    delta = inside("delta", delta, 0.0, 1.0)
    return math.sqrt(2 * (math.log(1.25) - math.log(delta)))  # 1.25 / delta overflows for the least deltas


def advantage(epsilon: float, delta: float) -> float:
    """Advantage rho_a of A_DI against one Gaussian release with the noise of formula (2.1) (Theorem 3).

    The noise std is :func:`~dpsynth.research.papers.mosaicrown.identifiability.classical_sigma`: too much for
    small epsilon, so that rho_a is no bound for a mechanism of which only epsilon and delta are known, and
    too little for large ones. :func:`exact_advantage` is for the least noise that is (epsilon, delta)-DP.

    It is ``2 Phi(epsilon / (2 sqrt(2 ln(1.25 / delta)))) - 1``: success rate scaled to 0 for guessing, 1 for
    certainty, under equal priors; ``epsilon`` may be infinite, ``delta`` lies inside (0, 1).
    """
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf)
    return tv_of_mu(epsilon / classical_factor(delta))


def epsilon_of_advantage(advantage: float, delta: float) -> float:
    """Epsilon at which rho_a is ``advantage``: the inverse of :func:`advantage`.

    ``advantage`` is in [0, 1], and at 1 epsilon is infinite; ``delta`` lies inside (0, 1).
    """
    from scipy.special import erfinv

    advantage = in_range("advantage", advantage, 0.0, 1.0)
    # epsilon = 2 sqrt(2 ln(1.25 / delta)) Phi^-1((rho_a + 1) / 2); the printed inverse lacks the first 2.
    return classical_factor(delta) * math.sqrt(8) * float(erfinv(advantage))


def exact_advantage(epsilon: float, delta: float) -> float:
    """Advantage of A_DI against one Gaussian release with the least noise that is (epsilon, delta)-DP.

    It is what Theorem 3 would say with :func:`~dpsynth.accounting.gaussian.analytic_sigma`
    in place of formula (2.1): the largest advantage that (epsilon, delta)-DP allows a Gaussian release.

    ``epsilon`` may be infinite; ``delta`` lies inside (0, 1).
    """
    delta = inside("delta", delta, 0.0, 1.0)
    sigma = analytic_sigma(epsilon, delta)
    return tv_of_mu(1 / sigma if sigma > 0.0 else math.inf)
