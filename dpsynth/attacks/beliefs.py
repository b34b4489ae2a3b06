"""The adversary of differential privacy, A_DI: knows both tables, sees every noisy sum, updates a belief.

MOSAICrOWN deliverable D5.3, "Identifiability bounds" (Bernau et al.), Algorithm 1, Experiment 2, chapters
3 to 5. Algorithm 1 multiplies beliefs by densities, which underflow. The same belief is kept here as
log-odds, to which each step adds the logarithm of a ratio of densities. Steps that take the differing
record with probability q have mixtures for densities: ``(1 - q) N(others) + q N(others + record)``. The
document has q = 1.

Half of the runs of a game train on D, half on D'. The advantage is the share of D's runs in which D is
named less that of the runs of D'. The exceedance is the share of runs in which the belief in the table
that was used passes rho_beta. For a record that moves every step by the whole sensitivity it is exact: the
probability that the privacy loss exceeds epsilon. This is ``Profile.exceedance``, and not delta. If an
observer sees less, the number is no bound (docs/explanation/attackers.md). ``Profile.largest_exceedance``
bounds all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.attacks.attempt import NOTHING, Attempt
from dpsynth.checks import inside
from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import Estimate, quantile, share, share_difference
from dpsynth.privacy.conversions import epsilon_of_belief
from dpsynth.privacy.profile import Profile

Floats = NDArray[np.float64]

_RECORD_MOVES_LESS = (
    "a record that moves every step by the whole bound, always in the same direction. Real ones move less"
)


@dataclass(frozen=True)
class Transcript:
    """A training run of T steps that each release P numbers, seen by an adversary with all records but one.

    It holds sums over real records without noise. It is as secret as the records, and no model or report
    keeps one.

    Table D holds one record that D' lacks or replaces. Each step takes that record with probability
    ``sampling_prob``. The adversary sees which others were taken. Under D the numbers of step t are normal
    with standard deviations ``stds[t]``. Their mean is ``others[t] + records[0, t]`` if the record was taken,
    else ``others[t]``. Under D' the same holds with ``records[1]``.

    ``others``: their means without the differing record.
    ``records``: contribution of the differing record if taken, under D and under D', zeros if there is none.
    ``stds``: of the noise, greater than 0.
    ``sampling_prob``: q in (0, 1].

    Examples
    --------
    >>> zeros = np.zeros((3, 1))
    >>> Transcript(zeros + 0.9, zeros, np.stack([zeros + 1, zeros]), zeros + 2.0, 1.0).steps
    3
    """

    released: Floats
    others: Floats
    records: Floats
    stds: Floats
    sampling_prob: float

    def __post_init__(self) -> None:
        shape = np.shape(self.released)
        for name, expected in (("others", shape), ("records", (2, *shape)), ("stds", shape)):
            if len(shape) != 2 or np.shape(getattr(self, name)) != expected:
                raise InputError(f"{name} must have shape {expected}, got {np.shape(getattr(self, name))}")
        for name in ("released", "others", "records", "stds"):
            if not np.isfinite(getattr(self, name)).all():
                raise InputError(f"{name} must be finite")
        if not (np.asarray(self.stds) > 0.0).all():
            raise InputError("stds must be greater than 0: without noise there is nothing to infer")
        if not 0.0 < self.sampling_prob <= 1.0:
            raise InputError(f"sampling_prob must be in (0, 1], got {self.sampling_prob!r}")

    @property
    def steps(self) -> int:
        """T."""
        return len(self.released)


def log_ratios(seen: Transcript) -> Floats:
    """Logarithm of the density of each step's numbers under D over that under D', shape (T,).

    The sum is the realised privacy loss of the run. Let r be the released numbers less the others', and a the
    record, all in units of the noise. The ratio of ``N(a, 1)`` to ``N(0, 1)`` at r is ``exp(a . r - |a|^2 /
    2)``. Both tables are compared with the one that has neither record, so no density is evaluated.

    >>> zero = np.zeros((1, 1))
    >>> seen = Transcript(zero + 0.9, zero, np.stack([zero + 1, zero]), zero + 2.0, 1.0)
    >>> log_ratios(seen).round(3).tolist()  # one number, 1 for D and 0 for D', with standard deviation 2
    [0.1]
    """
    released = (seen.released - seen.others) / seen.stds
    under_d, under_d_prime = (
        _log_mixture(released, record / seen.stds, seen.sampling_prob) for record in seen.records
    )
    return under_d - under_d_prime


def _log_mixture(released: Floats, record: Floats, sampling_prob: float) -> Floats:
    """Return log((1 - q) + q N(record, 1) / N(0, 1)) at each row of ``released``."""
    exponent = ((released - record / 2) * record).sum(axis=1)
    if sampling_prob == 1.0:
        return np.asarray(exponent)
    return np.logaddexp(math.log1p(-sampling_prob), math.log(sampling_prob) + exponent)


def log_odds(seen: Transcript, prior: float = 0.5) -> Floats:
    """Log-odds of D against D' before the first step and after each.

    Parameters
    ----------
    seen : Transcript
        Released numbers of a run of T steps.
    prior : float
        Belief in D before the run, inside (0, 1).

    Returns
    -------
    ndarray of shape (T + 1,)
        The logits of beta_t(D) of Algorithm 1, line 11.

    Raises
    ------
    InputError
        If the prior belief is certain.
    """
    prior = inside("prior", prior, 0.0, 1.0)
    start = math.log(prior) - math.log1p(-prior)
    return start + np.concatenate([[0.0], np.cumsum(log_ratios(seen))])


def shifts(seen: Transcript) -> Floats:
    """Distance of the two tables' means in each step, in units of the noise, shape (T,).

    It is at most the adjacency's sensitivity over the noise.
    """
    return np.asarray(np.linalg.norm((seen.records[0] - seen.records[1]) / seen.stds, axis=1))


@dataclass(frozen=True)
class Game:
    """Outcome of many runs against A_DI.

    Parameters
    ----------
    worlds : ndarray of shape (N,)
        0 for a run on D, 1 for one on D', with at least one of each.
    log_odds : ndarray of shape (N,)
        D against D' at the end of each run, from even odds. They may be infinite, not NaN.

    Raises
    ------
    InputError
        If the shapes differ, a world is neither 0 nor 1 or has no run, or a number is NaN.
    """

    worlds: NDArray[np.int64]
    log_odds: Floats

    def __post_init__(self) -> None:
        if np.ndim(self.worlds) != 1 or np.shape(self.worlds) != np.shape(self.log_odds):
            raise InputError(
                f"log_odds must have one number a run, got {np.shape(self.log_odds)} for "
                f"{np.shape(self.worlds)} runs"
            )
        if set(np.unique(self.worlds)) != {0, 1}:
            raise InputError("worlds must hold runs of D (0) and of D' (1), and nothing else")
        if np.isnan(self.log_odds).any():
            raise InputError("log_odds must not be NaN")

    @property
    def runs(self) -> int:
        """N."""
        return len(self.worlds)

    @property
    def beliefs(self) -> Floats:
        """Belief, at the end, in the table that was used, shape (N,)."""
        from scipy.special import expit

        return np.asarray(expit(self._towards_truth))

    @property
    def _towards_truth(self) -> Floats:
        return np.where(self.worlds == 0, self.log_odds, -self.log_odds)

    def advantage(self, level: float = 0.95) -> Estimate:
        """Share of D's runs in which D is named less that of the runs of D' (Newcombe's interval)."""
        named = self.log_odds > 0.0
        of_d, of_d_prime = (
            share(int(named[self.worlds == world].sum()), int((self.worlds == world).sum()), level)
            for world in (0, 1)
        )
        return share_difference(of_d, of_d_prime)

    def reckoned_advantage(self, level: float = 0.95) -> Estimate:
        """The advantage that follows from the adversary's own beliefs: the mean of ``|2 belief - 1|``.

        If the log-odds are right, it equals :meth:`advantage` in expectation, with a tenth of the runs. If
        it is far from that, they are wrong. The interval is the normal one.
        """
        from scipy.stats import norm

        sure = np.abs(np.tanh(self.log_odds / 2))
        value = float(np.mean([sure[self.worlds == world].mean() for world in (0, 1)]))
        reach = float(norm.isf((1 - level) / 2) * sure.std() / math.sqrt(self.runs))
        return Estimate(value, max(value - reach, 0.0), min(value + reach, 1.0))

    def exceedance(self, belief: float, level: float = 0.95, world: int | None = None) -> Estimate:
        """Share of runs whose belief in the table that was used exceeds ``belief`` (Clopper and Pearson).

        Parameters
        ----------
        belief : float
            rho_beta, in [1/2, 1].
        level : float
            Level of the interval, in (0, 1).
        world : {0, 1}, optional
            Only runs on D, or on D'.
        """
        passed = self._towards_truth > epsilon_of_belief(belief)
        if world is not None:
            passed = passed[self.worlds == world]
        return share(int(passed.sum()), len(passed), level)

    def median_belief(self, level: float = 0.95) -> Estimate:
        """Median of :attr:`beliefs` with its interval."""
        return quantile(self.beliefs, 0.5, level)

    def attempts(
        self,
        profile: Profile,
        belief: float,
        *,
        attack: str,
        about: str = "",
        closer: str = _RECORD_MOVES_LESS,
        level: float = 0.95,
    ) -> tuple[Attempt, Attempt]:
        """Advantage beside the exact total variation, exceedance of ``belief`` beside its bound.

        Parameters
        ----------
        profile : Profile
            Privacy profile of the events of one run, under the adjacency of the game.
        belief : float
            rho_beta, in (1/2, 1).
        attack, about, closer : str
            See :class:`~dpsynth.attacks.attempt.Attempt`.
        level : float
            Level of the intervals, in (0, 1).
        """
        epsilon = epsilon_of_belief(belief)
        exact = profile.exceedance(epsilon)
        about = f"{about}, {self.runs} runs" if about else f"{self.runs} runs"
        passes = (
            f"{about}, belief above {belief:g}. A record at the bound passes it with probability {exact:.3g}"
        )
        bound, passed = profile.largest_exceedance(epsilon), self.exceedance(belief, level)
        return (
            Attempt(attack, "advantage", self.advantage(level), profile.tv(), NOTHING, about, closer, level),
            Attempt(attack, "exceedance", passed, bound, NOTHING, passes, closer, level),
        )
