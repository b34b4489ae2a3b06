"""Smooth densities from noisy counts: a penalised spline of the logarithm, weighted by the evidence.

Cell i of a histogram has a count of mean mu_i and is seen with variance v_i. Its parts have means that add up
to mu_i. Each is ``exp((X b)_k + offset_k)``, and X holds cubic B-splines of the part's place (Eilers and Marx
1996). The penalty on third differences of the spline's coefficients (Silverman 1982) leaves a Gaussian if the
counts show nothing more. No cell outside the places from 0 to 1 stands out of the noise. There the logarithm
is a straight line: an exponential tail. An asymmetric penalty (Eilers 2005) makes it fall at least half as
steeply as the density falls from its median to the tail. A flatter one would spread over all cells far out
what noise adds to their sum.

Source: Eilers and Marx (1996), "Flexible smoothing with B-splines and penalties", section 2. Silverman
(1982), "On the estimation of a probability density function by the maximum penalized likelihood method",
section 3. Eilers (2005), "Unimodal smoothing". MacKay (1992), "Bayesian interpolation", section 4 (the
evidence).
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
#: A tail falls at least so steeply, as a part of the mean slope from the median to where the tail begins.
_LEAST_FALL = 0.5
#: Weight of the penalty on a tail that falls less, which forbids it in effect.
_TURN = 1e4
#: Keeps the coefficients finite where neither counts nor penalties constrain them.
_RIDGE = 1e-4
#: Range of a mean's logarithm: beyond it a mean is none, and numbers near the end of their range are slow.
_LOGS = (-40.0, 30.0)


@dataclass(frozen=True, eq=False)
class Design:
    """Design of a density, from public values and from which cells stand out.

    ``basis``, shape (cells * parts, splines).
    ``offset``, shape (cells * parts,): logarithm of a part's mean count under an even density.
    ``penalty``, shape (splines, splines): of third differences.
    ``tails``, shape (splines,): slopes of the tails there are, as they rise away from the resolved cells, in
        the coefficients.
    """

    basis: Array
    offset: Array
    penalty: Array
    tails: tuple[Array, ...]

    @classmethod
    def of(cls, places: Array, widths: Array, rough: Array) -> Design:
        """Design of cells at ``places``, of which those outside 0 to 1 are in the tails.

        ``widths`` are those of an even density, and sum to 1. ``rough`` is a first guess of the means. There
        are as many places for each cell as it has parts.
        """
        parts = len(places) // len(widths)
        widths, rough = (np.repeat(of_cells / parts, parts) for of_cells in (widths, rough))
        inside = places.clip(0.0, 1.0)
        resolved = ((places >= 0) & (places <= 1)).sum() // parts
        size = int(np.clip(resolved, _ORDER + 3, _MOST_SPLINES))
        spacing = 1.0 / (size - 3)
        splines = BSpline(spacing * np.arange(-3, size + 1), np.eye(size), 3)
        slope = splines.derivative()
        basis = splines(inside) + slope(inside) * (places - inside)[:, None]
        third = np.diff(np.eye(size), _ORDER, axis=0)
        rising = [-slope(0.0)] if places[0] < 0 else []
        rising += [slope(1.0)] if places[-1] > 1 else []
        level = np.log(rough / widths)
        median = int(np.searchsorted(np.cumsum(rough), rough.sum() / 2))
        offset = np.log(widths * rough.sum())
        for edge, outward in ((0.0, -places), (1.0, places - 1.0)):
            away = max(abs(edge - places[median]), spacing)
            fall = max(level[median] - float(np.interp(edge, places, level)), 0.0) / away
            # Quadratic inside, where third differences do not see it, and straight in the tail.
            offset -= _LEAST_FALL * fall * ((inside - 1.0 + edge) ** 2 / 2 + np.maximum(outward, 0.0))
        return cls(basis, offset, third.T @ third, tuple(rising))

    @property
    def size(self) -> int:
        """Number of splines."""
        return self.basis.shape[1]

    def shape_penalty(self, b: Array) -> Array:
        """Penalty of the tails that rise at coefficients ``b``, shape (splines, splines)."""
        rising = [tail for tail in self.tails if tail @ b > 0]
        return _TURN * sum((np.outer(tail, tail) for tail in rising), np.zeros((self.size, self.size)))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted density.

    ``coefficients``, shape (splines,).
    ``means``, shape (cells,).
    ``fine``, shape (cells, parts): their parts.
    ``evidence``: logarithm, up to a constant that designs of the same counts share.
    ``smoothness``: weight of the third differences.
    """

    coefficients: Array
    means: Array
    fine: Array
    evidence: float
    smoothness: float


