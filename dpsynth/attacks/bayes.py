"""Bayes attack on the outputs of a model: Gaussians fitted to shadow models with and without each record.

The attacker repeats the defender's *whole* procedure on random halves of the records. For each record each
shadow model gives one number: its logit for the record's label. One normal distribution is fitted to the
models that had the record (IN) and one to the others (OUT). The log-ratio of both densities at the
released model's number is the evidence that the record was a member. The functions take and return arrays,
and train no model. Numbers computed from real records are confidential.

The released model must not be among the shadow models that it is compared with.

References
----------
Pedersen (2022), section 5.2.1, equations (5.8) and (5.11), and section 5.3, (5.12)
and (5.13). Carlini et al. (2022), "Membership inference attacks from first principles", for the logit of
the confidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dpsynth.attacks.attempt import Floats
from dpsynth.checks import inside, one_of
from dpsynth.errors import InputError, of_records
from dpsynth.evaluation.estimates import Estimate, share

Spread = Literal["record", "pooled"]
#: probabilities are kept this far from 0 and 1, so that trees and memorisers have finite logits
CLIP = 1e-6
#: standard deviations are at least this many logits: a model that always says the same is not infinitely sure
SMALLEST_STD = 1e-3


def centred_logits(probabilities: ArrayLike) -> Floats:
    """Log-probabilities less their mean over the classes: the raw outputs of a softmax, centred.

    Examples
    --------
    >>> centred_logits([[0.5, 0.5], [0.9, 0.1]]).round(3).tolist()
    [[0.0, 0.0], [1.099, -1.099]]
    """
    given = np.asarray(probabilities, dtype=np.float64)
    if given.ndim < 1 or given.shape[-1] < 2:
        raise InputError(f"probabilities must have at least two classes, got an array of shape {given.shape}")
    logs = np.log(np.clip(given, CLIP, 1.0))
    centred: Floats = logs - logs.mean(axis=-1, keepdims=True)
    return centred


def label_logit(probabilities: ArrayLike, labels: ArrayLike) -> Floats:
    """``log(p / (1 - p))`` of the probability p that a model gives to each record's label: g_i of (5.12).

    It takes probabilities (..., n, classes) and n labels, and has shape (..., n). For two classes it is twice
    the centred logit of the label.
    """
    given, codes = np.asarray(probabilities, dtype=np.float64), np.asarray(labels)
    if given.ndim < 2 or codes.shape != (given.shape[-2],):
        raise InputError(
            f"labels must have one entry a record, got shape {codes.shape} "
            f"for probabilities of shape {given.shape}"
        )
    p = np.clip(given[..., np.arange(len(codes)), codes], CLIP, 1.0 - CLIP)
    logit: Floats = np.log(p) - np.log1p(-p)
    return logit


@dataclass(frozen=True)
class Gaussians:
    """Normal distributions of n records' outputs, with the record in the training set and out of it."""

    mean_in: Floats
    std_in: Floats
    mean_out: Floats
    std_out: Floats

    def log_odds(self, observed: ArrayLike) -> Floats:
        """Log-ratio of both densities at the outputs of the released model, one for each record.

        With even odds beforehand it is the logit of P(member). It is also the effective privacy loss
        ``gamma(u_i)`` of (5.11) and (5.13), with the model trained without the record for the average one. It
        says nothing about differential privacy.
        """
        z_in = (np.asarray(observed, dtype=np.float64) - self.mean_in) / self.std_in
        z_out = (np.asarray(observed, dtype=np.float64) - self.mean_out) / self.std_out
        gamma: Floats = np.log(self.std_out / self.std_in) + 0.5 * (z_out**2 - z_in**2)
        return gamma


