"""Synthetic draws in the place of records: a study's expectations, and what mends them.

Whatever a study needs to know of the records on average, their information, what a score is expected to be,
how long the intervals of a bound would be, comes from draws of the released prior and is free. Their pairs of
columns are those of a tree with noise. Where they are wrong, so is every expectation: a trial with correlated
predictors covered .5 for .95. So the records' information is bought, once and first, and the draws'
predictors are mapped, by an affine map, to the mean and covariance that it tells, as far as its noise lets
tell it from what the draws had (`dpsynth.releases.comparison`); for intervals, to those of its lower end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpsynth.checks import together
from dpsynth.regression.design import StudyDesign
from dpsynth.regression.newton import (
    UNKNOWN_SLOPE,
    Observation,
    bounded_step,
    posterior,
    prior_precision,
)
from dpsynth.releases.comparison import compared, roots
from dpsynth.releases.raking import Sums, resampled
from dpsynth.releases.score import ScorePoint, ScoreRelease, triangle

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
#: moves until the draws' information is the records'
_MOVES = 4
#: a term takes part in a combination if its coefficient is more than this of the largest
_TAKES_PART = 1 / 3
#: Newton's steps from scores to coefficients, and when they are near enough; a hazard of a rare category that
#: is overshot comes back by 1 a step
_ROUNDS, _CLOSE = 100, 1e-6
#: noise of a release without any, over its bound, so that its inverse exists
_NO_NOISE = 1e-6


@dataclass(frozen=True, eq=False)
class StandIn:
    """Synthetic draws that stand for the records.

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
        errors = np.array([self._errors(choice, release, reach) for choice in tried])
        relative = (errors / errors.min(axis=0)).mean(axis=1)
        return tried[int(np.flatnonzero(relative <= _SLACK * relative.min())[-1])]

    def cap(self, point: ScorePoint) -> float:
        """A cap K on a record's information."""
        norms = point.norms(self.x, self.y)
        return max(float(np.quantile(norms, _CAPPED)), 1e-12) if len(norms) else 1.0

    def _errors(self, point: ScorePoint, release: ScoreRelease, reach: Floats) -> Floats:
        """Standard errors of the slopes that the release alone would give."""
        read = (point, release.noise_std, np.zeros(self.design.size))
        covariance = posterior([self.observation(*read, point.beta, reach)], self.prior)[1]
        return np.sqrt(np.diag(covariance))[self.design.family.baseline :]

    def estimate(
        self, read: Sequence[tuple[ScorePoint, float, Floats]], beta: Floats
    ) -> tuple[Floats, Floats]:
        """Coefficients and covariance, from points with their noise and scores, beginning at ``beta``."""
        reaches = [each[0].reach(self.x) for each in read]
        for _ in range(_ROUNDS):
            told = [self.observation(*each, beta, reach) for each, reach in zip(read, reaches, strict=True)]
            mean, covariance = posterior(told, self.prior)
            step = bounded_step(mean - beta)
            beta = beta + step
            if np.abs(step).max() < _CLOSE:
                break
        return beta, covariance

    def observation(
        self,
        point: ScorePoint,
        noise_std: float,
        score: Floats,
        truth: Floats,
        reach: Floats | None = None,
    ) -> Observation:
        """What a whitened score says, near ``truth``.

        A score is linear in the coefficients only nearby, so what the draws expect at its own point, if
        ``truth`` is true, is taken off: it is then a score at ``truth``. ``reach`` is that of the draws at
        the point, if it is known.
        """
        back = np.linalg.inv(point.whitening)
        weights, family = point.weights(self.x, reach)[:, None], self.design.family
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

    @cached_property
    def prior(self) -> Floats:
        """Precision of the coefficients' prior, shape (d, d)."""
        return prior_precision(self.design, self.x)

    def mended(self, point: ScorePoint, noisy: Floats, noise_std: float) -> Mended:
        """The draws moved so that their information is that of the records, and the same for intervals.

        The predictors are mapped to the mean and covariance that the information has, as a law of weights
        ``v``.
        """
        back = np.linalg.inv(point.whitening)
        tilt = self._tilt(point, noisy, noise_std * point.cap)
        moved = self.reweighted(tilt)
        mending = Mending(tilt, np.eye(len(tilt) - 1), np.zeros(len(tilt) - 1))
        free = replace(point, cap=np.inf)
        own = moved.share * point.information(moved.x, moved.y)
        found = compared(own, noisy, noise_std * point.cap)
        mass, mean, wanted = self._moments(back @ found.estimate @ back)
        ratio = _transport(own, found.estimate)
        most = ratio @ (moved.share * free.information(moved.x, moved.y)) @ ratio.T
        for _ in range(_MOVES):
            moved, mending = moved._moved(mending, back, moved.share * point.information(moved.x, moved.y), found.estimate)
            claimed = moved.share * free.information(moved.x, moved.y)
            moved, mending = moved._moved(mending, back, claimed, _at_most(claimed, most))
        least, _, narrow = self._moments(back @ found.lower @ back)
        # an affine map changes no mass: what is less of it is less of the covariance
        cautious = replace(moved, x=mean + (moved.x - mean) @ _transport(wanted, narrow * least / mass).T)
        got = moved.share * point.information(moved.x, moved.y)
        _, i = roots(found.estimate)
        import os
        if os.environ.get("MEND"):
            _, j = roots(most)
            print("tilt", np.round(tilt, 2), "got/wanted", np.round(np.linalg.eigvalsh(i @ got @ i), 2), "uncapped/most", np.round(np.linalg.eigvalsh(j@(moved.share * free.information(moved.x, moved.y))@j), 2), "stretch", np.round(np.linalg.svd(mending.matrix)[1], 2))
        hidden = np.abs(point.whitening @ found.hidden)[self.design.family.baseline :]
        terms = (hidden > _TAKES_PART * hidden.max(axis=0)).any(axis=1)
        names = tuple(term.name for term, part in zip(self.design.terms, terms, strict=True) if part)
        return Mended(moved, cautious, names, found.blind, mending)

    def _tilt(self, point: ScorePoint, noisy: Floats, noise_std: float) -> Floats:
        """How the draws are weighted, for the counts of their terms of two values, shape (1 + p,).

        The information tells a count twice, as a sum and as a sum of squares: those of a rare value are the
        greater, and have the same noise.
        """
        j, every = self.design.family.baseline, np.eye(self.design.size)
        two = np.array([term.two_valued for term in self.design.terms], dtype=bool)
        intercepts = every[:j].sum(axis=0)
        of = [np.diag(intercepts)]
        of += [(np.outer(intercepts, e) + np.outer(e, intercepts)) / 2 for e in every[j:][two]]
        of += [np.outer(e, e) for e in every[j:][two]]
        back = np.linalg.inv(point.whitening)
        flat = np.array([triangle(back @ a @ back) for a in of])
        x = self.x[:, two]
        sums = Sums(
            np.column_stack([np.ones(len(x)), x, x**2]),
            self.share * point.curvatures(self.x, self.y)[1].sum(axis=1),
            flat @ triangle(noisy),
            max(noise_std, _NO_NOISE * point.cap) ** 2 * flat @ flat.T,
        )
        tilt = np.zeros(1 + len(two))
        tilt[np.r_[True, two]] = sums.tilt(np.r_[1.0, self.design.scale[two]])
        return tilt

    def reweighted(self, tilt: Floats) -> StandIn:
        """The draws, reweighted."""
        weights = np.exp(tilt[0] + self.x @ tilt[1:])
        kept = resampled(weights)
        return replace(self, x=self.x[kept], y=self.y[kept], share=self.share * float(weights.mean()))

    def _moved(self, mending, back, information, wanted):
        _, centre, spread = self._moments(back @ information @ back)
        _, mean, goal = self._moments(back @ wanted @ back)
        transport = _transport(spread, goal).T
        return replace(self, x=mean + (self.x - centre) @ transport), replace(
            mending, matrix=mending.matrix @ transport, shift=mean + (mending.shift - centre) @ transport
        )

    def _moments(self, information: Floats) -> tuple[float, Floats, Floats]:
        """Mass, mean and covariance of the predictors in the law that an information is of."""
        j = self.design.family.baseline
        mass = max(float(np.trace(information[:j, :j])), 1e-12)
        mean = information[:j, j:].sum(axis=0) / mass
        return mass, mean, information[j:, j:] / mass - np.outer(mean, mean)


