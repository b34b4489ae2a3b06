"""A declared study: its regression's coefficients with a covariance, from three bounded sums.

Everything but the sums is free: the fit to synthetic draws begins it, and draws stand for the records in
every expectation. Read are

1. the score at the fit to the draws, for a step;
2. the information at the point that this leads to. The draws tell it already, but their pairs of columns
   are those of a tree with noise, and where they are wrong intervals are too short (a trial measured .85 for
   .95). What is bought is the *difference* between records and draws, whitened and capped alike, and shrunk
   by the noise that it holds (James and Stein 1961), so that it does no harm where noise drowns it;
3. the score at that point.

`dpsynth.regression.newton` makes coefficients of the two scores, each compared with what the draws expect. Their sampling variance is H with weights
w^2 in place of w: taken as H it is a little conservative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.accounting.ledger.entries import Stage
from dpsynth.accounting.ledger.ledger import Ledger
from dpsynth.regression.design import StudyDesign
from dpsynth.regression.estimates import Estimates
from dpsynth.regression.newton import Observation, bounded_step, mode, posterior, prior_precision
from dpsynth.regression.study import Study
from dpsynth.releases.records import Records
from dpsynth.releases.score import InformationRelease, ScorePoint, ScoreRelease
from dpsynth.table.schema import Schema

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

Floats = NDArray[np.float64]

#: parts of a study's mu^2: first score, information, second score
SPLIT = (0.4, 0.2, 0.4)
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
_LEAST_STRETCH = (1e-3, 4.0)
#: Newton's steps from scores to coefficients, and when they are near enough
_ROUNDS, _CLOSE = 20, 1e-6
#: standard deviation of the slopes' prior in reported intervals: where nothing is known of a slope, they say so
_WEAK = 100.0
#: noise of a release without any, over its bound, so that its inverse exists
_NO_NOISE = 1e-6


@dataclass(frozen=True, eq=False)
class FittedStudy:
    """A released study.

    Attributes
    ----------
    declared : Study
    design : StudyDesign
    beta : ndarray of shape (d,)
        Of standardised terms, intercepts first.
    covariance : ndarray of shape (d, d)
    estimates : Estimates
    """

    declared: Study
    design: StudyDesign
    beta: Floats
    covariance: Floats
    estimates: Estimates

    def to_dict(self) -> dict[str, Any]:
        """JSON-able record; the schema is known from elsewhere."""
        return {
            "declared": self.declared.model_dump(mode="json"),
            "design": self.design.to_dict(),
            "beta": self.beta.tolist(),
            "covariance": self.covariance.tolist(),
            "estimates": self.estimates.to_dict(),
        }

    @classmethod
    def from_dict(cls, schema: Schema, record: dict[str, Any]) -> FittedStudy:
        """Inverse of `to_dict`."""
        declared = Study.read(record["declared"])
        return cls(
            declared,
            StudyDesign.from_dict(schema, declared.effects(schema), record["design"]),
            np.array(record["beta"], dtype=np.float64),
            np.array(record["covariance"], dtype=np.float64),
            Estimates.from_dict(record["estimates"]),
        )


@dataclass(frozen=True)
class StudyReleases:
    """The three readings of a declared study, their noise fixed together and beforehand.

    Parameters
    ----------
    first : ScoreRelease
    information : InformationRelease
    second : ScoreRelease
    multiplier : float or None
        Of one Gaussian mechanism that costs what they do together.
    """

    first: ScoreRelease
    information: InformationRelease
    second: ScoreRelease
    multiplier: float | None

    @classmethod
    def plan(cls, study: str, *, noise_multiplier: float | None, stage: Stage | None = None) -> StudyReleases:
        """All three; ``noise_multiplier`` is that of one Gaussian mechanism that costs what they do.

        None: exact, **not private**.
        """
        each = [None if noise_multiplier is None else noise_multiplier / np.sqrt(part) for part in SPLIT]
        return cls(
            ScoreRelease(study=study, noise_multiplier=each[0], stage=stage),
            InformationRelease(study=study, noise_multiplier=each[1], stage=stage),
            ScoreRelease(study=study, noise_multiplier=each[2], stage=stage),
            noise_multiplier,
        )

    @property
    def events(self) -> list[DpEvent]:
        """What they cost."""
        return [release.event for release in (self.first, self.information, self.second)]

    def run(
        self,
        ledger: Ledger,
        records: Records,
        declared: Study,
        schema: Schema,
        draws: pd.DataFrame,
        n: float,
        rng: np.random.Generator,
    ) -> FittedStudy:
        """Read the records three times, and estimate.

        Parameters
        ----------
        ledger : Ledger
        records : Records
            Conformed to the schema.
        declared : Study
        schema : Schema
        draws : DataFrame of at least one record
            Released synthetic records.
        n : float
            Public or privately counted number of records.
        rng : numpy.random.Generator
            Of the noise; secret.
        """
        design = StudyDesign.of(schema, declared.effects(schema), draws, declared.intervals)
        x, y = design.read(draws)
        share = n / len(draws)
        beta, design = mode(design, x, y, share)
        known = _Known(design, x, y, share)

        first = known.point(beta, self.first)
        read = [(first, self.first.noise_std, ledger.run(self.first.at(first), records, rng))]
        beta, _ = known.estimate(read, beta)

        second = known.point(beta, self.second)
        release = self.information.at(second)
        known = known.corrected(second, ledger.run(release, records, rng), release.noise_std)
        read.append((second, self.second.noise_std, ledger.run(self.second.at(second), records, rng)))
        mean, _ = known.estimate(read, beta)
        cautious = replace(known, correction=known.cautious)
        told = [cautious.observation(*each, mean) for each in read]
        covariance = posterior(told, prior_precision(design))[1]
        weak = prior_precision(design, _WEAK)
        bare = known.correct(share * ScorePoint(design, mean, np.eye(design.size)).information(x, y))
        estimates = estimates_of(
            self.first.study, design, mean, posterior(told, weak)[1], np.linalg.inv(bare + weak)
        )
        return FittedStudy(declared, design, mean, covariance, estimates)


@dataclass(frozen=True, eq=False)
class _Known:
    """What is known of the records' information beforehand: draws, and a correction once it is bought.

    ``x`` and ``y`` are of the draws that lack nothing, ``share`` the number of records that each stands for.
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

    def corrected(self, point: ScorePoint, noisy: Floats, noise_std: float) -> _Known:
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

        likely, least = np.clip(stretches, *_STRETCH), np.clip(stretches - unsure, *_LEAST_STRETCH)
        return replace(self, correction=map_of(likely), cautious=map_of(least))


def estimates_of(
    study: str, design: StudyDesign, beta: Floats, covariance: Floats, bare: Floats
) -> Estimates:
    """The study in the units in which its terms are reported; ``bare`` is the covariance without noise."""
    values, reported = design.reported(beta, covariance)
    widening = np.sqrt(np.diag(reported) / np.diag(design.reported(beta, bare)[1]))
    return Estimates(
        study,
        design.model.kind,
        design.model.formula(design.schema),
        design.model.outcome,
        tuple(term.name for term in design.terms),
        values,
        reported,
        float(np.median(widening)),
    )
