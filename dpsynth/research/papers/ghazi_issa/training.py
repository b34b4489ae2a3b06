"""Six analyses of one DP-SGD run, as trade-off curves: the data of figure 5 of Ghazi and Issa 2024.

Ghazi and Issa 2024, "Total variation meets differential privacy", section VI-D, compare theirs with Abadi et
al. 2016, "Deep learning with differential privacy"; Kairouz, Oh and Viswanath 2015, "The composition theorem
for differential privacy"; and Dong, Roth and Su 2019, "Gaussian differential privacy".

Noisy gradient descent, accounted for by (epsilon, delta)-DP together with the total variation.

Ghazi and Issa 2024, "Total variation meets differential privacy", section VI-D. The exact account of such a
run is :class:`~dpsynth.accounting.profile.Profile`; the one here needs no privacy-loss distribution, only
Theorem 2 for a few epsilons.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.events import training_event
from dpsynth.accounting.gaussian import GaussianLoss
from dpsynth.accounting.profile import Profile
from dpsynth.checks import in_range, whole
from dpsynth.errors import InputError
from dpsynth.research.papers.curves import COARSENESS, gaussian_fnr
from dpsynth.research.papers.ghazi_issa.approx_tv import compose, kairouz, subsampled
from dpsynth.research.papers.ghazi_issa.regions import Pair, fnr, strongest


def noisy_sgd(
    mu: float, steps: int, sampling_prob: float = 1.0, epsilons: Iterable[float] | None = None
) -> tuple[Pair, ...]:
    """Guarantee of noisy gradient descent: Gaussian steps on random batches (section VI-D).

    Each step on its batch is mu-Gaussian DP, hence (epsilon, delta(epsilon))-DP for every epsilon with TV
    ``2 Phi(mu / 2) - 1`` (equations 17 and 18). For each epsilon chosen, Proposition 1 samples and Theorem 2
    composes; the regions of all of them hold at once.

    Parameters
    ----------
    mu : float
        Sensitivity over noise std of a step, at least 0 and finite.
    steps : int
        Number of steps, at least 1.
    sampling_prob : float
        Share of the table in a batch, in [0, 1], as in
        :func:`~dpsynth.research.papers.ghazi_issa.approx_tv.subsampled`.
    epsilons : iterable of float, optional
        Epsilons of one step on its batch, at least 0. By default 25, spread so that the deltas of all steps
        sum to 1e-12 ... 1.

    Returns
    -------
    tuple of Pair
        Those pairs of all the regions that no other pair implies, in ascending epsilon; pass them to
        :func:`~dpsynth.research.papers.ghazi_issa.regions.fnr` for the trade-off curve. The bound holds for
        every number of steps, and is looser than the privacy-loss distribution.

    Raises
    ------
    InputError
        If an argument is out of range or NaN, or there is no epsilon.

    Examples
    --------
    >>> from dpsynth.research.papers.ghazi_issa.regions import fnr
    >>> pairs = noisy_sgd(1 / 1.3, 3516, 256 / 60000)
    >>> round(fnr(pairs, 0.1), 2)
    0.75
    """
    mu = in_range("mu", mu, 0.0, math.inf, high_open=True)
    steps = whole("steps", steps)
    q = in_range("sampling_prob", sampling_prob, 0.0, 1.0)
    if mu == 0.0 or q == 0.0:
        return (Pair(0.0, 0.0),)
    loss = GaussianLoss(mu)
    tv = loss.delta(0.0)  # equation (18)
    chosen = _spread(loss, q * steps) if epsilons is None else list(epsilons)
    if not chosen:
        raise InputError("epsilons must hold at least one epsilon")
    pairs: list[Pair] = []
    for epsilon in chosen:
        epsilon = in_range("epsilons", epsilon, 0.0, math.inf, high_open=True)
        delta = loss.delta(epsilon)  # equation (17)
        if delta == 1.0:  # so little noise that nothing is hidden: the pair says nothing
            continue
        pairs.extend(compose(*subsampled(epsilon, delta, max(tv, delta), q), steps))
    return strongest(pairs) if pairs else (Pair(0.0, 1.0),)


def _spread(loss: GaussianLoss, expected_batches: float) -> list[float]:
    """Epsilons at which the deltas of all steps sum to a range of totals."""
    most = loss.delta(0.0) / 2
    per_step = {min(float(total) / expected_batches, most) for total in np.geomspace(1e-12, 1.0, 25)}
    return [loss.epsilon(delta) for delta in sorted(per_step)]


Array = NDArray[np.float64]

DELTA = 1e-5  # at which Abadi et al. state their epsilon


@dataclass(frozen=True)
class Training:
    """The run of figure 5: noise multiplier, share of the table in a batch, steps."""

    noise_multiplier: float = 1.3
    sampling_prob: float = 256 / 60_000
    steps: int = 3516


def log_moments(run: Training) -> tuple[Array, Array]:
    """Orders 1..200 and the log moments of all steps at them (Abadi et al. 2016, section 3.2).

    The moment of integer order l of one step is that of the sampled Gaussian, ``log sum_j C(l + 1, j)
    (1 - q)^(l + 1 - j) q^j e^(j (j - 1) / (2 z^2))`` (Mironov, Talwar and Zhang 2019, section 3.3).
    """
    from scipy.special import gammaln, logsumexp

    z, q = run.noise_multiplier, run.sampling_prob
    orders = np.arange(1, 201)
    moments = []
    for order in orders:
        j = np.arange(order + 2)
        ways = gammaln(order + 2) - gammaln(j + 1) - gammaln(order + 2 - j)
        terms = ways + (order + 1 - j) * math.log1p(-q) + j * math.log(q) + j * (j - 1) / (2 * z**2)
        moments.append(run.steps * float(logsumexp(terms)))
    return orders.astype(float), np.array(moments)


def moments_epsilon(run: Training, delta: float) -> float:
    """Epsilon of the run at ``delta`` after Abadi et al. 2016, Theorem 2."""
    orders, moments = log_moments(run)
    return float(np.min((moments - math.log(delta)) / orders))


def moments_deltas(run: Training, epsilons: Array) -> Array:
    """Delta of the run at each epsilon after Abadi et al. 2016, Theorem 2."""
    orders, moments = log_moments(run)
    return np.exp(np.minimum(0.0, np.min(moments - np.outer(epsilons, orders), axis=1)))


def clt_mu(run: Training) -> float:
    """Mu of the Gaussian DP to which the run tends (Dong, Roth and Su 2019, Corollary 5.4); not a bound."""
    from scipy.special import ndtr

    s = 1 / run.noise_multiplier
    inner = math.exp(s**2) * float(ndtr(1.5 * s)) + 3 * float(ndtr(-0.5 * s)) - 2
    return run.sampling_prob * math.sqrt(2 * run.steps * inner)


def kairouz_descent(run: Training) -> tuple[Pair, ...]:
    """Pairs of the run by Kairouz et al., from 19 epsilons of a step, whose deltas sum to 1e-6 ... 1."""
    loss = GaussianLoss(1 / run.noise_multiplier)
    pairs: list[Pair] = []
    for total in np.geomspace(1e-6, 1.0, 19).tolist():
        delta = total / (run.steps * run.sampling_prob)
        part = subsampled(loss.epsilon(delta), delta, loss.delta(0.0), run.sampling_prob)
        pairs += kairouz(part.epsilon, part.delta, run.steps)
    return strongest(pairs)


def analyses(run: Training, fpr: Array) -> dict[str, Array]:
    """Smallest false negative rates of a training run, by the name of the analysis; the last is no bound."""
    at_delta = [Pair(moments_epsilon(run, DELTA), DELTA)]
    grid = np.linspace(0.0, 10.0, 401)
    every_delta = list(map(Pair, grid.tolist(), moments_deltas(run, grid).tolist()))
    exact = Profile(
        [training_event(run.noise_multiplier, run.sampling_prob, run.steps)], coarseness=COARSENESS
    )
    return {
        "privacy-loss distribution": np.asarray(exact.fnr(fpr)),
        "Theorem 2, with TV": np.asarray(
            fnr(noisy_sgd(1 / run.noise_multiplier, run.steps, run.sampling_prob), fpr)
        ),
        "Kairouz et al.": np.asarray(fnr(kairouz_descent(run), fpr)),
        "Abadi et al., δ = 1e-5": np.asarray(fnr(at_delta, fpr)),
        "Abadi et al., every δ": np.asarray(fnr(every_delta, fpr)),
        "Dong et al., limit": gaussian_fnr(fpr, clt_mu(run)),
    }
