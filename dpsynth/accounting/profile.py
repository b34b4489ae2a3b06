"""The privacy profile of a list of events: epsilon(delta), delta(epsilon), total variation, attack bounds.

Jia 2023, "Total variation distance privacy": the exact total variation of a composed mechanism is
delta(epsilon = 0) of its privacy-loss distribution, and it bounds the advantage TPR - FPR of every
membership attack. Total variation is never shown without epsilon: releasing one random record has a total
variation of 1/n and gives a patient away.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dpsynth.accounting.atoms import ADD_REMOVE, check_adjacency, normal_form
from dpsynth.accounting.checks import in_range, positive, whole
from dpsynth.accounting.events import training_event
from dpsynth.accounting.pld import loss_of

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent


class Profile:
    """Composed privacy cost of events.

    Parameters
    ----------
    events : iterable of DpEvent
        What was done to the same private table, in any order; later events may depend on earlier outputs.
    adjacency : {"add/remove", "replace-one"}
        Under replace-one, unsampled events are read with twice their add/remove sensitivity, and
        Poisson-sampled ones are refused.
    failure_probability : float
        Bound, for each table, on the probability that the run did something other than its events say
        (see :mod:`dpsynth.accounting.overflow`); adds ``(1 + e^epsilon) * failure_probability`` to delta.
    coarseness : float
        1 for results to report; larger for quicker, more pessimistic ones.

    Raises
    ------
    PrivacyError
        If an event is unknown, naming it, or cannot be accounted for under this adjacency.
    InputError
        If a number in an event is out of range or NaN.

    Notes
    -----
    All results are upper bounds up to rounding. Below ``delta = 1e-12`` a numerically composed profile makes
    no claim: epsilon is infinite there unless the loss is bounded. Unsampled Gaussians alone are exact at
    any delta.

    Examples
    --------
    >>> from dpsynth.accounting.events import gaussian_event
    >>> profile = Profile([gaussian_event(1.0)])
    >>> round(profile.tv(), 5), round(profile.attack_accuracy(), 5)
    (0.38292, 0.69146)
    >>> round(profile.epsilon(1e-5), 4)
    4.3772
    """

    def __init__(
        self,
        events: Iterable[DpEvent],
        *,
        adjacency: str = ADD_REMOVE,
        failure_probability: float = 0.0,
        coarseness: float = 1.0,
    ) -> None:
        self.adjacency = check_adjacency(adjacency)
        self.failure_probability = in_range("failure_probability", failure_probability, 0.0, 1.0)
        form = normal_form(events, adjacency)
        self.private = form.private
        self._loss = loss_of(form, in_range("coarseness", coarseness, 1.0, math.inf, high_open=True))

    def delta(self, epsilon: float) -> float:
        """Smallest delta for which ``epsilon`` (at least 0, may be infinite) holds; decreasing in epsilon.

        Raises
        ------
        InputError
            If epsilon is negative or NaN.
        """
        epsilon = in_range("epsilon", epsilon, 0.0, math.inf)
        if self.failure_probability == 0.0:
            return self._loss.delta(epsilon)
        if epsilon > 0.0:
            epsilon = min(epsilon, self._turning_point)
        return min(1.0, self._loss.delta(epsilon) + self._charge(epsilon))

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon that holds at ``delta`` (in [0, 1]), rounded up; infinite if none does.

        Raises
        ------
        InputError
            If delta lies outside [0, 1] or is NaN.
        """
        delta = in_range("delta", delta, 0.0, 1.0)
        epsilon = self._loss.epsilon(delta)
        if self.failure_probability == 0.0 or math.isinf(epsilon):
            return epsilon
        # The charge grows with epsilon, so solve epsilon = E(delta - charge(epsilon)). From below the
        # iteration rises to the smallest solution, which it never passes; the last step is upward.
        for _ in range(100):
            following = self._epsilon_after_charge(delta, epsilon)
            if following <= epsilon * (1 + 1e-9):
                break
            if math.isinf(following):
                return math.inf
            epsilon = following
        step = 1e-9
        while self._epsilon_after_charge(delta, epsilon) > epsilon:
            epsilon, step = epsilon + step * (1 + epsilon), 2 * step
            if self._charge(epsilon) > delta:
                return math.inf
        return epsilon

    def tv(self) -> float:
        """Total variation distance between the outputs on neighbouring tables, which is delta(0)."""
        return self._tv

    def advantage(self) -> float:
        """Largest TPR - FPR of any membership attack, which is the total variation."""
        return self._tv

    def attack_accuracy(self, prior: float = 0.5) -> float:
        """Largest accuracy of any membership attack whose target is a member with probability ``prior``.

        With P0 the larger and P1 the smaller of the prior and its complement, it is
        ``P0 + P1 delta(log(P0 / P1))``, at most Jia's ``P0 + P1 tv`` and equal to it at 1/2.

        Raises
        ------
        InputError
            If ``prior`` lies outside [0, 1] or is NaN.
        """
        prior = in_range("prior", prior, 0.0, 1.0)
        larger, smaller = max(prior, 1 - prior), min(prior, 1 - prior)
        if smaller == 0.0:
            return 1.0
        # accuracy = P0 + sup_S [P1 P(S) - P0 Q(S)] = P0 + P1 delta(log(P0 / P1))
        return larger + smaller * (self._tv if larger == smaller else self.delta(math.log(larger / smaller)))

    @cached_property
    def _tv(self) -> float:
        return self.delta(0.0)

    def _charge(self, epsilon: float) -> float:
        if self.failure_probability == 0.0:
            return 0.0
        exponent = epsilon + math.log(self.failure_probability)
        return self.failure_probability + (math.exp(exponent) if exponent < 0.0 else math.inf)

    def _epsilon_after_charge(self, delta: float, epsilon: float) -> float:
        room = delta - self._charge(epsilon)
        return self._loss.epsilon(room) if room >= 0.0 else math.inf

    @cached_property
    def _turning_point(self) -> float:
        # delta(epsilon) + charge(epsilon) is convex in e^epsilon: it falls to its minimum, then rises, and
        # what holds at the minimum holds at every larger epsilon. The grid point before the lowest one
        # lies on the falling side.
        reach = self._loss.epsilon(max(self.failure_probability, 1e-12))
        grid = np.linspace(0.0, reach if math.isfinite(reach) else 50.0, 512)
        totals = [
            delta + self._charge(epsilon)
            for epsilon, delta in zip(grid.tolist(), self._loss.deltas(grid.tolist()), strict=True)
        ]
        return float(grid[max(0, int(np.argmin(totals)) - 1)])


