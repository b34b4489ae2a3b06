"""Samples in the place of records: a study's expectations, and the coefficients that a score implies.

A study averages over the records: their information, the expected score, the length of a bound's intervals.
These averages are computed from samples of the released base model, and are free. If the samples are wrong,
so is every expectation: `dpsynth.model.study_samples.calibration` corrects them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpsynth.releases.score import ScorePoint, ScoreRelease
from dpsynth.studies.design import StudyDesign
from dpsynth.studies.newton import Observation, bounded_step, posterior, prior_precision

Floats = NDArray[np.float64]

#: intervals may be longer than the shortest by this, if more records keep a weight of 1 for it: an unweighted
#: fit is what the study is compared with where the model does not quite hold
_SLACK = 1.1
#: shares of the draws whose reach a bound C is tried at
_BOUNDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.995, 0.999, 1.0)
#: share of the draws whose information is below the cap K
_CAPPED = 0.95
#: whitening lifts no eigenvalue below this part of their mean: near it, terms are collinear
_FLOOR = 0.01
#: Newton's steps from scores to coefficients, and when they are near enough; a hazard of a rare category that
#: is overshot comes back by 1 a step
_ROUNDS, _CLOSE = 100, 1e-6
#: noise of a release without any, over its bound, so that its inverse exists
NO_NOISE = 1e-6


@dataclass(frozen=True, eq=False)
class StandIn:
    """Samples that stand for the records.

    ``x``, ``y``, shape (k, p), (k,): of the samples without missing values.
    ``share``: how many records each stands for.
    ``ratio``, shape (d, d): sampling variance of a score over its information, None for 1. See
        `dpsynth.model.study_samples.clusters`.
    """

    design: StudyDesign
    x: Floats
    y: Floats
    share: float
    ratio: Floats | None = None

    def point(self, beta: Floats, release: ScoreRelease) -> ScorePoint:
        """Whitening and bound C at a point."""
        plain = ScorePoint(self.design, beta, np.eye(self.design.size))
        values, vectors = np.linalg.eigh(plain.information(self.x, self.y) / max(len(self.x), 1))
        values = np.maximum(values, _FLOOR * values.mean() + 1e-9)
        point = replace(plain, whitening=(vectors * values**-0.5) @ vectors.T)
        reach = point.reach(self.x)
        bounds = np.unique(np.quantile(reach[np.isfinite(reach)], _BOUNDS)) if len(reach) else np.ones(1)
        tried = [replace(point, bound=max(float(bound), 1e-12)) for bound in bounds]
        errors = np.array([self._errors(choice, release, reach) for choice in tried])
        relative = (errors / errors.min(axis=0)).mean(axis=1)
        return tried[int(np.flatnonzero(relative <= _SLACK * relative.min())[-1])]

    def cap(self, point: ScorePoint) -> float:
        """A cap K on a record's information."""
        norms = point.norms(self.x, self.y)
        return max(float(np.quantile(norms, _CAPPED)), 1e-12) if len(norms) else 1.0

    def _errors(self, point: ScorePoint, release: ScoreRelease, reach: Floats) -> Floats:
        """Standard errors of the reported coefficients that the release alone would give."""
        read = (point, release.noise_std, np.zeros(self.design.size))
        covariance = posterior([self.observation(*read, point.beta, reach)], self.prior)[1]
        return np.sqrt(np.diag(covariance))[self.design.reports]

    def estimate(
        self, read: Sequence[tuple[ScorePoint, float, Floats]], beta: Floats
    ) -> tuple[Floats, Floats]:
        """Coefficients and covariance, from points with their noise and scores, beginning at ``beta``."""
        reaches = [each[0].reach(self.x) for each in read]
        for _ in range(_ROUNDS):
            observations = [
                self.observation(*each, beta, reach) for each, reach in zip(read, reaches, strict=True)
            ]
            mean, covariance = posterior(observations, self.prior)
            step = bounded_step(mean - beta)
            beta = beta + step
            if np.abs(step).max() < _CLOSE:
                break
        return beta, covariance

    def observation(
        self, point: ScorePoint, noise_std: float, score: Floats, truth: Floats, reach: Floats | None = None
    ) -> Observation:
        """The observation that a whitened score makes, near ``truth``.

        A score is linear in the coefficients only nearby. So its expectation over the samples at its own
        point, if ``truth`` is true, is subtracted. It is then a score at ``truth``. ``reach`` is that of the
        samples at the point, if it is known.
        """
        back = np.linalg.inv(point.whitening)
        weights, family = point.weights(self.x, reach)[:, None], self.design.family
        eta, at = self.rows @ truth, self.rows @ point.beta
        flat = self.rows.reshape(-1, self.design.size)
        expected = self.share * flat.T @ (weights * family.shift(eta, at, self.y)).ravel()
        curved = flat * (weights * family.curvature(eta, self.y)).reshape(-1, 1)
        information = self.share * curved.T @ flat
        std = max(noise_std, NO_NOISE) * point.bound
        seen = truth, back @ score - expected, information, std**2 * back @ back
        return Observation(*seen, self.sampling(information))

    def sampling(self, information: Floats) -> Floats:
        """Sampling variance of a score with this information, both (d, d)."""
        if self.ratio is None:
            return information
        root, _ = roots(information)
        return np.asarray(root @ self.ratio @ root)

    def precision(self, information: Floats) -> Floats:
        """Precision of coefficients from records of this information without noise, both (d, d)."""
        if self.ratio is None:
            return information + self.prior
        root, _ = roots(information)
        return np.asarray(root @ np.linalg.inv(self.ratio) @ root + self.prior)

    @cached_property
    def rows(self) -> Floats:
        """Rows of the draws' design, shape (k, J, d)."""
        return self.design.rows(self.x)

    @cached_property
    def prior(self) -> Floats:
        """Precision of the coefficients beforehand, shape (d, d)."""
        return prior_precision(self.design, self.x)

    def information(self, point: ScorePoint) -> Floats:
        """The information of the draws at a point, as that of the records is read there, shape (d, d)."""
        return self.share * point.information(self.x, self.y)

    def moments(self, point: ScorePoint, whitened: Floats) -> tuple[float, Floats, Floats]:
        """Mass, mean and covariance of the predictors in the distribution that an information is of."""
        j, back = self.design.family.baseline, np.linalg.inv(point.whitening)
        information = back @ whitened @ back
        mass = max(float(np.trace(information[:j, :j])), 1e-12)
        mean = information[:j, j:].sum(axis=0) / mass
        return mass, mean, information[j:, j:] / mass - np.outer(mean, mean)


def roots(matrix: Floats) -> tuple[Floats, Floats]:
    """Square root of a symmetric matrix and its inverse. Eigenvalues of 0 or less are raised a little."""
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, 1e-6 * max(float(values.sum()) / max(len(values), 1), 1e-12))
    return (vectors * values**0.5) @ vectors.T, (vectors * values**-0.5) @ vectors.T
