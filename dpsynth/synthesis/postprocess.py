"""Make generated points agree with the released one-way marginals: post-processing, free of cost.

Numbers are replaced by their ranks, spread uniformly and read through the private distribution; category
probabilities are re-weighted until their means are the released ones, and categories are then drawn in
exact numbers. What a generator says about *dependence* (who ranks above whom, which record leans to which
category) is kept; what it says about one-way distributions is replaced by what was paid for.

Ranks and exact numbers mean something among many records only. With few of them the marginals would be
matched by breaking the dependence (a single record is an independent draw of every column), so a caller
who wants few records generates some thousands, calibrates, and keeps a random part.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.errors import DataError
from dpsynth.table.draws import draw_entry
from dpsynth.table.encoder import Encoder
from dpsynth.table.layout import Layout

#: Probability that even a certain category leaves to each other one, so that re-weighting can reach it.
_SMALLEST = 1e-6
#: Re-weighting is fitted on at most this many rows.
_FIT_ROWS = 20_000


def calibrate(points: ArrayLike, encoder: Encoder, rng: np.random.Generator) -> NDArray[np.float32]:
    """Give points the released marginals of their encoder.

    Parameters
    ----------
    points : array, shape (n, layout.dim)
        Numeric coordinates of any size (only their order counts); one-hot groups as weights.
    encoder : Encoder
        With released marginals.
    rng : numpy Generator

    Returns
    -------
    float32 array, shape (n, layout.dim)
        Hard one-hot groups whose counts differ from n times the released probability by less than 1;
        numeric coordinates spread evenly over the released distribution, among the records where they are
        not missing.

    Raises
    ------
    ConfigError
        If the encoder has no released marginals.
    DataError
        If the number of coordinates is not the layout's, or one is not a number.

    Examples
    --------
    >>> import pandas as pd
    >>> from dpsynth.accounting import Ledger
    >>> from dpsynth.releases.marginals import MarginalsRelease
    >>> from dpsynth.releases.records import FrameRecords
    >>> from dpsynth.table.schema import Column, Schema
    >>> schema = Schema(columns=(Column(name="sex", kind="binary", categories=("F", "M")),))
    >>> frame = schema.conform(pd.DataFrame({"sex": ["F"] * 30 + ["M"] * 10})).frame
    >>> rng = np.random.default_rng(0)
    >>> release = MarginalsRelease(schema=schema, n=40, noise_multiplier=None)
    >>> released = Ledger().run(release, FrameRecords(frame), rng)
    >>> calibrate(np.full((8, 2), 0.5), Encoder(schema, released), rng).sum(axis=0)
    array([6., 2.], dtype=float32)
    """
    layout = encoder.layout
    array = np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != layout.dim:
        raise DataError(f"points has shape {array.shape}, but must be (n, {layout.dim})")
    if not np.isfinite(array).all():
        raise DataError("points has a coordinate that is not a finite number")
    result = np.zeros(array.shape, dtype=np.float32)
    for (start, stop), p in zip(layout.groups, encoder.group_probabilities(), strict=True):
        label = exact_categories(array[:, start:stop], p, rng)
        result[np.arange(len(array)), start + label] = 1.0
    for j, (at, group) in enumerate(zip(encoder.coordinate, encoder.group, strict=True)):
        if at is None:
            continue
        present = np.ones(len(array), dtype=bool) if group is None else result[:, group[0]] == 1.0
        result[present, at] = encoder.from_uniform(j, uniform_ranks(array[present, at], rng))
        # A missing number's coordinate says nothing: the encoder's own filler is uniform too.
        result[~present, at] = rng.random(int((~present).sum()))
    return result


def draw_groups(points: ArrayLike, layout: Layout, rng: np.random.Generator) -> NDArray[np.float32]:
    """Draw one category of every group in proportion to its weights, and leave numbers as they are.

    Parameters
    ----------
    points : array, shape (n, layout.dim)
    layout : Layout
    rng : numpy Generator

    Returns
    -------
    float32 array, shape (n, layout.dim), groups one-hot

    Examples
    --------
    >>> draw_groups([[0.3, 0.0, 1.0]], Layout(1, ((1, 3),)), np.random.default_rng(0))
    array([[0.3, 0. , 1. ]], dtype=float32)
    """
    result = np.array(points, dtype=np.float32)
    for start, stop in layout.groups:
        label = draw_entry(result[:, start:stop], rng)
        result[:, start:stop] = 0.0
        result[np.arange(len(result)), start + label] = 1.0
    return result


def uniform_ranks(values: ArrayLike, rng: np.random.Generator) -> NDArray[np.float64]:
    """Replace n numbers by an even spread over [0, 1) in the same order; ties are ordered at random.

    The number of rank k gets a uniform draw from ``[k / n, (k + 1) / n)``.

    Examples
    --------
    >>> np.floor(3 * uniform_ranks([7.0, -2.0, 9.0], np.random.default_rng(0)))
    array([1., 0., 2.])
    """
    array = np.asarray(values, dtype=np.float64)
    order = np.lexsort((rng.random(len(array)), array))
    ranks = np.empty(len(array))
    ranks[order] = (np.arange(len(array)) + rng.random(len(array))) / max(len(array), 1)
    return ranks


def exact_counts(n: int, probabilities: ArrayLike, rng: np.random.Generator) -> NDArray[np.int64]:
    """Whole numbers of mean ``n * probabilities``, each within 1 of it, that sum to n (systematic rounding).

    Examples
    --------
    >>> exact_counts(8, [0.75, 0.25], np.random.default_rng(0))
    array([6, 2])
    """
    share = np.asarray(probabilities, dtype=np.float64)
    ends = np.cumsum(share / share.sum()) * n
    ends[-1] = n
    marks = np.floor(np.concatenate([[0.0], ends]) + rng.random() * (1.0 - 1e-9) + 1e-9).astype(np.int64)
    return np.diff(marks)


def exact_categories(
    weights: NDArray[np.float64], probabilities: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """One category a row, in exact numbers, leaning to each row's own weights.

    Parameters
    ----------
    weights : array, shape (n, m)
        A row's weights of the categories; negative ones count as zero.
    probabilities : array, shape (m,)
        Released probabilities, sum 1.
    rng : numpy Generator

    Returns
    -------
    int array, shape (n,)
    """
    n, size = weights.shape
    own = np.maximum(weights, 0.0)
    own = np.maximum(own / np.maximum(own.sum(axis=1, keepdims=True), 1e-300), _SMALLEST)
    certain = n == 0 or own.max(axis=1).min() > 1.0 - 1e-3
    # Categories that are certain already have no lean to re-weight; only surplus records change theirs.
    factor = 1.0 if certain else _reweight(own[rng.permutation(n)[:_FIT_ROWS]], probabilities)
    tilted = own * factor
    tilted /= tilted.sum(axis=1, keepdims=True)
    label = draw_entry(tilted, rng)
    wanted = exact_counts(n, probabilities, rng)
    surplus = np.bincount(label, minlength=size) - wanted
    freed = []
    for category in np.flatnonzero(surplus > 0):
        rows = np.flatnonzero(label == category)
        freed.append(rows[_heaviest(1.0 - tilted[rows, category], int(surplus[category]), rng)])
    pool = np.concatenate([np.zeros(0, dtype=np.int64), *freed])
    for category in np.flatnonzero(surplus < 0):
        taken = _heaviest(tilted[pool, category], int(-surplus[category]), rng)
        label[pool[taken]] = category
        pool = np.delete(pool, taken)
    return label


def _reweight(own: NDArray[np.float64], probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Factors of the categories that bring the rows' mean probabilities to the released ones."""
    factor = np.ones(own.shape[1])
    for _ in range(100):
        tilted = own * factor
        mean = (tilted / tilted.sum(axis=1, keepdims=True)).mean(axis=0)
        # Factors stay within float range where a released probability is zero.
        factor = np.clip(factor * probabilities / np.maximum(mean, 1e-12), 1e-12, 1e12)
        if np.abs(mean - probabilities).max() < 1e-4:
            break
    return factor


def _heaviest(weights: NDArray[np.float64], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw ``count`` different rows in proportion to their weights (Gumbel top-k)."""
    keys = np.log(np.maximum(weights, 1e-300)) + rng.gumbel(size=len(weights))
    return np.argpartition(-keys, count - 1)[:count] if count < len(keys) else np.arange(len(keys))
