"""The result of an attack, beside the proved bound and the result of a baseline attack."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.checks import in_range, inside, one_of, whole
from dpsynth.errors import InputError, of_records
from dpsynth.evaluation.estimates import Estimate, share, share_difference, sure_end
from dpsynth.files.storage import finite
from dpsynth.privacy.events import gaussian_event
from dpsynth.privacy.profile import Profile

# ------------------------------------------------------------------------------------------------
# Bayes attack on the outputs of a model: Gaussians fitted to shadow models with and without each record.
#
# The attacker repeats the defender's *whole* procedure on random halves of the records. For each record each
# shadow model gives one number: its logit for the record's label. One normal distribution is fitted to the
# models that had the record (IN) and one to the others (OUT). The log-ratio of both densities at the
# released model's number is the evidence that the record was a member. The functions take and return arrays,
# and train no model. Numbers computed from real records are confidential.
#
# The released model must not be among the shadow models that it is compared with.
#
# References ---------- Pedersen (2022), section 5.2.1, equations (5.8) and (5.11), and section 5.3, (5.12)
# and (5.13). Carlini et al. (2022), "Membership inference attacks from first principles", for the logit of
# the confidence.

Floats = NDArray[np.float64]
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


#: what is measured: right guesses in [0, 1] from even odds; true minus false positive rate; the share of
#: members named at a false positive rate; total variation; epsilon; posterior belief; the rate of an attack
#: on a table; the share of runs whose belief passes a limit
Measure = Literal["accuracy", "advantage", "tpr", "tv", "epsilon", "belief", "rate", "exceedance"]
MEASURES: tuple[str, ...] = get_args(Measure)


#: by guessing one of two, and nothing: controls
COIN, NOTHING = Estimate(0.5, 0.5, 0.5), Estimate(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Attempt:
    """One number of an attack.

    Parameters
    ----------
    attack : str
        The attack, for instance ``"leave-two-unlabeled, retraining"``.
    measure : str
        One of :data:`MEASURES`.
    found : Estimate
        Result of the attack, with its interval.
    proved : float or None
        The bound in the same measure, None if none is proved.
    control : Estimate or None
        Result of an attacker without the table, the model or the run.
    about : str
        Target and number of tries, in a few words.
    closer : str
        Change that would bring the attack closer to the bound.
    level : float
        Confidence level of the intervals.
    internal : bool
        Whether real records were read without noise, so that it is confidential.
    one_table : bool
        Whether one outcome of the mechanism was attacked. The bound is then valid on average over the
        outcomes. A single one cannot disprove it.
    """

    attack: str
    measure: Measure
    found: Estimate
    proved: float | None = None
    control: Estimate | None = None
    about: str = ""
    closer: str = ""
    level: float = 0.95
    internal: bool = True
    one_table: bool = False

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise InputError(f"measure must be one of {', '.join(MEASURES)}, got {self.measure!r}")

    @property
    def passes(self) -> bool:
        """Whether even the lower end of its own interval lies above the bound. Pages ask :func:`passing`."""
        return self.proved is not None and self.found.lower > self.proved

    @property
    def contradicts(self) -> bool:
        """Whether a result that must obey the bound passes it: then the proof or its code is wrong.

        Examples
        --------
        >>> Attempt("guess", "tv", Estimate(0.3, 0.25, 0.35), proved=0.28).contradicts
        False
        """
        return self.passes and not self.one_table

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, infinite numbers as None."""
        return finite(asdict(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Attempt:
        """Build an attempt from :meth:`to_dict`. Raise InputError otherwise."""
        try:
            record = dict(data)
            record["found"] = Estimate(**record["found"])
            record["control"] = None if record["control"] is None else Estimate(**record["control"])
            if not isinstance(record["internal"], bool):  # whatever is not clearly released is not
                raise TypeError("`internal` must be true or false")
            return cls(**record)
        except (KeyError, TypeError) as problem:
            raise InputError(f"this is no saved attempt: {problem}") from None


def passing(attempts: Iterable[Attempt]) -> tuple[Attempt, ...]:
    """Attempts that pass their bound by intervals that hold for all bounded ones together.

    If no attack can pass its bound, one is named with a probability of at most 0.005, half of
    :data:`~dpsynth.evaluation.estimates.FALSE_ALARMS`. Pages and commands judge by this.

    Examples
    --------
    >>> just = Attempt("guess", "tv", Estimate(0.3, 0.25, 0.35), proved=0.24)
    >>> far = Attempt("guess", "tv", Estimate(0.9, 0.85, 0.95), proved=0.24)
    >>> [attempt.found.value for attempt in passing([just, far])]
    [0.9]
    """
    bounded = [(attempt, attempt.proved) for attempt in attempts if attempt.proved is not None]
    return tuple(
        attempt
        for attempt, proved in bounded
        if sure_end(attempt.found, attempt.level, len(bounded)) > proved
    )


# ------------------------------------------------------------------------------------------------
# Lower bounds of the privacy loss of a mechanism, from error rates of a membership test and from guesses.
#
# A test that decides "with" or "without" the record errs at two rates. Every guarantee is a curve that
# bounds one rate by the other. Two rates below the curve disprove it. Independent trials give Clopper and
# Pearson's upper ends of both rates, at half of the failure probability each. Conclusions from both ends are
# valid at the whole level.
#
# A score says how similar a trial is to one with the record, and a test says "with" above a threshold. A
# threshold that was chosen among the trials on which errors are counted finds differences in noise. It is
# therefore fixed in advance (:func:`errors_at`, with :func:`planned_threshold`). Or it is chosen on one half
# of the trials and counted on the other (:func:`split`).
#
# An audit with one run has many canaries, each in the table by a coin of its own, and guesses these coins.
# Theorem 5.2 of Steinke et al. bounds guesses of r of m fair coins from a mechanism's output. Under
# (epsilon, 0)-differential privacy with add/remove, the number of right ones is at most, in distribution,
# binomial of r with probability ``e^epsilon / (1 + e^epsilon)``. Delta adds ``2 m delta max_i P[v > B >= v -
# i] / i`` to the probability of at least v right guesses. The choice of coins may depend on the output,
# their number may not. Independent runs with one coin each are the same experiment.
#
# References ---------- Kairouz, Oh, Viswanath (2015), "The composition theorem for differential privacy",
# Theorem 2.1 (the region of error rates); Jagielski, Ullman, Oprea (2020), "Auditing differentially private
# machine learning"; Nasr et al. (2023), "Tight auditing of differentially private machine learning" (the
# bound for a Gaussian curve); Steinke, Nasr, Jagielski (2023), "Privacy auditing with one (1) training run".

#: What a threshold is chosen by; the larger the better.
Aim = Callable[["Errors"], float]
#: How close to the root the lower bound of epsilon stops, below it.
_CLOSE = 1e-6
#: Above this no audit tells anything apart.
_MOST = 60.0


@dataclass(frozen=True)
class Errors:
    """Errors of a membership test in independent trials.

    The test must be fixed before these trials: a threshold chosen among them finds epsilon in noise.

    Parameters
    ----------
    false_positives, without : int
        Trials without the record that the test took for trials with it, and all trials without it.
    false_negatives, with_record : int
        Trials with the record that the test took for trials without it, and all trials with it.

    Raises
    ------
    InputError
        If there is no trial of a kind, or more errors than trials.

    Notes
    -----
    Every estimate's ``lower`` is valid for the mechanism at the given level: it lies above the truth in at
    most ``1 - level`` of all audits. ``upper`` bounds, at the same level, the gain of *this test*. A better
    test may gain more.

    Examples
    --------
    >>> errors = Errors(30, 1000, 700, 1000)
    >>> found = errors.epsilon(1e-5)
    >>> round(found.value, 3), round(found.lower, 3)
    (2.303, 1.854)
    """

    false_positives: int
    without: int
    false_negatives: int
    with_record: int

    def __post_init__(self) -> None:
        for name, errors, trials in (
            ("without", self.false_positives, self.without),
            ("with_record", self.false_negatives, self.with_record),
        ):
            if trials < 1 or not 0 <= errors <= trials:
                raise InputError(
                    f"{name} must count at least 1 trial and its errors at most as many, "
                    f"got {errors} of {trials}"
                )

    @property
    def fpr(self) -> float:
        """Share of false positives."""
        return self.false_positives / self.without

    @property
    def fnr(self) -> float:
        """Share of false negatives."""
        return self.false_negatives / self.with_record

    def ends(self, level: float = 0.95) -> tuple[tuple[float, float], tuple[float, float]]:
        """Lower and upper ends of both rates: ``(fpr, fnr)`` twice, each pair jointly at ``level``."""
        # a two-sided interval leaves (1 - level) / 2 on either side, which is each rate's half
        fpr = share(self.false_positives, self.without, level)
        fnr = share(self.false_negatives, self.with_record, level)
        return (fpr.lower, fnr.lower), (fpr.upper, fnr.upper)

    def _bounded(self, bound: Callable[[float, float], float], level: float) -> Estimate:
        """Implication of two error rates: the lower it is, the higher the rates."""
        low, high = self.ends(level)
        return Estimate(*(bound(*rates) for rates in ((self.fpr, self.fnr), high, low)))

    def tv(self, level: float = 0.95) -> Estimate:
        """Total variation: ``TPR - FPR``, in [0, 1], 0 for a test that errs oftener than a coin."""
        return self._bounded(lambda fpr, fnr: max(1.0 - fpr - fnr, 0.0), level)

    def epsilon(self, delta: float, level: float = 0.95) -> Estimate:
        """Epsilon at ``delta``, whatever the mechanism: log of (TPR - delta) / FPR, or of the other side.

        Kairouz et al. (2015), Theorem 2.1. The value is infinite if no trial erred.
        """
        in_range("delta", delta, 0.0, 1.0)
        return self._bounded(lambda fpr, fnr: epsilon_of_rates(fpr, fnr, delta), level)

    def mu(self, level: float = 0.95) -> Estimate:
        """Gaussian DP's mu of the Gaussian curve through the two rates (Nasr et al. 2023, section 4)."""
        return self._bounded(mu_of_rates, level)

    def gaussian_epsilon(self, delta: float, level: float = 0.95) -> Estimate:
        """Epsilon at ``delta`` of that Gaussian curve: a bound for mechanisms whose curve is Gaussian."""
        return self._bounded(lambda fpr, fnr: epsilon_of_mu(mu_of_rates(fpr, fnr), delta), level)

    def contradict(self, declared: Profile, level: float = 0.95) -> bool:
        """Whether both rates lie below the declared trade-off curve.

        It is a disproof of the whole profile at ``level``, without any assumption.
        """
        _, (fpr, fnr) = self.ends(level)
        return fnr < float(declared.fnr(fpr))


def epsilon_of_rates(fpr: float, fnr: float, delta: float) -> float:
    """Smallest epsilon, at least 0, that allows these error rates at ``delta``.

    Examples
    --------
    >>> round(epsilon_of_rates(0.1, 0.1, 0.0), 4), epsilon_of_rates(0.5, 0.5, 0.0)
    (2.1972, 0.0)
    """
    found = 0.0
    # either claim may be the rare one: TPR <= e^eps FPR + delta and TNR <= e^eps FNR + delta
    for error, other in ((fpr, fnr), (fnr, fpr)):
        gain = 1.0 - other - delta
        if gain > 0.0:
            found = max(found, math.inf if error == 0.0 else math.log(gain / error))
    return found


def mu_of_rates(fpr: float, fnr: float) -> float:
    """Gaussian-DP mu, at least 0, whose trade-off curve passes through these error rates.

    Dong, Roth, Su (2022), (6): ``fnr = Phi(Phi^-1(1 - fpr) - mu)``.
    """
    from scipy.special import ndtri

    if fpr + fnr >= 1.0:
        return 0.0
    if min(fpr, fnr) == 0.0:
        return math.inf
    return float(-ndtri(fpr) - ndtri(fnr))


def epsilon_of_mu(mu: float, delta: float) -> float:
    """Epsilon at ``delta`` of mu-Gaussian-DP, infinite for infinite mu or ``delta`` 0.

    Examples
    --------
    >>> round(epsilon_of_mu(1.0, 1e-5), 4), epsilon_of_mu(0.0, 1e-5)
    (4.3772, 0.0)
    """
    if mu == 0.0:
        return 0.0
    return math.inf if math.isinf(mu) else Profile([gaussian_event(1.0 / mu)]).epsilon(delta)


def errors_at(with_record: ArrayLike, without: ArrayLike, threshold: float) -> Errors:
    """Errors of the test ``score > threshold``, which must be fixed in advance.

    Parameters
    ----------
    with_record, without : array_like of shape (n,), (m,)
        Scores, higher for "with". They may be infinite.

    Raises
    ------
    InputError
        If there is no trial of a kind, or a score is no number.

    Examples
    --------
    >>> errors_at([0.1, 2.0], [-1.0, -2.0, 3.0], 0.0)
    Errors(false_positives=1, without=3, false_negatives=0, with_record=2)
    """
    member, other = _scores(with_record), _scores(without)
    return Errors(int((other > threshold).sum()), len(other), int((member <= threshold).sum()), len(member))


def by_epsilon(delta: float, level: float = 0.95) -> Aim:
    """Aim at the lower bound of epsilon at ``delta``, as these trials alone would give it."""
    return lambda errors: errors.epsilon(delta, level).lower


def split(
    with_record: ArrayLike, without: ArrayLike, aim: Aim, rng: np.random.Generator, *, tried: int = 200
) -> Errors:
    """Errors on a random half of the trials, at the threshold that serves best on the other half.

    Parameters
    ----------
    with_record, without : array_like of shape (n,), (m,)
        Scores, higher for "with", at least two of each.
    aim : callable
        Takes :class:`Errors` and returns the number to maximise, as from :func:`by_epsilon`.
    rng : numpy.random.Generator
        Chooses the halves.
    tried : int
        Thresholds that are tried, quantiles of the scores.

    Raises
    ------
    InputError
        If there are fewer than two trials of a kind.
    """
    halves = []
    for scores in (_scores(with_record), _scores(without)):
        if len(scores) < 2:
            raise InputError("a threshold is chosen on half of the trials: at least two of a kind are needed")
        mixed = rng.permutation(scores)
        halves.append((mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :]))
    (member, member_left), (other, other_left) = halves
    pooled = np.sort(np.concatenate([member, other]))
    places = np.unique(np.linspace(0, len(pooled) - 1, tried).astype(int))
    best = max((float(pooled[place]) for place in places), key=lambda t: aim(errors_at(member, other, t)))
    return errors_at(member_left, other_left, best)


def planned_threshold(mu: float, trials: int, delta: float, level: float = 0.95) -> float:
    """Threshold of log-likelihood ratios that is expected to bound epsilon best if the curve is Gaussian.

    Under mu-Gaussian-DP the ratio is normal with mean ``-mu^2 / 2`` without the record, ``mu^2 / 2`` with
    it, and standard deviation mu. Far out the rates differ by a large factor, but are known badly from few
    trials. The best place depends on nothing but mu and the number of trials of each kind.
    """
    from scipy.special import ndtr

    if not (math.isfinite(mu) and mu > 0.0) or trials < 1:
        raise InputError(f"mu must be positive and finite and trials at least 1, got {mu}, {trials}")
    places = np.linspace(0.0, 4.5, 91)

    def bound(place: float) -> float:
        rates = (float(ndtr(-place)), float(ndtr(place - mu)))
        fpr, fnr = (share(math.ceil(rate * trials), trials, level).upper for rate in rates)
        return epsilon_of_rates(fpr, fnr, delta)

    best = max(places, key=bound)
    return float(-0.5 * mu**2 + mu * best)


def _scores(values: ArrayLike) -> Floats:
    scores = np.asarray(values, dtype=np.float64)
    if scores.ndim != 1 or not len(scores) or np.isnan(scores).any():
        raise InputError("scores must be one number a trial, and no NaN")
    return scores


def right_guesses(scores: ArrayLike, included: ArrayLike, guesses: int) -> int:
    """Number of right guesses: the largest scores are taken for "in", the smallest for "out".

    Parameters
    ----------
    scores : array_like of shape (m,)
        One a canary, higher for "in".
    included : array_like of bool, shape (m,)
        Its coin.
    guesses : int
        r, even or odd, at most m, fixed in advance. If it is odd, one more is "in".

    Raises
    ------
    InputError
        If the shapes differ, a score is NaN, or there are more guesses than canaries.

    Examples
    --------
    >>> right_guesses([5.0, -4.0, 0.1, 3.0], [True, False, False, False], 3)
    2
    """
    values, coins = np.asarray(scores, dtype=np.float64), np.asarray(included, dtype=bool)
    if values.ndim != 1 or values.shape != coins.shape or np.isnan(values).any():
        raise InputError("scores and included must be one number and one coin a canary")
    if not 1 <= guesses <= len(values):
        raise InputError(f"guesses must lie in [1, {len(values)}], got {guesses}")
    order = np.argsort(values, kind="stable")
    lowest, highest = order[: guesses // 2], order[len(order) - (guesses - guesses // 2) :]
    return int((~coins[lowest]).sum() + coins[highest].sum())


def p_value(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """Largest probability of v right of r guesses about m canaries under (epsilon, delta), Theorem 5.2.

    Examples
    --------
    >>> round(p_value(1000, 100, 80, 1.0, 0.0), 5), round(p_value(1000, 100, 80, 1.0, 1e-5), 5)
    (0.07156, 0.07301)
    """
    from scipy.stats import binom

    for name, number in (("canaries", canaries), ("guesses", guesses)):
        whole(name, number)
    if not 0 <= right <= guesses <= canaries:
        raise InputError(
            f"right, guesses, canaries must not decrease in this order, got {right}, {guesses}, {canaries}"
        )
    in_range("epsilon", epsilon, 0.0, math.inf)
    in_range("delta", delta, 0.0, 1.0)
    truth = 1.0 / (1.0 + math.exp(-epsilon))
    p = float(binom.sf(right - 1, guesses, truth))
    if delta > 0.0 and right > 0:
        steps = np.arange(1, right + 1)
        # P[v > B >= v - i], i = 1 ... v
        below = np.cumsum(binom.pmf(right - steps, guesses, truth)) / steps
        p += 2.0 * canaries * delta * float(below.max())
    return min(p, 1.0)


def epsilon_lower(canaries: int, guesses: int, right: int, delta: float, level: float = 0.95) -> float:
    """Lower bound of epsilon at ``delta``, with confidence ``level``, 0 if the guesses show nothing.

    Parameters
    ----------
    canaries, guesses, right : int
        All coins, those that were guessed, and those that were guessed right.
    delta : float
        In [0, 1].
    level : float
        In (0, 1).

    Raises
    ------
    InputError
        If a number is out of range.

    Examples
    --------
    >>> round(epsilon_lower(1000, 100, 80, 1e-5), 3), epsilon_lower(1000, 100, 50, 1e-5)
    (0.955, 0.0)
    """
    in_range("level", level, 0.0, 1.0, low_open=True, high_open=True)

    def refuted(epsilon: float) -> bool:
        return p_value(canaries, guesses, right, epsilon, delta) < 1.0 - level

    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while refuted(high):
        low, high = high, 2.0 * high
        if low > _MOST:
            return low
    while high - low > _CLOSE:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


# ------------------------------------------------------------------------------------------------
# The result of an attack on a synthetic table, and the bound of differential privacy on it.
#
# Training records and held-out ones have one difference: the synthetic table was made from the first.
# Success on held-out records comes from the population. Only the excess on training records is memorisation
# of persons. As in anonymeter (Giomi et al. 2023) it is also given as a share of the remaining gain, ``(rate
# - held out) / (1 - held out)``. Rates are the shares themselves, with Clopper and Pearson's intervals. The
# interval of the ratio is Donner and Zou's. It excludes 0 exactly if the interval of the difference does.
#
# Bounds are about one record that is in the training table or not, all else being the same. A split by a
# coin for each record gives an attacker just that question. A split in exact numbers exchanges one record
# for another, which is two steps. Bounds are valid on average over the split and the noise. Intervals of
# attacks on one table take that table as fixed. One table's number may therefore pass a bound without
# disproving it. Attacks that fit many times (shadow models, the audit of tables) can disprove it.
#
# * membership: TPR - FPR is at most the total variation (Jia 2023). The accuracy from even odds is at most
#   half of one plus that, TPR at an FPR at most the trade-off curve.
# * linkability and inference: a success on a record is a test of its membership. The *excess* over held-out
#   records is therefore at most the total variation as well. The rate itself has no bound.
# * singling out: if a description fits exactly one record depends on all of them, and nothing is claimed.
#
# References ---------- Donner, Zou (2012), "Closed-form confidence intervals for functions of the normal
# mean and standard deviation", Statistical Methods in Medical Research 21 (MOVER-R, the ratio).

Bools = NDArray[np.bool_]

#: the questions of WP 216, and that of differential privacy
RISKS = ("singling out", "linkability", "inference", "membership")
#: what the name of an excess ends with, after that of its attack
BEYOND = ", beyond held-out records"
_NO_BOUND = "no bound is proved. Facts about the whole population can be inferred from any useful table"
_CLOSER = (
    "the table would have to repeat single records. The bound allows for an attacker who sees every noisy "
    "number and knows all other records, and asks for the one record that shows most"
)


@dataclass(frozen=True)
class Proved:
    """Bounds that follow from a privacy profile.

    Parameters
    ----------
    profile : Profile or None
        Privacy profile of the synthetic table. If it is None, nothing is known and every bound is None.
    coins : bool
        Whether each record was put into the training part by a coin of its own.

    Examples
    --------
    >>> proved = Proved(Profile.promised(1.0, 0.0, 1.0), coins=True)
    >>> round(proved.advantage, 4), round(proved.accuracy, 4), Proved().advantage
    (0.4621, 0.7311, None)
    """

    profile: Profile | None = None
    coins: bool = True

    @property
    def advantage(self) -> float | None:
        """Upper bound on TPR - FPR."""
        if self.profile is None:
            return None
        return min(1.0, self.profile.tv() * (1 if self.coins else 2))

    @property
    def accuracy(self) -> float | None:
        """Upper bound on the accuracy of naming members among records that are in or out by a coin."""
        return None if self.profile is None else self.profile.attack_accuracy()

    @property
    def pairs(self) -> float | None:
        """Upper bound on the accuracy of naming the member of a pair: one record exchanged for another."""
        return None if self.profile is None else min(1.0, 0.5 + self.profile.tv())

    def tpr(self, fpr: float) -> float | None:
        """Upper bound on the true positive rate at a false positive rate."""
        if self.profile is None:
            return None
        if self.coins:
            return float(self.profile.tpr(fpr))
        assert self.advantage is not None
        return min(1.0, fpr + self.advantage)


@dataclass(frozen=True)
class Risk:
    """One attack on a synthetic table, with shares of right tries. Confidential.

    Attributes
    ----------
    risk, attack : str
        One of :data:`RISKS`, and how it was tried, in a few words.
    holds : str
        Knowledge of the attacker beside the synthetic table.
    rate, without, held_out : Estimate
        On training records, without the synthetic table, and with the table on held-out records.
    excess : Estimate
        ``rate - held_out``.
    normalised : Estimate
        ``(rate - held_out) / (1 - held_out)``, cut off at 0 and 1: anonymeter's risk.
    tries : tuple of (int, int)
        Attacks on training and on held-out records.
    proved : float or None
        Upper bound on the expected excess, None if none is proved.
    level : float
        Confidence level of the intervals.
    about, more
        A remark, and further numbers of the same attack.
    """

    risk: str
    attack: str
    holds: str
    rate: Estimate
    without: Estimate
    held_out: Estimate
    excess: Estimate
    normalised: Estimate
    tries: tuple[int, int]
    proved: float | None = None
    level: float = 0.95
    about: str = ""
    more: tuple[Attempt, ...] = ()

    @classmethod
    def of(
        cls,
        risk: str,
        attack: str,
        holds: str,
        rates: tuple[Estimate, Estimate, Estimate],
        tries: tuple[int, int],
        **rest: Any,
    ) -> Risk:
        """Build a risk from independent rates: on training records, without the table, on held-out records.

        Examples
        --------
        >>> rates = share(60, 100), share(10, 100), share(20, 100)
        >>> found = Risk.of("linkability", "halves", "two files", rates, (100, 100))
        >>> round(found.excess.value, 3), round(found.normalised.value, 3), found.normalised.lower > 0
        (0.4, 0.5, True)
        """
        rate, without, held_out = rates
        excess, part = share_difference(rate, held_out), mover_ratio(rate, held_out)
        return cls(risk, attack, holds, rate, without, held_out, excess, part, tries, **rest)

    @property
    def found(self) -> bool:
        """Whether training records are attacked better than held-out ones, by the whole interval."""
        return self.excess.lower > 0

    def found_among(self, attacks: int) -> bool:
        """Whether it is found by an interval that is valid for so many attacks together."""
        return sure_end(self.excess, self.level, attacks) > 0

    def attempts(self) -> tuple[Attempt, ...]:
        """Return the rate beside the attacker without the table, the excess beside its bound, and more."""
        name = f"{self.risk}, {self.attack}"
        tried = f"{self.tries[0]:,} attacks on training, {self.tries[1]:,} on held-out records"
        rate = Attempt(name, "rate", self.rate, None, self.without, tried, _NO_BOUND, self.level)
        excess = Attempt(
            f"{name}{BEYOND}",
            "advantage",
            self.excess,
            self.proved,
            None,
            f"{tried}, {100 * self.normalised.value:.1f} % of the possible gain "
            f"({100 * self.normalised.lower:.1f} to {100 * self.normalised.upper:.1f} %)",
            _CLOSER if self.proved is not None else "",
            self.level,
            one_table=True,
        )
        return (rate, excess, *self.more)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        plain = {**asdict(self), "tries": list(self.tries), "found": self.found, "internal": True}
        return {**plain, "more": [attempt.to_dict() for attempt in self.more]}


def rate_of(right: Bools, level: float = 0.95) -> Estimate:
    """Share of an attack's tries that were right, at least one, with Clopper and Pearson's interval.

    The synthetic table is held fixed. If it does not depend on the particular training records, records of
    both kinds are independent samples of one distribution, and so are their successes. Then the binomial
    distribution is right, and Newcombe's squares of these intervals err to the safe side.
    """
    return share(int(right.sum()), len(right), level)


def mean_rate(values: Floats, level: float = 0.95) -> Estimate:
    """Mean of independent values in [0, 1] with Student's interval, exact if all are equal.

    Examples
    --------
    >>> mean_rate(np.ones(10)).upper, round(mean_rate(np.ones(10)).lower, 3)
    (1.0, 0.692)
    """
    from scipy.stats import t

    n, value = len(values), float(values.mean())
    if n < 2 or float(values.var()) < 1e-12:
        alike = share(round(value * n), n, level)
        return Estimate(value, min(value, alike.lower), max(value, alike.upper))
    reach = float(t.isf((1 - level) / 2, n - 1)) * float(values.std(ddof=1)) / math.sqrt(n)
    return Estimate(value, max(value - reach, 0.0), min(value + reach, 1.0))


def scaled(excess: Estimate, held_out: float) -> Estimate:
    """Return an excess as a share of the remaining gain, ``1 - held_out`` held fixed, within [0, 1]."""
    left = 1.0 - held_out
    if left <= 0:
        return Estimate(0.0, 0.0, 0.0)
    return Estimate(*(min(max(end / left, 0.0), 1.0) for end in (excess.value, excess.lower, excess.upper)))


def mover_ratio(rate: Estimate, held_out: Estimate) -> Estimate:
    """``1 - q1 / q2`` with q the shares of failures: MOVER-R by its roots, which exist in [0, 1]."""
    q1, low1, high1 = 1 - rate.value, 1 - rate.upper, 1 - rate.lower
    q2, low2, high2 = 1 - held_out.value, 1 - held_out.upper, 1 - held_out.lower

    def largest(ratio: float) -> float:  # upper limit of q1 - ratio q2, falling in the ratio
        return q1 - ratio * q2 + math.hypot(high1 - q1, ratio * (q2 - low2))

    def smallest(ratio: float) -> float:
        return q1 - ratio * q2 - math.hypot(q1 - low1, ratio * (high2 - q2))

    value = 1 - q1 / q2 if q2 > 0 else 0.0
    return Estimate(min(max(value, 0.0), 1.0), 1 - _root(largest), 1 - _root(smallest))


def _root(falling: Callable[[float], float]) -> float:
    """Root of a falling function with a value of at least 0 at 0, or 1 if it does not cross before."""
    from scipy.optimize import brentq

    if falling(1.0) >= 0:
        return 1.0
    return float(brentq(falling, 0.0, 1.0)) if falling(0.0) > 0 else 0.0
