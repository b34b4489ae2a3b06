"""Make target probabilities from labels and from predictions of models without the record.

Pure functions of arrays, and the choice among them as frozen records ("schemes"). Each scheme turns labels
and a :class:`LeaveOut` into the targets of the final model.

References
----------
Pedersen (2022), thesis, section 5.3: (5.14), the probability form, and (5.15), the logit form; section 5.5
for ordinary label smoothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.checks import in_range
from dpsynth.errors import InputError

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class LeaveOut:
    """Predictions of models without a record.

    Attributes
    ----------
    mean, std : ndarray of shape (n, classes)
        The leave-out mean and standard deviation of the centred logits, (5.15).
    mean_probability : ndarray of shape (n, classes)
        The leave-out mean of (5.14).
    exposure : ndarray of shape (n,)
        Mean logit of the label with the record less that without it, in standard deviations of the latter.
    """

    mean: Floats
    std: Floats
    mean_probability: Floats
    exposure: Floats


def hard_targets(labels: ArrayLike, classes: int) -> Floats:
    """Labels as probabilities: 1 at the label, 0 elsewhere."""
    return np.eye(classes)[np.asarray(labels)]


def from_logits(mean: ArrayLike, std: ArrayLike, labels: ArrayLike, alpha: ArrayLike) -> Floats:
    """Optimally soft labels in the logit form, ``softmax(mean + alpha * signed std)``, (5.15).

    ``alpha`` is at least 0, one number or one for each record. With 0 the targets are the softmax of the
    mean. As it grows without end they become the hard labels, if std is above 0.
    """
    from scipy.special import softmax

    centre, spread = np.asarray(mean, dtype=np.float64), np.asarray(std, dtype=np.float64)
    # positive for the true class, negative for the others: the sigma* of (5.15)
    sign = 2.0 * hard_targets(labels, centre.shape[-1]) - 1.0
    raised = np.asarray(alpha, dtype=np.float64).reshape(-1, 1) * sign * spread
    return softmax(centre + raised, axis=-1)


def from_probabilities(mean_probability: ArrayLike, labels: ArrayLike, alpha: ArrayLike) -> Floats:
    """Optimally soft labels in the probability form, ``alpha * y + (1 - alpha) * mean``, (5.14).

    ``alpha`` lies in [0, 1], one number or one for each record: with 1 the targets are the hard labels.
    """
    mean, share = np.asarray(mean_probability, dtype=np.float64), np.asarray(alpha, dtype=np.float64)
    if not ((share >= 0.0) & (share <= 1.0)).all():
        raise InputError("alpha must lie in [0, 1] in the probability form, which interpolates")
    share = share.reshape(-1, 1)
    return np.asarray(share * hard_targets(labels, mean.shape[-1]) + (1.0 - share) * mean)


def per_record_alpha(exposure: ArrayLike, alpha: float) -> Floats:
    """One alpha for each record: less for records whose logit moves more when they are in.

    ``alpha * min(1, median exposure / exposure)``. The rule is ours. Pedersen (2022) leaves it open.
    """
    given = np.abs(np.asarray(exposure, dtype=np.float64))
    limit = float(np.median(given))
    return np.asarray(alpha * np.divide(limit, given, out=np.ones_like(given), where=given > limit))


class Scheme(Protocol):
    """A way to turn labels into targets."""

    @property
    def name(self) -> str:
        """Name in a few words, unique among schemes that are compared."""

    @property
    def needs_label_models(self) -> bool:
        """Whether models on halves must be trained first."""

    def targets(self, labels: Codes, classes: int, known: LeaveOut | None) -> Floats:
        """Return probabilities of shape (n, classes). ``known`` is None if no label models are needed."""


@dataclass(frozen=True)
class Hard:
    """The labels as they are: no defence."""

    name: str = "hard"
    needs_label_models: bool = False

    def targets(self, labels: Codes, classes: int, known: LeaveOut | None) -> Floats:
        """One-hot labels."""
        return hard_targets(labels, classes)


@dataclass(frozen=True)
class Smoothed:
    """Ordinary label smoothing. ``amount`` in [0, 1] is the uniform distribution's share."""

    amount: float
    needs_label_models: bool = False

    def __post_init__(self) -> None:
        in_range("amount", self.amount, 0.0, 1.0)

    @property
    def name(self) -> str:
        """As in ``smoothed 0.5``."""
        return f"smoothed {self.amount:g}"

    def targets(self, labels: Codes, classes: int, known: LeaveOut | None) -> Floats:
        """``(1 - amount) * y + amount / classes``."""
        return (1.0 - self.amount) * hard_targets(labels, classes) + self.amount / classes


@dataclass(frozen=True)
class _WithAlpha:
    alpha: float
    needs_label_models: bool = True

    word: ClassVar[str]
    most: ClassVar[float] = 1e6

    def __post_init__(self) -> None:
        in_range("alpha", self.alpha, 0.0, self.most)

    @property
    def name(self) -> str:
        """As in ``soft 0.25``."""
        return f"{self.word} {self.alpha:g}"


class OptimallySoft(_WithAlpha):
    """The logit form (5.15) with one alpha, at least 0, for all records."""

    word = "soft"

    def targets(self, labels: Codes, classes: int, known: LeaveOut | None) -> Floats:
        """See :func:`from_logits`."""
        found = _required(known)
        return from_logits(found.mean, found.std, labels, self.alpha)


class Interpolated(_WithAlpha):
    """The probability form (5.14) with one alpha in [0, 1] for all records."""

    word, most = "interpolated", 1.0

    def targets(self, labels: Codes, classes: int, known: LeaveOut | None) -> Floats:
        """See :func:`from_probabilities`."""
        return from_probabilities(_required(known).mean_probability, labels, self.alpha)


class PerRecord(_WithAlpha):
    """The logit form (5.15) with less alpha for more exposed records: see :func:`per_record_alpha`."""

    word = "per record"

    def targets(self, labels: Codes, classes: int, known: LeaveOut | None) -> Floats:
        """See :func:`from_logits` and :func:`per_record_alpha`."""
        found = _required(known)
        return from_logits(found.mean, found.std, labels, per_record_alpha(found.exposure, self.alpha))


def _required(known: LeaveOut | None) -> LeaveOut:
    if known is None:
        raise InputError("this scheme needs what models on halves say of each record: call leave_out first")
    return known
