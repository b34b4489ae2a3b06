"""Smooth densities from noisy counts: a penalised spline of the logarithm, weighted by the evidence.

Cell i of a histogram has a count of mean ``mu_i = exp((X b)_i + offset_i)`` and is seen with variance v_i; X
holds cubic B-splines of the cell's place (Eilers and Marx 1996) and, where habits of writing numbers down are
modelled, one indicator for each residue. The penalty on third differences of the spline's coefficients
(Silverman 1982) leaves a Gaussian where the counts say nothing more. Outside the resolved cells two
asymmetric penalties (Eilers 2005) hold: the density may not turn up again, and bending upwards costs.

References
----------
Eilers and Marx (1996), "Flexible smoothing with B-splines and penalties", section 2; Silverman (1982), "On
the estimation of a probability density function by the maximum penalized likelihood method", section 3;
Eilers (2005), "Unimodal smoothing"; MacKay (1992), "Bayesian interpolation", section 4 (the evidence).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline

Array = NDArray[np.float64]

#: B-splines at most; a bump narrower than about two of their spacings is left to single cells.
_MOST_SPLINES = 24
#: Order of the differences that are penalised: 3 leaves log-quadratic densities free.
_ORDER = 3
#: Weights of the tails' penalties: turning up (forbidden, in effect) and bending upwards.
_TURN, _BEND = 1e4, 10.0
#: Keeps the coefficients finite where neither counts nor penalties say anything.
_RIDGE = 1e-4
#: Range of a mean's logarithm: beyond it a mean is none, and numbers near the end of their range are slow.
_LOGS = (-40.0, 30.0)


@dataclass(frozen=True, eq=False)
class Design:
    """What a density is made of, from public values and from which cells stand out.

    Parameters
    ----------
    basis : array, shape (cells, splines)
    offset : array, shape (cells,)
        Logarithm of the mean count under an even density.
    penalty : array, shape (splines, splines)
        Of third differences.
    tails : tuple of arrays, shapes (splines - 1,), (splines - 1,), (splines - 2,)
        First differences below the resolved cells and above them, second differences outside them.
    residues : array, shape (cells, period)
        Indicators of the residue of each cell's value; no columns without habits.
    """

    basis: Array
    offset: Array
    penalty: Array
    tails: tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]
    residues: Array

    @classmethod
    def of(cls, places: Array, widths: Array, total: float, resolved: tuple[int, int]) -> Design:
        """Design of cells at ``places`` in (0, 1), of ``widths`` that sum to 1, without habits.

        ``resolved`` are the first and the last cell that stand out of the noise.
        """
        size = int(np.clip(len(places), _ORDER + 3, _MOST_SPLINES))
        spacing = 1.0 / (size - 3)
        knots = spacing * np.arange(-3, size + 1)
        basis = BSpline.design_matrix(places, knots, 3).toarray()
        third = np.diff(np.eye(size), _ORDER, axis=0)
        # Spline k has its middle at (k - 1) spacings.
        middles = spacing * (np.arange(size) - 1.0)
        below, above = places[resolved[0]], places[resolved[1]]
        between = (middles[1:] + middles[:-1]) / 2
        outside = (middles[1:-1] < below) | (middles[1:-1] > above)
        tails = (between < below, between > above, outside)
        return cls(basis, np.log(widths * total), third.T @ third, tails, np.zeros((len(places), 0)))

    @property
    def size(self) -> int:
        """Number of splines."""
        return self.basis.shape[1]

    def shape_penalty(self, b: Array) -> Array:
        """Penalty of the tails that break their shape at coefficients ``b``, shape (splines, splines)."""
        first = np.diff(np.eye(self.size), axis=0)
        second = np.diff(first, axis=0)
        slope, bend = first @ b[: self.size], second @ b[: self.size]
        below, above, outside = self.tails
        turning = _TURN * ((below & (slope < 0)) | (above & (slope > 0)))
        bending = _BEND * (outside & (bend > 0))
        return first.T @ (turning[:, None] * first) + second.T @ (bending[:, None] * second)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted density.

    Attributes
    ----------
    coefficients : array, shape (splines + period,)
    means : array, shape (cells,)
    evidence : float
        Logarithm, up to a constant that designs of the same counts share.
    smoothness, sameness : float
        Weights of the third differences and of the residues' ridge.
    """

    coefficients: Array
    means: Array
    evidence: float
    smoothness: float
    sameness: float


