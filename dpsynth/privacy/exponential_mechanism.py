"""The exponential mechanism, exact.

It (McSherry and Talwar 2007) picks a candidate with probability proportional to ``exp(epsilon * score /
2)``. With scores of sensitivity 1 it is (epsilon, 0)-differentially private. Its losses lie in an interval
of length epsilon. One record moves each weight's logarithm by at most epsilon / 2 either way. It moves that
of their sum equally for all candidates. Candidates are drawn evenly, and kept with probability
``exp(epsilon * (score - best) / 2)``: exact trials of whole numbers.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.errors import ConfigError
from dpsynth.privacy.noise import exponential_trial, geometric

#: Step of scores.
SCORE_STEP = 2.0**-20
#: Candidates that are drawn at once, at most.
_CANDIDATES = 4096
#: More than rounding adds to an exponent.
_ROUNDING = 2.0**-40


def choose(scores: ArrayLike, epsilon: float | None, rng: np.random.Generator) -> int:
    """Index of a candidate, by the exponential mechanism.

    ``scores``, shape (k,), k >= 1: whole numbers of `SCORE_STEP`, to which others are rounded. Each changes
        by at most 1 when one record is added or removed.
    ``epsilon``: cost of this choice (`exponential_mechanism_event`). None takes the largest score: **not
        private**.

    Source: McSherry and Talwar (2007), Theorem 6.

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
    steps = np.rint(values / SCORE_STEP).astype(np.int64)
    below = steps.max() - steps
    unit = Fraction(epsilon) * Fraction(SCORE_STEP) / 2
    least = np.floor(below * (float(unit) * (1.0 - _ROUNDING)))  # of the whole part of an exponent
    size = min(4 * len(steps), _CANDIDATES)
    while True:
        drawn, trials = rng.integers(0, len(steps), size), geometric(size, rng)
        for place in np.flatnonzero(trials >= least[drawn]):
            pick = int(drawn[place])
            exponent = unit * int(below[pick])
            # exp(-exponent) is exp(-1) as often as the whole part says, and what is left.
            left = exponent - int(exponent)
            if trials[place] >= int(exponent) and exponential_trial(left.numerator, left.denominator, rng):
                return pick


def in_score_steps(values: ArrayLike) -> NDArray[np.float64]:
    """Released numbers rounded to the step of scores, so that sums of them and of counts are exact."""
    return np.asarray(np.rint(np.asarray(values, np.float64) / SCORE_STEP) * SCORE_STEP)


def check_epsilon(epsilon: float | None) -> None:
    """Refuse a selection epsilon that is neither None nor a positive finite number."""
    if epsilon is not None and not (np.isfinite(epsilon) and epsilon > 0):
        raise ConfigError(f"selection_epsilon is {epsilon}, but must be greater than 0, or None")
