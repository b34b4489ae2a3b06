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
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dpsynth.checks import in_range, inside, whole
from dpsynth.errors import InputError
from dpsynth.privacy.conversions import posterior_belief
from dpsynth.privacy.events import training_event
from dpsynth.privacy.gaussian_loss import GaussianLoss
from dpsynth.privacy.guarantee import round_up
from dpsynth.privacy.loss import (
    ADD_REMOVE,
    NoPrivacy,
    NumericLoss,
    PromisedLoss,
    TradeOff,
    check_adjacency,
    from_deltas,
    loss_of,
    normalised,
    promised_loss,
)

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent


#: privacy loss beyond which a quantile is infinite
_LARGEST_LEVEL = 1e12


class Profile:
    """Composed privacy cost of events.

    All results are upper bounds. A proved bound of what rounding may take from them is added
    (:func:`dpsynth.privacy.loss._rounding`). Below it, and below ``delta = 1e-12``, epsilon of a
    numerically composed profile is infinite unless the loss is bounded. Unsampled Gaussians alone are exact
    to the last digits at any delta. A number out of range or NaN raises InputError. An event that cannot be
    accounted for raises PrivacyError.

    Parameters
    ----------
    events : iterable of DpEvent
        Everything done to the same private table, in any order. A later *query* may depend on earlier
        outputs. Its noise (its event) may not, except by stages, see :class:`~dpsynth.privacy.Ledger`.
    adjacency : {"add/remove", "replace-one"}
        Numbers in events are always those under add/remove one record. For their meaning under replace-one,
        see :mod:`dpsynth.privacy.loss`.
    coarseness : float
        1 for results to report, larger for quicker, more pessimistic ones.

    Examples
    --------
    >>> from dpsynth.privacy import gaussian_event
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
        >>> from dpsynth.privacy import gaussian_event
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
        >>> from dpsynth.privacy import gaussian_event
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


# ------------------------------------------------------------------------------------------------
# All privacy measures of a profile: as one record of numbers, and in words for one record.

#: numbers by name, as :func:`measures_of` lists them
Measures = dict[str, Any]


def from_parameters(
    noise_multiplier: float,
    sampling_prob: float,
    steps: int,
    delta: float,
    *,
    adjacency: str = ADD_REMOVE,
    prior: float = 0.5,
    fpr: float = 0.01,
) -> Measures:
    """Privacy of a training run of noisy sums over Poisson batches.

    ``noise_multiplier`` is finite, ``sampling_prob`` in (0, 1] and ``delta`` in [0, 1). At 0, epsilon is
    infinite. Returns the parameters, and the measures of :func:`measures_of`.

    Examples
    --------
    >>> cost = from_parameters(2.0, 1.0, 4, 1e-5)
    >>> round(cost["epsilon"], 4), round(cost["tv"], 5)
    (4.3772, 0.38292)
    """
    multiplier = inside("noise_multiplier", noise_multiplier, 0.0, math.inf)
    profile = Profile([training_event(multiplier, sampling_prob, steps)], adjacency=adjacency)
    return {
        "noise_multiplier": multiplier,
        "sampling_prob": float(sampling_prob),
        "steps": whole("steps", steps),
        **measures_of(profile, delta, prior=prior, fpr=fpr),
    }


def measures_of(profile: Profile, delta: float, *, prior: float = 0.5, fpr: float = 0.01) -> Measures:
    """Return all privacy measures of a profile.

    ``delta``, in [0, 1), is for epsilon and the belief. ``prior``, in (0, 1), is the share of members among
    those whom an attacker tests, or an observer's belief beforehand. ``fpr`` is the false positive rate of a
    membership test. InputError names an argument that is out of range.

    Returns
    -------
    dict
        ``adjacency``, ``delta``, ``prior``, ``fpr``, ``epsilon``, ``tv``, ``advantage``,
        ``attack_accuracy_bound`` (for ``prior``), ``mu``, ``advantage_at_fpr``, ``tpr_at_fpr``,
        ``ppv_at_fpr``, ``belief_bound`` and ``belief_exceedance`` (the probability that this is exceeded).
    """
    delta = in_range("delta", delta, 0.0, 1.0, high_open=True)
    prior = inside("prior", prior, 0.0, 1.0)
    epsilon = profile.epsilon(delta)
    return {
        "adjacency": profile.adjacency,
        "delta": delta,
        "prior": prior,
        "fpr": in_range("fpr", fpr, 0.0, 1.0),
        "epsilon": epsilon,
        "tv": profile.tv(),
        "advantage": profile.advantage(),
        "attack_accuracy_bound": profile.attack_accuracy(prior),
        "mu": profile.mu(),
        "advantage_at_fpr": profile.advantage(fpr),
        "tpr_at_fpr": float(profile.tpr(fpr)),
        "ppv_at_fpr": profile.ppv(fpr, prior),
        "belief_bound": profile.belief(delta, prior),
        "belief_exceedance": profile.belief_exceedance(delta),
    }


def meanings(cost: Measures, who: str = "record") -> list[tuple[str, str, str]]:
    """Name, value and meaning of each number of :func:`measures_of`, rounded up: never in the bound's favour.

    ``who`` is what neighbouring tables differ in, such as `Guarantee.who`: a row may be less than a patient.

    Examples
    --------
    >>> for name, value, meaning in meanings(from_parameters(2.0, 1.0, 4, 1e-5))[:2]:
    ...     print(f"{name}: {value}. {meaning}")
    epsilon: 4.37718 at delta 1e-05. Any event is at most 79.62 times as probable with this record as ...
    total variation: 0.382925. Being in the table makes nothing that can happen to this record more ...
    """
    replaced = cost["adjacency"] != "add/remove"
    change = f"this {who} rather than another" if replaced else f"this {who} as without"
    delta, prior, fpr = cost["delta"], cost["prior"], cost["fpr"]
    return [
        (
            "epsilon",
            f"{round_up(cost['epsilon'], 6)} at delta {round_up(delta)}",
            times_as_probable(cost["epsilon"], delta, change),
        ),
        (
            "total variation",
            round_up(cost["tv"], 6),
            points_more_probable(cost["tv"], f"this {who}", "the table"),
        ),
        (
            "attack advantage",
            round_up(cost["advantage"], 6),
            f"A test of whether this {who} is in the table finds members at most "
            f"{percent(cost['advantage'])} times in 100 more often than it suspects non-members."
            if percent(cost["advantage"]) != "100"
            else f"A test of whether this {who} is in the table may find every member and suspect nobody "
            "else.",
        ),
        (
            "attack accuracy",
            f"{round_up(cost['attack_accuracy_bound'], 6)} at prior probability {prior:g}",
            f"A guess of whether this {who} is in the table "
            f"{right_at_most(cost['attack_accuracy_bound'])}. Without the output it is right "
            f"{percent(max(prior, 1 - prior))} times in 100.",
        ),
        (
            "TPR at FPR",
            f"{round_up(cost['tpr_at_fpr'], 6)} at FPR {fpr:g}",
            f"A test that suspects {percent(fpr)} in 100 non-members wrongly finds this {who}, a member, "
            f"with a probability of at most {round_up(cost['tpr_at_fpr'])}.",
        ),
        (
            "advantage at FPR",
            f"{round_up(cost['advantage_at_fpr'], 6)} at FPR {fpr:g}",
            "Such a test finds at most this much more than it would by chance.",
        ),
        (
            "precision at FPR",
            f"{round_up(cost['ppv_at_fpr'], 6)} at FPR {fpr:g}, prior probability {prior:g}",
            f"If {percent(prior)} in 100 of those tested are members, a {who} that such a test names is "
            f"one with a probability of at most {round_up(cost['ppv_at_fpr'])}.",
        ),
        (
            "posterior belief",
            f"{round_up(cost['belief_bound'], 6)} from prior probability {prior:g}",
            f"An attacker who knows all other {who}s sees one output. The probability that this {who} is "
            f"in the table is then at most {round_up(cost['belief_bound'])} to them, but for rare outputs.",
        ),
        (
            "belief exceeded",
            round_up(cost["belief_exceedance"], 6),
            "Outputs after which the belief is beyond that bound have at most this probability. It can be "
            "more than delta.",
        ),
        (
            "Gaussian mu",
            round_up(cost["mu"], 6),
            f"A test of whether this {who} is in the table is at least as hard as the following one. Given "
            "one value from a normal distribution with standard deviation 1, decide whether its mean is 0 or "
            f"{round_up(cost['mu'])}. This leaves out tests with an error rate below 1e-6."
            if math.isfinite(cost["mu"])
            else f"Gaussian noise never gives away as much. With a small probability this {who} may be "
            "identified with certainty.",
        ),
    ]


def times_as_probable(epsilon: float, delta: float, change: str) -> str:
    """Meaning of epsilon and delta, with ``change`` as the comparison.

    Examples
    --------
    >>> times_as_probable(1.0, 1e-5, "you as without")
    'Any event is at most 2.719 times as probable with you as without, plus at most 1e-05.'
    >>> times_as_probable(float("inf"), 1e-5, "you as without")
    'Nothing bounds how many times as probable an event is with you as without.'
    """
    if not epsilon < 700:  # beyond, the factor is no number that a computer can hold
        return f"Nothing bounds how many times as probable an event is with {change}."
    return (
        f"Any event is at most {round_up(math.exp(epsilon))} times as probable with {change}, plus at most "
        f"{round_up(delta)}."
    )


def points_more_probable(tv: float, whom: str, where: str) -> str:
    """Meaning of a total variation for ``whom``.

    Examples
    --------
    >>> points_more_probable(1.0, "this patient", "the table")
    'Anything that happens to this patient may depend wholly on being in the table.'
    """
    if percent(tv) == "100":
        return f"Anything that happens to {whom} may depend wholly on being in {where}."
    return (
        f"Being in {where} makes nothing that can happen to {whom} more probable by more than "
        f"{percent(tv)} points in 100."
    )


def right_at_most(accuracy: float) -> str:
    """How often a guess is right, after its subject."""
    rounded = percent(accuracy)
    return "may be right every time" if rounded == "100" else f"is right at most {rounded} times in 100"


def percent(share: float) -> str:
    """A share in hundredths, rounded up to three figures.

    Examples
    --------
    >>> percent(0.1135), percent(-0.0), percent(1.0)
    ('11.4', '0', '100')
    """
    return round_up(100 * share, 3)
