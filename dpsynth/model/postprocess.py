"""Make generated records agree with the released single-column counts: post-processing, free of cost.

`calibrate` takes points. Numbers are replaced by their ranks, spread uniformly and read through the private
distribution. Category probabilities are re-weighted until their means are the released ones, and categories
are then drawn in exact numbers. The *dependence* of the columns is kept. Their own distributions are
replaced.

`matched_draws` does the same for samples of a base model, from their bins. A bin of an ordered column is a
range of cells, in which a record's place was drawn at random. So its rank is that of its bin, and random
within it.

Ranks and exact numbers need many records: a single one would be an independent sample of every column. A
caller who wants few records generates some thousands, calibrates, and keeps a random part.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.errors import DataError
from dpsynth.model.base_model.network import BayesianNetwork
from dpsynth.model.blocks import in_blocks
from dpsynth.table.draws import draw_entry, grouped
from dpsynth.table.encoder import Encoder

Codes = NDArray[np.int64]
Places = NDArray[np.float64]
#: Probability that even a certain category leaves to each other one, so that re-weighting can reach it.
_SMALLEST = 1e-6
#: Re-weighting is fitted on at most this many rows.
_FIT_ROWS = 20_000
#: Columns that a core takes at once, at most.
_COLUMNS = 8


def calibrate(
    points: ArrayLike, encoder: Encoder, rng: np.random.Generator
) -> tuple[list[Codes], list[Places]]:
    """Records that points stand for, with the released marginals of their encoder.

    ``points``, shape (n, layout.dim): numeric coordinates of any size (only their order counts), and one-hot
        groups as weights.

    Returns codes, places : lists of arrays, shape (n,): fine cells and places within them, one of each a
    column, as `Encoder.decode` takes them. Counts of categories and of missing values differ from n times
    the released probability by less than 1. Numbers are spread evenly over the released distribution, among
    the records where they are not missing.

    Examples
    --------
    >>> import pandas as pd
    >>> from dpsynth.accounting import Ledger
    >>> from dpsynth.model.columns.marginals import estimate_marginals
    >>> from dpsynth.releases.marginals import MarginalsRelease
    >>> from dpsynth.releases.records import FrameRecords
    >>> from dpsynth.table.schema import Column, Schema
    >>> schema = Schema(columns=(Column(name="sex", kind="binary", categories=("F", "M")),))
    >>> frame = schema.conform(pd.DataFrame({"sex": ["F"] * 30 + ["M"] * 10})).frame
    >>> rng = np.random.default_rng(0)
    >>> release = MarginalsRelease(schema=schema, n=40, noise_multiplier=None)
    >>> released = estimate_marginals(release, Ledger().run(release, FrameRecords(frame), rng))
    >>> codes, _ = calibrate(np.full((8, 2), 0.5), Encoder(schema, released), rng)
    >>> np.bincount(codes[0])
    array([6, 2])
    """
    layout = encoder.layout
    array = np.asarray(points)
    if array.ndim != 2 or array.shape[1] != layout.dim:
        raise DataError(f"points has shape {array.shape}, but must be (n, {layout.dim})")
    if not np.isfinite(array).all():
        raise DataError("points has a coordinate that is not a finite number")
    n, codes, places = len(array), [], []
    for j, (grid, at, group) in enumerate(zip(encoder.grids, encoder.coordinate, encoder.group, strict=True)):
        code, place, present = np.full(n, grid.present), np.zeros(n), np.arange(n)
        if group is not None:
            label = exact_categories(array[:, group[0] : group[1]], encoder.released(j), rng)
            code = label if at is None else grid.present - 1 + label
            present = present if at is None else np.flatnonzero(label == 0)
        if at is not None:
            rows = present[ascending(array[present, at], rng)]
            code[rows], place[rows] = evenly_spread(encoder, j, len(rows), rng)
        codes.append(code)
        places.append(place)
    return codes, places


def evenly_spread(encoder: Encoder, j: int, n: int, rng: np.random.Generator) -> tuple[Codes, Places]:
    """Cells of column j and places within them, ascending, one in each n-th part of what was released.

    The k-th is a uniform draw from the ranks ``[k / n, (k + 1) / n)`` of the present values.
    """
    return encoder.quantiles(j, (np.arange(n) + rng.random(n)) / max(n, 1))


def ascending(values: ArrayLike, rng: np.random.Generator) -> NDArray[np.int64]:
    """Places of n numbers in ascending order, with ties in random order.

    Examples
    --------
    >>> ascending([7.0, -2.0, 9.0], np.random.default_rng(0))
    array([1, 0, 2])
    """
    array = np.asarray(values)
    order = np.argsort(array)
    found = array[order]
    follows = np.concatenate([[False], found[1:] == found[:-1], [False]])
    tied = np.flatnonzero(follows[1:] | follows[:-1])
    if tied.size:
        run = np.cumsum(~follows[:-1])[tied]
        run -= run[0]
        # The sort leaves ties in an order of its own, which differs from machine to machine.
        rows = np.sort(run * len(array) + order[tied]) - run * len(array)
        order[tied] = rows[grouped(run, int(run[-1]) + 1, rng)]
    return order


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

    ``weights``, shape (n, m): a row's weights of the categories, of which negative ones count as zero.
    ``probabilities``, shape (m,): released probabilities, sum 1.
    """
    n, size = weights.shape
    # Category by category: sums along short rows are many times slower than whole columns.
    own = np.maximum(weights.T, 0.0, dtype=np.float64, order="C")
    own /= np.maximum(own.sum(axis=0), 1e-300)
    np.maximum(own, _SMALLEST, out=own)
    # Categories that are certain already have no lean to re-weight; only surplus records change theirs.
    if n and own.max(axis=0).min() <= 1.0 - 1e-3:
        fitted = own if n <= _FIT_ROWS else own[:, rng.integers(0, n, _FIT_ROWS)]
        own *= _reweight(fitted, probabilities)[:, None]
    own /= own.sum(axis=0)
    reweighted = own.T
    label = draw_entry(reweighted, rng)
    wanted = exact_counts(n, probabilities, rng)
    surplus = np.bincount(label, minlength=size) - wanted
    freed = []
    for category in np.flatnonzero(surplus > 0):
        rows = np.flatnonzero(label == category)
        freed.append(rows[_heaviest(1.0 - reweighted[rows, category], int(surplus[category]), rng)])
    pool = np.concatenate([np.zeros(0, dtype=np.int64), *freed])
    for category in np.flatnonzero(surplus < 0):
        taken = _heaviest(reweighted[pool, category], int(-surplus[category]), rng)
        label[pool[taken]] = category
        pool = np.delete(pool, taken)
    return label