def fit_gaussians(outputs: ArrayLike, members: ArrayLike, spread: Spread = "record") -> Gaussians:
    """Fit the IN and OUT distributions of each record to shadow models.

    ``outputs`` are each model's numbers, for instance :func:`label_logit`, shape (shadow models, n).
    ``members`` says whether the record was in the model's training set. Standard deviations are each record's
    own, or one IN and one OUT for all ("pooled"). Pooled is better with few shadow models (Carlini et al. use
    it below 64).

    Examples
    --------
    >>> outputs, members = [[2.0], [4.0], [0.0], [-2.0]], [[True], [True], [False], [False]]
    >>> fitted = fit_gaussians(outputs, members)
    >>> fitted.mean_in.tolist(), fitted.mean_out.tolist(), fitted.log_odds([1.0]).tolist()
    ([3.0], [-1.0], [0.0])
    """
    one_of("spread", spread, ("record", "pooled"))
    values, inside_ = np.asarray(outputs, dtype=np.float64), np.asarray(members, dtype=bool)
    if values.ndim != 2 or values.shape != inside_.shape:
        raise InputError(
            "outputs and members must have one shape (shadow models, n), "
            f"got {values.shape} and {inside_.shape}"
        )
    if not np.isfinite(values).all():
        raise InputError("outputs must be finite. Keep probabilities away from 0 and 1 before the logarithm")
    fewest = min(inside_.sum(axis=0).min(), (~inside_).sum(axis=0).min())
    if fewest < 2:
        raise InputError(
            f"every record needs at least two shadow models with it and two without, one has {fewest}"
        )
    means, stds = [], []
    for chosen in (inside_, ~inside_):
        count = chosen.sum(axis=0)
        mean = np.where(chosen, values, 0.0).sum(axis=0) / count
        squares = np.where(chosen, (values - mean) ** 2, 0.0).sum(axis=0)
        if spread == "pooled":
            variance = np.full(values.shape[1], squares.sum() / (count - 1).sum())
        else:
            variance = squares / (count - 1)
        means.append(mean)
        stds.append(np.maximum(np.sqrt(variance), SMALLEST_STD))
    return Gaussians(means[0], stds[0], means[1], stds[1])


def membership_probability(log_odds: ArrayLike) -> Floats:
    """``P_IN = 1 / (1 + exp(-log_odds))``, (5.7): for a record at even odds, or a pair's first record."""
    from scipy.special import expit

    probability: Floats = expit(np.asarray(log_odds, dtype=np.float64))
    return probability


@dataclass(frozen=True)
class LowRate:
    """True positive rate, and the share of non-members above its threshold: at most the requested rate."""

    fpr: float
    tpr: Estimate


def lowest_fpr(non_members: int) -> float:
    """Lowest false positive rate that a sample supports: the one with ten false positives in it."""
    return min(1.0, 10 / non_members) if non_members > 0 else 1.0


def tpr_at_fpr(members: ArrayLike, non_members: ArrayLike, fpr: float, level: float = 0.95) -> LowRate:
    """True positive rate of an attack's scores, higher for members, at a rate of at least :func:`lowest_fpr`.

    The interval takes the scores for independent, and the threshold for fixed.

    >>> import numpy as np
    >>> found = tpr_at_fpr(np.arange(50, 150), np.arange(100), fpr=0.1)
    >>> found.fpr, found.tpr.value
    (0.1, 0.6)
    """
    inside("fpr", fpr, 0.0, 1.0)
    ours, others = (np.asarray(scores, dtype=np.float64).ravel() for scores in (members, non_members))
    if not len(ours):
        raise InputError("members must hold at least one score")
    if fpr < lowest_fpr(len(others)):
        raise of_records(
            f"fpr must be at least {lowest_fpr(len(others)):g} with {len(others)} non-members, not {fpr:g}: "
            "a lower rate rests on fewer than 10 false positives"
        )
    allowed = int(np.floor(fpr * len(others) + 1e-9))
    # strictly above the first non-member that is one too many, so that ties never raise the rate
    threshold = np.sort(others)[::-1][allowed]
    rate = float((others > threshold).mean())
    return LowRate(rate, share(int((ours > threshold).sum()), len(ours), level))