def from_parameters(
    noise_multiplier: float, sampling_prob: float, steps: int, delta: float
) -> dict[str, float | str]:
    """Privacy of a training run of noisy sums over Poisson batches, under add/remove one record.

    Parameters
    ----------
    noise_multiplier : float
        Noise std over sensitivity, greater than 0 and finite.
    sampling_prob : float
        Probability with which each record joins a batch, in (0, 1].
    steps : int
        Number of noisy sums, at least 1.
    delta : float
        In [0, 1); at 0, epsilon is infinite.

    Returns
    -------
    dict
        The parameters, ``adjacency``, and ``epsilon``, ``tv``, ``advantage``, ``attack_accuracy_bound``.

    Raises
    ------
    InputError
        If a parameter is out of range or NaN, naming it.

    Examples
    --------
    >>> cost = from_parameters(2.0, 1.0, 4, 1e-5)
    >>> round(cost["epsilon"], 4), round(cost["tv"], 5)
    (4.3772, 0.38292)
    """
    multiplier = in_range(
        "noise_multiplier", positive("noise_multiplier", noise_multiplier), 0.0, math.inf, high_open=True
    )
    delta = in_range("delta", delta, 0.0, 1.0, high_open=True)
    profile = Profile([training_event(multiplier, sampling_prob, steps)])
    return {
        "noise_multiplier": multiplier,
        "sampling_prob": float(sampling_prob),
        "steps": whole("steps", steps),
        "delta": delta,
        "adjacency": ADD_REMOVE,
        "epsilon": profile.epsilon(delta),
        "tv": profile.tv(),
        "advantage": profile.advantage(),
        "attack_accuracy_bound": profile.attack_accuracy(),
    }
