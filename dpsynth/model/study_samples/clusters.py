"""Rows of synthetic patients in a regression of patients with several rows.

A patient's score is the mean over the rows (`dpsynth.releases.score`). A row drawn at random from each
synthetic patient has the same expectation. So one row of each patient stands for all in every expectation.

The variance of a patient's mean score is less than that of a row's score, unless the rows of a patient are
alike. Liang and Zeger (1986), "Longitudinal data analysis using generalized linear models", Biometrika 73,
take the squares of the patients' own scores. Synthetic patients give these squares here, at the synthetic
patients' own coefficients. Their ratio to the information of a row is kept. It is a matrix R in coordinates
where that information is the identity. A score of information H then has variance ``H^(1/2) R H^(1/2)``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.model.study_samples.expectations import roots
from dpsynth.releases.score import ScorePoint
from dpsynth.studies.design import StudyDesign, shares

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Clusters:
    """Predictors ``x`` (k, p), outcomes ``y`` (k,) and patients' numbers (k,) of rows that lack nothing."""

    x: Floats
    y: Floats
    patient: NDArray[np.int64]

    def one_each(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Position of a random row of each patient."""
        order = rng.permutation(len(self.patient))
        return order[np.unique(self.patient[order], return_index=True)[1]]

    def ratio(self, design: StudyDesign, beta: Floats, kept: NDArray[np.bool_], most: int) -> Floats:
        """R, shape (d, d), from the rows that are ``kept`` (k,).

        No direction has less than 1 / ``most``, that of independent rows of a patient with as many.
        """
        x, y, patient = self.x[kept], self.y[kept], self.patient[kept]
        point, weight = ScorePoint(design, beta, np.eye(design.size)), shares(patient)
        means = np.zeros((patient.max(initial=-1) + 1, design.size))
        np.add.at(means, patient, point.scores(x, y) * weight[:, None])
        inverse = roots(point.information(x, y, weight))[1]
        values, vectors = np.linalg.eigh(inverse @ means.T @ means @ inverse)
        return np.asarray((vectors * np.maximum(values, 1.0 / most)) @ vectors.T)
