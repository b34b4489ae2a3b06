"""Noisy gradient descent, accounted for by (epsilon, delta)-DP together with the total variation.

Ghazi and Issa 2024, "Total variation meets differential privacy", section VI-D. The exact account of such a
run is :class:`~dpsynth.accounting.profile.Profile`; the one here needs no privacy-loss distribution, only
Theorem 2 for a few epsilons.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from dpsynth.accounting.loss.gaussian import GaussianLoss
from dpsynth.checks import in_range, whole
from dpsynth.errors import InputError
from dpsynth.research.papers.ghazi_issa.approx_tv import compose, subsampled
from dpsynth.research.papers.ghazi_issa.regions import Pair, strongest


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