def start(design: Design, means: Array) -> Array:
    """Coefficients whose density is about ``means`` (positive), without habits; shape (splines,)."""
    basis = design.basis
    normal = basis.T @ basis + 1e-3 * design.penalty + 1e-6 * np.eye(design.size)
    return np.linalg.solve(normal, basis.T @ (np.log(means) - design.offset))


def fit(
    design: Design,
    counts: Array,
    variance: Array,
    total: tuple[float, float],
    b: Array,
    *,
    smoothness: Array,
    sameness: Array,
) -> Fitted:
    """The density of greatest evidence over a grid of penalty weights.

    Parameters
    ----------
    design : Design
    counts, variance : arrays, shape (cells,)
        Noisy counts, and their variance around the density's means.
    total : (float, float)
        Known sum of the means, and the variance with which it is known.
    b : array, shape (splines + period,)
        Coefficients to start from.
    smoothness, sameness : arrays
        Weights to try; ``sameness`` says nothing where there are no residues.

    Returns
    -------
    Fitted
    """
    size, period = design.size, design.residues.shape[1]
    best: Fitted | None = None
    for same in sameness if period else sameness[:1]:
        current = b
        for smooth in smoothness:
            fixed = np.zeros((size + period, size + period))
            fixed[:size, :size] = smooth * design.penalty + _RIDGE * np.eye(size)
            fixed[size:, size:] = same * np.eye(period)
            for _ in range(2):  # the tails' penalties are those that the fit before them broke
                penalty = fixed.copy()
                penalty[:size, :size] += design.shape_penalty(current)
                current, means, loss, curvature = _newton(design, counts, variance, total, penalty, current)
            # Laplace: log evidence = -loss - log det(curvature) / 2 + log det(penalty) / 2
            evidence = -loss - (np.linalg.slogdet(curvature)[1] - np.linalg.slogdet(penalty)[1]) / 2
            if best is None or evidence > best.evidence:
                best = Fitted(current, means, float(evidence), float(smooth), float(same))
    assert best is not None
    return best


def _newton(
    design: Design,
    counts: Array,
    variance: Array,
    total: tuple[float, float],
    penalty: Array,
    b: Array,
) -> tuple[Array, Array, float, Array]:
    """Least squares under a quadratic penalty (Levenberg-Marquardt): coefficients, means, loss, curvature."""
    columns = np.hstack([design.basis, design.residues])
    precision = 1.0 / variance

    def loss_of(b: Array) -> tuple[float, Array]:
        means = np.exp(np.clip(columns @ b + design.offset, *_LOGS))
        misfit = ((counts - means) ** 2 * precision).sum() + (means.sum() - total[0]) ** 2 / total[1]
        return float(misfit + b @ penalty @ b) / 2, means

    def slopes(means: Array) -> tuple[Array, Array]:
        slope = columns * means[:, None]
        return slope, slope.sum(axis=0)

    loss, means = loss_of(b)
    damping = 1e-3
    for _ in range(30):
        slope, whole = slopes(means)
        gradient = (
            slope.T @ ((means - counts) * precision)
            + whole * (means.sum() - total[0]) / total[1]
            + penalty @ b
        )
        curvature = slope.T @ (slope * precision[:, None]) + np.outer(whole, whole) / total[1] + penalty
        scale = np.diag(np.diag(curvature) + 1e-9)
        for _ in range(12):
            step = np.linalg.solve(curvature + damping * scale, -gradient)
            tried, tried_means = loss_of(b + step)
            if tried < loss:
                break
            damping *= 4.0
        else:
            break
        gain, b, loss, means, damping = loss - tried, b + step, tried, tried_means, max(damping / 5, 1e-8)
        if gain < 1e-4 * (1.0 + abs(loss)):
            break
    slope, whole = slopes(means)
    curvature = slope.T @ (slope * precision[:, None]) + np.outer(whole, whole) / total[1] + penalty
    return b, means, loss, curvature