@dataclass(frozen=True, eq=False)
class Mending:
    """Predictors ``x`` of shape (k, p), weighted by ``exp(tilt' (1, x))``, to ``shift + x @ matrix``.

    Attributes
    ----------
    tilt : ndarray of shape (1 + p,)
    matrix : ndarray of shape (p, p)
    shift : ndarray of shape (p,)
    """

    tilt: Floats
    matrix: Floats
    shift: Floats

    def __call__(self, x: Floats) -> Floats:
        """As many predictors, mended."""
        kept = resampled(np.exp(x @ self.tilt[1:]))
        return np.asarray(self.shift + x[kept] @ self.matrix)


@dataclass(frozen=True, eq=False)
class Mended:
    """Draws that were compared with the records.

    Attributes
    ----------
    stand_in : StandIn
    cautious : StandIn
        The same, for intervals.
    hidden : tuple of str
        Terms of which the noise hides how much the records know.
    blind : bool
        Whether noise hides if there are any.
    mending : AffineMap
        What was done to the predictors of ``stand_in``.
    """

    stand_in: StandIn
    cautious: StandIn
    hidden: tuple[str, ...]
    blind: bool
    mending: Mending

    def opened(self, covariance: Floats) -> Floats:
        """A covariance of the coefficients, shape (d, d), that claims nothing of the hidden terms."""
        design = self.stand_in.design
        wide = np.zeros(design.size)
        wide[design.family.baseline :] = [term.name in self.hidden for term in design.terms]
        return covariance + np.diag(wide * UNKNOWN_SLOPE**2)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of the intervals should know."""
        said = []
        if not len(self.stand_in.x):
            said.append(
                "No synthetic record has a value in all of the study's columns: nothing was learned, and "
                "these numbers are what was supposed beforehand."
            )
        if len(self.hidden) == 1:
            said.append(
                f"Noise hides how much the records know of {self.hidden[0]}, which may hardly vary beside "
                "the others: nothing is claimed of it."
            )
        elif self.hidden:
            said.append(
                f"Noise hides how much the records know of {together(self.hidden)}: they may go together too "
                "closely to be told apart with this budget, and nothing is claimed of them."
            )
        if self.blind:
            said.append(
                "Noise hides whether predictors go together closely: where some do, these intervals are too "
                "short."
            )
        return tuple(said)


def _transport(spread: Floats, wanted: Floats) -> Floats:
    """The map that takes one covariance to another and moves normal draws least (optimal transport)."""
    root, inverse = roots(spread)
    squares, axes = np.linalg.eigh(root @ wanted @ root)
    return np.asarray(inverse @ (axes * np.sqrt(np.maximum(squares, 0.0))) @ axes.T @ inverse)


def _at_most(matrix: Floats, most: Floats) -> Floats:
    """A matrix of which no direction has more than ``most``."""
    root, inverse = roots(most)
    values, axes = np.linalg.eigh(inverse @ matrix @ inverse)
    back = root @ axes
    return np.asarray((back * np.minimum(values, 1.0)) @ back.T)
