"""Codes of a record by a latent Gaussian distribution given the other columns: fitted to noisy counts, drawn.

Code i of a record is there where ``a_i + B_i f + e_i > 0``. Here f are numbers of the record's other columns,
and e is normal with variance 1 and correlations R: a multivariate probit model (Ashford and Sowden 1970).

B follows from the sums beside the other columns, and R from the counts of pairs. What noise explains of these
is taken away by an estimated distribution of all correlations (Stephens 2017). The nearest correlation matrix
follows (Higham 2002). Post-processing, free of cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dpsynth.files.codec import record
from dpsynth.marginals.groups import GroupSums, OtherColumns
from dpsynth.table.grid import Grid
from dpsynth.table.schema import Schema
from dpsynth.table.simplex import norm_sub

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Fewest records of a code, so that its latent number has a bound.
_FEWEST = 2.0
#: Standard deviation of effects on a latent number of variance 1, for one deviation of a number.
_EFFECT = 0.3
#: Steps of the factors' fit and their greatest length, and the greatest factor.
_STEPS, _STEP, _MOST_FACTOR = 12, 0.5, 4.0
#: Standard deviations of the parts of the distribution of all correlations, of which 0 has a tenfold prior.
_PARTS, _PRIOR = np.append(0.0, np.geomspace(0.002, 0.2, 14)), np.append(10.0, np.ones(14))
#: Turns of its estimate, from so many numbers at most.
_TURNS, _NUMBERS = 100, 50_000
#: Rounds in which a correlation has a scale by its codes' others, and part of all their mean in it.
_ROUNDS, _LINKS = 2, 0.1
#: Largest correlation, halvings that find one, and points of the integral of a probability.
_MOST, _HALVINGS, _POINTS = 0.995, 12, 12
#: Projections on correlation matrices, and least eigenvalue.
_PROJECTIONS, _LEAST = 10, 0.005
#: Pairs whose correlations are found at once, and records that are drawn at once.
_AT_ONCE, _BLOCK = 1 << 16, 10_000


@record
@dataclass(frozen=True, eq=False)
class LatentGaussian:
    """Codes given other columns, made with `LatentGaussian.of`.

    ``prevalence``, ``intercepts``, shapes (codes,). ``effects``, shape (codes, numbers): a, and B for f
    around its ``mean``. ``factor``, shape (codes, codes): e is this times independent normal numbers.
    """

    others: OtherColumns
    mean: Floats
    prevalence: Floats
    intercepts: Floats
    effects: Floats
    factor: NDArray[np.float32]

    @classmethod
    def of(cls, sums: GroupSums, cells: Ints, *, rough: bool = False) -> LatentGaussian:
        """The model of noisy counts.

        ``cells``, shape (m, columns): of a sample of the other columns.
        ``rough``: whether the model is of no use, but only what was read.
        """
        n = sums.n
        single = norm_sub(sums.single, max(float(sums.single.sum()), 0.0))
        p = np.clip(single / n, min(_FEWEST / n, 0.5), 1.0 - min(_FEWEST / n, 0.5))
        values = sums.others.values(cells)
        mean = values.mean(axis=0)
        f = values - mean
        intercepts, effects = _effects(sums, p, mean, f)
        correlations = np.eye(len(p)) if rough else _correlations(sums, p, intercepts + f @ effects.T)
        return cls(sums.others, mean, p, intercepts, effects, _factor(correlations))

    def beside(
        self,
        frame: pd.DataFrame,
        schema: Schema,
        grids: Sequence[Grid],
        rng: np.random.Generator,
        *,
        even: bool,
    ) -> pd.DataFrame:
        """Records with codes beside their other columns, in the schema's order. ``even``: see `draw`."""
        columns = [column for _, columns in schema.group_columns for column in columns]
        cells = np.stack([grid.encode(frame[grid.column.name]) for grid in grids], axis=1)
        ones = self.draw(cells, rng, even=even)
        codes = {
            column.name: column.series(column.declared(own.astype(np.int64)), frame.index)
            for column, own in zip(columns, ones.T, strict=True)
        }
        found = pd.concat([frame, pd.DataFrame(codes, index=frame.index)], axis=1)
        return found[[name for name in schema.names if name in found.columns]]

    def draw(self, cells: Ints, rng: np.random.Generator, *, even: bool) -> NDArray[np.bool_]:
        """Codes of records, shape (n, codes).

        ``even``: whether these records together have the prevalences, as nearly as whole numbers can.
        Otherwise they are independent samples.
        """
        found = [np.zeros((0, len(self.prevalence)), dtype=bool)]
        for part in np.array_split(cells, -(-len(cells) // _BLOCK) or 1):
            normal = rng.standard_normal((len(part), len(self.factor)), dtype=np.float32) @ self.factor.T
            given = self.intercepts + (self.others.values(part) - self.mean) @ self.effects.T
            latent = normal + given.astype(np.float32)
            least = np.zeros(len(self.prevalence), np.float32)
            if even and len(part):
                number = np.floor(len(part) * self.prevalence + rng.random(len(self.prevalence))).astype(int)
                for k, ones in enumerate(number):
                    place = len(part) - 1 - ones
                    least[k] = np.partition(latent[:, k], place)[place] if place >= 0 else -np.inf
            found.append(latent > least)
        return np.concatenate(found)


def _density(a: Floats) -> Floats:
    return np.asarray(np.exp(-a * a / 2) / np.sqrt(2 * np.pi))


def _effects(sums: GroupSums, p: Floats, mean: Floats, f: Floats) -> tuple[Floats, Floats]:
    """Intercepts and effects of the other columns' numbers, shapes (codes,) and (codes, numbers).

    A ridge regression of noisy covariances: effects on a latent number of variance 1 are normal a priori, and
    for normal f its covariances are those of the code over phi(a) (Stein 1981). Then a factor of each code's
    effects is fitted: the sample has the prevalence, and the covariance with their sum.

    ``f``, shape (m, numbers): of a sample, around their ``mean``.
    """
    covariance, variance = f.T @ f / len(f), np.maximum(f.var(axis=0), 1e-9)
    wanted = sums.beside / sums.n - p[:, None] * mean
    noise = (sums.beside_std / sums.n) ** 2 + np.outer(p * (1 - p), variance) / sums.n
    noise += (sums.single_std / sums.n * mean) ** 2
    b, target = np.zeros_like(wanted), np.zeros(len(p))
    for k, slope in enumerate(_density(ndtri(p))):
        linear = slope * covariance
        known = linear / noise[k]
        b[k] = np.linalg.solve(linear @ known.T + np.diag(variance) / _EFFECT**2, known @ wanted[k])
        target[k] = b[k] @ linear @ b[k]
    total = f @ b.T
    a, factor = ndtri(p), np.ones(len(p))
    for _ in range(_STEPS):  # Newton's method for a convex function of both
        latent = a + factor * total
        shares, density = ndtr(latent), _density(latent)
        first, second = p - shares.mean(axis=0), target - (shares * total).mean(axis=0)
        aa, ab, bb = density.mean(axis=0), (density * total).mean(axis=0), (density * total**2).mean(axis=0)
        least = np.maximum(aa * bb - ab**2, 1e-12)
        a = a + np.clip((bb * first - ab * second) / least, -_STEP, _STEP)
        factor = np.clip(
            factor + np.clip((aa * second - ab * first) / least, -_STEP, _STEP), 0.0, _MOST_FACTOR
        )
    return a, factor[:, None] * b


def _correlations(sums: GroupSums, p: Floats, given: Floats) -> Floats:
    """Correlations of the codes' latent numbers given the other columns.

    What the other columns make of a pair's probability is taken away. The rest is scaled as if both codes had
    the same probability in all records.

    ``given``, shape (m, codes): mean of the latent numbers of a sample's records.
    """
    i, j = np.triu_indices(len(p), 1)
    a, shares, density = ndtri(p), ndtr(given), _density(given)
    known, slope = ((each.T @ each / len(each))[i, j] for each in (shares, density))
    noise = np.sqrt((p * (1 - p))[i] * (p * (1 - p))[j] / sums.n + (sums.pair_std / sums.n) ** 2)
    noisy, noise = (sums.pairs / sums.n - known) / slope, noise / slope
    beyond = shrunk(noisy, noise)
    for _ in range(_ROUNDS):
        squares, typical = beyond**2, float(np.mean(beyond**2)) * _LINKS + 1e-12
        of_code = np.bincount(i, squares, len(p)) + np.bincount(j, squares, len(p))
        # without the pair itself
        links = ((of_code[each] - squares) / max(len(p) - 2, 1) / typical + 1.0 for each in (i, j))
        scale = np.prod(list(links), axis=0) ** 0.25
        beyond = shrunk(noisy / scale, noise / scale) * scale
    both = p[i] * p[j] + beyond * _density(a)[i] * _density(a)[j]
    least = np.maximum(0.0, p[i] + p[j] - 1.0)
    both = np.clip(both, least + 1e-9, np.minimum(p[i], p[j]) - 1e-9)
    found = np.eye(len(p))
    for start in range(0, len(both), _AT_ONCE):
        k, m = i[start : start + _AT_ONCE], j[start : start + _AT_ONCE]
        found[k, m] = found[m, k] = tetrachoric(a[k], a[m], both[start : start + _AT_ONCE])
    return found


def shrunk(noisy: Floats, noise: Floats) -> Floats:
    """Expected numbers given noisy ones, under a distribution that is estimated from all of them.

    The distribution is a mixture of normal ones around 0, estimated by expectation and maximisation (Stephens
    2017, "False discovery rates: a new deal", section 3.1).

    ``noisy``, ``noise``, shape (k,): numbers, and standard deviations of their noise, 0 for none.

    Examples
    --------
    >>> noisy = np.append(np.random.default_rng(0).normal(0, 0.1, 1000), 0.9)
    >>> found = shrunk(noisy, np.full(1001, 0.1))
    >>> print(found[:-1].std().round(2), found[-1].round(2))
    0.01 0.72
    """
    some = slice(None, None, len(noisy) // _NUMBERS + 1)
    weights, (likelihood, _) = _PRIOR / _PRIOR.sum(), _parts(noisy[some], noise[some])
    for _ in range(_TURNS):
        of_all = likelihood @ weights
        weights = weights * (likelihood.T @ (1.0 / of_all)) + _PRIOR - 1.0
        weights /= weights.sum()
    found = np.zeros(len(noisy))
    for start in range(0, len(noisy), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        likelihood, variance = _parts(noisy[part], noise[part])
        of_part = likelihood * weights
        found[part] = (of_part * (_PARTS**2 / variance)).sum(axis=1) / of_part.sum(axis=1) * noisy[part]
    return found


def _parts(noisy: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """Likelihood of each number under each part of the mixture, up to a factor, and its variance."""
    variance = np.maximum(noise, 1e-9)[:, None] ** 2 + _PARTS**2
    logs = -0.5 * (noisy[:, None] ** 2 / variance + np.log(variance))
    return np.exp(logs - logs.max(axis=1, keepdims=True)), variance


def tetrachoric(a: Floats, b: Floats, both: Floats) -> Floats:
    """Correlations of two normal numbers that are below ``a`` and ``b`` with these probabilities together.

    The probability rises with the correlation, so halving finds it. It is the integral of the density at
    (a, b) over correlations from 0 on (Plackett 1954), here by Gauss and Legendre's rule.

    Examples
    --------
    >>> zero = np.zeros(2)  # 1/4 + arcsin(r) / (2 pi)
    >>> tetrachoric(zero, zero, np.array([0.25, 1 / 3])).round(3)
    array([-0. ,  0.5])
    """
    nodes, weights = np.polynomial.legendre.leggauss(_POINTS)
    apart, low = ndtr(a) * ndtr(b), np.full(len(a), -_MOST)
    high = -low
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        # r = sin(t): no end is singular
        angle, found = np.arcsin(middle), apart.copy()
        for node, weight in zip(nodes, weights, strict=True):
            t = angle * (node + 1) / 2
            sine = np.sin(t)
            square = (a * a - 2 * sine * a * b + b * b) / (2 * np.maximum(1 - sine * sine, 1e-12))
            found += weight * angle * np.exp(-square) / (4 * np.pi)
        less = found < both
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return (low + high) / 2


def _factor(correlations: Floats) -> NDArray[np.float32]:
    """Factor of the nearest correlation matrix, by alternating projections (Higham 2002, algorithm 3.3)."""
    nearest, correction = correlations, np.zeros_like(correlations)
    for _ in range(_PROJECTIONS):
        moved = nearest - correction
        values, vectors = np.linalg.eigh(moved)
        if values[0] >= _LEAST:
            break
        positive = (vectors * np.maximum(values, _LEAST)) @ vectors.T
        correction, nearest = positive - moved, positive.copy()
        np.fill_diagonal(nearest, 1.0)
    values, vectors = np.linalg.eigh(nearest)
    factor = vectors * np.sqrt(np.maximum(values, _LEAST))
    return (factor / np.linalg.norm(factor, axis=1, keepdims=True)).astype(np.float32)
