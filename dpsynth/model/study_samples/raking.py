"""Draws reweighted so that their terms of two values are 1 as often as in the records.

Predictors that are 0 or 1, the categories of a column and products of them, hold their whole law in their
counts. A map of the predictors cannot change those: it stretches the few ones of a rare product until their
squares are those of many, and a cap on a record's information then hides that they are few. So the draws are
weighted by ``exp(tilt' x)`` until the counts, as laws of their information, are those of the records: the
least change of the draws that does it (raking, Deming and Stephan 1940; entropy balancing).

Counts that were read with noise are met as far as their noise allows: the odds of the two values in records
and in draws have a ratio of 1 beforehand, within a factor of e (a standard deviation of its logarithm).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_STEPS, _CLOSE = 100, 1e-9


@dataclass(frozen=True, eq=False)
class Sums:
    """What was read of records whose terms of two values are to be counted, and the same of draws.

    Attributes
    ----------
    each : ndarray of shape (k, 1 + 2 b)
        Of a draw: a 1, its b terms, and their squares.
    mass : ndarray of shape (k,)
        What it counts for, 0 or more.
    wanted : ndarray of shape (1 + 2 b,)
        ``each.T @ mass`` of the records, with noise.
    noise : ndarray of shape (1 + 2 b, 1 + 2 b)
        The covariance of that; positive definite.
    """

    each: Floats
    mass: Floats
    wanted: Floats
    noise: Floats

    def tilt(self, scale: Floats) -> Floats:
        """The most probable tilt of the draws, shape (1 + b,), by Gauss and Newton's steps.

        Parameters
        ----------
        scale : ndarray of shape (1 + b,)
            Standard deviation beforehand: 1 for all, and for each term one over how far its values lie apart.
        """
        rows = self.each[:, : len(scale)]
        weight = np.linalg.inv(self.noise)
        tilt = np.zeros(len(scale))
        for _ in range(_STEPS):
            weighted = self.each * (self.mass * np.exp(rows @ tilt))[:, None]
            slope = weighted.T @ rows
            score = slope.T @ weight @ (self.wanted - weighted.sum(axis=0)) - tilt / scale**2
            step = np.linalg.solve(slope.T @ weight @ slope + np.diag(scale**-2.0), score)
            # the exponential is far from its tangent beyond a factor of e
            step /= max(1.0, float(np.abs(rows @ step).max(initial=0.0)))
            tilt = tilt + step
            if np.abs(step).max() < _CLOSE:
                break
        return tilt


def resampled(weights: Floats) -> NDArray[np.int64]:
    """Positions of as many draws as there are weights, each as often as its weight has it, shape (k,).

    Systematic resampling, of draws in the order of their weights: every count is met to within one draw.
    """
    order = np.argsort(weights, kind="stable")
    ends = np.cumsum(weights[order]) * (len(weights) / weights.sum())
    times = np.diff(np.floor(ends + 0.5), prepend=0.0).astype(int)
    return np.sort(np.repeat(order, times))
