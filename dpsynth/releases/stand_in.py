"""Synthetic draws in the place of records: a study's expectations, and what mends them.

Whatever a study needs to know of the records on average, their information, what a score is expected to be,
how long the intervals of a bound would be, comes from draws of the released prior and is free. Their pairs of
columns are those of a tree with noise. Where they are wrong, so is every expectation: a trial with correlated
predictors covered .5 for .95. So the records' information is bought, once and first, and the draws'
predictors are mapped, by an affine map, to the mean and covariance that it tells. The *difference* to what
the draws had is shrunk by the noise that it holds (James and Stein 1961), so that it does no harm where noise
drowns it; and for intervals a standard error of that noise is taken off the covariance besides, in every
direction: unsure is wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpsynth.regression.design import StudyDesign
from dpsynth.regression.newton import Observation, bounded_step, posterior, prior_precision
from dpsynth.releases.score import ScorePoint, ScoreRelease

Floats = NDArray[np.float64]

#: intervals may be longer than the shortest by this, if more records keep a weight of 1 for it: an unweighted
#: fit is what the study is compared with where the model does not quite hold
_SLACK = 1.1
#: shares of the draws whose reach a bound C is tried at
_BOUNDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.995)
#: share of the draws whose information is below the cap K
_CAPPED = 0.95
#: whitening lifts no eigenvalue below this part of their mean: near it, terms are collinear
_FLOOR = 0.01
#: a move stretches the draws' covariance by no less and no more, in every direction
_STRETCH = (0.1, 4.0)
#: moves until the draws' information is the records'
_MOVES = 4
#: how far, in logarithms, the draws' covariance may be off where noise drowns the records'
_DOUBT = 0.5
#: what is left of a covariance at least where noise is taken off it
_LEAST = 0.3
#: Newton's steps from scores to coefficients, and when they are near enough
_ROUNDS, _CLOSE = 20, 1e-6
#: noise of a release without any, over its bound, so that its inverse exists
_NO_NOISE = 1e-6


@dataclass(frozen=True, eq=False)
class StandIn:
    """Synthetic draws that stand for the records, and a correction once it is bought.

    Attributes
    ----------
    design : StudyDesign
    x, y : ndarray of shape (k, p), (k,)
        Of the draws that lack nothing.
    share : float
        How many records each stands for.
    """

    design: StudyDesign
    x: Floats
    y: Floats
    share: float

    def point(self, beta: Floats, release: ScoreRelease) -> ScorePoint:
        """Whitening and bound C at a point."""
        plain = ScorePoint(self.design, beta, np.eye(self.design.size))
        values, vectors = np.linalg.eigh(plain.information(self.x, self.y) / max(len(self.x), 1))
        values = np.maximum(values, _FLOOR * values.mean() + 1e-9)
        point = replace(plain, whitening=(vectors * values**-0.5) @ vectors.T)
        reach = point.reach(self.x)
        bounds = np.unique(np.quantile(reach[np.isfinite(reach)], _BOUNDS)) if len(reach) else np.ones(1)
        tried = [replace(point, bound=max(float(bound), 1e-12)) for bound in bounds]
        errors = np.array([self._errors(choice, release) for choice in tried])
        relative = (errors / errors.min(axis=0)).mean(axis=1)
        return tried[int(np.flatnonzero(relative <= _SLACK * relative.min())[-1])]

    def cap(self, point: ScorePoint) -> float:
        """A cap K on a record's information."""
        norms = point.norms(self.x, self.y)
        return max(float(np.quantile(norms, _CAPPED)), 1e-12) if len(norms) else 1.0

    def _errors(self, point: ScorePoint, release: ScoreRelease) -> Floats:
        """Standard errors of the slopes that the release alone would give."""
        read = (point, release.noise_std, np.zeros(self.design.size))
        covariance = posterior([self.observation(*read, point.beta)], prior_precision(self.design))[1]
        return np.sqrt(np.diag(covariance))[self.design.family.baseline :]

    def estimate(
        self, read: Sequence[tuple[ScorePoint, float, Floats]], beta: Floats
    ) -> tuple[Floats, Floats]:
        """Coefficients and covariance, from points with their noise and scores, beginning at ``beta``."""
        prior = prior_precision(self.design)
        for _ in range(_ROUNDS):
            mean, covariance = posterior([self.observation(*each, beta) for each in read], prior)
            step = bounded_step(mean - beta)
            beta = beta + step
            if np.abs(step).max() < _CLOSE:
                break
        return beta, covariance

    def observation(self, point: ScorePoint, noise_std: float, score: Floats, truth: Floats) -> Observation:
        """What a whitened score says, near ``truth``.

        A score is linear in the coefficients only nearby, so what the draws expect at its own point, if
        ``truth`` is true, is taken off: it is then a score at ``truth``.
        """
        back = np.linalg.inv(point.whitening)
        weights, family = point.weights(self.x)[:, None], self.design.family
        eta, at = self.rows @ truth, self.rows @ point.beta
        flat = self.rows.reshape(-1, self.design.size)
        expected = self.share * flat.T @ (weights * family.shift(eta, at, self.y)).ravel()
        curved = flat * (weights * family.curvature(eta, self.y)).reshape(-1, 1)
        std = max(noise_std, _NO_NOISE) * point.bound
        return Observation(truth, back @ score - expected, self.share * curved.T @ flat, std**2 * back @ back)

    @cached_property
    def rows(self) -> Floats:
        """Rows of the draws' design, shape (k, J, d)."""
        return self.design.rows(self.x)

    def mended(self, point: ScorePoint, noisy: Floats, noise_std: float) -> tuple[StandIn, StandIn]:
        """The draws moved so that their information is that of the records, and the same for intervals.

        The predictors are mapped to the mean and covariance that the information has, as a law of weights
        ``v``, by the affine map that moves them least (optimal transport between normal laws).
        """
        back = np.linalg.inv(point.whitening)
        own = self.share * point.information(self.x, self.y)
        squared = float(((noisy - own) ** 2).sum())
        size = len(noisy)
        noise = (noise_std * point.cap) ** 2 * size * (size + 1) / 2
        kept = max(0.0, 1.0 - noise / squared) if squared else 0.0
        target = self._moments(back @ (own + kept * (noisy - own)) @ back)
        moved = self
        for _ in range(_MOVES):
            mass, mean, spread = self._moments(
                back @ (moved.share * point.information(moved.x, moved.y)) @ back
            )
            root, inverse = _roots(spread)
            stretches, axes = np.linalg.eigh(inverse @ target[2] @ inverse)
            along = (axes * np.sqrt(np.clip(stretches, *_STRETCH))) @ axes.T
            moved = replace(moved, x=target[1] + (moved.x - mean) @ (root @ along @ inverse).T)
        # the noise on v' N v is that of an entry of the diagonal, whatever the direction v
        mass, mean, spread = self._moments(back @ (moved.share * point.information(moved.x, moved.y)) @ back)
        root, inverse = _roots(spread)
        lengths = (back[:, self.design.family.baseline :] @ inverse) ** 2
        relative = noise_std * point.cap * lengths.sum(axis=0) / mass
        unsure = np.sqrt(kept) * relative + (1.0 - kept) * np.minimum(relative, _DOUBT)
        # a standard error less, of the logarithm: it is never negative
        narrow = root * np.sqrt(np.maximum(np.exp(-unsure), _LEAST)) @ inverse
        return moved, replace(moved, x=mean + (moved.x - mean) @ narrow.T)

    def _moments(self, information: Floats) -> tuple[float, Floats, Floats]:
        """Mass, mean and covariance of the predictors in the law that an information is of."""
        j = self.design.family.baseline
        mass = max(float(np.trace(information[:j, :j])), 1e-12)
        mean = information[:j, j:].sum(axis=0) / mass
        return mass, mean, information[j:, j:] / mass - np.outer(mean, mean)


def _roots(covariance: Floats) -> tuple[Floats, Floats]:
    """Square root of a covariance and its inverse."""
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 1e-6 * max(float(values.mean()), 1e-12))
    return (vectors * values**0.5) @ vectors.T, (vectors * values**-0.5) @ vectors.T
