"""The privacy loss of an exponential mechanism, of which nothing is known but that its range is bounded.

For two neighbours let the losses of all outputs lie in [t - epsilon, t]. The worst such pair has both ends
only, and its divergence at x in between is

    (1 - e^{t - epsilon}) (e^t - e^x) / (e^t - e^{t - epsilon}),

largest where t = (epsilon + x) / 2 (Dong, Durfee and Rogers 2020, "Optimal differential privacy composition
for exponential mechanisms"). No t is the worst at every x, and which one an adversary
has is not known before, so that the composition uses the largest at each x:

    (1 - e^{(x - epsilon) / 2})^2 / (1 - e^{-epsilon})    for -epsilon <= x <= epsilon.

It is convex and decreasing in e^x, 1 at e^x = 0 and at least 1 - e^x, hence the divergence of a pair of
distributions, and that pair dominates every such mechanism, also where they are chosen adaptively (Zhu, Dong
and Wang 2022, "Optimal accounting of differential privacy via characteristic function", Lemma 9 and Theorem
10). Its loss has the density e^{(x - epsilon) / 2} / (2 (1 - e^{-epsilon})), so a variance of about
epsilon^2 / 3 where an (epsilon, 0)-differentially private mechanism may have epsilon^2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsynth.accounting.loss.atoms import LossSize
from dpsynth.accounting.loss.grids import Pld, grid_pmf


@dataclass(frozen=True, order=True)
class BoundedRangeAtom:
    """The worst mechanism whose losses lie within an interval of length ``pure_epsilon``."""

    pure_epsilon: float
    pure_delta = 0.0

    @property
    def tv(self) -> float:
        """See `dpsynth.accounting.loss.atoms.Atom`: the divergence at 0, tanh(epsilon / 4)."""
        return math.tanh(self.pure_epsilon / 4)

    def size(self) -> LossSize:
        """See `dpsynth.accounting.loss.atoms.Atom`; both moments are exact where epsilon is small."""
        largest = self.pure_epsilon
        return LossSize(min(largest**2 / 6, largest), min(largest / math.sqrt(3), 2.0), 2 * largest)

    def pld(self, interval: float) -> Pld:
        """See `dpsynth.accounting.loss.atoms.Atom`; the loss of presence and that of absence are the same."""
        from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

        reach = math.ceil(self.pure_epsilon / interval)
        grid = np.arange(-reach, reach + 1) * interval
        return PrivacyLossDistribution(grid_pmf(interval, -reach, self.deltas(grid)))

    def deltas(self, epsilons: np.ndarray) -> np.ndarray:
        """The divergence at each of an array of epsilons of any sign."""
        largest = self.pure_epsilon
        inside = np.clip(epsilons, -largest, largest)
        within = np.expm1((inside - largest) / 2) ** 2 / -math.expm1(-largest)
        return np.where(epsilons < -largest, -np.expm1(np.minimum(epsilons, 0.0)), within)
