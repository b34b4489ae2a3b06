"""Draws of a prior that agree with the released marginals, without a detour through encoded points.

What `dpsynth.model.postprocess` does to generated points, for records that are known by the prior's bins:
categories in exact numbers, of which only a surplus changes; numbers by their ranks, spread evenly over the
released distribution. A bin of an ordered column is a range of neighbouring cells in which a record's place
was drawn at random, so the rank of a record is its bin's, and at random within it: the law is that of drawing
the cell, encoding it, calibrating the point and decoding it again. Post-processing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsynth.model.base_model.network import Prior
from dpsynth.model.postprocess import evenly_spread, exact_counts
from dpsynth.table.draws import grouped
from dpsynth.table.encoder import Encoder

Codes = NDArray[np.int64]
Places = NDArray[np.float64]


def matched_draws(
    prior: Prior | None, encoder: Encoder, n: int, rng: np.random.Generator
) -> tuple[list[Codes], list[Places]]:
    """Fine cells of n records and places within them, as `Encoder.decode` takes them.

    Parameters
    ----------
    prior : Prior or None
        None: independent columns.
    encoder : Encoder
        With released marginals.
    n : int
    rng : numpy Generator

    Returns
    -------
    codes, places : lists of arrays, shape (n,)
        One a column. Counts of categories and of missing values differ from n times the released
        probability by less than 1.

    Raises
    ------
    ConfigError
        If the encoder has no released marginals.
    """
    bins = None if prior is None else prior.sample(n, rng)
    codes, places = [], []
    for j in range(len(encoder.grids)):
        if prior is None or bins is None:
            code, place = _matched(
                encoder, j, np.zeros(n, np.int64), np.zeros(encoder.grids[j].size, int), rng
            )
        elif encoder.grids[j].ordered:
            code, place = _matched(encoder, j, bins[:, j], prior.binnings[j].labels, rng)
        else:
            cells = prior.column_cells(j, bins[:, j], rng)
            code, place = _matched(encoder, j, cells, np.arange(encoder.grids[j].size), rng)
        codes.append(code)
        places.append(place)
    return codes, places


def _matched(
    encoder: Encoder, j: int, drawn: Codes, labels: Codes, rng: np.random.Generator
) -> tuple[Codes, Places]:
    """Cells and places of one column; ``labels`` are the fine cells' names in ``drawn``."""
    grid, at, group, n = encoder.grids[j], encoder.coordinate[j], encoder.group[j], len(drawn)
    if at is None:
        return exact_labels(drawn, encoder.released(j), rng), np.zeros(n)
    code, place, present = np.zeros(n, np.int64), np.zeros(n), np.arange(n)
    if group is not None:
        drawn, apart = _apart(encoder, j, drawn, labels, rng)
        code, present = grid.present - 1 + apart, np.flatnonzero(apart == 0)
    rows = present[grouped(drawn[present], len(labels), rng)]
    code[rows], place[rows] = evenly_spread(encoder, j, len(rows), rng)
    return code, place


def _apart(
    encoder: Encoder, j: int, drawn: Codes, labels: Codes, rng: np.random.Generator
) -> tuple[Codes, Codes]:
    """What was drawn, changed where a value is found, and which code or missing value each record has.

    0 where it has a value in its order, as `Encoder.released` counts them.
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
        # Of a value that was missing nothing is known: any rank is as good.
        drawn = drawn.copy()
        drawn[found] = labels[encoder.quantiles(j, rng.random(int(found.sum())))[0]]
    return drawn, exact


def exact_labels(drawn: Codes, probabilities: NDArray[np.float64], rng: np.random.Generator) -> Codes:
    """Labels in exact numbers, of which as few as possible differ from those drawn.

    Parameters
    ----------
    drawn : int array, shape (n,), from 0 to k - 1
    probabilities : array, shape (k,)
        Released, sum 1.
    rng : numpy Generator

    Returns
    -------
    int array, shape (n,)
        With counts by `exact_counts`; surplus records, chosen at random, get the labels that lack.

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