def _reweight(own: NDArray[np.float64], probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Factors of the m categories that bring the mean of ``own``, shape (m, n), to the released one."""
    factor = np.ones(len(own))
    for _ in range(100):
        mean = factor * (own @ (1.0 / (factor @ own))) / own.shape[1]
        # Factors stay within float range where a released probability is zero.
        factor = np.clip(factor * probabilities / np.maximum(mean, 1e-12), 1e-12, 1e12)
        if np.abs(mean - probabilities).max() < 1e-4:
            break
    return factor


def _heaviest(weights: NDArray[np.float64], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw ``count`` different rows in proportion to their weights (Gumbel top-k)."""
    keys = np.log(np.maximum(weights, 1e-300)) + rng.gumbel(size=len(weights))
    return np.argpartition(-keys, count - 1)[:count] if count < len(keys) else np.arange(len(keys))


def matched_draws(
    base_model: BayesianNetwork | None, encoder: Encoder, n: int, rng: np.random.Generator
) -> tuple[list[Codes], list[Places]]:
    """Fine cells of n records and places within them, as `Encoder.decode` takes them.

    Returns codes, places : lists of arrays, shape (n,): one a column. Counts of categories and of missing
    values differ from n times the released probability by less than 1.
    """
    grids = encoder.grids
    bins = np.zeros((n, len(grids)), np.int64) if base_model is None else base_model.sample(n, rng)
    coupled, codes, places = list(bins.T), list(bins.T), [np.zeros(n) for _ in grids]
    #: bins or categories, what is apart, and the number of bins or categories
    columns = [(drawn, np.zeros(n, np.int64), 0) for drawn in bins.T]

    def label(part: slice, rng: np.random.Generator) -> None:
        for j, grid in list(enumerate(grids))[part]:
            drawn, apart, _ = columns[j]
            if base_model is None:
                labels = np.zeros(grid.size, np.int64)
            elif grid.ordered:
                labels = base_model.binnings[j].labels
            else:
                drawn, labels = base_model.column_cells(j, drawn, rng), np.arange(grid.size)
            if encoder.coordinate[j] is None:
                drawn = exact_labels(drawn, encoder.released(j), rng)
            elif encoder.group[j] is not None:
                drawn, apart = _apart(encoder, j, drawn, labels, rng)
            columns[j], coupled[j] = (drawn, apart, len(labels)), drawn
            if base_model is not None and not grid.ordered:
                coupled[j] = base_model.binnings[j].labels[drawn]

    in_blocks(label, len(grids), _COLUMNS, rng)
    scores = {}
    if base_model is not None and base_model.copula is not None:
        known = [columns[j][1] == 0 for j in base_model.copula.columns]
        scores = base_model.copula.scores(coupled, known, rng)

    def spread(part: slice, rng: np.random.Generator) -> None:
        for j, (drawn, apart, size) in list(enumerate(columns))[part]:
            codes[j] = drawn
            if encoder.coordinate[j] is None:
                continue
            codes[j], present = grids[j].present - 1 + apart, np.flatnonzero(apart == 0)
            if j in scores:
                rows = present[np.argsort(scores[j][present])]
            else:
                rows = present[grouped(drawn[present], size, rng)]
            codes[j][rows], places[j][rows] = evenly_spread(encoder, j, len(rows), rng)

    in_blocks(spread, len(grids), _COLUMNS, rng)
    return codes, places


def _apart(
    encoder: Encoder, j: int, drawn: Codes, labels: Codes, rng: np.random.Generator
) -> tuple[Codes, Codes]:
    """Cells drawn, changed where a value is found, and the code or missing value of each record.

    The code is 0 for a value in its order, as `Encoder.released` counts them.
    """
    released = encoder.released(j)
    if labels[-1] == labels[0]:
        apart = rng.choice(len(released), size=len(drawn), p=released)
    else:
        kinds = np.zeros(int(labels.max()) + 1, dtype=np.int64)
        kinds[labels[encoder.grids[j].present :]] = np.arange(1, len(released))
        apart = kinds[drawn]
    exact = exact_labels(apart, released, rng)
    found = (apart > 0) & (exact == 0)
    if found.any():
        # A value that was missing has no rank: any is as good.
        drawn = drawn.copy()
        drawn[found] = labels[encoder.quantiles(j, rng.random(int(found.sum())))[0]]
    return drawn, exact


def exact_labels(drawn: Codes, probabilities: NDArray[np.float64], rng: np.random.Generator) -> Codes:
    """Labels in exact numbers, of which as few as possible differ from those drawn.

    ``drawn``, shape (n,), from 0 to k - 1.
    ``probabilities``, shape (k,): released, sum 1.

    Returns int array, shape (n,): with counts by `exact_counts`. Surplus records, chosen at random, get the
    labels that are too few.

    Examples
    --------
    >>> label = exact_labels(np.zeros(8, dtype=np.int64), np.array([0.75, 0.25]), np.random.default_rng(0))
    >>> np.bincount(label)
    array([6, 2])
    """
    size = len(probabilities)
    counts = np.bincount(drawn, minlength=size)
    surplus = counts - exact_counts(len(drawn), probabilities, rng)
    if not surplus.any():
        return drawn
    rows = np.argsort(drawn.astype(np.uint16) if size <= 2**16 else drawn, kind="stable")
    first = np.concatenate([[0], np.cumsum(counts)])
    freed = [
        rng.choice(rows[first[k] : first[k + 1]], surplus[k], replace=False)
        for k in np.flatnonzero(surplus > 0)
    ]
    label = drawn.copy()
    label[rng.permutation(np.concatenate(freed))] = np.repeat(np.arange(size), np.maximum(-surplus, 0))
    return label
