"""Values within their bins: ordered columns are coupled by a Gaussian copula.

Bins of the base model are coarse. Two columns that are nearly functions of each other, such as the radius and
the area of a nucleus, would be independent within them. So each record has a normal score in each ordered
column, within the range that stands for its bin. The scores have the correlation that the bins have by the
model (the polychoric correlation, Olsson 1979). Mehler's formula gives the mean product of two scored bins as
a power series in it: ``E[s_i s_j] = sum over k of rho^k a_ik a_jk``, with a_ik the Hermite coefficients of
column i's scores. Strong correlations are then found by likelihood, with a part of the records independent:
noise in a table leaves some far from the others. The order of the normal scores is the order of the values.
Post-processing, free of cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, owens_t

from dpsynth.files.codec import record
from dpsynth.model.blocks import in_blocks
from dpsynth.releases.bins import Binning

Floats = NDArray[np.float64]

#: Terms of the power series.
_TERMS = 60
#: Largest correlation, and least eigenvalue of the correlations.
_LARGEST, _LEAST = 0.998, 2e-3
#: A column with no correlation above this, and above so many standard deviations of noise, keeps a random
#: order within its bins.
_WEAK, _NOISE = 0.3, 3.0
#: Correlations above this are found anew by likelihood, among so many.
_STRONG, _TRIED = 0.6, 25
#: Parts of the records that may be independent.
_PARTS = (0.0, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3)
#: What a part of independent records must gain in mean log likelihood.
_RELUCTANCE = 0.2
#: Passes over the columns, after the first, that give a record its scores.
_SWEEPS = 4
#: Ends of a normal distribution.
_FAR = 8.0
#: Records whose scores are drawn together, so that their arrays stay in cache.
_BLOCK = 8192


@record
@dataclass(frozen=True, eq=False)
class Copula:
    """A Gaussian copula of ordered columns.

    ``columns``: those that take part.
    ``correlation``, shape (columns, columns).
    ``ends``, shapes (bins + 1,): of the ranges of normal scores that stand for the bins in their order.
    """

    columns: tuple[int, ...]
    correlation: Floats
    ends: tuple[Floats, ...]

    @classmethod
    def of(
        cls,
        binnings: Sequence[Binning],
        present: Sequence[int],
        draws: NDArray[np.int64],
        noise: float = 0.0,
    ) -> Copula:
        """The copula with the correlations of the bins of ``draws``, shape (n, columns of the table).

        ``present``: number of bins of each column that lie in their order, 0 for a column without order.
        ``noise``: standard deviation of the noise in a share of the tables, by which weak correlations are
            judged.
        """
        columns = [j for j, size in enumerate(present) if size > 1]
        if len(columns) < 2:
            return cls((), np.zeros((0, 0)), ())
        bins = [np.minimum(draws[:, j], present[j]) for j in columns]
        ends = [_ends(binnings[j].probabilities[: present[j]]) for j in columns]
        correlation = _correlations(bins, ends)
        size = np.sqrt([len(end) - 1.0 for end in ends])
        told = np.abs(correlation) > np.maximum(_WEAK, _NOISE * noise * np.outer(size, size))
        np.fill_diagonal(told, False)
        kept = np.flatnonzero(told.any(axis=1))
        own = _definite(correlation[np.ix_(kept, kept)])
        return cls(tuple(columns[i] for i in kept), own, tuple(ends[i] for i in kept))

    def scores(
        self,
        bins: Sequence[NDArray[np.int64]],
        known: Sequence[NDArray[np.bool_]],
        rng: np.random.Generator,
    ) -> dict[int, Floats]:
        """Normal scores of n records in each of the copula's columns, shapes (n,).

        ``bins``, shapes (n,): of all columns.
        ``known``, shapes (n,): of the copula's columns, where a record's value has a place in the order.
        """
        if not self.columns:
            return {}
        low = np.full((len(self.columns), len(bins[0])), -_FAR)
        high = -low
        for i, (j, ends) in enumerate(zip(self.columns, self.ends, strict=True)):
            own = bins[j][known[i]]
            low[i, known[i]], high[i, known[i]] = ends[own], ends[own + 1]
        found = np.empty_like(low)
        precision = np.linalg.inv(self.correlation)

        def work(part: slice, own: np.random.Generator) -> None:
            found[:, part] = self._block(low[:, part], high[:, part], precision, own)

        in_blocks(work, found.shape[1], _BLOCK, rng)
        return dict(zip(self.columns, found, strict=True))

    def _block(self, low: Floats, high: Floats, precision: Floats, rng: np.random.Generator) -> Floats:
        scores = np.zeros_like(low)
        for j in range(len(low)):  # the first pass: each given those before it
            before = self.correlation[:j, :j]
            slopes = np.linalg.solve(before, self.correlation[:j, j]) if j else np.zeros(0)
            variance = 1.0 - float(slopes @ self.correlation[:j, j])
            scores[j] = _truncated(slopes @ scores[:j], variance**0.5, low[j], high[j], rng)
        for _ in range(_SWEEPS):
            for j in rng.permutation(len(low)):
                own = precision[j, j]
                mean = scores[j] - (precision[j] @ scores) / own
                scores[j] = _truncated(mean, own**-0.5, low[j], high[j], rng)
        return scores


def _correlations(bins: Sequence[NDArray[np.int64]], ends: Sequence[Floats]) -> Floats:
    """Correlations of normal scores, of columns whose bins are given with a last one that has no place."""
    scores, coefficients = zip(*map(_scores, ends), strict=True)
    values = np.stack([np.append(score, 0.0)[b] for score, b in zip(scores, bins, strict=True)])
    known = np.stack([b < len(score) for score, b in zip(scores, bins, strict=True)])
    together = np.maximum(known.astype(np.float64) @ known.T, 1.0)
    found = _polychoric((values @ values.T) / together, np.stack(coefficients))
    for i, k in zip(*np.nonzero(np.triu(np.abs(found) > _STRONG, 1)), strict=True):
        both, shape = known[i] & known[k], (len(scores[i]), len(scores[k]))
        cells = np.ravel_multi_index((bins[i][both], bins[k][both]), shape)
        counts = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
        found[i, k] = found[k, i] = _likeliest(counts, ends[i], ends[k], found[i, k])
    return found


def _ends(probabilities: Floats) -> Floats:
    """Ends of the ranges of normal scores that stand for bins in order, shape (bins + 1,)."""
    below = np.cumsum(np.maximum(probabilities, 1e-9))
    return np.asarray(ndtri(np.append(0.0, below / below[-1])).clip(-_FAR, _FAR))


def _scores(ends: Floats) -> tuple[Floats, Floats]:
    """Mean normal score of each bin, and the Hermite coefficients of these means from the first on."""
    mass = np.diff(ndtr(ends))
    density = np.exp(-0.5 * ends**2) / np.sqrt(2 * np.pi)
    score = -np.diff(density) / np.maximum(mass, 1e-12)
    # h_k = He_k / sqrt(k!); the integral of h_k times the density is -h_(k - 1) times it, over sqrt(k)
    previous, current = np.zeros_like(ends), np.ones_like(ends)
    found = np.empty(_TERMS)
    for k in range(1, _TERMS + 1):
        found[k - 1] = score @ (-np.diff(current * density)) / np.sqrt(k)
        previous, current = current, (ends * current - np.sqrt(k - 1) * previous) / np.sqrt(k)
    return score, found


def _polychoric(mean: Floats, coefficients: Floats) -> Floats:
    """Correlations of normal scores with these mean products of bins' scores, by bisection."""
    terms = coefficients[:, None, :] * coefficients[None, :, :]
    low, high = np.full(mean.shape, -_LARGEST), np.full(mean.shape, _LARGEST)
    for _ in range(30):
        middle = (low + high) / 2
        value = np.zeros_like(middle)
        for k in range(_TERMS - 1, -1, -1):
            value = (value + terms[:, :, k]) * middle
        low, high = np.where(value < mean, middle, low), np.where(value < mean, high, middle)
    found = (low + high) / 2
    np.fill_diagonal(found, 1.0)
    return found


