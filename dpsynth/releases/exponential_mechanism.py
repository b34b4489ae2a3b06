"""Private choice of one of several candidates: the exponential mechanism (McSherry and Talwar 2007).

Adjacency is add/remove one record. With scores of sensitivity 1, picking a candidate with probability
proportional to ``exp(epsilon * score / 2)`` is (epsilon, 0)-differentially private, and its losses lie in
an interval of length epsilon: one record moves each weight's logarithm by at most epsilon / 2 either way, and
that of their sum is the same for all candidates. Adding independent Gumbel noise of scale ``2 / epsilon`` to
the scores and taking the largest draws from exactly this law.
Each choice uses fresh noise and is posted on its own, so later candidates may depend on earlier choices.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dpsynth.errors import ConfigError


def choose(scores: ArrayLike, epsilon: float | None, rng: np.random.Generator) -> int:
    """Index of a candidate, by the exponential mechanism.

    Parameters
    ----------
    scores : array, shape (k,)
        Each changes by at most 1 when one record is added or removed; k >= 1.
    epsilon : float or None
        Cost of this choice (`exponential_mechanism_event`); None takes the largest score: **not private**.
    rng : numpy Generator

    Returns
    -------
    int

    Raises
    ------
    ConfigError
        If there is no candidate or epsilon is not positive.

    References
    ----------
    McSherry and Talwar (2007), Theorem 6; the Gumbel form: Durfee and Rogers (2019), Lemma 4.2.

    Examples
    --------
    >>> choose([1.0, 9.0, 3.0], None, np.random.default_rng(0))
    1
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.size == 0:
        raise ConfigError("there is no candidate to choose from")
    check_epsilon(epsilon)
    if epsilon is None:
        return int(np.argmax(values))
    return int(np.argmax(values + rng.gumbel(scale=2.0 / epsilon, size=values.shape)))


def check_epsilon(epsilon: float | None) -> None:
    """Refuse a selection epsilon that is neither None nor a positive finite number."""
    if epsilon is not None and not (np.isfinite(epsilon) and epsilon > 0):
        raise ConfigError(f"selection_epsilon is {epsilon}, but must be greater than 0, or None")
