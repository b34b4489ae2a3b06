"""Whether predicted probabilities mean what they say: calibration slope, intercept and curve.

The outcome is regressed on the logit of the predicted probability, without penalty (Cox 1958, Biometrika 45;
Van Calster et al. 2019, BMC Medicine 17). The *slope* is 1 for calibrated predictions, below 1 for
predictions that are too extreme, 0 for useless ones. The *intercept* is that of the regression whose slope is
held at 1: above 0 the outcome is more frequent than predicted. Probabilities are clipped to
[1e-6, 1 - 1e-6] first, because a forest may predict 0 and 1, whose logits are infinite.

The regressions are fitted for many weightings of the records at once, which is what a bootstrap needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: probabilities are held this far from 0 and 1
CLIP = 1e-6


@dataclass(frozen=True)
class Curve:
    """A calibration curve: records in groups of about equal size by predicted probability.

    Attributes
    ----------
    predicted, observed : tuple of float
        Mean predicted probability and share of the outcome in each group, by ascending prediction.
    count : tuple of int
        Records in each group.
    """

    predicted: tuple[float, ...]
    observed: tuple[float, ...]
    count: tuple[int, ...]


def calibration_curve(y: NDArray[np.bool_], predicted: Floats, groups: int = 10) -> Curve:
    """Group records by their predicted probability.

    Parameters
    ----------
    y : ndarray of bool of shape (n,)
        Whether the outcome occurred.
    predicted : ndarray of shape (n,)
        In [0, 1].
    groups : int
        Largest number of groups; records with the same prediction are never parted.
    """
    # the last prediction of each group but the last one, by whole numbers: 0.3 * 100 is not 30
    last = -(-len(predicted) * np.arange(1, groups) // groups) - 1
    inner = np.sort(predicted)[last]
    group = np.unique(np.searchsorted(np.unique(inner), predicted, side="left"), return_inverse=True)[1]
    count = np.bincount(group)
    means = (np.bincount(group, weights=values) / count for values in (predicted, y.astype(np.float64)))
    predicted_mean, observed = (tuple(mean.tolist()) for mean in means)
    return Curve(predicted_mean, observed, tuple(count.tolist()))


class Recalibration:
    """The two regressions of an outcome on predicted probabilities, for any weights of the records.

    Parameters
    ----------
    y : ndarray of bool of shape (n,)
        Whether the outcome occurred.
    predicted : ndarray of shape (n,)
        In [0, 1]; clipped to [1e-6, 1 - 1e-6].
    """

    def __init__(self, y: NDArray[np.bool_], predicted: Floats) -> None:
        clipped = np.clip(predicted, CLIP, 1 - CLIP)
        logit = np.log(clipped) - np.log1p(-clipped)
        # Records of equal prediction and outcome are one record of their summed weight: forests and
        # small tables have few different ones.
        self._order = np.lexsort((y, logit))
        cells = np.stack([logit[self._order], y[self._order]])
        new = np.append(True, (cells[:, 1:] != cells[:, :-1]).any(axis=0))
        self._starts = np.flatnonzero(new)
        self._logit, self._y = cells[:, self._starts]
        self._line = np.stack([np.ones(len(self._y)), self._logit], axis=1)
        ones = np.diff(np.append(self._starts, len(y))).astype(np.float64)[:, None]
        zero = np.zeros(len(self._y))
        self._start_line = _fit(self._line, zero, self._y, ones, np.zeros((1, 2)), 1e-10)
        self._start_shift = _fit(self._line[:, :1], self._logit, self._y, ones, np.zeros((1, 1)), 1e-10)

    def slope(self, weights: Floats) -> Floats:
        """Slope of the regression with a free intercept, for each column of weights.

        Parameters
        ----------
        weights : ndarray of shape (n, k)
            Non-negative.

        Returns
        -------
        ndarray of shape (k,)
            NaN where there is no finite slope: one outcome only, equal predictions, or predictions that part
            the outcomes completely.
        """
        return self._fitted(self._line, np.zeros(len(self._y)), self._start_line, weights)[:, 1]

    def intercept(self, weights: Floats) -> Floats:
        """Intercept of the regression whose slope is 1; NaN where one outcome only has weight."""
        return self._fitted(self._line[:, :1], self._logit, self._start_shift, weights)[:, 0]

    def _fitted(self, design: Floats, offset: Floats, start: Floats, weights: Floats) -> Floats:
        if not np.isfinite(start).all():
            # no fit to all records, and so none to a part of them that begins there
            return np.full((weights.shape[1], design.shape[1]), np.nan)
        weights = weights[self._order]
        if len(self._starts) < len(self._order):
            weights = np.add.reduceat(weights, self._starts, axis=0)
        return _fit(design, offset, self._y, weights, start, 1e-3)


def _fit(
    design: Floats, offset: Floats, y: Floats, weights: Floats, start: Floats, tolerance: float
) -> Floats:
    """Maximise the likelihood of logistic regressions by Newton's method, one for each column of weights.

    ``start`` has shape (1, p), the result (k, p), NaN where the iterations do not settle. The last step taken
    is below ``tolerance``; its error is of the order of its square.
    """
    k, p = weights.shape[1], design.shape[1]
    beta = np.repeat(start, k, axis=0)
    total = weights.sum(axis=0)
    present = (y @ weights > 0) & ((1 - y) @ weights > 0)
    products = [(i, j) for i in range(p) for j in range(i, p)]
    pairs = np.stack([design[:, i] * design[:, j] for i, j in products])
    step = np.zeros((k, p))
    rise = np.full(k, np.inf)
    settled = np.zeros(k, dtype=bool)
    for iteration in range(60):
        # All columns begin at the same place, where the means are the same for all of them.
        eta = design @ (beta[:1] if iteration == 0 else beta).T + offset[:, None]
        mean = 1.0 / (1.0 + np.exp(-np.clip(eta, -500, 500)))
        gradient = (_weighted(design.T, y[:, None] - mean, weights) / total).T
        # The likelihood is concave: a step has gone too far when its end calls it back half as steeply as
        # its start sent it off. Without this, predictions near 0 send it where all means are 1.
        slope = (gradient * step).sum(axis=1)
        too_far = (slope < -rise / 2) & ~settled
        if too_far.any():
            step[too_far] /= 2
            rise[too_far] /= 2
            beta[too_far] -= step[too_far]
        curvature = (_weighted(pairs, mean * (1 - mean), weights) / total).T
        hessian = np.empty((k, p, p))
        for position, (i, j) in enumerate(products):
            hessian[:, i, j] = hessian[:, j, i] = curvature[:, position]
        solvable = np.linalg.det(hessian) > 1e-12 * np.prod(np.einsum("kii->ki", hessian), axis=1)
        present &= solvable | too_far | settled
        fresh = present & ~too_far & ~settled
        step[fresh] = np.linalg.solve(hessian[fresh], gradient[fresh][:, :, None])[:, :, 0]
        rise[fresh] = (gradient[fresh] * step[fresh]).sum(axis=1)
        beta[fresh] += step[fresh]
        settled |= fresh & (np.abs(step).max(axis=1) < tolerance)
        if (settled | ~present).all():
            break
    beta[~(settled & present)] = np.nan
    return beta


def _weighted(rows: Floats, values: Floats, weights: Floats) -> Floats:
    """``sum_i rows[r, i] values[i, k] weights[i, k]``, one column of values standing for all."""
    if values.shape[1] == 1:
        return (rows * values[:, 0]) @ weights
    return rows @ (values * weights)
