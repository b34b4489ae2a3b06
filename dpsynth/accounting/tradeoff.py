"""Trade-off curves: the smallest false negative rate of any test at each false positive rate.

Dong, Roth and Su 2019, "Gaussian differential privacy", Proposition 2.12: a curve is the envelope of the
lines ``fnr = 1 - delta(epsilon) - e^epsilon fpr``. Kulynych, Gomez, Kaissis, du Pin Calmon and Troncoso 2024,
"Attack-aware noise calibration for differential privacy", section 3, read it off privacy-loss distributions.

``delta`` is a convex function of ``y = e^epsilon``, so it lies below the lower convex hull of any upper
bounds of it. A curve built from that hull is never above the true one. It errs on the private side, even with
few points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: More than the sums and products below move a vertex off its line, each of terms of at most 1.
_ROUNDING = 2e-15


@dataclass(frozen=True)
class TradeOff:
    """A convex, decreasing trade-off curve through vertices, ``fpr`` ascending."""

    fpr: np.ndarray
    fnr: np.ndarray

    def __call__(self, fpr: float | np.ndarray) -> float | np.ndarray:
        """Smallest false negative rate at one false positive rate or an array of them."""
        value = np.interp(fpr, self.fpr, self.fnr)
        return value if np.ndim(fpr) else float(value)

    def mu(self, smallest_fpr: float) -> float:
        """Smallest mu whose Gaussian trade-off curve lies nowhere above this one.

        Between vertices the convex Gaussian curve lies below its chord, so the vertices decide. Those with an
        error rate below ``smallest_fpr`` are left out.
        """
        from scipy.special import ndtri

        if float(self(smallest_fpr)) < smallest_fpr:
            return float("inf")
        # the ends of what is looked at are vertices of that part of the curve
        end = float(np.interp(-smallest_fpr, -self.fnr, self.fpr))
        seen = (self.fpr > smallest_fpr) & (self.fpr < end)
        fpr = np.concatenate([[smallest_fpr], self.fpr[seen], [end]])
        # Definition 2.6: G_mu(fpr) = Phi(Phi^{-1}(1 - fpr) - mu)
        # quantiles of rates from 1e-9 on, below 6, are right to a few units
        return max(0.0, float(np.max(-ndtri(fpr) - ndtri(self(fpr)))) + 1e-14)


def from_deltas(epsilons: np.ndarray, deltas: np.ndarray) -> TradeOff:
    """Build the curve from upper bounds ``deltas`` at ascending ``epsilons``, both of shape (n,).

    Epsilons are at least 0 and below 700. Each pair holds with the two tables exchanged as well, so the
    result is its own inverse.
    """
    y, bound = np.exp(epsilons), np.minimum.accumulate(np.clip(deltas + _ROUNDING, 0.0, 1.0))
    apart = np.append(True, np.diff(y) > 0)  # epsilons may differ by less than the numbers next to 1
    y, bound = _lower_hull(y[apart], bound[apart])
    # On a stretch of the hull, delta = (1 - fnr) - y fpr; beyond the last point it is constant.
    fpr = np.append(np.diff(bound) / -np.diff(y), 0.0)
    fnr = 1 - bound - y * fpr
    fpr, fnr = fpr[::-1], fnr[::-1]
    # What holds with the tables exchanged holds for (fnr, fpr): reflect the curve where it meets the
    # diagonal. The first line goes on to fnr = 0; its slope is -1 where the first epsilon is 0.
    fpr, fnr = np.append(fpr, (1 - bound[0]) / y[0]), np.append(fnr, 0.0)
    fpr, fnr = _until_diagonal(fpr, fnr)
    fpr, fnr = np.append(fpr, fnr[::-1]), np.append(fnr, fpr[::-1])
    fpr, fnr = np.clip(fpr, 0.0, 1.0), np.clip(fnr, 0.0, 1.0)
    fpr, fnr = np.maximum.accumulate(np.append(fpr, 1.0)), np.minimum.accumulate(np.append(fnr, 0.0))
    first = np.flatnonzero(np.diff(np.append(-1.0, fpr)) > 0)
    # of several vertices at one rate, the lowest counts
    last = np.append(first[1:], fpr.size) - 1
    return TradeOff(fpr[first], fnr[last])


def _until_diagonal(fpr: np.ndarray, fnr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vertices as long as ``fnr`` is at least ``fpr``, and the point where it crosses it."""
    above = fnr - fpr
    kept = int(np.argmax(above < 0.0)) if np.any(above < 0.0) else fnr.size
    if kept in (0, fnr.size):
        return fpr, fnr
    share = above[kept - 1] / (above[kept - 1] - above[kept])
    crossing = [(1 - share) * rate[kept - 1] + share * rate[kept] for rate in (fpr, fnr)]
    return np.append(fpr[:kept], crossing[0]), np.append(fnr[:kept], crossing[1])


def _lower_hull(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower convex hull of points with ascending ``x`` (Andrew's monotone chain)."""
    kept: list[tuple[float, float]] = []
    for point in zip(x.tolist(), y.tolist(), strict=True):
        while len(kept) > 1:
            (x0, y0), (x1, y1) = kept[-2], kept[-1]
            if (y1 - y0) * (point[0] - x1) < (point[1] - y1) * (x1 - x0):
                break
            kept.pop()
        kept.append(point)
    hull = np.asarray(kept)
    return hull[:, 0], hull[:, 1]
