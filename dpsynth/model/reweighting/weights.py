"""Weights of a base model's samples: how likely each is, by group and by random Fourier features.

A sample x has the weight w_g(x) of the group that it lies in, times exp(f(x)) over its mean. It also has a
factor for each column's bin and one for its number of missing values. These keep single-column counts and the
distribution of missing values as they were released. Sweeps draw with these factors already, where there
are sweeps. Samples are chosen among more of them than are needed, at most `most` times as many.

f(x) = T'(phi(x) - mu), with phi the features and mu their mean over the samples. Weights of samples count
everywhere. If the entries of T have variance t, f is a Gaussian process (Rasmussen and Williams 2006, chapter
2). The gap g between released means and mu then has the covariance

    t C^2 + s^2 + C (1 / n + 1 / m),

with C that of the features under the samples, s the noise of a mean and m the effective number of samples.
All terms have the eigenvectors of C. With eigenvalues c, the likelihood of g is one of independent numbers,
and t maximises it (empirical Bayes). If it is no more than noise, f is 0. All is post-processing, free of
cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.files.codec import record
from dpsynth.releases.features import FourierFeatures
from dpsynth.releases.neighbour_histogram import Groups

Floats = NDArray[np.float64]


@record
@dataclass(frozen=True, eq=False)
class Weighting:
    """Weights of the base model's samples.

    ``weights``, shape (groups.size,): not negative.
    ``columns``, shapes (bins,): factor of each bin.
    ``missing``, shape (panel + 1,): factor of the number of missing values.
    ``swept``, shape (panel + 1,): numbers of missing values of samples that were drawn with the factors of
        bins already.
    ``most``: greatest weight that counts, at least 1: so many samples are made for each one that is kept.
    ``noise_std``: of the nearest-neighbour histogram that it was fitted to.
    ``fourier``: None where they were nothing but noise.
    """

    groups: Groups
    weights: Floats
    columns: tuple[Floats, ...]
    missing: Floats
    swept: NDArray[np.bool_]
    most: float
    noise_std: float
    fourier: FourierReweighting | None = None

    def of(self, draws: NDArray[np.int64], missing: NDArray[np.int64]) -> Floats:
        """Weight of each sample, shape (m,), from 0 to ``most``.

        ``draws``, shape (m, columns): Bins.
        ``missing``, shape (m,): number of missing values of each among the panel's columns.
        """
        label = self.groups.nearest(draws)
        weights = self.weights[label] * self.missing[missing]
        rows = np.flatnonzero(~self.swept[missing])
        for j, factors in enumerate(self.columns):
            weights[rows] *= factors[draws[rows, j]]
        if self.fourier is not None:
            weights *= self.fourier.of(draws)
        return np.minimum(weights, self.most)


#: Least gain in log likelihood for which there is a reweighting.
_LEAST_GAIN = 2.0
#: Logarithms of the variance t, among which the likeliest is found.
_VARIANCES = (-25.0, 25.0)
#: Eigenvalues are no smaller, compared with the greatest.
_SMALLEST = 1e-7
#: Least variance in any direction for which draws differ.
_LEAST_VARIANCE = 1e-6
#: Steps, and the gradient, in standard deviations of an entry, at which they end.
_ITERATIONS, _GRADIENT = 100, 1e-2
#: No draw counts for more times the mean, or for less than one part in as much.
_MOST = 50.0


@record
@dataclass(frozen=True, eq=False)
class FourierReweighting:
    """The logarithm of each sample's weight, as a sum of sines and cosines.

    ``coefficients``, shape (features.size,): T, cosines first.
    ``offset``: T'mu, and the logarithm of the mean of exp(f).
    """

    features: FourierFeatures
    coefficients: NDArray[np.float32]
    offset: float

    def of(self, draws: NDArray[np.int64]) -> Floats:
        """Weight of each sample, shape (m,): from 1/50 to 50, and 1 on average where it was fitted."""
        cosine, sine = np.split(self.coefficients / np.float32(np.sqrt(self.features.size // 2)), 2)
        # a cos(x) + b sin(x) is one shifted cosine: half of the cosines
        height, lag = np.hypot(cosine, sine), np.arctan2(sine, cosine)
        parts = [np.cos(angles - lag) @ height for angles in self.features.angles(draws)]
        reweighting = np.concatenate([*parts, np.zeros(0)]) - self.offset
        return np.exp(np.clip(reweighting, -np.log(_MOST), np.log(_MOST)))


def fourier_reweighting(
    features: FourierFeatures,
    mean: Floats,
    noise_std: float,
    n: float,
    draws: NDArray[np.int64],
    weights: Floats,
) -> FourierReweighting | None:
    """The reweighting towards released means, or None where they are nothing but noise.

    ``mean``, shape (features.size,): released.
    ``noise_std``: of an entry of ``mean``.
    ``draws``, shape (m, columns).
    ``weights``, shape (m,): weights that samples have already.
    """
    from scipy.optimize import minimize
    from scipy.special import logsumexp

    weights = weights / weights.sum()
    spread = 1.0 / n + float(weights @ weights)
    values = features.values(draws)
    light = weights.astype(np.float32)
    center = light @ values
    values -= center
    covariance = ((values * light[:, None]).T @ values).astype(np.float64)
    eigenvalues, basis = np.linalg.eigh(covariance)
    if eigenvalues[-1] < _LEAST_VARIANCE:
        return None
    eigenvalues = np.maximum(eigenvalues, _SMALLEST * eigenvalues[-1])
    gap = np.asarray(basis.T @ (mean - center), dtype=np.float64)
    known = noise_std**2 + eigenvalues * spread
    variance = _likeliest(gap, eigenvalues, known)
    if variance is None:
        return None
    ridge = known / eigenvalues / variance
    # in units of what is known of them: the curvature at 0 is 1 in all directions
    units = 1.0 / np.sqrt(n * (eigenvalues + ridge))
    turned = values @ (basis * units).astype(np.float32)

    def loss(reweighting: Floats) -> tuple[float, Floats]:
        exponent = turned @ reweighting.astype(np.float32)
        most = exponent.max()
        share = light * np.exp(exponent - most)
        total = float(share.sum(dtype=np.float64))
        found = (share @ turned).astype(np.float64) / total
        pull, back = units * gap, units**2 * ridge * reweighting
        value = np.log(total) + most - reweighting @ pull + reweighting @ back / 2
        return float(n * value), n * (found - pull + back)

    options = {"maxiter": _ITERATIONS, "gtol": _GRADIENT}
    reweighting = minimize(loss, np.zeros(len(gap)), jac=True, method="L-BFGS-B", options=options).x
    coefficients = (basis @ (units * reweighting)).astype(np.float32)
    mean_of = float(logsumexp(values @ coefficients, b=light))
    return FourierReweighting(features, coefficients, float(coefficients @ center) + mean_of)


def _likeliest(gap: Floats, eigenvalues: Floats, known: Floats) -> float | None:
    """The variance t of the reweighting's entries, or None where there need be none."""
    from scipy.optimize import minimize_scalar

    def surprise(log_variance: float) -> float:
        of = np.exp(log_variance) * eigenvalues**2 + known
        return float(np.sum(gap**2 / of + np.log(of)) / 2)

    nothing = float(np.sum(gap**2 / known + np.log(known)) / 2)
    best = minimize_scalar(surprise, bounds=_VARIANCES, method="bounded")
    return float(np.exp(best.x)) if best.fun < nothing - _LEAST_GAIN else None
