"""Synthetic draws in the place of records: a study's expectations, and what mends them.

Whatever a study needs to know of the records on average, their information, what a score is expected to be,
how long the intervals of a bound would be, comes from draws of the released prior and is free. Their pairs of
columns are those of a tree with noise. Where they are wrong, so is the information, and intervals are too
short. So the records' information is bought, once, and compared with that of the draws, whitened and capped
alike. The *difference* is shrunk by the noise that it holds (James and Stein 1961), so that it does no harm
where noise drowns it; and for intervals a standard error of that noise is taken off besides, in every
direction.
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
#: the records' information is between these parts of the draws', in every direction
_STRETCH = (0.1, 4.0)
#: the same for intervals, for which a standard error of the noise is taken off: unsure is wide, not narrow
_LEAST_STRETCH = 0.05
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
    correction : ndarray of shape (d, d), optional
        The L for which ``L H L'`` is the records' information where H is the draws'.
    cautious : ndarray of shape (d, d), optional
        The same for intervals.
    """

    design: StudyDesign
    x: Floats
    y: Floats
    share: float
    correction: Floats | None = None
    cautious: Floats | None = None

    def correct(self, information: Floats) -> Floats:
        """An information of draws, not whitened, as the records have it."""
        if self.correction is None:
            return information
        return np.asarray(self.correction @ information @ self.correction.T)

    def point(self, beta: Floats, release: ScoreRelease) -> ScorePoint:
        """Whitening, bound C and cap K at a point."""
        plain = ScorePoint(self.design, beta, np.eye(self.design.size))
        values, vectors = np.linalg.eigh(plain.information(self.x, self.y) / max(len(self.x), 1))
        values = np.maximum(values, _FLOOR * values.mean() + 1e-9)
        point = replace(plain, whitening=(vectors * values**-0.5) @ vectors.T)
        reach = point.reach(self.x)
        bounds = np.unique(np.quantile(reach[np.isfinite(reach)], _BOUNDS)) if len(reach) else np.ones(1)
        tried = [replace(point, bound=max(float(bound), 1e-12)) for bound in bounds]
        errors = np.array([self._errors(choice, release) for choice in tried])
        relative = (errors / errors.min(axis=0)).mean(axis=1)
        point = tried[int(np.flatnonzero(relative <= _SLACK * relative.min())[-1])]
        norms = point.norms(self.x, self.y)
        return replace(point, cap=max(float(np.quantile(norms, _CAPPED)), 1e-12) if len(norms) else 1.0)

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
        rows, weights, family = self.rows, point.weights(self.x)[:, None], self.design.family
        eta, at = rows @ truth, rows @ point.beta
        flat = rows.reshape(-1, self.design.size)
        expected = self.share * flat.T @ (weights * family.shift(eta, at, self.y)).ravel()
        curved = flat * (weights * family.curvature(eta, self.y)).reshape(-1, 1)
        information = self.share * curved.T @ flat
        corrected = self.correct(information)
        # what the correction adds to the draws' information, it adds to what they expect
        expected = expected + (corrected - information) @ (truth - point.beta)
        std = max(noise_std, _NO_NOISE) * point.bound
        return Observation(truth, back @ score - expected, corrected, std**2 * back @ back)

    @cached_property
    def rows(self) -> Floats:
        """Rows of the draws' design, shape (k, J, d)."""
        return self.design.rows(self.x)

    def _information(self, point: ScorePoint) -> Floats:
        return self.share * replace(point, cap=np.inf).information(self.x, self.y)

    def corrected(self, point: ScorePoint, noisy: Floats, noise_std: float) -> StandIn:
        """The same with the records' noisy whitened information, capped, taken into account."""
        size = len(noisy)
        difference = noisy - self.share * point.information(self.x, self.y)
        squared = float((difference**2).sum())
        noise = (noise_std * point.cap) ** 2 * size * (size + 1) / 2
        kept = max(0.0, 1.0 - noise / squared) if squared else 0.0
        values, vectors = np.linalg.eigh(self._information(point))
        values = np.maximum(values, _FLOOR * values.mean() + 1e-9)
        root, inverse = (vectors * values**0.5) @ vectors.T, (vectors * values**-0.5) @ vectors.T
        stretches, axes = np.linalg.eigh(np.eye(size) + kept * inverse @ difference @ inverse)
        # the noise on v' N v is that of an entry on the diagonal, whatever the direction v
        unsure = np.sqrt(kept) * noise_std * point.cap * np.einsum("ij,ij->j", axes, inverse @ inverse @ axes)

        def map_of(stretches: Floats) -> Floats:
            """The L for which ``L H L'`` has these stretches, not whitened."""
            whitened = root @ (axes * np.sqrt(stretches)) @ axes.T @ inverse
            return np.linalg.solve(point.whitening, whitened @ point.whitening)

        likely = np.clip(stretches, *_STRETCH)
        # a standard error less, of the logarithm: it is never negative
        least = np.maximum(likely * np.exp(-unsure / likely), _LEAST_STRETCH)
        return replace(self, correction=map_of(likely), cautious=map_of(least))
