"""The privacy profile of a list of events: what its outputs allow any test, attacker or observer.

Everything is computed from the privacy-loss distribution. The exact total variation of a composed mechanism
is delta(epsilon = 0). It bounds the advantage TPR - FPR of every membership attack (Jia 2023, "Total
variation distance privacy"). Never show it without epsilon. Publishing one random record has a total
variation of only 1/n, but reveals a patient.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from dpsynth.accounting.conversions import posterior_belief
from dpsynth.accounting.gaussian import GaussianLoss
from dpsynth.accounting.normal_form import ADD_REMOVE, check_adjacency, normalised
from dpsynth.accounting.pld import NoPrivacy, NumericLoss, loss_of
from dpsynth.accounting.promise import PromisedLoss, promised_loss
from dpsynth.accounting.tradeoff import TradeOff, from_deltas
from dpsynth.checks import in_range
from dpsynth.errors import InputError

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

#: privacy loss beyond which a quantile is infinite
_LARGEST_LEVEL = 1e12


class Profile:
    """Composed privacy cost of events.

    All results are upper bounds. A proved bound of what rounding may take from them is added
    (:func:`dpsynth.accounting.pld._rounding`). Below it, and below ``delta = 1e-12``, epsilon of a
    numerically composed profile is infinite unless the loss is bounded. Unsampled Gaussians alone are exact
    to the last digits at any delta. A number out of range or NaN raises InputError. An event that cannot be
    accounted for raises PrivacyError.

    Parameters
    ----------
    events : iterable of DpEvent
        Everything done to the same private table, in any order. A later *query* may depend on earlier
        outputs. Its noise (its event) may not, except by stages, see :class:`~dpsynth.accounting.Ledger`.
    adjacency : {"add/remove", "replace-one"}
        Numbers in events are always those under add/remove one record. For their meaning under replace-one,
        see :mod:`dpsynth.accounting.normal_form`.
    coarseness : float
        1 for results to report, larger for quicker, more pessimistic ones.

    Examples
    --------
    >>> from dpsynth.accounting import gaussian_event
    >>> profile = Profile([gaussian_event(1.0)])
    >>> round(profile.tv(), 5), round(profile.attack_accuracy(), 5)
    (0.38292, 0.69146)
    >>> round(profile.epsilon(1e-5), 4)
    4.3772
    """

    def __init__(
        self, events: Iterable[DpEvent], *, adjacency: str = ADD_REMOVE, coarseness: float = 1.0
    ) -> None:
        self.adjacency = check_adjacency(adjacency)
        form = normalised(events, adjacency)
        self.private = form.private
        self._dominating: tuple[DpEvent, ...] = ()
        coarseness = in_range("coarseness", coarseness, 1.0, math.inf, high_open=True)
        self._loss: GaussianLoss | NumericLoss | PromisedLoss | NoPrivacy = loss_of(form, coarseness)

    @classmethod
    def promised(
        cls,
        epsilon: float,
        delta: float,
        tv: float,
        *,
        adjacency: str = ADD_REMOVE,
        composed: Sequence[DpEvent] = (),
    ) -> Self:
        """Return what follows from (epsilon, delta) and a bound on the total variation alone.

        All are at least 0. Nothing is promised if epsilon is infinite or delta is 1 or more. If epsilon and
        delta imply a smaller total variation, that is used. ``composed`` are events, with numbers under
        add/remove one record, that dominate the same mechanisms. Beliefs are then read off their composition.

        Examples
        --------
        >>> profile = Profile.promised(2.0, 1e-5, 0.5)
        >>> profile.epsilon(1e-5), profile.tv(), round(profile.attack_accuracy(), 4)
        (2.0, 0.5, 0.75)
        """
        numbers = (("epsilon", epsilon), ("delta", delta), ("tv", tv))
        loss = promised_loss(*(in_range(name, value, 0.0, math.inf) for name, value in numbers))
        self = cls([], adjacency=adjacency)
        self.private, self._loss = loss is not None, loss or NoPrivacy()
        self._dominating = tuple(composed) if loss is not None else ()
        return self

    def delta(self, epsilon: float) -> float:
        """Smallest delta for which ``epsilon`` (at least 0, may be infinite) holds."""
        return self._loss.delta(in_range("epsilon", epsilon, 0.0, math.inf))

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon that holds at ``delta`` (in [0, 1]), rounded up, infinite if none does."""
        return self._loss.epsilon(in_range("delta", delta, 0.0, 1.0))

    def tv(self) -> float:
        """Total variation distance between the outputs on neighbouring tables, which is delta(0)."""
        return self._loss.delta(0.0)

    def advantage(self, fpr: float | None = None) -> float:
        """Largest TPR - FPR of any membership attack, or of those with false positive rate ``fpr``.

        Over all rates it is the total variation (Jia 2023, Theorem 15 and its surroundings).
        """
        if fpr is None:
            return self.tv()
        return _up(max(0.0, float(self.tpr(in_range("fpr", fpr, 0.0, 1.0))) - fpr))

    def fnr(self, fpr: float | np.ndarray) -> float | np.ndarray:
        """Smallest false negative rate of a membership test at a false positive rate: the trade-off curve.

        ``fpr`` is a number in [0, 1] or an array of them. Sampling makes a record's presence easier to notice
        than its absence, or the reverse. The curve is the lower convex hull of both. It bounds either, and a
        test that chooses its claim at random.
        """
        if np.asarray(fpr).dtype.kind not in "fiu":
            raise InputError(f"fpr must be a number in [0, 1] or an array of them, not {fpr!r}")
        rates = np.asarray(fpr, dtype=float)
        outside = rates[~((rates >= 0.0) & (rates <= 1.0))]
        if outside.size:
            raise InputError(f"fpr must lie in [0, 1], not {outside.flat[0]:g}")
        if isinstance(self._loss, GaussianLoss):
            return self._loss.fnr(fpr)
        return self._curve(fpr)

    def tpr(self, fpr: float | np.ndarray) -> float | np.ndarray:
        """Largest true positive rate at a false positive rate, that is ``1 - fnr``: the ROC curve."""
        fnr = self.fnr(fpr)
        if isinstance(self._loss, GaussianLoss):
            return self._loss.tpr(fpr)
        value = np.maximum(1 - np.asarray(fnr), fpr)  # a test may always guess
        return value if np.ndim(fpr) else float(value)

    def ppv(self, fpr: float, prior: float) -> float:
        """Largest share of true ones among the positive results of a test with false positive rate ``fpr``.

        ``prior`` is the share of members among those tested (Jia 2023, Theorem 16, with the exact curve). The
        result grows as the rate falls. From 1e-9 downward it is the belief at the largest possible loss.
        """
        prior = in_range("prior", prior, 0.0, 1.0)
        largest = _up(posterior_belief(self.epsilon(0.0), prior))
        if in_range("fpr", fpr, 0.0, 1.0) < 1e-9:
            return largest
        true = prior * float(self.tpr(fpr))
        positive_results = true + (1 - prior) * fpr
        return min(largest, _up(true / positive_results)) if positive_results > 0.0 else prior

    def mu(self, smallest_fpr: float = 1e-6) -> float:
        """Gaussian-DP equivalent: the smallest mu whose trade-off curve lies nowhere above this profile's.

        A single Gaussian mechanism with noise multiplier 1 / mu reveals at least as much. Error rates below
        ``smallest_fpr`` (1e-9 to 0.1) are left out: in the far tail sampled mechanisms are not Gaussian.
        """
        smallest_fpr = in_range("smallest_fpr", smallest_fpr, 1e-9, 0.1)
        if not self.private:
            return math.inf
        if isinstance(self._loss, GaussianLoss):
            return self._loss.mu
        return self._curve.mu(smallest_fpr)

    def belief(self, delta: float, prior: float = 0.5) -> float:
        """Bound on an observer's belief that a member is one: ``e^epsilon(delta)`` times the prior odds.

        MOSAICrOWN D5.3, Theorem 2, for any ``prior``. The bound fails with a probability of
        ``belief_exceedance(delta)``, which can be more than ``delta``.

        Examples
        --------
        >>> from dpsynth.accounting import gaussian_event
        >>> round(Profile([gaussian_event(1.6)]).belief(1e-5), 4)
        0.9282
        """
        return _up(posterior_belief(self._level(delta), prior))

    def belief_exceedance(self, delta: float) -> float:
        """Bound, for every record, on the probability that a belief exceeds ``belief(delta)``.

        It is :meth:`largest_exceedance` at the privacy loss that the belief stands for.
        """
        level, composed = self._level(delta), self._composed
        return min(p.largest_exceedance(level) for p in (self, composed) if p is not None)

    @cached_property
    def _composed(self) -> Profile | None:
        return Profile(self._dominating) if self._dominating else None

    def _level(self, delta: float) -> float:
        """The privacy loss that a belief is bounded by."""
        level = self.epsilon(delta)
        return level if self._composed is None else min(level, self._composed.epsilon(delta))

    def exceedance(self, epsilon: float) -> float:
        """Probability that the privacy loss of a record at the bound exceeds ``epsilon``.

        The larger of presence and absence. Other records can have a larger one, see
        :meth:`largest_exceedance`. Exact for unsampled Gaussians, else accurate to the grid of the
        privacy-loss distribution (an upper bound if the loss has atoms, as with Laplace noise).
        """
        return self._loss.exceedance(in_range("epsilon", epsilon, 0.0, math.inf))

    def largest_exceedance(self, epsilon: float) -> float:
        """Bound the probability that any observer's odds grow by more than e^epsilon.

        It is valid for every record, in whichever of the two tables is true. It is valid for every function
        of the outputs, and if later steps depend on earlier outputs.

        Notes
        -----
        Let S be the outcomes after which the odds have grown by more: ``P(S) > e^epsilon Q(S)``. For every x
        below epsilon, ``P(S) - e^x Q(S) <= delta(x)``. It follows that ``P(S) (1 - e^(x - epsilon)) <=
        delta(x)``. The result is the least of these bounds over a grid of x. The infimum is where the ROC
        curve leaves the line ``tpr = e^epsilon fpr``. Observers who only see if a Gaussian output lies in one
        tail come as close to it as they like. Only delta is used. It holds for adaptive steps (Zhu, Dong and
        Wang 2022, "Optimal accounting of differential privacy via characteristic function", Theorem 10).

        Examples
        --------
        >>> from dpsynth.accounting import gaussian_event
        >>> profile = Profile([gaussian_event(8.38, count=30)])
        >>> round(profile.exceedance(2.197), 4), round(profile.largest_exceedance(2.197), 4)
        (0.0012, 0.0029)
        """
        epsilon = in_range("epsilon", epsilon, 0.0, math.inf)
        beyond = self.delta(epsilon)
        if beyond <= 0.0 or math.isinf(epsilon):
            return beyond
        if epsilon == 0.0:
            return 1.0
        # a promise is linear between corners, at which its own bound is taken
        least = self.exceedance(epsilon) if isinstance(self._loss, PromisedLoss) else 1.0
        ahead = np.geomspace(min(1e-6, 1e-6 * epsilon), epsilon + 40.0, 400)
        for _ in range(2):  # the second time between the neighbours of the best
            x = epsilon - ahead
            ahead = epsilon - x  # as it was rounded
            # at -x, with the tables exchanged, delta is 1 - e^-x (1 - delta(x))
            factor = np.exp(np.minimum(x, 0.0))
            deltas = factor * np.asarray(self._loss.deltas(np.abs(x).tolist())) - np.expm1(np.minimum(x, 0.0))
            bounds = deltas / -np.expm1(-ahead)
            best = int(bounds.argmin())
            least = min(least, _up(float(bounds[best])))
            ahead = np.geomspace(ahead[max(best - 1, 0)], ahead[min(best + 1, ahead.size - 1)], 400)
        return least

    def loss_quantile(self, probability: float) -> float:
        """Smallest level, at least 0, that :meth:`exceedance` puts at most at this probability."""
        return self._loss.quantile(in_range("probability", probability, 0.0, 1.0))

    def largest_loss_quantile(self, probability: float) -> float:
        """Smallest level that :meth:`largest_exceedance` puts at most at this probability, rounded up."""
        probability = in_range("probability", probability, 0.0, 1.0)
        if probability in (0.0, 1.0):
            return self.epsilon(probability)
        low, high = 0.0, 1.0
        if self.largest_exceedance(low) <= probability:
            return 0.0
        while self.largest_exceedance(high) > probability:
            low, high = high, 2 * high
            if high > _LARGEST_LEVEL:
                return math.inf
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            above = self.largest_exceedance(middle) > probability
            low, high = (middle, high) if above else (low, middle)
        return high

    def attack_accuracy(self, prior: float = 0.5) -> float:
        """Largest accuracy of any membership attack whose target is a member with probability ``prior``.

        It is ``P0 + P1 delta(log(P0 / P1))``, with P0 the larger and P1 the smaller of ``prior`` and its
        complement. It is at most Jia's ``P0 + P1 tv`` and equal to it at 1/2.
        """
        prior = in_range("prior", prior, 0.0, 1.0)
        larger, smaller = max(prior, 1 - prior), min(prior, 1 - prior)
        if smaller == 0.0:
            return 1.0
        exact = 1 - larger == smaller
        # accuracy = P0 + sup_S [P1 P(S) - P0 Q(S)] = P0 + P1 delta(log(P0 / P1))
        gained = smaller * self.delta(math.log(larger / smaller))
        return larger if gained == 0.0 and exact else _up(larger + gained)

    @cached_property
    def _curve(self) -> TradeOff:
        assert not isinstance(self._loss, GaussianLoss)  # which has its own
        grid = self._loss.grid()
        return from_deltas(grid, np.asarray(self._loss.deltas(grid.tolist())))


def _up(value: float) -> float:
    """A probability that a few products, quotients and logarithms gave, rounded to the private side."""
    return min(1.0, value * (1 + 4e-14))