def _likeliest(counts: NDArray[np.int64], rows: Floats, columns: Floats, least: float) -> float:
    """The likeliest correlation of counts by bins, where some records are of independent columns.

    Noise leaves a few records in cells far from the others. The mean product takes them for a weaker
    correlation. ``least``: that correlation, which the found one exceeds in size. With few bins such records
    look like a weaker correlation, so their part is kept small.
    """
    shares = counts / counts.sum()
    apart = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    best = (-np.inf, least)
    for size in np.tanh(np.linspace(np.arctanh(abs(least)), np.arctanh(_LARGEST), _TRIED)):
        coupled = np.maximum(_cells(rows, columns, np.sign(least) * size), 1e-12)
        for part in _PARTS:
            fit = (shares * np.log((1 - part) * coupled + part * apart)).sum() - _RELUCTANCE * part
            best = max(best, (float(fit), float(np.sign(least) * size)))
    return best[1]


def _cells(rows: Floats, columns: Floats, correlation: float) -> Floats:
    """Probabilities of pairs of bins under a bivariate normal distribution (Owen 1956)."""
    h, k = (np.where(ends == 0.0, 1e-9, ends) for ends in (rows[:, None], columns[None, :]))
    root = np.sqrt(1 - correlation**2)
    below = 0.5 * (ndtr(h) + ndtr(k) - (h * k < 0)) - (
        owens_t(h, (k / h - correlation) / root) + owens_t(k, (h / k - correlation) / root)
    )
    return np.asarray(np.diff(np.diff(below, axis=0), axis=1))


def _definite(correlation: Floats) -> Floats:
    """The nearest correlations, roughly, that are positive definite."""
    if not len(correlation):
        return correlation
    values, vectors = np.linalg.eigh(correlation)
    found = (vectors * np.maximum(values, _LEAST)) @ vectors.T
    scale = np.sqrt(np.diag(found))
    return np.asarray(found / np.outer(scale, scale))


def _truncated(mean: Floats, std: float, low: Floats, high: Floats, rng: np.random.Generator) -> Floats:
    """Draws of normal distributions within ranges, shape (n,)."""
    a, b = (low - mean) / std, (high - mean) / std
    # in the lower tail, where probabilities are precise
    swap = a > 0
    a, b = np.where(swap, -b, a), np.where(swap, -a, b)
    below, above = ndtr(a), ndtr(b)
    drawn = ndtri(below + rng.random(len(below)) * (above - below))
    # so far out that rounding leaves nothing between the ends
    drawn = np.clip(np.where(np.isfinite(drawn), drawn, b), a, b)
    return np.asarray(mean + std * np.where(swap, -drawn, drawn))
