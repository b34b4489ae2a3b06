"""Privacy measures of any mechanism with a given epsilon, delta and total variation.

The noise of a ledger's stage may depend on the outputs of an earlier stage. It then has no privacy-loss
distribution fixed beforehand. Its epsilon, delta and total variation were fixed, and stages add up.

- Epsilon and delta: by basic composition, even if a stage is chosen after seeing earlier outputs (Dwork and
  Roth 2014, Theorem B.1). The parameters may be chosen so too, if their sum is kept below a bound. See
  Rogers, Roth, Ullman and Vadhan 2016, "Privacy odometers and filters", section 3.
- Total variation: run both tables side by side. Draw each stage's output from a maximal coupling, as long as
  all outputs so far were equal. At stage s the runs first differ with a probability of at most tv_s, whatever
  came before. So all outputs together differ with a probability of at most the sum.

With y = e^epsilon, delta is a convex, non-increasing function h of y (Dong, Roth and Su 2019, Proposition
2.12). From h(1) <= tv and h(e^epsilon) <= delta it lies below the chord between them, and below delta beyond.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsynth.accounting.conversions import largest_tv


@dataclass(frozen=True)
class PromisedLoss:
    """The largest loss of mechanisms that are (epsilon, delta)-DP with a total variation of at most ``tv``.

    Make it with :func:`promised_loss`.

    Examples
    --------
    >>> loss = promised_loss(1.0, 1e-5, 0.25)
    >>> loss.delta(0.0), loss.delta(1.0), loss.epsilon(1e-5), loss.epsilon(1e-6)
    (0.25, 1e-05, 1.0, inf)
    """

    epsilon_promised: float
    delta_promised: float
    tv: float

    def delta(self, epsilon: float) -> float:
        """Smallest delta that follows at ``epsilon`` (at least 0)."""
        return self.deltas([epsilon])[0]

    def deltas(self, epsilons: list[float]) -> list[float]:
        """:meth:`delta` at each of a list of epsilons."""
        size = np.minimum(np.asarray(epsilons, dtype=float), self.epsilon_promised)
        # the share of the way in y = e^epsilon from 1 to e^promised
        way: float | np.ndarray = 1.0
        if self.epsilon_promised > 0.0:
            way = np.exp(size - self.epsilon_promised) * np.expm1(-size) / np.expm1(-self.epsilon_promised)
        values = self.delta_promised * way + self.tv * (1 - way)
        values += 1e-15 * self.tv * ((way > 0.0) & (way < 1.0))  # rounding; both ends are exact
        return [float(value) for value in np.broadcast_to(values, size.shape)]

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon that follows at ``delta``, infinite below the promised delta."""
        if delta >= self.tv:
            return 0.0
        if delta <= self.delta_promised * (1 + 1e-12):
            return self.epsilon_promised if delta >= self.delta_promised * (1 - 1e-12) else math.inf
        way = (self.tv - delta) / (self.tv - self.delta_promised)
        # log(1 + way (e^promised - 1)), rounded up
        last = self.epsilon_promised
        value = last + math.log(way * -math.expm1(-last) + math.exp(-last))
        return min(last, max(0.0, value) * (1 + 1e-12) + 1e-15)

    def exceedance(self, epsilon: float) -> float:
        """Bound on the probability that the loss exceeds ``epsilon``.

        ``P(L > epsilon) (1 - e^{e - epsilon}) <= delta(e)`` for every e below epsilon. On the chord the bound
        is best at one of its ends.
        """
        bounds = [1.0]
        for start, delta in ((0.0, self.tv), (self.epsilon_promised, self.delta_promised)):
            if epsilon > start:
                bounds.append(delta / -math.expm1(start - epsilon))
        return min(bounds)

    def quantile(self, probability: float) -> float:
        """Smallest level, at least 0, that is exceeded with at most this probability."""
        levels = [math.inf if probability < 1.0 else 0.0]
        for start, delta in ((0.0, self.tv), (self.epsilon_promised, self.delta_promised)):
            if probability > delta:
                levels.append(start - math.log1p(-delta / probability))
        return min(levels)

    def grid(self) -> np.ndarray:
        """Losses from 0 to the promised epsilon, at most 600."""
        return np.linspace(0.0, min(self.epsilon_promised, 600.0), 513)


def promised_loss(epsilon: float, delta: float, tv: float) -> PromisedLoss | None:
    """The loss, with ``tv`` no larger than epsilon and delta allow, or None if nothing is promised."""
    if math.isinf(epsilon) or delta >= 1.0:
        return None
    return PromisedLoss(epsilon, delta, max(delta, min(tv, largest_tv(epsilon, delta))))
