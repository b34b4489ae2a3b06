"""Smooth densities from noisy counts: a penalised spline of the logarithm, weighted by the evidence.

Cell i of a histogram has a count of mean mu_i and is seen with variance v_i. Its parts have means that add up
to mu_i. Each is ``exp((X b)_k + offset_k)``, and X holds cubic B-splines of the part's place (Eilers and Marx
1996). The penalty on third differences of the spline's coefficients (Silverman 1982) leaves a Gaussian if the
counts show nothing more. On a logarithmic scale, this is a lognormal density. No cell outside the places from
0 to 1 stands out of the noise. There the logarithm is the parabola of the spline's end, and straight from one
more width of these on. An asymmetric penalty
(Eilers 2005) makes a tail concave, and as steep as the density falls from its median to the tail. Normal,
exponential, gamma, Weibull and lognormal tails are concave. A flatter one would spread over all cells far out
what noise adds to their sum. Densities are averaged over scales and smoothness, weighted by their evidence.
The average has more of a tail than the most probable density.

Source: Eilers and Marx (1996), "Flexible smoothing with B-splines and penalties", section 2. Silverman
(1982), "On the estimation of a probability density function by the maximum penalized likelihood method",
section 3. Eilers (2005), "Unimodal smoothing". MacKay (1992), "Bayesian interpolation", section 4 (the
evidence).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline

Array = NDArray[np.float64]

#: B-splines at most; a bump narrower than about two of their spacings is left to single cells.
_MOST_SPLINES = 24
#: Order of the differences that are penalised: 3 leaves log-quadratic densities free.
_ORDER = 3
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
    ``tails``, shape (splines,): slopes of the tails there are, as they rise away from the resolved cells, and
        their second derivatives, in the coefficients.
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
        slope, curve = splines.derivative(), splines.derivative(2)
        away = (places - inside)[:, None]
        bent = np.abs(away).clip(0.0, 1.0)  # farther out it is straight: equations would be singular
        basis = splines(inside) + slope(inside) * away + curve(inside) * (bent * np.abs(away) - bent**2 / 2)
        third = np.diff(np.eye(size), _ORDER, axis=0)
        rising = [-slope(0.0), curve(0.0)] if places[0] < 0 else []
        rising += [slope(1.0), curve(1.0)] if places[-1] > 1 else []
        level = np.log(rough / widths)
        median = int(np.searchsorted(np.cumsum(rough), rough.sum() / 2))
        offset = np.log(widths * rough.sum())
        for edge, outward in ((0.0, -places), (1.0, places - 1.0)):
            distance = max(abs(edge - places[median]), spacing)
            fall = max(level[median] - float(np.interp(edge, places, level)), 0.0) / distance
            # Quadratic inside, where third differences do not see it, and straight in the tail.
            offset -= fall * ((inside - 1.0 + edge) ** 2 / 2 + np.maximum(outward, 0.0))
        return cls(basis, offset, third.T @ third, tuple(rising))

    @property
    def size(self) -> int:
        """Number of splines."""
        return self.basis.shape[1]

    def shape_penalty(self, b: Array) -> Array:
        """Penalty of the tails that rise or turn up at coefficients ``b``, shape (splines, splines)."""
        rising = [tail for tail in self.tails if tail @ b > 0]
        return _TURN * sum((np.outer(tail, tail) for tail in rising), np.zeros((self.size, self.size)))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted density.

    ``coefficients``, shape (splines,).
    ``fine``, shape (cells, parts): means of the cells' parts.
    ``evidence``: logarithm, up to a constant that designs of the same counts share.
    """

    coefficients: Array
    fine: Array
    evidence: float


def start(design: Design, means: Array) -> Array:
    """Coefficients whose density is about ``means`` (positive), shape (splines,)."""
    basis = design.basis
    parts = len(basis) // len(means)
    means = np.repeat(means / parts, parts)
    normal = basis.T @ basis + 1e-3 * design.penalty + 1e-6 * np.eye(design.size)
    return np.linalg.solve(normal, basis.T @ (np.log(means) - design.offset))


def fit(
    design: Design, counts: Array, variance: Array, total: tuple[float, float], b: Array, smoothness: Array
) -> list[Fitted]:
    """One density for each penalty weight.

    ``counts``, ``variance``, shape (cells,): noisy counts, and their variance around the density's means.
    ``total``: known sum of the means, and the variance with which it is known.
    ``b``, shape (splines,): coefficients to start from.
    """
    found = []
    current = b
    for smooth in smoothness:
        fixed = smooth * design.penalty + _RIDGE * np.eye(design.size)
        for _ in range(2):  # the tails' penalties are those that the fit before them broke
            penalty = fixed + design.shape_penalty(current)
            current, fine, loss, curvature = _newton(design, counts, variance, total, penalty, current)
        # Laplace: log evidence = -loss - log det(curvature) / 2 + log det(penalty) / 2. Without the tails'
        # penalties: a slope at its limit is fitted too, and would count as known beforehand.
        free = curvature - penalty + fixed
        sign, size = np.linalg.slogdet(free)
        # Rounding can make it singular, where a density has no evidence.
        evidence = -loss - (size - np.linalg.slogdet(fixed)[1]) / 2 if sign > 0 else -np.inf
        found.append(Fitted(current, fine, float(evidence)))
    return found


def averaged(fits: Sequence[Fitted]) -> Array:
    """Means of all cells' parts, over densities weighted by their evidence, shape (cells, parts).

    Source: Hoeting et al. (1999), "Bayesian model averaging: a tutorial", Statistical Science 14, equation 1.
    """
    evidence = np.array([fitted.evidence for fitted in fits])
    weights = np.exp(evidence - evidence.max())
    return np.tensordot(weights / weights.sum(), np.stack([fitted.fine for fitted in fits]), axes=1)


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
