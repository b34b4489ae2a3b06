"""Draw the rows of synthetic patients who have given levels: post-processing.

A patient's rows are drawn as chains. They are then moved so that the patient has the drawn levels. Span,
mean, standard deviation and trend are met exactly, until values are rounded and clipped. The chain of the
nearest roughness is kept, out of several.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr

from dpsynth.patients.series import PRESENCE_SHARES, Floats, Ints, packed_to
from dpsynth.table.kinds.category import category_codes
from dpsynth.table.schema import Schema

#: Chains of which the one that misses the levels least is kept.
TRIES = 10


def drawn(table: Floats, uniform: Floats, *parents: Ints) -> tuple[Ints, Floats]:
    """One entry of the last axis for each uniform, given the indices of the other axes.

    Also the place of the uniform within the entry's part of [0, 1).
    """
    size = table.shape[-1]
    groups = np.ravel_multi_index(parents, table.shape[:-1])
    ends = np.cumsum(table.reshape(-1, size), axis=1)
    ends[ends[:, -1] <= 0] = np.arange(1, size + 1)  # a group without weight is uniform
    ends /= ends[:, -1:]
    # One ascending list of all groups' ends lets a single search serve all.
    shifted = (ends + np.arange(len(ends))[:, None]).ravel()
    entry = np.searchsorted(shifted, groups + uniform, side="right") - groups * size
    entry = np.clip(entry, 0, size - 1)
    ends = np.concatenate([np.zeros((len(ends), 1)), ends], axis=1)
    lower, upper = ends[groups, entry], ends[groups, entry + 1]
    return entry, np.clip((uniform - lower) / np.maximum(upper - lower, 1e-12), 0.0, 1.0)


def place_inside(bins: Ints, edges: Floats, density: Floats, place: Floats) -> Floats:
    """The value at a place in each bin, by the straight line through the densities of the bins beside it."""
    heights = density / np.diff(edges)
    padded = np.r_[heights[0], heights, heights[-1]]
    slope = np.clip((padded[2:] - padded[:-2]) / np.maximum(4 * heights, 1e-12), -0.95, 0.95)[bins]
    flat = np.abs(slope) < 1e-6
    safe = np.where(flat, 1.0, slope)
    part = np.where(flat, place, (safe - 1 + np.sqrt((1 - safe) ** 2 + 4 * safe * place)) / (2 * safe))
    return edges[bins] + part * (edges[bins + 1] - edges[bins])


@dataclass(frozen=True)
class SyntheticLevels:
    """Levels of synthetic patients: post-processing.

    ``presences``: for each column that may be missing, the levels of its presence and of its file's.
    """

    frame: pd.DataFrame
    schema: Schema
    presences: Mapping[str, Sequence[str]]

    def codes(self, name: str) -> Floats:
        """A level as numbers, NaN where it is missing."""
        return self.schema[name].code(self.frame[name])

    def values_of(self, column: str) -> Floats:
        """About how many values of a column each patient has."""
        rows = self.codes("rows")
        for level in self.presences.get(column, ()):
            shares = np.append(PRESENCE_SHARES, 0.0)[np.nan_to_num(self.codes(level), nan=-1).astype(int)]
            rows = np.where(shares < 0, 1.0, rows * shares)
        return np.rint(rows)


@dataclass(eq=False)
class RowsDrawing:
    """The rows of one block of N patients while they are drawn.

    Attributes
    ----------
    levels, of_levels : DataFrame with N rows, and its Schema
        Of the patients.
    most : int
        Rows of a patient, at most.
    tables : mapping
        Distributions by kind and column of their table.
    learned : mapping
        What courses learned of the levels of synthetic patients, by column.
    parents : mapping
        The earlier category that a category is drawn beside.
    links : mapping
        Place of each column among those whose steps are correlated.
    terminal : tuple of str
        Columns of events that end a patient's rows.
    time_unit : float
        Size of the unit of drawn times in that of the clock: drawn dates are days or seconds.
    rng : numpy.random.Generator
    columns : dict
        Numbers of each column drawn so far, shape (N, most).
    presences, measured : dict
        Rows in which something is there, by the presence, and by the column that may have a value.
    """

    levels: pd.DataFrame
    of_levels: Schema
    most: int
    tables: Mapping[tuple[str, str], Floats]
    learned: Mapping[str, Floats]
    parents: Mapping[str, str]
    links: Mapping[str, int]
    terminal: tuple[str, ...]
    time_unit: float
    rng: np.random.Generator
    columns: dict[str, Floats] = field(default_factory=dict)
    presences: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    measured: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    #: Normal scores of the linked columns drawn so far.
    kept: list[Floats] = field(default_factory=list)

    @cached_property
    def count(self) -> Ints:
        """Rows of each patient."""
        return self.levels["rows"].to_numpy(dtype=np.int64)

    @cached_property
    def ended(self) -> NDArray[np.bool_]:
        """Patients whose last row has a terminal event."""
        found = np.zeros(len(self.levels), bool)
        for name in self.terminal:
            found |= np.nanmax(self.columns[name], axis=1, initial=0.0) == 1
        return found

    @cached_property
    def here(self) -> NDArray[np.bool_]:
        """The rows that patients have, at the left."""
        return np.arange(self.most) < self.count[:, None]

    def has(self, name: str) -> NDArray[np.bool_]:
        """The rows in which a column has a value."""
        return self.measured.get(name, self.here)

    def table(self, kind: str, column: str = "") -> Floats:
        """The distribution of this kind and column."""
        return self.tables[kind, column]

    def number(self, name: str, beside: Floats | None = None) -> Floats:
        """A level. A patient nearby in ``beside``, or any patient, lends one that is not defined."""
        values = self.of_levels[name].code(self.levels[name]).copy()
        known = np.flatnonzero(~np.isnan(values))
        if not len(known):
            return np.zeros(len(values))
        key = self.rng.random(len(values)) if beside is None else beside
        known = known[np.argsort(key[known], kind="stable")]
        lacks = np.flatnonzero(np.isnan(values))
        place = np.minimum(np.searchsorted(key[known], key[lacks]), len(known) - 1)
        values[lacks] = values[known[place]]
        return values

    def codes(self, name: str) -> Ints:
        """A level's categories as numbers, -1 where it is missing."""
        return category_codes(self.of_levels[name], self.levels[name])

    def times(self, name: str) -> Floats:
        """A level that is a time of the clock, in the unit of drawn times, NaN where it is missing."""
        return self.of_levels[name].code(self.levels[name]) / self.time_unit

    def reorder(self, order: Ints) -> None:
        """Put the rows of each patient in another order, in all that is drawn so far."""
        self.columns = {name: np.take_along_axis(v, order, axis=1) for name, v in self.columns.items()}
        for masks in (self.presences, self.measured):
            masks.update({name: np.take_along_axis(has, order, axis=1) for name, has in masks.items()})
        self.kept = [np.take_along_axis(values, order, axis=1) for values in self.kept]

    def climb(
        self,
        table: Floats,
        edges: Floats,
        total: Floats,
        here: NDArray[np.bool_],
        *fixed: Ints,
        uniform: Floats | None = None,
    ) -> Floats:
        """Sums of steps that add up to ``total`` over the values that are there, which stand at the left."""
        uniform = self.rng.random(here.shape) if uniform is None else uniform
        bins, place = self.chain(table, uniform, *fixed, first=1)
        density = table.mean(axis=tuple(range(table.ndim - 1)))
        steps = place_inside(bins, edges, density, place) * here
        steps[:, 0] = 0.0
        return np.cumsum(steps * (total / np.maximum(steps.sum(axis=1), 1e-12))[:, None], axis=1)

    def chain(self, table: Floats, uniform: Floats, *fixed: Ints, first: int = 0) -> tuple[Ints, Floats]:
        """Bins of all rows from ``first`` on, each given the one before and ``fixed``, (n,) or (n, most).

        Also the places of the uniforms in them.
        """
        bins, place = np.zeros(self.here.shape, np.int64), np.zeros(self.here.shape)
        last = np.full(len(self.here), table.shape[0] - 1)
        for t in range(first, self.most):
            now = (parent if parent.ndim == 1 else parent[:, t] for parent in fixed)
            # A table that is not given the one before has one entry for it.
            last, place[:, t] = drawn(table, uniform[:, t], np.minimum(last, len(table) - 1), *now)
            bins[:, t] = last
        return bins, place

    def best(
        self, name: str, has: NDArray[np.bool_], attempt: Callable[[Floats], tuple[Floats, Floats]]
    ) -> Floats:
        """The one of several chains, from uniforms of the measured rows, that misses the levels least."""
        earlier, own = self._decided(name)
        kept, normal = np.zeros(self.here.shape), np.zeros(self.here.shape)
        least = np.full(len(kept), np.inf)
        for _ in range(TRIES):
            fresh = self.rng.standard_normal(self.here.shape)
            values, miss = attempt(packed_to(has, ndtr(earlier + own * fresh)))
            better = (miss < least)[:, None]
            kept, normal = np.where(better, values, kept), np.where(better, fresh, normal)
            least = np.minimum(least, miss)
        if name in self.links:
            self.kept.append(normal)
        return kept

    def _decided(self, name: str) -> tuple[Floats, float]:
        """The part of a column's normal scores that earlier columns of the same row decide.

        Also the weight of the rest.
        """
        if name not in self.links:
            return np.zeros(self.here.shape), 1.0
        weights = self._factor[self.links[name]]
        earlier = sum((w * z for w, z in zip(weights, self.kept, strict=False)), np.zeros(self.here.shape))
        return earlier, float(weights[self.links[name]])

    @cached_property
    def _factor(self) -> Floats:
        """Cholesky factor of the correlations of the linked columns' steps."""
        count = len(self.links)
        return np.linalg.cholesky(self.table("pairs")) if count > 1 else np.eye(count)

    def leave_out(self, names: Sequence[str], needed: Sequence[str]) -> None:
        """Leave out rows that have none of some values, or not all of those that are ``needed``."""
        some = np.logical_or.reduce([~np.isnan(self.columns[name]) for name in names])
        for name in needed:
            some &= ~np.isnan(self.columns[name])
        self.here, self.count = self.here & some, (self.here & some).sum(axis=1)

    def unpacked(self, values: Floats, has: NDArray[np.bool_]) -> Floats:
        """Values of the measured rows, which stand at the left, at the rows that have one."""
        out = np.full(has.shape, np.nan)
        place = np.maximum(np.cumsum(has, axis=1) - 1, 0)
        out[has] = np.take_along_axis(values, place, axis=1)[has]
        return out
