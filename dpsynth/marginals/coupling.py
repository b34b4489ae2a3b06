"""Ordered columns are coupled by a Gaussian copula: a reference for what tables of coarse bins leave open.

Two columns that are nearly functions of each other, such as the radius and the area of a nucleus, would be
independent within the bins of a table. So each record has a normal score in each ordered column, within the
range that stands for its state. The scores of two columns have the correlation that their bins have by the
model (the polychoric correlation, Olsson 1979). Mehler's formula gives the mean product of two scored bins as
a power series in it: ``E[s_i s_j] = sum over k of rho^k a_ik a_jk``, with a_ik the Hermite coefficients of
column i's scores. Strong correlations are then found by likelihood, with a part of the records independent:
noise in a table leaves some far from the others.

A column's states are then as likely as its normal score is, given those of the columns before it. Tables and
products (`dpsynth.marginals.terms`) are fitted on top of that, so they hold as they did. Post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, owens_t

from dpsynth.files.codec import record
from dpsynth.marginals.terms import DrawnColumns, PlaceTerm

Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

#: Terms of the power series.
_TERMS = 60
#: Largest correlation, least eigenvalue of the correlations, least part of a score that others leave open.
_LARGEST, _LEAST, _LEAST_VARIANCE = 0.998, 2e-3, 2e-3
#: Columns are coupled whose correlation is above this, and above so many standard deviations of noise.
_WEAK, _NOISE = 0.3, 3.0
#: Correlations above this are found anew by likelihood, among so many.
_STRONG, _TRIED = 0.6, 25
#: Parts of the records that may be independent.
_PARTS = (0.0, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3)
#: The part that may be independent in any case, and by how much of the noise in a cell a cell is more.
_FAR_RECORDS, _HALF_NOISE = 0.04, 0.4
#: What a part of independent records must gain in mean log likelihood.
_RELUCTANCE = 0.2
#: Ends of a normal distribution.
_FAR = 8.0
#: Records that have places in both columns, at least.
_FEWEST = 200
#: Least probability of a state given others.
_RAREST = 1e-9
#: Mean scores are rounded to so many places of a deviation.
_PLACES = 16


@record
@dataclass(frozen=True, eq=False)
class Coupling(PlaceTerm):
    """How likely a column's states are by normal scores, compared with the column alone.

    ``columns``: earlier columns. ``slopes``, shape (columns,): of the mean score.
    ``variance``: of the score given theirs.
    ``ends``, shape (ordered states + 1,): of the ranges of scores.
    ``size``: number of the column's states. Those without a place in the order come last.
    """

    columns: tuple[int, ...]
    slopes: Floats
    variance: float
    ends: Doubles
    size: int

    def mean(self, rows: DrawnColumns) -> Doubles:
        """Mean score of each record, shape (n,)."""
        return np.asarray(self.slopes @ rows.scores[list(self.columns)], dtype=np.float64)

    @cached_property
    def by_place(self) -> Floats:
        """Logits by mean score, shape (states, places)."""
        deviation = self.variance**0.5
        means = np.arange(-_FAR, _FAR, deviation / _PLACES)
        mass = np.maximum(np.diff(ndtr((self.ends[:, None] - means) / deviation), axis=0), _RAREST)
        alone = np.maximum(np.diff(ndtr(self.ends)), _RAREST)
        logits = np.zeros((self.size, len(means)), np.float32)
        logits[: len(mass)] = np.log(mass / alone[:, None])
        return logits

    def places(self, rows: DrawnColumns) -> Ints:
        """Rounded mean score of each record, shape (n,)."""
        places = (self.mean(rows) + _FAR) * (_PLACES / self.variance**0.5)
        return np.rint(places).astype(np.int64).clip(0, self.by_place.shape[1] - 1)


def score_ends(probabilities: Doubles) -> Doubles:
    """Ends of the ranges of normal scores that stand for bins in order, shape (bins + 1,)."""
    below = np.cumsum(np.maximum(probabilities, 1e-9))
    return np.asarray(ndtri(np.append(0.0, below / below[-1])).clip(-_FAR, _FAR))


def normal_scores(
    states: Ints, ends: Doubles, coupling: Coupling | None, rows: DrawnColumns, rng: np.random.Generator
) -> Floats:
    """Normal scores of records with these states, shape (n,): in the range of the state.

    They are those that the other columns let expect, so that long ranges hold no pair that cannot be. Of a
    state without a place in the order they have no range.
    """
    low, high = (np.append(end, far)[np.minimum(states, len(ends) - 1)] for end, far in _ranges(ends))
    mean, deviation = np.zeros(len(states)), 1.0
    if coupling is not None:
        mean, deviation = coupling.mean(rows), coupling.variance**0.5
    below, above = ((end - mean) / deviation for end in (low, high))
    # the tail that holds the range resolves it
    upper = below > 0
    first, last = ndtr(np.where(upper, -above, below)), ndtr(np.where(upper, -below, above))
    drawn = ndtri(first + rng.random(len(states)) * (last - first))
    scores = np.where(upper, -drawn, drawn) * deviation + mean
    return np.asarray(np.clip(np.nan_to_num(scores), low, high), dtype=np.float32)


def _ranges(ends: Doubles) -> tuple[tuple[Doubles, float], tuple[Doubles, float]]:
    """Lower and upper ends of states, and of one without a place in the order."""
    return (ends[:-1], -_FAR), (ends[1:], _FAR)


@dataclass(frozen=True, eq=False)
class Scored:
    """The bins of an ordered column in a table: their number, mean scores and Hermite coefficients.

    ``ends``, shape (bins + 1,). Bins without a place in the order come last and are not counted.
    """

    ends: Doubles
    scores: Doubles
    coefficients: Doubles

    @classmethod
    def of(cls, probabilities: Doubles) -> Scored:
        """Of the probabilities of the bins in their order."""
        ends = score_ends(probabilities)
        mass = np.diff(ndtr(ends))
        density = np.exp(-0.5 * ends**2) / np.sqrt(2 * np.pi)
        score = -np.diff(density) / np.maximum(mass, 1e-12)
        # h_k = He_k / sqrt(k!); the integral of h_k times the density is -h_(k - 1) times it, over sqrt(k)
        previous, current = np.zeros_like(ends), np.ones_like(ends)
        found = np.empty(_TERMS)
        for k in range(1, _TERMS + 1):
            found[k - 1] = score @ (-np.diff(current * density)) / np.sqrt(k)
            previous, current = current, (ends * current - np.sqrt(k - 1) * previous) / np.sqrt(k)
        return cls(ends, score, found)

    @property
    def size(self) -> int:
        """Number of bins."""
        return len(self.scores)

    @cached_property
    def length(self) -> float:
        """Root of the sum of squared scores."""
        return float(np.linalg.norm(self.scores))


@dataclass(frozen=True, eq=False)
class Marks:
    """Scores of the bins of some records, by column, shape (columns, n): 0 without a place in the order.

    ``known``, of the same shape: 1 where there is a place.
    ``bins``, of the same shape.
    """

    scores: Floats
    known: Floats
    bins: Ints

    @classmethod
    def empty(cls, columns: int, n: int) -> Marks:
        """No column has a place yet."""
        scores, known = (np.zeros((columns, n), np.float32) for _ in range(2))
        return cls(scores, known, np.zeros((columns, n), np.int64))

    def put(self, column: int, scored: Scored, bins: Ints) -> None:
        """Mark a column. Bins of ``scored.size`` and more have no place in the order."""
        self.bins[column], self.known[column] = bins, bins < scored.size
        self.scores[column] = np.append(scored.scores, 0.0)[np.minimum(bins, scored.size)]


def score_correlations(
    column: int, others: Sequence[int], scored: Sequence[Scored | None], marks: Marks, noise: float
) -> tuple[Doubles, NDArray[np.bool_]]:
    """Correlation of a column's normal scores with those of others, by bins of records, shape (others,).

    Also whether each tells something: it is strong, and more than noise. Of too few records it is 0.

    ``noise``: standard deviation of the noise in a share of the tables.
    """
    one, rows = scored[column], np.array(others, np.int64)
    if one is None or not len(rows):
        return np.zeros(len(rows)), np.zeros(len(rows), dtype=bool)
    # of all columns, which is faster than to take some
    both = (marks.known @ marks.known[column])[rows]
    products = ((marks.scores @ marks.scores[column])[rows] / np.maximum(both, 1.0)).astype(np.float64)
    firsts, lengths = np.zeros(len(rows)), np.zeros(len(rows))
    for k, i in enumerate(others):
        if (other := scored[i]) is not None:
            firsts[k], lengths[k] = other.coefficients[0], other.length
    known = (both >= _FEWEST) & (firsts != 0.0)
    clear = known & (np.abs(products) > _NOISE * noise * one.length * lengths)
    # of a weak one the first term is enough
    found = np.where(known, products / np.maximum(firsts * one.coefficients[0], _RAREST), 0.0)
    near = np.flatnonzero(known & (np.abs(found) > _WEAK / 2))
    if len(near):
        terms = np.stack([one.coefficients * scored[i].coefficients for i in rows[near]])
        found[near] = _polychoric(products[near], terms)
    tells = clear & (np.abs(found) > _WEAK)
    for k in np.flatnonzero(tells & (np.abs(found) > _STRONG)):
        i, other = int(rows[k]), scored[rows[k]]
        assert other is not None  # it has a first coefficient
        apart = (marks.known[i] * marks.known[column]) > 0
        cells = marks.bins[column, apart] * other.size + marks.bins[i, apart]
        counts = np.bincount(cells, minlength=one.size * other.size).reshape(one.size, other.size)
        far = max(_FAR_RECORDS, _HALF_NOISE * noise * counts.size)
        found[k] = _likeliest(counts, one.ends, other.ends, float(found[k]), far)
    return found, tells


def tight_law(counts: Doubles, one: Scored, other: Scored, noise: float) -> Doubles | None:
    """Probabilities of pairs of bins by the correlation of a table, None if it is not strong.

    ``noise``: standard deviation of the noise in a share of the table.
    """
    if not counts.sum() > 0:
        return None
    means = np.array([one.scores @ counts @ other.scores / counts.sum()])
    rho = float(_polychoric(means, (one.coefficients * other.coefficients)[None])[0])
    if abs(rho) <= _STRONG:
        return None
    far = max(_FAR_RECORDS, _HALF_NOISE * noise * counts.size)
    return _cells(one.ends, other.ends, _likeliest(counts, one.ends, other.ends, rho, far)).clip(0.0)


def coupled(columns: Sequence[int], correlation: Doubles, ends: Doubles, size: int) -> Coupling:
    """The coupling of a column with some of those before it.

    ``correlation``, shape (columns + 1,) twice: of the earlier columns and, last, of the column.
    """
    kept = _definite(correlation)
    slopes = np.linalg.solve(kept[:-1, :-1], kept[:-1, -1])
    variance = max(1.0 - float(slopes @ kept[:-1, -1]), _LEAST_VARIANCE)
    return Coupling(tuple(columns), slopes.astype(np.float32), variance, ends, size)


def _polychoric(means: Doubles, terms: Doubles) -> Doubles:
    """Correlations of normal scores with these mean products of bins' scores, by bisection.

    ``means``, ``terms``, shapes (pairs,) and (pairs, terms of the series).
    """
    low, high = np.full(len(means), -_LARGEST), np.full(len(means), _LARGEST)
    powers = np.arange(1, _TERMS + 1)
    for _ in range(20):
        middle = (low + high) / 2
        less = (terms * middle[:, None] ** powers).sum(axis=1) < means
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return np.asarray((low + high) / 2)


def _likeliest(counts: Ints | Doubles, rows: Doubles, columns: Doubles, least: float, far: float) -> float:
    """The likeliest correlation of counts by bins, where some records are of independent columns.

    Noise leaves a few records in cells far from the others. The mean product takes them for a weaker
    correlation. ``least``: that correlation, which the found one exceeds in size. With few bins such records
    look like a weaker correlation, so their part is kept small: ``far`` at most, which noise explains.
    """
    shares = counts / counts.sum()
    apart = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    sizes = np.tanh(np.linspace(np.arctanh(abs(least)), np.arctanh(_LARGEST), _TRIED))
    near = np.maximum(_cells(rows, columns, np.sign(least) * sizes), 1e-12)
    parts = np.array([part for part in _PARTS if part <= far])[:, None, None, None]
    fits = (shares * np.log((1 - parts) * near + parts * apart)).sum(axis=(2, 3))
    fits -= _RELUCTANCE * parts[:, :, 0, 0]
    return float(np.sign(least) * sizes[int(np.argmax(fits.max(axis=0)))])


def _cells(rows: Doubles, columns: Doubles, correlation: Doubles | float) -> Doubles:
    """Probabilities of pairs of bins under a bivariate normal distribution (Owen 1956).

    Shape (correlations, rows, columns), without the first axis for a single one.
    """
    rho = np.asarray(correlation)[..., None, None]
    h, k = (np.where(ends == 0.0, 1e-9, ends) for ends in (rows[:, None], columns[None, :]))
    root = np.sqrt(1 - rho**2)
    below = 0.5 * (ndtr(h) + ndtr(k) - (h * k < 0)) - (
        owens_t(h, (k / h - rho) / root) + owens_t(k, (h / k - rho) / root)
    )
    return np.asarray(np.diff(np.diff(below, axis=-1), axis=-2))


def _definite(correlation: Doubles) -> Doubles:
    """The nearest correlations, roughly, that are positive definite."""
    values, vectors = np.linalg.eigh(correlation)
    found = (vectors * np.maximum(values, _LEAST)) @ vectors.T
    scale = np.sqrt(np.diag(found))
    return np.asarray(found / np.outer(scale, scale))