def start(design: Design, means: Array) -> Array:
    """Coefficients whose density is about ``means`` (positive), shape (splines,)."""
    basis = design.basis
    parts = len(basis) // len(means)
    means = np.repeat(means / parts, parts)
    normal = basis.T @ basis + 1e-3 * design.penalty + 1e-6 * np.eye(design.size)
    return np.linalg.solve(normal, basis.T @ (np.log(means) - design.offset))


def fit(
    design: Design, counts: Array, variance: Array, total: tuple[float, float], b: Array, smoothness: Array
) -> Fitted:
    """The density of greatest evidence among penalty weights.

    ``counts``, ``variance``, shape (cells,): noisy counts, and their variance around the density's means.
    ``total``: known sum of the means, and the variance with which it is known.
    ``b``, shape (splines,): coefficients to start from.
    """
    best: Fitted | None = None
    current = b
    for smooth in smoothness:
        fixed = smooth * design.penalty + _RIDGE * np.eye(design.size)
        for _ in range(2):  # the tails' penalties are those that the fit before them broke
            penalty = fixed + design.shape_penalty(current)
            current, fine, loss, curvature = _newton(design, counts, variance, total, penalty, current)
        # Laplace: log evidence = -loss - log det(curvature) / 2 + log det(penalty) / 2. Without the tails'
        # penalties: a slope at its limit is fitted too, and would count as known beforehand.
        free = curvature - penalty + fixed
        evidence = -loss - (np.linalg.slogdet(free)[1] - np.linalg.slogdet(fixed)[1]) / 2
        if best is None or evidence > best.evidence:
            best = Fitted(current, fine.sum(axis=1), fine, float(evidence), float(smooth))
    assert best is not None
    return best


def _newton(
    design: Design, counts: Array, variance: Array, total: tuple[float, float], penalty: Array, b: Array
) -> tuple[Array, Array, float, Array]:
    """Least squares under a quadratic penalty (Levenberg-Marquardt): coefficients, parts, loss, curvature."""
    columns = design.basis
    precision = 1.0 / variance

    def loss_of(b: Array) -> tuple[float, Array]:
        fine = np.exp(np.clip(columns @ b + design.offset, *_LOGS)).reshape(len(counts), -1)
        means = fine.sum(axis=1)
        misfit = ((counts - means) ** 2 * precision).sum() + (means.sum() - total[0]) ** 2 / total[1]
        return float(misfit + b @ penalty @ b) / 2, fine

    def curved(fine: Array) -> tuple[Array, Array, Array]:
        slope = (columns * fine.reshape(-1, 1)).reshape(*fine.shape, len(b)).sum(axis=1)
        whole = slope.sum(axis=0)
        curvature = slope.T @ (slope * precision[:, None]) + np.outer(whole, whole) / total[1] + penalty
        return slope, whole, curvature

    loss, fine = loss_of(b)
    damping = 1e-3
    for _ in range(30):
        (slope, whole, curvature), means = curved(fine), fine.sum(axis=1)
        gradient = slope.T @ ((means - counts) * precision) + whole * (means.sum() - total[0]) / total[1]
        gradient += penalty @ b
        scale = np.diag(np.diag(curvature) + 1e-9)
        for _ in range(12):
            step = np.linalg.solve(curvature + damping * scale, -gradient)
            tried, tried_fine = loss_of(b + step)
            if tried < loss:
                break
            damping *= 4.0
        else:
            break
        gain, b, loss, fine, damping = loss - tried, b + step, tried, tried_fine, max(damping / 5, 1e-8)
        if gain < 1e-4 * (1.0 + abs(loss)):
            break
    return b, fine, loss, curved(fine)[2]
