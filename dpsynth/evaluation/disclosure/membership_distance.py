"""Membership inference from distances: does lying close to a synthetic record give a training record away?

The attacker holds the synthetic table and a record, and says "member" where the record lies close to a
synthetic one. Members are training records, non-members held-out ones, as many of each. The area under the
ROC curve is 1/2 where nothing is given away; the true positive rate at a small false positive rate says
whether *some* records can be named with confidence, which an average over all records hides.

References
----------
Chen et al. (2020), "GAN-Leaks", for the distance; Carlini et al. (2022), "Membership inference attacks from
first principles", for true positive rates at low false positive rates; van Breugel et al. (2023), "Membership
inference attacks against synthetic data through overfitting detection" (DOMIAS), for the calibrated score.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.evaluation.estimates import Estimate, auc, share

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Membership:
    """Success of the distance attack.

    Attributes
    ----------
    auc : Estimate
        Score: minus the distance to the nearest synthetic record.
    auc_calibrated : Estimate or None
        Score: that distance compared with the distance to the nearest of some reference records, which tells
        a copied record from one in a crowd; an estimate of the ratio of the two densities. Half of the
        held-out records are the references and the other half the non-members: references that were members
        or non-members themselves would tie all scores together. None without references.
    tpr : dict of float to Estimate or None
        By false positive rate; None with too few non-members to measure it.
    tpr_by_chance : dict of float to float or None
        What those rates stay below in a share ``level`` of the tables that give nothing away; a threshold set
        by few non-members is uncertain, which the interval of the rate leaves out.
    n_members, n_non_members : int
    """

    auc: Estimate
    auc_calibrated: Estimate | None
    tpr: dict[float, Estimate | None]
    tpr_by_chance: dict[float, float | None]
    n_members: int
    n_non_members: int


def membership(
    train_synthetic: Floats,
    test_synthetic: Floats,
    train_reference: Floats | None = None,
    test_reference: Floats | None = None,
    *,
    rates: tuple[float, ...] = (0.01, 0.001),
    level: float = 0.95,
) -> Membership:
    """Attack with distances.

    Parameters
    ----------
    train_synthetic, test_synthetic : ndarray of shape (k,)
        Distance of each member and of each non-member to its nearest synthetic record.
    train_reference, test_reference : ndarray of shape (k,), (j,), optional
        Distance of each member, and of each of the last j non-members, to its nearest reference record.
    rates : tuple of float
        False positive rates; 1/rate non-members are needed to measure one.

    Returns
    -------
    Membership
        Internal. Intervals are over real records, the synthetic table held fixed: DeLong's for the AUC.
    """
    members, others = -train_synthetic, -test_synthetic
    calibrated = None
    if train_reference is not None and test_reference is not None:
        tested = test_synthetic[len(test_synthetic) - len(test_reference) :]
        ratios = density_ratio(train_synthetic, train_reference), density_ratio(tested, test_reference)
        calibrated = auc(*ratios, level)
    return Membership(
        auc=auc(members, others, level),
        auc_calibrated=calibrated,
        tpr={rate: tpr_at_fpr(members, others, rate, level) for rate in rates},
        tpr_by_chance={rate: chance_tpr(len(members), len(others), rate, level) for rate in rates},
        n_members=len(members),
        n_non_members=len(others),
    )


def tpr_at_fpr(members: Floats, non_members: Floats, rate: float, level: float = 0.95) -> Estimate | None:
    """Share of members scored above all but a share ``rate`` of the non-members.

    Parameters
    ----------
    members, non_members : ndarray of shape (n,), (m,)
        Scores, higher for members.
    rate : float
        Largest false positive rate, in (0, 1).
    level : float
        Of the Clopper-Pearson interval over members, the threshold held fixed.

    Returns
    -------
    Estimate or None
        None with fewer than ``1 / rate`` non-members.

    Notes
    -----
    The threshold is the score of the non-member number ``floor(rate m) + 1`` from the top, and only scores
    strictly above it count: of tied scores either all are called members or, if that passed the rate, none.
    """
    m, allowed = len(non_members), _allowed(len(non_members), rate)
    if allowed < 1 or not len(members):
        return None
    threshold = np.sort(non_members)[m - allowed - 1] if allowed < m else -np.inf
    return share(int((members > threshold).sum()), len(members), level)


def chance_tpr(n_members: int, n_non_members: int, rate: float, level: float = 0.95) -> float | None:
    """Return what :func:`tpr_at_fpr` stays at or below with probability ``level`` if scores say nothing.

    The number of members above a given non-member is then negative hypergeometric (a beta-binomial): members
    and non-members come in any order with equal probability. Ties only make the rate smaller.
    """
    from scipy.stats import betabinom

    allowed = _allowed(n_non_members, rate)
    if allowed < 1 or not n_members:
        return None
    return float(betabinom.ppf(level, n_members, allowed + 1, n_non_members - allowed)) / n_members


def _allowed(n_non_members: int, rate: float) -> int:
    # The products 0.01 * 100 and 0.001 * 1000 must count as 1.
    return int(np.floor(rate * n_non_members + 1e-9))


def density_ratio(to_synthetic: Floats, to_reference: Floats) -> Floats:
    """Distance to reference over distance to synthetic records; 1 where both are 0, infinite where one is.

    A growing function of the ratio of the densities that the nearest neighbour estimates.
    """
    positive = to_synthetic > 0
    ratio = to_reference / np.where(positive, to_synthetic, 1.0)
    return np.where(positive, ratio, np.where(to_reference > 0, np.inf, 1.0))
